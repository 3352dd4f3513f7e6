//! The allocator's free lists, replayed: pieces of segments, split when a block is carved and
//! merged when it is freed.
//!
//! Pieces know their neighbors, so that every operation but those on expandable segments is a
//! look-up and a few writes.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

/// A piece of a segment: a block in use, or a free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// The block that uses it.
    pub(crate) block: Option<u32>,
    /// Group of an expandable segment; `None` in segments of their own. Neighbors of one group
    /// merge.
    pub(crate) group: Option<u32>,
    prev: u32,
    next: u32,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

#[derive(Default)]
pub(crate) struct Arena {
    pieces: Vec<Piece>,
    spare: Vec<u32>,
    at: FxHashMap<u64, u32>,
    /// Pieces of expandable segments by address: only there can pieces come and go between others.
    expandable: BTreeMap<u64, u32>,
    /// All pieces by address, where blocks may begin within free ones: the trace does not have all
    /// that was carved.
    all: Option<BTreeMap<u64, u32>>,
}

impl Arena {
    /// One in which [`Arena::cut`] works.
    pub(crate) fn with_gaps() -> Self {
        Self { all: Some(BTreeMap::new()), ..Self::default() }
    }

    /// Makes a free piece begin at this address, which lies within one that is free, or that a
    /// block uses which needs none of it: `needs` is where it ends at the least. Gives that block.
    pub(crate) fn cut(&mut self, at: u64, needs: impl Fn(u32) -> u64) -> Option<u32> {
        let (_, &id) = self.all.as_ref()?.range(..at).next_back()?;
        let piece = self.pieces[id as usize];
        if piece.end() <= at || piece.block.is_some_and(|block| needs(block) > at) {
            return None;
        }
        self.pieces[id as usize].size = at - piece.start;
        let rest =
            self.put(Piece { start: at, size: piece.end() - at, block: None, prev: id, ..piece });
        if piece.block.is_some() {
            self.merge(rest);
        }
        piece.block
    }

    /// The piece that starts at an address.
    pub(crate) fn get(&self, start: u64) -> Option<Piece> {
        self.at.get(&start).map(|&id| self.pieces[id as usize])
    }

