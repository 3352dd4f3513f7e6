//! Predictions: what the run needs with changes together, and what reserved memory is used for.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};
use vramscope_report::what_if::{Outcome, WrongItem};
use vramscope_units::{Bytes, EventIndex};

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

/// The answer to `Scenario`: the run with changes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ScenarioCard {
    /// The item of the question that is wrong; null if none is.
    pub error: Option<WrongItem>,
    /// What differs from the recording, in words; empty without a prediction.
    pub change: String,
    /// What PyTorch must have; null without a prediction.
    pub needs: Option<Quantity>,
    /// Whether the run goes through; null without a limit.
    pub outcome: Option<Outcome>,
    /// The outcome in words: `fits, 2.19 GiB to spare`, or why there is no prediction.
    pub verdict: String,
    /// How the number was obtained: `replayed ±6 %`.
    pub basis: String,
    /// The most bytes of the curve, for the height of the plot; 0 for a changed program, which has
    /// none.
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
