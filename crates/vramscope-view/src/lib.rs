//! The page's side of the timeline: a canvas, its axes, and what the hand does to them.
//!
//! Workers hold the snapshots; the page holds pictures of them, in tiles, and this crate decides
//! which tiles a view wants, draws those that are there and tells what lies under the pointer, all
//! without asking a worker. TypeScript hands in events and tiles, and lays out the labels as text;
//! it computes nothing.
//!
//! Everything that can be wrong is in plain modules that know no browser:
//!
//! - [`viewport`]: what may be in view, zooming and panning; [`motion`]: jumps and held keys;
//!   [`wheel`];
//! - [`screen`]: CSS pixels, device pixels, slots and bytes;
//! - [`grid`]: which tiles a view wants, and which others stand in for them; [`cache`]: which ones
//!   stay;
//! - [`axes`]: labels; [`boxes`]: what the page lays over the plot; [`hit`]: what is under the
//!   pointer; [`stats`]: frame times;
//! - [`scene`] is all of it together, and [`paint`] draws a scene with any OpenGL ES 3.0 context.
//!
//! `timeline::TimelineView`, which exists only on wasm32, is what JavaScript sees.
//!
//! ```
//! use vramscope_render::{Color, Strips};
//! use vramscope_view::scene::Scene;
//! use vramscope_view::screen::Screen;
//! use vramscope_view::tile::{Axis, AxisKind, PlotKind};
//!
//! // `()` in place of GPU memory: nothing is drawn here.
//! let mut scene: Scene<()> = Scene::default();
//! scene.resize(Screen::new(1076.0, 432.0, 1.0));
//! let axis = Axis { kind: AxisKind::Event, extent: 900.0, origin: 1.0, peak: 450.0 };
//! scene.open(axis, 4096.0, PlotKind::Bytes, 64.0);
//!
//! // What to ask a worker for; here every tile is one block.
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
//! A frame in which nothing has changed costs nothing; one that pans along x allocates nothing.
//! Positions reach the GPU relative to a tile on the screen: an absolute slot or height is always
//! an `f64`.

pub mod axes;
pub mod boxes;
pub mod cache;
pub mod grid;
pub mod hit;
pub mod motion;
pub mod paint;
pub mod scene;
pub mod screen;
pub mod stats;
pub mod tile;
pub mod viewport;
pub mod wheel;

#[cfg(target_arch = "wasm32")]
pub mod timeline;
