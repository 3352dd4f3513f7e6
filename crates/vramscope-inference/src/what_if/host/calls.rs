//! The calls of a program to the allocator of pinned memory, from its trace.

use super::requests::Asked;
use crate::evidence::Evidence;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_allocator::HostSettings;
use vramscope_snapshot::{Action, PoolId, PoolIndex, Snapshot};
use vramscope_trace::slicing::{Budget, strides};

/// What happens to pinned memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// A request. The block is an index into [`Calls::asked`].
    Allocate { block: u32 },
    /// The free of a block is complete.
    Free { block: u32 },
    /// Memory is pinned outside of the allocator (`cudaHostRegister`).
    Register { block: u32 },
    /// It is unpinned.
    Unregister { block: u32 },
    /// The cache of a pool is emptied.
    Empty { pool: u32 },
}

/// The calls of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// Each with its event, and the pinned bytes that the recording has after it.
    pub(super) all: Vec<(u32, Call, u64)>,
    /// The request of every block.
    pub(super) asked: Vec<Asked>,
    /// Blocks that are live before the window, with their sizes.
    pub(super) live: Vec<(u32, u64)>,
    /// Blocks that are cached before the window: pool and size.
    pub(super) cached: Vec<(u32, u64)>,
    /// Where the allocator does what the model does not know: the event, and the pinned bytes
    /// twice.
    pub(super) contradiction: Option<(u32, u64, u64)>,
}

impl Calls {
    /// Whether memory was pinned before the window.
    pub(super) fn starts_late(&self) -> bool {
        !(self.live.is_empty() && self.cached.is_empty())
    }

    pub(super) async fn of(cx: Evidence<'_>, settings: &HostSettings, budget: &mut Budget) -> Self {
        let mut builder = Builder {
            settings: *settings,
            calls: Self::default(),
            blocks: FxHashMap::default(),
            cached: FxHashMap::default(),
            released: FxHashSet::default(),
            burst: Vec::new(),
            reserved: 0,
        };
        builder.start(cx, budget).await;
        let requests = requests(cx, budget).await;
        let (snapshot, rows) = (cx.snapshot, cx.trace.device.events.clone());
        for part in strides(rows.len()) {
            budget.charge(4 * part.len() as u64).await;
            for event in part.start as u32..part.end as u32 {
                let row = rows.start + event;
                let events = &snapshot.events;
                let (addr, size) = (events.addr(row).0, events.size(row).0);
                let action = events.action(row);
                if action != Action::SEGMENT_FREE {
                    builder.end_burst();
                }
                match action {
                    Action::SEGMENT_ALLOC => {
                        let pool = pool_number(snapshot, events.pool(row));
                        builder.blocks.insert(addr, Block::new(size, pool));
                    }
                    Action::ALLOC => {
                        let requested = requests.get(&event).copied().unwrap_or(size);
                        builder.allocate(event, addr, size, requested);
                    }
                    Action::FREE_COMPLETED => builder.free(event, addr),
                    Action::SEGMENT_FREE if !builder.released.remove(&addr) => {
                        builder.burst.push((event, addr));
                    }
                    _ => {}
                }
            }
        }
        builder.end_burst();
        builder.calls
    }
}

/// The requested bytes of each `alloc` event whose request the trace knows.
async fn requests(cx: Evidence<'_>, budget: &mut Budget) -> FxHashMap<u32, u64> {
    let mut requests = FxHashMap::default();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        let allocs = cx.trace.blocks[part].iter();
        requests.extend(allocs.filter_map(|block| Some((block.alloc_event()?.0, block.bytes.0))));
    }
    requests
}

/// 0 for the default pool, and for files that do not name pools.
fn pool_number(snapshot: &Snapshot, pool: PoolIndex) -> u32 {
    let is_default = snapshot.pool(pool).is_none_or(|id| id == PoolId::DEFAULT);
    if is_default { 0 } else { u32::from(pool.0) + 1 }
}

/// What the recording says of an address.
struct Block {
    size: u64,
    pool: u32,
    /// Whether it was pinned for the next request: none has had it.
    is_new: bool,
    /// The request that has it, or had it last, with the calls that begin and end that.
    last: Option<Held>,
    is_live: bool,
}

#[derive(Clone, Copy)]
struct Held {
    block: u32,
    begin: Option<usize>,
    end: usize,
}

impl Block {
    fn new(size: u64, pool: u32) -> Self {
        Self { size, pool, is_new: true, last: None, is_live: false }
    }
}

struct Builder {
    settings: HostSettings,
    calls: Calls,
    /// The pinned blocks by address.
    blocks: FxHashMap<u64, Block>,
    /// The number of cached blocks by pool.
    cached: FxHashMap<u32, usize>,
    /// Addresses that were unpinned when they were freed. Their event follows.
    released: FxHashSet<u64>,
    /// Events that unpin cached blocks, one behind the other, with their addresses.
    burst: Vec<(u32, u64)>,
    /// Pinned bytes, where a block counts from its request on, and is unpinned with its free.
    reserved: u64,
}

