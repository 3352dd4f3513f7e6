//! Answers to queries of the views: rows with display texts and exact values.

use super::{
    BlockPage, BlockRun, CategoryRow, CodePage, CounterLine, EventPage, FileCard, FlameBox,
    FlameInfo, FlameNode, FoldedSteps, GroupCard, GroupLabel, HolderTable, Legend, Limit, MapInfo,
    Minimap, ModulePage, Moments, NextBlock, Phases, PinnedLine, ReservedUse, Sandwich,
    ScenarioCard, SearchResult, SegmentRow, SegmentUses, SegmentsInfo, SimulatedCurve, SourcePage,
    Tracks,
};
use crate::messages::{DetailRow, FrameRow, Hit, Phrase, Quantity, Span, StackDetail};
use serde::{Deserialize, Serialize};
use vramscope_report::ProgramRecord;
use vramscope_report::findings::FindingRecord;

/// The answer to a [`Query`](super::Query).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Answer {
    /// The answer to `Card`.
    Card(Box<FileCard>),
    /// The answer to `Summary` and `SimulatedSummary`.
    #[serde(skip_deserializing)]
    Summary(Box<super::Summary>),
    /// The answer to `SummaryPlot`.
    SummaryPlot(Box<super::SummaryPlot>),
    /// The answer to `Levers`.
    Levers(Box<super::Levers>),
    /// The answer to `LeverSettings`.
    LeverSettings(Vec<super::LeverSetting>),
    /// The answer to `Minimap`.
    Minimap(Minimap),
    /// The answer to `Phases`.
    Phases(Phases),
    /// The answer to `FoldedSteps`.
    FoldedSteps(Box<FoldedSteps>),
    /// The answer to `Tracks`.
    Tracks(Tracks),
    /// The answer to `Legend`.
    Legend(Legend),
    /// The answer to `ReservedLine`.
    ReservedLine(Box<CounterLine>),
    /// The answer to `DeadLine`: null without a traced step.
    DeadLine(Option<Box<CounterLine>>),
    /// The answer to `FreeLines`.
    FreeLines(Vec<CounterLine>),
    /// The answer to `Moments`.
    Moments(Box<Moments>),
    /// The answer to `PinnedLine`.
    PinnedLine(Box<PinnedLine>),
    /// The answer to `Limit`.
    Limit(Box<Limit>),
    /// The answer to `PeakLens`.
    PeakLens(Box<super::PeakLens>),
    /// The answer to `StateAt` and `Peak`.
    StateAt(Box<StateAt>),
    /// The answer to `EventAt`: the event's index; -1 is the state before the window.
    EventAt(#[cfg_attr(test, ts(type = "number"))] i64),
    /// The answer to `Markers`, in the order of the events.
    Markers(Vec<Marker>),
    /// The answer to `Range`, `Segment` and `Frame`; null if it does not exist.
    Detail(Option<Box<DetailCard>>),
    /// The answer to `Changes`.
    Changes(Box<super::StateChanges>),
    /// The answer to `Events`.
    Events(EventPage),
    /// The answer to `Blocks`.
    Blocks(BlockPage),
    /// The answer to `Export`, `Convert`, `Report`, `Picture` and `Side`. The text of `Side` is for
    /// the coordinator.
    Text(#[serde(serialize_with = "vramscope_units::whole")] String),
    /// The answer to `Record`; null if the device has no such block or finding.
    Record(Option<ProgramRecord>),
    /// The answer to `Next`; null if there is no further block.
    Next(Option<Box<NextBlock>>),
    /// The answer to `Hit`; null if the block does not exist.
    Hit(Option<Box<Hit>>),
    /// The answer to `GroupLabels`, from the bottom up. Labels do not overlap.
    GroupLabels(Vec<GroupLabel>),
    /// The answer to `GroupTerms`; empty if the block does not exist.
    GroupTerms(Vec<String>),
    /// The answer to `StepRange`: left and right edge; null unless both ranks have steps.
    StepRange(Option<[f64; 2]>),
    /// The answer to `BlockRun`; null if the block is not live in the view.
    BlockRun(Option<BlockRun>),
    /// The answer to `Names`, in the order of the blocks: the possible labels of each block, from
    /// the longest to the shortest. Empty if the block does not exist.
    Names(Vec<Vec<String>>),
    /// The answer to `Search`; null if the text is empty or invalid.
    Search(Option<Box<SearchResult>>),
    /// The answer to `Group`; null if the text is empty or invalid.
    Group(Option<Box<GroupCard>>),
    /// The answer to `Segments`.
    Segments(SegmentsInfo),
    /// The answer to `SegmentRows`, from the top.
    SegmentRows(Vec<SegmentRow>),
    /// The answer to `SegmentUses`.
    SegmentUses(SegmentUses),
    /// The answer to `SegmentOf`; null if the segment is unknown.
    SegmentOf(Option<u32>),
    /// The answer to `Map`.
    Map(Box<MapInfo>),
    /// The answer to `Flame`.
    Flame(FlameInfo),
    /// The answer to `FlameBoxes`.
    FlameBoxes(Vec<FlameBox>),
    /// The answer to `FlameNode`; null if the node does not exist.
    FlameNode(Option<Box<FlameNode>>),
    /// The answer to `Code`.
    Code(CodePage),
    /// The answer to `Source`.
    Source(SourcePage),
    /// The answer to `Holders`.
    Holders(HolderTable),
    /// The answer to `Modules`.
    Modules(ModulePage),
    /// The answer to `Sandwich`; null if the frame does not exist.
    Sandwich(Option<Box<Sandwich>>),
    /// The answer to `Settings`.
    Settings(SettingsCard),
    /// The answer to `Reserved`; null where the model does not reproduce the recording.
    Reserved(Option<Box<ReservedUse>>),
    /// The answer to `Scenario`.
    Scenario(Box<ScenarioCard>),
    /// The answer to `SimulatedCurve`.
    SimulatedCurve(SimulatedCurve),
}

/// A finding on the page. The coordinator reads the record back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FindingRow {
    /// The record, without its proof.
    pub record: FindingRecord,
    /// The rest of its card.
    #[serde(skip_deserializing)]
    pub view: FindingView,
}

