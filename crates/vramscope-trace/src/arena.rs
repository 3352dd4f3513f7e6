//! A replay of the allocator's free lists. Segments consist of extents. An extent is split when a
//! block is carved from it, and merged with free neighbors when its block is freed.
//!
//! Extents link to their neighbors. So every operation is one lookup and a few writes, except on
//! expandable segments.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

/// A range of a segment that is one block, or free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// The block that occupies the extent. `None` if the extent is free.
    pub(crate) block: Option<u32>,
    /// The expandable segment that the extent belongs to. `None` in an ordinary segment. Newly
    /// mapped ranges merge with neighbors of the same group.
    pub(crate) group: Option<u32>,
    /// Neighbors in the same segment, or [`NONE`].
    prev: u32,
    next: u32,
}

impl Extent {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// All extents of a device.
#[derive(Default)]
pub(crate) struct Arena {
    extents: Vec<Extent>,
    /// Unused entries of `extents`.
    unused: Vec<u32>,
    by_start: FxHashMap<u64, u32>,
    /// Extents of expandable segments by address. Only mapped ranges can appear and disappear
    /// between other extents, so only they need an order.
    expandable: BTreeMap<u64, u32>,
    /// All extents by address, for [`Arena::cut`]. `None` where blocks only start at the start of a
    /// free extent.
    sorted: Option<BTreeMap<u64, u32>>,
}

impl Arena {
    /// An arena that supports [`Arena::cut`] and [`Arena::cut_free`], for traces that lack some of
    /// the allocations, and for allocators that align blocks.
    pub(crate) fn with_gaps() -> Self {
        Self { sorted: Some(BTreeMap::new()), ..Self::default() }
    }

    /// Splits an extent so that a free extent starts at `at`.
    ///
    /// The extent around `at` must be free, or occupied by a block that does not need the memory
    /// from `at` on. `min_end` is the lowest possible end of a block. Returns the block that was
    /// shortened.
    pub(crate) fn cut(&mut self, at: u64, min_end: impl Fn(u32) -> u64) -> Option<u32> {
        let (_, &id) = self.sorted.as_ref()?.range(..at).next_back()?;
        let extent = self.extents[id as usize];
        if extent.end() <= at || extent.block.is_some_and(|block| min_end(block) > at) {
            return None;
        }
        self.extents[id as usize].size = at - extent.start;
        let rest = self.insert(Extent {
            start: at,
            size: extent.end() - at,
            block: None,
            prev: id,
            ..extent
        });
        if extent.block.is_some() {
            self.merge(rest);
        }
        extent.block
    }

    /// Splits the free extent around `at`, so that one starts there. Returns false, with no effect,
    /// if no free extent is around it, or more than `max` bytes of it are in front.
    pub(crate) fn cut_free(&mut self, at: u64, max: u64) -> bool {
        let before = self.sorted.as_ref().and_then(|sorted| sorted.range(..at).next_back());
        if before.is_none_or(|(&start, _)| at - start > max) {
            return false;
        }
        self.cut(at, |_| u64::MAX);
        self.get(at).is_some()
    }

    /// The extent that starts at an address.
    pub(crate) fn get(&self, start: u64) -> Option<Extent> {
        self.by_start.get(&start).map(|&id| self.extents[id as usize])
    }

    /// Number of extents.
    pub(crate) fn len(&self) -> usize {
        self.extents.len() - self.unused.len()
    }

    /// Adds an extent, and links its neighbors to it.
    fn insert(&mut self, extent: Extent) -> u32 {
        let id = self.unused.pop().unwrap_or_else(|| {
            self.extents.push(extent);
            self.extents.len() as u32 - 1
        });
        self.extents[id as usize] = extent;
        self.by_start.insert(extent.start, id);
        if let Some(sorted) = &mut self.sorted {
            sorted.insert(extent.start, id);
        }
        if extent.group.is_some() {
            self.expandable.insert(extent.start, id);
        }
        if extent.prev != NONE {
            self.extents[extent.prev as usize].next = id;
        }
        if extent.next != NONE {
            self.extents[extent.next as usize].prev = id;
        }
        id
    }

    /// Removes an extent, and links its neighbors to each other.
    fn remove(&mut self, id: u32) {
        let extent = self.extents[id as usize];
        self.by_start.remove(&extent.start);
        if let Some(sorted) = &mut self.sorted {
            sorted.remove(&extent.start);
        }
        if extent.group.is_some() {
            self.expandable.remove(&extent.start);
        }
        if extent.prev != NONE {
            self.extents[extent.prev as usize].next = extent.next;
        }
        if extent.next != NONE {
            self.extents[extent.next as usize].prev = extent.prev;
        }
        self.unused.push(id);
    }

    /// Adds an extent of the state before the window, in address order. `prev_start` is the start
    /// of its left neighbor in the same segment.
    pub(crate) fn push(
        &mut self,
        start: u64,
        size: u64,
        block: Option<u32>,
        group: Option<u32>,
        prev_start: Option<u64>,
    ) {
        let prev = prev_start.and_then(|start| self.by_start.get(&start)).copied().unwrap_or(NONE);
        self.insert(Extent { start, size, block, group, prev, next: NONE });
    }

