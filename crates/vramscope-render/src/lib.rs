//! What is drawn, and the programs that draw it: rectangles, not allocations.
//!
//! A timeline is cut into *tiles*, cells of a grid whose columns are a power of two slots wide and
//! whose rows are a power of two bytes high. A tile's content is a [`Strips`]: three parallel
//! columns of rectangles, color words and block numbers. Layout fills them, in a worker; they
//! cross to the page as three buffers; the page gives them to the GPU as they are. Positions count
//! columns and rows from the tile's own corner, so that an `f32` is always exact enough: a
//! microsecond since 1970 or an address never gets near this crate.
//!
//! A [`Color`] is a place on a hue wheel and a lightness step, not an RGB value. What it looks
//! like is decided where it is drawn, by a [`Palette`], so that a change of theme changes one small
//! texture and no tile.
//!
//! ```
//! use vramscope_render::{Color, MERGED, Palette, Strips, Theme};
//!
//! let mut strips = Strips::default();
//! // Columns 0 to 512 of the tile, from its floor up to row 40, block 7.
//! strips.push([0.0, 0.0, 512.0, 40.0], Color::new(140, 1), 7);
//! // Above it a strip that stands for several blocks, of which block 9 is the largest.
//! strips.push([0.0, 40.0, 512.0, 40.75], Color::NO_STACK, 9 | MERGED);
//! assert_eq!(strips.len(), 2);
//!
//! let dark = Palette::new(Theme::Dark);
//! assert_eq!(dark.css(Color::NO_STACK), "#8a9097");
//! ```
//!
//! Where a tile lies on the screen is a [`Placement`], made afresh for every frame from `f64`
//! numbers: so many device pixels a column, so many a row, and the pixels that the tile may touch.
//! Edges are rounded to whole device pixels, by [`Placement::snap`] here and by the shader in the
//! same arithmetic, so that a hit test finds what was drawn.
//!
//! # With feature `gl`
//!
//! `gl::StripRenderer` keeps tiles in textures and draws all of them with one or two calls a
//! texture; `gl::RectRenderer` draws the few rectangles of a plot's furniture. Both want a
//! `glow::Context` of OpenGL ES 3.0 or WebGL 2 and know nothing of windows or canvases. The
//! pictures in `tests/goldens/` are made by the same shaders through EGL.

mod color;
mod palette;
mod placement;
mod strips;

#[cfg(feature = "gl")]
pub mod gl;

pub use color::Color;
pub use palette::{PALETTE_LEN, Palette, Rgba, Surfaces, Theme};
pub use placement::{PixelRect, Placement};
pub use strips::{MERGED, NO_BLOCK, StripColumns, Strips, TILE_COLUMNS, TILE_ROWS};
