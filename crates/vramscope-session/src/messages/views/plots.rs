//! Figures and labels of the segments view and of flame graphs.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// Left of it.
    Left,
    /// Right of it.
    Right,
}

/// The label of a band of a grouped stack, at a place where the band is high enough for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct GroupLabel {
    /// The group, counted from the bottom of the stack.
    pub group: u32,
    /// The name and the size: `modeling_qwen2.py:59 · up to 7.66 GiB`.
    pub text: String,
    /// The group's most bytes in view. The text says `up to` where it has less elsewhere in view.
    pub bytes: Quantity,
    /// The color word of the group's category, with the shade of the band and its share of hits.
    pub color: u32,
    /// Null in its band. Otherwise it is beside the largest total in view, at the height of a band
    /// that is too narrow for the text.
    pub beside: Option<Side>,
    /// The left and right edge in slots.
    pub x: (f64, f64),
    /// The lower and upper edge in bytes.
    pub y: (f64, f64),
}

/// A part of a block's life in which it stays at one height.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockRun {
    /// The left and right edge in slots.
    pub x: (f64, f64),
    /// The lower and upper edge in bytes.
    pub y: (f64, f64),
}

/// The figures of the segments view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentsInfo {
    /// The height of all rows in units; 0 without rows.
    pub units: f64,
    /// The rows in words: the number of segments and rows, and the peak of reserved bytes.
    pub text: String,
    /// The lower and upper edge of the higher row in units; null if there is none.
    pub grown: Option<(f64, f64)>,
    /// The headers of the pools, from the top; empty unless the rows are ordered by pool.
    pub groups: Vec<SegmentGroup>,
}

/// The header of the rows of a pool and a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentGroup {
    /// The lower edge of the header in units.
    pub y0: f64,
    /// The upper edge of the header in units.
    pub y1: f64,
    /// The pool, the stream and the number of segments: `default pool, default stream, 45
    /// segments`.
    pub text: String,
    /// The handles of pool and stream, for a tooltip.
    pub title: String,
}

/// How much of the rows is in use after an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentUses {
    /// The event: `#3,737`.
    pub when: String,
    /// The rows whose segment is reserved then.
    pub rows: Vec<SegmentUse>,
    /// The pools, in the order of [`SegmentsInfo::groups`].
    pub groups: Vec<SegmentUse>,
}

/// How much of a segment, or of the segments of a pool, is in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentUse {
    /// [`SegmentRow::segment`] of the row; for a pool, of its first row.
    pub segment: u32,
    /// Bytes of blocks that are not yet free.
    pub used: Quantity,
    /// The other bytes.
    pub free: Quantity,
    /// The largest free piece.
    pub hole: Quantity,
}

/// A row of the segments view: a segment, or several segments of one size that were reserved at one
/// address one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentRow {
    /// Index of the row's first segment among the device's segments. It does not depend on the
    /// order of rows.
    pub segment: u32,
    /// The lower edge in units.
    pub y0: f64,
    /// The upper edge in units.
    pub y1: f64,
    /// The type: `large`, `small` or `expandable`.
    pub label: String,
    /// The size of each segment.
    pub size: Quantity,
    /// The address: `0x...`.
    pub address: String,
    /// The tooltip: number, address, pool, stream and lifetime.
    pub title: String,
}

/// The figures of a flame graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameInfo {
    /// The weight of all stacks.
    pub total: Quantity,
    /// The width of the x axis in the graph's units: the weight of the shown nodes, halved until it
    /// is below 2^40.
    pub extent: f64,
    /// The number of rows.
    pub rows: u32,
    /// The weight in words: `requested bytes live at the peak, #3,737`.
    pub text: String,
    /// The weight of stacks that match the search. Each stack counts once. Null without a search.
    pub matched: Option<Quantity>,
    /// The breadcrumb from the whole graph to the root node.
    pub path: Vec<FlameStep>,
}

/// A step of the breadcrumb.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameStep {
    /// The node's path, as [`FlameSpec::root`](super::FlameSpec::root) takes it.
    pub path: String,
    /// The call site: `model.py:212 forward`.
    pub text: String,
    /// The terms of a search for the blocks of the node; empty for the whole graph.
    pub terms: Vec<String>,
}

/// The label of a node that is wide enough for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameBox {
    /// The node's index.
    pub node: u32,
    /// Left edge in the graph's units.
    pub x0: f64,
    /// Right edge in the same unit.
    pub x1: f64,
    /// The lower edge in units.
    pub y0: f64,
    /// The upper edge in units.
    pub y1: f64,
    /// The function: `forward`.
    pub text: String,
    /// The place: `model.py:212`. Empty if `text` contains it or if it is unknown.
    pub place: String,
    /// The weight with its share of the whole graph: `18.2 GiB, 43 %`.
    pub weight: String,
    /// The color word.
    pub color: u32,
}

/// A node of a flame graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameNode {
    /// The node's index.
    pub node: u32,
    /// The node's path, as [`FlameSpec::root`](super::FlameSpec::root) takes it: the index among
    /// siblings at each level from the root, such as `0.2.1`.
    pub path: String,
    /// The path of the parent node; null for the root.
    pub parent: Option<String>,
    /// The call site: `model.py:212 forward`.
    pub title: String,
    /// The weight with all descendants.
    pub total: Quantity,
    /// The weight in words: share of all, number of blocks, and the node's own weight.
    pub text: String,
    /// The frame's file.
    pub file: String,
    /// The terms of a search for the blocks of the node; empty for the whole graph.
    pub terms: Vec<String>,
    /// Left edge in the graph's units.
    pub x0: f64,
    /// Right edge in the same unit.
    pub x1: f64,
    /// The color word.
    pub color: u32,
    /// The first child; null if there is none.
    pub child: Option<u32>,
    /// The previous sibling; null if there is none.
    pub before: Option<u32>,
    /// The next sibling; null if there is none.
    pub behind: Option<u32>,
    /// The parent node; null for the root.
    pub above: Option<u32>,
}