/// What the page shows of a finding, and does with it, beyond the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FindingView {
    /// The kind in words: `Growth`.
    pub label: String,
    /// The finding in one sentence, without its rank.
    pub headline: Vec<Phrase>,
    /// The step and phase in words: `step 3, backward`, or `repetition 3`. Empty if neither is
    /// known.
    pub place: String,
    /// The terms of a search that finds the blocks of the finding; empty if none does.
    pub terms: Vec<String>,
    /// The changes that were replayed for it and help, as `diagnose` prints them: `fix 1: ...`.
    pub fixes: Vec<String>,
    /// The frames of its largest call stack that are the program's, innermost first. Only the
    /// innermost ones.
    pub frames: Vec<FrameRow>,
    /// The range from the first to the last event on each axis; empty without events.
    pub spans: Vec<Span>,
    /// The reference of a block that shows the finding; null if there is none.
    pub reference: Option<String>,
}

/// The state after an event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StateAt {
    /// The event after which the state holds; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// Its slot on each axis, as a range of one slot.
    pub spans: Vec<Span>,
    /// The event in words: `#3,737  +1.204 s`.
    pub label: String,
    /// The event's action in words: `alloc 2.00 MiB`.
    pub action: String,
    /// The block that the event is about; null if there is none.
    pub block: Option<u32>,
    /// Requested, active, allocated and reserved bytes, rounding waste and cached free bytes, and
    /// private pools if there are any.
    pub bands: Vec<DetailRow>,
    /// The number of live blocks.
    pub blocks: Quantity,
    /// Live bytes by category, most bytes first.
    pub categories: Vec<CategoryRow>,
    /// The call stacks with most live bytes.
    pub stacks: Vec<StackShareRow>,
    /// The state in one sentence, for screen readers.
    pub spoken: String,
}

/// An event that the user marked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// The event's index; -1 is the state before the window.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// Its slot on each axis, as a range of one slot.
    pub spans: Vec<Span>,
    /// The event in words: `#3,737  +1.204 s`.
    pub label: String,
}

/// The memory of one call stack in a state or range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StackShareRow {
    /// The call site.
    pub site: String,
    /// The frame that distinguishes it from other rows of the site: `adam.py:183 _init_group`;
    /// empty if there is none.
    pub via: String,
    /// Bytes.
    pub bytes: Quantity,
    /// The number of blocks.
    pub blocks: Quantity,
    /// The shape that all of them have; empty if it is not known.
    pub shape: String,
    /// Share of the whole, from 0 to 1.
    pub share: f64,
    /// The color word.
    pub color: u32,
    /// Index of a block with this call stack.
    pub block: u32,
    /// A note, such as `all freed again`.
    pub note: String,
    /// The terms of a search that finds the blocks of this row.
    pub terms: Vec<String>,
}

/// An item other than a block in the details pane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DetailCard {
    /// The kind in words: `Segment`.
    pub kind: String,
    /// The title: `2.00 GiB`.
    pub title: Quantity,
    /// The properties in display order.
    pub rows: Vec<DetailRow>,
    /// The heading above `stacks`; empty without stacks.
    pub heading: String,
    /// The memory by call stack.
    pub stacks: Vec<StackShareRow>,
    /// The item's own call stack; null if it has none.
    pub stack: Option<StackDetail>,
    /// All of it as text, for the clipboard.
    #[serde(serialize_with = "vramscope_units::whole")]
    pub copy: String,
}

/// The recording of a file, and its allocator settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SettingsCard {
    /// The properties of the recording.
    pub provenance: Vec<DetailRow>,
    /// The allocator settings.
    pub settings: Vec<SettingRow>,
    /// A note if the file has no settings; else null.
    pub note: Option<String>,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SettingRow {
    /// The key: `expandable_segments`.
    pub key: String,
    /// The value: `true`.
    pub value: String,
    /// The effect of the setting, and its meaning for this run.
    pub text: String,
}
