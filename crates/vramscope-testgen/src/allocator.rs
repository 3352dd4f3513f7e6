//! A small caching allocator with the rules of PyTorch's `CUDACachingAllocator.cpp`. It serves
//! requests from free blocks, splits and merges blocks, returns segments, and reports each event
//! that PyTorch would record, together with the state after the event.
//!
//! The generator simulates millions of events with it, so every search is in a tree. The tests of
//! vramscope-trace use it as the oracle of the replay, and those of vramscope-allocator as the
//! oracle of the model. It shares no code with either: an error in one place would otherwise be an
//! error in both, and no test would see it.

use std::collections::{BTreeMap, BTreeSet};

const MIB: u64 = 1 << 20;

/// Options of `PYTORCH_CUDA_ALLOC_CONF`.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// `expandable_segments`.
    pub expandable: bool,
    /// `max_split_size_mb`, in bytes.
    pub max_split_size: Option<u64>,
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// In the cache.
    Free,
    /// Held by the program.
    Live,
    /// Freed by the program while a stream still uses the block.
    Pending,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Bytes.
    pub size: u64,
    /// Requested bytes; of a free block, the request that it served last.
    pub requested: u64,
    /// The caller's number for the allocation.
    pub owner: u64,
    /// The state.
    pub used: Use,
}

/// Adjacent blocks of one stream and one size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes.
    pub size: u64,
    /// The stream that allocates from the segment.
    pub stream: u64,
    /// The segment is of the pool of small blocks, up to 1 MiB.
    pub small: bool,
    /// The segment grows and shrinks by pages.
    pub expandable: bool,
    /// The owner of the allocation that created the segment.
    pub owner: u64,
}

/// A recorded event, without time and stack.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The action as PyTorch names it.
    pub action: &'static str,
    /// Address of the block, the segment or the pages.
    pub address: u64,
    /// Bytes: requested ones of a block, all of a segment or of pages.
    pub size: u64,
    /// The stream.
    pub stream: u64,
}

/// The allocator of one device.
pub struct Allocator {
    settings: Settings,
    segments: BTreeMap<u64, Segment>,
    blocks: BTreeMap<u64, Block>,
    /// Free blocks by stream, size class, size and address: the best fit is the first in order.
    free: BTreeSet<(u64, bool, u64, u64)>,
    /// Returned address ranges by size and address, which the driver hands out again.
    holes: BTreeSet<(u64, u64)>,
    next: u64,
}

impl Allocator {
    /// An allocator without segments.
    pub fn new(settings: Settings) -> Self {
        let (segments, blocks) = (BTreeMap::new(), BTreeMap::new());
        Self {
            settings,
            segments,
            blocks,
            free: BTreeSet::new(),
            holes: BTreeSet::new(),
            next: 0x7c << 40,
        }
    }

    /// Segments by address, each with its blocks by address.
    pub fn segments(
        &self,
    ) -> impl Iterator<Item = (u64, &Segment, impl Iterator<Item = (u64, &Block)>)> {
        self.segments.iter().map(|(&address, segment)| {
            let blocks = self.blocks.range(address..address + segment.size);
            (address, segment, blocks.map(|(&address, block)| (address, block)))
        })
    }

    /// Allocates a block, and returns its address. `note` receives each event with the state after
    /// it.
    pub fn alloc(
        &mut self,
        requested: u64,
        stream: u64,
        owner: u64,
        note: &mut impl FnMut(&Self, Event),
    ) -> u64 {
        let size = requested.max(1).div_ceil(512) * 512;
        let small = size <= MIB;
        let fit = self.fit(size, small, stream);
        let address = fit.unwrap_or_else(|| self.grow(size, small, stream, owner, note));
        let expandable =
            self.segments.range(..=address).next_back().is_some_and(|(_, s)| s.expandable);
        let found = self.blocks.get_mut(&address).expect("the block was found or created");
        self.free.remove(&(stream, small, found.size, address));
        let mut rest = Block { size: found.size - size, ..*found };
        let splits = if small || expandable {
            rest.size >= 512
        } else {
            size < self.settings.max_split_size.unwrap_or(u64::MAX) && rest.size > MIB
        };
        if !splits {
            rest.size = 0;
        }
        *found = Block { size: found.size - rest.size, requested, owner, used: Use::Live };
        if rest.size > 0 {
            self.blocks.insert(address + size, rest);
            self.free.insert((stream, small, rest.size, address + size));
        }
        note(self, Event { action: "alloc", address, size: requested, stream });
        address
    }

