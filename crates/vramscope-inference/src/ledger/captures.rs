//! Captures of CUDA graphs: what each added to its pool, used of it and left in it.

use super::Capture;
use super::told::{TELLS_NOTHING, Tellers, ToldBy};
use crate::evidence::{Evidence, is_graph_pool};
use crate::what_if::PrivateSpans;
use std::collections::{BTreeMap, BTreeSet};
use vramscope_snapshot::{PoolIndex, StackId};
use vramscope_trace::slicing::{Budget, STRIDE, strides};
use vramscope_trace::{Block, Span};
use vramscope_units::{Bytes, EventIndex};

/// A block of a pool of CUDA graphs.
#[derive(Clone, Copy)]
struct GraphBlock {
    /// Index into [`Trace::blocks`](vramscope_trace::Trace).
    block: u32,
    pool: PoolIndex,
    /// The slot in which its span enters.
    reserved_at: u32,
}

/// The blocks and reservations of the pools of CUDA graphs.
pub(crate) struct GraphMemory<'a> {
    /// Blocks by index.
    blocks: Vec<GraphBlock>,
    /// Reservations, in the order of [`Span::enters`].
    spans: Vec<&'a Span>,
}

impl<'a> GraphMemory<'a> {
    pub(crate) async fn of(cx: Evidence<'a>, budget: &mut Budget) -> Self {
        let private = PrivateSpans::of(cx.snapshot, cx.carving);
        let spans = cx.carving.segments.spans.iter();
        budget.charge(8 * spans.len() as u64).await;
        let spans = spans.filter(|span| is_graph_pool(cx.snapshot, span.pool, span.stream));
        let mut memory = Self { blocks: Vec::new(), spans: spans.collect() };
        let mut by_address = memory.spans.clone();
        by_address.sort_by_key(|span| (span.address, span.enters));
        let visit = |index, block: &Block| {
            let number = private.pool(cx.snapshot, block.pool, block.address.0, block.enters);
            let pool = PoolIndex(number.saturating_sub(1) as u16);
            if number == 0 || !is_graph_pool(cx.snapshot, pool, block.stream) {
                return;
            }
            let until = by_address.partition_point(|span| span.address <= block.address);
            let near = by_address[..until].iter().rev();
            let span = near
                .take_while(|span| block.address.0 < span.end())
                .find(|span| span.is_reserved_at(block.enters));
            let reserved_at = span.map_or(0, |span| span.enters);
            memory.blocks.push(GraphBlock { block: index, pool, reserved_at });
        };
        cx.trace.each_block(4, budget, visit).await;
        memory
    }

    /// The pool of a block; `None` if it is not of a graph.
    fn get(&self, block: u32) -> Option<&GraphBlock> {
        self.blocks.binary_search_by_key(&block, |of| of.block).ok().map(|at| &self.blocks[at])
    }

    /// Whether a block is in a pool of graphs.
    pub(crate) fn contains(&self, block: u32) -> bool {
        self.get(block).is_some()
    }

    /// The pools, in the order in which they appear.
    pub(crate) fn pools(&self) -> Vec<PoolIndex> {
        let mut seen = BTreeSet::new();
        self.spans.iter().map(|span| span.pool).filter(|pool| seen.insert(*pool)).collect()
    }

    /// Reserved and active bytes of pools, each in a slot.
    pub(crate) async fn at(
        &self,
        cx: Evidence<'_>,
        wanted: &[(u32, PoolIndex)],
        budget: &mut Budget,
    ) -> Vec<(Bytes, Bytes)> {
        // Slot, pool, change of the reserved bytes and of the active ones.
        let mut changes: Vec<(u32, PoolIndex, i64, i64)> = Vec::new();
        budget.charge(16 * (self.spans.len() + self.blocks.len() + wanted.len()) as u64).await;
        for span in &self.spans {
            let size = i64::try_from(span.size.0).unwrap_or(0);
            changes.push((span.enters, span.pool, size, 0));
            changes.push((span.leaves, span.pool, -size, 0));
        }
        for of in &self.blocks {
            let block = &cx.trace.blocks[of.block as usize];
            let size = i64::try_from(cx.carving.sizes[of.block as usize].0).unwrap_or(0);
            changes.push((block.enters, of.pool, 0, size));
            changes.push((block.leaves, of.pool, 0, -size));
        }
        changes.sort_unstable_by_key(|change| change.0);
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_by_key(|&at| wanted[at].0);
        let mut now: BTreeMap<PoolIndex, (i64, i64)> = BTreeMap::new();
        let mut found = vec![(Bytes(0), Bytes(0)); wanted.len()];
        let mut changes = changes.into_iter().peekable();
        for at in order {
            let (slot, pool) = wanted[at];
            while let Some((_, pool, reserved, active)) = changes.next_if(|of| of.0 <= slot) {
                let sum = now.entry(pool).or_default();
                *sum = (sum.0.saturating_add(reserved), sum.1.saturating_add(active));
            }
            let (reserved, active) = now.get(&pool).copied().unwrap_or_default();
            found[at] = (Bytes(reserved.max(0) as u64), Bytes(active.max(0) as u64));
        }
        found
    }
}

