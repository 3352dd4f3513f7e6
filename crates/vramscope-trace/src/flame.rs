//! Flame graph data: call stacks as a prefix tree, with the outermost frame at the root.

use crate::no_stack::NoStack;
use crate::rollup::Share;
use crate::slicing::Budget;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_snapshot::{FrameId, Snapshot};

/// A prefix tree over call stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flame {
    /// Nodes in depth-first order, starting with the root. Children come in order of weight,
    /// largest first.
    pub nodes: Vec<FlameNode>,
    /// The node at which the stack of each share ends, in the order of the shares.
    pub leaves: Vec<u32>,
}

/// Appends the frames of a share, starting at the root.
pub type PathOf<'a> = dyn FnMut(&Share, &mut Vec<Option<FrameId>>) + Send + 'a;

/// A frame at the end of one path of frames from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameNode {
    /// The frame. `None` for the root, and for its children that collect blocks without a stack.
    pub frame: Option<FrameId>,
    /// Why the blocks have no stack. `None` for the root and for frames.
    pub no_stack: Option<NoStack>,
    /// Whether the stacks in this subtree are stacks of frees.
    pub is_of_free: bool,
    /// Index of the parent node. The root is its own parent.
    pub parent: u32,
    /// Distance from the root, which has depth 0.
    pub depth: u32,
    /// Weight of the stacks that end at this node.
    pub own: u128,
    /// Weight of all stacks in this subtree.
    pub total: u128,
    /// Number of blocks of all stacks in this subtree.
    pub blocks: u32,
}

impl Flame {
    /// Builds the tree from shares by stack. The root's total is their sum.
    pub async fn new(snapshot: &Snapshot, shares: &[Share], budget: &mut Budget) -> Self {
        let mut path_of = |share: &Share, path: &mut Vec<Option<FrameId>>| {
            path.extend(snapshot.stacks.frames(share.stack).iter().rev().copied().map(Some));
        };
        Self::with_paths(shares, &mut path_of, budget).await
    }

    /// Builds the tree with a custom path for each share. `path_of` appends the frames
    /// of a share, starting at the root. It may reorder frames or leave some out.
    pub async fn with_paths(
        shares: &[Share],
        path_of: &mut PathOf<'_>,
        budget: &mut Budget,
    ) -> Self {
        let mut tree = Tree::new(shares.len());
        for share in shares {
            let frames = tree.add(share, path_of);
            budget.charge(4 * frames).await;
        }
        in_order(&tree.nodes, tree.leaves, budget).await
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

/// Whether the stacks are stacks of frees, and why there are none.
type NodeKind = (bool, Option<NoStack>);

/// A tree in the order in which nodes were found.
struct Tree {
    nodes: Vec<FlameNode>,
    leaves: Vec<u32>,
    children: FxHashMap<(u32, Option<FrameId>, NodeKind), u32>,
    /// Scratch space.
    path: Vec<Option<FrameId>>,
}

impl Tree {
    fn new(shares: usize) -> Self {
        let root = FlameNode {
            frame: None,
            no_stack: None,
            is_of_free: false,
            parent: 0,
            depth: 0,
            own: 0,
            total: 0,
            blocks: 0,
        };
        Self {
            nodes: vec![root],
            leaves: Vec::with_capacity(shares),
            children: FxHashMap::default(),
            path: Vec::new(),
        }
    }

    /// Adds a share. Returns the number of its frames.
    fn add(&mut self, share: &Share, path_of: &mut PathOf<'_>) -> u64 {
        let Self { nodes, leaves, children, path } = self;
        path.clear();
        path_of(share, path);
        if path.is_empty() {
            path.push(None);
        }
        let mut at = 0u32;
        add(&mut nodes[0], share);
        for &frame in path.iter() {
            let depth = nodes[at as usize].depth + 1;
            // Stacks of frees get their own nodes: they do not show where a block was allocated.
            let kind = (share.is_of_free, share.no_stack);
            at = *children.entry((at, frame, kind)).or_insert_with(|| {
                nodes.push(FlameNode {
                    frame,
                    no_stack: kind.1,
                    is_of_free: kind.0,
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
        leaves.push(at);
        path.len() as u64
    }
}

fn add(node: &mut FlameNode, share: &Share) {
    node.total += share.weight;
    node.blocks += share.blocks;
}

/// Sorts nodes depth first, and children by weight. Equal children keep their order of insertion.
async fn in_order(nodes: &[FlameNode], mut leaves: Vec<u32>, budget: &mut Budget) -> Flame {
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for (i, node) in (0u32..).zip(nodes).skip(1) {
        children[node.parent as usize].push(i);
    }
    let mut out: Vec<FlameNode> = Vec::with_capacity(nodes.len());
    let mut places = vec![0; nodes.len()];
    let mut open = vec![(0u32, 0u32)];
    while let Some((old, parent)) = open.pop() {
        let new = out.len() as u32;
        places[old as usize] = new;
        out.push(FlameNode { parent, ..nodes[old as usize].clone() });
        let below = &mut children[old as usize];
        below.sort_by_key(|&c| (Reverse(nodes[c as usize].total), c));
        open.extend(below.iter().rev().map(|&c| (c, new)));
        budget.charge(4 + below.len() as u64).await;
    }
    for leaf in &mut leaves {
        *leaf = places[*leaf as usize];
    }
    Flame { nodes: out, leaves }
}
