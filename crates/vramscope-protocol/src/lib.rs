//! Messages between the page and its workers.
//!
//! The page's TypeScript types are generated from this crate (`cargo xtask types`) and committed in
//! `web/viewer/src/generated`. Every value that a person reads comes with its display text, so the
//! page formats no number.
//!
//! How values cross:
//! - bytes and absolute microseconds as decimal strings in `raw` (a JavaScript number does not hold
//!   every u64);
//! - addresses as `"0x.."`;
//! - positions along an axis as numbers in *slots* (see [`Axis`]), which are small and relative;
//! - large data as columns: a response names them, and they travel beside it as transferred buffers.

#[cfg(test)]
mod typescript;
pub mod views;

use serde::{Deserialize, Serialize};

pub use vramscope_render::{MERGED, NO_BLOCK, TILE_COLUMNS, TILE_ROWS};
pub use vramscope_report::Quantity;

/// Raised whenever a message changes its meaning; a page and a worker that differ refuse each other
/// in words.
pub const PROTOCOL: u32 = 1;

/// What an x axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum AxisKind {
    /// One slot per event: slot 0 is the state before the window, slot `i + 1` the state after event
    /// `i`.
    Event,
    /// One slot per microsecond of the running maximum of `time_us`, with a lead before the first
    /// event (the state before the window) and an equal tail after the last.
    Time,
    /// The weight of a flame graph. Only the page's canvas has it: no trace has such an axis.
    Weight,
}

/// An x axis in slots: `[0, extent)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Axis {
    /// What it counts.
    pub kind: AxisKind,
    /// The number of slots.
    pub extent: f64,
    /// The slot of event 0, or of the window's first microsecond: a label is `slot - origin`.
    pub origin: f64,
    /// Where the peak of `requested_bytes` is: the first slot at which it is reached.
    pub peak: f64,
}

/// One tile of the timeline: a cell of a global grid.
///
/// Columns are `2^kx` slots wide and there are [`TILE_COLUMNS`] of them; rows are `2^ky` bytes high
/// and there are [`TILE_ROWS`] of them. The tile covers slots `ix * TILE_COLUMNS * 2^kx ..` and
/// bytes `iy * TILE_ROWS * 2^ky ..`. What is lower than half a row is merged; strips are cut at the
/// tile's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TileKey {
    /// Log2 of the slots in a column.
    pub kx: u8,
    /// Log2 of the bytes in a row.
    pub ky: u8,
    /// The tile's place along x.
    pub ix: u32,
    /// The tile's place along y.
    pub iy: u32,
}

/// Which of a file's snapshots (an HTML page may hold several), and which of its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DeviceRef {
    /// Index into [`Loaded::parts`].
    pub part: u32,
    /// The device's ordinal in the file.
    pub device: u32,
}

/// What the page asks of a rank's worker. `id` comes back with the answer.
///
/// The name is the object's only key: a tag among the fields would bring a decoder that first keeps
/// all of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    /// Tiles of the timeline, most wanted first. A newer `Tiles` replaces those not yet answered:
    /// their answers never come.
    Tiles {
        /// Comes back with every tile.
        id: u32,
        /// Which trace.
        target: DeviceRef,
        /// Which axis.
        axis: AxisKind,
        /// What they show. A newer request replaces only those of the same kind of layer.
        layer: views::Layer,
        /// Which tiles.
        tiles: Vec<TileKey>,
    },
    /// What lies under the pointer, exactly. A newer `Pick` replaces one not yet answered.
    Pick {
        /// Comes back.
        id: u32,
        /// Which trace.
        target: DeviceRef,
        /// Which axis.
        axis: AxisKind,
        /// The scale that is on screen: a column of `2^kx` slots ...
        kx: u8,
        /// ... and rows of `2^ky` bytes, so that the answer is what was drawn.
        ky: u8,
        /// The slot under the pointer.
        slot: f64,
        /// The height under the pointer in bytes.
        bytes: f64,
    },
    /// Everything about a block, by its index in the device's block table.
    Block {
        /// Comes back.
        id: u32,
        /// Which trace.
        target: DeviceRef,
        /// Index into the block table.
        block: u32,
    },
    /// The block that a link or a saved state names: `<device>:<address>@<event|pre>`.
    Find {
        /// Comes back.
        id: u32,
        /// Index into [`Loaded::parts`].
        part: u32,
        /// `0:0x7f5a00000000@1234`.
        reference: String,
    },
    /// A range on one axis as a range on the other, so that changing the axis keeps what is in
    /// view.
    MapRange {
        /// Comes back.
        id: u32,
        /// Which trace.
        target: DeviceRef,
        /// The axis that `x0` and `x1` are on; the answer is on the other.
        from: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
    },
    /// What a view asks. Of some queries a newer one replaces one not yet answered
    /// ([`views::Query::spec`] says of which).
    View {
        /// Comes back.
        id: u32,
        /// Which trace.
        target: DeviceRef,
        /// The question.
        query: views::Query,
    },
}

