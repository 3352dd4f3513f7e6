//! Pairs trace entries and final segments into blocks with a life.
//!
//! A block is live in slots `[enters, leaves)`. Slot 0 is the state before the window. Slot `i + 1`
//! is the state after event `i`. Inconsistent traces follow these rules (ARCHITECTURE.md,
//! "Numbers"):
//!
//! - A block leaves with the size that it entered with.
//! - An alloc on a live address ends the old block there: its free was lost.
//! - A second completed free of an address means that an alloc was lost. So does an active final
//!   block whose address already has a completed free.
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use vramscope_snapshot::{
    Action, BlockState, Device, PoolIndex, Report, Snapshot, StackId, StreamId, WarningKind,
};
use vramscope_units::{Addr, Bytes, EventIndex};

/// The evidence for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An `alloc` in the trace.
    Alloc,
    /// An active block of the final segments that has no event. It is from before the window.
    PreexistingLive,
    /// A completed free without an alloc in the trace. The block is from before the window, and its
    /// stack is that of the free.
    PreexistingFreed,
    /// A second completed free of an address, or an active final block after a completed free. The
    /// alloc was lost.
    LostAlloc,
    /// A block of `torch_npu`'s workspace allocator, which keeps no history: the file has it as it
    /// is at the end. It counts as live over the whole window.
    Workspace,
}

/// One block's life in one device's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First address.
    pub address: Addr,
    /// Requested bytes.
    pub bytes: Bytes,
    flags: BlockFlags,
    /// The first slot in which the block is live.
    pub enters: u32,
    /// The first slot after its life. The number of slots if the block is live at the end.
    pub leaves: u32,
    free_requested: OptionalIndex,
    /// The stack of the alloc or of the final block. The stack of the free for
    /// [`Origin::PreexistingFreed`], and for [`Origin::LostAlloc`] with a completed free.
    pub stack: StackId,
    /// Stream of the allocation.
    pub stream: StreamId,
    /// Memory pool, if an event or a segment names it.
    pub pool: PoolIndex,
}

/// Packed properties of a block: four bytes, because a trace has millions of blocks.
///
/// Bits 0 to 2 are the origin. Bit 3 is set if the free was completed. The upper 28 bits count the
/// earlier blocks at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockFlags(u32);

impl BlockFlags {
    const ORIGINS: [Origin; 5] = [
        Origin::Alloc,
        Origin::PreexistingLive,
        Origin::PreexistingFreed,
        Origin::LostAlloc,
        Origin::Workspace,
    ];
    const ORIGIN: u32 = (1 << 3) - 1;
    const FREE_COMPLETED: u32 = 1 << 3;
    const REUSE_SHIFT: u32 = 4;

    /// The flags of a block without a completed free.
    fn new(origin: Origin, reuse: u32) -> Self {
        Self(reuse << Self::REUSE_SHIFT | origin as u32)
    }
}

/// An optional event or block index in four bytes. `u32::MAX` means none: no trace has that many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OptionalIndex(u32);

impl Default for OptionalIndex {
    fn default() -> Self {
        Self::NONE
    }
}

impl OptionalIndex {
    const NONE: Self = Self(u32::MAX);

    fn get(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }
}

impl Block {
    /// The evidence for the block.
    pub fn origin(&self) -> Origin {
        BlockFlags::ORIGINS[(self.flags.0 & BlockFlags::ORIGIN) as usize]
    }

    /// Number of earlier blocks of the window at the same address.
    pub fn reuse(&self) -> u32 {
        self.flags.0 >> BlockFlags::REUSE_SHIFT
    }

    /// The event that requested the free.
    pub fn free_requested(&self) -> Option<EventIndex> {
        self.free_requested.get().map(EventIndex)
    }

    /// The event that completed the free. `None` for a block that is live at the end, and for a
    /// block whose free was lost.
    pub fn free_completed(&self) -> Option<EventIndex> {
        (self.flags.0 & BlockFlags::FREE_COMPLETED != 0).then(|| EventIndex(self.leaves - 1))
    }

