//! Messages about loading a file.

use crate::messages::{Axis, AxisBreak, Quantity};
use serde::{Deserialize, Serialize};
use vramscope_report::summary::ErrorKind;

/// The progress of loading a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The fraction that is read, from 0 to 1.
    pub fraction: f64,
    /// The progress in words: `12.3 of 45.0 MiB`.
    pub text: String,
    /// The curve of the events read so far; null for small files.
    pub provisional: Option<Provisional>,
}

/// The curve of memory over the events read so far. It has no numbers, because memory from before
/// the window is known only at the end of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Provisional {
    /// The curve as a filled SVG path in a box of 1000 by 100, y down.
    pub path: String,
    /// The number of events in words: `1,204,000 events so far`.
    pub text: String,
}

/// An error in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The request that failed; null if loading failed.
    pub id: Option<u32>,
    /// One line: what failed, where, and what was expected.
    pub message: String,
    /// A remedy; null if there is none.
    pub hint: Option<String>,
    /// What the file is. Absent where that is unknown, and for a request that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub file: Option<ErrorKind>,
}

/// A file that needs more memory than is available, and the part that can be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TooLarge {
    /// The error.
    pub failure: Failure,
    /// The choice of a part; null if no part is small enough.
    pub choice: Option<PartChoice>,
}

/// The choice of a range of a file's events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PartChoice {
    /// The curve of all events.
    pub curve: Provisional,
    /// The first event of each column of the curve, then the number of events. Columns are equally
    /// wide.
    pub edges: Vec<u32>,
    /// The number of events.
    pub events: Quantity,
    /// The first event of the suggested range, which contains the curve's peak and can be opened.
    pub first: u32,
    /// The last event of the suggested range.
    pub last: u32,
    /// The limit in words: `About 1,200,000 events can be opened at once.`
    pub text: String,
}

/// A loaded file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    /// The worker's [`PROTOCOL`](crate::messages::PROTOCOL).
    pub protocol: u32,
    /// The file's snapshots. An HTML page may contain several, all other files contain one.
    pub parts: Vec<Part>,
}

/// One snapshot of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The snapshot's name inside the file; empty if the file is the snapshot.
    pub name: String,
    /// Devices with events or segments.
    pub devices: Vec<DeviceSummary>,
    /// The device to show first: one that ran out of memory, then the one with the highest peak.
    pub default_device: u32,
    /// Peak of `requested_bytes` on the default device.
    pub peak: Option<Quantity>,
    /// Warnings about the file and its devices.
    pub warnings: Vec<WarningRow>,
    /// The number of starts and ends of annotated ranges.
    pub annotations: u32,
}

/// One device of a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DeviceSummary {
    /// The device's ordinal.
    pub device: u32,
    /// The device's name: `device 0`.
    pub label: String,
    /// The number of events in the trace.
    pub events: Quantity,
    /// The number of blocks on the timeline.
    pub blocks: Quantity,
    /// Peak of `requested_bytes`.
    pub peak: Quantity,
    /// The event after which the peak is reached; -1 is the state before the window.
    pub peak_event: Quantity,
    /// The peak in words, for the header: `peak 42.48 GiB at #16,465`.
    pub peak_text: String,
    /// Peak of `reserved_bytes`.
    pub reserved_peak: Quantity,
    /// Whether reserved bytes are so much higher than the stack that they have a strip of their
    /// own.
    pub reserved_apart: bool,
    /// Requested bytes before the window.
    pub start: Quantity,
    /// Requested bytes after the last event.
    pub end: Quantity,
    /// The axes of the trace: events, and time if it has a clock.
    pub axes: Vec<Axis>,
    /// The parts of the time axis that take less room.
    pub breaks: Vec<AxisBreak>,
    /// When the last event was recorded, in milliseconds since 1970; null without a clock.
    pub until: Option<f64>,
    /// Why there is no history; null if there is one.
    pub note: Option<String>,
}

/// A kind of warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct WarningRow {
    /// The stable name of the kind: `lost_free`.
    pub code: String,
    /// The warning in words, with the place of its first occurrence.
    pub message: String,
    /// The number of occurrences.
    pub count: u32,
}