/// The allocations of one capture.
struct Run {
    pool: PoolIndex,
    /// The slot of the last allocation before it, of any pool.
    after: u32,
    told_by: ToldBy,
    is_warm_up: bool,
    blocks: Vec<u32>,
}

/// All captures of a window, in order. A run of allocations in one pool is one capture, unless
/// stacks or sizes show several.
pub(crate) async fn captures(
    cx: Evidence<'_>,
    memory: &GraphMemory<'_>,
    budget: &mut Budget,
) -> Vec<Capture> {
    let runs = runs(cx, memory, budget).await;
    // Slots of all allocations, to find where a capture ends.
    let mut allocs: Vec<u32> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        allocs.extend(cx.trace.blocks[part].iter().map(|block| block.enters).filter(|&at| at > 0));
    }
    allocs.sort_unstable();
    let mut captures = Vec::with_capacity(runs.len());
    for run in &runs {
        budget.charge(8 * run.blocks.len() as u64).await;
        captures.push(capture(cx, memory, run, &allocs));
    }
    let wanted: Vec<(u32, PoolIndex)> =
        captures.iter().map(|capture| (capture.events.1.0 + 1, capture.pool)).collect();
    let found = memory.at(cx, &wanted, budget).await;
    for (capture, (reserved, live)) in captures.iter_mut().zip(found) {
        (capture.reserved, capture.live) = (reserved, live);
    }
    captures
}

async fn runs(cx: Evidence<'_>, memory: &GraphMemory<'_>, budget: &mut Budget) -> Vec<Run> {
    let tellers = Tellers::of(cx, budget).await;
    let enters = |block: u32| cx.trace.blocks[block as usize].enters;
    let mut others: Vec<u32> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let blocks = part.map(|index| index as u32).filter(|&index| !memory.contains(index));
        others.extend(blocks.map(enters).filter(|&at| at > 0));
    }
    others.sort_unstable();
    let mut of_graphs: Vec<GraphBlock> =
        memory.blocks.iter().copied().filter(|of| enters(of.block) > 0).collect();
    of_graphs.sort_by_key(|of| enters(of.block));
    let mut seen: BTreeSet<PoolIndex> = BTreeSet::new();
    let mut runs: Vec<Run> = Vec::new();
    // The slot and the teller of the last allocation in a pool of graphs.
    let mut last = (0, TELLS_NOTHING);
    for part in of_graphs.chunks(STRIDE) {
        budget.charge(8 * part.len() as u64).await;
        for &GraphBlock { block, pool, .. } in part {
            let (slot, stack) = (enters(block), cx.trace.blocks[block as usize].stack);
            let teller = tellers.of_stack(stack);
            let between = others.partition_point(|&at| at < slot);
            let other = between.checked_sub(1).map_or(0, |at| others[at]);
            let told_by = if seen.insert(pool) {
                Some(ToldBy::Pool)
            } else if tellers.begins(last, (slot, teller)) {
                Some(ToldBy::Stack)
            } else if other > last.0 || runs.last().is_none_or(|run| run.pool != pool) {
                Some(ToldBy::Others)
            } else {
                None
            };
            match (told_by, runs.last_mut()) {
                (None, Some(run)) => run.blocks.push(block),
                (told_by, _) => runs.push(Run {
                    pool,
                    after: other.max(last.0),
                    told_by: told_by.unwrap_or(ToldBy::Pool),
                    is_warm_up: teller.is_warm_up(),
                    blocks: vec![block],
                }),
            }
            last = (slot, teller);
        }
    }
    runs.into_iter().flat_map(|run| by_repetition(cx, run)).collect()
}

