//! What is around the stack: the legend of its colors, reserved bytes, and the device's limit.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// The colors of the plots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Legend {
    /// When the bytes are counted: `at the peak, #7,382`.
    pub at: String,
    /// The colors of blocks in view, those with the most bytes at the peak first. Empty for a ramp.
    pub entries: Vec<LegendEntry>,
    /// The ramp of a quantity; null for a list.
    pub ramp: Option<Ramp>,
}

/// A color of the legend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LegendEntry {
    /// What has the color: `activations` or `model.py:212`.
    pub label: String,
    /// The color word.
    pub color: u32,
    /// Requested bytes of its live blocks.
    pub bytes: Quantity,
    /// The tooltip.
    pub title: String,
    /// The search term that finds its blocks: `category:activation`. Empty if there is none.
    pub term: String,
}

/// A ramp of colors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Ramp {
    /// The color words from low to high.
    pub colors: Vec<u32>,
    /// The lowest value.
    pub low: String,
    /// The highest value.
    pub high: String,
}

/// A number of bytes along a part of an axis, as a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct CounterLine {
    /// Left edge in slots.
    pub x0: f64,
    /// Right edge in slots.
    pub x1: f64,
    /// Width of the box of `path`.
    pub columns: u32,
    /// The maximum of each column, as a line in a box of [`COUNTER_HEIGHT`], y down. The full
    /// height is `top`. Empty where the trace has no states.
    pub path: String,
    /// The maximum over the window.
    pub top: Quantity,
    /// The value after the event that was asked for.
    pub at: Option<Quantity>,
    /// What is counted: `reserved`, or `default pool, stream 0 (default), large`.
    pub name: String,
    /// The line in words: `reserved_bytes, peak 9.15 GiB`.
    pub title: String,
}

/// Height of the box of [`CounterLine::path`].
pub const COUNTER_HEIGHT: u32 = 1000;

/// What PyTorch could have on the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// Reserved bytes and free bytes of the device when an allocation failed; null if the file does
    /// not show them.
    pub capacity: Option<Quantity>,
    /// The capacity in words: `5.51 GiB available to PyTorch at #7,396`; empty if it is not known.
    pub text: String,
    /// Whether the capacity is so much higher than the stack that it need not be in view.
    pub far: bool,
    /// The first and the last allocations that failed, by event.
    pub requests: Vec<FailedRequest>,
}

/// An allocation that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FailedRequest {
    /// The event.
    pub event: u32,
    /// Its slot.
    pub slot: f64,
    /// Requested bytes that were live.
    pub low: f64,
    /// The same with the request.
    pub high: f64,
    /// The size of the request.
    pub bytes: Quantity,
    /// The request in words: `asked for 393.0 MiB`.
    pub text: String,
}
