//! What an allocator holds, and how it starts with memory that it already has.

use crate::allocator::Allocator;
use crate::blocks::{Block, BlockId, BlockState, ListKey, NONE};

/// A segment that an allocator starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartSegment {
    /// First address.
    pub address: u64,
    /// The stream.
    pub stream: u32,
    /// The private pool. 0 for the default pool.
    pub pool: u32,
    /// Whether the segment belongs to the small pool.
    pub is_small: bool,
    /// Whether the segment is a mapped range of an expandable segment.
    pub is_expandable: bool,
    /// The blocks, without gaps. Neighboring free blocks are one block.
    pub blocks: Vec<StartBlock>,
}

/// A block of a [`StartSegment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartBlock {
    /// Bytes.
    pub size: u64,
    /// Requested bytes. 0 for a free block.
    pub requested: u64,
    /// [`BlockState::Unmapped`] is not allowed here.
    pub state: BlockState,
}

/// A block as the allocator has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Requested bytes. 0 for a free block.
    pub requested: u64,
    /// The state.
    pub state: BlockState,
    /// The stream.
    pub stream: u32,
    /// The private pool. 0 for the default pool.
    pub pool: u32,
    /// Whether the block belongs to the small pool.
    pub is_small: bool,
    /// Whether the block belongs to an expandable segment.
    pub is_expandable: bool,
}

/// Reserved memory by what it is used for, in bytes. The parts add up to the reserved bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservedParts {
    /// Requested bytes of all blocks in use.
    pub in_use: u64,
    /// Bytes of blocks in use beyond the requests.
    pub rounding: u64,
    /// Free segments, and free pages of expandable segments. The allocator returns them when memory
    /// is short.
    pub idle: u64,
    /// Free parts of segments in use. Only their own stream and pool can use them.
    pub stuck: u64,
    /// Free parts of segments in use in the small pool.
    pub small: u64,
}

impl ReservedParts {
    /// The reserved bytes.
    pub fn total(&self) -> u64 {
        self.in_use + self.rounding + self.idle + self.stuck + self.small
    }

    /// Adds the parts of another pool.
    pub fn add(&mut self, other: &Self) {
        self.in_use += other.in_use;
        self.rounding += other.rounding;
        self.idle += other.idle;
        self.stuck += other.stuck;
        self.small += other.small;
    }
}

impl Allocator {
    /// Adds a segment with its blocks, for an allocator that starts with memory. Segments come in
    /// address order. Returns the blocks in order.
    pub fn start_with(&mut self, segment: &StartSegment) -> Vec<BlockId> {
        let StartSegment { address, stream, pool, is_small, is_expandable, .. } = *segment;
        let list = self.blocks.list(ListKey { pool, is_small, stream });
        let total = segment.blocks.iter().fold(0u64, |sum, block| sum.saturating_add(block.size));
        let (range, mut prev, after) =
            if is_expandable { self.start_range(list, address, total) } else { (0, NONE, NONE) };
        let number = match self.blocks.neighbor(prev).or(self.blocks.neighbor(after)) {
            Some(neighbor) if is_expandable => neighbor.segment,
            _ => self.blocks.next_segment(),
        };
        let mut start = address;
        let mut ids = Vec::with_capacity(segment.blocks.len());
        for &StartBlock { size, requested, state } in &segment.blocks {
            let block = Block {
                start,
                size,
                requested,
                state,
                list,
                range,
                prev,
                segment: number,
                ..Block::default()
            };
            prev = self.blocks.insert(block);
            let id = self.blocks.name(prev);
            if !block.is_unused() {
                self.stats.active_bytes += size;
                self.stats.requested_bytes += requested;
            }
            if state == BlockState::PendingFree {
                self.pending.push(id);
            }
            start = start.saturating_add(size);
            ids.push(id);
        }
        if after != NONE && prev != NONE {
            self.blocks.get_mut(prev).next = after;
            self.blocks.get_mut(after).prev = prev;
        }
        self.stats.active_peak = self.stats.active_bytes;
        self.driver.count(total);
        self.reserve(total);
        ids
    }

