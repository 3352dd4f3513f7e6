//! Predictions: what other settings, another device or a changed program would reserve.

use serde::{Deserialize, Serialize};
use vramscope_report::PlanRecord;
use vramscope_report::what_if::{QuestionRecord, ScenarioRecord, WrongItem};
use vramscope_units::{Bytes, Change, EventIndex};

/// Whether there are predictions, and what they differ from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct WhatIfCard {
    /// How well the model reproduces the recording, in words; empty without a model.
    pub calibration: String,
    /// Why there is no prediction; null if there are predictions.
    pub declined: Option<String>,
    /// `expandable_segments` of the recording.
    pub expandable_segments: bool,
    /// `max_split_size_mb` of the recording in words: `128.00 MiB`, `no limit`.
    pub max_split_size: String,
    /// `roundup_power2_divisions` of the recording in words: `4`, `off`.
    pub roundup_power2_divisions: String,
    /// The question after the edits.
    pub question: QuestionRecord,
}

/// The usual scenarios; none if the question is wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct UsualScenarios {
    /// What the reserved peak was used for; empty if it is not known.
    pub sentence: String,
    /// The scenarios of `vramscope what-if`, in its order.
    pub rows: Vec<ScenarioRow>,
}

/// The plan for a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PlanCard {
    /// The plan; null where there are no predictions.
    pub record: Option<PlanRecord>,
    /// The plan in a sentence; empty without one.
    pub text: String,
    /// The largest batch without a change, in words; empty if it is not known.
    pub batch: String,
    /// The same with each set of changes.
    pub batches: Vec<String>,
}

/// What the recorded reserved peak was used for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ReservedUse {
    /// The recorded peak of `reserved_bytes`.
    pub peak: Bytes,
    /// It in a sentence: `Reserved 3.87 GiB at most, for 2.60 GiB in use: 790.0 MiB is cached.`
    pub text: String,
    /// The parts in the order of the bar, without empty ones.
    pub parts: Vec<ReservedPart>,
    /// The captures of CUDA graphs and what an inference engine holds; null without them.
    pub graphs: Option<GraphsCard>,
}

/// The captures of CUDA graphs, and the memory of an inference engine by its use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct GraphsCard {
    /// What follows, in sentences.
    pub text: Vec<String>,
    /// The captures, in order: the first.
    pub captures: Vec<CaptureRow>,
    /// `12 more captures`; empty if none is left out.
    pub more: String,
    /// What is reserved at the peak, by use: weights, KV cache, graphs.
    pub uses: Vec<ReservedPart>,
}

/// A capture of a CUDA graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct CaptureRow {
    /// The event of its first allocation.
    pub event: EventIndex,
    /// Its pool: `(0, 1)`.
    pub pool: String,
    /// The innermost frame of the program that its allocations share; empty without stacks.
    pub site: String,
    /// Bytes that the pool reserved for it.
    pub added: Bytes,
    /// Bytes in memory that the pool had before.
    pub reused: Bytes,
    /// Bytes that are live after it.
    pub kept: Bytes,
}

/// A part of the reserved peak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ReservedPart {
    /// Its name: `fragmented`.
    pub name: String,
    /// Bytes.
    pub bytes: Bytes,
    /// Its share of the peak, from 0 to 1.
    pub share: f64,
    /// What it is.
    pub text: String,
}

/// A scenario with its words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ScenarioRow {
    /// The numbers.
    pub record: ScenarioRecord,
    /// Their words.
    pub view: ScenarioView,
}

/// The words of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ScenarioView {
    /// The reserved peak, with its range where the order of addresses decides.
    pub peak_text: String,
    /// The change of the reserved peak; null when memory runs out, because the peak is only that
    /// until then.
    pub difference: Option<Change>,
    /// Whether it fits, in a few words.
    pub outcome: String,
    /// How the numbers were obtained: `simulated`, or `recipe ±5 %`.
    pub basis: String,
}

/// The answer to a scenario that a user put together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ScenarioCard {
    /// The item of the question that is wrong; null if none is.
    pub error: Option<WrongItem>,
    /// The scenario; null with an error, and where there are no predictions.
    pub scenario: Option<ScenarioRow>,
    /// The scenario in a sentence.
    pub verdict: String,
    /// The most bytes of the curve, for the height of the plot.
    pub top: f64,
}

/// The simulated reserved bytes between two slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SimulatedCurve {
    /// Left edge in slots.
    pub x0: f64,
    /// Right edge in slots.
    pub x1: f64,
    /// Width of the box of `path`.
    pub columns: u32,
    /// The bytes at the full height of the box of `path`, which is [`SIMULATED_HEIGHT`].
    pub top: f64,
    /// The curve as a line, y down. It ends where memory runs out. Empty without a prediction.
    pub path: String,
}

/// Height of the box of [`SimulatedCurve::path`].
pub const SIMULATED_HEIGHT: u32 = 100_000;
