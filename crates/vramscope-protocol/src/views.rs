//! Queries of the views: tables, states, flame graphs, findings.
//!
//! A [`Query`] is about one device. Its [`Answer`] has the same name.

mod answers;
mod compare;
mod ranks;
mod spec;

pub use answers::*;
pub use compare::*;
pub use ranks::*;
pub use spec::{QueryClass, QuerySpec};

use super::AxisKind;
use serde::{Deserialize, Serialize};
use vramscope_report::peak::BandKind;

/// What a block's color says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum ColorBy {
    /// Its call stack: the hue is that of the innermost frame that is the user's own.
    #[default]
    Stack,
    /// What it is: one of the categories.
    Category,
    /// Its size, by power of two.
    Size,
    /// How long it lives.
    Age,
    /// Its stream.
    Stream,
    /// Its segment.
    Segment,
}

/// What a flame graph adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum FlameWeight {
    /// Requested bytes that are live at the peak.
    #[default]
    Peak,
    /// Requested bytes that are live at the cursor.
    Cursor,
    /// Requested bytes times microseconds of life (times events without a clock).
    ByteSeconds,
    /// Allocations.
    Count,
    /// Requested bytes of allocations, however short they lived.
    Churn,
}

/// A part of the trace that was marked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MarkedRange {
    /// On which axis.
    pub axis: AxisKind,
    /// Left edge in slots.
    pub x0: f64,
    /// Right edge in slots.
    pub x1: f64,
}

/// A flame graph. Two equal specs are the same graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameSpec {
    /// What is added up.
    pub weight: FlameWeight,
    /// The event after which `Cursor` counts; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// Whose peak `Peak` is at, and in which `ByteSeconds`, `Count` and `Churn` count; null for the
    /// whole window.
    pub range: Option<MarkedRange>,
    /// Innermost frame first.
    pub inverted: bool,
    /// Leave out frames of PyTorch, Python and C++.
    pub hide_framework: bool,
    /// Only this node and what is above and below it, by its path (see [`FlameNode::path`]); empty
    /// for all.
    pub root: String,
    /// Frames that hold this text keep their color, the others turn gray; empty for none.
    pub search: String,
}

/// How segments are ordered, from the top.
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
    /// The emptiest first, at the cursor.
    Occupancy,
}

/// The rows of the segments view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentSpec {
    /// The order.
    pub sort: SegmentSort,
    /// The event at which `Occupancy` is told; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// Whose row is [`GROWN`] times as high: any segment, as `SegmentOf` tells it.
    pub grown: Option<u32>,
}

/// Height of a segment's row in the units of the segments' y axis.
pub const ROW_UNITS: u32 = 4096;
/// How many times higher the row of the selected block's segment is.
pub const GROWN: u32 = 4;

/// What tiles show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Layer {
    /// The stack of blocks. x in slots, y in bytes.
    Timeline {
        /// What colors say.
        color: ColorBy,
        /// Draw allocated, active and reserved bytes as lines.
        bands: bool,
        /// Blocks that match this search keep their color, the others turn gray; empty for none.
        search: String,
    },
    /// One row a segment. x in slots; y in [`ROW_UNITS`] a row, the first row at the top (the
    /// highest y).
    Segments {
        /// What colors say.
        color: ColorBy,
        /// Which rows.
        rows: SegmentSpec,
        /// As in `Timeline`.
        search: String,
    },
    /// A flame graph. x in the graph's units from 0 to [`FlameInfo::extent`]; y in [`ROW_UNITS`] a
    /// row, the root at the top.
    Flame {
        /// Which graph.
        flame: FlameSpec,
    },
}

