//! Pure functions from a snapshot to result tables.
//!
//! Every number about memory on the page and in the program is computed in this crate. [`Trace`]
//! pairs one device's events with its final segments. It knows all blocks, the slots in which each
//! block is live, and the resulting bands. Other analyses build on it: [`Carving`] (block sizes),
//! [`Fragmentation`] (free memory), [`Categories`], [`Flame`], [`findings`](findings()) and more.
//! Nothing in this crate formats text for users, draws, or reads a clock or a file.
//!
//! A slot is a state of the device. Slot 0 is the state before the window, and slot `i + 1` is the
//! state after event `i`. So a trace of `n` events has `n + 1` slots.
//!
//! A long analysis also has a variant that runs in slices. See [`slicing`].
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

mod arena;
mod backward_site;
mod band;
mod blocks;
mod carving;
mod category;
mod changed;
mod changes;
mod clock;
mod compare;
mod excerpt;
mod findings;
mod flame;
mod fragmentation;
mod group_by;
mod host;
mod no_stack;
mod notes;
pub mod parallel;
mod path;
mod peaks;
mod pins;
mod pools;
mod ranges;
mod rank_matrix;
mod rollup;
mod rounding;
mod segments;
mod series;
mod shapes;
mod site;
pub mod slicing;
mod sort;
mod state;
mod step_floors;
mod step_phases;
mod steps;
mod time_scale;
mod trace;
mod what_if;

pub use backward_site::{Allocation, BackwardBasis, BackwardSite, backward_site, backward_sites};
pub use band::Band;
pub use blocks::{Block, Origin};
pub use carving::Carving;
pub use category::{
    Categories, Category, Guess, Phase, PhaseSpan, Rule, RuleError, Rules, own_name,
};
pub use changed::{ChangedSegment, PieceKind, changed_segments, outside};
pub use changes::Change;
pub use clock::Clock;
pub use compare::{HeldBy, NamedFrame, match_stacks};
pub use findings::{
    Basis, BlindSpot, CostlySetting, Cycle, Evidence, Facts, Finding, FindingId, FindingKind,
    GradientsHeld, Growth, GrowthKind, HeldTooLong, LargerStep, MemoryUse, NoFindingId, OomStory,
    Overrun, Part, PendingFrees, RankFacts, RankSkew, RankStack, ReservedPeak, Returned,
    SegmentChurn, Severity, SkewCause, SkewSite, StrandedPool, Verdict, blind_spots,
    blind_spots_sliced, findings, findings_sliced, rank_runs, rank_skew, slot_of_reserved_peak,
};
pub use flame::{Flame, FlameNode, PathOf};
pub use fragmentation::{
    Churn, Fragmentation, FreeKind, FreeShare, LargestFree, free_shares, largest_free,
    largest_free_sliced,
};
pub use group_by::group_by_key;
pub use no_stack::NoStack;
pub use notes::Notes;
pub use path::{file_name, is_library};
pub use peaks::{Peak, peaks, peaks_sliced};
pub use pins::{Pin, pins};
pub use pools::{PoolEnvelope, PoolPeak, pool_envelope, pool_envelope_sliced};
pub use ranges::{NamedRange, named_ranges};
pub use rank_matrix::{
    ALIKE_PARTS, EXCEPTION_SITES, MatrixColumn, MatrixRow, RankCluster, RankMatrix, RankOutlier,
    median, rank_matrix,
};
pub use rollup::{
    Measure, Share, by_frame, by_stack, by_stack_sliced, lifetime, merge_same_lines,
    reserved_by_stack,
};
pub use segments::{SMALL_SIZE, Segments, Span};
pub use series::Series;
pub use shapes::{Dims, NoShapes, Shape, Shapes, Widths};
pub use site::{
    Site, Sites, is_distinctive, is_framework_file, is_framework_frame, is_generated_file,
    name_hash, node, operator, short_operation,
};
pub use sort::sort;
pub use state::{Content, LiveSet, Piece, SegmentState};
pub use step_floors::{Slope, StepFloor, slope, step_floors};
pub use step_phases::{
    CategoryBytes, NextPhase, NextStep, PhasePeak, StepPart, StepPhase, StepPhases,
};
pub use steps::{StepSource, Steps};
pub use time_scale::{Cut, TimeScale};
pub use trace::{Coverage, Exactness, Oom, Trace};
pub use vramscope_allocator::Settings as AllocatorSettings;
pub use what_if::{
    Calibration, Capacity, Question, SETTING_KEYS, Scale, Scenario, Search, SettingError,
    SimulatedBasis, WhatIf, parse_settings, recorded_settings, settings_text,
    split_outside_brackets,
};
