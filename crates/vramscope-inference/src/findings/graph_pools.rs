//! Pools of CUDA graphs that hold far more than one shared pool would, and a pool that grows with
//! each capture.
//!
//! A graph replays in the addresses of its capture. So its pool keeps what the capture reserved,
//! and no other request may use it. Graphs that never replay at once can share a pool.

use super::memory_use::{is_graph_pool, pool_or_default};
use super::{Basis, Evidence, Facts, Finding, Severity, parts};
use crate::category::Category;
use std::collections::BTreeSet;
use vramscope_snapshot::{Frame, PoolId, PoolIndex, StreamId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, SegmentState, Span, group_by_key};
use vramscope_units::Bytes;

/// The fewest bytes that a shared pool saves.
const MIN_SAVED: u64 = 32 << 20;

/// The smallest part of the reserved peak that a shared pool saves.
const MIN_PEAK_DIVISOR: u64 = 10;

/// The smallest part of the reserved peak that a growing pool has, or that a shared pool saves in a
/// finding that matters.
const LARGE_PEAK_DIVISOR: u64 = 4;

/// The fewest pools that could be one.
const MIN_POOLS: usize = 3;

/// The fewest captures of a pool that grows.
const MIN_CAPTURES: usize = 4;

/// The pools of CUDA graphs at the peak of `reserved_bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphPools {
    /// The number of pools.
    pub pools: usize,
    /// The pool with most reserved bytes.
    pub pool: PoolId,
    /// Bytes reserved for all of them.
    pub reserved: Bytes,
    /// Bytes of their active blocks.
    pub live: Bytes,
    /// Reserved bytes of the smallest pool and of the largest.
    pub range: (Bytes, Bytes),
    /// What one shared pool would hold about: the most that was live in these pools at once.
    pub shared: Bytes,
    /// The innermost frame outside of PyTorch that the captures share; `None` without stacks.
    pub at: Option<Frame>,
    /// Growth of the largest pool with its captures; `None` if it is about several pools.
    pub growth: Option<PoolGrowth>,
    /// Workspaces that are live, outside of these pools or in them.
    pub workspaces: Bytes,
    /// The streams that have one.
    pub workspace_streams: usize,
    /// The peak of `reserved_bytes`.
    pub peak: Bytes,
}

/// A pool that reserves more memory in one capture after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolGrowth {
    /// The captures: runs of allocations in the pool without another allocation between them.
    pub captures: usize,
    /// Those that reserved more.
    pub grew: usize,
    /// The median of what these reserved.
    pub each: Bytes,
}

/// The finding about pools of graphs, if any. `segments` are those of `slot`, at the reserved peak.
pub(super) async fn graph_pools(
    cx: Evidence<'_>,
    segments: &[SegmentState],
    slot: u32,
    budget: &mut Budget,
) -> Option<Finding> {
    budget.charge(2 * segments.len() as u64).await;
    let of_graphs = segments.iter().filter(|s| is_graph_pool(cx.snapshot, s.pool, s.stream));
    let mut pools: Vec<(PoolIndex, Vec<&SegmentState>)> =
        group_by_key(of_graphs.map(|segment| (segment.pool, segment)).collect());
    let reserved = |own: &[&SegmentState]| own.iter().map(|s| s.size.0).sum::<u64>();
    let live = |own: &[&SegmentState]| own.iter().map(|s| s.active.0).sum::<u64>();
    pools.sort_by_key(|(_, own)| reserved(own));
    let (largest, own) = pools.last()?;
    let all: u64 = pools.iter().map(|(_, own)| reserved(own)).sum();
    let all_live: u64 = pools.iter().map(|(_, own)| live(own)).sum();
    let shared = most_live(cx, budget).await.max(all_live);
    let peak = cx.trace.reserved_band.peak.max(0) as u64;
    let saved = all.saturating_sub(shared);
    // A pool (0, n) was made to be shared.
    let own_pools = pools.iter().filter_map(|(pool, _)| cx.snapshot.pool(*pool));
    let are_many = own_pools.filter(|pool| pool.1 == 0).count() >= MIN_POOLS
        && saved >= MIN_SAVED
        && saved >= peak / MIN_PEAK_DIVISOR;
    let mut growth = None;
    if !are_many {
        let is_large = reserved(own) >= (peak / LARGE_PEAK_DIVISOR).max(MIN_SAVED);
        growth = if is_large { growth_of(cx, *largest, budget).await } else { None };
        growth?;
    }
    let of_pools: BTreeSet<PoolIndex> = match growth {
        Some(_) => [*largest].into_iter().collect(),
        None => pools.iter().map(|(pool, _)| *pool).collect(),
    };
    let spans = cx.carving.segments.spans.iter();
    let spans: Vec<&Span> = spans
        .filter(|span| {
            span.is_reserved_at(slot)
                && of_pools.contains(&pool_or_default(span.pool))
                && is_graph_pool(cx.snapshot, span.pool, span.stream)
        })
        .collect();
    let parts = parts(spans.iter().map(|span| (span.stack, span.size.0)));
    let (workspaces, workspace_streams) = workspaces(cx, slot, budget).await;
    let facts = GraphPools {
        pools: pools.len(),
        pool: cx.snapshot.pool(*largest)?,
        reserved: Bytes(all),
        live: Bytes(all_live),
        range: (Bytes(reserved(&pools[0].1)), Bytes(reserved(own))),
        shared: Bytes(shared),
        at: cx.shared_frames(&parts).last().map(|&frame| cx.snapshot.frame(frame)),
        growth,
        workspaces,
        workspace_streams,
        peak: Bytes(peak),
    };
    let bytes = if growth.is_some() { reserved(own) } else { saved };
    let is_costly = growth.is_none() && saved >= peak / LARGE_PEAK_DIVISOR;
    let events = spans.iter().filter_map(|span| span.event).map(|event| event.0).collect();
    Some(Finding {
        // A program that captures a few shapes, once, has such a pool on purpose.
        severity: if is_costly { Severity::Medium } else { Severity::Low },
        // What a shared pool would hold depends on the order of its captures.
        basis: Basis::Estimate,
        parts,
        ..cx.finding("graphs", bytes, bytes, events, Facts::GraphPools(facts))
    })
}

