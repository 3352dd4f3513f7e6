//! The map of segments.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// The figures of the map of segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MapInfo {
    /// The height of all lines in units; 0 without segments.
    pub units: f64,
    /// Bytes in a line.
    pub line_bytes: f64,
    /// The event and the sums: `After #7,396: 138 segments, 5.45 GiB reserved, 5.09 GiB active.`
    pub text: String,
    /// The scale: `a line is 128 MiB`.
    pub scale: String,
    /// Segments by pool, stream and size class, from the top.
    pub groups: Vec<MapGroup>,
    /// Segments that few blocks keep from being returned to the driver, sorted by
    /// [`MapPin::kept`], the largest first; at most 100.
    pub pins: Vec<MapPin>,
    /// The number of pins and the bytes that they keep: `3 segments, 410 MiB`. Empty without pins.
    pub pinned: String,
}

/// The segments of a pool, a stream and a size class. Blocks never move between these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MapGroup {
    /// The lower and upper edge of the heading in units.
    pub y: (f64, f64),
    /// The pool, the stream and the size class: `default pool, default stream, large segments`.
    pub name: String,
    /// The handles of pool and stream, for a tooltip.
    pub title: String,
    /// The number of segments: `45 segments`.
    pub segments: Quantity,
    /// Reserved bytes.
    pub reserved: Quantity,
    /// Bytes of blocks that are not yet free.
    pub active: Quantity,
    /// The other bytes.
    pub free: Quantity,
    /// The largest free piece.
    pub hole: Quantity,
}

/// A segment that few blocks keep from being returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MapPin {
    /// The largest block in it.
    pub block: u32,
    /// The left and right edge of that block's first part in bytes of its line.
    pub x: (f64, f64),
    /// The lower and upper edge in units.
    pub y: (f64, f64),
    /// The unused bytes of the segment.
    pub kept: Quantity,
    /// `1 block of 1.50 MiB keeps 196.5 MiB from being returned`.
    pub text: String,
    /// The call site of the largest block.
    pub site: String,
}
