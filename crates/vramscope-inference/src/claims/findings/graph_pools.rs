//! Pools of CUDA graphs that hold far more than one shared pool would, and a pool that grows with
//! each capture.
//!
//! A graph replays in the addresses of its capture. So its pool keeps what the capture reserved,
//! and no other request may use it. Graphs that never replay at once can share a pool.

use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Exhibit, Parts, Scene, Spot, SpotWhat, Words};
use crate::claims::severity::Severity;
use crate::claims::words::counted;
use crate::evidence::Evidence;
use crate::evidence::{Materiality, is_graph_pool, pool_or_default};
use crate::ledger::{Capture, GraphMemory, captures, extents, workspaces};
use crate::what_if::{OnePool, WhatIf};
use std::collections::BTreeSet;
use vramscope_snapshot::{Frame, PoolId, PoolIndex};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{SegmentState, Span, group_by_key};
use vramscope_units::{Bytes, grouped};

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality { bytes: 32 << 20, percent: 10 };

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
    /// Bytes of one shared pool: as a replay shows it, in the order of the captures or with the
    /// largest first. Without a replay about the most that was live in these pools at once.
    pub shared: Bytes,
    /// The replay of the requests in one pool; `None` if the model does not meet the recording.
    pub one_pool: Option<OnePool>,
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
    /// The captures.
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
) -> Option<Found<GraphPools>> {
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
    let peak = cx.trace.reserved_band.peak.max(0) as u64;
    let memory = GraphMemory::of(cx, budget).await;
    let captured = captures(cx, &memory, budget).await;
    // A pool (0, n) was made to be shared.
    let own_pools = pools.iter().filter_map(|(pool, _)| cx.snapshot.pool(*pool));
    let least = MATTERS.least(peak);
    let could_be_one = own_pools.filter(|pool| pool.1 == 0).count() >= MIN_POOLS && all >= least;
    let one_pool = if could_be_one {
        let model = WhatIf::new(cx, budget).await;
        let pools: Vec<PoolIndex> = pools.iter().map(|(pool, _)| *pool).collect();
        model.in_one_pool(&pools, &extents(&captured), budget).await
    } else {
        None
    };
    let shared = match one_pool {
        Some(one_pool) => one_pool.one.min(one_pool.largest_first).0,
        None => memory.most_live(cx, budget).await.0.max(all_live),
    };
    let saved = all.saturating_sub(shared);
    let are_many = could_be_one && saved >= least;
    let mut growth = None;
    if !are_many {
        let is_large = reserved(own) >= (peak / LARGE_PEAK_DIVISOR).max(MATTERS.bytes);
        growth = if is_large { growth_of(&captured, *largest) } else { None };
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
    let workspaces = workspaces(cx, &memory, slot, budget).await;
    let facts = GraphPools {
        pools: pools.len(),
        pool: cx.snapshot.pool(*largest)?,
        reserved: Bytes(all),
        live: Bytes(all_live),
        range: (Bytes(reserved(&pools[0].1)), Bytes(reserved(own))),
        shared: Bytes(shared),
        at: cx.common_frames(&parts).last().map(|&frame| cx.snapshot.frame(frame)),
        growth,
        one_pool,
        workspaces: Bytes(workspaces.iter().map(|of| of.bytes.0).sum()),
        workspace_streams: workspaces.len(),
        peak: Bytes(peak),
    };
    let bytes = if growth.is_some() { reserved(own) } else { saved };
    // A replay of the requests has the order of the captures. It lacks the driver's addresses.
    let is_exact = one_pool.is_some_and(|one_pool| !one_pool.is_estimate);
    let is_costly = growth.is_none() && is_exact && saved >= peak / LARGE_PEAK_DIVISOR;
    let events = spans.iter().filter_map(|span| span.event).map(|event| event.0).collect();
    Some(
        Common {
            // A program that captures a few shapes, once, has such a pool on purpose.
            severity: if is_costly { Severity::Medium } else { Severity::Low },
            basis: if is_exact { Basis::Exact } else { Basis::Estimate },
            parts,
            ..cx.found(FindingKind::StrandedPool, "graphs", bytes, bytes, events)
        }
        .with(facts),
    )
}

/// The growth of a pool with its captures; `None` if it ends, or if few captures reserve more.
fn growth_of(captures: &[Capture], pool: PoolIndex) -> Option<PoolGrowth> {
    let own = captures.iter().filter(|capture| capture.pool == pool);
    let added: Vec<u64> = own.map(|capture| capture.added.0).collect();
    let last_grew = added.last().is_some_and(|&bytes| bytes > 0);
    let mut grown: Vec<u64> = added.iter().copied().filter(|&bytes| bytes > 0).collect();
    let is_steady = grown.len() >= MIN_CAPTURES && grown.len() * 5 >= added.len() * 4 && last_grew;
    grown.sort_unstable();
    is_steady.then(|| PoolGrowth {
        captures: added.len(),
        grew: grown.len(),
        each: Bytes(grown[grown.len() / 2]),
    })
}

impl Claim for GraphPools {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let at = self.at.map(|frame| format!(" at {}", scene.label(frame)));
        let at = at.unwrap_or_default();
        let spot = self.spot(scene);
        let workspaces = match self.workspace_streams {
            0 | 1 => String::new(),
            count => format!(
                " {} of workspaces are live on {}: libraries keep one for each stream.",
                self.workspaces,
                counted(count, "stream")
            ),
        };
        if let Some(growth) = &self.growth {
            let PoolId(a, b) = self.pool;
            return Words {
                title: scene
                    .titled("CUDA graph pool grows", spot.as_ref(), scene.bytes())
                    .text(format_args!(" after {}", counted(growth.captures, "capture"))),
                text: format!(
                    "Pool ({a}, {b}) of CUDA graphs grows with each capture{at}: {} of {} captures \
                     reserve more, usually {}. It never shrinks, holds {} ({} live) of the {} \
                     reserved at most, and serves no other request.{workspaces}",
                    grouped(growth.grew as u64),
                    grouped(growth.captures as u64),
                    growth.each,
                    scene.bytes(),
                    self.live,
                    self.peak,
                ),
                action: "Capture fewer shapes: pad inputs to a few sizes, or leave graphs out for \
                         changing ones \
                         (torch._inductor.config.triton.cudagraph_skip_dynamic_graphs). Capture \
                         the largest shape first."
                    .to_owned(),
            };
        }
        let (least, most) = self.range;
        let is_exact = self.one_pool.is_some_and(|one_pool| !one_pool.is_estimate);
        let about = if is_exact { "" } else { "about " };
        let shared = format!("{about}{}", self.shared);
        let replayed = self.one_pool.map(|one_pool| match (one_pool.one, one_pool.largest_first) {
            (one, first) if first < one => format!(
                " That is with the largest captured first; in this order, one pool would hold \
                 {one} (the requests were replayed)."
            ),
            _ => format!(
                " The requests were replayed in one pool: at most {} would be reserved in place of \
                 {}.",
                one_pool.peak_with_one, one_pool.peak
            ),
        });
        Words {
            title: scene
                .titled(
                    &format!("{} of CUDA graphs", counted(self.pools, "pool")),
                    spot.as_ref(),
                    self.reserved,
                )
                .text(format_args!(", one shared pool holds {about}{}", self.shared.brief())),
            text: format!(
                "CUDA graphs captured{at} have {} of their own: {least} to {most} each, {} in all, \
                 of which {} are live. The rest is idle between replays, and serves no other graph \
                 and no other request. One pool for all would hold {shared}.{}{workspaces}",
                counted(self.pools, "pool"),
                self.reserved,
                self.live,
                replayed.unwrap_or_default(),
            ),
            action: "Capture all graphs into one pool, the largest first: torch.cuda.graph(graph, \
                     pool=first_graph.pool()). Graphs that share a pool must not replay at once, \
                     and each output must be read before the next replay."
                .to_owned(),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        if self.growth.is_some() {
            "it never shrinks, and serves no other request".to_owned()
        } else {
            "each graph has a pool of its own, idle between replays".to_owned()
        }
    }

    fn spot(&self, _scene: &Scene<'_>) -> Option<Spot> {
        let what = SpotWhat::Text(String::new());
        Some(Spot { frame: self.at?, note: String::new(), what })
    }

    fn exhibit(&self, _scene: &Scene<'_>) -> Exhibit {
        let elsewhere = self.peak.0.saturating_sub(self.reserved.0);
        let free = self.reserved.0.saturating_sub(self.live.0);
        Exhibit::Parts(Parts {
            title: "reserved memory at its peak",
            parts: vec![
                ("elsewhere", Bytes(elsewhere), false),
                ("graphs, live", self.live, false),
                ("graphs, free", Bytes(free), true),
            ],
            line: None,
        })
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    StrandedPool,
    fires: ["findings/g15_graph_per_shape.pickle.gz", "serving/engine_own_pools.pickle.gz"],
    silent: ["findings/s10_graph_capture.pickle.gz"]
}
