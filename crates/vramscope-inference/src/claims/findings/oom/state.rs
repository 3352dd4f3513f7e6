//! The memory of the device when an allocation fails.

use super::aftermath::copies;
use crate::category::{Category, Phase};
use crate::claims::findings::reserved::{CostlySetting, costly_settings};
use crate::claims::found::Part;
use crate::evidence::Evidence;
use crate::evidence::is_in_graphs;
use crate::evidence::{is_graph_pool, pool_or_default, segments_at};
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Action, PoolId, PoolIndex, StackId};
use vramscope_trace::Oom;
use vramscope_trace::Rounding;
use vramscope_trace::SMALL_SIZE;
use vramscope_trace::is_framework_file;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Content, SegmentState};
use vramscope_trace::{FreeKind, FreeShare, free_shares};
use vramscope_units::Bytes;

/// Requests of at least this many bytes get a segment of their own size (`kMinLargeAlloc`).
const MIN_OWN_SEGMENT: u64 = 10 << 20;

/// The size of a segment for smaller requests of the large pool (`kLargeBuffer`).
const LARGE_SEGMENT: u64 = 20 << 20;

/// Large segments, and segments of the small pool, are multiples of this (`kRoundLarge`).
const SEGMENT_STEP: u64 = 2 << 20;

/// More call sites than this with blocks of one size say nothing about a request of that size.
const MAX_TWINS: usize = 3;

/// The maximum number of call sites in a finding.
const MAX_HOLDERS: usize = 20;

pub(super) struct State {
    pub(super) stack: StackId,
    pub(super) kind: FreeKind,
    pub(super) is_pool_assumed: bool,
    pub(super) new_segment: Option<Bytes>,
    pub(super) active: Bytes,
    pub(super) rounding: Bytes,
    pub(super) usable: Bytes,
    pub(super) largest_usable: Bytes,
    pub(super) unusable: Vec<FreeShare>,
    /// Whether a block that is large enough still waits for another stream.
    pub(super) has_fitting_pending: bool,
    pub(super) settings: Vec<CostlySetting>,
    pub(super) categories: Vec<(Category, Bytes)>,
    pub(super) twins: Vec<StackId>,
    /// Live copies of the model that the line of the request made: bytes and number.
    pub(super) copies: Option<(Bytes, u32)>,
    /// Whether the request is of a capture of a CUDA graph.
    pub(super) is_capture: bool,
    /// Reserved bytes and number of the pools of CUDA graphs.
    pub(super) graph_pools: (Bytes, u32),
    /// The call sites with most live bytes.
    pub(super) holders: Vec<Part>,
    /// The number of live blocks.
    pub(super) blocks: u32,
}

impl State {
    pub(super) async fn at(cx: Evidence<'_>, oom: Oom, budget: &mut Budget) -> Self {
        let (events, row) = (&cx.snapshot.events, cx.trace.device.events.start + oom.event.0);
        // A failure changes nothing: the state after it is the state before it.
        let segments = segments_at(cx, oom.event.0 + 1, budget).await;
        let is_private =
            |s: &SegmentState| cx.snapshot.pool(s.pool).is_some_and(|p| p != PoolId::DEFAULT);
        let is_capture = match events.pool(row) {
            PoolIndex::UNKNOWN => is_of_capture(cx, row, oom.event.0 + 1),
            pool => is_graph_pool(cx.snapshot, pool, events.stream(row)),
        };
        let kind = FreeKind {
            pool: pool_or_default(events.pool(row)),
            stream: events.stream(row),
            is_small: oom.requested.0 <= SMALL_SIZE,
        };
        let (own, unusable): (Vec<FreeShare>, Vec<FreeShare>) = free_shares(&segments)
            .into_iter()
            .filter(|share| share.free.0 > 0)
            .partition(|share| share.kind == kind);
        let own = own.first();
        let live: Vec<Live> = segments.iter().flat_map(|segment| live(cx, segment)).collect();
        budget.charge(8 * live.len() as u64).await;
        let fits = |block: &Live| {
            let is_small = block.requested <= SMALL_SIZE;
            block.is_pending
                && block.size >= oom.requested.0
                && (is_small, block.pool, block.stream) == (kind.is_small, kind.pool, kind.stream)
        };
        let active = live.iter().map(|block| block.size).sum::<u64>();
        let requested = live.iter().map(|block| block.requested).sum::<u64>();
        let own_site = cx.sites.get(events.stack(row)).site_hash;
        let by_site: Vec<(u64, Category, u64)> = live
            .iter()
            .map(|block| (block.requested, block.category, cx.sites.get(block.stack).site_hash))
            .collect();
        // Passes and the optimizer make tensors of these sizes, too.
        let is_outside = events.stack(row) != StackId::EMPTY
            && !matches!(
                cx.phase_at(oom.event.0),
                Some(Phase::Forward | Phase::Backward | Phase::Optimizer | Phase::Evaluation)
            );
        let graphs = segments.iter().filter(|s| is_graph_pool(cx.snapshot, s.pool, s.stream));
        let graph_bytes = graphs.clone().map(|s| s.size.0).sum();
        let mut graph_pools: Vec<PoolIndex> = graphs.map(|segment| segment.pool).collect();
        graph_pools.sort_unstable();
        graph_pools.dedup();
        let is_expandable = segments.iter().any(|segment| segment.is_expandable)
            || cx.setting("expandable_segments") == Some("true");
        Self {
            stack: events.stack(row),
            kind,
            is_pool_assumed: events.pool(row) == PoolIndex::UNKNOWN
                && !is_capture
                && segments.iter().any(is_private),
            new_segment: (!is_expandable).then(|| Bytes(segment_size(oom.requested.0))),
            active: Bytes(active),
            rounding: Bytes(active.saturating_sub(requested)),
            usable: own.map_or(Bytes(0), |own| own.free),
            largest_usable: own.map_or(Bytes(0), |own| own.largest),
            unusable,
            has_fitting_pending: live.iter().any(fits),
            settings: costly_settings(cx, &segments),
            categories: categories(&live),
            twins: twins(cx, &live, oom, events.stack(row)),
            copies: is_outside.then(|| copies(&by_site, own_site)).flatten(),
            is_capture,
            graph_pools: (Bytes(graph_bytes), graph_pools.len() as u32),
            holders: holders(cx, &live),
            blocks: live.len() as u32,
        }
    }
}