/// The captures of a run, where it repeats one sequence of call stacks with other sizes. Layers of
/// one model repeat stacks with equal sizes.
fn by_repetition(cx: Evidence<'_>, run: Run) -> Vec<Run> {
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let first = block(run.blocks[0]).stack;
    let begins = run.blocks.iter().filter(|&&index| block(index).stack == first).count();
    if first == StackId::EMPTY || begins < 2 || !run.blocks.len().is_multiple_of(begins) {
        return vec![run];
    }
    let parts: Vec<&[u32]> = run.blocks.chunks(run.blocks.len() / begins).collect();
    let stacks = |part: &[u32]| part.iter().map(|&index| block(index).stack).collect::<Vec<_>>();
    let bytes = |part: &[u32]| part.iter().map(|&index| block(index).bytes.0).sum::<u64>();
    let repeats = parts
        .windows(2)
        .all(|pair| stacks(pair[0]) == stacks(pair[1]) && bytes(pair[0]) != bytes(pair[1]));
    if !repeats {
        return vec![run];
    }
    let mut after = run.after;
    let mut captures = Vec::with_capacity(parts.len());
    for (at, part) in parts.into_iter().enumerate() {
        let told_by = if at == 0 { run.told_by } else { ToldBy::Repetition };
        captures.push(Run { after, told_by, blocks: part.to_vec(), ..run });
        after = part.last().map_or(after, |&index| block(index).enters);
    }
    captures
}

fn capture(cx: Evidence<'_>, memory: &GraphMemory<'_>, run: &Run, allocs: &[u32]) -> Capture {
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let size = |index: u32| cx.carving.sizes[index as usize].0;
    let (first, last) =
        (block(run.blocks[0]).enters, block(run.blocks[run.blocks.len() - 1]).enters);
    // What a capture frees leaves before the next allocation of any pool, and before what is
    // reserved for that.
    let next = allocs.get(allocs.partition_point(|&at| at <= last)).copied();
    let spans = &cx.carving.segments.spans;
    let reservation = spans.get(spans.partition_point(|span| span.enters <= last));
    let next = next.into_iter().chain(reservation.map(|span| span.enters)).min();
    let end = next.unwrap_or(cx.trace.slots()) - 1;
    let from = memory.spans.partition_point(|span| span.enters <= run.after);
    let is_new = |span: &&&Span| span.enters <= last;
    let new = memory.spans[from..].iter().take_while(is_new).filter(|span| span.pool == run.pool);
    // Blocks of this capture that lie in what the pool had.
    let is_old = |index: u32| memory.get(index).is_some_and(|of| of.reserved_at <= run.after);
    let old_blocks = run.blocks.iter().copied().filter(|&index| is_old(index));
    let kept: Vec<u32> =
        run.blocks.iter().copied().filter(|&index| block(index).is_live_at(end)).collect();
    let stacks: BTreeSet<StackId> = run.blocks.iter().map(|&index| block(index).stack).collect();
    Capture {
        pool: run.pool,
        is_warm_up: run.is_warm_up,
        told_by: run.told_by,
        events: (EventIndex(first - 1), EventIndex(end.max(1) - 1)),
        at: cx.shared_frames(stacks.into_iter()).last().copied(),
        allocations: run.blocks.len() as u32,
        added: Bytes(new.map(|span| span.size.0).sum()),
        used: Bytes(most_at_once(cx, run.blocks.iter().copied())),
        reused: Bytes(most_at_once(cx, old_blocks)),
        kept: Bytes(kept.iter().map(|&index| size(index)).sum()),
        largest_kept: kept.into_iter().max_by_key(|&index| (size(index), u32::MAX - index)),
        reserved: Bytes(0),
        live: Bytes(0),
    }
}

impl GraphMemory<'_> {
    /// The most bytes that are live in all pools at once.
    pub(crate) async fn most_live(&self, cx: Evidence<'_>, budget: &mut Budget) -> Bytes {
        budget.charge(8 * self.blocks.len() as u64).await;
        Bytes(most_at_once(cx, self.blocks.iter().map(|of| of.block)))
    }
}

/// The most bytes that blocks have at once.
fn most_at_once(cx: Evidence<'_>, blocks: impl Iterator<Item = u32>) -> u64 {
    let mut changes: Vec<(u32, bool, u64)> = Vec::new();
    for index in blocks {
        let (block, size) = (&cx.trace.blocks[index as usize], cx.carving.sizes[index as usize].0);
        // What leaves in a slot leaves first.
        changes.extend([(block.enters, true, size), (block.leaves, false, size)]);
    }
    changes.sort_unstable();
    let (mut now, mut most) = (0u64, 0);
    for (_, enters, size) in changes {
        now = if enters { now.saturating_add(size) } else { now.saturating_sub(size) };
        most = most.max(now);
    }
    most
}
