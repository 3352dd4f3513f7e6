//! The verdict about a device: a sentence, a bar of its memory, and what to do.

use crate::messages::{Phrase, Quantity};
use serde::{Deserialize, Serialize};
use vramscope_inference::{FindingId, Severity};
use vramscope_report::verdict::Action;

/// What the recording says about a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct VerdictCard {
    /// The severity of the finding that it is about; null without one above low.
    pub severity: Option<Severity>,
    /// The id of that finding; null without one.
    pub finding: Option<FindingId>,
    /// The sentence.
    pub headline: Vec<Phrase>,
    /// What leads to it; empty without a finding.
    pub detail: String,
    /// The device's memory; null if nothing was reserved.
    pub bar: Option<MemoryBar>,
    /// What to do, most useful first.
    pub actions: Vec<Action>,
}

/// The memory of a device at one moment, to scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MemoryBar {
    /// The event after which it holds; null is the state before the window.
    pub event: Option<u32>,
    /// The moment in words: `at the peak, #3,737`.
    pub moment: String,
    /// The parts from left to right, without gaps.
    pub parts: Vec<BarPart>,
    /// The memory that PyTorch had reserved.
    pub reserved: Quantity,
    /// The memory that PyTorch can have; null where the file does not tell.
    pub capacity: Option<BarMark>,
    /// The request that failed; null without one.
    pub request: Option<BarPart>,
}

/// A part of a bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BarPart {
    /// The category's name, or `rounding`, `idle`, `stuck`, `small`, `graph_pools`, `device_free`,
    /// `outside` or `request`.
    pub name: String,
    /// The words: `activations`.
    pub label: String,
    /// The bytes.
    pub bytes: Quantity,
    /// The whole in words, for a tooltip: `activations: 3.21 GiB, 62 % of the reserved memory`.
    pub title: String,
    /// The left edge on the scale, from 0 to 1.
    pub from: f64,
    /// The right edge.
    pub to: f64,
    /// The category's color word; null if no block holds the part.
    pub color: Option<u32>,
    /// The filter that shows its blocks; null if no block holds it.
    pub filter: Option<String>,
}

/// A mark on a bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BarMark {
    /// The place on the scale, from 0 to 1.
    pub at: f64,
    /// The bytes.
    pub bytes: Quantity,
    /// The words: `5.51 GiB for PyTorch`.
    pub label: String,
}
