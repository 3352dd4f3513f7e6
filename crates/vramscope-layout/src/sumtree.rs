//! A sum tree over the stack of blocks. It gives the bytes below each block, and finds the blocks
//! that are large enough to see.

use crate::hits::Hits;
use crate::merge_threshold::MergeThreshold;
use crate::stack_order::StackOrder;
use vramscope_trace::slicing::{Budget, filled, strides};

/// Blocks per leaf: one for each bit of a leaf's mask.
pub(crate) const LEAF_BLOCKS: usize = u16::BITS as usize;

/// Cost of filling a leaf, in units of [`Budget`].
const FILL_LEAF_COST: u64 = 3;

/// In a band, a block of at least this many times the merge threshold is a piece of its own: two
/// rows.
const BLOCK_IN_BAND: u64 = 4;

/// The neighbors that a walk merges into one piece.
#[derive(Clone, Copy)]
pub(crate) struct Merging<'a> {
    /// Neighbors that are lower than this are merged until they reach it.
    pub(crate) threshold: &'a MergeThreshold,
    /// The order of a grouped stack. Pieces name their group.
    pub(crate) order: Option<&'a StackOrder>,
    /// Whether a group is drawn as a band: neighbors of one group are merged without a limit,
    /// except for blocks that are high enough to see. Pieces of at least the threshold end at the
    /// edges of groups.
    pub(crate) bands: bool,
}

impl<'a> Merging<'a> {
    /// The order, if groups are drawn as bands.
    fn bands(&self) -> Option<&'a StackOrder> {
        self.order.filter(|_| self.bands)
    }

    /// The least bytes of a block in a band that is a piece of its own.
    fn block_in_band(&self, below: u64) -> u64 {
        self.threshold.at(below).saturating_mul(BLOCK_IN_BAND)
    }
}

/// A complete binary tree over the blocks in stack order. Blocks are named by their position.
///
/// Each leaf holds [`LEAF_BLOCKS`] blocks and a mask of the live ones. Block sizes stay in the
/// trace, and callers pass an accessor. The tree therefore needs few bytes per block, and the nodes
/// that a sweep visits stay in the processor's cache.
///
/// With a search, a second set of nodes has the live bytes of its hits. A merged piece therefore
/// knows its share of hits without a visit to its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SumTree {
    /// Number of leaves, a power of two.
    width: usize,
    /// The root is node 1. Node `n` has the children `2n` and `2n + 1`.
    nodes: Vec<Node>,
    /// Mask of live blocks per leaf.
    live: Vec<u16>,
    /// The hits of a search.
    hits: Option<HitNodes>,
    /// Scratch space of [`SumTree::toggle`]: nodes whose parents must be recomputed.
    dirty: Vec<u32>,
}

/// The live bytes of a search's hits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HitNodes {
    /// Mask of hits per leaf, live or not.
    masks: Vec<u16>,
    /// As [`SumTree::nodes`], of hits only.
    nodes: Vec<Node>,
}

/// Live bytes below a node, and its largest live block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Node {
    bytes: u64,
    /// Bytes of `block`.
    largest: u64,
    /// The largest live block. Of equally large ones the lowest.
    block: u32,
}

impl Node {
    /// True when one block has all the bytes, and when there are none.
    fn is_single_block(&self) -> bool {
        self.bytes == self.largest
    }

    fn join(self, above: Self) -> Self {
        let Self { largest, block, .. } = if self.largest >= above.largest { self } else { above };
        Self { bytes: self.bytes + above.bytes, largest, block }
    }
}

impl SumTree {
    /// A tree over `blocks` blocks, none of them live.
    pub(crate) async fn new(blocks: usize, budget: &mut Budget) -> Self {
        let width = blocks.div_ceil(LEAF_BLOCKS).next_power_of_two();
        let nodes = filled(Node::default(), 2 * width, budget).await;
        let live = filled(0, width, budget).await;
        Self { width, nodes, live, hits: None, dirty: Vec::new() }
    }

    /// Keeps the hits of a search apart. `masks` gives the mask of hits of each leaf. The next
    /// [`SumTree::fill`] sums them.
    pub(crate) async fn keep_hits(
        &mut self,
        masks: impl Fn(usize) -> u16 + Send,
        budget: &mut Budget,
    ) {
        let mut found = Vec::with_capacity(self.width);
        for part in strides(self.width) {
            budget.charge(part.len() as u64 * FILL_LEAF_COST).await;
            found.extend(part.map(&masks));
        }
        let nodes = filled(Node::default(), 2 * self.width, budget).await;
        self.hits = Some(HitNodes { masks: found, nodes });
    }