    /// How many pieces there are.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len() - self.spare.len()
    }

    fn put(&mut self, piece: Piece) -> u32 {
        let id = self.spare.pop().unwrap_or_else(|| {
            self.pieces.push(piece);
            self.pieces.len() as u32 - 1
        });
        self.pieces[id as usize] = piece;
        self.at.insert(piece.start, id);
        if let Some(all) = &mut self.all {
            all.insert(piece.start, id);
        }
        if piece.group.is_some() {
            self.expandable.insert(piece.start, id);
        }
        if piece.prev != NONE {
            self.pieces[piece.prev as usize].next = id;
        }
        if piece.next != NONE {
            self.pieces[piece.next as usize].prev = id;
        }
        id
    }

    fn drop_piece(&mut self, id: u32) {
        let piece = self.pieces[id as usize];
        self.at.remove(&piece.start);
        if let Some(all) = &mut self.all {
            all.remove(&piece.start);
        }
        if piece.group.is_some() {
            self.expandable.remove(&piece.start);
        }
        if piece.prev != NONE {
            self.pieces[piece.prev as usize].next = piece.next;
        }
        if piece.next != NONE {
            self.pieces[piece.next as usize].prev = piece.prev;
        }
        self.spare.push(id);
    }

    /// A new piece behind the one that ends where it starts, when the two belong together; used for
    /// what was there before the window, in order of address.
    pub(crate) fn push(
        &mut self,
        start: u64,
        size: u64,
        block: Option<u32>,
        group: Option<u32>,
        behind: Option<u64>,
    ) {
        let prev = behind.and_then(|start| self.at.get(&start)).copied().unwrap_or(NONE);
        self.put(Piece { start, size, block, group, prev, next: NONE });
    }

    /// A new segment, or a newly mapped range, which merges with its free neighbors.
    pub(crate) fn reserve(&mut self, start: u64, size: u64, group: Option<u32>) {
        let mut piece = Piece { start, size, block: None, group, prev: NONE, next: NONE };
        if group.is_some() {
            let same = |id: &&u32| self.pieces[**id as usize].group == group;
            let before = self.expandable.range(..start).next_back().map(|(_, id)| id).filter(same);
            let after = self.expandable.range(start..).next().map(|(_, id)| id).filter(same);
            piece.prev = before
                .copied()
                .filter(|&id| self.pieces[id as usize].end() == start)
                .unwrap_or(NONE);
            piece.next = after
                .copied()
                .filter(|&id| self.pieces[id as usize].start == piece.end())
                .unwrap_or(NONE);
        }
        let id = self.put(piece);
        self.merge(id);
    }

    /// A range is given back. Whether it was free and all there.
    pub(crate) fn release(&mut self, start: u64, size: u64, is_expandable: bool) -> bool {
        let end = start.saturating_add(size);
        if !is_expandable {
            let Some(&id) = self.at.get(&start) else { return false };
            let piece = self.pieces[id as usize];
            let whole = piece.block.is_none()
                && piece.size == size
                && piece.prev == NONE
                && piece.next == NONE;
            let mut next = Some(id);
            while let Some(id) = next {
                let after = self.pieces[id as usize].next;
                self.drop_piece(id);
                next = (after != NONE && self.pieces[after as usize].start < end).then_some(after);
            }
            return whole;
        }
        let first = self.expandable.range(..=start).next_back().map(|(_, &id)| id);
        let Some(id) = first.filter(|&id| self.pieces[id as usize].end() >= end) else {
            return false;
        };
        let piece = self.pieces[id as usize];
        if piece.block.is_some() {
            return false;
        }
        self.drop_piece(id);
        if piece.prev != NONE {
            self.pieces[piece.prev as usize].next = NONE;
        }
        if piece.next != NONE {
            self.pieces[piece.next as usize].prev = NONE;
        }
        if piece.start < start {
            self.put(Piece { size: start - piece.start, next: NONE, ..piece });
        }
        if end < piece.end() {
            self.put(Piece { start: end, size: piece.end() - end, prev: NONE, ..piece });
        }
        true
    }

    /// Carves a block of `size` from the free piece that starts at `start`; the rest, if any, stays
    /// free.
    pub(crate) fn carve(&mut self, start: u64, size: u64, block: u32) {
        let Some(&id) = self.at.get(&start) else { return };
        let piece = self.pieces[id as usize];
        self.pieces[id as usize].block = Some(block);
        if size < piece.size {
            self.pieces[id as usize].size = size;
            let rest = Piece {
                start: start + size,
                size: piece.size - size,
                block: None,
                prev: id,
                ..piece
            };
            self.put(rest);
        }
    }

    /// Moves the border between the block that starts at `owner` and the free piece behind it, up
    /// to `to`. Whether they were there, and the border could go so far.
    pub(crate) fn stretch(&mut self, owner: u64, block: u32, to: u64) -> bool {
        let Some(&id) =
            self.at.get(&owner).filter(|&&id| self.pieces[id as usize].block == Some(block))
        else {
            return false;
        };
        let next = self.pieces[id as usize].next;
        if next == NONE
            || self.pieces[next as usize].block.is_some()
            || self.pieces[next as usize].end() <= to
        {
            return false;
        }
        let free = self.pieces[next as usize];
        self.drop_piece(next);
        self.pieces[id as usize].size = to - owner;
        self.put(Piece { start: to, size: free.end() - to, ..free });
        true
    }

    /// Frees the block that starts at `start`. Whether there was one.
    pub(crate) fn free(&mut self, start: u64, block: u32) -> bool {
        match self.at.get(&start) {
            Some(&id) if self.pieces[id as usize].block == Some(block) => {
                self.pieces[id as usize].block = None;
                self.merge(id);
                true
            }
            _ => false,
        }
    }

    /// Merges a free piece with its free neighbors.
    fn merge(&mut self, id: u32) {
        let mut id = id;
        let prev = self.pieces[id as usize].prev;
        if prev != NONE && self.pieces[prev as usize].block.is_none() {
            let size = self.pieces[id as usize].size;
            self.drop_piece(id);
            self.pieces[prev as usize].size += size;
            id = prev;
        }
        let next = self.pieces[id as usize].next;
        if next != NONE && self.pieces[next as usize].block.is_none() {
            let size = self.pieces[next as usize].size;
            self.drop_piece(next);
            self.pieces[id as usize].size += size;
        }
    }
}
