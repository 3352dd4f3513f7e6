//! Expandable segments: address ranges that grow and shrink by pages.

use crate::SegmentAction;
use crate::allocator::Allocator;
use crate::blocks::{Block, BlockState, NONE};
use crate::observer::Observer;

impl Allocator {
    /// Maps pages until a block of `size` bytes is free, and takes it from its free list
    /// (`try_allocate_expandable_block`). Pages stay mapped when a later one cannot be had.
    pub(crate) fn expandable_block(
        &mut self,
        list: u32,
        size: u64,
        observer: &mut impl Observer,
    ) -> Option<u32> {
        let page = self.blocks.lists[list as usize].page;
        if size > self.driver.range_size(page) {
            return None;
        }
        let mut id = self.expandable_candidate(list, size);
        if self.blocks.get(id).state == BlockState::Unmapped {
            self.map(id, size, observer)?;
        }
        while self.blocks.get(id).size < size {
            // The block is free, and unmapped memory follows, except after a request that is larger
            // than an address range. No device has memory for that.
            let Block { size: found, next, .. } = *self.blocks.get(id);
            let missing = size - found;
            if next == NONE {
                return None;
            }
            self.map(next, missing, observer)?;
            id = next;
        }
        self.blocks.unlist(id);
        Some(id)
    }

    /// The lowest free or unmapped block after which `size` bytes of address space are unused
    /// (`find_expandable_block`).
    fn expandable_candidate(&mut self, list: u32, size: u64) -> u32 {
        for &unmapped in self.blocks.lists[list as usize].unmapped.values() {
            let prev = self.blocks.get(unmapped).prev;
            let before = self.blocks.neighbor(prev).filter(|block| block.is_unused());
            let first = if before.is_some() { prev } else { unmapped };
            if self.has_address_space(first, size) {
                return first;
            }
        }
        let page = self.blocks.lists[list as usize].page;
        let (start, bytes) = (self.driver.reserve_range(), self.driver.range_size(page));
        let segment = self.blocks.next_segment();
        self.blocks.insert(Block {
            start,
            segment,
            size: bytes,
            state: BlockState::Unmapped,
            list,
            range: start,
            ..Block::default()
        })
    }

    fn has_address_space(&self, first: u32, size: u64) -> bool {
        let (mut found, mut at) = (0, first);
        while found < size
            && let Some(block) = self.blocks.neighbor(at).filter(|block| block.is_unused())
        {
            found += block.size;
            at = block.next;
        }
        found >= size
    }

    /// Maps the pages for the first `bytes` of an unmapped block, at most the whole block
    /// (`map_block`). `None` when the device has too little memory.
    fn map(&mut self, id: u32, bytes: u64, observer: &mut impl Observer) -> Option<()> {
        let Block { start, size, range, list, .. } = *self.blocks.get(id);
        let page = self.blocks.lists[list as usize].page;
        // Pages count from the start of the address range.
        let end = start - range + bytes.min(size);
        let mapped = (end.next_multiple_of(page) - (start - range)).min(size);
        if !self.driver.take(mapped) {
            return None;
        }
        self.blocks.unlist(id);
        if mapped < size {
            self.blocks.split(id, mapped, BlockState::Unmapped);
        }
        self.blocks.get_mut(id).state = BlockState::Free;
        self.blocks.merge_and_list(id);
        self.reserve(mapped);
        self.notify(observer, SegmentAction::Map, list, start, mapped);
        Some(())
    }

    /// Returns the whole pages of a free block (`unmap_block`), and the address range when nothing
    /// else is in it.
    pub(crate) fn unmap(&mut self, id: u32, observer: &mut impl Observer) {
        let Block { start, size, range, list, .. } = *self.blocks.get(id);
        let page = self.blocks.lists[list as usize].page;
        let from = range + (start - range).next_multiple_of(page);
        let to = range + (start + size - range) / page * page;
        if from >= to {
            return;
        }
        self.blocks.unlist(id);
        let mut middle = id;
        if from > start {
            middle = self.blocks.split(id, from - start, BlockState::Free);
            self.blocks.list_unused(id);
            self.blocks.unlist(middle);
        }
        if self.blocks.get(middle).size > to - from {
            self.blocks.split(middle, to - from, BlockState::Free);
        }
        self.blocks.get_mut(middle).state = BlockState::Unmapped;
        self.blocks.merge(middle);
        self.driver.give(to - from);
        self.stats.reserved_bytes -= to - from;
        self.notify(observer, SegmentAction::Unmap, list, from, to - from);
        if self.blocks.get(middle).is_part() {
            self.blocks.list_unused(middle);
        } else {
            self.blocks.remove(middle);
            self.driver.free_range(range);
        }
    }
}
