//! The peak lens: separate peaks, what happens around one, and the live set at it.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// A separate peak, the allocations and frees around it, and the blocks that are live at it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PeakLens {
    /// The separate peaks of requested bytes, the highest first.
    pub peaks: Vec<LensPeak>,
    /// Index of the peak that is shown.
    pub shown: u32,
    /// Allocations and frees around it, in order.
    pub events: Vec<LensEvent>,
    /// The number of earlier events: `16,366 earlier events`.
    pub earlier: String,
    /// The number of later events.
    pub later: String,
    /// The most and the least bytes of these events: the upper and lower edge of their picture.
    pub edges: Vec<Quantity>,
    /// All live blocks.
    pub total: Quantity,
    /// Live blocks by category and call site, as cells of a treemap. A category is followed by its
    /// call sites, the largest first.
    pub cells: Vec<TreemapCell>,
}

/// A separate peak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LensPeak {
    /// The event; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// The event in words: `#16,402`.
    pub label: String,
    /// Requested bytes.
    pub bytes: Quantity,
    /// The phase and the step: `backward, step 2`. Empty if nothing shows them.
    pub place: String,
    /// How much lower the next peak is; null for the last.
    pub lower: Option<Quantity>,
    /// The peak and what its end would bring, one sentence each.
    pub text: Vec<String>,
}

/// An allocation or a free near a peak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LensEvent {
    /// The event.
    pub event: u32,
    /// The event in words: `#16,402`.
    pub label: String,
    /// What requested bytes change by.
    pub bytes: Quantity,
    /// Requested bytes after it.
    pub total: Quantity,
    /// The category in words.
    pub category: String,
    /// The color word of the category.
    pub color: u32,
    /// The call site.
    pub site: String,
    /// The block.
    pub block: u32,
    /// The lower and upper edge of its bar, as shares of the picture's height.
    pub y: (f64, f64),
    /// True if the total is the peak.
    pub is_peak: bool,
}

/// A category or a call site in a treemap. Places are in CSS pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TreemapCell {
    /// 0 for a category, 1 for a call site.
    pub depth: u32,
    /// The category or call site.
    pub label: String,
    /// Requested bytes.
    pub bytes: Quantity,
    /// The number of blocks.
    pub blocks: Quantity,
    /// The share of all live blocks: `12.4 %`.
    pub percent: String,
    /// The color word.
    pub color: u32,
    /// The terms of a search for its blocks; empty for small call sites that share a cell.
    pub terms: Vec<String>,
    /// The left and right edge.
    pub x: (f64, f64),
    /// The upper and lower edge.
    pub y: (f64, f64),
    /// The edges of its blocks, as an SVG path relative to its corner. Empty if they are too small.
    pub edges: String,
}
