//! Axes of plots and keys of tiles, which the page and its workers share.

use serde::{Deserialize, Serialize};

/// The unit of an x axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum AxisKind {
    /// One slot per event: slot 0 is the state before the window, slot `i + 1` the state after
    /// event `i`.
    Event,
    /// One slot per microsecond of the running maximum of `time_us`, with a lead before the first
    /// event (the state before the window) and an equal tail after the last. Long times in which
    /// nothing happens take fewer slots.
    Time,
    /// The weight of a flame graph. Only the page's canvas uses it. No trace has such an axis.
    Weight,
}

/// An x axis in slots: `[0, extent)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Axis {
    /// The unit of the axis.
    pub kind: AxisKind,
    /// The number of slots.
    pub extent: f64,
    /// The slot of event 0, or of the window's first microsecond. Labels show `slot - origin`.
    pub origin: f64,
    /// The first slot at the peak of `requested_bytes`.
    pub peak: f64,
}

/// One tile of the timeline: a cell of a global grid.
///
/// A tile has [`TILE_COLUMNS`](crate::TILE_COLUMNS) columns of `2^kx` slots, and
/// [`TILE_ROWS`](crate::TILE_ROWS) rows of `2^ky` bytes. It starts at slot
/// `ix * TILE_COLUMNS * 2^kx` and at byte `iy * TILE_ROWS * 2^ky`. Strips lower than half a row are
/// merged. Strips are cut at the tile's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TileKey {
    /// Log2 of the slots per column.
    pub kx: u8,
    /// Log2 of the bytes per row.
    pub ky: u8,
    /// Index of the tile along x.
    pub ix: u32,
    /// Index of the tile along y.
    pub iy: u32,
}
