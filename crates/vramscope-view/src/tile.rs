//! Geometry of tiles: scales, areas, and the rows of a plot. Messages to workers have the types of
//! tiles and axes too.

use serde::{Deserialize, Serialize};
use vramscope_render::{TILE_COLUMNS, TILE_ROWS};

pub use vramscope_render::{Axis, AxisKind, TileKey};

/// The place of a tile in the plot.
pub trait TileGeometry {
    /// The scale of the tile.
    fn level(self) -> Level;

    /// The slots and bytes that the tile covers.
    fn area(self) -> Area;
}

impl TileGeometry for TileKey {
    fn level(self) -> Level {
        Level { kx: self.kx, ky: self.ky }
    }

    fn area(self) -> Area {
        let [w, h] = self.level().tile_size();
        let (x0, y0) = (f64::from(self.ix) * w, f64::from(self.iy) * h);
        Area { x0, x1: x0 + w, y0, y1: y0 + h }
    }
}

/// A scale: columns of `2^kx` slots and rows of `2^ky` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Level {
    /// Log2 of the slots in a column.
    pub kx: u8,
    /// Log2 of the bytes in a row.
    pub ky: u8,
}

impl Level {
    /// Width of a tile in slots, and its height in bytes.
    pub fn tile_size(self) -> [f64; 2] {
        [f64::from(TILE_COLUMNS) * power(self.kx), f64::from(TILE_ROWS) * power(self.ky)]
    }

    /// The tile of this level with the given indexes.
    pub fn tile(self, ix: u32, iy: u32) -> TileKey {
        TileKey { kx: self.kx, ky: self.ky, ix, iy }
    }
}

/// `2^k`, exact.
pub fn power(k: u8) -> f64 {
    f64::from(k).exp2()
}

/// A rectangle in slots and bytes (or units of rows), for example the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Area {
    /// Left edge in slots.
    pub x0: f64,
    /// Right edge in slots.
    pub x1: f64,
    /// Lower edge in bytes.
    pub y0: f64,
    /// Upper edge in bytes.
    pub y1: f64,
}

impl Area {
    /// Width in slots.
    pub fn width(&self) -> f64 {
        self.x1 - self.x0
    }

    /// Height in bytes.
    pub fn height(&self) -> f64 {
        self.y1 - self.y0
    }

    /// The intersection of two areas, which may be empty.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            x0: self.x0.max(other.x0),
            x1: self.x1.min(other.x1),
            y0: self.y0.max(other.y0),
            y1: self.y1.min(other.y1),
        }
    }

    /// True when the area has no extent.
    pub fn is_empty(&self) -> bool {
        self.x1 <= self.x0 || self.y1 <= self.y0
    }
}

/// The y axis of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlotKind {
    /// A stack of blocks, in bytes from 0 up.
    Bytes,
    /// Rows in arbitrary units. The first row is at the top, where y is largest.
    Rows(Rows),
}

/// The number and the height of the rows of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rows {
    /// Total height of all rows in units.
    pub units: f64,
    /// Height of a row in units.
    pub row_units: f64,
    /// Minimum height of a row in CSS pixels.
    #[serde(rename = "least")]
    pub min_px: f64,
    /// Height of a row in CSS pixels when all rows fit. When it equals `min_px`, the height is
    /// fixed.
    #[serde(rename = "most")]
    pub max_px: f64,
}
