//! The content of tiles, and its specifications.

use crate::messages::AxisKind;
use serde::{Deserialize, Serialize};

/// The property that a block's color shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum ColorBy {
    /// The call stack. The hue comes from the innermost frame in the user's own code.
    #[default]
    Stack,
    /// The category.
    Category,
    /// The size, by powers of two.
    Size,
    /// The lifetime.
    Age,
    /// The stream.
    Stream,
    /// The segment.
    Segment,
}

/// The bytes that are drawn as lines over the timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "one independent switch for each line")]
pub struct Bands {
    /// `reserved_bytes`.
    pub reserved: bool,
    /// `active_bytes`.
    pub active: bool,
    /// `allocated_bytes`.
    pub allocated: bool,
    /// Requested bytes with private pools counted as a whole, if there are any.
    pub pools: bool,
}

impl Bands {
    /// No lines.
    pub const NONE: Self = Self { reserved: false, active: false, allocated: false, pools: false };
    /// All lines.
    pub const ALL: Self = Self { reserved: true, active: true, allocated: true, pools: true };
}

/// What the blocks of a stack are grouped by. The blocks of a group lie next to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum GroupBy {
    /// Nothing: blocks are in the order of their allocation.
    #[default]
    Block,
    /// The category.
    Category,
    /// The category, then the line of the call site.
    Line,
    /// The category, then the module, as far as call stacks show it.
    Module,
}

/// The weight in a flame graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum FlameWeight {
    /// Requested bytes that are live at the peak.
    #[default]
    Peak,
    /// Requested bytes that are live at the cursor.
    Cursor,
    /// Requested bytes times lifetime in microseconds (in events without a clock).
    ByteSeconds,
    /// The number of allocations.
    Count,
    /// Requested bytes of all allocations, whatever their lifetime.
    Churn,
}

/// A range of the trace that the user marked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MarkedRange {
    /// The axis.
    pub axis: AxisKind,
    /// Left edge in slots.
    pub x0: f64,
    /// Right edge in slots.
    pub x1: f64,
}

/// The specification of a flame graph. Equal specifications give equal graphs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameSpec {
    /// The weight.
    pub weight: FlameWeight,
    /// The event after which `Cursor` counts; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// The range with the peak of `Peak`, and in which `ByteSeconds`, `Count` and `Churn` count.
    /// Null for the whole window.
    pub range: Option<MarkedRange>,
    /// True for an inverted graph, with innermost frames at the root.
    pub inverted: bool,
    /// True to leave out frames of PyTorch, Python and C++.
    pub hide_framework: bool,
    /// The path of a node (see [`FlameNode::path`](super::FlameNode::path)), to show only this node
    /// with its ancestors and descendants. Empty for all nodes.
    pub root: String,
    /// Frames with this text keep their color, other frames are gray. Empty for no search.
    pub search: String,
}

/// The order of segments, from the top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum SegmentSort {
    /// The largest first.
    #[default]
    Size,
    /// By address.
    Address,
    /// By pool and stream, then by size.
    Pool,
    /// By occupancy at the cursor, the emptiest first.
    Occupancy,
}

/// The specification of the rows of the segments view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentSpec {
    /// The order.
    pub sort: SegmentSort,
    /// The event after which `Occupancy` is measured; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// The segment (from [`Query::SegmentOf`](super::Query::SegmentOf)) whose row is [`GROWN`]
    /// times as high; null for none.
    pub grown: Option<u32>,
}

/// The specification of the map of segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MapSpec {
    /// The event after which the segments are shown; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// The event of an earlier state; null for none. With it, colors show what came, stayed and
    /// went since, and what was released is part of the map.
    #[cfg_attr(test, ts(type = "number | null"))]
    pub from: Option<i64>,
    /// The number of lines that the plot has room for. It decides how many bytes a line has.
    pub lines: u32,
}

/// Height of a row in the units of the y axis of segments, flame graphs and maps.
pub const ROW_UNITS: u32 = 4096;

/// Height of the row of the selected block's segment, relative to other rows.
pub const GROWN: u32 = 4;

/// The content of tiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Layer {
    /// The top of the timeline's stack above a neutral area. It is drawn before the categories of
    /// blocks are known. x is in slots, y in bytes.
    Outline {},
    /// The timeline of blocks. x is in slots, y in bytes.
    Timeline {
        /// What the blocks of the stack are grouped by.
        group: GroupBy,
        /// The property that colors show.
        color: ColorBy,
        /// The bytes that are drawn as lines.
        bands: Bands,
        /// Blocks that match this search keep their color, other blocks are gray. Empty for no
        /// search.
        search: String,
    },
    /// One row per segment. x is in slots, y in [`ROW_UNITS`] per row. The first row is at the top,
    /// with the highest y.
    Segments {
        /// The property that colors show.
        color: ColorBy,
        /// The rows.
        rows: SegmentSpec,
        /// The search, as in `Timeline`.
        search: String,
    },
    /// A flame graph. x is in the graph's units from 0 to
    /// [`FlameInfo::extent`](super::FlameInfo::extent), y in [`ROW_UNITS`] per row. The root is at
    /// the top.
    Flame {
        /// The graph.
        flame: FlameSpec,
    },
    /// The segments after an event, wrapped into lines. x is in bytes from 0 to
    /// [`MapInfo::line_bytes`](super::MapInfo::line_bytes), y in [`ROW_UNITS`] per line. The first
    /// line is at the top.
    Map {
        /// The property that colors show.
        color: ColorBy,
        /// The event and the size.
        map: MapSpec,
        /// The search, as in `Timeline`.
        search: String,
    },
}
