//! Memory that is reserved at most, and not needed.

mod creep;
mod out_of_reach;
mod words;

pub(super) use words::{setting_action, setting_text};

pub use creep::Creep;
pub use out_of_reach::OutOfReach;

use crate::claims::found::{Common, Found};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::severity::Severity;
use crate::evidence::MemoryUse;
use crate::evidence::{Evidence, Materiality};
use vramscope_trace::Carving;
use vramscope_trace::Exactness;
use vramscope_trace::Rounding;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Content, SegmentState};
use vramscope_trace::{FreeShare, free_shares};
use vramscope_units::{Bytes, EventIndex};

/// Lower amounts are no finding. The allocator keeps small amounts for good reasons.
const MATTERS: Materiality = Materiality { bytes: 256 << 20, percent: 10 };

/// The share that one cause must have to be named.
const CAUSE_MATTERS: Materiality = Materiality { bytes: 256 << 20, percent: 25 };

/// The smallest part of the reserved peak to report when memory was short: when an allocation
/// failed, or the allocator had to make room.
const MIN_SHORT_PEAK_DIVISOR: u64 = 20;

/// From this part of the reserved peak on, in percent, and from [`LARGE_BYTES`] on, a finding
/// matters.
const LARGE_PERCENT: u64 = 60;

/// The fewest bytes of a finding that matters by its share alone.
const LARGE_BYTES: u64 = 2 << 30;

/// A setting is named when it costs more than this part of the reserved peak.
const MIN_SETTING_DIVISOR: u64 = 20;

/// The peak of `reserved_bytes`, and what it was used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedPeak {
    /// The event of the peak; `None` if the state before the window is the peak.
    pub event: Option<EventIndex>,
    /// Whether the file has only the final state.
    pub is_state_only: bool,
    /// The peak of `reserved_bytes`.
    pub reserved: Bytes,
    /// The peak of `active_bytes`: no allocator can reserve less.
    pub needed: Bytes,
    /// The use of the reserved memory at its peak.
    pub memory: MemoryUse,
    /// The free memory by pool, stream and size class, most first.
    pub shares: Vec<FreeShare>,
    /// Settings that cost memory, most bytes first.
    pub settings: Vec<CostlySetting>,
    /// Free memory of side streams, beside which others reserved more.
    pub out_of_reach: Vec<OutOfReach>,
    /// Growth from step to step while the memory in use stays flat.
    pub creep: Option<Creep>,
    /// Whether an allocation failed, or the allocator had to make room.
    pub was_short: bool,
}

/// An allocator setting that costs memory at the reserved peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostlySetting {
    /// `max_split_size_mb`: larger segments are never split, and smaller requests do not use larger
    /// free pieces of expandable segments.
    MaxSplitSize {
        /// The limit.
        limit: Bytes,
        /// Segments above it.
        segments: usize,
        /// Free pieces above it, in expandable segments.
        pieces: usize,
        /// Their free memory, and what their blocks have beyond their requests.
        bytes: Bytes,
    },
    /// `roundup_power2_divisions`: requests are rounded up to steps between powers of two.
    RoundupPower2Divisions {
        /// Bytes added to the live blocks.
        bytes: Bytes,
    },
}

impl CostlySetting {
    /// The bytes that it costs.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::MaxSplitSize { bytes, .. } | Self::RoundupPower2Divisions { bytes } => *bytes,
        }
    }
}

