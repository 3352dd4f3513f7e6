//! The steps of a device with their phases, what stays after each, and how fast it grows.

use super::{FloorRecord, SlopeRecord, floors};
use crate::Target;
use crate::phases::{
    Formula, Limiting, NextStepRecord, PhaseRecord, StepRecord, SumRecord, phases,
};
use serde::Serialize;
use vramscope_trace::slicing::Budget;

/// `vramscope.steps/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepTable<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The evidence for steps; null if nothing shows steps.
    pub steps_by: Option<&'static str>,
    /// The words for one step and for several.
    #[serde(skip)]
    pub step_words: [&'static str; 2],
    /// The steps in order.
    pub steps: Vec<StepRow>,
    /// The number of steps left out by `--limit`.
    pub omitted: usize,
    /// The phases before the first step and after the last, in order.
    pub outside: Vec<PhaseRecord>,
    /// The phase with the highest peak, and the next one; null if nothing shows steps or phases.
    pub limiting: Option<Limiting>,
    /// The highest peak of each phase over all steps, as a sum of categories; highest first.
    pub sum: Vec<SumRecord>,
    /// The usual estimate of the peak; null unless a backward pass is in the window.
    pub formula: Option<Formula>,
    /// The peak of the second step, estimated from the first; null if the first does not show it.
    pub next_step: Option<NextStepRecord>,
    /// The growth after the first two steps; null if it is not steady.
    pub slope: Option<SlopeRecord>,
    /// What the phases show, in sentences.
    pub text: Vec<String>,
    /// What stays after steps, in sentences.
    pub growth_text: Vec<String>,
}

/// A step with its phases, and what stays after it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepRow {
    /// The step and its phases.
    #[serde(flatten)]
    pub step: StepRecord,
    /// The most `requested_bytes` after an event of the step.
    pub peak_bytes: u64,
    /// The first event with that many bytes; -1 is the state before the window.
    pub peak_event: i64,
    /// `requested_bytes` after the step; null for a step that the window's end cuts off.
    pub floor_bytes: Option<u64>,
    /// What the floor grew by since the step before; null for the first step and for one that is
    /// cut off.
    pub change: Option<i64>,
}

/// The steps of a device. `limit` is the largest number of steps to list.
pub async fn step_table<'a>(
    target: Target<'a>,
    limit: Option<usize>,
    budget: &mut Budget,
) -> StepTable<'a> {
    let of = phases(target, limit, budget).await;
    let floors = floors(target, budget).await;
    let row = |step: StepRecord| {
        let floor = floors.steps.iter().find(|floor| floor.step == step.step);
        let highest = step.phases.iter().rev().max_by_key(|phase| phase.peak_bytes);
        let (peak_bytes, peak_event) = match (floor, highest) {
            (Some(floor), _) => (floor.peak_bytes, floor.peak_event),
            (None, Some(phase)) => (phase.peak_bytes, phase.peak_event),
            (None, None) => (0, -1),
        };
        StepRow {
            peak_bytes,
            peak_event,
            floor_bytes: floor.map(|floor: &FloorRecord| floor.floor_bytes),
            change: floor.and_then(|floor| floor.change),
            step,
        }
    };
    StepTable {
        schema: "vramscope.steps/1",
        path: of.path,
        rank: of.rank,
        device: of.device,
        steps_by: of.steps_by,
        step_words: of.step_words,
        steps: of.steps.into_iter().map(row).collect(),
        omitted: of.omitted,
        outside: of.outside,
        limiting: of.limiting,
        sum: of.sum,
        formula: of.formula,
        next_step: of.next_step,
        slope: floors.slope,
        text: of.text,
        growth_text: floors.text,
    }
}

/// The event of the highest moment of a step, one that the window's end cuts off included; -1 is
/// the state before the window. `None` if there is no such step.
pub async fn peak_of_step(target: Target<'_>, step: u32, budget: &mut Budget) -> Option<i64> {
    let table = step_table(target, None, budget).await;
    table.steps.into_iter().find(|row| row.step.step == step).map(|row| row.peak_event)
}
