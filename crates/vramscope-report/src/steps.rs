//! `vramscope steps`: what stays after each step, and how fast it grows.

mod table;

pub use table::{StepRow, StepTable, peak_of_step, step_table};

use crate::capacity::capacity;
use crate::phases::step_words;
use crate::{Derived, Target, event_of};
use serde::Serialize;
use vramscope_inference::{Facts, Slope, StepFloor, slope, step_floors};
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, grouped};

/// Steps at the end of which the largest peak counts.
const LAST_STEPS: usize = 4;

/// What stays after each step.
#[derive(Debug)]
pub struct Floors {
    /// The whole steps in order.
    pub steps: Vec<FloorRecord>,
    /// The growth after the first two steps; null if it is not steady.
    pub slope: Option<SlopeRecord>,
    /// What follows, in sentences.
    pub text: Vec<String>,
}

/// A whole step.
#[derive(Clone, Debug)]
pub struct FloorRecord {
    /// The step, from 0.
    pub step: u32,
    /// The first event.
    pub begin: i64,
    /// The event after the last.
    pub end: i64,
    /// The most `requested_bytes` after an event of the step.
    pub peak_bytes: u64,
    /// The first event with that many bytes.
    pub peak_event: i64,
    /// `requested_bytes` after the step.
    pub floor_bytes: u64,
    /// What the floor grew by since the step before; null for the first step.
    pub change: Option<i64>,
}

/// A floor that grows steadily.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlopeRecord {
    /// The growth in a step, in bytes: that of the findings about growth, if the floors agree with
    /// it to a quarter; else the median over all pairs of steps.
    pub bytes_per_step: u64,
    /// The first step after which the growth is measured.
    pub from_step: u32,
    /// The last one.
    pub to_step: u32,
    /// What PyTorch could have on the device, in bytes; null if the file does not show it.
    pub capacity_bytes: Option<u64>,
    /// The number of further steps after which the peak of a step exceeds the capacity, if it goes
    /// on like this; null without a capacity. Fragmentation can end the run earlier.
    pub steps_left: Option<u64>,
}

/// What stays after the whole steps of a device.
pub async fn floors(target: Target<'_>, budget: &mut Budget) -> Floors {
    let found = target.entry.steps(target.index);
    let floors = match found {
        Some(steps) => step_floors(target.trace(), steps, budget).await,
        None => Vec::new(),
    };
    target.entry.derive(Derived::Findings, target.index, budget).await;
    let slope = match with_findings(target, &floors, slope(&floors)) {
        Some(slope) => Some(slope_record(target, &floors, slope, budget).await),
        None => None,
    };
    let before = |i: usize| i.checked_sub(1).map(|before| floors[before].floor.0);
    let record = |(i, at): (usize, &StepFloor)| FloorRecord {
        step: at.step,
        begin: event_of(at.begin + 1),
        end: event_of(at.end + 1),
        peak_bytes: at.peak.0,
        peak_event: event_of(at.peak_slot),
        floor_bytes: at.floor.0,
        change: before(i).map(|before| (at.floor.0 as i64).saturating_sub(before as i64)),
    };
    Floors {
        steps: floors.iter().enumerate().map(record).collect(),
        text: sentences(&floors, slope, step_words(target)),
        slope,
    }
}

/// The slope with the rate of the findings about growth, which follow the blocks that stay. Floors
/// also have what batches of different sizes leave: they may grow in jumps.
fn with_findings(target: Target<'_>, floors: &[StepFloor], slope: Option<Slope>) -> Option<Slope> {
    let rate = target.entry.findings(target.index).iter().map(|finding| match &finding.facts {
        Facts::Growth(growth) if growth.words == step_words(target) => growth.rate.0,
        _ => 0,
    });
    let rate: u64 = rate.sum();
    let (Some(first), Some(last)) = (floors.get(1), floors.last()) else { return slope };
    match slope {
        _ if rate == 0 => slope,
        Some(slope) if slope.per_step.0.abs_diff(rate) > rate / 4 => Some(slope),
        Some(slope) => Some(Slope { per_step: Bytes(rate), ..slope }),
        None => Some(Slope { per_step: Bytes(rate), from: first.step, to: last.step }),
    }
}

async fn slope_record(
    target: Target<'_>,
    floors: &[StepFloor],
    slope: Slope,
    budget: &mut Budget,
) -> SlopeRecord {
    let capacity = capacity(target, budget).await.map(|capacity| capacity.bytes);
    // Batches of different sizes take turns: the largest of the last ones counts.
    let last = floors.len().saturating_sub(LAST_STEPS);
    let peak = floors[last..].iter().map(|step| step.peak.0).max().unwrap_or(0);
    let steps_left = |capacity: Bytes| capacity.0.saturating_sub(peak) / slope.per_step.0.max(1);
    SlopeRecord {
        bytes_per_step: slope.per_step.0,
        from_step: slope.from,
        to_step: slope.to,
        capacity_bytes: capacity.map(|bytes| bytes.0),
        steps_left: capacity.map(steps_left),
    }
}

fn sentences(floors: &[StepFloor], slope: Option<SlopeRecord>, words: [&str; 2]) -> Vec<String> {
    let (Some(least), Some(most)) =
        (floors.iter().map(|at| at.floor).min(), floors.iter().map(|at| at.floor).max())
    else {
        return vec!["Nothing in this window shows a whole step.".to_owned()];
    };
    let [word, words] = words;
    let mut text = Vec::new();
    match slope {
        Some(slope) => {
            text.push(format!(
                "+{} a {word} from {word} {} to {}.",
                Bytes(slope.bytes_per_step),
                slope.from_step,
                slope.to_step
            ));
            if let (Some(capacity), Some(left)) = (slope.capacity_bytes, slope.steps_left) {
                text.push(format!(
                    "{} are full after about {} more {words}.",
                    Bytes(capacity),
                    grouped(left)
                ));
            }
        }
        None if floors.len() == 1 => text.push(format!("{least} stay after the {word}.")),
        None if least == most => text.push(format!("{least} stay after every {word}.")),
        None => {
            text.push(format!("{least} to {most} stay after a {word}. They do not grow steadily."));
        }
    }
    text
}