    /// Toggles whether each of `blocks` is live. They must be in stack order.
    ///
    /// Returns the number of recomputed nodes. A common ancestor is recomputed once.
    pub(crate) fn toggle(&mut self, blocks: &[u32], bytes_of: &dyn Fn(u32) -> u64) -> u64 {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.clear();
        for &block in blocks {
            let leaf = block as usize / LEAF_BLOCKS;
            self.live[leaf] ^= 1 << (block as usize % LEAF_BLOCKS);
            let node = (self.width + leaf) as u32;
            if dirty.last() != Some(&node) {
                dirty.push(node);
            }
        }
        for &node in &dirty {
            let leaf = node as usize - self.width;
            self.set_leaf(leaf, self.live[leaf], bytes_of);
        }
        let mut updates = dirty.len();
        // All nodes in `dirty` are of one level, from left to right.
        while dirty.first().is_some_and(|&node| node > 1) {
            let mut parents = 0;
            for i in 0..dirty.len() {
                let parent = dirty[i] / 2;
                if parents == 0 || dirty[parents - 1] != parent {
                    dirty[parents] = parent;
                    parents += 1;
                    self.update_node(parent as usize);
                }
            }
            dirty.truncate(parents);
            updates += parents;
        }
        self.dirty = dirty;
        updates as u64
    }

    /// Sets all leaves at once, which is much cheaper than one by one. `masks` gives the mask of
    /// live blocks of each leaf.
    pub(crate) async fn fill<F: Fn(u32) -> u64>(
        &mut self,
        masks: impl Fn(usize) -> u16,
        bytes_of: F,
        budget: &mut Budget,
    ) {
        for part in strides(self.width) {
            budget.charge(part.len() as u64 * FILL_LEAF_COST).await;
            for leaf in part {
                self.set_leaf(leaf, masks(leaf), &bytes_of);
            }
        }
        // From the last inner node to the root.
        let mut next = self.width;
        for part in strides(self.width - 1) {
            budget.charge(part.len() as u64).await;
            for _ in part {
                next -= 1;
                self.update_node(next);
            }
        }
    }

    fn update_node(&mut self, node: usize) {
        self.nodes[node] = self.nodes[2 * node].join(self.nodes[2 * node + 1]);
        if let Some(HitNodes { nodes, .. }) = &mut self.hits {
            nodes[node] = nodes[2 * node].join(nodes[2 * node + 1]);
        }
    }

    #[inline(never)]
    fn set_leaf(&mut self, leaf: usize, live: u16, bytes_of: &dyn Fn(u32) -> u64) {
        self.live[leaf] = live;
        self.nodes[self.width + leaf] = sum_of(leaf, live, bytes_of);
        if let Some(HitNodes { masks, nodes }) = &mut self.hits {
            nodes[self.width + leaf] = sum_of(leaf, live & masks[leaf], bytes_of);
        }
    }

    /// The live bytes of the hits below a node. `None` without a search.
    fn hits_of_node(&self, node: usize) -> Option<Hits> {
        self.hits.as_ref().map(|hits| hits.nodes[node].into())
    }

    /// A block as the hits of a piece: all of it, or nothing. `None` without a search.
    fn hits_of_block(&self, block: u32, bytes: u64) -> Option<Hits> {
        self.hits.as_ref().map(|hits| {
            let at = block as usize;
            let is_hit = hits.masks[at / LEAF_BLOCKS] & 1 << (at % LEAF_BLOCKS) != 0;
            let bytes = if is_hit { bytes } else { 0 };
            Hits { bytes, largest: bytes, block }
        })
    }

    /// A height below which changes to `block` and to the blocks above it do not change the pieces
    /// that a walk emits.
    ///
    /// One exception: the last piece below that height can change when it is lower than the
    /// threshold, and in bands always. The height is the lower edge of the highest node over the
    /// block that a walk does not descend into.
    pub(crate) fn unchanged_below(&self, block: u32, merging: Merging<'_>) -> u64 {
        let leaf = self.width + block as usize / LEAF_BLOCKS;
        let (mut below, mut node) = (0, 1);
        let mut levels = self.width.ilog2();
        while levels > 0 && !self.is_unit(node, below, merging) {
            levels -= 1;
            if (leaf >> levels) % 2 == 1 {
                below += self.nodes[2 * node].bytes;
            }
            node = leaf >> levels;
        }
        below
    }

