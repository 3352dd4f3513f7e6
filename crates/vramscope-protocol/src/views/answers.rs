//! What is answered to the views: rows with their display text and exact values.

use super::{CategoryRow, RankCard};
use crate::{BlockDetail, DetailRow, Hit, Quantity, Span, StackDetail};
use serde::{Deserialize, Serialize};
use vramscope_analysis::{FindingKind, Severity};

/// The answer to a [`Query`](super::Query).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Answer {
    /// Of `Card`.
    Card(Box<RankCard>),
    /// Of `Findings`.
    Findings(Vec<FindingRow>),
    /// Of `Minimap`.
    Minimap(Minimap),
    /// Of `Tracks`.
    Tracks(Tracks),
    /// Of `StateAt` and `Peak`.
    StateAt(Box<StateAt>),
    /// Of `Markers`, in the order of the events.
    Markers(Vec<Marker>),
    /// Of `Range`, `Segment` and `Frame`: null when there is no such thing.
    Detail(Option<Box<DetailCard>>),
    /// Of `Events`.
    Events(EventPage),
    /// Of `Blocks`.
    Blocks(BlockPage),
    /// Of `Export`, `Picture`, and of `Side`, whose text is for the coordinator.
    Text(String),
    /// Of `Next`: null when there is none.
    Next(Option<Box<BlockDetail>>),
    /// Of `Hit`: null when there is no such block.
    Hit(Option<Box<Hit>>),
    /// Of `Names`, in the order of the blocks: what may stand in each, from the longest to the
    /// shortest. None where there is no such block.
    Names(Vec<Vec<String>>),
    /// Of `Search`: null when the text cannot be understood or is empty.
    Search(Option<SearchResult>),
    /// Of `Segments`.
    Segments(SegmentsInfo),
    /// Of `SegmentRows`, from the top.
    SegmentRows(Vec<SegmentRow>),
    /// Of `SegmentOf`: null when it lies in none that is known.
    SegmentOf(Option<u32>),
    /// Of `Flame`.
    Flame(FlameInfo),
    /// Of `FlameBoxes`.
    FlameBoxes(Vec<FlameBox>),
    /// Of `FlameNode`: null when there is no such node.
    FlameNode(Option<Box<FlameNode>>),
    /// Of `Settings`.
    Settings(SettingsCard),
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FindingRow {
    /// The same for the same file everywhere; as in `vramscope anomalies --format json`.
    pub id: String,
    /// The kind.
    pub kind: FindingKind,
    /// The kind in words: `Growth`.
    pub label: String,
    /// The severity.
    pub severity: Severity,
    /// The file's path.
    pub path: String,
    /// The device.
    pub device: u32,
    /// How much memory it is about.
    pub bytes: Quantity,
    /// A sentence or two.
    pub text: String,
    /// The event that shows it first; null when it has none.
    pub event: Option<u32>,
    /// `#3,702`; empty when it has none.
    pub at: String,
    /// From its first to past its last event, on each axis; empty when it has none.
    pub spans: Vec<Span>,
    /// A block that it is about: its reference.
    pub reference: Option<String>,
    /// The call stack it is about.
    pub stack: StackDetail,
}

/// The whole of a trace along an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Minimap {
    /// Requested bytes as a filled SVG path in a box of [`MINIMAP`], y down.
    pub requested: String,
    /// Reserved bytes as a line in the same box.
    pub reserved: String,
    /// How many private pools the device has: with any, their line is among those of the bands.
    pub pools: u32,
    /// What is marked, by slot: `oom`, `finding`, and the separate peaks (`peak`, the highest
    /// first).
    pub marks: Vec<Mark>,
}

/// Width and height of [`Minimap`]'s paths.
pub const MINIMAP: [u32; 2] = [1000, 100];

/// What a mark of the minimap stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum MarkKind {
    /// An out-of-memory event.
    Oom,
    /// A finding.
    Finding,
    /// A peak of requested bytes, separate from the others.
    Peak,
}

/// A mark on the minimap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// What is marked.
    pub kind: MarkKind,
    /// The slot.
    pub slot: f64,
    /// The event.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// In words.
    pub text: String,
    /// The finding's id; empty for others.
    pub id: String,
}

