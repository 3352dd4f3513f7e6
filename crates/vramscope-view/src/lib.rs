//! The page's part of a plot: the canvas, its axes, and user input.
//!
//! Workers hold the snapshots, and the page holds tiles drawn from them. This crate selects the
//! tiles that a view needs, draws the available ones, and finds the block under the pointer. None
//! of this waits for a worker. TypeScript passes in events and tiles, and shows the labels as text.
//! It computes nothing.
//!
//! The logic is in modules that need no browser:
//!
//! - [`viewport`]: limits of the view, zooming and panning. `motion`: jumps and held keys. `wheel`:
//!   wheel and trackpad events.
//! - [`screen`]: CSS pixels, device pixels, slots and bytes.
//! - [`grid`]: the tiles that a view needs, and stand-ins for missing ones. `cache`: the LRU cache
//!   of tiles.
//! - `axes`: labels and grid lines. `boxes`: elements laid over the plot. `hit`: the strip under
//!   the pointer. `stats`: frame times.
//! - [`scene`]: the state of a plot. [`paint`]: draws a scene with any OpenGL ES 3.0 context.
//!
//! `timeline::TimelineView` is the interface for JavaScript. It exists only on wasm32.
//!
//! ```
//! use vramscope_render::{Color, Strips};
//! use vramscope_view::scene::Scene;
//! use vramscope_view::screen::Screen;
//! use vramscope_view::tile::{Axis, AxisKind, PlotKind};
//!
//! // `()` instead of a handle in GPU memory, because this example does not draw.
//! let mut scene: Scene<()> = Scene::default();
//! scene.resize(Screen::new(1076.0, 432.0, 1.0));
//! let axis = Axis { kind: AxisKind::Event, extent: 900.0, origin: 1.0, peak: 450.0 };
//! scene.open(axis, 4096.0, PlotKind::Bytes, 64.0);
//!
//! // The tiles to request from a worker. Here every tile is one block.
//! for key in scene.wanted().to_vec() {
//!     let mut strips = Strips::default();
//!     strips.push([0.0, 0.0, 512.0, 1024.0], Color::new(40, 0), 7);
//!     scene.put_tile(key, strips);
//! }
//! assert!(scene.wanted().is_empty());
//! scene.cache.upload(usize::MAX, |_| Ok::<(), String>(()))?;
//! scene.place_tiles(|_, _| {});
//!
//! let hit = scene.hit(500.0, 300.0).ok_or("nothing there")?;
//! assert_eq!(hit.block, 7);
//! assert_eq!(scene.labels().peak.map(|peak| peak.text), Some("peak 4.00 KiB".to_owned()));
//! # Ok::<(), String>(())
//! ```
//!
//! A frame without changes costs nothing, and a frame that pans along x allocates no memory.
//! Absolute slots and heights are always `f64`. The GPU gets positions relative to a tile on the
//! screen.

mod axes;
mod boxes;
mod cache;
pub mod grid;
mod hit;
mod motion;
pub mod paint;
pub mod scene;
pub mod screen;
#[cfg(any(target_arch = "wasm32", test))]
mod stats;
pub mod tile;
pub mod viewport;
mod wheel;

#[cfg(target_arch = "wasm32")]
mod timeline;
