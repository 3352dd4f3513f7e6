//! A small caching allocator in the manner of PyTorch's, which writes its trace and remembers every state that it was in.
//!
//! It is written for clarity, on lists that are searched from end to end, and shares no code with what it tests.

use std::fmt::Write as _;

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Free,
    Live { requested: u64 },
    Pending { requested: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) used: Use,
}

/// Neighbours without gaps, of one stream and size class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) stream: u64,
    pub(crate) small: bool,
    pub(crate) expandable: bool,
    pub(crate) blocks: Vec<Block>,
}

impl Segment {
    pub(crate) fn address(&self) -> u64 {
        self.blocks[0].address
    }

    pub(crate) fn size(&self) -> u64 {
        self.blocks.iter().map(|b| b.size).sum()
    }

    fn end(&self) -> u64 {
        self.address() + self.size()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) expandable: bool,
    pub(crate) max_split_size: Option<u64>,
}

pub(crate) struct Model {
    settings: Settings,
    pub(crate) segments: Vec<Segment>,
    next: u64,
    events: Vec<String>,
    /// The state before the first event, then after each.
    pub(crate) states: Vec<Vec<Segment>>,
}

impl Model {
    pub(crate) fn new(settings: Settings) -> Self {
        let next = 1 << 40;
        Self { settings, segments: Vec::new(), next, events: Vec::new(), states: vec![Vec::new()] }
    }

    fn event(&mut self, action: &str, address: u64, size: u64, stream: u64) {
        let n = self.events.len();
        self.events.push(format!(
            "{{\"action\":\"{action}\",\"addr\":{address},\"size\":{size},\"stream\":{stream},\"time_us\":{}}}",
            1_000_000 + n
        ));
        let mut state = self.segments.clone();
        state.sort_by_key(Segment::address);
        self.states.push(state);
    }

    fn max_split(&self) -> u64 {
        self.settings.max_split_size.unwrap_or(u64::MAX)
    }

    pub(crate) fn alloc(&mut self, requested: u64, stream: u64) -> u64 {
        let size = requested.max(1).div_ceil(512) * 512;
        let small = size <= MIB;
        let (segment, block) = self.fit(size, small, stream).unwrap_or_else(|| self.grow(size, small, stream));
        let max_split = self.max_split();
        let place = &mut self.segments[segment];
        let found = &mut place.blocks[block];
        let (address, rest) = (found.address, found.size - size);
        found.used = Use::Live { requested };
        let splits = if small || place.expandable { rest >= 512 } else { size < max_split && rest > MIB };
        if splits && rest > 0 {
            found.size = size;
            place.blocks.insert(block + 1, Block { address: address + size, size: rest, used: Use::Free });
        }
        self.event("alloc", address, requested, stream);
        address
    }

    /// The smallest free block that is large enough, the lowest of equals.
    fn fit(&self, size: u64, small: bool, stream: u64) -> Option<(usize, usize)> {
        let mut best: Option<(u64, u64, usize, usize)> = None;
        for (i, segment) in self.segments.iter().enumerate().filter(|(_, s)| s.small == small && s.stream == stream) {
            for (j, block) in segment.blocks.iter().enumerate().filter(|(_, b)| b.used == Use::Free && b.size >= size) {
                // Blocks that are never split serve large requests only, and not much smaller ones.
                let oversize = block.size >= self.max_split();
                if oversize && (size < self.max_split() || block.size >= size + 20 * MIB) {
                    continue;
                }
                let key = (block.size, block.address, i, j);
                best = Some(best.map_or(key, |b| b.min(key)));
            }
        }
        best.map(|(_, _, i, j)| (i, j))
    }

    fn grow(&mut self, size: u64, small: bool, stream: u64) -> (usize, usize) {
        if !self.settings.expandable {
            let bytes = match () {
                () if small => 2 * MIB,
                () if size < 10 * MIB => 20 * MIB,
                () => size.div_ceil(2 * MIB) * 2 * MIB,
            };
            let address = self.next;
            // Some segments touch: what is free must not merge across.
            self.next += bytes + if bytes % (4 * MIB) == 0 { 0 } else { 2 * MIB };
            let blocks = vec![Block { address, size: bytes, used: Use::Free }];
            self.segments.push(Segment { stream, small, expandable: false, blocks });
            self.event("segment_alloc", address, bytes, stream);
            return (self.segments.len() - 1, 0);
        }
        // The address space of an expandable segment is reserved once; it grows at its upper end.
        let page = if small { 2 * MIB } else { 20 * MIB };
        let base = (stream * 2 + u64::from(small) + 1) << 44;
        let own =
            (0..self.segments.len()).filter(|&i| self.segments[i].stream == stream && self.segments[i].small == small);
        let top = own.max_by_key(|&i| self.segments[i].address());
        let (at, free) = match top {
            Some(i) => {
                let last = self.segments[i].blocks.last().expect("segments are not empty");
                (self.segments[i].end(), if last.used == Use::Free { last.size } else { 0 })
            }
            None => (base, 0),
        };
        let bytes = (size - free).div_ceil(page) * page;
        let new = Block { address: at, size: bytes, used: Use::Free };
        let i = top.unwrap_or_else(|| {
            self.segments.push(Segment { stream, small, expandable: true, blocks: Vec::new() });
            self.segments.len() - 1
        });
        self.segments[i].blocks.push(new);
        let last = self.merge(i, self.segments[i].blocks.len() - 1);
        self.event("segment_map", at, bytes, stream);
        (i, last)
    }