/// The finding, if enough of the reserved peak is not needed. `segments` are those of `slot`, at
/// the peak; `out_of_reach` is that of when reserved memory reached it. `was_short` says that an
/// allocation failed or that the allocator had to make room.
pub(super) async fn reserved(
    cx: Evidence<'_>,
    segments: &[SegmentState],
    slot: u32,
    out_of_reach: Vec<OutOfReach>,
    was_short: bool,
    budget: &mut Budget,
) -> Option<Found<Box<ReservedPeak>>> {
    let [peak, needed] = [cx.trace.reserved_band.peak, cx.carving.active_band.peak]
        .map(|bytes| u64::try_from(bytes).unwrap_or(0));
    budget.charge(segments.iter().map(|segment| segment.pieces.len() as u64).sum()).await;
    let memory = MemoryUse::of(cx.snapshot, segments);
    let settings = costly_settings(cx, segments);
    // Rounding by a setting costs memory although all of it is in use.
    let rounded = settings.iter().map(|setting| match setting {
        CostlySetting::RoundupPower2Divisions { bytes } => bytes.0,
        CostlySetting::MaxSplitSize { .. } => 0,
    });
    let unneeded =
        peak.saturating_sub(needed).saturating_sub(memory.graph_pools.0) + rounded.sum::<u64>();
    let is_large = MATTERS.is_met(unneeded, peak);
    let is_felt = was_short && unneeded > 0 && unneeded >= peak / MIN_SHORT_PEAK_DIVISOR;
    let creep = Creep::find(cx, budget).await.filter(|creep| creep.total.0 <= unneeded);
    if !is_large && !is_felt && creep.is_none() {
        return None;
    }
    let is_state_only = cx.trace.is_state_only();
    let is_much = unneeded >= LARGE_BYTES
        && unneeded / LARGE_PERCENT >= peak / 100
        // Between two steps most memory is idle.
        && !is_state_only;
    let causes = settings.iter().map(CostlySetting::bytes);
    let causes = causes.chain(out_of_reach.iter().map(OutOfReach::bytes));
    let mut causes = causes.chain(creep.map(|creep| creep.total));
    let has_cause = causes.any(|bytes| CAUSE_MATTERS.is_met(bytes.0.min(unneeded), peak));
    let event = slot.checked_sub(1);
    let facts = ReservedPeak {
        event: event.map(EventIndex),
        is_state_only,
        reserved: Bytes(peak),
        needed: Bytes(needed),
        memory,
        shares: free_shares(segments).into_iter().filter(|share| share.free.0 > 0).collect(),
        settings,
        out_of_reach,
        creep,
        was_short,
    };
    let is_exact = cx.carving.exactness == Exactness::Exact;
    Some(
        Common {
            severity: if was_short || is_much || has_cause {
                Severity::Medium
            } else {
                Severity::Low
            },
            step: event.and_then(|event| cx.step_at(event)),
            phase: event.and_then(|event| cx.phase_at(event)),
            basis: if is_exact { Basis::Exact } else { Basis::Estimate },
            ..cx.found(
                FindingKind::Reserved,
                "peak",
                unneeded,
                unneeded,
                event.into_iter().collect(),
            )
        }
        .with(Box::new(facts)),
    )
}

/// The settings that cost more than a part of the reserved memory of a state, most bytes first.
pub(super) fn costly_settings(cx: Evidence<'_>, segments: &[SegmentState]) -> Vec<CostlySetting> {
    let rounding = Rounding::of(cx.snapshot, &cx.trace.device);
    let limit = rounding.max_split_size();
    let unsplit = segments.iter().filter(|s| !s.is_expandable && s.size.0 > limit);
    let (mut count, mut unsplit_bytes) = (0, 0);
    for segment in unsplit {
        count += 1;
        unsplit_bytes += segment.free.0;
        unsplit_bytes += blocks(cx, cx.carving, segment)
            .map(|(request, size)| size.saturating_sub(rounding.round(request)))
            .sum::<u64>();
    }
    // A request below the limit takes no free piece above it.
    let expandable = segments.iter().filter(|segment| segment.is_expandable);
    let pieces = expandable.flat_map(|segment| &segment.pieces);
    let unused = pieces.filter(|p| p.content == Content::Free && p.size.0 >= limit);
    let (pieces, unused) = unused.fold((0, 0), |(n, sum), piece| (n + 1, sum + piece.size.0));
    unsplit_bytes += unused;
    let plain = rounding.without_divisions();
    let added = segments.iter().flat_map(|segment| blocks(cx, cx.carving, segment));
    let added = added
        .map(|(request, _)| rounding.round(request).saturating_sub(plain.round(request)))
        .sum();
    let unsplit = CostlySetting::MaxSplitSize {
        limit: Bytes(limit),
        segments: count,
        pieces,
        bytes: Bytes(unsplit_bytes),
    };
    let mut settings = vec![unsplit, CostlySetting::RoundupPower2Divisions { bytes: Bytes(added) }];
    let reserved = segments.iter().map(|segment| segment.size.0).sum::<u64>();
    settings.retain(|setting| setting.bytes().0 > reserved / MIN_SETTING_DIVISOR);
    settings.sort_by_key(|setting| std::cmp::Reverse(setting.bytes()));
    settings
}

/// The requested bytes and the size of every block of a segment.
fn blocks<'a>(
    cx: Evidence<'a>,
    carving: &'a Carving,
    segment: &'a SegmentState,
) -> impl Iterator<Item = (u64, u64)> + 'a {
    segment.pieces.iter().filter_map(move |piece| match piece.content {
        Content::Free => None,
        Content::Block { block, .. } => {
            Some((cx.trace.blocks[block as usize].bytes.0, carving.sizes[block as usize].0))
        }
    })
}

#[cfg(test)]
crate::claims::cases::cases! {
    Reserved,
    fires: [
        "findings/g01_max_split_expandable.pickle.gz",
        "findings/g14_prefetch_stream.pickle.gz"
    ],
    silent: ["findings/leak_hooks.pickle.gz", "findings/non_ema.pickle.gz"]
}
