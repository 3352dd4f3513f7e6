//! Pairing: from trace entries and final segments to blocks with a life.
//!
//! A block is live in slots `[enters, leaves)`. Slot 0 is the state before the window, slot `i + 1`
//! the state after event `i`. The rules for untidy traces are those of the project's definition of
//! its numbers (ARCHITECTURE.md, "Numbers"): a block leaves with the size that it entered with; an
//! alloc on a live address ends the old block there; a second completion of an address, or an
//! active final block whose address already completed, is an alloc that was lost.

use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use vramscope_snapshot::{
    Action, BlockState, Device, PoolIndex, Report, Snapshot, StackId, StreamId, WarningKind,
};
use vramscope_units::{Addr, Bytes, EventIndex};

/// How a block came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By its `alloc` in the trace.
    Alloc,
    /// By an active block of the final segments that the trace does not leave live: from before the
    /// window.
    PreexistingLive,
    /// By a completed free whose alloc is not in the trace: from before the window. Its stack is
    /// that of the free.
    PreexistingFreed,
    /// By a second completion of its address, or by a final block after one: its alloc was lost.
    LostAlloc,
}

/// One block's life in one device's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it lies.
    pub address: Addr,
    /// Requested bytes.
    pub bytes: Bytes,
    facts: Facts,
    /// The first slot in which it is live.
    pub enters: u32,
    /// The first slot after that in which it is not; the number of slots if it is live at the end.
    pub leaves: u32,
    free_requested: Maybe,
    /// Its stack: of the alloc, of the final block, or of the free ([`Origin::PreexistingFreed`]
    /// and lost allocs).
    pub stack: StackId,
    /// Its stream.
    pub stream: StreamId,
    /// Its pool, as far as an event or a segment names it.
    pub pool: PoolIndex,
}

/// What else is known of a block, in four bytes, since a trace has millions of them: its origin in
/// the lowest two bits, then whether its free was completed, then how many earlier ones had its
/// address, for which there are 29.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts(u32);

impl Facts {
    const ORIGINS: [Origin; 4] =
        [Origin::Alloc, Origin::PreexistingLive, Origin::PreexistingFreed, Origin::LostAlloc];
    const COMPLETED: u32 = 1 << 2;
    const REUSE: u32 = 3;

    /// Of one whose free was not completed.
    fn new(origin: Origin, reuse: u32) -> Self {
        Self(reuse << Self::REUSE | origin as u32)
    }
}

/// The number of an event or of a block, or none, in four bytes: no trace has so many that the last
/// number is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Maybe(u32);

impl Default for Maybe {
    fn default() -> Self {
        Self::NONE
    }
}

impl Maybe {
    const NONE: Self = Self(u32::MAX);

    fn get(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }
}

impl Block {
    /// How it came to be known.
    pub fn origin(&self) -> Origin {
        Facts::ORIGINS[(self.facts.0 % 4) as usize]
    }

    /// How many earlier blocks of the window had this address.
    pub fn reuse(&self) -> u32 {
        self.facts.0 >> Facts::REUSE
    }

    /// The event that asked for its free.
    pub fn free_requested(&self) -> Option<EventIndex> {
        self.free_requested.get().map(EventIndex)
    }

    /// The event that completed its free. `None` for blocks that are live at the end, and for those
    /// whose free was lost.
    pub fn free_completed(&self) -> Option<EventIndex> {
        (self.facts.0 & Facts::COMPLETED != 0).then(|| EventIndex(self.leaves - 1))
    }

    /// The event that allocated it.
    pub fn alloc_event(&self) -> Option<EventIndex> {
        (self.origin() == Origin::Alloc).then(|| EventIndex(self.enters - 1))
    }

    /// Whether it was there before the window.
    pub fn is_preexisting(&self) -> bool {
        self.enters == 0
    }

    /// Whether its stack is that of its free.
    pub fn has_stack_of_free(&self) -> bool {
        match self.origin() {
            Origin::PreexistingFreed => true,
            Origin::LostAlloc => self.free_completed().is_some(),
            Origin::Alloc | Origin::PreexistingLive => false,
        }
    }
}

/// What an address is up to during the replay. There are as many as addresses, looked for in no
/// order: what counts is how small it is.
#[derive(Default)]
struct Use {
    live: Maybe,
    completed: Maybe,
    /// A request that met no live block: of one that the trace does not know yet.
    requested: Maybe,
    uses: u32,
}

struct Replay<'a> {
    snapshot: &'a Snapshot,
    blocks: Vec<Block>,
    addresses: FxHashMap<u64, Use>,
    slots: u32,
}

