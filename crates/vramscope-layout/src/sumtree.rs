//! Sums over the stack: which bytes lie below a block, and what is large enough to see.

use crate::least::Least;
use vramscope_analysis::slicing::{Budget, filled, strides};

/// So many blocks share a leaf: as many as a mask has bits.
pub(crate) const LEAF: usize = u16::BITS as usize;

/// What it costs to fill a leaf, as [`Budget`] counts it.
const FILLED: u64 = 3;

/// A complete binary tree over leaves of [`LEAF`] blocks in stack order, of which each has a mask
/// of those that are live. The sizes of blocks are not in it: whoever asks lends them. So it takes
/// few bytes a block, and what a sweep touches of it stays in the processor's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SumTree {
    /// Leaves, a power of two.
    width: usize,
    nodes: Vec<Node>,
    live: Vec<u16>,
    /// Nodes whose parents are to be made anew; room that is used again.
    changed: Vec<u32>,
}

/// Live bytes below a node, and its largest live block, the lowest of equals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Node {
    bytes: u64,
    most: u64,
    block: u32,
}

impl Node {
    /// All its bytes are one block's. (True of an empty one.)
    fn is_alone(&self) -> bool {
        self.bytes == self.most
    }

    fn and(self, above: Self) -> Self {
        let Self { most, block, .. } = if self.most >= above.most { self } else { above };
        Self { bytes: self.bytes + above.bytes, most, block }
    }
}

impl SumTree {
    /// Over so many blocks, none of them live.
    pub(crate) async fn new(blocks: usize, budget: &mut Budget) -> Self {
        let width = blocks.div_ceil(LEAF).next_power_of_two();
        let nodes = filled(Node::default(), 2 * width, budget).await;
        Self { width, nodes, live: filled(0, width, budget).await, changed: Vec::new() }
    }

    /// What was live no longer is, and the other way round, of these blocks, which are in stack
    /// order. Gives the number of nodes that were made anew: those above neighbors only once.
    pub(crate) fn flip(&mut self, blocks: &[u32], bytes_of: &dyn Fn(u32) -> u64) -> u64 {
        let mut changed = std::mem::take(&mut self.changed);
        changed.clear();
        for &block in blocks {
            let leaf = block as usize / LEAF;
            self.live[leaf] ^= 1 << (block as usize % LEAF);
            let node = (self.width + leaf) as u32;
            if changed.last() != Some(&node) {
                changed.push(node);
            }
        }
        for &node in &changed {
            let leaf = node as usize - self.width;
            self.set_leaf(leaf, self.live[leaf], bytes_of);
        }
        let mut updates = changed.len();
        // All are of one level, from left to right.
        while changed.first().is_some_and(|&node| node > 1) {
            let mut parents = 0;
            for i in 0..changed.len() {
                let parent = changed[i] / 2;
                if parents == 0 || changed[parents - 1] != parent {
                    changed[parents] = parent;
                    parents += 1;
                    self.pull(parent as usize);
                }
            }
            changed.truncate(parents);
            updates += parents;
        }
        self.changed = changed;
        updates as u64
    }

    /// Sets all leaves at once: much cheaper than one by one. `masks` says which blocks of each
    /// leaf are live.
    pub(crate) async fn fill<F: Fn(u32) -> u64>(
        &mut self,
        masks: impl Fn(usize) -> u16,
        bytes_of: F,
        budget: &mut Budget,
    ) {
        for part in strides(self.width) {
            budget.charge(part.len() as u64 * FILLED).await;
            for leaf in part {
                self.set_leaf(leaf, masks(leaf), &bytes_of);
            }
        }
        // From the last one to the root, which is node 1.
        let mut next = self.width;
        for part in strides(self.width - 1) {
            budget.charge(part.len() as u64).await;
            for _ in part {
                next -= 1;
                self.pull(next);
            }
        }
    }

    fn pull(&mut self, node: usize) {
        self.nodes[node] = self.nodes[2 * node].and(self.nodes[2 * node + 1]);
    }

    #[inline(never)]
    fn set_leaf(&mut self, leaf: usize, live: u16, bytes_of: &dyn Fn(u32) -> u64) {
        self.live[leaf] = live;
        let mut node = Node::default();
        for block in blocks(leaf, live) {
            let bytes = bytes_of(block);
            node = node.and(Node { bytes, most: bytes, block });
        }
        self.nodes[self.width + leaf] = node;
    }