/// A question about a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Query {
    /// The rank's row in the overview.
    Card {},
    /// What is wrong, most severe first.
    Findings {},
    /// The whole curve along an axis, and what is marked on it.
    Minimap {
        /// Which axis.
        axis: AxisKind,
    },
    /// Annotated ranges between two slots. Ranges that share a column are one item.
    Tracks {
        /// Which axis.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
        /// How many can be told apart.
        columns: u32,
    },
    /// The state at the peak of requested bytes: a moment that stays, whichever others are asked
    /// for.
    Peak {},
    /// The state at a moment.
    StateAt {
        /// When.
        at: At,
    },
    /// Where events that somebody marked are, and what they are called.
    Markers {
        /// The events, -1 for the state before the window; of one that is not there is no answer.
        #[cfg_attr(test, ts(type = "number[]"))]
        events: Vec<i64>,
    },
    /// What was allocated, freed and kept between two slots.
    Range(MarkedRange),
    /// A page of the trace.
    Events {
        /// Which of them.
        filter: EventFilter,
        /// The first row.
        from: u32,
        /// How many.
        count: u32,
        /// The event whose row is asked for: the answer's `at` is the last matching row at or
        /// before it.
        near: Option<u32>,
    },
    /// A page of the blocks.
    Blocks {
        /// Which of them, in which order.
        table: BlockTable,
        /// The first row.
        from: u32,
        /// How many.
        count: u32,
        /// The block whose row is asked for.
        near: Option<u32>,
    },
    /// A whole table or a stack as text.
    Export {
        /// Of what.
        what: Table,
        /// How.
        form: TextForm,
    },
    /// The device in the format of another tool, as `vramscope export` writes it.
    Convert {
        /// The format.
        format: ExportFormat,
    },
    /// The next block (by the event of its alloc) that a search finds, or that has the same call
    /// stack as a block.
    Next {
        /// What is looked for.
        of: Looked,
        /// From this event on; -1 is before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
        /// From this block on, which enters with that event: of several that do, such as those from
        /// before the window.
        block: Option<u32>,
        /// Towards the start.
        backwards: bool,
    },
    /// What a tooltip says of a block.
    Hit {
        /// Its index.
        block: u32,
    },
    /// What stands in a block that has room for words: its call site's function, and its size.
    Names {
        /// Their indices.
        blocks: Vec<u32>,
    },
    /// How many blocks a search finds.
    Search {
        /// A word of a frame or file, `0x...`, or a size: `>512MiB`.
        text: String,
    },
    /// The rows of the segments view, all together.
    Segments {
        /// Which.
        rows: SegmentSpec,
    },
    /// Those of them that reach into what is between two heights; of more than 500 the upper ones.
    SegmentRows {
        /// Of which.
        rows: SegmentSpec,
        /// The lower height, in units.
        y0: f64,
        /// The upper height.
        y1: f64,
    },
    /// One segment at a moment: of those that share its row the one that is there, or else the last
    /// one before.
    Segment {
        /// [`SegmentRow::segment`], or what `SegmentOf` tells.
        segment: u32,
        /// The event; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// The segment that a block lies in.
    SegmentOf {
        /// Index into the block table.
        block: u32,
    },
    /// A flame graph's numbers.
    Flame {
        /// Which graph.
        flame: FlameSpec,
    },
    /// The nodes between two places that are at least a share of what is between them wide, for
    /// their names.
    FlameBoxes {
        /// Which graph.
        flame: FlameSpec,
        /// Left edge in the graph's units.
        x0: f64,
        /// Right edge.
        x1: f64,
        /// The least width.
        least: f64,
    },
    /// A node, by its index in the graph.
    FlameNode {
        /// Which graph.
        flame: FlameSpec,
        /// The node: a strip's block.
        node: u32,
    },
    /// What a frame holds at the peak.
    Frame {
        /// The function.
        name: String,
        /// The file.
        file: String,
        /// The line.
        line: u32,
    },
    /// What the comparison with another device needs.
    Side {
        /// The band at whose peaks they are compared.
        band: BandKind,
    },
    /// Allocator settings in words, and how the file was recorded.
    Settings {},
    /// What a plot shows, as an SVG document with its labels.
    Picture {
        /// What is drawn.
        layer: Layer,
        /// Along which axis.
        axis: AxisKind,
        /// Left edge in the layer's units.
        x0: f64,
        /// Right edge.
        x1: f64,
        /// Lower edge.
        y0: f64,
        /// Upper edge.
        y1: f64,
        /// CSS pixels of the plot.
        width: u32,
        /// The same.
        height: u32,
        /// On a dark ground.
        dark: bool,
    },
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum At {
    /// After this event; -1 is before the window. Beyond the trace is its end.
    Event {
        /// Its index.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// What is shown at a place on an axis.
    Slot {
        /// Which axis.
        axis: AxisKind,
        /// Where.
        slot: f64,
    },
}

/// Which events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EventFilter {
    /// Names of actions: `alloc`; empty for all.
    pub actions: Vec<String>,
    /// As in [`Query::Search`]; empty for all.
    pub text: String,
}

/// Which blocks, in which order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockTable {
    /// As in [`Query::Search`]; empty for all.
    pub text: String,
    /// Only of this category; empty for all.
    pub category: String,
    /// Only what is live after this event (-1: before the window).
    #[cfg_attr(test, ts(type = "number | null"))]
    pub live_at: Option<i64>,
    /// Only what is below this node of a flame graph.
    pub node: Option<(FlameSpec, u32)>,
    /// The column.
    pub sort: BlockSort,
    /// Largest, or last, first.
    pub descending: bool,
}

