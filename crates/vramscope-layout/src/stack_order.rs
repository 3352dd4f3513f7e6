//! The order of blocks in a grouped stack: by group, and within a group by allocation.

use crate::sumtree::LEAF_BLOCKS;
use vramscope_trace::slicing::{Budget, filled, strides};

/// The order of a trace's blocks from the bottom of the stack up, with each group in one range.
///
/// A position is the index of a block in this order. An ungrouped stack has no such order: there,
/// positions are indices into [`Trace::blocks`](vramscope_trace::Trace::blocks).
#[derive(Debug)]
pub struct StackOrder {
    /// The block at each position.
    blocks: Vec<u32>,
    /// The position of each block.
    positions: Vec<u32>,
    /// The first position of each group, and the number of blocks at the end.
    starts: Vec<u32>,
    /// The groups of the first and the last block of each leaf of the sum tree.
    leaves: Vec<[u32; 2]>,
}

/// Cost of placing a block, in units of [`Budget`]. Its memory is mostly not in the cache.
const PLACE_COST: u64 = 2;

impl StackOrder {
    /// Orders blocks by group. `groups` has the group of each block, counted from the
    /// bottom of the stack. `count` is the number of groups.
    pub async fn new(groups: &[u32], count: usize, budget: &mut Budget) -> Self {
        // A counting sort. It keeps the order of blocks within a group.
        let mut starts = vec![0u32; count + 1];
        for part in strides(groups.len()) {
            budget.charge(part.len() as u64 / 2).await;
            for &group in &groups[part] {
                starts[group as usize + 1] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut blocks = filled(0u32, groups.len(), budget).await;
        let mut positions = Vec::with_capacity(groups.len());
        for part in strides(groups.len()) {
            budget.charge(part.len() as u64 * PLACE_COST).await;
            for block in part {
                let position = &mut next[groups[block] as usize];
                blocks[*position as usize] = block as u32;
                positions.push(*position);
                *position += 1;
            }
        }
        let mut leaves = Vec::with_capacity(blocks.len().div_ceil(LEAF_BLOCKS));
        for part in strides(blocks.len()) {
            budget.charge(part.len() as u64 / 4).await;
            leaves.extend(
                blocks[part].chunks(LEAF_BLOCKS).map(|leaf| {
                    [leaf[0], leaf[leaf.len() - 1]].map(|block| groups[block as usize])
                }),
            );
        }
        Self { blocks, positions, starts, leaves }
    }

    /// The block at a position.
    pub(crate) fn block(&self, position: u32) -> u32 {
        self.blocks[position as usize]
    }

    /// The position of a block.
    pub(crate) fn position(&self, block: u32) -> u32 {
        self.positions[block as usize]
    }

    /// The group of a block.
    pub fn group_of(&self, block: u32) -> u32 {
        self.group_at(self.position(block))
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// The group of a position.
    pub(crate) fn group_at(&self, position: u32) -> u32 {
        match self.leaves[position as usize / LEAF_BLOCKS] {
            [first, last] if first == last => first,
            // Of several groups that start there, all but the last are empty.
            _ => self.starts.partition_point(|&start| start <= position) as u32 - 1,
        }
    }

    /// The group of all blocks between two leaves, both included. `None` if they have several.
    pub(crate) fn group_of_leaves(&self, first: usize, last: usize) -> Option<u32> {
        let &[group, _] = self.leaves.get(first)?;
        let [_, end] = self.leaves[last.min(self.leaves.len() - 1)];
        (group == end).then_some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_trace::slicing::now;

    #[test]
    fn blocks_are_ordered_by_group_then_by_index() {
        let groups: Vec<u32> = (0..100u32).map(|block| [2, 0, 5, 0][block as usize % 4]).collect();
        let order = now(async |budget| StackOrder::new(&groups, 6, budget).await);
        let mut expected: Vec<u32> = (0..100).collect();
        expected.sort_by_key(|&block| groups[block as usize]);
        assert_eq!(order.blocks, expected);
        assert_eq!(order.groups(), 6);
        for block in 0..100 {
            assert_eq!(order.block(order.position(block)), block);
            assert_eq!(order.group_of(block), groups[block as usize]);
        }
        // 50 blocks of group 0 fill three leaves and begin the fourth.
        assert_eq!(order.group_of_leaves(0, 2), Some(0));
        assert_eq!(order.group_of_leaves(0, 3), None);
        assert_eq!(order.group_of_leaves(5, 7), Some(5), "leaves beyond the blocks are empty");
        assert_eq!(order.group_of_leaves(7, 7), None);
    }

    #[test]
    fn no_blocks_have_an_order() {
        let order = now(async |budget| StackOrder::new(&[], 0, budget).await);
        assert_eq!((order.groups(), order.group_of_leaves(0, 0)), (0, None));
    }
}
