//! Queries of the views (tables, states, flame graphs, findings) and their answers.
//!
//! A [`Query`] is about one device. Its [`Answer`] mostly has the same variant name.

mod answers;
mod changes;
mod code;
mod compare;
mod fleet;
mod groups;
mod holders;
mod layers;
mod legend;
mod levers;
mod map;
mod matrix;
mod minimap;
mod modules;
mod peak;
mod pinned;
mod plots;
mod ranks;
mod spec;
mod steps;
mod summary;
mod tables;
mod what_if;

pub use answers::*;
pub use changes::*;
pub use code::*;
pub use compare::*;
pub use fleet::*;
pub use groups::*;
pub use holders::*;
pub use layers::*;
pub use legend::*;
pub use levers::*;
pub use map::*;
pub use matrix::*;
pub use minimap::*;
pub use modules::*;
pub use peak::*;
pub use pinned::*;
pub use plots::*;
pub use ranks::*;
pub use spec::{QueryClass, QuerySpec};
pub use steps::*;
pub use summary::*;
pub use tables::*;
pub use what_if::*;

use super::AxisKind;
use serde::{Deserialize, Serialize};
use vramscope_report::peak::BandKind;

/// A query about a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Query {
    /// The rank's card for the overview.
    Card {},
    /// What `vramscope diagnose` says of the device.
    Summary {},
    /// The summary with what the model of the allocator says of findings. It takes dozens of
    /// replays.
    SimulatedSummary {},
    /// The memory of the window by category, and the lines that hold most at the moment of the
    /// summary.
    SummaryPlot {},
    /// What can be changed, and what the run needs then. It takes dozens of replays.
    Levers {
        /// What PyTorch can have on the chosen device, in bytes; null for what the file shows.
        #[cfg_attr(test, ts(type = "number | null"))]
        bytes: Option<f64>,
        /// Whether all levers are listed, and what is none.
        all: bool,
    },
    /// What the run needs with settings of the allocator. It takes dozens of replays.
    LeverSettings {},
    /// The curve of the whole window along an axis, with marks.
    Minimap {
        /// The axis.
        axis: AxisKind,
    },
    /// Annotated ranges between two slots. Ranges in one column are merged into one item.
    Tracks {
        /// The axis.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
        /// The number of columns.
        columns: u32,
    },
    /// Steps and their phases between two slots. Neighbors in one column are merged into one item.
    Phases {
        /// The axis.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
        /// The number of columns.
        columns: u32,
    },
    /// All steps over each other on one axis.
    FoldedSteps {
        /// The axis of the steps.
        axis: AxisKind,
    },
    /// The colors of the plots with their bytes.
    Legend {
        /// What colors show.
        color: ColorBy,
        /// The event after which the bytes are counted, -1 for the state before the window; null
        /// for the peak of requested bytes.
        #[cfg_attr(test, ts(type = "number | null"))]
        event: Option<i64>,
        /// The axis.
        axis: AxisKind,
        /// Left edge of the view in slots. Only colors of blocks in view are listed.
        x0: f64,
        /// Right edge of the view in slots.
        x1: f64,
    },
    /// Reserved bytes between two slots, for a strip of its own.
    ReservedLine {
        /// The axis.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
        /// The number of columns.
        columns: u32,
    },
    /// Bytes of the traced step that no operation uses again, between two slots.
    DeadLine {
        /// The axis.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
        /// The number of columns.
        columns: u32,
    },
    /// The largest free piece of each pool, stream and size class between two slots, the one with
    /// the highest maximum first, at most four.
    FreeLines {
        /// The axis.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
        /// The number of columns.
        columns: u32,
        /// The event after which [`CounterLine::at`] holds.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// Where the edges of columns are in time, in steps and in events, for the curves of other
    /// ranks. The page passes the answer on.
    Moments {
        /// The axis.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
        /// The number of columns.
        columns: u32,
        /// The event of the time cursor, -1 before the window; null without a cursor.
        #[cfg_attr(test, ts(type = "number | null"))]
        event: Option<i64>,
    },
    /// Requested bytes at the moments of another rank.
    PinnedLine {
        /// The other rank's answer to `Moments`.
        moments: Box<Moments>,
        /// Bytes at the full height.
        top: f64,
    },
    /// What PyTorch could have on the device, and the allocations that failed.
    Limit {
        /// The axis.
        axis: AxisKind,
    },
    /// The state at the peak of requested bytes. Unlike `StateAt`, it is not canceled by later
    /// queries.
    Peak {},
    /// A separate peak of requested bytes, what happens around it, and what is live at it.
    PeakLens {
        /// Index of the peak, the highest first. After the last, the last is meant.
        peak: u32,
        /// Width of the treemap in CSS pixels.
        width: f64,
        /// Height of the treemap in CSS pixels.
        height: f64,
    },
    /// The state after an event.
    StateAt {
        /// The event's index; -1 is the state before the window. Events beyond the trace mean its
        /// end.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// The event at a slot of an axis.
    EventAt {
        /// The axis.
        axis: AxisKind,
        /// The slot. Slots beyond the axis mean its nearest end.
        slot: f64,
    },
    /// The positions and labels of events that the user marked.
    Markers {
        /// The events; -1 is the state before the window. Events that do not exist have no answer.
        #[cfg_attr(test, ts(type = "number[]"))]
        events: Vec<i64>,
    },
    /// Allocated, freed and kept memory between two slots.
    Range(MarkedRange),
    /// What came, went and stayed from the state after one event to that after another.
    Changes {
        /// The event of state A; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        from: i64,
        /// The event of state B, which may be before A.
        #[cfg_attr(test, ts(type = "number"))]
        to: i64,
    },
    /// A page of the events.
    Events {
        /// The filter.
        filter: EventFilter,
        /// Index of the first row.
        from: u32,
        /// The maximum number of rows.
        count: u32,
        /// An event to locate. The answer's `at` is the last matching row at or before it.
        near: Option<u32>,
    },
    /// A page of the blocks.
    Blocks {
        /// The filter and the order.
        table: BlockTable,
        /// Index of the first row.
        from: u32,
        /// The maximum number of rows.
        count: u32,
        /// A block to locate. The answer's `at` is its row.
        near: Option<u32>,
    },
    /// A whole table as text.
    Export {
        /// The table.
        what: Table,
        /// The format.
        form: TextForm,
    },
    /// The block with a reference, or the finding with an id, as the program prints it in JSON.
    Record {
        /// The reference `<device>:<address>@<event|pre>`, or the finding's id.
        id: String,
    },
    /// The device in the format of another tool, as `vramscope export` writes it.
    Convert {
        /// The format.
        format: ExportFormat,
    },
    /// What `vramscope diagnose --format markdown` prints of the device.
    Markdown {},
    /// The report of the device as HTML that needs no script.
    Report {
        /// The name of the device among others.
        name: String,
    },
    /// The next block that matches a search, by size, or that has a block's call stack, by the
    /// event of its alloc.
    Next {
        /// The search.
        of: Looked,
        /// The event to start from, for a call stack; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
        /// The block to start from. For a call stack, it tells blocks apart that enter with that
        /// event, such as blocks from before the window.
        block: Option<u32>,
        /// True to search towards the start.
        backwards: bool,
    },
    /// The tooltip of a block.
    Hit {
        /// Index into the block table.
        block: u32,
    },
    /// Labels for the bands of a grouped stack that have room for text.
    GroupLabels {
        /// What the blocks are grouped by.
        group: GroupBy,
        /// The axis.
        axis: AxisKind,
        /// Left and right edge of the view in slots.
        x: [f64; 2],
        /// Lower and upper edge of the view in bytes.
        y: [f64; 2],
        /// Width and height of the view in CSS pixels.
        size: [f64; 2],
        /// Width of a letter and height of a line in CSS pixels.
        letter: [f64; 2],
        /// The search: only bands with hits have labels, with the bytes of these.
        search: String,
    },
    /// The terms of a search for the group of a block: its call site, or in a stack that is grouped
    /// by line or module its group there.
    GroupTerms {
        /// Index into the block table.
        block: u32,
        /// What the blocks are grouped by.
        group: GroupBy,
    },
    /// The range of slots with the steps, and parts of steps, that another rank shows.
    StepRange {
        /// The other rank's answer to `Moments`, of one column.
        moments: Box<Moments>,
        /// The axis.
        axis: AxisKind,
    },
    /// Where a block lies in a view of the timeline, however low it is.
    BlockRun {
        /// Index into the block table.
        block: u32,
        /// What the blocks are grouped by.
        group: GroupBy,
        /// The axis.
        axis: AxisKind,
        /// Left and right edge of the view in slots.
        x: [f64; 2],
        /// Width of the view in CSS pixels.
        width: f64,
        /// The slot near which its place is wanted.
        slot: f64,
    },
    /// Labels for blocks with room for text: the call site's function, and the size.
    Names {
        /// Indices into the block table.
        blocks: Vec<u32>,
    },
    /// The number, bytes and call sites of blocks that match a search.
    Search {
        /// Words of functions, files, metadata and annotations, an address `0x...`, a size
        /// `>512MiB`, `live@peak`, or terms such as `site:gpt.py:43` and `category:activation`.
        text: String,
    },
    /// What the blocks that match a search hold together.
    Group {
        /// The search.
        text: String,
        /// The event of the time cursor, -1 before the window; null without a cursor.
        #[cfg_attr(test, ts(type = "number | null"))]
        event: Option<i64>,
    },
    /// The total height of the rows of the segments view, with a text.
    Segments {
        /// The rows.
        rows: SegmentSpec,
    },
    /// The rows between two heights; at most the upper 500.
    SegmentRows {
        /// The rows of the view.
        rows: SegmentSpec,
        /// The lower height in units.
        y0: f64,
        /// The upper height in units.
        y1: f64,
    },
    /// How much of the rows between two heights is in use after an event.
    SegmentUses {
        /// The rows of the view.
        rows: SegmentSpec,
        /// The lower height in units.
        y0: f64,
        /// The upper height in units.
        y1: f64,
        /// The event after which the state holds; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// One segment after an event. Of several segments in its row, it is the one reserved at that
    /// time, or else the last one before.
    Segment {
        /// [`SegmentRow::segment`], or the answer to `SegmentOf`.
        segment: u32,
        /// The event after which the state holds; -1 is the state before the window.
        #[cfg_attr(test, ts(type = "number"))]
        event: i64,
    },
    /// The segment that contains a block.
    SegmentOf {
        /// Index into the block table.
        block: u32,
    },
    /// The figures of the map of segments.
    Map {
        /// The event and the size.
        map: MapSpec,
    },
    /// The figures of a flame graph.
    Flame {
        /// The graph.
        flame: FlameSpec,
    },
    /// The nodes between two positions that are wide enough for a label.
    FlameBoxes {
        /// The graph.
        flame: FlameSpec,
        /// Left edge in the graph's units.
        x0: f64,
        /// Right edge in the same unit.
        x1: f64,
        /// The minimum width of a node, as a share of the distance between the edges.
        least: f64,
    },
    /// A node by its index in the graph.
    FlameNode {
        /// The graph.
        flame: FlameSpec,
        /// The node, which is the strip's block.
        node: u32,
    },
    /// A page of the table of the code.
    Code {
        /// The content and order.
        spec: CodeSpec,
        /// Index of the first row.
        from: u32,
        /// The maximum number of rows.
        count: u32,
    },
    /// Source files with their memory, and the lines of one.
    Source {
        /// The content.
        spec: SourceSpec,
    },
    /// A page of the table of modules.
    Modules {
        /// The content.
        spec: ModuleSpec,
        /// Index of the first row.
        from: u32,
        /// The maximum number of rows.
        count: u32,
    },
    /// What holds the memory, and what drops free.
    Holders {
        /// The event of the time cursor, -1 before the window; null without a cursor.
        #[cfg_attr(test, ts(type = "number | null"))]
        event: Option<i64>,
    },
    /// What calls a line, and what it calls.
    Sandwich {
        /// The blocks.
        spec: CodeSpec,
        /// [`CodeRow::frame`].
        frame: u32,
    },
    /// The memory of a frame at the peak.
    Frame {
        /// The function.
        name: String,
        /// The file.
        file: String,
        /// The line.
        line: u32,
    },
    /// The device as one side of a comparison.
    Side {
        /// The band at whose peaks the live sets are compared.
        band: BandKind,
    },
    /// Allocator settings with explanations, and how the file was recorded.
    Settings {},
    /// What the recorded reserved peak was used for.
    Reserved {},
    /// One scenario.
    Scenario {
        /// The question.
        text: String,
    },
    /// The simulated reserved bytes of a scenario between two slots.
    SimulatedCurve {
        /// The question.
        text: String,
        /// The axis.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
        /// The number of columns.
        columns: u32,
    },
    /// A plot as an SVG document with labels.
    Picture {
        /// The content.
        layer: Layer,
        /// The x axis.
        axis: AxisKind,
        /// Left edge in the layer's units.
        x0: f64,
        /// Right edge in the same unit.
        x1: f64,
        /// Lower edge in the layer's units.
        y0: f64,
        /// Upper edge in the layer's units.
        y1: f64,
        /// Width of the plot in CSS pixels.
        width: u32,
        /// Height of the plot in CSS pixels.
        height: u32,
        /// True for a dark background.
        dark: bool,
        /// The question whose simulated reserved bytes are drawn over the timeline; null for none.
        simulated: Option<String>,
    },
}

/// The target of a search along the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Looked {
    /// Blocks that match a search.
    Search {
        /// The search, as in [`Query::Search`].
        text: String,
    },
    /// Blocks with a block's call stack.
    Stack {
        /// Index into the block table.
        block: u32,
    },
}