    /// A height below which a walk emits the same pieces whatever becomes of a block and of all
    /// above it, but for the last of them where that has not reached `least`: the foot of the
    /// highest node over the block that such a walk does not go into.
    pub(crate) fn settled(&self, block: u32, least: &Least) -> u64 {
        let leaf = self.width + block as usize / LEAF;
        let (mut below, mut node) = (0, 1);
        let mut levels = self.width.ilog2();
        while levels > 0
            && self.nodes[node].bytes >= least.at(below)
            && !self.nodes[node].is_alone()
        {
            levels -= 1;
            if (leaf >> levels) % 2 == 1 {
                below += self.nodes[2 * node].bytes;
            }
            node = leaf >> levels;
        }
        below
    }

    /// Walk the live bytes within `[low, high)` upwards in pieces: whole blocks of at least `least`
    /// bytes, and runs of smaller ones put together until they reach it, each by what counts where
    /// it begins. Returns the number of nodes and blocks visited.
    pub(crate) fn walk(
        &self,
        low: u64,
        high: u64,
        least: &Least,
        bytes_of: &dyn Fn(u32) -> u64,
        emit: &mut dyn FnMut(Piece),
    ) -> u64 {
        let mut walk =
            Walk { tree: self, low, high, least, pending: None, visited: 0, bytes_of, emit };
        walk.node(1, 0);
        walk.flush();
        walk.visited
    }
}

/// The blocks of a leaf that a mask names, upwards.
fn blocks(leaf: usize, mut mask: u16) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros())?;
        mask &= mask - 1;
        Some((leaf * LEAF) as u32 + bit)
    })
}

/// A part of the stack's height that is drawn as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes below it.
    pub(crate) low: u64,
    /// Bytes below its top.
    pub(crate) high: u64,
    /// The block, or the largest of several.
    pub(crate) block: u32,
    /// Whether it is several.
    pub(crate) merged: bool,
}

impl Piece {
    /// Its height in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.high - self.low
    }
}

/// Not generic, so that it is in the page's download once.
struct Walk<'a> {
    tree: &'a SumTree,
    low: u64,
    high: u64,
    least: &'a Least,
    /// What has not reached `least`, and the size of its block.
    pending: Option<(Piece, u64)>,
    visited: u64,
    bytes_of: &'a dyn Fn(u32) -> u64,
    emit: &'a mut dyn FnMut(Piece),
}