    /// Makes room for a mapped range in an expandable segment: in the one that was added last, if
    /// its address range reaches so far, else in a new one. Returns the start of the address range,
    /// and the blocks before and after.
    fn start_range(&mut self, list: u32, address: u64, total: u64) -> (u64, u32, u32) {
        let last = self.blocks.lists[list as usize].unmapped.iter().next_back();
        if let Some((&start, &id)) = last
            && start <= address
            && address.saturating_add(total) <= self.blocks.get(id).end()
        {
            let block = *self.blocks.get(id);
            self.blocks.unlist(id);
            if start == address {
                // The mapped range follows another one directly.
                let prev = block.prev;
                self.blocks.remove(id);
                let after = self.tail(list, block.range, address + total, block.end());
                return (block.range, prev, after);
            }
            self.blocks.get_mut(id).size = address - start;
            self.blocks.list_unused(id);
            let after = self.tail(list, block.range, address + total, block.end());
            return (block.range, id, after);
        }
        let page = self.blocks.lists[list as usize].page;
        let end = address.saturating_add(self.driver.range_size(page).max(total));
        let after = self.tail(list, address, address + total, end);
        (address, NONE, after)
    }

    /// The unmapped end of an expandable segment.
    fn tail(&mut self, list: u32, range: u64, start: u64, end: u64) -> u32 {
        if start >= end {
            return NONE;
        }
        self.blocks.insert(Block {
            start,
            size: end - start,
            state: BlockState::Unmapped,
            list,
            range,
            ..Block::default()
        })
    }

    /// The size of a block in use, in bytes. 0 for a block that is free again.
    pub fn size_of(&self, id: BlockId) -> u64 {
        self.blocks.find(id).map_or(0, |at| self.blocks.get(at).size)
    }

    /// The address of a block in use. 0 for a block that is free again.
    pub fn address_of(&self, id: BlockId) -> u64 {
        self.blocks.find(id).map_or(0, |at| self.blocks.get(at).start)
    }

    /// Whether a block in use lies in an expandable segment.
    pub fn is_expandable(&self, id: BlockId) -> bool {
        self.blocks.find(id).is_some_and(|at| self.blocks.get(at).is_expandable())
    }

    /// All blocks with memory, by address.
    pub fn blocks(&self) -> Vec<BlockInfo> {
        let mapped = self.blocks.iter().filter(|(_, b)| b.state != BlockState::Unmapped);
        let mut all: Vec<BlockInfo> = mapped
            .map(|(_, block)| {
                let key = self.blocks.lists[block.list as usize].key;
                BlockInfo {
                    address: block.start,
                    size: block.size,
                    requested: block.requested,
                    state: block.state,
                    stream: key.stream,
                    pool: key.pool,
                    is_small: key.is_small,
                    is_expandable: block.is_expandable(),
                }
            })
            .collect();
        all.sort_unstable_by_key(|block| block.address);
        all
    }

    /// What the reserved memory is used for, by private pool and stream, in their order.
    pub fn reserved_parts(&self) -> Vec<((u32, u32), ReservedParts)> {
        let mut all: Vec<((u32, u32), ReservedParts)> = Vec::new();
        for (_, block) in self.blocks.iter() {
            let list = &self.blocks.lists[block.list as usize];
            let key = (list.key.pool, list.key.stream);
            let at = all.binary_search_by_key(&key, |(key, _)| *key).unwrap_or_else(|at| {
                all.insert(at, (key, ReservedParts::default()));
                at
            });
            let parts = &mut all[at].1;
            match block.state {
                BlockState::Unmapped => {}
                BlockState::Allocated | BlockState::PendingFree => {
                    parts.in_use += block.requested.min(block.size);
                    parts.rounding += block.size.saturating_sub(block.requested);
                }
                BlockState::Free => {
                    let idle = self.returnable(block, list.key, list.page);
                    parts.idle += idle;
                    let rest = if list.key.is_small { &mut parts.small } else { &mut parts.stuck };
                    *rest += block.size - idle;
                }
            }
        }
        all.retain(|(_, parts)| parts.total() > 0);
        all
    }

    /// The bytes of a free block that the allocator returns when memory is short.
    fn returnable(&self, block: &Block, key: ListKey, page: u64) -> u64 {
        if key.pool != 0 && self.unused_pools.binary_search(&key.pool).is_err() {
            return 0;
        }
        if block.is_expandable() {
            let from = (block.start - block.range).next_multiple_of(page);
            let to = (block.end() - block.range) / page * page;
            return to.saturating_sub(from);
        }
        if block.is_part() { 0 } else { block.size }
    }
}
