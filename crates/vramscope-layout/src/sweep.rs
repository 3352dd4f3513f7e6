//! The state of the stack at one moment, moved along the trace.

use crate::least::Least;
use crate::sumtree::{LEAF, Piece, SumTree};
use vramscope_analysis::Trace;
use vramscope_analysis::slicing::{Budget, STRIDE, run_to_completion};

/// Live bytes by block at one state of a trace.
#[derive(Clone)]
pub(crate) struct Sweep {
    tree: SumTree,
    state: u32,
    /// The latest slot in which any block of a leaf leaves: what is over is passed in strides.
    last: Vec<u32>,
    /// Blocks that differ between two states; room that is used again.
    flips: Vec<u32>,
}

/// What going to another state cost, and what it left as it was.
pub(crate) struct Moved {
    /// Up to this height a walk gives the pieces that it gave before, as [`SumTree::settled`] says
    /// it.
    pub(crate) settled: u64,
    /// Changes of the trace that were looked at, or leaves where all were filled anew.
    pub(crate) changes: u64,
    /// Nodes that were made anew.
    pub(crate) updates: u64,
}

impl Sweep {
    pub(crate) async fn new(trace: &Trace, budget: &mut Budget) -> Self {
        let mut last = Vec::with_capacity(trace.blocks.len().div_ceil(LEAF));
        for blocks in trace.blocks.chunks(STRIDE) {
            budget.charge(blocks.len() as u64 / 2).await;
            last.extend(
                blocks.chunks(LEAF).map(|leaf| leaf.iter().map(|b| b.leaves).max().unwrap_or(0)),
            );
        }
        let tree = SumTree::new(trace.blocks.len(), budget).await;
        let mut sweep = Self { tree, state: 0, last, flips: Vec::new() };
        sweep.jump(trace, 0, budget).await;
        sweep
    }

    /// Goes to a state, through the changes in between where those are few, else at once. Blocks
    /// that are in neither of the two states cost a look and no more.
    pub(crate) fn seek(&mut self, trace: &Trace, state: u32, least: &Least) -> Moved {
        let (first, last) = (self.state.min(state), self.state.max(state));
        let changes = trace.changes_in(first + 1..last + 1);
        if changes.len() > self.last.len() {
            run_to_completion(self.jump(trace, state, &mut Budget::unlimited()));
            return Moved {
                settled: 0,
                changes: self.last.len() as u64,
                updates: 2 * self.last.len() as u64,
            };
        }
        self.flips.clear();
        self.flips.extend(changes.iter().filter_map(|change| {
            let block = &trace.blocks[change.block() as usize];
            let differs = if change.enters() { block.leaves > last } else { block.enters <= first };
            differs.then(|| change.block())
        }));
        self.flips.sort_unstable();
        let settled = |tree: &SumTree| {
            self.flips.first().map_or(u64::MAX, |&lowest| tree.settled(lowest, least))
        };
        let before = settled(&self.tree);
        let updates = self.tree.flip(&self.flips, &|block| bytes(trace, block));
        self.state = state;
        Moved { settled: before.min(settled(&self.tree)), changes: changes.len() as u64, updates }
    }

    async fn jump(&mut self, trace: &Trace, state: u32, budget: &mut Budget) {
        let live = |leaf: usize| {
            let from = leaf * LEAF;
            // Blocks are in the order in which they enter, but for those that were there from the
            // start.
            let is_over = self.last.get(leaf).is_none_or(|&last| last <= state)
                || trace.blocks[from].enters > state;
            if is_over {
                return 0;
            }
            let blocks = &trace.blocks[from..trace.blocks.len().min(from + LEAF)];
            blocks
                .iter()
                .rev()
                .fold(0, |mask, b| mask << 1 | u16::from(b.enters <= state && state < b.leaves))
        };
        self.tree.fill(live, |block| bytes(trace, block), budget).await;
        self.state = state;
    }

    /// As [`SumTree::walk`].
    pub(crate) fn walk(
        &self,
        trace: &Trace,
        low: u64,
        high: u64,
        least: &Least,
        emit: &mut dyn FnMut(Piece),
    ) -> u64 {
        self.tree.walk(low, high, least, &|block| bytes(trace, block), emit)
    }
}

fn bytes(trace: &Trace, block: u32) -> u64 {
    trace.blocks[block as usize].bytes.0
}