/// Annotated ranges in view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Tracks {
    /// How many lanes the file has.
    pub lanes: u32,
    /// Left edge in slots, as it was asked for.
    pub x0: f64,
    /// Right edge in slots, as it was asked for.
    pub x1: f64,
    /// How many are told apart between the two.
    pub columns: u32,
    /// By lane, then by place.
    pub items: Vec<TrackItem>,
}

/// A range, or several that are too near to each other to be told apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TrackItem {
    /// Which lane, from the top.
    pub lane: u32,
    /// Left edge in slots.
    pub x0: f64,
    /// Right edge in slots.
    pub x1: f64,
    /// Its name, or `12 ranges`.
    pub text: String,
    /// Name and duration.
    pub title: String,
    /// The color word, from the name.
    pub color: u32,
}

/// The state at a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StateAt {
    /// The event that it is after; -1 is before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// Where it is on each axis: its slot, and the one after it.
    pub spans: Vec<Span>,
    /// `#3,737  +1.204 s`.
    pub label: String,
    /// `alloc 2.00 MiB`.
    pub action: String,
    /// The block that the event is about, if any.
    pub block: Option<u32>,
    /// Requested, active, allocated and reserved bytes, rounding waste and cached-free; private
    /// pools where there are any.
    pub bands: Vec<DetailRow>,
    /// Live blocks.
    pub blocks: Quantity,
    /// By category, most first.
    pub categories: Vec<CategoryRow>,
    /// The call stacks that hold most.
    pub stacks: Vec<StackShareRow>,
    /// In one sentence, for a screen reader.
    pub spoken: String,
}

/// An event that somebody marked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// Its number; -1 is before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// Where it is on each axis: its slot, and the one after it.
    pub spans: Vec<Span>,
    /// `#3,737  +1.204 s`.
    pub label: String,
}

/// What one call stack holds or does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StackShareRow {
    /// The call site.
    pub site: String,
    /// `_init_group adam.py:183`: where it parts from other rows of that site; empty where none has
    /// it.
    pub via: String,
    /// Bytes.
    pub bytes: Quantity,
    /// Blocks.
    pub blocks: Quantity,
    /// The part of the whole, 0 to 1.
    pub share: f64,
    /// The color word.
    pub color: u32,
    /// A block of it.
    pub block: u32,
    /// What else is to be said: `all freed again`.
    pub note: String,
}

/// Something in the details pane that is no block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DetailCard {
    /// `Segment`.
    pub kind: String,
    /// `2.00 GiB`.
    pub title: Quantity,
    /// What is known of it.
    pub rows: Vec<DetailRow>,
    /// The heading above `stacks`; empty when there are none.
    pub heading: String,
    /// By call stack.
    pub stacks: Vec<StackShareRow>,
    /// Its own stack, if it has one.
    pub stack: Option<StackDetail>,
    /// The whole as text, for the clipboard.
    pub copy: String,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// How many match.
    pub total: u32,
    /// `2,431 of 6,866 events`.
    pub text: String,
    /// The first row's place among those that match.
    pub from: u32,
    /// The rows.
    pub rows: Vec<EventRow>,
    /// The row that was asked for with `near`.
    pub at: Option<u32>,
    /// All actions of this trace, with how often each occurs.
    pub actions: Vec<DetailRow>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// Its index.
    pub event: u32,
    /// `#3,702`.
    pub label: String,
    /// `+1.204 s`; empty without a clock.
    pub time: String,
    /// PyTorch's name of the action.
    pub action: String,
    /// Its size.
    pub bytes: Quantity,
    /// The address; empty where there is none.
    pub address: String,
    /// Requested bytes live after it.
    pub live: Quantity,
    /// The call site.
    pub site: String,
    /// The color word of its stack.
    pub color: u32,
    /// The block it is about.
    pub block: Option<u32>,
}

/// A page of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockPage {
    /// How many match.
    pub total: u32,
    /// `12 of 2,443 blocks, 1.20 GiB`.
    pub text: String,
    /// The first row's place among those that match.
    pub from: u32,
    /// The rows.
    pub rows: Vec<BlockLine>,
    /// The row that was asked for with `near`.
    pub at: Option<u32>,
}