impl Walk<'_> {
    fn node(&mut self, node: usize, below: u64) {
        let found = self.tree.nodes[node];
        self.visited += 1;
        if !self.is_near(below, found.bytes) {
            return;
        }
        if found.bytes < self.least.at(below) || found.is_alone() {
            self.unit(below, found);
        } else if node < self.tree.width {
            self.node(2 * node, below);
            self.node(2 * node + 1, below + self.tree.nodes[2 * node].bytes);
        } else {
            let leaf = node - self.tree.width;
            let mut below = below;
            for block in blocks(leaf, self.tree.live[leaf]) {
                let bytes = (self.bytes_of)(block);
                self.visited += 1;
                if self.is_near(below, bytes) {
                    self.unit(below, Node { bytes, most: bytes, block });
                }
                below += bytes;
            }
        }
    }

    fn is_near(&self, below: u64, bytes: u64) -> bool {
        bytes > 0 && below + bytes > self.low && below < self.high
    }

    /// What is not looked into: a block, or several that are small together.
    fn unit(&mut self, below: u64, found: Node) {
        let mut piece = Piece {
            low: below,
            high: below + found.bytes,
            block: found.block,
            merged: !found.is_alone(),
        };
        if found.bytes >= self.least.at(below) {
            self.flush();
            (self.emit)(piece);
            return;
        }
        let mut most = found.most;
        if let Some((before, of_before)) = self.pending {
            (piece.low, piece.merged) = (before.low, true);
            if of_before >= most {
                (piece.block, most) = (before.block, of_before);
            }
        }
        self.pending = Some((piece, most));
        if piece.bytes() >= self.least.at(piece.low) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Some((piece, _)) = self.pending.take() {
            (self.emit)(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::least::Least;
    use vramscope_analysis::slicing::run_to_completion;

    fn tree(sizes: &[u64], live: impl Fn(usize) -> bool) -> SumTree {
        let mut budget = Budget::unlimited();
        let mut tree = run_to_completion(SumTree::new(sizes.len(), &mut budget));
        let is_live = |block: usize| block < sizes.len() && live(block);
        let mask = |leaf| {
            (0..LEAF).fold(0, |mask, bit| mask | u16::from(is_live(leaf * LEAF + bit)) << bit)
        };
        run_to_completion(tree.fill(mask, |block| sizes[block as usize], &mut budget));
        tree
    }

    fn pieces(sizes: &[u64], low: u64, high: u64, least: u64) -> Vec<(u64, u64, u32, bool)> {
        let mut out = Vec::new();
        let tree = tree(sizes, |_| true);
        tree.walk(low, high, &Least::even(least), &|b| sizes[b as usize], &mut |p| {
            out.push((p.low, p.high, p.block, p.merged));
        });
        out
    }

    #[test]
    fn small_neighbors_merge_into_the_largest_and_none_is_lost() {
        assert_eq!(
            pieces(&[10, 0, 1, 3, 2, 20, 1], 0, u64::MAX, 5),
            [(0, 10, 0, false), (10, 16, 3, true), (16, 36, 5, false), (36, 37, 6, false)]
        );
    }

    #[test]
    fn only_what_is_in_range_is_walked() {
        assert_eq!(pieces(&[10, 10, 10], 10, 20, 1), [(10, 20, 1, false)]);
        assert_eq!(pieces(&[10, 10, 10], 9, 10, 1), [(0, 10, 0, false)]);
    }

    /// Sizes of all kinds, zero too, in many leaves.
    fn sizes() -> Vec<u64> {
        (0..1000u64).map(|i| (i * 7919 % 13) * if i % 50 == 0 { 100 } else { 1 }).collect()
    }

    #[test]
    fn flipping_blocks_equals_filling_all() {
        let sizes = sizes();
        let mut one = tree(&sizes, |_| false);
        let mut updates = 0;
        for blocks in [&[3, 5, 17, 400, 999][..], &[3, 4], &[], &[999], &[0, 1, 2, 3, 4, 5, 6]] {
            updates += one.flip(blocks, &|b| sizes[b as usize]);
        }
        one.changed.clear();
        assert!(one == tree(&sizes, |b| [0, 1, 2, 3, 6, 17, 400].contains(&b)));
        // 64 leaves: the first time four of them, two of which are neighbors; then one a time.
        assert_eq!(updates, (4 + 3 + 3 + 3 + 3 + 2 + 1) + 3 * 7);
    }

    #[test]
    fn below_what_changes_a_walk_is_settled() {
        let sizes = sizes();
        let walk = |tree: &SumTree, least: &Least| {
            let mut out = Vec::new();
            tree.walk(0, u64::MAX, least, &|b| sizes[b as usize], &mut |piece| out.push(piece));
            out
        };
        let mut kept = 0;
        for seed in 0..400u32 {
            let lowest = seed * 37 % 1000;
            // Some of the blocks above change with it.
            let flips: Vec<u32> =
                (lowest..1000).filter(|b| *b == lowest || b * seed % 11 == 0).collect();
            let mut least = Least::of_rows(0, 16, 11, [1, 7, 60, 300][seed as usize % 4]);
            // Often it is coarser in places.
            least.coarsen(
                (0..seed % 5).map(|i| u64::from(i * seed * 977 % 30_000)),
                1 + seed as usize % 9,
                3,
            );
            let least = &least;
            let mut tree = tree(&sizes, |b| !(b as u32 * (seed + 1)).is_multiple_of(3));
            let before = (walk(&tree, least), tree.settled(lowest, least));
            tree.flip(&flips, &|b| sizes[b as usize]);
            let after = (walk(&tree, least), tree.settled(lowest, least));
            let settled = before.1.min(after.1);
            let same = |pieces: &[Piece]| {
                let end = pieces.partition_point(|p| p.high <= settled);
                let end = if end > 0 && pieces[end - 1].bytes() < least.at(pieces[end - 1].low) {
                    end - 1
                } else {
                    end
                };
                pieces[..end].to_vec()
            };
            assert_eq!(same(&before.0), same(&after.0), "{lowest} {least:?}");
            kept += same(&after.0).len();
        }
        assert!(kept > 1000, "{kept}");
    }
}
