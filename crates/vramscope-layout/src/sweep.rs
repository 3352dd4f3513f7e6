//! The stack's live bytes at one state, moved along the trace.

use crate::merge_threshold::MergeThreshold;
use crate::sumtree::{LEAF_BLOCKS, StackPiece, SumTree};
use vramscope_analysis::Trace;
use vramscope_analysis::slicing::{Budget, STRIDE, run_to_completion};

/// Live bytes by block at one state of a trace.
#[derive(Clone)]
pub(crate) struct Sweep {
    tree: SumTree,
    state: u32,
    /// For each leaf of the tree, the first state from which all of its blocks are freed. From that
    /// state on the leaf is skipped.
    freed_by: Vec<u32>,
    /// Scratch space of [`Sweep::seek`]: the blocks that are live in only one of the two states.
    toggled: Vec<u32>,
}

/// The cost of a [`Sweep::seek`], and how much of the stack it left unchanged.
pub(crate) struct Moved {
    /// Up to this height in bytes a walk emits the same pieces as before the move. See
    /// [`SumTree::unchanged_below`] for the exception at the edge.
    pub(crate) unchanged_below: u64,
    /// Changes of the trace that were read. After a rebuild: the number of leaves.
    pub(crate) changes: u64,
    /// Tree nodes that were recomputed.
    pub(crate) updates: u64,
}

impl Sweep {
    pub(crate) async fn new(trace: &Trace, budget: &mut Budget) -> Self {
        let mut freed_by = Vec::with_capacity(trace.blocks.len().div_ceil(LEAF_BLOCKS));
        for blocks in trace.blocks.chunks(STRIDE) {
            budget.charge(blocks.len() as u64 / 2).await;
            freed_by.extend(
                blocks
                    .chunks(LEAF_BLOCKS)
                    .map(|leaf| leaf.iter().map(|b| b.leaves).max().unwrap_or(0)),
            );
        }
        let tree = SumTree::new(trace.blocks.len(), budget).await;
        let mut sweep = Self { tree, state: 0, freed_by, toggled: Vec::new() };
        sweep.rebuild_at(trace, 0, budget).await;
        sweep
    }

    /// Moves to `state`. Applies the changes in between when they are few, and rebuilds the tree
    /// otherwise. Blocks that are live in neither state are read but not applied.
    pub(crate) fn seek(&mut self, trace: &Trace, state: u32, threshold: &MergeThreshold) -> Moved {
        let (first, last) = (self.state.min(state), self.state.max(state));
        let changes = trace.changes_in(first + 1..last + 1);
        if changes.len() > self.freed_by.len() {
            run_to_completion(self.rebuild_at(trace, state, &mut Budget::unlimited()));
            return Moved {
                unchanged_below: 0,
                changes: self.freed_by.len() as u64,
                updates: 2 * self.freed_by.len() as u64,
            };
        }
        self.toggled.clear();
        self.toggled.extend(changes.iter().filter_map(|change| {
            let block = &trace.blocks[change.block() as usize];
            let differs = if change.enters() { block.leaves > last } else { block.enters <= first };
            differs.then(|| change.block())
        }));
        self.toggled.sort_unstable();
        let unchanged_below = |tree: &SumTree| {
            self.toggled.first().map_or(u64::MAX, |&lowest| tree.unchanged_below(lowest, threshold))
        };
        let before = unchanged_below(&self.tree);
        let updates = self.tree.toggle(&self.toggled, &|block| block_bytes(trace, block));
        self.state = state;
        Moved {
            unchanged_below: before.min(unchanged_below(&self.tree)),
            changes: changes.len() as u64,
            updates,
        }
    }

    /// Recomputes the whole tree for `state`.
    async fn rebuild_at(&mut self, trace: &Trace, state: u32, budget: &mut Budget) {
        let live_mask = |leaf: usize| {
            let from = leaf * LEAF_BLOCKS;
            // Blocks are ordered by `enters`. Those from before the window come first, with 0.
            let is_empty = self.freed_by.get(leaf).is_none_or(|&last| last <= state)
                || trace.blocks[from].enters > state;
            if is_empty {
                return 0;
            }
            let blocks = &trace.blocks[from..trace.blocks.len().min(from + LEAF_BLOCKS)];
            blocks
                .iter()
                .rev()
                .fold(0, |mask, b| mask << 1 | u16::from(b.enters <= state && state < b.leaves))
        };
        self.tree.fill(live_mask, |block| block_bytes(trace, block), budget).await;
        self.state = state;
    }

    /// See [`SumTree::walk`].
    pub(crate) fn walk(
        &self,
        trace: &Trace,
        low: u64,
        high: u64,
        threshold: &MergeThreshold,
        emit: &mut dyn FnMut(StackPiece),
    ) -> u64 {
        self.tree.walk(low, high, threshold, &|block| block_bytes(trace, block), emit)
    }
}

fn block_bytes(trace: &Trace, block: u32) -> u64 {
    trace.blocks[block as usize].bytes.0
}