    /// The address of the smallest free block that is large enough, the lowest of equals.
    fn fit(&self, size: u64, small: bool, stream: u64) -> Option<u64> {
        let max_split = self.settings.max_split_size.unwrap_or(u64::MAX);
        // A block that is never split serves only requests of at least `max_split_size`, and at
        // most 20 MiB smaller than the block.
        let barred = |of: u64| of >= max_split && (size < max_split || of >= size + 20 * MIB);
        let mut large_enough =
            self.free.range((stream, small, size, 0)..=(stream, small, u64::MAX, u64::MAX));
        large_enough.find(|(.., size, _)| !barred(*size)).map(|(.., address)| *address)
    }

    /// Takes memory from the driver, and returns the address of a large enough block.
    fn grow(
        &mut self,
        size: u64,
        small: bool,
        stream: u64,
        owner: u64,
        note: &mut impl FnMut(&Self, Event),
    ) -> u64 {
        let fresh = |size| Block { size, requested: 0, owner: 0, used: Use::Free };
        if !self.settings.expandable {
            let bytes = match () {
                () if small => 2 * MIB,
                () if size < 10 * MIB => 20 * MIB,
                () => size.div_ceil(2 * MIB) * 2 * MIB,
            };
            let address = self.place(bytes);
            self.segments
                .insert(address, Segment { size: bytes, stream, small, expandable: false, owner });
            self.blocks.insert(address, fresh(bytes));
            self.free.insert((stream, small, bytes, address));
            note(self, Event { action: "segment_alloc", address, size: bytes, stream });
            return address;
        }
        // An expandable segment reserves its address range once, and grows at the upper end.
        let page = if small { 2 * MIB } else { 20 * MIB };
        let top = self.segments.iter().rev().find(|(_, s)| s.stream == stream && s.small == small);
        let top = top.map(|(&start, segment)| (start, start + segment.size));
        let (start, at) = top.unwrap_or_else(|| {
            let base = (stream * 2 + u64::from(small) + 1) << 44;
            (base, base)
        });
        let last = self.blocks.range(start..at).next_back();
        let free = last.map_or(0, |(_, last)| if last.used == Use::Free { last.size } else { 0 });
        let bytes = (size - free).div_ceil(page) * page;
        let segment = Segment { size: 0, stream, small, expandable: true, owner };
        self.segments.entry(start).or_insert(segment).size += bytes;
        self.blocks.insert(at, fresh(bytes));
        let address = self.merge(at);
        note(self, Event { action: "segment_map", address: at, size: bytes, stream });
        address
    }

    /// The address at which the driver places a segment.
    fn place(&mut self, bytes: u64) -> u64 {
        let hole = self.holes.range((bytes, 0)..=(bytes, u64::MAX)).next().copied();
        if let Some(hole) = hole {
            self.holes.remove(&hole);
            return hole.1;
        }
        let address = self.next;
        // Some segments are adjacent: free blocks must not merge across their border.
        self.next += bytes + if bytes.is_multiple_of(4 * MIB) { 0 } else { 2 * MIB };
        address
    }

    fn segment_of(&self, address: u64) -> (u64, Segment) {
        self.segments
            .range(..=address)
            .next_back()
            .map(|(&at, &s)| (at, s))
            .expect("every block is in a segment")
    }

