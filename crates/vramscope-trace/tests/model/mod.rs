//! The model allocator of `cargo xtask gen`. Records its trace and its state after every event.

use std::fmt::Write as _;
use vramscope_testgen::allocator::{self, Allocator, Event};

pub(crate) use allocator::Settings;

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

/// A segment: adjacent blocks of one stream and size class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) stream: u64,
    pub(crate) small: bool,
    pub(crate) expandable: bool,
    pub(crate) blocks: Vec<Block>,
}

/// The allocator, its events as JSON, and its states.
pub(crate) struct Model {
    settings: Settings,
    allocator: Allocator,
    events: Vec<String>,
    /// The state before the first event, then after each.
    pub(crate) states: Vec<Vec<Segment>>,
}

/// The allocator's segments and blocks, by address.
fn state(allocator: &Allocator) -> Vec<Segment> {
    let block = |(address, b): (u64, &allocator::Block)| Block {
        address,
        size: b.size,
        used: match b.used {
            allocator::Use::Free => Use::Free,
            allocator::Use::Live => Use::Live { requested: b.requested },
            allocator::Use::Pending => Use::Pending { requested: b.requested },
        },
    };
    let segments = allocator.segments().map(|(_, s, blocks)| Segment {
        stream: s.stream,
        small: s.small,
        expandable: s.expandable,
        blocks: blocks.map(block).collect(),
    });
    segments.collect()
}

impl Model {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            allocator: Allocator::new(settings),
            events: Vec::new(),
            states: vec![Vec::new()],
        }
    }

    /// Runs `act` on the allocator, and records its events and states.
    fn record<T>(
        &mut self,
        act: impl FnOnce(&mut Allocator, &mut dyn FnMut(&Allocator, Event)) -> T,
    ) -> T {
        let (events, states) = (&mut self.events, &mut self.states);
        act(&mut self.allocator, &mut |now, Event { action, address, size, stream }| {
            let time = 1_000_000 + events.len();
            events.push(format!(
                "{{\"action\":\"{action}\",\"addr\":{address},\"size\":{size},\
                 \"stream\":{stream},\"time_us\":{time}}}"
            ));
            states.push(state(now));
        })
    }

    pub(crate) fn alloc(&mut self, requested: u64, stream: u64) -> u64 {
        self.record(|allocator, mut note| allocator.alloc(requested, stream, 0, &mut note))
    }

    /// The program frees a block.
    pub(crate) fn request(&mut self, address: u64) {
        self.record(|allocator, mut note| allocator.request(address, &mut note));
    }

    /// The last stream that used a block is done with it.
    pub(crate) fn complete(&mut self, address: u64) {
        self.record(|allocator, mut note| allocator.complete(address, &mut note));
    }

    /// Releases free memory: whole segments, or whole pages of expandable segments.
    pub(crate) fn empty_cache(&mut self) {
        self.record(|allocator, mut note| allocator.empty_cache(&mut note));
    }

    /// The snapshot that PyTorch would write if recording had started at event `from`.
    pub(crate) fn snapshot(&self, from: usize) -> String {
        let mut text = format!(
            "{{\"allocator_settings\":{{\"max_split_size\":{}}},\"device_traces\":[[{}]],\
             \"segments\":[",
            self.settings.max_split_size.map_or(-1, |s| s as i64),
            self.events[from..].join(",")
        );
        for (i, s) in state(&self.allocator).iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let (address, size) =
                (s.blocks[0].address, s.blocks.iter().map(|b| b.size).sum::<u64>());
            let kind = if s.small { "small" } else { "large" };
            write!(
                text,
                "{comma}{{\"device\":0,\"address\":{address},\"total_size\":{size},\"stream\":{},\
                 \"segment_type\":\"{kind}\",\
                 \"segment_pool_id\":[0,0],\"is_expandable\":{},\"frames\":[],\"blocks\":[",
                s.stream, s.expandable
            )
            .expect("writing to a String cannot fail");
            for (j, b) in s.blocks.iter().enumerate() {
                let comma = if j == 0 { "" } else { "," };
                let (state, requested) = match b.used {
                    Use::Free => ("inactive", 0),
                    Use::Live { requested } => ("active_allocated", requested),
                    Use::Pending { requested } => ("active_pending_free", requested),
                };
                write!(
                    text,
                    "{comma}{{\"address\":{},\"size\":{},\"requested_size\":{requested},\
                     \"state\":\"{state}\",\"frames\":[]}}",
                    b.address, b.size
                )
                .expect("writing to a String cannot fail");
            }
            text.push_str("]}");
        }
        text.push_str("]}");
        text
    }
}
