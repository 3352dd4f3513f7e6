//! Counts of blocks by size, among them the number of parameters.

use super::life::Verdict;
use super::window::Window;
use super::{Category, Phase};
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;

/// Smaller temporaries of an optimizer are scalars (norms, step counts), and not the size of a
/// parameter. Half or double of it changes no peak of 506 recordings.
pub(super) const MIN_PARAMETER_BYTES: u64 = 64;

/// Frozen weights have at least this many sizes. Masks of a model share one or two. Half or double
/// of it changes the peak of one of 31 recordings.
pub(super) const MIN_FROZEN_SIZES: usize = 3;

/// A line that makes the weights of a model, or a copy of them, makes at least this many blocks.
/// Half or double of it changes no peak of 674 recordings.
pub(super) const MIN_MODEL_BLOCKS: u32 = 8;

/// A count for every size in bytes.
#[derive(Default)]
pub(super) struct Counts(FxHashMap<u64, u32>);

impl Counts {
    pub(super) fn of(&self, size: u64) -> u32 {
        self.0.get(&size).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, size: u64) {
        *self.0.entry(size).or_default() += 1;
    }

    /// Raises the count of a size to at least `count`.
    pub(super) fn raise(&mut self, size: u64, count: u32) {
        let known = self.0.entry(size).or_default();
        *known = count.max(*known);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of sizes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Sizes with their counts, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.0.iter().map(|(&size, &count)| (size, count))
    }

    /// The sum of all counts.
    pub(super) fn all(&self) -> u32 {
        self.0.values().sum()
    }

    /// The bytes of the sizes for which `keep` holds.
    pub(super) fn bytes(&self, keep: impl Fn(u64, u32) -> bool) -> u128 {
        let kept = self.iter().filter(|&(size, count)| keep(size, count));
        kept.map(|(size, count)| u128::from(size) * u128::from(count)).sum()
    }
}

/// Cost of looking up the size of a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 2;

/// All blocks with their verdicts.
#[derive(Clone, Copy)]
pub(super) struct JudgedBlocks<'a> {
    pub(super) window: Window<'a>,
    pub(super) verdicts: &'a [Verdict],
}

impl JudgedBlocks<'_> {
    /// Calls `visit` for every block with its index and verdict.
    pub(super) async fn each(
        self,
        budget: &mut Budget,
        mut visit: impl FnMut(u32, &Block, Verdict) + Send,
    ) {
        let visit = |i, block: &Block| visit(i, block, self.verdicts[i as usize]);
        self.window.trace.each_block(COST_PER_BLOCK, budget, visit).await;
    }

    /// Whether backward passes keep no gradients beside the buckets in which gradients are reduced.
    pub(super) async fn buckets_hold_gradients(self, budget: &mut Budget) -> bool {
        let phases = self.window.phases;
        let mut probe: Option<u32> = None;
        let visit = |_, block: &Block, verdict| {
            if verdict == Verdict::Bucket
                && let alloc = block.alloc_event().map_or(0, |alloc| alloc.0)
                && let Some(backward) = phases.next_after(Phase::Backward, alloc)
            {
                // The last bucket is the one of most steps.
                probe = phases.span(backward).map(|span| phases.spans[span].end - 1);
            }
        };
        self.each(budget, visit).await;
        let Some(probe) = probe else { return false };
        let (mut buckets, mut gradients) = (0, 0);
        let visit = |_, block: &Block, verdict| {
            let is_live = block.enters <= probe + 1
                && self.window.free(block).is_none_or(|free| free >= probe);
            if is_live && verdict == Verdict::Bucket {
                buckets += block.bytes.0;
            } else if is_live && has_category(verdict, Category::Gradient) {
                gradients += block.bytes.0;
            }
        };
        self.each(budget, visit).await;
        2 * gradients < buckets
    }

    /// The stacks of [`Verdict::ProgramTensor`] that make many tensors of several sizes.
    pub(super) async fn program_stacks(self, budget: &mut Budget) -> FxHashSet<StackId> {
        let mut made: FxHashMap<StackId, (u32, FxHashSet<u64>)> = FxHashMap::default();
        let visit = |_, block: &Block, verdict| {
            if verdict == Verdict::ProgramTensor && block.stack != StackId::EMPTY {
                let (blocks, sizes) = made.entry(block.stack).or_default();
                *blocks += 1;
                sizes.insert(block.bytes.0);
            }
        };
        self.each(budget, visit).await;
        let of_model = made.into_iter().filter(|(_, (blocks, sizes))| {
            *blocks >= MIN_MODEL_BLOCKS && sizes.len() >= MIN_FROZEN_SIZES
        });
        of_model.map(|(stack, _)| stack).collect()
    }
}

pub(super) fn has_category(verdict: Verdict, category: Category) -> bool {
    matches!(verdict, Verdict::Final(guess) if guess.category == category)
}

/// Counts sizes by group, and keeps the largest count of each size.
#[derive(Default)]
struct GroupedCounts {
    /// Number of blocks by size and group.
    counts: FxHashMap<(u64, u32, u32), u32>,
    /// The largest count of each size in any group.
    largest: Counts,
}

impl GroupedCounts {
    fn add(&mut self, size: u64, group: (u32, u32)) {
        let count = self.counts.entry((size, group.0, group.1)).or_default();
        *count += 1;
        self.largest.raise(size, *count);
    }
}

/// The number of parameters by size.
///
/// Each gradient of a backward pass has a parameter of its size. So does each optimizer state that
/// one call stack allocates. For other sizes, and where the window cuts backward off, the
/// temporaries count that one call stack of an optimizer allocates in one step.
pub(super) async fn parameters(judged: JudgedBlocks<'_>, budget: &mut Budget) -> Counts {
    let phases = judged.window.phases;
    let (mut strong, mut weak) = (GroupedCounts::default(), GroupedCounts::default());
    let visit = |_, block: &Block, verdict| {
        let Verdict::Final(guess) = verdict else { return };
        let size = block.bytes.0;
        let period = || block.alloc_event().map_or(0, |event| phases.period(event.0));
        match guess.category {
            Category::Gradient => strong.add(size, (u32::MAX, period())),
            Category::OptimizerState => strong.add(size, (block.stack.0, period())),
            Category::Temporary
                if size >= MIN_PARAMETER_BYTES
                    && block.alloc_event().is_some()
                    && judged.window.stack(block).phase() == Some(Phase::Optimizer) =>
            {
                weak.add(size, (block.stack.0, period()));
            }
            _ => {}
        }
    };
    judged.each(budget, visit).await;
    let mut counts = strong.largest;
    for (size, count) in weak.largest.iter() {
        // The window may show a part of the gradients only.
        if counts.of(size) == 0 || !phases.has_whole_backward() {
            counts.raise(size, count);
        }
    }
    counts
}