/// An address as a key. Its low bits are nearly always zeros, and multiplicative hashes keep those:
/// in a table of 32-bit hashes thousands of addresses would meet in one place.
fn key(address: Addr) -> u64 {
    address.0.rotate_right(9)
}

/// What a device's events are about.
pub(crate) struct Pairing {
    /// Its blocks, in stack order: those from before the window that are never freed by address,
    /// those that are (latest freed lowest), then all others by the event at which they enter.
    pub(crate) blocks: Vec<Block>,
    /// The rows of events that are of no block, which are few.
    pub(crate) others: Vec<u32>,
}

/// Pair a device's events with its final segments. `actions` are how many events there are of each.
pub(crate) fn pair(
    snapshot: &Snapshot,
    device: &Device,
    actions: &[(Action, u32)],
    report: &mut Report,
) -> Pairing {
    let slots = device.events.len() as u32 + 1;
    let mut replay = Replay {
        snapshot,
        blocks: Vec::with_capacity(expected(snapshot, device, actions)),
        addresses: FxHashMap::default(),
        slots,
    };
    let (events, first) = (&snapshot.events, device.events.start);
    let (mut rows, mut others) = (device.events.clone(), Vec::new());
    while let Some(row) = rows.next() {
        match events.action(row) {
            Action::ALLOC => replay.alloc(row - first, row, report),
            Action::FREE_REQUESTED => {
                // Unless a stream still uses the block, its free is completed at once, and the
                // address need not be looked for twice.
                let completes = !rows.is_empty()
                    && events.action(rows.start) == Action::FREE_COMPLETED
                    && events.addr(rows.start) == events.addr(row);
                let completed = completes.then(|| rows.next()).flatten();
                replay.free(
                    row,
                    Some(row - first),
                    completed.map(|row| (row - first, row)),
                    report,
                );
            }
            Action::FREE_COMPLETED => replay.free(row, None, Some((row - first, row)), report),
            Action::FREE => replay.free(row, Some(row - first), Some((row - first, row)), report),
            _ => others.push(row),
        }
    }
    replay.final_blocks(device, report);
    into_stack_order(&mut replay.blocks);
    Pairing { blocks: replay.blocks, others }
}

/// How many blocks there are if the trace is tidy: whatever is live at the end, and whatever was
/// freed. Room for exactly as many, since blocks are what takes most memory in a trace, and a
/// vector that grows is twice as large.
fn expected(snapshot: &Snapshot, device: &Device, actions: &[(Action, u32)]) -> usize {
    let count = |of: Action| {
        actions.iter().find(|(action, _)| *action == of).map_or(0, |(_, count)| *count as usize)
    };
    let (allocs, frees) =
        (count(Action::ALLOC), count(Action::FREE_COMPLETED) + count(Action::FREE));
    let last = snapshot.segments_of(device).iter().flat_map(|s| snapshot.blocks_of(s));
    allocs.max(frees + last.filter(|b| b.state.is_active()).count())
}

/// Where a block stands in the stack. No two have the same place, so they are sorted in place: that
/// takes no memory.
fn place(block: &Block) -> (u8, u64) {
    match block.origin() {
        Origin::PreexistingLive => (0, block.address.0),
        Origin::PreexistingFreed => (1, u64::from(u32::MAX - block.leaves)),
        Origin::Alloc | Origin::LostAlloc => (2, u64::from(block.enters)),
    }
}

/// Blocks from before the window to the front, and all in the order of the stack. Those are few and
/// the others nearly in order, so hardly anything is compared, and what moves moves in long runs:
/// blocks are large to swap one by one.
fn into_stack_order(blocks: &mut [Block]) {
    let is_before =
        |b: &Block| matches!(b.origin(), Origin::PreexistingLive | Origin::PreexistingFreed);
    let mut before: Vec<Block> = blocks.iter().filter(|b| is_before(b)).copied().collect();
    before.sort_unstable_by_key(place);
    // Everything above `end` is in its place; every block below `start` is still to be looked at.
    let (mut start, mut end) = (blocks.len(), blocks.len());
    while start > 0 {
        let run = blocks[..start].iter().rev().take_while(|b| !is_before(b)).count();
        blocks.copy_within(start - run..start, end - run);
        (start, end) = ((start - run).saturating_sub(1), end - run);
    }
    let (front, window) = blocks.split_at_mut(end);
    front.copy_from_slice(&before);
    window.sort_unstable_by_key(place);
}

/// The block that an event is of, live in these slots.
fn block(snapshot: &Snapshot, row: u32, facts: Facts, slots: Range<u32>) -> Block {
    let events = &snapshot.events;
    Block {
        address: events.addr(row),
        bytes: events.size(row),
        facts,
        enters: slots.start,
        leaves: slots.end,
        free_requested: Maybe::NONE,
        stack: events.stack(row),
        stream: events.stream(row),
        pool: events.pool(row),
    }
}

