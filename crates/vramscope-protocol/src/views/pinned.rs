//! Curves of other ranks on the axis of the rank in the center.

use crate::Quantity;
use serde::{Deserialize, Serialize};

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