    /// Whether a walk adds all blocks below a node as one, and does not descend.
    fn is_unit(&self, node: usize, below: u64, merging: Merging<'_>) -> bool {
        let found = &self.nodes[node];
        found.bytes < merging.threshold.at(below)
            || found.is_single_block()
            || merging.bands().is_some_and(|order| {
                found.largest < merging.block_in_band(below)
                    && self.group_of_node(node, order).is_some()
            })
    }

    /// The group of all blocks below a node. `None` if they have several.
    fn group_of_node(&self, node: usize, order: &StackOrder) -> Option<u32> {
        let levels = self.width.ilog2() - node.ilog2();
        let first = (node << levels) - self.width;
        order.group_of_leaves(first, first + (1 << levels) - 1)
    }

    /// Walks the live bytes within `[low, high)` upwards and emits them in pieces.
    ///
    /// A piece is one block of at least the threshold, or several smaller neighbors that are merged
    /// until they reach it. The threshold at the lower edge of a piece applies to it. See
    /// [`Merging::bands`] for grouped stacks. Returns the number of nodes and blocks visited.
    pub(crate) fn walk(
        &self,
        low: u64,
        high: u64,
        merging: Merging<'_>,
        bytes_of: &dyn Fn(u32) -> u64,
        emit: &mut dyn FnMut(StackPiece),
    ) -> u64 {
        let mut walk =
            Walk { tree: self, low, high, merging, pending: None, visited: 0, bytes_of, emit };
        walk.node(1, 0);
        walk.flush();
        walk.visited
    }
}

/// The bytes of the blocks of a leaf that are set in `mask`.
fn sum_of(leaf: usize, mask: u16, bytes_of: &dyn Fn(u32) -> u64) -> Node {
    blocks(leaf, mask).fold(Node::default(), |node, block| {
        let bytes = bytes_of(block);
        node.join(Node { bytes, largest: bytes, block })
    })
}

/// The blocks of a leaf that are set in `mask`, upwards.
fn blocks(leaf: usize, mut mask: u16) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros())?;
        mask &= mask - 1;
        Some((leaf * LEAF_BLOCKS) as u32 + bit)
    })
}

/// A range of the stack's height that is drawn as one strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackPiece {
    /// Lower edge in bytes.
    pub(crate) low: u64,
    /// Upper edge in bytes.
    pub(crate) high: u64,
    /// The block. In a merged piece the largest one.
    pub(crate) block: u32,
    /// Whether the piece merges several blocks.
    pub(crate) merged: bool,
    /// In a grouped stack, the group of all its blocks. `None` if they have several.
    pub(crate) group: Option<u32>,
    /// The hits among its blocks. `None` without a search.
    pub(crate) hits: Option<Hits>,
}

impl From<Node> for Hits {
    fn from(Node { bytes, largest, block }: Node) -> Self {
        Self { bytes, largest, block }
    }
}

impl StackPiece {
    /// Height in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.high - self.low
    }
}

/// A merged piece that may still grow.
#[derive(Clone, Copy)]
struct Pending {
    piece: StackPiece,
    /// Bytes of the piece's largest block.
    largest: u64,
}

/// The state of one walk. Not generic over the closures, so that the WebAssembly module contains
/// the code once.
struct Walk<'a> {
    tree: &'a SumTree,
    low: u64,
    high: u64,
    merging: Merging<'a>,
    pending: Option<Pending>,
    visited: u64,
    bytes_of: &'a dyn Fn(u32) -> u64,
    emit: &'a mut dyn FnMut(StackPiece),
}