    /// The event that allocated the block. `None` for every origin but [`Origin::Alloc`].
    pub fn alloc_event(&self) -> Option<EventIndex> {
        (self.origin() == Origin::Alloc).then(|| EventIndex(self.enters - 1))
    }

    /// Whether the block is live in a slot.
    pub fn is_live_at(&self, slot: u32) -> bool {
        self.enters <= slot && slot < self.leaves
    }

    /// Whether the block was live before the window.
    pub fn is_preexisting(&self) -> bool {
        self.enters == 0
    }

    /// Whether [`Block::stack`] is the stack of the free.
    pub fn has_stack_of_free(&self) -> bool {
        match self.origin() {
            Origin::PreexistingFreed => true,
            Origin::LostAlloc => self.free_completed().is_some(),
            Origin::Alloc | Origin::PreexistingLive | Origin::Workspace => false,
        }
    }
}

/// The state of one address during pairing. The table has one entry per address and is accessed
/// randomly, so the entry must be small.
#[derive(Default)]
struct AddressState {
    /// The live block at the address.
    live: OptionalIndex,
    /// The last completed free of the address.
    completed: OptionalIndex,
    /// A requested free without a live block. The block is from before the window, and the trace
    /// has not shown it yet.
    requested: OptionalIndex,
    /// Number of blocks so far.
    uses: u32,
}

struct Pairer<'a> {
    snapshot: &'a Snapshot,
    blocks: Vec<Block>,
    addresses: FxHashMap<u64, AddressState>,
    slots: u32,
}

/// The hash key of an address. The low bits of an address are nearly always 0, and a multiplicative
/// hash keeps them 0. With 32-bit hashes, thousands of addresses would collide.
fn address_key(address: Addr) -> u64 {
    address.0.rotate_right(9)
}

/// The result of [`pair`].
pub(crate) struct Pairing {
    /// Blocks in stack order: blocks from before the window that are live at the end (by address),
    /// blocks from before the window that are freed (last freed first), then all other blocks by
    /// the event at which they enter.
    pub(crate) blocks: Vec<Block>,
    /// The rows of events that do not belong to a block. They are few.
    pub(crate) others: Vec<u32>,
}

/// Pairs a device's events with its final segments. `actions` is the number of events by action.
pub(crate) fn pair(
    snapshot: &Snapshot,
    device: &Device,
    actions: &[(Action, u32)],
    report: &mut Report,
) -> Pairing {
    let slots = device.events.len() as u32 + 1;
    let mut pairer = Pairer {
        snapshot,
        blocks: Vec::with_capacity(expected_blocks(snapshot, device, actions)),
        addresses: FxHashMap::default(),
        slots,
    };
    let (events, first) = (&snapshot.events, device.events.start);
    let (mut rows, mut others) = (device.events.clone(), Vec::new());
    while let Some(row) = rows.next() {
        match events.action(row) {
            Action::ALLOC => pairer.alloc(row - first, row, report),
            Action::FREE_REQUESTED => {
                // The free completes in the next event unless a stream still uses the block. One
                // lookup of the address then serves both events.
                let completes = !rows.is_empty()
                    && events.action(rows.start) == Action::FREE_COMPLETED
                    && events.addr(rows.start) == events.addr(row);
                let completed = completes.then(|| rows.next()).flatten();
                pairer.free(
                    row,
                    Some(row - first),
                    completed.map(|row| (row - first, row)),
                    report,
                );
            }
            Action::FREE_COMPLETED => pairer.free(row, None, Some((row - first, row)), report),
            Action::FREE => pairer.free(row, Some(row - first), Some((row - first, row)), report),
            _ => others.push(row),
        }
    }
    pairer.final_blocks(device, report);
    into_stack_order(&mut pairer.blocks);
    Pairing { blocks: pairer.blocks, others }
}