/// The most bytes that were live in pools of graphs at once.
async fn most_live(cx: Evidence<'_>, budget: &mut Budget) -> u64 {
    let spans = &cx.carving.segments.spans;
    budget.charge(spans.len() as u64).await;
    let mut own: Vec<&Span> =
        (spans.iter()).filter(|span| is_graph_pool(cx.snapshot, span.pool, span.stream)).collect();
    own.sort_by_key(|span| span.address);
    let mut changes: Vec<(u32, i64)> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for index in part {
            let block = &cx.trace.blocks[index];
            if is_within(&own, block) {
                let size = i64::try_from(cx.carving.sizes[index].0).unwrap_or(0);
                changes.extend([(block.enters, size), (block.leaves, -size)]);
            }
        }
    }
    // What leaves in a slot leaves first.
    changes.sort_unstable();
    let mut now = 0i64;
    let most = changes.iter().map(|change| {
        now = now.saturating_add(change.1);
        now
    });
    u64::try_from(most.max().unwrap_or(0)).unwrap_or(0)
}

/// Whether a block lies in one of the spans, which are in address order.
fn is_within(spans: &[&Span], block: &Block) -> bool {
    let until = spans.partition_point(|span| span.address <= block.address);
    spans[..until]
        .last()
        .is_some_and(|span| block.address.0 < span.end() && span.is_reserved_at(block.enters))
}

/// The growth of a pool with its captures; `None` if it ends, or if few captures reserve more.
async fn growth_of(cx: Evidence<'_>, pool: PoolIndex, budget: &mut Budget) -> Option<PoolGrowth> {
    let spans = &cx.carving.segments.spans;
    budget.charge(spans.len() as u64).await;
    let mut own: Vec<&Span> = spans.iter().filter(|span| span.pool == pool).collect();
    own.sort_by_key(|span| span.address);
    // Allocations, and whether they are in the pool.
    let mut allocs: Vec<(u32, bool)> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for block in cx.trace.blocks[part].iter().filter(|block| block.enters > 0) {
            allocs.push((block.enters, is_within(&own, block)));
        }
    }
    allocs.sort_unstable();
    let runs: Vec<(u32, u32)> = (allocs.chunk_by(|a, b| a.1 == b.1))
        .filter(|run| run[0].1)
        .map(|run| (run[0].0, run[run.len() - 1].0))
        .collect();
    let mut enters: Vec<(u32, u64)> = own.iter().map(|span| (span.enters, span.size.0)).collect();
    enters.sort_unstable();
    let mut grown: Vec<u64> = Vec::new();
    let mut last_grew = false;
    for (at, run) in runs.iter().enumerate() {
        // A capture's first reservation precedes its first allocation.
        let from = at.checked_sub(1).map_or(0, |before| runs[before].1);
        let of_run = enters.iter().filter(|(slot, _)| from < *slot && *slot <= run.1);
        let bytes: u64 = of_run.map(|(_, bytes)| bytes).sum();
        last_grew = bytes > 0;
        grown.extend((bytes > 0).then_some(bytes));
    }
    let is_steady = grown.len() >= MIN_CAPTURES && grown.len() * 5 >= runs.len() * 4 && last_grew;
    grown.sort_unstable();
    is_steady.then(|| PoolGrowth {
        captures: runs.len(),
        grew: grown.len(),
        each: Bytes(grown[grown.len() / 2]),
    })
}

/// Bytes of the live workspaces of a slot, and the number of their streams.
async fn workspaces(cx: Evidence<'_>, slot: u32, budget: &mut Budget) -> (Bytes, usize) {
    let (mut bytes, mut streams) = (0, BTreeSet::<StreamId>::new());
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        for index in part {
            let block = &cx.trace.blocks[index];
            let is_workspace = block.is_live_at(slot)
                && cx.categories.get(index as u32).category == Category::Workspace;
            if is_workspace {
                bytes += block.bytes.0;
                streams.insert(block.stream);
            }
        }
    }
    (Bytes(bytes), streams.len())
}
