//! Evidence from all blocks of one call stack.

use super::Phase;
use super::life::{MAX_OPERATION_EVENTS, free_event};
use super::phases::Phases;
use super::stacks::StackHints;
use rustc_hash::FxHashSet;
use vramscope_snapshot::StackId;
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, STRIDE, filled};

/// What the blocks of one call stack, allocated in the window, show together.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the facts do not depend on each other")]
pub(super) struct Group {
    /// Whether some blocks were freed in the period that allocated them.
    pub(super) has_brief: bool,
    /// Whether a block that was allocated between two backward passes was never freed.
    pub(super) keeps_later: bool,
    /// Whether blocks outlive the third allocation round after their own. A batch does not.
    pub(super) accumulates: bool,
    /// Whether each block replaces a smaller one, by the same number of bytes each time.
    pub(super) grows: bool,
    /// Whether several blocks of each size are live at once while they grow: keys and values.
    pub(super) grows_in_pairs: bool,
    /// Whether there are several blocks of one size, allocated at one time and never freed.
    pub(super) is_pool: bool,
    /// Whether the program allocates another block beside, which only lives for one round.
    pub(super) has_batch_beside: bool,
}

/// Number of equal growths that prove a series.
const MIN_GROWTHS: u32 = 4;

/// Smallest growth of a cache for keys and values, in bytes. Token numbers grow by less.
const MIN_GROWTH_BYTES: u64 = 1 << 10;

/// Smallest block of a pool, in bytes.
const MIN_POOL_BYTES: u64 = 1 << 20;

/// Number of rounds that no batch outlives.
const MAX_BATCH_ROUNDS: usize = 3;

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 8;

/// The series of one stack, while its blocks are read in order.
#[derive(Clone, Default)]
struct Series {
    /// First allocation of each round. Allocations between the same two forward passes are one.
    rounds: Vec<u32>,
    /// Round of the last allocation.
    round: Option<u32>,
    bytes: u64,
    /// Number of blocks of the current size.
    same: u32,
    growth: u64,
    growths: u32,
    /// The fewest blocks of one size within a series of growths.
    fewest: u32,
    blocks: u32,
    kept: u32,
    /// Whether all blocks have the size of the first.
    has_sizes: bool,
}

impl Series {
    fn add(&mut self, alloc: u32, round: u32, bytes: u64, group: &mut Group) {
        if self.rounds.is_empty() || self.round != Some(round) {
            self.rounds.push(alloc);
            self.round = Some(round);
        }
        self.has_sizes |= self.blocks > 0 && self.bytes != bytes;
        self.blocks += 1;
        if self.blocks == 1 || bytes < self.bytes {
            (self.growths, self.growth, self.fewest, self.same) = (0, 0, u32::MAX, 1);
        } else if bytes == self.bytes {
            self.same += 1;
        } else {
            let growth = bytes - self.bytes;
            self.growths = if growth == self.growth { self.growths + 1 } else { 1 };
            self.growth = growth;
            self.fewest = self.fewest.min(self.same);
            self.same = 1;
            if self.growths >= MIN_GROWTHS && growth >= MIN_GROWTH_BYTES {
                group.grows = true;
                group.grows_in_pairs |= self.fewest >= 2 && self.fewest != u32::MAX;
            }
        }
        self.bytes = bytes;
    }
}

/// The evidence of every call stack, by [`vramscope_snapshot::StackId`].
pub(super) async fn groups(
    trace: &Trace,
    hints: &[StackHints],
    phases: &Phases,
    budget: &mut Budget,
) -> Vec<Group> {
    let slots = trace.slots();
    let mut groups = filled(Group::default(), hints.len(), budget).await;
    budget.charge(hints.len() as u64).await;
    let mut series: Vec<Series> = vec![Series::default(); hints.len()];
    let round = |alloc: u32| phases.last_before(Phase::Forward, alloc).unwrap_or(u32::MAX);
    let first_backward = phases.next_after(Phase::Backward, 0).unwrap_or(u32::MAX);
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64 * COST_PER_BLOCK).await;
        for block in blocks {
            let Some(alloc) = block.alloc_event() else { continue };
            let (group, series) =
                (&mut groups[block.stack.0 as usize], &mut series[block.stack.0 as usize]);
            match free_event(block, slots) {
                None => {
                    group.keeps_later |= alloc.0 > first_backward
                        && phases.next_after(Phase::Backward, alloc.0).is_some();
                    series.kept += 1;
                }
                Some(free) => {
                    let period_end = phases.period_end(alloc.0);
                    group.has_brief |= period_end.is_none_or(|end| free < end);
                    if free - alloc.0 <= MAX_OPERATION_EVENTS {
                        // A temporary is no part of a series.
                        continue;
                    }
                }
            }
            if block.stack == StackId::EMPTY {
                continue;
            }
            series.add(alloc.0, round(alloc.0), block.bytes.0, group);
        }
    }
    for (group, series) in groups.iter_mut().zip(&series) {
        group.is_pool = series.blocks >= 2
            && series.kept == series.blocks
            && !series.has_sizes
            && series.rounds.len() == 1
            && series.bytes >= MIN_POOL_BYTES;
    }
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64 * COST_PER_BLOCK).await;
        for block in blocks {
            let Some(alloc) = block.alloc_event() else { continue };
            let rounds = &series[block.stack.0 as usize].rounds;
            let next = rounds.partition_point(|&first| first <= alloc.0);
            let third = rounds.get(next + MAX_BATCH_ROUNDS - 1);
            groups[block.stack.0 as usize].accumulates |= third
                .is_some_and(|&third| free_event(block, slots).is_none_or(|free| free > third));
        }
    }
    mark_batches(trace, hints, phases, &mut groups, budget).await;
    groups
}

/// Finds the rounds with a batch, and marks the stacks that allocate in such rounds too.
async fn mark_batches(
    trace: &Trace,
    hints: &[StackHints],
    phases: &Phases,
    groups: &mut [Group],
    budget: &mut Budget,
) {
    let mut rounds: FxHashSet<u32> = FxHashSet::default();
    for is_marking in [false, true] {
        for blocks in trace.blocks.chunks(STRIDE) {
            budget.charge(blocks.len() as u64 * COST_PER_BLOCK).await;
            for block in blocks {
                let Some(alloc) = block.alloc_event() else { continue };
                let stack = block.stack.0 as usize;
                let is_series = groups[stack].accumulates || groups[stack].grows;
                let round = phases.last_before(Phase::Forward, alloc.0).unwrap_or(u32::MAX);
                if is_marking {
                    groups[stack].has_batch_beside |= is_series && rounds.contains(&round);
                } else if !is_series
                    && phases.of_alloc(alloc.0, hints[stack]) == Some(Phase::Other)
                    && let Some(forward) = phases.next_after(Phase::Forward, alloc.0)
                    && free_event(block, trace.slots()).is_none_or(|free| free > forward)
                {
                    rounds.insert(round);
                }
            }
        }
    }
}
