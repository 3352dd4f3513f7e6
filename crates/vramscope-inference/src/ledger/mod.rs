//! What CUDA graphs and an inference engine hold: captures and their pools, KV cache, weights.
//!
//! A graph's pool keeps what its captures reserved, and serves nothing else. An engine reserves a
//! KV cache from what its estimate leaves, so it needs to know what each capture adds.

mod captures;
mod serving;
mod sums;
mod told;

pub use crate::what_if::OnePool;
pub use serving::Serving;
pub use sums::{CacheGroup, LedgerSum, MostAtOnce, WorkspaceOfStream};
pub use told::ToldBy;

use crate::evidence::{Evidence, slot_of_reserved_peak};
use crate::what_if::WhatIf;
pub(crate) use captures::{GraphMemory, captures};
use std::collections::BTreeMap;
pub(crate) use sums::workspaces;
use vramscope_snapshot::{FrameId, PoolIndex};
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, EventIndex};

/// The fewest captures that tell what one more costs.
const MIN_CAPTURES: usize = 3;

/// The captures of a device's window, their pools, and the memory of an engine by its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// The captures, in order.
    pub captures: Vec<Capture>,
    /// Their pools, in the order in which they appear.
    pub pools: Vec<GraphPool>,
    /// What one capture more costs, as the later captures show it; `None` with fewer than three.
    pub one_more: Option<OneMore>,
    /// The same requests in one pool, as a replay shows them; `None` if the captures have one pool,
    /// no replay was made, or it cannot tell.
    pub one_pool: Option<OnePool>,
    /// KV caches at the peak of `reserved_bytes`: blocks of one call stack, most bytes first.
    pub caches: Vec<CacheGroup>,
    /// Workspaces of libraries at the peak of `reserved_bytes`, by stream.
    pub workspaces: Vec<WorkspaceOfStream>,
    /// `reserved_bytes` by use at its peak.
    pub peak: LedgerSum,
    /// `reserved_bytes` by use at the end.
    pub end: LedgerSum,
    /// The most memory of activations at once, outside of pools of graphs, before the KV cache: the
    /// profile run. `None` if that is not in the window, or there is no cache.
    pub profile: Option<MostAtOnce>,
    /// The same after it, or over the whole window without a cache.
    pub work: MostAtOnce,
}

/// A capture of a CUDA graph, or a warm-up in its pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The pool.
    pub pool: PoolIndex,
    /// Whether it only prepares a capture, as a call stack tells.
    pub is_warm_up: bool,
    /// What tells where it begins.
    pub told_by: ToldBy,
    /// Its first allocation, and the last event before the next allocation of any pool.
    pub events: (EventIndex, EventIndex),
    /// The innermost frame of the program that its allocations share; `None` without stacks.
    pub at: Option<FrameId>,
    /// The number of its allocations.
    pub allocations: u32,
    /// Bytes that the pool reserved for it.
    pub added: Bytes,
    /// The most bytes of its blocks at once.
    pub used: Bytes,
    /// The most bytes of its blocks at once that lay in what earlier captures had reserved.
    pub reused: Bytes,
    /// Bytes of its blocks that are live after it.
    pub kept: Bytes,
    /// The largest of these blocks.
    pub largest_kept: Option<u32>,
    /// Bytes that the pool has reserved after it.
    pub reserved: Bytes,
    /// Bytes of the blocks that are live in the pool after it.
    pub live: Bytes,
}

/// A pool of CUDA graphs at the end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphPool {
    /// The pool.
    pub pool: PoolIndex,
    /// The number of its captures in the window.
    pub captures: u32,
    /// Its reserved bytes.
    pub reserved: Bytes,
    /// Bytes of its live blocks. The rest is idle between replays.
    pub live: Bytes,
}

/// What the captures after the first added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneMore {
    /// The number of these captures.
    pub captures: u32,
    /// Bytes that the pools reserved for each: the least, the median and the most.
    pub added: [Bytes; 3],
    /// Bytes that each kept: the least, the median and the most.
    pub kept: [Bytes; 3],
    /// Bytes that the pools reserved for the last.
    pub last: Bytes,
}

impl Ledger {
    /// The ledger of a device's window. `None` without a capture and without a KV cache.
    pub async fn of(cx: Evidence<'_>, budget: &mut Budget) -> Option<Self> {
        let memory = GraphMemory::of(cx, budget).await;
        let captures = captures(cx, &memory, budget).await;
        let slot = slot_of_reserved_peak(cx, budget).await;
        let caches = sums::caches(cx, slot, budget).await;
        if captures.is_empty() && caches.is_empty() {
            return None;
        }
        let end = cx.trace.slots() - 1;
        let wanted: Vec<(u32, PoolIndex)> =
            memory.pools().into_iter().map(|pool| (end, pool)).collect();
        let at_end = memory.at(cx, &wanted, budget).await;
        let mut counts: BTreeMap<PoolIndex, u32> = BTreeMap::new();
        for capture in captures.iter().filter(|capture| !capture.is_warm_up) {
            *counts.entry(capture.pool).or_default() += 1;
        }
        let pools: Vec<GraphPool> = (wanted.into_iter().zip(at_end))
            .map(|((_, pool), (reserved, live))| {
                let captures = counts.get(&pool).copied().unwrap_or(0);
                GraphPool { pool, captures, reserved, live }
            })
            .collect();
        // A cache from before the window leaves no profile run in it.
        let firsts: Option<Vec<u32>> =
            caches.iter().map(|of| of.first.map(|at| at.0 + 1)).collect();
        let first_cache = firsts.and_then(|firsts| firsts.into_iter().min());
        let (profile, work) = sums::activations(cx, &memory, first_cache, budget).await;
        Some(Self {
            one_more: OneMore::of(&captures),
            one_pool: None,
            workspaces: workspaces(cx, &memory, slot, budget).await,
            peak: LedgerSum::at(cx, slot, budget).await,
            end: LedgerSum::at(cx, end, budget).await,
            captures,
            pools,
            caches,
            profile,
            work,
        })
    }

    /// The pools that hold memory at the end. Several of them may be one.
    pub fn held_pools(&self) -> Vec<PoolIndex> {
        self.pools.iter().filter(|pool| pool.reserved.0 > 0).map(|pool| pool.pool).collect()
    }

    /// Fills [`Ledger::one_pool`] by a replay of the requests.
    pub async fn replay_in_one_pool(&mut self, model: &WhatIf, budget: &mut Budget) {
        let extents = extents(&self.captures);
        self.one_pool = model.in_one_pool(&self.held_pools(), &extents, budget).await;
    }
}

/// The first and last event of captures, and what they used.
pub(crate) fn extents(captures: &[Capture]) -> Vec<(EventIndex, EventIndex, Bytes)> {
    captures.iter().map(|of| (of.events.0, of.events.1, of.used)).collect()
}

impl OneMore {
    fn of(captures: &[Capture]) -> Option<Self> {
        let real: Vec<&Capture> = captures.iter().filter(|capture| !capture.is_warm_up).collect();
        let (_, later) = real.split_first()?;
        if real.len() < MIN_CAPTURES {
            return None;
        }
        let range = |bytes: &dyn Fn(&Capture) -> Bytes| {
            let mut all: Vec<Bytes> = later.iter().map(|capture| bytes(capture)).collect();
            all.sort_unstable();
            [all[0], all[all.len() / 2], all[all.len() - 1]]
        };
        Some(Self {
            captures: later.len() as u32,
            added: range(&|capture| capture.added),
            kept: range(&|capture| capture.kept),
            last: later[later.len() - 1].added,
        })
    }
}
