//! Predictions: what other settings, another device or another batch would reserve.

use crate::Quantity;
use serde::{Deserialize, Serialize};

/// What differs from the recording in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ScenarioSpec {
    /// `expandable_segments`; null as recorded.
    pub expandable_segments: Option<bool>,
    /// `max_split_size_mb`, 0 for no limit; null as recorded.
    pub max_split_size_mb: Option<u32>,
    /// `roundup_power2_divisions` for all sizes, 0 for none; null as recorded.
    pub roundup_power2_divisions: Option<u32>,
    /// The memory of the device: `80GiB`, `H100`. Empty for what the recording shows.
    pub device_memory: String,
    /// The factor of tokens.
    pub tokens: f64,
    /// Blocks with another size, and blocks that are left out.
    pub parts: Vec<ScaledPart>,
}

/// Blocks with another size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ScaledPart {
    /// A category, or a call site such as `train.py:12`.
    pub what: String,
    /// The factor of the sizes; 0 leaves the blocks out. A call site can only be left out.
    pub factor: f64,
}

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

/// A scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ScenarioRow {
    /// What differs from the recording, in words.
    pub change: String,
    /// The settings in the form of `PYTORCH_CUDA_ALLOC_CONF`. Empty for PyTorch's defaults.
    pub conf: String,
    /// The peak of reserved bytes; when memory runs out, until then.
    pub reserved_peak: Quantity,
    /// The peak in words, with its range where the order of addresses decides.
    pub peak_text: String,
    /// The change of the reserved peak; null when memory runs out, because the peak is only that
    /// until then.
    pub difference: Option<Quantity>,
    /// The peak of active bytes.
    pub active_peak: Quantity,
    /// How often all free memory was returned.
    pub flushes: Quantity,
    /// The memory that PyTorch must have for the run to go through; null if it was not searched.
    pub needs: Option<Quantity>,
    /// Whether no request fails.
    pub fits: bool,
    /// The first event whose request fails; null if none does.
    pub runs_out_at: Option<u32>,
    /// Whether it fits, in a few words.
    pub outcome: String,
    /// How the numbers were obtained: `simulated`, or `scaled ±13 %`.
    pub basis: String,
}

/// The answer to a scenario that a user put together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ScenarioCard {
    /// What is wrong with the question; null if nothing is.
    pub error: Option<String>,
    /// The entered text that is wrong: a memory size or a call site; null if it is another value.
    pub wrong: Option<String>,
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