    fn merge(&mut self, segment: usize, block: usize) -> usize {
        let blocks = &mut self.segments[segment].blocks;
        let mut at = block;
        if at + 1 < blocks.len() && blocks[at + 1].used == Use::Free {
            blocks[at].size += blocks.remove(at + 1).size;
        }
        if at > 0 && blocks[at - 1].used == Use::Free {
            blocks[at - 1].size += blocks.remove(at).size;
            at -= 1;
        }
        at
    }

    fn find(&self, address: u64) -> (usize, usize) {
        let places = self.segments.iter().enumerate();
        let mut all = places.flat_map(|(i, s)| s.blocks.iter().enumerate().map(move |(j, b)| (i, j, b)));
        all.find(|(_, _, b)| b.address == address).map(|(i, j, _)| (i, j)).expect("a block that is there")
    }

    /// The program lets go of a block.
    pub(crate) fn request(&mut self, address: u64) {
        let (i, j) = self.find(address);
        let Use::Live { requested } = self.segments[i].blocks[j].used else { panic!("it is live") };
        self.segments[i].blocks[j].used = Use::Pending { requested };
        self.event("free_requested", address, requested, self.segments[i].stream);
    }

    /// The last stream that used it is done with it.
    pub(crate) fn complete(&mut self, address: u64) {
        let (i, j) = self.find(address);
        let Use::Pending { requested } = self.segments[i].blocks[j].used else { panic!("it is pending") };
        self.segments[i].blocks[j].used = Use::Free;
        let stream = self.segments[i].stream;
        self.merge(i, j);
        self.event("free_completed", address, requested, stream);
    }

    /// Gives back what is free: whole segments, or whole pages of expandable ones.
    pub(crate) fn empty_cache(&mut self) {
        while let Some(i) =
            self.segments.iter().position(|s| !s.expandable && s.blocks.len() == 1 && s.blocks[0].used == Use::Free)
        {
            let segment = self.segments.remove(i);
            self.event("segment_free", segment.address(), segment.size(), segment.stream);
        }
        loop {
            let places = self.segments.iter().enumerate().filter(|(_, s)| s.expandable);
            let mut pages = places.flat_map(|(i, s)| {
                let page = if s.small { 2 * MIB } else { 20 * MIB };
                s.blocks
                    .iter()
                    .enumerate()
                    .filter(|(_, b)| b.used == Use::Free)
                    .map(move |(j, b)| (i, j, b.address.div_ceil(page) * page, (b.address + b.size) / page * page))
            });
            let Some((i, j, from, to)) = pages.find(|&(_, _, from, to)| from < to) else { return };
            let mut segment = self.segments.remove(i);
            let stream = segment.stream;
            let mut behind = segment.blocks.split_off(j + 1);
            let block = segment.blocks.pop().expect("the free one");
            if block.address < from {
                segment.blocks.push(Block { size: from - block.address, ..block.clone() });
            }
            if to < block.address + block.size {
                behind.insert(0, Block { address: to, size: block.address + block.size - to, used: Use::Free });
            }
            for blocks in [segment.blocks.clone(), behind] {
                if !blocks.is_empty() {
                    self.segments.push(Segment { blocks, ..segment.clone() });
                }
            }
            self.event("segment_unmap", from, to - from, stream);
        }
    }

    /// The snapshot that PyTorch would write if recording had begun with event `from`.
    pub(crate) fn snapshot(&self, from: usize) -> String {
        let mut segments = self.segments.clone();
        segments.sort_by_key(Segment::address);
        let mut text = format!(
            "{{\"allocator_settings\":{{\"max_split_size\":{}}},\"device_traces\":[[{}]],\"segments\":[",
            self.settings.max_split_size.map_or(-1, |s| s as i64),
            self.events[from..].join(",")
        );
        for (i, s) in segments.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let (address, size, kind) = (s.address(), s.size(), if s.small { "small" } else { "large" });
            write!(
                text,
                "{comma}{{\"device\":0,\"address\":{address},\"total_size\":{size},\"stream\":{},\"segment_type\":\"{kind}\",\
                 \"segment_pool_id\":[0,0],\"is_expandable\":{},\"frames\":[],\"blocks\":[",
                s.stream, s.expandable
            )
            .expect("a String takes all text");
            for (j, b) in s.blocks.iter().enumerate() {
                let comma = if j == 0 { "" } else { "," };
                let (state, requested) = match b.used {
                    Use::Free => ("inactive", 0),
                    Use::Live { requested } => ("active_allocated", requested),
                    Use::Pending { requested } => ("active_pending_free", requested),
                };
                write!(
                    text,
                    "{comma}{{\"address\":{},\"size\":{},\"requested_size\":{requested},\"state\":\"{state}\",\"frames\":[]}}",
                    b.address, b.size
                )
                .expect("a String takes all text");
            }
            text.push_str("]}");
        }
        text.push_str("]}");
        text
    }
}
