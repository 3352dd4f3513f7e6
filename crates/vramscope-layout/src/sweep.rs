//! The stack's live bytes at one state, moved along the trace.

use crate::hits::Hits;
use crate::merge_threshold::MergeThreshold;
use crate::stack_order::StackOrder;
use crate::sumtree::{LEAF_BLOCKS, Merging, StackPiece, SumTree};
use std::sync::Arc;
use vramscope_trace::slicing::{Budget, now, strides};
use vramscope_trace::{Block, Trace};

/// Live bytes by block at one state of a trace.
#[derive(Clone)]
pub(crate) struct Sweep {
    tree: SumTree,
    /// The order of blocks. `None` for the order of [`Trace::blocks`].
    order: Option<Arc<StackOrder>>,
    state: u32,
    /// For each leaf of the tree, the first state with one of its blocks, and the first state from
    /// which all of them are freed. The leaf is skipped before and after.
    lives: Vec<[u32; 2]>,
    /// Scratch space of [`Sweep::seek`]: the positions of blocks that are live in only one of the
    /// two states.
    toggled: Vec<u32>,
}

/// The pieces that a drawing merges.
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    /// Pieces that are lower than this are merged.
    pub(crate) threshold: &'a MergeThreshold,
    /// Whether the groups of a grouped stack are drawn as bands. See [`Merging::bands`].
    pub(crate) bands: bool,
}

impl Pieces<'_> {
    fn merging<'a>(&'a self, order: Option<&'a StackOrder>) -> Merging<'a> {
        Merging { threshold: self.threshold, order, bands: self.bands }
    }
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
    pub(crate) async fn new(
        trace: &Trace,
        order: Option<Arc<StackOrder>>,
        budget: &mut Budget,
    ) -> Self {
        let count = trace.blocks.len();
        let mut lives = Vec::with_capacity(count.div_ceil(LEAF_BLOCKS));
        for part in strides(count) {
            budget.charge(part.len() as u64 / 2).await;
            for leaf in part.clone().step_by(LEAF_BLOCKS) {
                let mut life = [u32::MAX, 0];
                for position in leaf..part.end.min(leaf + LEAF_BLOCKS) {
                    let block = block_at(trace, order.as_deref(), position as u32);
                    life = [life[0].min(block.enters), life[1].max(block.leaves)];
                }
                lives.push(life);
            }
        }
        let tree = SumTree::new(count, budget).await;
        let mut sweep = Self { tree, order, state: 0, lives, toggled: Vec::new() };
        sweep.rebuild_at(trace, 0, budget).await;
        sweep
    }

    /// Keeps the hits of a search apart: the blocks for which `is_hit` is true.
    pub(crate) async fn keep_hits(
        &mut self,
        trace: &Trace,
        is_hit: impl Fn(u32) -> bool + Send + Sync,
        budget: &mut Budget,
    ) {
        let order = self.order.as_deref();
        let count = trace.blocks.len();
        let masks = |leaf: usize| {
            let from = (leaf * LEAF_BLOCKS).min(count);
            let end = count.min(from + LEAF_BLOCKS);
            (from as u32..end as u32).rev().fold(0, |mask, position| {
                let block = order.map_or(position, |order| order.block(position));
                mask << 1 | u16::from(is_hit(block))
            })
        };
        self.tree.keep_hits(masks, budget).await;
        self.rebuild_at(trace, self.state, budget).await;
    }

    /// The order of blocks. `None` in an ungrouped stack.
    pub(crate) fn order(&self) -> Option<&StackOrder> {
        self.order.as_deref()
    }

    /// Moves to `state`. Applies the changes in between when they are few, and rebuilds the tree
    /// otherwise. Blocks that are live in neither state are read but not applied.
    pub(crate) fn seek(&mut self, trace: &Trace, state: u32, pieces: Pieces<'_>) -> Moved {
        let (first, last) = (self.state.min(state), self.state.max(state));
        let changes = trace.changes_in(first + 1..last + 1);
        if changes.len() > self.lives.len() {
            now(async |budget| self.rebuild_at(trace, state, budget).await);
            return Moved {
                unchanged_below: 0,
                changes: self.lives.len() as u64,
                updates: 2 * self.lives.len() as u64,
            };
        }
        let order = self.order.as_deref();
        self.toggled.clear();
        self.toggled.extend(changes.iter().filter_map(|change| {
            let block = &trace.blocks[change.block() as usize];
            let differs = if change.enters() { block.leaves > last } else { block.enters <= first };
            let position = || order.map_or(change.block(), |order| order.position(change.block()));
            differs.then(position)
        }));
        self.toggled.sort_unstable();
        let merging = pieces.merging(order);
        let unchanged_below = |tree: &SumTree| {
            self.toggled.first().map_or(u64::MAX, |&lowest| tree.unchanged_below(lowest, merging))
        };
        let before = unchanged_below(&self.tree);
        let updates =
            self.tree.toggle(&self.toggled, &|position| block_at(trace, order, position).bytes.0);
        self.state = state;
        Moved {
            unchanged_below: before.min(unchanged_below(&self.tree)),
            changes: changes.len() as u64,
            updates,
        }
    }

    /// Recomputes the whole tree for `state`.
    async fn rebuild_at(&mut self, trace: &Trace, state: u32, budget: &mut Budget) {
        let (order, lives) = (self.order.as_deref(), &self.lives);
        let live_mask = |leaf: usize| {
            let from = leaf * LEAF_BLOCKS;
            let is_empty =
                lives.get(leaf).is_none_or(|&[enters, leaves]| leaves <= state || enters > state);
            if is_empty {
                return 0;
            }
            let end = trace.blocks.len().min(from + LEAF_BLOCKS);
            (from as u32..end as u32).rev().fold(0, |mask, position| {
                let block = block_at(trace, order, position);
                mask << 1 | u16::from(block.is_live_at(state))
            })
        };
        let bytes_of = |position| block_at(trace, order, position).bytes.0;
        self.tree.fill(live_mask, bytes_of, budget).await;
        self.state = state;
    }

    /// See [`SumTree::walk`]. Emits pieces with the block's index in place of its position.
    pub(crate) fn walk(
        &self,
        trace: &Trace,
        low: u64,
        high: u64,
        pieces: Pieces<'_>,
        emit: &mut dyn FnMut(StackPiece),
    ) -> u64 {
        let order = self.order.as_deref();
        let bytes_of = |position| block_at(trace, order, position).bytes.0;
        let merging = pieces.merging(order);
        self.tree.walk(low, high, merging, &bytes_of, &mut |piece| {
            let block_of = |position| order.map_or(position, |order| order.block(position));
            let hits = piece.hits.map(|hits| Hits { block: block_of(hits.block), ..hits });
            emit(StackPiece { block: block_of(piece.block), hits, ..piece });
        })
    }
}

fn block_at<'a>(trace: &'a Trace, order: Option<&StackOrder>, position: u32) -> &'a Block {
    &trace.blocks[order.map_or(position, |order| order.block(position)) as usize]
}
