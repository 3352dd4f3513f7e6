//! The facts of each kind of finding.

use serde::{Deserialize, Serialize};
use vramscope_snapshot::{StackId, StreamId};
use vramscope_units::{Bytes, EventIndex, Micros};

use crate::category::Category;

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A call stack whose live bytes grow from training step to training step.
    Growth,
    /// A block that stays live although other blocks of its call stack are freed.
    NeverFreed,
    /// Frees that wait for another stream before their memory can be reused.
    PendingFree,
    /// An allocation that failed.
    Oom,
    /// Much more memory reserved than in use at the peak of `reserved_bytes`.
    Fragmentation,
    /// Segments returned to the driver and reserved again.
    Retry,
    /// An allocator setting that costs memory or time in this run.
    Settings,
    /// A rank that holds far more than similar ranks.
    Outlier,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Growth,
        Self::NeverFreed,
        Self::PendingFree,
        Self::Oom,
        Self::Fragmentation,
        Self::Retry,
        Self::Settings,
        Self::Outlier,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::NeverFreed => "never_freed",
            Self::PendingFree => "pending_free",
            Self::Oom => "oom",
            Self::Fragmentation => "fragmentation",
            Self::Retry => "retry",
            Self::Settings => "settings",
            Self::Outlier => "outlier",
        }
    }
}

/// The facts of a finding, by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts {
    /// See [`FindingKind::Growth`].
    Growth(Growth),
    /// See [`FindingKind::NeverFreed`].
    NeverFreed {
        /// The alloc event of the oldest block that stays.
        first: EventIndex,
        /// Blocks that stay.
        blocks: usize,
        /// Other blocks of the call stack, all freed.
        freed: u32,
        /// The longest life among the freed blocks, in events.
        longest_life: u32,
    },
    /// See [`FindingKind::PendingFree`].
    PendingFree(PendingFrees),
    /// See [`FindingKind::Oom`].
    Oom {
        /// The event.
        event: EventIndex,
        /// Bytes requested.
        requested: Bytes,
        /// Free bytes that the driver reported; `None` if the event has none.
        device_free: Option<Bytes>,
        /// `reserved_bytes` at the event.
        reserved: Bytes,
        /// `requested_bytes` at the event.
        in_use: Bytes,
        /// The largest free block; `None` if the replay of the allocator does not know it.
        largest_free: Option<Bytes>,
        /// The call sites with most live bytes, largest first: one call stack of the site, and the
        /// site's bytes. [`StackId::EMPTY`] stands for blocks without their own recorded stack.
        holders: Vec<(StackId, Bytes)>,
        /// Further call sites with live bytes.
        other_sites: usize,
    },
    /// See [`FindingKind::Fragmentation`].
    Fragmentation {
        /// The event at the peak of `reserved_bytes`.
        event: EventIndex,
        /// That peak.
        reserved_peak: Bytes,
        /// Reserved bytes that were not in use then. An upper bound without `largest_free`.
        unused: Bytes,
        /// The largest free block; `None` if the replay of the allocator does not know it.
        largest_free: Option<Bytes>,
        /// The peak of `requested_bytes`.
        requested_peak: Bytes,
    },
    /// See [`FindingKind::Retry`].
    Retry {
        /// True if the allocator returned the segments to make room; false if the program did.
        by_allocator: bool,
        /// Bytes returned.
        returned: Bytes,
        /// Segments returned.
        segments: usize,
        /// Runs of returns.
        bursts: usize,
        /// Bytes reserved again.
        reserved_again: Bytes,
    },
    /// See [`FindingKind::Settings`].
    Settings(SettingCost),
    /// See [`FindingKind::Outlier`].
    Outlier {
        /// The rank as texts name it: `rank 3`, or the file's name.
        rank: String,
        /// The figure that stands out.
        item: OutlierItem,
        /// Its bytes on this rank.
        bytes: Bytes,
        /// The median among the compared ranks.
        usual: Bytes,
        /// The number of compared ranks, this one included.
        ranks: usize,
    },
}