impl Walk<'_> {
    fn node(&mut self, node: usize, below: u64) {
        let found = self.tree.nodes[node];
        self.visited += 1;
        if !self.is_in_range(below, found.bytes) {
            return;
        }
        if self.tree.is_unit(node, below, self.merging) {
            let group = self.merging.order.and_then(|order| {
                if found.is_single_block() {
                    Some(order.group_at(found.block))
                } else {
                    self.tree.group_of_node(node, order)
                }
            });
            self.add_unit(below, found, group, self.tree.hits_of_node(node));
        } else if node < self.tree.width {
            self.node(2 * node, below);
            self.node(2 * node + 1, below + self.tree.nodes[2 * node].bytes);
        } else {
            let leaf = node - self.tree.width;
            let mut below = below;
            for block in blocks(leaf, self.tree.live[leaf]) {
                let bytes = (self.bytes_of)(block);
                self.visited += 1;
                if self.is_in_range(below, bytes) {
                    let group = self.merging.order.map(|order| order.group_at(block));
                    let hits = self.tree.hits_of_block(block, bytes);
                    self.add_unit(below, Node { bytes, largest: bytes, block }, group, hits);
                }
                below += bytes;
            }
        }
    }

    fn is_in_range(&self, below: u64, bytes: u64) -> bool {
        bytes > 0 && below + bytes > self.low && below < self.high
    }

    /// Adds a block, or a node whose blocks are merged.
    fn add_unit(&mut self, below: u64, found: Node, group: Option<u32>, hits: Option<Hits>) {
        let piece = StackPiece {
            low: below,
            high: below + found.bytes,
            block: found.block,
            merged: !found.is_single_block(),
            group,
            hits,
        };
        let is_alone = match self.merging.bands() {
            None => found.bytes >= self.merging.threshold.at(below),
            Some(_) => !piece.merged && found.bytes >= self.merging.block_in_band(below),
        };
        if is_alone {
            self.flush();
            (self.emit)(piece);
            return;
        }
        let mut unit = Pending { piece, largest: found.largest };
        if let Some(before) = self.pending {
            if self.can_join(&before, &unit) {
                (unit.piece.low, unit.piece.merged) = (before.piece.low, true);
                unit.piece.group = before.piece.group.filter(|_| before.piece.group == group);
                unit.piece.hits = before.piece.hits.zip(hits).map(|(below, own)| below.join(own));
                if before.largest >= unit.largest {
                    (unit.piece.block, unit.largest) = (before.piece.block, before.largest);
                }
            } else {
                self.flush();
            }
        }
        self.pending = Some(unit);
        let is_band = self.merging.bands && unit.piece.group.is_some();
        if !is_band && !self.is_low(&unit) {
            self.flush();
        }
    }

    /// Whether the pending piece and the next one become one piece.
    fn can_join(&self, before: &Pending, next: &Pending) -> bool {
        let group = next.piece.group;
        self.merging.bands().is_none()
            || (group.is_some() && before.piece.group == group)
            || (self.is_low(before) && self.is_low(next))
    }

    fn is_low(&self, Pending { piece, .. }: &Pending) -> bool {
        piece.bytes() < self.merging.threshold.at(piece.low)
    }

    fn flush(&mut self) {
        if let Some(Pending { piece, .. }) = self.pending.take() {
            (self.emit)(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_threshold::MergeThreshold;
    use vramscope_trace::slicing::now;

    fn tree(sizes: &[u64], live: impl Fn(usize) -> bool) -> SumTree {
        let mut tree = now(async |budget| SumTree::new(sizes.len(), budget).await);
        let is_live = |block: usize| block < sizes.len() && live(block);
        let mask = |leaf| {
            (0..LEAF_BLOCKS)
                .fold(0, |mask, bit| mask | u16::from(is_live(leaf * LEAF_BLOCKS + bit)) << bit)
        };
        now(async |budget| tree.fill(mask, |block| sizes[block as usize], budget).await);
        tree
    }

    fn pieces(sizes: &[u64], low: u64, high: u64, threshold: u64) -> Vec<(u64, u64, u32, bool)> {
        let mut out = Vec::new();
        let tree = tree(sizes, |_| true);
        tree.walk(
            low,
            high,
            Merging { threshold: &MergeThreshold::uniform(threshold), order: None, bands: false },
            &|b| sizes[b as usize],
            &mut |p| {
                out.push((p.low, p.high, p.block, p.merged));
            },
        );
        out
    }

    #[test]
    fn walk_merges_small_neighbors_into_the_largest() {
        assert_eq!(
            pieces(&[10, 0, 1, 3, 2, 20, 1], 0, u64::MAX, 5),
            [(0, 10, 0, false), (10, 16, 3, true), (16, 36, 5, false), (36, 37, 6, false)]
        );
    }

    #[test]
    fn walk_emits_only_pieces_in_range() {
        assert_eq!(pieces(&[10, 10, 10], 10, 20, 1), [(10, 20, 1, false)]);
        assert_eq!(pieces(&[10, 10, 10], 9, 10, 1), [(0, 10, 0, false)]);
    }

    /// 1,000 sizes with zeros and a few large ones.
    fn sizes() -> Vec<u64> {
        (0..1000u64).map(|i| (i * 7919 % 13) * if i % 50 == 0 { 100 } else { 1 }).collect()
    }

    #[test]
    fn toggle_equals_fill() {
        let sizes = sizes();
        let mut toggled = tree(&sizes, |_| false);
        let mut updates = 0;
        for blocks in [&[3, 5, 17, 400, 999][..], &[3, 4], &[], &[999], &[0, 1, 2, 3, 4, 5, 6]] {
            updates += toggled.toggle(blocks, &|b| sizes[b as usize]);
        }
        toggled.dirty.clear();
        assert!(toggled == tree(&sizes, |b| [0, 1, 2, 3, 6, 17, 400].contains(&b)));
        // 64 leaves. The first call touches four of them, two of which are neighbors. Each later
        // call touches one.
        assert_eq!(updates, (4 + 3 + 3 + 3 + 3 + 2 + 1) + 3 * 7);
    }

    /// An order in which blocks stay where they are, in groups of 1 to 120 blocks.
    fn order(blocks: u32) -> StackOrder {
        let groups: Vec<u32> = (0..blocks).map(|block| block.isqrt() / 2 + block / 120).collect();
        let count = groups.last().map_or(0, |&last| last as usize + 1);
        now(async |budget| StackOrder::new(&groups, count, budget).await)
    }

    #[test]
    fn bands_end_at_the_edges_of_groups() {
        let groups = [0, 0, 0, 1, 1, 1, 1, 2, 3, 3];
        let order = now(async |budget| StackOrder::new(&groups, 4, budget).await);
        let sizes = [3, 4, 3, 1, 1, 30, 9, 2, 2, 8];
        let tree = tree(&sizes, |_| true);
        let mut found = Vec::new();
        let threshold = MergeThreshold::uniform(5);
        tree.walk(
            0,
            u64::MAX,
            Merging { threshold: &threshold, order: Some(&order), bands: true },
            &|b| sizes[b as usize],
            &mut |p| found.push((p.low, p.high, p.block, p.merged)),
        );
        // Group 0 is one band, although its blocks together exceed the threshold. One block is
        // high enough to see. Group 2 is lower than the threshold, so it merges with its neighbor
        // from group 3, but the rest of group 3 does not.
        assert_eq!(
            found,
            [
                (0, 10, 1, true),
                (10, 12, 3, true),
                (12, 42, 5, false),
                (42, 51, 6, false),
                (51, 55, 7, true),
                (55, 63, 9, false)
            ]
        );
    }

    #[test]
    fn changes_above_leave_lower_pieces_unchanged() {
        let sizes = sizes();
        let order = order(1000);
        let walk = |tree: &SumTree, merging: Merging<'_>| {
            let mut out = Vec::new();
            tree.walk(0, u64::MAX, merging, &|b| sizes[b as usize], &mut |piece| out.push(piece));
            out
        };
        let mut compared = [0; 2];
        for seed in 0..800u32 {
            let is_banded = seed % 2 == 1;
            let seed = seed / 2;
            let lowest = seed * 37 % 1000;
            // Some of the blocks above change too.
            let toggled: Vec<u32> =
                (lowest..1000).filter(|b| *b == lowest || b * seed % 11 == 0).collect();
            let mut threshold =
                MergeThreshold::for_cell(0, 16, 11, [1, 7, 60, 300][seed as usize % 4]);
            // In four of five cases some bands are coarser.
            threshold.coarsen(
                (0..seed % 5).map(|i| u64::from(i * seed * 977 % 30_000)),
                1 + seed as usize % 9,
                3,
            );
            let order = is_banded.then_some(&order);
            let merging = Merging { threshold: &threshold, order, bands: is_banded };
            let mut tree = tree(&sizes, |b| !(b as u32 * (seed + 1)).is_multiple_of(3));
            let before = (walk(&tree, merging), tree.unchanged_below(lowest, merging));
            tree.toggle(&toggled, &|b| sizes[b as usize]);
            let after = (walk(&tree, merging), tree.unchanged_below(lowest, merging));
            let height = before.1.min(after.1);
            let unchanged = |pieces: &[StackPiece]| {
                let end = pieces.partition_point(|p| p.high <= height);
                let can_grow = |p: &StackPiece| is_banded || p.bytes() < threshold.at(p.low);
                let end = if end > 0 && can_grow(&pieces[end - 1]) { end - 1 } else { end };
                pieces[..end].to_vec()
            };
            let kept = unchanged(&before.0);
            assert_eq!(after.0[..kept.len()], kept, "{lowest} {threshold:?} {is_banded}");
            // A walk from there on continues with the same pieces.
            let mut above = Vec::new();
            let from = kept.last().map_or(0, |piece| piece.high);
            tree.walk(from, u64::MAX, merging, &|b| sizes[b as usize], &mut |p| above.push(p));
            assert_eq!(after.0[kept.len()..], above, "{lowest} {threshold:?} {is_banded}");
            compared[usize::from(is_banded)] += kept.len();
        }
        assert!(compared[0] > 1000 && compared[1] > 500, "{compared:?}");
    }
}
