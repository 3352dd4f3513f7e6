//! The minimap and the lanes of annotated ranges.

use serde::{Deserialize, Serialize};

/// The curve of the whole window along an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Minimap {
    /// Requested bytes as a filled SVG path in a box of [`MINIMAP`], y down.
    pub requested: String,
    /// Reserved bytes as a line in the same box.
    pub reserved: String,
    /// The number of private pools. If it is not zero, the bands include a line for pools.
    pub pools: u32,
    /// Marks by slot: the first and the last OOMs, findings, and separate peaks (the highest peak
    /// first).
    pub marks: Vec<Mark>,
}

/// Width and height of the box of [`Minimap`]'s paths.
pub const MINIMAP: [u32; 2] = [1000, 100];

/// The kind of a mark on the minimap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum MarkKind {
    /// An out-of-memory event.
    Oom,
    /// A finding.
    Finding,
    /// A separate peak of requested bytes.
    Peak,
}

/// A mark on the minimap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The kind.
    pub kind: MarkKind,
    /// The slot.
    pub slot: f64,
    /// The event.
    #[cfg_attr(test, ts(type = "number"))]
    pub event: i64,
    /// The mark in words.
    pub text: String,
    /// The finding's id; empty for other kinds.
    pub id: String,
}

/// Annotated ranges in view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Tracks {
    /// The number of lanes in the file.
    pub lanes: u32,
    /// Left edge of the query in slots.
    pub x0: f64,
    /// Right edge of the query in slots.
    pub x1: f64,
    /// The number of columns between the edges.
    pub columns: u32,
    /// The items by lane, then by position.
    pub items: Vec<TrackItem>,
}

/// An annotated range, or several ranges that are too narrow for a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TrackItem {
    /// The lane, from the top.
    pub lane: u32,
    /// Left edge in slots.
    pub x0: f64,
    /// Right edge in slots.
    pub x1: f64,
    /// The range's name, or `12 ranges`.
    pub text: String,
    /// The tooltip: name and duration.
    pub title: String,
    /// The color word, derived from the name. Gray for several ranges with different names.
    pub color: u32,
    /// The share of the item that its ranges cover, from 0 to 1. 1 for a single range.
    pub density: f64,
}

/// Steps and their phases in view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Phases {
    /// The kind of items in words: `steps`, `requests`, `passes` or, without them, `phases`.
    pub label: String,
    /// Left edge of the query in slots.
    pub x0: f64,
    /// Right edge of the query in slots.
    pub x1: f64,
    /// The number of columns between the edges.
    pub columns: u32,
    /// The items by position; empty if nothing shows steps or phases.
    pub items: Vec<PhaseItem>,
    /// The steps by position, several of them in one item where they are narrow; empty if nothing
    /// shows steps.
    pub steps: Vec<StepItem>,
}

/// A step, or several narrow steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StepItem {
    /// The last slot of the state before its first event.
    pub x0: f64,
    /// The last slot of the state after its last event.
    pub x1: f64,
    /// The name where it fits: `step 3`.
    pub name: String,
    /// The number of the first step: `3`.
    pub number: String,
    /// True for every second item, whose ground in the plot differs from that of its neighbors.
    pub shaded: bool,
    /// The tooltip: steps, events and peak.
    pub title: String,
}

/// A phase of a step, or several neighbors merged in one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PhaseItem {
    /// The last slot of the state before its first event.
    pub x0: f64,
    /// The last slot of the state after its last event.
    pub x1: f64,
    /// The phase: `forward`, `backward`, `optimizer` or `other`. Empty for several phases, and if
    /// only the step is known.
    pub phase: String,
    /// The number of the step that begins in the item, or of the last of several: `3`. Empty if
    /// none does.
    pub step: String,
    /// The tooltip: step, phase, events and peak.
    pub title: String,
}
