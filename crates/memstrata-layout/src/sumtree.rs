//! Sums over the stack: which bytes lie below a block, and what is large enough to see.

/// A complete binary tree over blocks in stack order. Each node holds the live bytes below it and its largest live leaf.
#[derive(Clone, Debug)]
pub(crate) struct SumTree {
    /// Leaves, a power of two.
    width: usize,
    sums: Vec<u64>,
    largest: Vec<u32>,
}

impl SumTree {
    pub(crate) fn new(leaves: usize) -> Self {
        let width = leaves.next_power_of_two().max(1);
        let mut largest = vec![0; 2 * width];
        for node in (1..2 * width).rev() {
            largest[node] = if node >= width { (node - width) as u32 } else { largest[2 * node] };
        }
        Self { width, sums: vec![0; 2 * width], largest }
    }

    /// Set one leaf, and all that follows from it.
    pub(crate) fn set(&mut self, leaf: u32, bytes: u64) {
        let mut node = self.width + leaf as usize;
        self.sums[node] = bytes;
        while node > 1 {
            node /= 2;
            self.pull(node);
        }
    }

    /// Set all leaves at once: much cheaper than one by one.
    pub(crate) fn fill(&mut self, bytes: impl Iterator<Item = u64>) {
        let leaves = &mut self.sums[self.width..];
        leaves.fill(0);
        for (leaf, bytes) in leaves.iter_mut().zip(bytes) {
            *leaf = bytes;
        }
        for node in (1..self.width).rev() {
            self.pull(node);
        }
    }

    fn pull(&mut self, node: usize) {
        let (left, right) = (2 * node, 2 * node + 1);
        self.sums[node] = self.sums[left] + self.sums[right];
        let bytes_of = |n: usize| self.sums[self.width + self.largest[n] as usize];
        self.largest[node] = if bytes_of(left) >= bytes_of(right) { self.largest[left] } else { self.largest[right] };
    }

    /// Walk the live bytes within `[low, high)` upwards in pieces: whole blocks of at least `least` bytes, and runs of
    /// smaller ones put together until they reach it. Returns the number of nodes visited.
    pub(crate) fn walk(&self, low: u64, high: u64, least: u64, mut emit: impl FnMut(Piece)) -> u64 {
        let mut walk = Walk { tree: self, low, high, least: least.max(1), pending: None, visited: 0, emit: &mut emit };
        walk.node(1, 0);
        walk.flush();
        walk.visited
    }

    /// Every live leaf within `[low, high)`, with its bytes: what a merged piece is made of.
    pub(crate) fn leaves(&self, low: u64, high: u64, mut each: impl FnMut(u32, u64)) {
        self.walk(low, high, 1, |piece| each(piece.block, piece.high - piece.low));
    }
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

struct Walk<'a, F> {
    tree: &'a SumTree,
    low: u64,
    high: u64,
    least: u64,
    pending: Option<Piece>,
    visited: u64,
    emit: &'a mut F,
}

impl<F: FnMut(Piece)> Walk<'_, F> {
    fn node(&mut self, node: usize, below: u64) {
        let bytes = self.tree.sums[node];
        self.visited += 1;
        if bytes == 0 || below + bytes <= self.low || below >= self.high {
            return;
        }
        let block = self.tree.largest[node];
        let alone = self.tree.sums[self.tree.width + block as usize] == bytes;
        if bytes < self.least || alone {
            self.piece(Piece { low: below, high: below + bytes, block, merged: !alone });
            return;
        }
        let left = 2 * node;
        self.node(left, below);
        self.node(left + 1, below + self.tree.sums[left]);
    }

    fn piece(&mut self, piece: Piece) {
        if piece.high - piece.low >= self.least {
            self.flush();
            (self.emit)(piece);
            return;
        }
        let bytes_of = |block: u32| self.tree.sums[self.tree.width + block as usize];
        let pending = match self.pending {
            Some(before) => {
                let larger = bytes_of(before.block) >= bytes_of(piece.block);
                let block = if larger { before.block } else { piece.block };
                Piece { low: before.low, high: piece.high, block, merged: true }
            }
            None => piece,
        };
        self.pending = Some(pending);
        if pending.high - pending.low >= self.least {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Some(piece) = self.pending.take() {
            (self.emit)(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sizes: &[u64], low: u64, high: u64, least: u64) -> Vec<(u64, u64, u32, bool)> {
        let mut tree = SumTree::new(sizes.len());
        tree.fill(sizes.iter().copied());
        let mut out = Vec::new();
        tree.walk(low, high, least, |p| out.push((p.low, p.high, p.block, p.merged)));
        out
    }

    #[test]
    fn small_neighbours_merge_into_the_largest_and_none_is_lost() {
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

    #[test]
    fn setting_one_leaf_equals_filling_all() {
        let mut one = SumTree::new(5);
        for (leaf, bytes) in [(4, 9), (0, 3), (4, 2), (1, 7)] {
            one.set(leaf, bytes);
        }
        let mut all = SumTree::new(5);
        all.fill([3, 7, 0, 0, 2].into_iter());
        assert_eq!(one.sums, all.sums);
        assert_eq!(one.sums[1], 12);
    }
}