/// How the live bytes of a call site grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Growth {
    /// New blocks stay in each step.
    Kept {
        /// The smallest and the largest growth in one step.
        per_step: (Bytes, Bytes),
        /// Grows in every step (1), every second step (2), and so on.
        every: usize,
        /// Steps in which it grows.
        steps: usize,
        /// Bytes at the end of the window.
        at_end: Bytes,
    },
    /// Blocks are replaced by larger ones.
    Replaced {
        /// The smallest and the largest growth in one step.
        per_step: (Bytes, Bytes),
        /// Grows in every step (1), every second step (2), and so on.
        every: usize,
        /// Steps in which it grows.
        steps: usize,
        /// Growth over the window.
        in_all: Bytes,
    },
}

/// Frees of one call stack that waited for another stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingFrees {
    /// Frees that waited.
    pub frees: usize,
    /// Their bytes.
    pub total: Bytes,
    /// The most bytes that waited at the same time.
    pub most_at_once: Bytes,
    /// The stream of the blocks.
    pub stream: StreamId,
    /// The longest wait in events.
    pub longest_events: u32,
    /// The event at which the longest wait begins.
    pub longest_from: EventIndex,
    /// The longest wait in time; `None` without a clock.
    pub longest_time: Option<Micros>,
}

/// An allocator setting and its cost. Variants are named after the keys of `allocator_settings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingCost {
    /// `garbage_collection_threshold` returned segments that were needed again.
    GarbageCollectionThreshold {
        /// The setting's value as recorded.
        threshold: String,
        /// Segments returned.
        segments: usize,
        /// Bytes reserved again.
        reserved_again: Bytes,
    },
    /// `expandable_segments` is off.
    ExpandableSegments(FixedSegments),
    /// `max_split_size` prevents the reuse of segments above it, which are never split.
    MaxSplitSize {
        /// The setting's value.
        limit: Bytes,
        /// Segments above it.
        segments: usize,
        /// Blocks that were allocated in them.
        allocations: u32,
        /// An upper bound of the reserved bytes that were not in use.
        unused: Bytes,
        /// The peak of `reserved_bytes`.
        reserved_peak: Bytes,
    },
    /// `roundup_power2_divisions` rounds requests up.
    RoundupPower2Divisions {
        /// Bytes that rounding adds at the peak of `requested_bytes`.
        added: Bytes,
        /// That peak.
        requested: Bytes,
    },
}

impl SettingCost {
    /// The setting's key in `allocator_settings`.
    pub fn key(&self) -> &'static str {
        match self {
            Self::GarbageCollectionThreshold { .. } => "garbage_collection_threshold",
            Self::ExpandableSegments(_) => "expandable_segments",
            Self::MaxSplitSize { .. } => "max_split_size",
            Self::RoundupPower2Divisions { .. } => "roundup_power2_divisions",
        }
    }
}

/// The cost of segments of fixed size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixedSegments {
    /// An allocation failed although enough reserved memory was not in use.
    FailedBesideFree {
        /// An upper bound of the reserved bytes that were not in use.
        unused: Bytes,
    },
    /// Segments were returned to make room for other sizes, and reserved again.
    Returned {
        /// Segments returned.
        segments: usize,
        /// Bytes reserved again.
        reserved_again: Bytes,
    },
}

/// The figure by which a rank stands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutlierItem {
    /// Bytes of a call stack at the peak of `requested_bytes`.
    Stack {
        /// The stack's hash, equal in all ranks.
        hash: u64,
        /// Its call site.
        site: String,
    },
    /// Bytes of a category at the peak of `requested_bytes`.
    Category(Category),
    /// The peak of a band, by name.
    Band(&'static str),
}

impl Facts {
    /// The kind of finding that these facts make.
    pub fn kind(&self) -> FindingKind {
        match self {
            Self::Growth(_) => FindingKind::Growth,
            Self::NeverFreed { .. } => FindingKind::NeverFreed,
            Self::PendingFree(_) => FindingKind::PendingFree,
            Self::Oom { .. } => FindingKind::Oom,
            Self::Fragmentation { .. } => FindingKind::Fragmentation,
            Self::Retry { .. } => FindingKind::Retry,
            Self::Settings(_) => FindingKind::Settings,
            Self::Outlier { .. } => FindingKind::Outlier,
        }
    }
}
