//! Evidence from all blocks of one call stack.

use super::Phase;
use super::window::{MAX_OPERATION_EVENTS, MIN_BYTES, Window};
use rustc_hash::FxHashSet;
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, filled};

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
    /// Whether blocks of one size are live at once that one pass allocates, or three of any passes:
    /// one for each layer. A variable holds one, and the next one while that is assigned.
    pub(super) is_of_layers: bool,
    /// Whether blocks that grow by any number of bytes take the place of older ones at once.
    pub(super) grows_in_turn: bool,
    /// Whether some blocks were allocated before the first forward pass of the window.
    pub(super) leads: bool,
    /// Whether some blocks were allocated after a backward pass or an update, before the next
    /// forward pass.
    pub(super) starts_steps: bool,
    /// Whether some blocks live when a forward pass begins after them.
    pub(super) feeds: bool,
    /// Whether the blocks are freed in the order of their allocation while younger ones stay.
    pub(super) is_queue: bool,
    /// Whether there are several blocks of one size, allocated at one time and never freed.
    pub(super) is_pool: bool,
    /// Whether the program allocates another block beside, which only lives for one round.
    pub(super) has_batch_beside: bool,
}

/// Number of equal growths, or of frees in order, that prove a series. Half of it changes the peak
/// of 5 of 674 recordings, double of it of none.
const MIN_GROWTHS: u32 = 4;

/// Number of blocks that must take the place of an older one, for a cache that grows unevenly. With
/// half of it, blocks of seven recordings that come and go are caches.
const MIN_REPLACED: u32 = 8;

/// Smallest block of a pool of keys and values, in bytes. Half or double of it changes no
/// peak of 301 recordings.
pub(super) const MIN_POOL_BYTES: u64 = 1 << 20;

/// Number of rounds that no batch outlives. Half of it changes the peak of 300 of 648
/// recordings, double of it of 5.
const MAX_BATCH_ROUNDS: usize = 3;

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 8;

/// The series of one stack, while its blocks are read in order.
#[derive(Clone, Default)]
struct Series {
    /// First allocation of each round. Allocations between the same two forward passes are one.
    rounds: Vec<u32>,
    /// Period and free of the last two blocks of the current size.
    beside: [Option<(u32, u32)>; 2],
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
    /// Frees of the blocks of the last size, of those before, and how many were looked at.
    frees: [Vec<u32>; 2],
    /// Number of growths by any number of bytes, with as many blocks of each size.
    uneven_growths: u32,
    /// The fewest blocks of one size.
    fewest_turns: usize,
    /// Number of blocks after which the block of their turn was freed at once.
    replaced: u32,
    /// The last free, and the number of frees in order.
    last_free: u32,
    frees_in_order: u32,
    frees_out_of_order: u32,
}

/// Number of blocks of a size whose frees are compared with those of the next size, which
/// bounds the memory of a series.
const MAX_TURNS: usize = 256;

impl Series {
    /// Counts a block of a cache whose sizes grow by any number of bytes.
    ///
    /// Each block of a layer takes the place of the layer's last one. A forward pass that keeps its
    /// graph frees the old blocks later.
    fn add_turn(&mut self, alloc: u32, free: u32, bytes: u64, group: &mut Group) {
        if self.blocks > 0 && bytes != self.bytes {
            let [last, before] = &mut self.frees;
            let (most, least) = (last.len().max(before.len()), last.len().min(before.len()));
            let is_even = before.is_empty() || most % least.max(1) == 0;
            if is_even {
                // A size that is no larger starts a sequence, or some tokens were dropped.
                self.uneven_growths += u32::from(bytes > self.bytes);
                self.fewest_turns = self.fewest_turns.min(last.len());
            } else {
                (self.uneven_growths, self.replaced, self.fewest_turns) = (0, 0, usize::MAX);
            }
            std::mem::swap(last, before);
            last.clear();
        }
        let [last, before] = &mut self.frees;
        let old = before.get(last.len()).copied();
        self.replaced +=
            u32::from(old.is_some_and(|old| old > alloc && old - alloc <= MAX_OPERATION_EVENTS));
        if last.len() < MAX_TURNS {
            last.push(free);
        }
        if self.uneven_growths >= MIN_GROWTHS && self.replaced >= MIN_REPLACED && bytes >= MIN_BYTES
        {
            group.grows_in_turn = true;
            group.grows_in_pairs |= self.fewest_turns >= 2 && self.fewest_turns < MAX_TURNS;
        }
    }

    /// Looks for blocks of layers, one live beside the other.
    fn add_layer(&mut self, alloc: u32, period: u32, free: u32, bytes: u64, group: &mut Group) {
        if bytes != self.bytes {
            self.beside = [None; 2];
        }
        let [before, last] = self.beside.map(|of| of.filter(|(_, free)| *free > alloc));
        group.is_of_layers |= last.is_some_and(|(other, _)| other == period || before.is_some());
        self.beside = [last, Some((period, free))];
    }

