//! Steps over each other on one axis.

use super::minimap::full_height;
use super::tiles::layout_axis;
use vramscope_analysis::slicing::Budget;
use vramscope_layout::Axis;
use vramscope_protocol::AxisKind;
use vramscope_protocol::views::{FOLDED, FoldedStep, FoldedSteps};
use vramscope_report::steps::{FloorRecord, steps_sliced};
use vramscope_report::{Quantity, Target};
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
    let report = steps_sliced(at, None, budget).await;
    let mut curves: Vec<Vec<u64>> = Vec::new();
    if let Some(axis) = layout_axis(at.trace(), axis) {
        for step in &report.steps {
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
    let earlier = report.steps.len().saturating_sub(MAX_STEPS);
    let listed = &report.steps[earlier..];
    let first_curve = report.steps.len().saturating_sub(MAX_CURVES);
    let path = |index: usize| match curves.get(index) {
        Some(curve) if index >= first_curve => line(curve, scale),
        _ => String::new(),
    };
    let floors: Vec<u64> = listed.iter().map(|step| step.floor_bytes).collect();
    let ticks = ticks(low);
    FoldedSteps {
        text: report.text.clone(),
        steps: (earlier..).zip(listed).map(|(i, step)| row(step, path(i))).collect(),
        earlier: match earlier {
            0 => String::new(),
            count => format!("{} earlier steps", grouped(count as u64)),
        },
        ribbon: ribbon(&curves, scale),
        floors: line(&floors, scale),
        heights: ticks.iter().map(|tick| scale.y(tick.value as u64)).collect(),
        ticks: ticks.into_iter().map(|tick| tick.text).collect(),
        is_cut,
    }
}

fn row(step: &FloorRecord, path: String) -> FoldedStep {
    FoldedStep {
        step: step.step,
        term: format!("step:{}", step.step),
        event: u32::try_from(step.end - 1).unwrap_or(0),
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
    let edge = |column: u32| {
        let width = u128::from(to.saturating_sub(from));
        from + (width * u128::from(column) / u128::from(COLUMNS)) as u64
    };
    let mut tops = Vec::with_capacity(COLUMNS as usize);
    for column in 0..COLUMNS {
        let start = edge(column);
        let states = axis.states_in(start..edge(column + 1).max(start + 1));
        let (_, top) =
            at.trace().requested.largest_sliced(states, budget).await.unwrap_or_default();
        tops.push(top);
    }
    tops
}

/// Bytes at the bottom and at the top.
#[derive(Clone, Copy)]
struct Scale {
    low: u64,
    high: u64,
}

impl Scale {
    /// The height of a value from the top, in units of the picture.
    fn y(self, value: u64) -> f64 {
        let whole = (self.high - self.low) as f64;
        let part = value.clamp(self.low, self.high) - self.low;
        (1.0 - part as f64 / whole) * f64::from(FOLDED[1])
    }
}

/// A line of steps through values, over the whole width.
fn line(values: &[u64], scale: Scale) -> String {
    let width = f64::from(FOLDED[0]) / values.len().max(1) as f64;
    let mut path = String::new();
    for (i, &value) in values.iter().enumerate() {
        path.push_str(if i == 0 { "M0 " } else { "V" });
        push(&mut path, scale.y(value));
        path.push('H');
        push(&mut path, width * (i + 1) as f64);
    }
    path
}

/// The area between the least and the most of several curves.
fn ribbon(curves: &[Vec<u64>], scale: Scale) -> String {
    let edge = |of: fn(u64, u64) -> u64| -> Vec<u64> {
        let mut edge = curves.first().cloned().unwrap_or_default();
        for curve in curves {
            edge.iter_mut().zip(curve).for_each(|(edge, &value)| *edge = of(*edge, value));
        }
        edge
    };
    let (lower, upper) = (edge(u64::min), edge(u64::max));
    let mut path = line(&upper, scale);
    let width = f64::from(FOLDED[0]) / lower.len().max(1) as f64;
    for (i, &value) in lower.iter().enumerate().rev() {
        path.push('V');
        push(&mut path, scale.y(value));
        path.push('H');
        push(&mut path, width * i as f64);
    }
    path.push('Z');
    path
}

/// A number in whole tenths.
fn push(path: &mut String, number: f64) {
    let tenths = (number * 10.0).round() as i64;
    path.push_str(&(tenths / 10).to_string());
    if tenths % 10 != 0 {
        path.push('.');
        path.push_str(&(tenths % 10).to_string());
    }
}
