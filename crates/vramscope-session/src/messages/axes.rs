//! Breaks of axes, and devices of a file.

use serde::{Deserialize, Serialize};

/// A part of the time axis that takes less room than its time: start-up, before a hundredth of the
/// peak is in use, or a gap without events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct AxisBreak {
    /// The first slot.
    pub x0: f64,
    /// The first slot after it.
    pub x1: f64,
    /// Its time in microseconds.
    pub time: f64,
    /// The time in words: `460 ms`.
    pub text: String,
    /// The tooltip: `460 ms of start-up, before 1 % of the peak is in use`.
    pub title: String,
}

/// A device of one of a file's snapshots. An HTML page may contain several snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DeviceRef {
    /// Index into [`Loaded::parts`](crate::messages::Loaded::parts).
    pub part: u32,
    /// The device's ordinal in the file.
    pub device: u32,
}