/// What a rank's worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Response {
    /// Bytes read so far.
    Progress(Progress),
    /// The file is read; its numbers are final.
    Loaded(Loaded),
    /// The file could not be read, or a request not be answered.
    Failed(Failure),
    /// The file needs more memory than there is.
    TooLarge(TooLarge),
    /// A tile. Its columns `positions` (f32, 4 a strip: x0, y0, x1, y1 in the tile's columns and
    /// rows), `colors` (u32, a strip) and `blocks` (u32, a strip: the block, or with [`MERGED`]
    /// set the largest of several) travel beside it.
    Tile {
        /// The request's.
        id: u32,
        /// Which trace.
        target: DeviceRef,
        /// Which axis.
        axis: AxisKind,
        /// Which tile.
        key: TileKey,
        /// How many strips.
        strips: u32,
    },
    /// What a `Pick` found: null over empty ground.
    Picked {
        /// The request's.
        id: u32,
        /// The hover text.
        hit: Option<Hit>,
    },
    /// What a `Block` or a `Find` asked for: null when there is no such block.
    Block {
        /// The request's.
        id: u32,
        /// The block.
        detail: Option<BlockDetail>,
    },
    /// The answer to a `MapRange`.
    Range {
        /// The request's.
        id: u32,
        /// The axis that the range is on.
        axis: AxisKind,
        /// Left edge in slots.
        x0: f64,
        /// Right edge in slots.
        x1: f64,
    },
    /// The answer to a `View`.
    View {
        /// The request's.
        id: u32,
        /// The answer.
        answer: views::Answer,
    },
}

/// How far a load has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Between 0 and 1.
    pub fraction: f64,
    /// `12.3 of 45.0 MiB`.
    pub text: String,
    /// The curve of what has been read of a large file; null for others.
    pub provisional: Option<Provisional>,
}

/// The curve so far. No number is taken from it: what was live before the window is known only at
/// the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Provisional {
    /// As a filled SVG path in a box of 1000 by 100, y down.
    pub path: String,
    /// `1,204,000 events so far`.
    pub text: String,
}

/// Why something did not work, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The request that failed; null when it is the load.
    pub id: Option<u32>,
    /// What happened, where, and what was expected: one line.
    pub message: String,
    /// What the reader can do, if anything.
    pub hint: Option<String>,
}

/// A file that needs more memory than there is, and what can be opened of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TooLarge {
    /// That it does.
    pub failure: Failure,
    /// The parts that there are to choose from; null where none is small enough.
    pub choice: Option<PartChoice>,
}

/// Part of a file's events, to be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PartChoice {
    /// The curve of all events.
    pub curve: Provisional,
    /// The first event of each of the curve's columns, which are equally wide; then how many events
    /// there are.
    pub edges: Vec<u32>,
    /// How many events there are.
    pub events: Quantity,
    /// The first of the events around the curve's top that can be opened together.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// `About 1,200,000 events can be opened at once.`
    pub text: String,
}

/// A file that has been read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The snapshots in it: one, but for HTML pages.
    pub parts: Vec<Part>,
}

/// One snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Its name inside the file; empty when the file is the snapshot.
    pub name: String,
    /// Devices with events or segments.
    pub devices: Vec<DeviceSummary>,
    /// The device to show first: the one with the most events, then segments.
    pub default_device: u32,
    /// Peak of `requested_bytes` of that device.
    pub peak: Option<Quantity>,
    /// What was odd about the file, most severe first.
    pub warnings: Vec<WarningRow>,
    /// Starts and ends of annotated ranges.
    pub annotations: u32,
}

/// One device of a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DeviceSummary {
    /// The ordinal.
    pub device: u32,
    /// `device 0`.
    pub label: String,
    /// Events in its trace.
    pub events: Quantity,
    /// Blocks that the timeline stacks.
    pub blocks: Quantity,
    /// Peak of `requested_bytes`.
    pub peak: Quantity,
    /// The event after which it is reached; `-1` when that is the state before the window.
    pub peak_event: Quantity,
    /// `peak 42.48 GiB at #16,465`, for the header.
    pub peak_text: String,
    /// Peak of `reserved_bytes`.
    pub reserved_peak: Quantity,
    /// Memory live before the window.
    pub start: Quantity,
    /// Memory live after the last event.
    pub end: Quantity,
    /// The axes that this trace has: always events, and time when it has a clock.
    pub axes: Vec<Axis>,
    /// Why there is no history to show, when there is none.
    pub note: Option<String>,
}