/// Whether a request of an unknown pool is of a capture: by its call stack, or because the last
/// allocation on its stream is in the pool of a graph. Before PyTorch 2.12 only the final segments
/// name their pool.
fn is_of_capture(cx: Evidence<'_>, row: u32, slot: u32) -> bool {
    let (events, rows) = (&cx.snapshot.events, &cx.trace.device.events);
    let stream = events.stream(row);
    let is_before =
        |&row: &u32| events.action(row) == Action::ALLOC && events.stream(row) == stream;
    let last = (rows.start..row).rev().take(MAX_LOOKED_BACK).find(is_before);
    let is_in_pool = |row: u32| {
        let address = events.addr(row);
        cx.carving.segments.spans.iter().any(|span| {
            span.address <= address
                && address.0 < span.end()
                && span.is_reserved_at(slot)
                && is_graph_pool(cx.snapshot, span.pool, stream)
        })
    };
    is_in_graphs(cx, events.stack(row)) || last.is_some_and(is_in_pool)
}

/// The maximum number of events before a failure that are searched for an allocation.
const MAX_LOOKED_BACK: usize = 1 << 16;

/// A live block.
struct Live {
    size: u64,
    requested: u64,
    category: Category,
    /// Its own call stack, or the empty one.
    stack: StackId,
    is_pending: bool,
    pool: PoolIndex,
    stream: vramscope_snapshot::StreamId,
}

fn live<'a>(cx: Evidence<'a>, segment: &'a SegmentState) -> impl Iterator<Item = Live> + 'a {
    segment.pieces.iter().filter_map(move |piece| {
        let Content::Block { block: index, pending } = piece.content else { return None };
        let block = &cx.trace.blocks[index as usize];
        Some(Live {
            size: piece.size.0,
            requested: block.bytes.0,
            category: cx.categories.get(index).category,
            stack: if block.has_stack_of_free() { StackId::EMPTY } else { block.stack },
            is_pending: pending,
            pool: segment.pool,
            stream: segment.stream,
        })
    })
}

/// The size of a new segment (`get_allocation_size`).
fn segment_size(requested: u64) -> u64 {
    match requested {
        0..=SMALL_SIZE => SEGMENT_STEP,
        size if size < MIN_OWN_SEGMENT => LARGE_SEGMENT,
        size => size.checked_next_multiple_of(SEGMENT_STEP).unwrap_or(size),
    }
}

fn categories(live: &[Live]) -> Vec<(Category, Bytes)> {
    let mut sums = Category::ALL.map(|category| (category, Bytes(0)));
    for block in live {
        for sum in sums.iter_mut().filter(|sum| sum.0 == block.category) {
            sum.1.0 += block.requested;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|sum| sum.1.0 > 0).collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.1));
    sums
}

/// Call stacks of live blocks with the size of the request, one for each call site of the program.
fn twins(cx: Evidence<'_>, live: &[Live], oom: Oom, request: StackId) -> Vec<StackId> {
    let rounding = Rounding::of(cx.snapshot, &cx.trace.device);
    let own = cx.sites.get(request).site_hash;
    let mut twins: Vec<(u64, StackId)> = Vec::new();
    if oom.requested.0 < SMALL_SIZE {
        return Vec::new();
    }
    for block in live.iter().filter(|b| rounding.round(b.requested) == oom.requested.0) {
        let site = cx.sites.get(block.stack);
        let is_program =
            site.frame.is_some_and(|frame| !is_framework_file(&cx.snapshot.text(frame.file)));
        if is_program && site.site_hash != own && twins.iter().all(|t| t.0 != site.site_hash) {
            twins.push((site.site_hash, block.stack));
        }
    }
    if twins.len() > MAX_TWINS {
        return Vec::new();
    }
    twins.sort_by_key(|twin| twin.1);
    twins.into_iter().map(|twin| twin.1).collect()
}

/// The call sites with most live bytes. Blocks without their own call stack are one of them.
fn holders(cx: Evidence<'_>, live: &[Live]) -> Vec<Part> {
    let mut sites: FxHashMap<u64, Part> = FxHashMap::default();
    for block in live {
        let site = cx.sites.get(block.stack);
        let part = Part { stack: block.stack, bytes: Bytes(0), blocks: 0 };
        let part = sites.entry(site.site_hash).or_insert(part);
        part.stack = part.stack.min(block.stack);
        part.bytes.0 += block.requested;
        part.blocks += 1;
    }
    let mut parts: Vec<Part> = sites.into_values().collect();
    parts.sort_by_key(|part| (std::cmp::Reverse(part.bytes), part.stack));
    parts.truncate(MAX_HOLDERS);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_size_matches_pytorch() {
        let sizes = [(512, 2), (2 << 20, 20), (10 << 20, 10), ((393 << 20) - 512, 394)];
        for (requested, mib) in sizes {
            assert_eq!(segment_size(requested), mib << 20, "{requested}");
        }
    }
}
