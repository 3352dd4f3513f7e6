//! Steps over each other on one axis.

use super::minimap::full_height;
use super::shares::fraction;
use crate::messages::AxisKind;
use crate::messages::views::{FOLDED, FoldedStep, FoldedSteps};
use vramscope_layout::Axis;
use vramscope_report::steps::{FloorRecord, floors};
use vramscope_report::{Quantity, Target};
use vramscope_trace::columns_of;
use vramscope_trace::slicing::Budget;
use vramscope_units::svg::{area, outline};
use vramscope_units::{Bytes, byte_ticks, grouped};

/// Steps in the list.
const MAX_STEPS: usize = 200;

/// Steps with a curve of their own. More lines cannot be told apart.
const MAX_CURVES: usize = 24;

/// Points of a curve.
const COLUMNS: u32 = 250;

/// Ticks of the y axis.
const MAX_TICKS: usize = 5;

/// The steps of a device, folded along an axis.
pub(super) async fn folded(at: Target<'_>, axis: AxisKind, budget: &mut Budget) -> FoldedSteps {
    let report = floors(at, budget).await;
    let earlier = report.steps.len().saturating_sub(MAX_STEPS);
    let listed = &report.steps[earlier..];
    let mut curves: Vec<Vec<u64>> = Vec::new();
    if let Some(axis) = Axis::new(at.trace(), axis) {
        for step in listed {
            curves.push(curve(at, axis, step, budget).await);
        }
    }
    let all = || curves.iter().flatten().copied();
    let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(full_height(at.trace())));
    let ticks = |low: u64| byte_ticks(low as f64, most as f64, MAX_TICKS);
    // Steps that differ by less than their floor have the room to show it.
    let is_cut = least > most / 2 && most > least;
    let low = if is_cut { least.saturating_sub((most - least) / 8) } else { 0 };
    let scale = Scale { low, high: most.max(low + 1) };
    let first_line = listed.len().saturating_sub(MAX_CURVES);
    let path = |index: usize| match curves.get(index) {
        Some(curve) if index >= first_line => scale.line(curve),
        _ => String::new(),
    };
    let floors: Vec<u64> = listed.iter().map(|step| step.floor_bytes).collect();
    let ticks = ticks(low);
    FoldedSteps {
        text: report.text.clone(),
        steps: (0..).zip(listed).map(|(i, step)| row(step, path(i))).collect(),
        earlier: match earlier {
            0 => String::new(),
            count => format!("{} earlier steps", grouped(count as u64)),
        },
        ribbon: scale.ribbon(&curves),
        floors: scale.line(&floors),
        heights: ticks.iter().map(|tick| scale.y(tick.value as u64)).collect(),
        ticks: ticks.into_iter().map(|tick| tick.text).collect(),
        is_cut,
    }
}

fn row(step: &FloorRecord, path: String) -> FoldedStep {
    FoldedStep {
        step: step.step,
        term: format!("step:{}", step.step),
        path,
        peak: Quantity::bytes(Bytes(step.peak_bytes)),
        floor: Quantity::bytes(Bytes(step.floor_bytes)),
        change: step.change.map(Quantity::change_of_bytes),
    }
}

/// The most requested bytes in equal parts of a step.
async fn curve(
    at: Target<'_>,
    axis: Axis<'_>,
    step: &FloorRecord,
    budget: &mut Budget,
) -> Vec<u64> {
    let slots = [step.begin + 1, step.end].map(|slot| u32::try_from(slot).unwrap_or(0));
    let (from, to) = (axis.slot_of(slots[0]), axis.slot_of(slots[1]) + 1);
    let states = columns_of(from..to, COLUMNS).map(|slots| axis.states_in(slots));
    at.trace().requested.tops(states, budget).await
}

/// Bytes at the bottom and at the top of the pictures.
#[derive(Clone, Copy)]
struct Scale {
    low: u64,
    high: u64,
}

impl Scale {
    fn height(self) -> u64 {
        self.high - self.low
    }

    fn above_low(self, value: u64) -> u64 {
        value.clamp(self.low, self.high) - self.low
    }

    /// The height of a value from the top, in units of the picture.
    fn y(self, value: u64) -> f64 {
        (1.0 - fraction(self.above_low(value), self.height())) * f64::from(FOLDED[1])
    }

    /// A line of steps through values, over the whole width.
    fn line(self, values: &[u64]) -> String {
        let values: Vec<u64> = values.iter().map(|&value| self.above_low(value)).collect();
        outline(&values, [0, FOLDED[0] * 10], FOLDED[1], self.height())
    }

    /// The areas below the least and below the most of several curves. By the rule `evenodd` they
    /// fill what is between both.
    fn ribbon(self, curves: &[Vec<u64>]) -> String {
        let edge = |of: fn(u64, u64) -> u64| {
            let mut edge = curves.first().cloned().unwrap_or_default();
            for curve in curves {
                edge.iter_mut().zip(curve).for_each(|(edge, &value)| *edge = of(*edge, value));
            }
            let edge: Vec<u64> = edge.into_iter().map(|value| self.above_low(value)).collect();
            area(&edge, FOLDED, self.height())
        };
        edge(u64::min) + &edge(u64::max)
    }
}
