//! Blocks and free lists.

use crate::settings::SMALL_SEGMENT;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// No block.
pub(crate) const NONE: u32 = u32::MAX;

/// A block of the allocator. It names the block until the block is free again. After that it names
/// nothing: a later block at the same place has another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId {
    pub(crate) at: u32,
    pub(crate) serial: u32,
}

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// The program holds it.
    Allocated,
    /// The program freed it, and a stream still uses it.
    PendingFree,
    /// It is in the cache.
    Free,
    /// Address space of an expandable segment without memory.
    Unmapped,
}

/// A range of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// Requested bytes. 0 for a free block.
    pub(crate) requested: u64,
    pub(crate) state: BlockState,
    /// Index of the free list.
    pub(crate) list: u32,
    /// Start of the expandable segment's address range. 0 for an ordinary segment.
    pub(crate) range: u64,
    /// Neighbors in the same segment, or [`NONE`].
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// The number of its segment. The driver's first segment has the lowest. 0 where addresses
    /// decide between equal blocks.
    pub(crate) segment: u64,
    /// The number of searches of its pool when it became free, for garbage collection.
    pub(crate) freed_at: u64,
    /// Tells the requests apart that a place has served.
    pub(crate) serial: u32,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            start: 0,
            size: 0,
            requested: 0,
            state: BlockState::Free,
            list: 0,
            range: 0,
            prev: NONE,
            next: NONE,
            segment: 0,
            freed_at: 0,
            serial: 0,
        }
    }
}

/// The place of a free block in its list: by size, then the number of its segment, then address.
/// The last value is the block.
pub(crate) type Place = (u64, u64, u64, u32);

impl Block {
    /// The block's place in its free list, under the number `id`.
    pub(crate) fn place(&self, id: u32) -> Place {
        (self.size, self.segment, self.start, id)
    }

    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }

    pub(crate) fn is_expandable(&self) -> bool {
        self.range != 0
    }

    /// Whether the block is a part of a segment (`is_split`).
    pub(crate) fn is_part(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }

    /// Whether the block neither serves the program nor a stream.
    pub(crate) fn is_unused(&self) -> bool {
        matches!(self.state, BlockState::Free | BlockState::Unmapped)
    }
}

/// What a free list serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ListKey {
    /// The private pool. 0 for the default pool.
    pub(crate) pool: u32,
    /// Whether the list serves blocks of at most 1 MiB.
    pub(crate) is_small: bool,
    pub(crate) stream: u32,
}

/// The unused blocks of one stream and pool.
#[derive(Clone, Debug)]
pub(crate) struct FreeList {
    pub(crate) key: ListKey,
    /// The free blocks.
    pub(crate) free: BTreeSet<Place>,
    /// Unmapped blocks by address.
    pub(crate) unmapped: BTreeMap<u64, u32>,
    /// The page of the list's expandable segments.
    pub(crate) page: u64,
}

/// All blocks and free lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    all: Vec<Block>,
    /// Unused entries of `all`.
    vacant: Vec<u32>,
    pub(crate) lists: Vec<FreeList>,
    by_key: FxHashMap<ListKey, u32>,
    /// Searches of the large default pool, for garbage collection.
    pub(crate) searches: u64,
    /// Requests so far.
    serial: u32,
    /// Segments so far, where their order counts.
    segments: Option<u64>,
    /// The page of expandable segments of the large pool.
    large_page: u64,
}

impl Blocks {
    /// No blocks. Older segments serve first if `by_age`, else those with lower addresses.
    pub(crate) fn new(large_page: u64, by_age: bool) -> Self {
        Self { large_page, segments: by_age.then_some(0), ..Self::default() }
    }

    /// Whether addresses decide which of several equal free blocks serves a request.
    pub(crate) fn are_by_address(&self) -> bool {
        self.segments.is_none()
    }

    /// The number of a new segment.
    pub(crate) fn next_segment(&mut self) -> u64 {
        self.segments.as_mut().map_or(0, |count| {
            *count += 1;
            *count
        })
    }

