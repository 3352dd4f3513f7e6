//! The summary of a device: what `vramscope diagnose` says, and how the page lays it out.

use super::FindingView;
use crate::messages::Quantity;
use serde::{Deserialize, Serialize};
use vramscope_inference::{FindingId, Severity};
use vramscope_report::diagnose::Diagnosis;
use vramscope_report::what_if::Outcome;

/// The answer to `Summary` and `SimulatedSummary`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The record that `vramscope diagnose --format json` prints of the device.
    pub record: Diagnosis,
    /// Its words as `diagnose` prints them, and places of its pictures.
    pub view: SummaryView,
}

/// What the page shows of a diagnosis beyond the record.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SummaryView {
    /// What is wrong, or what holds the peak.
    pub headline: String,
    /// The sentences below it.
    pub lines: Vec<String>,
    /// What to do in a few words; empty if nothing is known.
    pub remedy: String,
    /// The device's memory; null if nothing was reserved.
    pub bar: Option<MemoryBar>,
    /// The heading of `fixes`: `What makes it fit`.
    pub fixes_title: String,
    /// The scale of their gauges: `of 5.51 GiB`. Empty without a limit.
    pub scale: String,
    /// Changes that were replayed, in the order of the record.
    pub fixes: Vec<FixView>,
    /// The main finding is the first, unless nothing above low was found.
    pub findings: Vec<SaidFinding>,
    /// The number of findings that are not shown: `and 3 more`. Empty if none.
    pub omitted: String,
    /// Whether the model of the allocator reproduces the recording; empty before it was asked.
    pub model: String,
    /// Whether the answer has replays of changes. They follow in a second answer.
    pub is_simulated: bool,
}

/// A change and its outcome.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FixView {
    /// The number; null for a change that does not help.
    pub number: Option<u32>,
    /// What to change.
    pub text: String,
    /// What it needs, or what it saves.
    pub bytes: Quantity,
    /// Its words: `needs 4.84 GiB`.
    pub needs: String,
    /// What it needs and the limit, from 0 to 1; null without a limit.
    pub gauge: Option<[f64; 2]>,
    /// Whether the run goes through; null where none failed.
    pub outcome: Option<Outcome>,
    /// The outcome in words: `fits`.
    pub verdict: String,
    /// What it costs.
    pub cost: String,
    /// The measured error.
    pub basis: String,
    /// The question to the model of the allocator.
    pub question: String,
}

/// A finding in the words of `diagnose`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SaidFinding {
    /// The id of its record.
    pub id: FindingId,
    /// The severity.
    pub severity: Severity,
    /// What is wrong.
    pub headline: String,
    /// The line: `gpt.py:44 forward, in its backward`. Empty without one.
    pub place: String,
    /// Labels and texts of further lines: why, help.
    pub facts: Vec<[String; 2]>,
    /// Known causes with bytes, line and cure.
    pub looks: Vec<String>,
    /// The rest of its card.
    pub view: FindingView,
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
    /// Round values below the bar.
    pub ticks: Vec<BarMark>,
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