    /// Counts a free, in the order of the allocations.
    fn add_free(&mut self, free: Option<u32>) {
        match free {
            Some(free) if free >= self.last_free && self.kept == 0 => {
                self.frees_in_order += u32::from(free > self.last_free);
                self.last_free = free;
            }
            Some(_) => self.frees_out_of_order += 1,
            None => self.kept += 1,
        }
    }

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
            if self.growths >= MIN_GROWTHS && growth >= MIN_BYTES {
                group.grows = true;
                group.grows_in_pairs |= self.fewest >= 2 && self.fewest != u32::MAX;
            }
        }
        self.bytes = bytes;
    }
}

/// The evidence of every call stack, by [`vramscope_snapshot::StackId`].
pub(super) async fn groups(window: Window<'_>, budget: &mut Budget) -> Vec<Group> {
    let phases = window.phases;
    let mut groups = filled(Group::default(), window.stacks.len(), budget).await;
    budget.charge(groups.len() as u64).await;
    let mut series: Vec<Series> =
        vec![Series { fewest_turns: usize::MAX, ..Series::default() }; groups.len()];
    let round = |alloc: u32| phases.last_before(Phase::Forward, alloc).unwrap_or(u32::MAX);
    let first_forward = phases.next_after(Phase::Forward, 0).map(|forward| forward.max(1));
    let first_backward = phases.next_after(Phase::Backward, 0).unwrap_or(u32::MAX);
    let visit = |_, block: &Block, alloc| {
        let stack = block.stack.0 as usize;
        let (group, series) = (&mut groups[stack], &mut series[stack]);
        let free = window.free(block);
        group.leads |= first_forward.is_none_or(|forward| alloc < forward);
        let boundary = phases
            .last_before(Phase::Backward, alloc)
            .max(phases.last_before(Phase::Optimizer, alloc));
        group.starts_steps |= boundary > phases.last_before(Phase::Forward, alloc);
        let forward = phases.next_after(Phase::Forward, alloc);
        group.feeds |= forward.is_some_and(|forward| window.outlives(block, forward));
        match free {
            None => {
                group.keeps_later |=
                    alloc > first_backward && phases.next_after(Phase::Backward, alloc).is_some();
            }
            Some(free) => {
                group.has_brief |= phases.period_end(alloc).is_none_or(|end| free < end);
            }
        }
        if block.stack == StackId::EMPTY {
            return;
        }
        series.add_free(free);
        // A temporary is no part of a series.
        if !window.is_brief(block) {
            let end = free.unwrap_or(u32::MAX);
            series.add_layer(alloc, phases.period(alloc), end, block.bytes.0, group);
            series.add_turn(alloc, end, block.bytes.0, group);
            series.add(alloc, round(alloc), block.bytes.0, group);
        }
    };
    window.each_alloc(COST_PER_BLOCK, budget, visit).await;
    for (group, series) in groups.iter_mut().zip(&series) {
        group.is_queue = series.frees_in_order >= MIN_GROWTHS
            && series.frees_out_of_order == 0
            && series.kept >= 2;
        group.is_pool = series.blocks >= 2
            && series.kept == series.blocks
            && !series.has_sizes
            && series.rounds.len() == 1
            && series.bytes >= MIN_POOL_BYTES;
    }
    let visit = |_, block: &Block, alloc| {
        let rounds = &series[block.stack.0 as usize].rounds;
        let next = rounds.partition_point(|&first| first <= alloc);
        let third = rounds.get(next + MAX_BATCH_ROUNDS - 1);
        groups[block.stack.0 as usize].accumulates |=
            third.is_some_and(|&third| window.outlives(block, third));
    };
    window.each_alloc(COST_PER_BLOCK, budget, visit).await;
    // Rounds with a batch.
    let mut batches: FxHashSet<u32> = FxHashSet::default();
    let visit = |_, block: &Block, alloc| {
        let group = &groups[block.stack.0 as usize];
        if !group.accumulates
            && !group.grows
            && window.phase(block) == Some(Phase::Other)
            && let Some(forward) = phases.next_after(Phase::Forward, alloc)
            && window.outlives(block, forward)
        {
            batches.insert(round(alloc));
        }
    };
    window.each_alloc(COST_PER_BLOCK, budget, visit).await;
    let visit = |_, block: &Block, alloc| {
        let group = &mut groups[block.stack.0 as usize];
        group.has_batch_beside |=
            (group.accumulates || group.grows) && batches.contains(&round(alloc));
    };
    window.each_alloc(COST_PER_BLOCK, budget, visit).await;
    groups
}
