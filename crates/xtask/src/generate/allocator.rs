//! A small caching allocator in the manner of PyTorch's: it serves from what is free, splits,
//! merges and gives back, and tells each event that PyTorch's would record, with the state right
//! after it.
//!
//! Two use it: `cargo xtask gen`, for recordings of millions of events, so every search is in a
//! tree; and the tests of vramscope-analysis, as the oracle of the replay. It shares no code with
//! what it tests.

use std::collections::{BTreeMap, BTreeSet};

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) expandable: bool,
    pub(crate) max_split_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Free,
    Live,
    Pending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) size: u64,
    /// What was asked for; of a free block, what its last holder asked for.
    pub(crate) requested: u64,
    /// Whatever the one who allocated calls it.
    pub(crate) owner: u64,
    pub(crate) used: Use,
}

/// Neighbors without gaps, of one stream and size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) size: u64,
    pub(crate) stream: u64,
    pub(crate) small: bool,
    pub(crate) expandable: bool,
    /// Of the allocation that it was made for.
    pub(crate) owner: u64,
}

/// What is recorded, but for the time and the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) action: &'static str,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) stream: u64,
}

pub(crate) struct Allocator {
    settings: Settings,
    segments: BTreeMap<u64, Segment>,
    blocks: BTreeMap<u64, Block>,
    /// The free blocks: stream, size class, size and address, so that the best fit is the first in
    /// order.
    free: BTreeSet<(u64, bool, u64, u64)>,
    /// Addresses that were given back, by size: the driver hands them out again.
    holes: BTreeSet<(u64, u64)>,
    next: u64,
}

impl Allocator {
    pub(crate) fn new(settings: Settings) -> Self {
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

    /// By address, each with its own blocks by address.
    pub(crate) fn segments(
        &self,
    ) -> impl Iterator<Item = (u64, &Segment, impl Iterator<Item = (u64, &Block)>)> {
        self.segments.iter().map(|(&address, segment)| {
            let blocks = self.blocks.range(address..address + segment.size);
            (address, segment, blocks.map(|(&address, block)| (address, block)))
        })
    }

    pub(crate) fn alloc(
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
        let found = self.blocks.get_mut(&address).expect("it was found or made");
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

    /// The smallest free block that is large enough, the lowest of equals.
    fn fit(&self, size: u64, small: bool, stream: u64) -> Option<u64> {
        let max_split = self.settings.max_split_size.unwrap_or(u64::MAX);
        // Blocks that are never split serve large requests only, and not much smaller ones.
        let barred = |of: u64| of >= max_split && (size < max_split || of >= size + 20 * MIB);
        let mut large_enough =
            self.free.range((stream, small, size, 0)..=(stream, small, u64::MAX, u64::MAX));
        large_enough.find(|(.., size, _)| !barred(*size)).map(|(.., address)| *address)
    }

    /// Asks the driver for more; the block that then is large enough.
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
        // The address space of an expandable segment is reserved once; it grows at its upper end.
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

    /// Where the driver puts a segment.
    fn place(&mut self, bytes: u64) -> u64 {
        let hole = self.holes.range((bytes, 0)..=(bytes, u64::MAX)).next().copied();
        if let Some(hole) = hole {
            self.holes.remove(&hole);
            return hole.1;
        }
        let address = self.next;
        // Some segments touch: what is free must not merge across.
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

    /// Joins a block that became free with its free neighbors, and offers the whole.
    fn merge(&mut self, address: u64) -> u64 {
        let (start, Segment { size, stream, small, .. }) = self.segment_of(address);
        let mut at = address;
        let mut whole = self.blocks[&address];
        let behind = address + whole.size;
        if behind < start + size && self.blocks[&behind].used == Use::Free {
            let other = self.blocks.remove(&behind).expect("it is there");
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

    /// The program lets go of a block.
    pub(crate) fn request(&mut self, address: u64, note: &mut impl FnMut(&Self, Event)) {
        let block = self.blocks.get_mut(&address).expect("a block that is there");
        assert!(block.used == Use::Live, "only what is live is freed");
        block.used = Use::Pending;
        let (size, stream) = (block.requested, self.segment_of(address).1.stream);
        note(self, Event { action: "free_requested", address, size, stream });
    }

    /// The last stream that used it is done with it.
    pub(crate) fn complete(&mut self, address: u64, note: &mut impl FnMut(&Self, Event)) {
        let block = self.blocks.get_mut(&address).expect("a block that is there");
        assert!(block.used == Use::Pending, "only what was requested is completed");
        block.used = Use::Free;
        let (size, stream) = (block.requested, self.segment_of(address).1.stream);
        self.merge(address);
        note(self, Event { action: "free_completed", address, size, stream });
    }

    /// Gives back what is free: whole segments, or whole pages of expandable ones.
    pub(crate) fn empty_cache(&mut self, note: &mut impl FnMut(&Self, Event)) {
        let whole = |(&address, segment): (&u64, &Segment)| {
            let block = self.blocks[&address];
            (!segment.expandable && block.used == Use::Free && block.size == segment.size)
                .then_some(address)
        };
        for address in self.segments.iter().filter_map(whole).collect::<Vec<_>>() {
            let segment = self.segments.remove(&address).expect("it is there");
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

    /// Gives back the whole pages of a free block.
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
        let block = self.blocks.remove(&address).expect("it is there");
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