impl Replay<'_> {
    fn alloc(&mut self, event: u32, row: u32, report: &mut Report) {
        let address = self.snapshot.events.addr(row);
        let live = Maybe(self.blocks.len() as u32);
        // A new address is written once, and not looked at: it is not in the processor's cache yet.
        let uses = match self.addresses.entry(key(address)) {
            Entry::Vacant(place) => {
                place.insert(Use { live, uses: 1, ..Use::default() });
                0
            }
            Entry::Occupied(mut place) => {
                let place = place.get_mut();
                if let Some(old) = place.live.get() {
                    self.blocks[old as usize].leaves = event + 1;
                    report.warn(WarningKind::LostFree, None, || {
                        format!(
                            "{address} is allocated at {} while it is live: its free was lost, and the old block ends there",
                            EventIndex(event)
                        )
                    });
                }
                (place.live, place.requested) = (live, Maybe::NONE);
                place.uses += 1;
                place.uses - 1
            }
        };
        let facts = Facts::new(Origin::Alloc, uses);
        self.blocks.push(block(self.snapshot, row, facts, event + 1..self.slots));
    }

    /// A free of what is at the address in this row: the event that asked for it, and the one that
    /// completed it, with its row.
    fn free(
        &mut self,
        row: u32,
        requested: Option<u32>,
        completed: Option<(u32, u32)>,
        report: &mut Report,
    ) {
        let address = self.snapshot.events.addr(row);
        let place = self.addresses.entry(key(address)).or_default();
        if let Some(event) = requested {
            match place.live.get() {
                Some(live) => self.blocks[live as usize].free_requested = Maybe(event),
                None => place.requested = Maybe(event),
            }
        }
        let Some((event, row)) = completed else { return };
        let bytes = self.snapshot.events.size(row);
        if let Some(live) = std::mem::take(&mut place.live).get() {
            let known = &mut self.blocks[live as usize];
            known.leaves = event + 1;
            known.facts.0 |= Facts::COMPLETED;
            if known.bytes != bytes {
                report.warn(WarningKind::FreeSize, None, || {
                    format!(
                        "{address} is freed at {} with {}, but was allocated with {}: the latter counts",
                        EventIndex(event),
                        bytes.exact(),
                        known.bytes.exact()
                    )
                });
            }
        } else {
            let (mut origin, mut enters) = (Origin::PreexistingFreed, 0);
            if let Some(before) = place.completed.get() {
                (origin, enters) = (Origin::LostAlloc, before + 1);
                report.warn(WarningKind::LostAlloc, None, || {
                    format!("{address} is freed at {} for the second time: its alloc was lost, and it counts from the first free on", EventIndex(event))
                });
            }
            let mut block =
                block(self.snapshot, row, Facts::new(origin, place.uses), enters..event + 1);
            block.facts.0 |= Facts::COMPLETED;
            block.free_requested = place.requested;
            place.uses += 1;
            self.blocks.push(block);
        }
        place.requested = Maybe::NONE;
        place.completed = Maybe(event);
    }

    /// Active blocks of the final segments that the trace does not leave live; and for those that
    /// it does, what only the segments know.
    fn final_blocks(&mut self, device: &Device, report: &mut Report) {
        for segment in self.snapshot.segments_of(device) {
            for found in self.snapshot.blocks_of(segment) {
                if !found.state.is_active() {
                    continue;
                }
                let place = self.addresses.entry(key(found.address)).or_default();
                if let Some(live) = place.live.get() {
                    let known = &mut self.blocks[live as usize];
                    if known.pool == PoolIndex::UNKNOWN {
                        known.pool = segment.pool;
                    }
                    continue;
                }
                let (origin, enters) = match place.completed.get() {
                    None => (Origin::PreexistingLive, 0),
                    Some(completed) => {
                        report.warn(WarningKind::LostAlloc, None, || {
                            format!("{} is live at the end, but was freed at {}: its alloc was lost, and it counts from there on", found.address, EventIndex(completed))
                        });
                        (Origin::LostAlloc, completed + 1)
                    }
                };
                let pending = found.state == BlockState::PendingFree;
                // The same address twice in the final segments is damage; the first stands.
                place.live = Maybe(self.blocks.len() as u32);
                self.blocks.push(Block {
                    address: found.address,
                    bytes: found.requested_size,
                    facts: Facts::new(origin, place.uses),
                    enters,
                    leaves: self.slots,
                    free_requested: if pending { place.requested } else { Maybe::NONE },
                    stack: found.stack,
                    stream: segment.stream,
                    pool: segment.pool,
                });
                place.uses += 1;
            }
        }
    }
}