    /// Merges a freed block with its free neighbors, and returns the address of the result.
    fn merge(&mut self, address: u64) -> u64 {
        let (start, Segment { size, stream, small, .. }) = self.segment_of(address);
        let mut at = address;
        let mut whole = self.blocks[&address];
        let behind = address + whole.size;
        if behind < start + size && self.blocks[&behind].used == Use::Free {
            let other = self.blocks.remove(&behind).expect("the key was just listed");
            self.free.remove(&(stream, small, other.size, behind));
            whole.size += other.size;
        }
        if let Some((&before, &other)) = self.blocks.range(start..address).next_back()
            && other.used == Use::Free
        {
            self.free.remove(&(stream, small, other.size, before));
            self.blocks.remove(&address);
            whole.size += other.size;
            at = before;
        }
        self.blocks.insert(at, whole);
        self.free.insert((stream, small, whole.size, at));
        at
    }

    /// Frees a live block, which stays pending until [`Self::complete`].
    pub fn request(&mut self, address: u64, note: &mut impl FnMut(&Self, Event)) {
        let block = self.blocks.get_mut(&address).expect("an address of a block");
        assert!(block.used == Use::Live, "only a live block is freed");
        block.used = Use::Pending;
        let (size, stream) = (block.requested, self.segment_of(address).1.stream);
        note(self, Event { action: "free_requested", address, size, stream });
    }

    /// Returns a pending block to the cache, when the last stream has finished with it.
    pub fn complete(&mut self, address: u64, note: &mut impl FnMut(&Self, Event)) {
        let block = self.blocks.get_mut(&address).expect("an address of a block");
        assert!(block.used == Use::Pending, "only a pending block is completed");
        block.used = Use::Free;
        let (size, stream) = (block.requested, self.segment_of(address).1.stream);
        self.merge(address);
        note(self, Event { action: "free_completed", address, size, stream });
    }

    /// Returns free memory to the driver: whole segments, or whole pages of expandable segments.
    pub fn empty_cache(&mut self, note: &mut impl FnMut(&Self, Event)) {
        let whole = |(&address, segment): (&u64, &Segment)| {
            let block = self.blocks[&address];
            (!segment.expandable && block.used == Use::Free && block.size == segment.size)
                .then_some(address)
        };
        for address in self.segments.iter().filter_map(whole).collect::<Vec<_>>() {
            let segment = self.segments.remove(&address).expect("the key was just listed");
            let Segment { size, stream, small, .. } = segment;
            self.blocks.remove(&address);
            self.free.remove(&(stream, small, size, address));
            self.holes.insert((size, address));
            note(self, Event { action: "segment_free", address, size, stream });
        }
        if self.settings.expandable {
            for free in self.free.iter().copied().collect::<Vec<_>>() {
                self.unmap(free, note);
            }
        }
    }

    /// Returns the whole pages within a free block to the driver.
    fn unmap(
        &mut self,
        (stream, small, size, address): (u64, bool, u64, u64),
        note: &mut impl FnMut(&Self, Event),
    ) {
        let page = if small { 2 * MIB } else { 20 * MIB };
        let (from, to) = (address.div_ceil(page) * page, (address + size) / page * page);
        if from >= to {
            return;
        }
        let (start, segment) = self.segment_of(address);
        let end = start + segment.size;
        self.segments.remove(&start);
        let block = self.blocks.remove(&address).expect("the key was just listed");
        self.free.remove(&(stream, small, size, address));
        for (at, size) in
            [(address, from - address), (to, address + size - to)].into_iter().filter(|p| p.1 > 0)
        {
            self.blocks.insert(at, Block { size, ..block });
            self.free.insert((stream, small, size, at));
        }
        for (at, size) in [(start, from - start), (to, end - to)].into_iter().filter(|p| p.1 > 0) {
            self.segments.insert(at, Segment { size, ..segment });
        }
        note(self, Event { action: "segment_unmap", address: from, size: to - from, stream });
    }
}
