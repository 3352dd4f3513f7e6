//! Rectangles to draw, and the OpenGL ES programs that draw them. This crate knows no allocations.
//!
//! A timeline is cut into *tiles*: cells of a grid whose columns are a power of two slots wide and
//! whose rows are a power of two bytes high. The content of a tile is a [`Strips`]: three parallel
//! arrays of rectangles, color words and block numbers. Layout fills the arrays in a worker, they
//! are transferred to the page as three buffers, and the page uploads them to the GPU unchanged.
//! Positions count columns and rows from the tile's corner, so an `f32` is always precise enough.
//! Absolute timestamps and addresses do not reach this crate.
//!
//! A [`Color`] is a hue and a lightness step, or a fixed color, and not an RGB value. A [`Palette`]
//! maps it to RGB at draw time, so a change of theme updates one small texture and no tile.
//!
//! ```
//! use vramscope_render::{Color, MERGED, Palette, Strips, Theme};
//!
//! let mut strips = Strips::default();
//! // Block 7: columns 0 to 512 of the tile, rows 0 to 40.
//! strips.push([0.0, 0.0, 512.0, 40.0], Color::new(140, 1), 7);
//! // Above it a merged strip of several blocks. Block 9 is the largest of them.
//! strips.push([0.0, 40.0, 512.0, 40.75], Color::NO_STACK, 9 | MERGED);
//! assert_eq!(strips.len(), 2);
//!
//! let dark = Palette::new(Theme::Dark);
//! assert_eq!(dark.css(Color::NO_STACK), "#8a9097");
//! ```
//!
//! A [`Placement`] is the position of a tile on the screen. It is computed for every frame from
//! `f64` numbers: device pixels per column and per row, and the pixels that the tile may touch.
//! Edges are rounded to whole device pixels. [`Placement::snap`] and the shader use the same
//! arithmetic, so hit tests match the drawn pixels.
//!
//! [`TileKey`] names a tile and [`Axis`] describes its x axis in messages between page and workers.
//!
//! # With feature `gl`
//!
//! `gl::StripRenderer` keeps tiles in textures and draws all of them with one or two calls per
//! texture. `gl::RectRenderer` draws the few rectangles around the data: grid lines, marks and the
//! baseline. Both need a `glow::Context` of OpenGL ES 3.0 or WebGL 2, and know no windows or
//! canvases. The images in `tests/goldens/` are drawn by the same shaders through EGL.

mod axes;
mod color;
mod palette;
mod placement;
mod strips;

#[cfg(feature = "gl")]
pub mod gl;

pub use axes::{Axis, AxisKind, TileKey};
pub use color::Color;
pub use palette::{HATCH_GAP, PALETTE_LEN, Palette, Rgba, Surfaces, Theme};
pub use placement::{PixelRect, Placement};
pub use strips::{MERGED, NO_BLOCK, StripColumns, Strips, TILE_COLUMNS, TILE_ROWS};