    /// Adds a new segment, or a newly mapped range. A mapped range merges with its free neighbors.
    pub(crate) fn reserve(&mut self, start: u64, size: u64, group: Option<u32>) {
        let mut extent = Extent { start, size, block: None, group, prev: NONE, next: NONE };
        if group.is_some() {
            let in_group = |id: &&u32| self.extents[**id as usize].group == group;
            let before =
                self.expandable.range(..start).next_back().map(|(_, id)| id).filter(in_group);
            let after = self.expandable.range(start..).next().map(|(_, id)| id).filter(in_group);
            extent.prev = before
                .copied()
                .filter(|&id| self.extents[id as usize].end() == start)
                .unwrap_or(NONE);
            extent.next = after
                .copied()
                .filter(|&id| self.extents[id as usize].start == extent.end())
                .unwrap_or(NONE);
        }
        let id = self.insert(extent);
        self.merge(id);
    }

    /// Removes a range that the allocator gives back to the driver. Returns whether the whole range
    /// existed and was free.
    pub(crate) fn release(&mut self, start: u64, size: u64, is_expandable: bool) -> bool {
        let end = start.saturating_add(size);
        if !is_expandable {
            let Some(&id) = self.by_start.get(&start) else { return false };
            let extent = self.extents[id as usize];
            let whole = extent.block.is_none()
                && extent.size == size
                && extent.prev == NONE
                && extent.next == NONE;
            let mut next = Some(id);
            while let Some(id) = next {
                let after = self.extents[id as usize].next;
                self.remove(id);
                next = (after != NONE && self.extents[after as usize].start < end).then_some(after);
            }
            return whole;
        }
        let first = self.expandable.range(..=start).next_back().map(|(_, &id)| id);
        let Some(id) = first.filter(|&id| self.extents[id as usize].end() >= end) else {
            return false;
        };
        let extent = self.extents[id as usize];
        if extent.block.is_some() {
            return false;
        }
        self.remove(id);
        if extent.prev != NONE {
            self.extents[extent.prev as usize].next = NONE;
        }
        if extent.next != NONE {
            self.extents[extent.next as usize].prev = NONE;
        }
        if extent.start < start {
            self.insert(Extent { size: start - extent.start, next: NONE, ..extent });
        }
        if end < extent.end() {
            self.insert(Extent { start: end, size: extent.end() - end, prev: NONE, ..extent });
        }
        true
    }

    /// Carves a block of `size` bytes from the extent at `start`. The rest of the extent is free.
    pub(crate) fn carve(&mut self, start: u64, size: u64, block: u32) {
        let Some(&id) = self.by_start.get(&start) else { return };
        let extent = self.extents[id as usize];
        self.extents[id as usize].block = Some(block);
        if size < extent.size {
            self.extents[id as usize].size = size;
            let rest = Extent {
                start: start + size,
                size: extent.size - size,
                block: None,
                prev: id,
                ..extent
            };
            self.insert(rest);
        }
    }

    /// Extends a block into the free extent behind it, up to the address `to`. Returns `false` when
    /// `block` does not occupy the extent at `start`, or no free memory behind it reaches beyond
    /// `to`.
    pub(crate) fn stretch(&mut self, start: u64, block: u32, to: u64) -> bool {
        let Some(&id) =
            self.by_start.get(&start).filter(|&&id| self.extents[id as usize].block == Some(block))
        else {
            return false;
        };
        let next = self.extents[id as usize].next;
        if next == NONE
            || self.extents[next as usize].block.is_some()
            || self.extents[next as usize].end() <= to
        {
            return false;
        }
        let free = self.extents[next as usize];
        self.remove(next);
        self.extents[id as usize].size = to - start;
        self.insert(Extent { start: to, size: free.end() - to, ..free });
        true
    }

    /// Frees a block. Returns `false` when `block` does not occupy the extent at `start`.
    pub(crate) fn free(&mut self, start: u64, block: u32) -> bool {
        match self.by_start.get(&start) {
            Some(&id) if self.extents[id as usize].block == Some(block) => {
                self.extents[id as usize].block = None;
                self.merge(id);
                true
            }
            _ => false,
        }
    }

    /// Merges a free extent with its free neighbors.
    fn merge(&mut self, id: u32) {
        let mut id = id;
        let prev = self.extents[id as usize].prev;
        if prev != NONE && self.extents[prev as usize].block.is_none() {
            let size = self.extents[id as usize].size;
            self.remove(id);
            self.extents[prev as usize].size += size;
            id = prev;
        }
        let next = self.extents[id as usize].next;
        if next != NONE && self.extents[next as usize].block.is_none() {
            let size = self.extents[next as usize].size;
            self.remove(next);
            self.extents[id as usize].size += size;
        }
    }
}