/// The number of blocks in a consistent trace: blocks that are live at the end, and freed blocks.
///
/// Blocks take most of a trace's memory, so their vector gets its exact capacity. A growing vector
/// would be up to twice as large.
fn expected_blocks(snapshot: &Snapshot, device: &Device, actions: &[(Action, u32)]) -> usize {
    let count = |of: Action| {
        actions.iter().find(|(action, _)| *action == of).map_or(0, |(_, count)| *count as usize)
    };
    let (allocs, frees) =
        (count(Action::ALLOC), count(Action::FREE_COMPLETED) + count(Action::FREE));
    let last = snapshot.segments_of(device).iter().flat_map(|s| snapshot.blocks_of(s));
    allocs.max(frees + last.filter(|b| b.state.is_active()).count())
}

/// The sort key of stack order. Keys are unique, so an unstable sort in state is deterministic and
/// needs no memory.
fn stack_order_key(block: &Block) -> (u8, u64) {
    match block.origin() {
        Origin::PreexistingLive | Origin::Workspace => (0, block.address.0),
        Origin::PreexistingFreed => (1, u64::from(u32::MAX - block.leaves)),
        Origin::Alloc | Origin::LostAlloc => (2, u64::from(block.enters)),
    }
}

/// Sorts blocks into stack order. Blocks from before the window move to the front.
///
/// Those blocks are few, and the others are nearly sorted. So the sort compares little, and blocks
/// move in long runs. Swapping them one by one would be slow because a block is large.
fn into_stack_order(blocks: &mut [Block]) {
    let is_before = |b: &Block| !matches!(b.origin(), Origin::Alloc | Origin::LostAlloc);
    let mut before: Vec<Block> = blocks.iter().filter(|b| is_before(b)).copied().collect();
    before.sort_unstable_by_key(stack_order_key);
    // Blocks at `end` and above are in state. Blocks below `start` are not processed yet.
    let (mut start, mut end) = (blocks.len(), blocks.len());
    while start > 0 {
        let run = blocks[..start].iter().rev().take_while(|b| !is_before(b)).count();
        blocks.copy_within(start - run..start, end - run);
        (start, end) = ((start - run).saturating_sub(1), end - run);
    }
    let (front, window) = blocks.split_at_mut(end);
    front.copy_from_slice(&before);
    window.sort_unstable_by_key(stack_order_key);
}

/// The block of an event, live in `slots`.
fn block(snapshot: &Snapshot, row: u32, flags: BlockFlags, slots: Range<u32>) -> Block {
    let events = &snapshot.events;
    Block {
        address: events.addr(row),
        bytes: events.size(row),
        flags,
        enters: slots.start,
        leaves: slots.end,
        free_requested: OptionalIndex::NONE,
        stack: events.stack(row),
        stream: events.stream(row),
        pool: events.pool(row),
    }
}

