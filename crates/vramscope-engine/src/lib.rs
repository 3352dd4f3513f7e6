//! Everything that the page can ask and the program can print, answered and tested without a
//! browser.
//!
//! [`Engine`] belongs to one file, from its first byte to its release: chunks of bytes in, then
//! [`protocol::Request`]s in and [`Reply`]s out. Answers are rows whose values come with their
//! display text, and named columns of numbers that are handed over as they are. [`Coordinator`]
//! sees all files of a run. Neither knows of messages, workers or files; the worker and the program
//! carry bytes and words to and fro.
//!
//! ```
//! use vramscope_engine::Engine;
//! use vramscope_engine::protocol::views::{ColorBy, Layer};
//! use vramscope_engine::protocol::{AxisKind, DeviceRef, Request, Response, TileKey};
//!
//! let json = br#"{"segments": [], "device_traces": [[{"action": "alloc", "addr": 4096, "size": 2097152}]]}"#;
//! let mut engine = Engine::new("rank0.json", json.len() as u64);
//! engine.feed(json).expect("JSON of a snapshot");
//! assert_eq!(engine.progress().expect("it is being read").fraction, 1.0);
//! let Response::Loaded(loaded) = engine.finish() else { panic!("it is whole") };
//! assert_eq!(loaded.parts[0].devices[0].peak_text, "peak 2.00 MiB at #0");
//!
//! let target = DeviceRef { part: 0, device: 0 };
//! let tile = TileKey { kx: 0, ky: 12, ix: 0, iy: 0 };
//! let layer = Layer::Timeline { color: ColorBy::Stack, bands: false, search: String::new() };
//! engine.post(Request::Tiles { id: 1, target, axis: AxisKind::Event, layer, tiles: vec![tile] });
//! let reply = engine.step().expect("one tile was asked for");
//! assert!(matches!(reply.response, Response::Tile { strips: 1, .. }));
//! ```

mod detail;
mod engine;
mod file;
mod hover;
mod limit;
mod loaded;
mod making;
mod plan;
pub mod protocol;
mod provisional;
mod questions;
pub mod report;
mod text;
mod views;
pub mod warm;

pub use vramscope_analysis::{RuleError, Rules, Severity};
pub use vramscope_units as units;

pub use engine::{Column, Engine, Reply, Slice};
pub use file::{File, Loader, Part};
pub use plan::{Coordinator, plan, rank_of};
pub use text::{change_bytes, signed_bytes, signed_count};

// The protocol states these for the page; the grid itself is vramscope-render's.
const _: () = assert!(protocol::TILE_COLUMNS == vramscope_layout::TILE_COLUMNS);
const _: () = assert!(protocol::TILE_ROWS == vramscope_layout::TILE_ROWS);
const _: () = assert!(protocol::MERGED == vramscope_layout::MERGED);
const _: () = assert!(protocol::NO_BLOCK == vramscope_layout::NO_BLOCK);
