//! Pure functions from a snapshot to result tables.
//!
//! What a file shows, exactly. [`Trace`] pairs one device's events with its final segments. It
//! knows all blocks, the slots in which each block is live, and the resulting bands. Other analyses
//! build on it: [`Carving`] (block sizes), [`Fragmentation`] (free memory), [`Flame`] and more.
//! What follows from these with less than certainty is in vramscope-inference. Nothing here
//! formats text for users, draws, or reads a clock or a file.
//!
//! A slot is a state of the device. Slot 0 is the state before the window, and slot `i + 1` is the
//! state after event `i`. So a trace of `n` events has `n + 1` slots.
//!
//! A long analysis is an `async fn` that runs in slices. [`slicing::now`] runs it at once.
//!
//! ```
//! use vramscope_trace::Trace;
//! use vramscope_snapshot::Reader;
//!
//! let json = br#"{"device_traces": [[
//!     {"action": "alloc", "addr": 4096, "size": 1000},
//!     {"action": "alloc", "addr": 5120, "size": 500},
//!     {"action": "free_requested", "addr": 4096, "size": 1000},
//!     {"action": "free_completed", "addr": 4096, "size": 1000}]],
//!   "segments": [{"device": 0, "address": 4096, "total_size": 4096, "blocks": [
//!     {"address": 4096, "size": 1024, "requested_size": 1000, "state": "inactive"},
//!     {"address": 5120, "size": 512, "requested_size": 500, "state": "active_allocated"},
//!     {"address": 5632, "size": 2560, "requested_size": 0, "state": "inactive"}]}]}"#;
//! let mut reader = Reader::default();
//! reader.feed(json)?;
//! let snapshot = reader.finish()?.remove(0).snapshot;
//! let trace = &Trace::all(&snapshot)[0];
//! assert_eq!(trace.requested.to_vec(), [0, 1000, 1500, 1500, 500]);
//! assert_eq!(trace.requested_band.peak_event, Some(1));
//! assert!(trace.warnings.is_empty());
//! # Ok::<(), vramscope_snapshot::LoadError>(())
//! ```

mod arena;
mod band;
mod blocks;
mod carving;
mod changed;
mod changes;
mod clock;
mod excerpt;
mod flame;
mod fragmentation;
mod group_by;
mod host;
mod label;
mod no_stack;
mod notes;
pub mod parallel;
mod path;
mod peaks;
mod pins;
mod pools;
mod ranges;
mod rollup;
mod rounding;
mod segments;
mod series;
mod site;
pub mod slicing;
mod sort;
mod state;
mod time_scale;
mod trace;

pub use band::Band;
pub use blocks::{Block, Origin};
pub use carving::Carving;
pub use changed::{ChangedSegment, PieceKind, changed_segments, outside};
pub use changes::Change;
pub use clock::Clock;
pub use flame::{Flame, FlameNode, PathOf};
pub use fragmentation::{
    Churn, Fragmentation, FreeKind, FreeShare, LargestFree, free_shares, largest_free,
};
pub use group_by::group_by_key;
pub use label::{
    NO_STACK, frame_filter, frame_label, frame_parts, label_of, line_of, no_stack, place,
    place_if_known, place_of, short_name, without_arguments,
};
pub use no_stack::NoStack;
pub use notes::Notes;
pub use path::components;
pub use path::{file_name, is_library};
pub use peaks::{Peak, peaks};
pub use pins::{Pin, pins};
pub use pools::{PoolEnvelope, PoolPeak, pool_envelope};
pub use ranges::{NamedRange, named_ranges};
pub use rollup::{
    Measure, Share, by_frame, by_stack, lifetime, merge_same_lines, reserved_by_stack,
};
pub use rounding::Rounding;
pub use segments::segment_event;
pub use segments::{SMALL_SIZE, Segments, Span};
pub use series::{Series, columns_of};
pub use site::{
    Site, Sites, is_distinctive, is_framework_file, is_framework_frame, is_generated_file,
    name_hash, node, operator, short_operation,
};
pub use site::{is_package_file, is_python};
pub use sort::sort;
pub use state::{Content, LiveSet, Piece, SegmentState};
pub use time_scale::{Cut, TimeScale};
pub use trace::reserve_change;
pub use trace::{Coverage, Exactness, Oom, Trace};
pub use vramscope_allocator::{HostSettings, Settings as AllocatorSettings};