/// A kind of oddity, and how often it was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct WarningRow {
    /// A stable name: `lost_free`.
    pub code: String,
    /// In words, with the place of the first.
    pub message: String,
    /// How often.
    pub count: u32,
}

/// What is under the pointer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The block; of a merged strip the largest.
    pub block: u32,
    /// The block's reference, as in [`BlockDetail::reference`].
    pub reference: String,
    /// `329.2 MiB`, or `1,204 small blocks, 3.10 MiB`.
    pub title: String,
    /// The exact bytes.
    pub bytes: Quantity,
    /// The innermost frame that is the user's own: `forward model.py:212`.
    pub site: String,
    /// Further lines: lifetime, or a merged strip's largest members.
    pub lines: Vec<String>,
    /// How many blocks the strip stands for.
    pub count: u32,
    /// The color word of the strip.
    pub color: u32,
}

/// Everything about a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockDetail {
    /// Index into the device's block table.
    pub block: u32,
    /// The stable name: `<device>:<address>@<event|pre>`.
    pub reference: String,
    /// The device it is on.
    pub device: u32,
    /// The event of its alloc, or from which it counts; -1 is before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// Bytes requested.
    pub bytes: Quantity,
    /// `0x7600_2a00_0000_3`.
    pub address: String,
    /// What is known of it, in reading order.
    pub rows: Vec<DetailRow>,
    /// Its call stack, innermost first.
    pub stack: StackDetail,
    /// The whole as text, for the clipboard.
    pub copy: String,
    /// The color word that it is drawn with.
    pub color: u32,
    /// Where it begins and ends on each axis of its trace, in slots.
    pub spans: Vec<Span>,
}

/// Where a block lives on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Which axis.
    pub kind: AxisKind,
    /// First slot.
    pub x0: f64,
    /// One past its last slot.
    pub x1: f64,
}

/// One line of a details pane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DetailRow {
    /// A stable name: `alloc_event`.
    pub key: String,
    /// `allocated`.
    pub label: String,
    /// `#3,702  +1.204 s`.
    pub text: String,
    /// The exact integer behind it, as digits, when there is one.
    pub raw: Option<String>,
}

/// A call stack for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StackDetail {
    /// Innermost first.
    pub frames: Vec<FrameRow>,
    /// What the reader must know of it: that it is the stack of the free, or why there is none.
    pub note: Option<String>,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FrameRow {
    /// Function.
    pub name: String,
    /// File as recorded.
    pub file: String,
    /// Line; 0 when unknown.
    pub line: u32,
    /// `model.py:212`.
    pub place: String,
    /// True for PyTorch's own frames, Python's library and C++: dimmed and folded.
    pub framework: bool,
}

/// What the page asks of the coordinator, which sees all files of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunRequest {
    /// Put the files of a drop in order and tell their ranks.
    Plan {
        /// Comes back.
        id: u32,
        /// The files, in any order.
        files: Vec<FileEntry>,
    },
    /// What the overview asks; the answer is an `Overview`.
    View {
        /// Comes back.
        id: u32,
        /// The question.
        query: views::RunQuery,
    },
    /// Two recordings beside each other; the answer is `Compared`.
    Compare {
        /// Comes back.
        id: u32,
        /// The question.
        query: views::CompareQuery,
    },
}

/// A file as the page knows it before reading it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    /// Path within the drop: `iteration_10/rank3_memory_snapshot.pickle`.
    pub path: String,
    /// Its size.
    pub bytes: f64,
}

/// What the coordinator says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunResponse {
    /// The rows, in the order in which they are shown.
    Planned {
        /// The request's.
        id: u32,
        /// What the run is called: the common folder, or the file.
        title: String,
        /// `8 ranks`, `3 files`.
        count_text: String,
        /// One a file.
        rows: Vec<PlannedRow>,
    },
    /// The run as it stands.
    Overview {
        /// The request's.
        id: u32,
        /// The ranks beside each other.
        overview: views::Overview,
    },
    /// Two recordings beside each other.
    Compared {
        /// The request's.
        id: u32,
        /// What was asked of them.
        answer: views::CompareAnswer,
    },
}

/// A file's place in the list of ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PlannedRow {
    /// Index into the request's `files`.
    pub file: u32,
    /// The rank that the path names; null when it names none.
    pub rank: Option<u32>,
    /// What stands in the row: the rank's number, or the file's name.
    pub label: String,
    /// The folder that it belongs to: `iteration_10`; empty at the top.
    pub group: String,
    /// Its size in words.
    pub size: String,
}