    pub(crate) fn get(&self, id: u32) -> &Block {
        &self.all[id as usize]
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> &mut Block {
        &mut self.all[id as usize]
    }

    /// Names a block for a new request.
    pub(crate) fn name(&mut self, at: u32) -> BlockId {
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        self.get_mut(at).serial = serial;
        BlockId { at, serial }
    }

    /// The block in use that an id names, unless it is free again.
    pub(crate) fn find(&self, id: BlockId) -> Option<u32> {
        let block = self.all.get(id.at as usize)?;
        let is_same = block.serial == id.serial && block.size > 0 && !block.is_unused();
        is_same.then_some(id.at)
    }

    /// The neighbor `id` unless it is [`NONE`].
    pub(crate) fn neighbor(&self, id: u32) -> Option<&Block> {
        (id != NONE).then(|| self.get(id))
    }

    /// All blocks that exist.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Block)> {
        // A vacant entry has no bytes.
        (0..).zip(&self.all).filter(|(_, block)| block.size > 0)
    }

    /// The free list of a key.
    pub(crate) fn list(&mut self, key: ListKey) -> u32 {
        let lists = &mut self.lists;
        *self.by_key.entry(key).or_insert_with(|| {
            let page = if key.is_small { SMALL_SEGMENT } else { self.large_page };
            lists.push(FreeList { key, free: BTreeSet::new(), unmapped: BTreeMap::new(), page });
            lists.len() as u32 - 1
        })
    }

    /// Adds a block between its neighbors, and to its free list if it is unused.
    pub(crate) fn insert(&mut self, block: Block) -> u32 {
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.all.push(block);
            self.all.len() as u32 - 1
        });
        *self.get_mut(id) = block;
        if block.prev != NONE {
            self.get_mut(block.prev).next = id;
        }
        if block.next != NONE {
            self.get_mut(block.next).prev = id;
        }
        self.list_unused(id);
        id
    }

    /// Adds an unused block to its free list.
    pub(crate) fn list_unused(&mut self, id: u32) {
        let searches = self.searches;
        let block = &mut self.all[id as usize];
        let list = &mut self.lists[block.list as usize];
        match block.state {
            BlockState::Free => {
                block.freed_at = searches;
                list.free.insert(block.place(id));
            }
            BlockState::Unmapped => {
                list.unmapped.insert(block.start, id);
            }
            BlockState::Allocated | BlockState::PendingFree => {}
        }
    }

    /// Takes an unused block from its free list.
    pub(crate) fn unlist(&mut self, id: u32) {
        let block = &self.all[id as usize];
        let list = &mut self.lists[block.list as usize];
        match block.state {
            BlockState::Free => {
                list.free.remove(&block.place(id));
            }
            BlockState::Unmapped => {
                list.unmapped.remove(&block.start);
            }
            BlockState::Allocated | BlockState::PendingFree => {}
        }
    }

    /// Removes a block that is in no free list. Its neighbors do not become neighbors.
    pub(crate) fn remove(&mut self, id: u32) {
        let Block { prev, next, .. } = *self.get(id);
        if prev != NONE {
            self.get_mut(prev).next = NONE;
        }
        if next != NONE {
            self.get_mut(next).prev = NONE;
        }
        self.get_mut(id).size = 0;
        self.vacant.push(id);
    }

    /// Splits a block that is in no free list after `size` bytes. The rest has `state`. Returns the
    /// rest.
    pub(crate) fn split(&mut self, id: u32, size: u64, state: BlockState) -> u32 {
        let block = *self.get(id);
        self.get_mut(id).size = size;
        self.insert(Block {
            start: block.start + size,
            size: block.size - size,
            requested: 0,
            state,
            prev: id,
            ..block
        })
    }

    /// Merges a block that is in no free list with the neighbors in the same state, and adds it to
    /// its free list (`try_merge_blocks`).
    pub(crate) fn merge_and_list(&mut self, id: u32) {
        self.merge(id);
        self.list_unused(id);
    }

    /// Merges a block that is in no free list with the neighbors in the same state.
    pub(crate) fn merge(&mut self, id: u32) {
        let state = self.get(id).state;
        let prev = self.get(id).prev;
        if prev != NONE && self.get(prev).state == state {
            self.unlist(prev);
            let before = *self.get(prev);
            let block = self.get_mut(id);
            (block.start, block.prev) = (before.start, before.prev);
            block.size += before.size;
            if before.prev != NONE {
                self.get_mut(before.prev).next = id;
            }
            self.vacate(prev);
        }
        let next = self.get(id).next;
        if next != NONE && self.get(next).state == state {
            self.unlist(next);
            let after = *self.get(next);
            let block = self.get_mut(id);
            block.next = after.next;
            block.size += after.size;
            if after.next != NONE {
                self.get_mut(after.next).prev = id;
            }
            self.vacate(next);
        }
    }

    fn vacate(&mut self, id: u32) {
        self.get_mut(id).size = 0;
        self.vacant.push(id);
    }
}