/// A column of the block table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum BlockSort {
    /// Requested bytes.
    #[default]
    Size,
    /// Bytes carved out for it.
    BlockSize,
    /// By name.
    Category,
    /// The event of its alloc; from before the window first.
    Allocated,
    /// The event that completed its free; live at the end last.
    Freed,
    /// Microseconds (events without a clock) within the window.
    Lifetime,
    /// Bytes times lifetime.
    ByteSeconds,
    /// By address.
    Address,
    /// By stream.
    Stream,
    /// By call site.
    Site,
}

/// What is exported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Table {
    /// Blocks.
    Blocks {
        /// Which.
        table: BlockTable,
    },
    /// Events.
    Events {
        /// Which.
        filter: EventFilter,
    },
    /// Findings.
    Findings {},
    /// Segments at a moment.
    Segments {
        /// The event; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum TextForm {
    /// Comma-separated, a head line, RFC 4180.
    Csv,
    /// What the program prints with `--format json`, less its schema and path.
    Json,
}

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ExportFormat {
    /// Folded stacks, one per line.
    Folded {
        /// What a block counts for.
        weight: FlameWeight,
        /// The event after which `Cursor` counts; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// A profile for speedscope.
    Speedscope {
        /// What a block counts for.
        weight: FlameWeight,
        /// The event after which `Cursor` counts; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// A trace for the Perfetto UI.
    Perfetto {},
}

/// What is looked for along the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Looked {
    /// A match of a search.
    Search {
        /// As in [`Query::Search`].
        text: String,
    },
    /// A block with the same call stack.
    Stack {
        /// As this one, by its index.
        block: u32,
    },
}

/// What the coordinator is asked of several ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunQuery {
    /// Forget all cards.
    Clear {},
    /// A rank's card has come, or has changed. The answer is an `Overview` in the order asked for
    /// last.
    Card {
        /// The page's number for the row.
        key: u32,
        /// The folder that its file is in, as planned.
        group: String,
        /// The card.
        card: Box<RankCard>,
    },
    /// The rows in another order.
    Sort {
        /// By what.
        sort: RankSort,
        /// The largest first.
        descending: bool,
    },
}

/// What the rows of the overview are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum RankSort {
    /// Folder, then rank.
    #[default]
    Rank,
    /// Peak of requested bytes.
    Peak,
    /// Peak of reserved bytes.
    Reserved,
    /// At the end.
    End,
    /// Findings and OOMs.
    Findings,
}