impl Builder {
    /// What is pinned before the window.
    async fn start(&mut self, cx: Evidence<'_>, budget: &mut Budget) {
        let mut live = FxHashSet::default();
        for part in strides(cx.trace.blocks.len()) {
            budget.charge(part.len() as u64).await;
            let before = cx.trace.blocks[part].iter().filter(|block| block.enters == 0);
            live.extend(before.map(|block| block.address.0));
        }
        let spans = &cx.carving.segments.spans;
        budget.charge(spans.len() as u64).await;
        for span in spans.iter().filter(|span| span.event.is_none()) {
            let (size, pool) = (span.size.0, pool_number(cx.snapshot, span.pool));
            let mut block = Block { is_new: false, ..Block::new(size, pool) };
            self.reserved += size;
            if live.contains(&span.address.0) {
                let number = self.calls.asked.len() as u32;
                self.calls.asked.push(Asked { low: size, high: size, pool });
                self.calls.live.push((number, size));
                block.is_live = true;
                block.last = Some(Held { block: number, begin: None, end: 0 });
            } else {
                self.calls.cached.push((pool, size));
                *self.cached.entry(pool).or_default() += 1;
            }
            self.blocks.insert(span.address.0, block);
        }
    }

    fn push(&mut self, event: u32, call: Call) -> usize {
        self.calls.all.push((event, call, self.reserved));
        self.calls.all.len() - 1
    }

    fn contradict(&mut self, event: u32) {
        self.calls.contradiction.get_or_insert((event, self.reserved, self.reserved));
    }

    fn allocate(&mut self, event: u32, addr: u64, size: u64, requested: u64) {
        let Some(block) = self.blocks.get_mut(&addr).filter(|block| block.size == size) else {
            return self.contradict(event);
        };
        let (is_new, is_live, pool) = (block.is_new, block.is_live, block.pool);
        if is_live {
            return self.contradict(event);
        }
        if is_new {
            self.reserved += size;
        } else {
            self.uncache(pool);
        }
        let number = self.calls.asked.len() as u32;
        self.calls.asked.push(Asked::of(size, requested, is_new, pool, &self.settings));
        let call = if is_new && self.is_outside(size) {
            Call::Register { block: number }
        } else {
            Call::Allocate { block: number }
        };
        let begin = self.push(event, call);
        let block = self.blocks.get_mut(&addr).expect("it was there");
        block.is_live = true;
        block.is_new = false;
        block.last = Some(Held { block: number, begin: Some(begin), end: 0 });
    }

    /// Whether the allocator pins no block of this size: it would round it up.
    fn is_outside(&self, size: u64) -> bool {
        size <= self.settings.largest_rounded() && !size.is_power_of_two()
    }

    fn free(&mut self, event: u32, addr: u64) {
        let live = self.blocks.get_mut(&addr).filter(|block| block.is_live);
        let Some((block, held)) = live.and_then(|block| block.last.map(|held| (block, held)))
        else {
            return self.contradict(event);
        };
        block.is_live = false;
        let size = block.size;
        let is_outside = self.is_outside(size);
        if is_outside || size > self.settings.max_cached_size {
            self.reserved -= size;
            self.blocks.remove(&addr);
            self.released.insert(addr);
        }
        let block = held.block;
        let call = if is_outside { Call::Unregister { block } } else { Call::Free { block } };
        let end = self.push(event, call);
        if let Some(block) = self.blocks.get_mut(&addr) {
            block.last = Some(Held { end, ..held });
            let pool = block.pool;
            *self.cached.entry(pool).or_default() += 1;
        }
    }

    /// Ends a run of events that unpin cached blocks. All of a pool are `empty_cache`; one alone,
    /// just freed, was pinned outside of the allocator.
    fn end_burst(&mut self) {
        let burst = std::mem::take(&mut self.burst);
        let Some(&(event, first)) = burst.last() else { return };
        let addresses: FxHashSet<u64> = burst.iter().map(|&(_, addr)| addr).collect();
        let pool_of = |(_, addr): &(u32, u64)| self.blocks.get(addr).map(|block| block.pool);
        let mut pools: Vec<u32> = burst.iter().filter_map(pool_of).collect();
        pools.sort_unstable();
        let are_emptied = addresses.len() == burst.len()
            && pools
                .chunk_by(|a, b| a == b)
                .all(|of_pool| self.cached.get(&of_pool[0]) == Some(&of_pool.len()));
        pools.dedup();
        let are_free =
            burst.iter().all(|(_, addr)| self.blocks.get(addr).is_some_and(|block| !block.is_live));
        if are_emptied && are_free {
            for (_, addr) in &burst {
                self.reserved -= self.blocks.remove(addr).map_or(0, |block| block.size);
            }
            for pool in pools {
                self.cached.remove(&pool);
                self.push(event, Call::Empty { pool });
            }
            return;
        }
        let alone = self.blocks.get(&first).filter(|_| burst.len() == 1 && are_free);
        let held = alone.and_then(|block| Some((block.size, block.last?)));
        let Some((size, Held { block, begin: Some(begin), end })) = held else {
            return self.contradict(event);
        };
        self.calls.all[begin].1 = Call::Register { block };
        self.calls.all[end].1 = Call::Unregister { block };
        for call in &mut self.calls.all[end..] {
            call.2 -= size;
        }
        self.reserved -= size;
        if let Some(block) = self.blocks.remove(&first) {
            self.uncache(block.pool);
        }
    }

    /// A cached block of a pool is cached no more.
    fn uncache(&mut self, pool: u32) {
        if let Some(count) = self.cached.get_mut(&pool) {
            *count -= 1;
        }
    }
}
