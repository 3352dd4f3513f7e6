//! The summary of a device: what `vramscope diagnose` says, and how the page lays it out.

use super::FindingRow;
use crate::messages::Quantity;
use serde::{Deserialize, Serialize};
use vramscope_inference::LeverPlace;
use vramscope_report::diagnose::Diagnosis;

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
    /// The line that the headline names, with its words there; null without one.
    pub place: Option<LeverPlace>,
    /// The sentences below it.
    pub lines: Vec<String>,
    /// What to do in a few words; empty if nothing is known but levers.
    pub remedy: String,
    /// The device's memory; null if nothing was reserved.
    pub bar: Option<MemoryBar>,
    /// The findings, that of the headline first, if one has it.
    pub findings: Vec<FindingRow>,
    /// The number of findings that are not shown: `and 3 more`. Empty if none.
    pub omitted: String,
    /// The recording in a few words each: the window, whether the model of the allocator reproduces
    /// it, what was not looked for.
    pub facts: Vec<String>,
    /// Whether the answer has what replays say of findings. That follows in a second answer.
    pub is_simulated: bool,
}

/// The answer to `SummaryPlot`: the memory of the window by category, and the lines that hold most
/// at the moment of the bar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SummaryPlot {
    /// The categories, the top of the stack first; empty without history.
    pub areas: Vec<PlotArea>,
    /// The bytes at the full height.
    pub top: f64,
    /// Steps, from left to right; empty if there are more than fit.
    pub steps: Vec<PlotStep>,
    /// The moment; null without history.
    pub mark: Option<PlotMark>,
    /// What PyTorch could have, in bytes; null where the file does not tell.
    pub limit: Option<f64>,
    /// The lines that hold most, most first.
    pub lines: Vec<LargestLine>,
    /// Their heading: `Largest lines at the peak`.
    pub lines_title: String,
    /// The pass before, to which each line is compared: `step 3`. Empty without one.
    pub before: String,
}

/// The bytes of a category and of all below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PlotArea {
    /// The category's name.
    pub name: String,
    /// Its words.
    pub label: String,
    /// Its color word.
    pub color: u32,
    /// The area in the box [`PLOT`], y down.
    pub path: String,
    /// The middle of the label, from 0 to 1 and y down; null where none fits.
    pub label_at: Option<[f64; 2]>,
}

/// Width and height of the box of [`PlotArea::path`].
pub const PLOT: [u32; 2] = [520, 160];

/// A step of a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PlotStep {
    /// The left edge, from 0 to 1.
    pub from: f64,
    /// The right edge.
    pub to: f64,
    /// Its name where it fits, else its number, or nothing.
    pub label: String,
}

/// The moment of a summary in its plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PlotMark {
    /// The place, from 0 to 1.
    pub at: f64,
    /// The bytes.
    pub bytes: f64,
    /// The words: `peak, #16,465`.
    pub label: String,
    /// The event; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
}

/// A line of the program, and what it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LargestLine {
    /// `gpt.py:19 forward`, or why there is no line.
    pub site: String,
    /// The file; empty without a line.
    pub file: String,
    /// The line; 0 without one.
    pub line: u32,
    /// What the line does and of what its blocks are, for a tooltip.
    pub title: String,
    /// The bytes.
    pub bytes: Quantity,
    /// Their share of the moment: `36 %`.
    pub share: String,
    /// Their part of the largest line's, from 0 to 1.
    pub part: f64,
    /// The color word of the category of most of them.
    pub color: u32,
    /// What the line held one pass before: `was 360 MiB`, `the same`, `new`. Empty without a pass.
    pub was: String,
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
    /// The bytes of the whole scale.
    pub whole: f64,
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
