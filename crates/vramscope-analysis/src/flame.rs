//! Flame: call stacks as a prefix tree, outermost frame at the root.

use crate::rollup::Share;
use crate::slicing::{Budget, run_to_completion};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_snapshot::{FrameId, Snapshot};

/// A prefix tree over call stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flame {
    /// The root first; each node before its children, and children by weight, largest first.
    pub nodes: Vec<FlameNode>,
}

/// A frame under the frames that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameNode {
    /// The frame; `None` for the root, and under it for blocks without a stack.
    pub frame: Option<FrameId>,
    /// Whether the stacks under this child of the root are those of frees.
    pub is_of_free: bool,
    /// Index of the node that it is under; the root's own.
    pub parent: u32,
    /// 0 for the root.
    pub depth: u32,
    /// Of stacks that end here.
    pub own: u128,
    /// Of all stacks that come through here.
    pub total: u128,
    /// How many blocks those stacks count.
    pub blocks: u32,
}

impl Flame {
    /// From shares by stack. The root's total is their sum.
    pub fn new(snapshot: &Snapshot, shares: &[Share]) -> Self {
        let path_of = |share: &Share, path: &mut Vec<Option<FrameId>>| {
            path.extend(snapshot.stacks.frames(share.stack).iter().rev().copied().map(Some));
        };
        run_to_completion(Self::with_paths(shares, path_of, &mut Budget::unlimited()))
    }

    /// The same in slices, with the frames of each share as `path_of` tells them, from the root on:
    /// other orders, or some left out.
    pub async fn with_paths(
        shares: &[Share],
        mut path_of: impl FnMut(&Share, &mut Vec<Option<FrameId>>),
        budget: &mut Budget,
    ) -> Self {
        let root = FlameNode {
            frame: None,
            is_of_free: false,
            parent: 0,
            depth: 0,
            own: 0,
            total: 0,
            blocks: 0,
        };
        let mut nodes = vec![root];
        let mut children: FxHashMap<(u32, Option<FrameId>, bool), u32> = FxHashMap::default();
        let mut path: Vec<Option<FrameId>> = Vec::new();
        for share in shares {
            path.clear();
            path_of(share, &mut path);
            if path.is_empty() {
                path.push(None);
            }
            let mut at = 0u32;
            add(&mut nodes[0], share);
            for &frame in &path {
                let depth = nodes[at as usize].depth + 1;
                // Frees stand apart: who frees a block is not who allocated it.
                let is_of_free = share.is_of_free;
                at = *children.entry((at, frame, is_of_free)).or_insert_with(|| {
                    nodes.push(FlameNode {
                        frame,
                        is_of_free,
                        parent: at,
                        depth,
                        own: 0,
                        total: 0,
                        blocks: 0,
                    });
                    nodes.len() as u32 - 1
                });
                add(&mut nodes[at as usize], share);
            }
            nodes[at as usize].own += share.weight;
            budget.charge(4 * path.len() as u64).await;
        }
        Self { nodes: in_order(&nodes, budget).await }
    }

    /// Indices of a node's children, largest first.
    pub fn children(&self, node: u32) -> Vec<u32> {
        let depth = self.nodes[node as usize].depth + 1;
        let below = (node + 1..)
            .zip(&self.nodes[node as usize + 1..])
            .take_while(|(_, n)| n.depth >= depth);
        below.filter(|(_, n)| n.depth == depth).map(|(i, _)| i).collect()
    }
}

fn add(node: &mut FlameNode, share: &Share) {
    node.total += share.weight;
    node.blocks += share.blocks;
}

/// Depth first, children by weight; among equals by the order in which they came.
async fn in_order(nodes: &[FlameNode], budget: &mut Budget) -> Vec<FlameNode> {
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for (i, node) in (0u32..).zip(nodes).skip(1) {
        children[node.parent as usize].push(i);
    }
    let mut out: Vec<FlameNode> = Vec::with_capacity(nodes.len());
    let mut open = vec![(0u32, 0u32)];
    while let Some((old, parent)) = open.pop() {
        let new = out.len() as u32;
        out.push(FlameNode { parent, ..nodes[old as usize].clone() });
        let below = &mut children[old as usize];
        below.sort_unstable_by_key(|&c| (Reverse(nodes[c as usize].total), c));
        open.extend(below.iter().rev().map(|&c| (c, new)));
        budget.charge(4 + below.len() as u64).await;
    }
    out
}
