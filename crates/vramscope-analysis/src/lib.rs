//! Pure functions from a snapshot to result tables.
//!
//! Everything that the page and the program say about memory is computed here, once. [`Trace`]
//! pairs one device's events with its final segments: which blocks there were, when each of them
//! was live, and the bands that follow. Nothing here formats, draws, reads a clock or a file.
//!
//! ```
//! use vramscope_analysis::Trace;
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
//!
//! Slots: slot 0 is the state before the window, slot `i + 1` the state after event `i`. A trace of
//! `n` events has `n + 1` slots, and every state that the device was ever in is one of them.

mod arena;
mod band;
mod blocks;
mod carving;
mod category;
mod changes;
mod clock;
mod compare;
mod excerpt;
mod findings;
mod flame;
mod fragmentation;
pub mod parallel;
mod peaks;
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
mod trace;

pub use band::Band;
pub use blocks::{Block, Origin};
pub use carving::Carving;
pub use category::{Categories, Category, Guess, Rule, RuleError, Rules};
pub use changes::Change;
pub use clock::Clock;
pub use compare::{HeldBy, Matched, NamedFrame, match_stacks, package_path};
pub use findings::{
    Facts, Finding, FindingKind, FixedSegments, FreeAt, FreeMemory, Growth, OutlierItem,
    PendingFrees, RankFacts, SettingCost, Severity, StepSource, Steps, findings, findings_sliced,
    free_slots, outliers,
};
pub use flame::{Flame, FlameNode};
pub use fragmentation::{Churn, Fragmentation, FreeKind, FreeShare, free_shares};
pub use peaks::{Peak, peaks, peaks_sliced};
pub use pools::{PoolEnvelope, PoolPeak, pool_envelope, pool_envelope_sliced};
pub use ranges::{NamedRange, named_ranges};
pub use rollup::{
    FrameShare, Measure, Share, by_frame, by_stack, by_stack_sliced, lifetime, reserved_by_stack,
};
pub use segments::{Segments, Span};
pub use series::Series;
pub use site::{Site, Sites, is_framework_file, is_telling, name_hash};
pub use sort::sort;
pub use state::{Content, LiveSet, Piece, SegmentState};
pub use trace::{Coverage, Exactness, Oom, Trace};