/// A block in the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BlockLine {
    /// Index into the block table.
    pub block: u32,
    /// Its reference.
    pub reference: String,
    /// Requested bytes.
    pub bytes: Quantity,
    /// Bytes carved out for it.
    pub block_bytes: Quantity,
    /// What it is.
    pub category: String,
    /// `#3,702`, `before window`, or `not recorded`.
    pub allocated: String,
    /// `#3,709`, `live at end`, `pending`, or `before #3,709`, where the free was lost.
    pub freed: String,
    /// How long it lived: microseconds, or events where there is no clock.
    pub lifetime: Quantity,
    /// `0x7600_2a00_0000_3`.
    pub address: String,
    /// The stream's handle, a signed number; of the text only its end where it is long.
    pub stream: Quantity,
    /// The call site.
    pub site: String,
    /// The color word.
    pub color: u32,
}

/// What a search finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// Blocks.
    pub blocks: Quantity,
    /// Their bytes at the peak.
    pub bytes: Quantity,
    /// `112 blocks, 1.20 GiB of them at the peak`.
    pub text: String,
}

/// The rows of the segments view, all together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentsInfo {
    /// The height of all rows in units; 0 when there are none.
    pub units: f64,
    /// `45 segments in 40 rows, 2.10 GiB reserved at most`.
    pub text: String,
    /// The lower and the upper edge of the higher row in units; null when there is no such row.
    pub grown: Option<(f64, f64)>,
}

/// A row of the segments view: a segment, or some of one size that were at one place one after the
/// other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SegmentRow {
    /// Its first one's index among the device's segments, whatever the order of rows.
    pub segment: u32,
    /// Its lower edge in units.
    pub y0: f64,
    /// Its upper edge in units.
    pub y1: f64,
    /// `large`, `small` or `expandable`.
    pub label: String,
    /// The size of each.
    pub size: Quantity,
    /// `0x...`.
    pub address: String,
    /// How many, address, pool, stream and life in words.
    pub title: String,
}

/// A flame graph's numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameInfo {
    /// The sum of all.
    pub total: Quantity,
    /// The width of the x axis in the graph's units: the weight of what is shown, halved until it
    /// is below 2^40.
    pub extent: f64,
    /// Rows that the graph has.
    pub rows: u32,
    /// `requested bytes live at the peak, #3,737`.
    pub text: String,
    /// What the search finds, each stack counted once; null without a search.
    pub matched: Option<Quantity>,
    /// From the whole to the node that is the root: the breadcrumb.
    pub path: Vec<FlameStep>,
}

/// A step of a path through a flame graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameStep {
    /// The node's path: what [`FlameSpec::root`](super::FlameSpec::root) takes.
    pub path: String,
    /// `forward model.py:212`.
    pub text: String,
}

/// A node that is wide enough for its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameBox {
    /// The node.
    pub node: u32,
    /// Left edge in the graph's units.
    pub x0: f64,
    /// Right edge.
    pub x1: f64,
    /// Lower edge in units.
    pub y0: f64,
    /// Upper edge in units.
    pub y1: f64,
    /// `forward`.
    pub text: String,
    /// `model.py:212`: what tells one `forward` from another. Empty where it is in `text`, or
    /// nowhere.
    pub place: String,
}

/// A node of a flame graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FlameNode {
    /// The node.
    pub node: u32,
    /// What [`FlameSpec::root`](super::FlameSpec::root) takes: the place of the node among its
    /// siblings, from the root: `0.2.1`.
    pub path: String,
    /// The path of the node above; null for the root.
    pub parent: Option<String>,
    /// `forward model.py:212`.
    pub title: String,
    /// Its weight, with all below.
    pub total: Quantity,
    /// `12.3 % of all, 40 blocks; 1.2 MiB of its own`.
    pub text: String,
    /// The frame's file.
    pub file: String,
    /// Left edge in the graph's units.
    pub x0: f64,
    /// Right edge.
    pub x1: f64,
    /// The color word.
    pub color: u32,
    /// Neighbors that the arrow keys go to: the first child, the one before, the one behind.
    pub child: Option<u32>,
    /// See `child`.
    pub before: Option<u32>,
    /// See `child`.
    pub behind: Option<u32>,
    /// The node above; null for the root.
    pub above: Option<u32>,
}

/// How a file was recorded, and under which settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SettingsCard {
    /// What is known of the recording.
    pub provenance: Vec<DetailRow>,
    /// Settings: the key, its value, and what it means for this run.
    pub settings: Vec<SettingRow>,
    /// Said when there are no settings in the file.
    pub note: Option<String>,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SettingRow {
    /// `expandable_segments`.
    pub key: String,
    /// `true`.
    pub value: String,
    /// What it does, and what that means here.
    pub text: String,
}
