//! Curves of other ranks on the axis of the rank in the center.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// Where the edges of columns of the axis are in time, in steps and in events. Each list has the
/// edges of the columns, and the place of the time cursor at its end if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Moments {
    /// Left edge in slots.
    pub x0: f64,
    /// Right edge in slots.
    pub x1: f64,
    /// The number of columns; 0 where the trace has no such axis.
    pub columns: u32,
    /// The times of the first and of the last event; null without a clock.
    pub window: Option<[f64; 2]>,
    /// In microseconds since the epoch; empty without a clock.
    pub times: Vec<f64>,
    /// Numbers of training steps; empty without steps.
    pub steps: Vec<f64>,
    /// States of the trace.
    pub states: Vec<f64>,
}

/// The curve of a rank at the moments of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PinnedLine {
    /// Requested bytes as a filled SVG path, y down, in a box of [`PINNED_HEIGHT`] and a unit of
    /// width per column: the most in each column.
    pub path: String,
    /// Bytes at the full height.
    pub top: Quantity,
    /// The peak of requested bytes over the whole recording.
    pub peak: Quantity,
    /// Bytes at the time cursor; null without a cursor, and where the recording has no data.
    pub held: Option<Quantity>,
    /// What is equal at one position: `clock`, `step` or `event`.
    pub aligned: String,
}

/// Height of the box of [`PinnedLine::path`].
pub const PINNED_HEIGHT: u32 = 1000;
