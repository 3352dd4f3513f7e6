//! When answers are computed: loading, the scheduler, queries and their caches, the memory limit.
//!
//! A [`FileSession`] belongs to one file, from its first byte to its release. It takes chunks of
//! bytes, then [`messages::Request`]s, and gives [`Reply`]s. Replies have rows whose values carry
//! display text, and named columns of numbers. A [`Coordinator`] sees all files of a run. Neither
//! knows workers or the file system. The worker carries bytes and [`messages`].
//!
//! ```
//! use vramscope_session::messages::views::{Bands, ColorBy, GroupBy, Layer};
//! use vramscope_session::messages::{AxisKind, DeviceRef, Request, Response, TileKey};
//! use vramscope_session::FileSession;
//!
//! let json = br#"{"segments": [], "device_traces": [[
//!     {"action": "alloc", "addr": 4096, "size": 2097152}
//! ]]}"#;
//! let mut session = FileSession::new("rank0.json", json.len() as u64);
//! session.feed(json).expect("JSON of a snapshot");
//! assert_eq!(session.progress().expect("loading").fraction, 1.0);
//! let Response::Loaded(loaded) = session.finish() else { panic!("a whole snapshot") };
//! assert_eq!(loaded.parts[0].devices[0].peak_text, "peak 2.00 MiB at #0");
//!
//! let target = DeviceRef { part: 0, device: 0 };
//! let tile = TileKey { kx: 0, ky: 12, ix: 0, iy: 0 };
//! let (color, bands) = (ColorBy::Stack, Bands::NONE);
//! let group = GroupBy::Category;
//! let layer = Layer::Timeline { group, color, bands, search: String::new() };
//! session.post(Request::Tiles { id: 1, target, axis: AxisKind::Event, layer, tiles: vec![tile] });
//! let reply = session.step().expect("one tile was requested");
//! assert!(matches!(reply.response, Response::Tile { strips: 1, .. }));
//! ```

mod coordinator;
mod derived;
mod load_preview;
mod loaded;
mod loader;
mod memory_limit;
pub mod messages;
mod page;
mod queries;
mod query_queue;
mod run_order;
mod scheduler;
pub mod warm_up;

pub use coordinator::Coordinator;
pub use loader::Loader;
pub use page::Page;
pub use run_order::plan;
pub use scheduler::{Column, FileSession, Reply, Slice};
pub use vramscope_report::sidecar::MAX_BYTES as MAX_SIDECAR_BYTES;

// The protocol names these for the page. The tile grid is vramscope-render's.
const _: () = assert!(crate::messages::TILE_COLUMNS == vramscope_layout::TILE_COLUMNS);
const _: () = assert!(crate::messages::NO_BLOCK == vramscope_layout::NO_BLOCK);
