//! The states of optimizers, among the blocks that their updates allocate.

use super::counts::MIN_PARAMETER_BYTES;
use super::window::Window;
use super::{Category, Phase};
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::{StackId, StrId};
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 12;

/// The blocks that updates of a window keep.
#[derive(Default)]
pub(super) struct Updates {
    /// Blocks that an optimizer allocates and keeps, by span and size.
    replacements: FxHashMap<(usize, u64), u32>,
    /// The most blocks of a stack and size that a whole update kept, and that the last one keeps.
    kept: FxHashMap<(StackId, u64), [u32; 2]>,
    /// Spans and files of optimizers whose own function for it made states there.
    makes_states: FxHashSet<(usize, StrId)>,
}

impl Updates {
    pub(super) async fn new(window: Window<'_>, budget: &mut Budget) -> Self {
        let mut updates = Self::default();
        // The span of the last block of a stack and size.
        let mut last_span: FxHashMap<(StackId, u64), usize> = FxHashMap::default();
        let visit = |_, block: &Block, alloc| {
            if window.phase(block) != Some(Phase::Optimizer) {
                return;
            }
            let Some(span) = window.phases.span(alloc) else { return };
            let (end, size) = (window.phases.spans[span].end, block.bytes.0);
            let makes_state = window.stack(block).built_in_rule == Some(Category::OptimizerState);
            if makes_state && size >= MIN_PARAMETER_BYTES {
                updates.makes_states.extend(window.file(block).map(|file| (span, file)));
            }
            if window.free(block).is_none_or(|free| free >= end) {
                *updates.replacements.entry((span, size)).or_default() += 1;
                let key = (block.stack, size);
                let [most, last] = updates.kept.entry(key).or_default();
                if last_span.insert(key, span).is_some_and(|before| before != span) {
                    *most = (*last).max(*most);
                    *last = 0;
                }
                *last += 1;
            }
        };
        window.each_alloc(COST_PER_BLOCK, budget, visit).await;
        updates
    }

    /// Whether an update keeps a block of a size in place of one that it frees. Each block counts
    /// once.
    pub(super) fn take_replacement(&mut self, span: usize, size: u64) -> bool {
        let left = self.replacements.get_mut(&(span, size)).filter(|count| **count > 0);
        left.map(|count| *count -= 1).is_some()
    }

    /// Whether the last update keeps as many blocks of a stack and size as each before: state that
    /// is replaced.
    pub(super) fn are_replaced(&self, block: &Block) -> bool {
        let key = (block.stack, block.bytes.0);
        let [most, last] = self.kept.get(&key).copied().unwrap_or_default();
        (1..=most).contains(&last)
    }

    /// Whether the optimizer's own function for it made states in the span of an allocation.
    pub(super) fn makes_states_elsewhere(
        &self,
        window: Window<'_>,
        block: &Block,
        alloc: u32,
    ) -> bool {
        let key = window.phases.span(alloc).zip(window.file(block));
        key.is_some_and(|key| self.makes_states.contains(&key))
    }
}