impl Pairer<'_> {
    fn alloc(&mut self, event: u32, row: u32, report: &mut Report) {
        let address = self.snapshot.events.addr(row);
        let live = OptionalIndex(self.blocks.len() as u32);
        // A new address is written once and never read back: its entry is not in the CPU cache.
        let uses = match self.addresses.entry(address_key(address)) {
            Entry::Vacant(entry) => {
                entry.insert(AddressState { live, uses: 1, ..AddressState::default() });
                0
            }
            Entry::Occupied(mut entry) => {
                let state = entry.get_mut();
                if let Some(old) = state.live.get() {
                    self.blocks[old as usize].leaves = event + 1;
                    report.warn(WarningKind::LostFree, None, || {
                        format!(
                            "{address} is allocated at {} while it is live: its free was lost, \
                             and the old block ends there",
                            EventIndex(event)
                        )
                    });
                }
                (state.live, state.requested) = (live, OptionalIndex::NONE);
                state.uses += 1;
                state.uses - 1
            }
        };
        let flags = BlockFlags::new(Origin::Alloc, uses);
        self.blocks.push(block(self.snapshot, row, flags, event + 1..self.slots));
    }

    /// Frees the block at the address in `row`.
    ///
    /// `requested` is the event that requested the free. `completed` is the event that completed
    /// the free, with its row.
    fn free(
        &mut self,
        row: u32,
        requested: Option<u32>,
        completed: Option<(u32, u32)>,
        report: &mut Report,
    ) {
        let address = self.snapshot.events.addr(row);
        let state = self.addresses.entry(address_key(address)).or_default();
        if let Some(event) = requested {
            match state.live.get() {
                Some(live) => self.blocks[live as usize].free_requested = OptionalIndex(event),
                None => state.requested = OptionalIndex(event),
            }
        }
        let Some((event, row)) = completed else { return };
        let bytes = self.snapshot.events.size(row);
        if let Some(live) = std::mem::take(&mut state.live).get() {
            let known = &mut self.blocks[live as usize];
            known.leaves = event + 1;
            known.flags.0 |= BlockFlags::FREE_COMPLETED;
            if known.bytes != bytes {
                report.warn(WarningKind::FreeSize, None, || {
                    format!(
                        "{address} is freed at {} with {}, but was allocated with {}: the latter \
                         counts",
                        EventIndex(event),
                        bytes.exact(),
                        known.bytes.exact()
                    )
                });
            }
        } else {
            let (mut origin, mut enters) = (Origin::PreexistingFreed, 0);
            if let Some(before) = state.completed.get() {
                (origin, enters) = (Origin::LostAlloc, before + 1);
                report.warn(WarningKind::LostAlloc, None, || {
                    format!(
                        "{address} is freed at {} for the second time: its alloc was lost, \
                        and it counts from the first free on",
                        EventIndex(event)
                    )
                });
            }
            let mut block =
                block(self.snapshot, row, BlockFlags::new(origin, state.uses), enters..event + 1);
            block.flags.0 |= BlockFlags::FREE_COMPLETED;
            block.free_requested = state.requested;
            state.uses += 1;
            self.blocks.push(block);
        }
        state.requested = OptionalIndex::NONE;
        state.completed = OptionalIndex(event);
    }

    /// Adds active blocks of the final segments that the trace does not leave live. Blocks that the
    /// trace does leave live get their pool from the segment.
    fn final_blocks(&mut self, device: &Device, report: &mut Report) {
        for segment in self.snapshot.segments_of(device) {
            for found in self.snapshot.blocks_of(segment) {
                if !found.state.is_active() {
                    continue;
                }
                let state = self.addresses.entry(address_key(found.address)).or_default();
                if let Some(live) = state.live.get() {
                    let known = &mut self.blocks[live as usize];
                    if known.pool == PoolIndex::UNKNOWN {
                        known.pool = segment.pool;
                    }
                    continue;
                }
                let (origin, enters) = match state.completed.get() {
                    None if self.snapshot.workspaces.binary_search(&found.address).is_ok() => {
                        (Origin::Workspace, 0)
                    }
                    None => (Origin::PreexistingLive, 0),
                    Some(completed) => {
                        report.warn(WarningKind::LostAlloc, None, || {
                            format!(
                                "{} is live at the end, but was freed at {}: its alloc was \
                                lost, and it counts from there on",
                                found.address,
                                EventIndex(completed)
                            )
                        });
                        (Origin::LostAlloc, completed + 1)
                    }
                };
                let pending = found.state == BlockState::PendingFree;
                // A damaged file can list an address twice. The first block wins.
                state.live = OptionalIndex(self.blocks.len() as u32);
                self.blocks.push(Block {
                    address: found.address,
                    bytes: found.requested_size,
                    flags: BlockFlags::new(origin, state.uses),
                    enters,
                    leaves: self.slots,
                    free_requested: if pending { state.requested } else { OptionalIndex::NONE },
                    stack: found.stack,
                    stream: segment.stream,
                    pool: segment.pool,
                });
                state.uses += 1;
            }
        }
    }
}
