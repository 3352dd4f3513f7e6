//! Block sizes, which no trace holds: recovered by replaying how the allocator carves its segments.
//!
//! A block starts at its event's address, so it is known which free piece it was carved from, and
//! with the allocator's rules (`should_split`, `alloc_found_block` and `free_block` in
//! `c10/cuda/CUDACachingAllocator.cpp`) how much of it was taken. Blocks that are live at the end
//! stand in the final segments with their sizes, which win where the two disagree.

use crate::arena::Arena;
use crate::band::Band;
use crate::blocks::{Block, Origin};
use crate::rounding::{MIN_BLOCK_SIZE, Rounding};
use crate::segments::{Finding, SMALL_SIZE, Segments, Span, segment_event};
use crate::series::Series;
use crate::slicing::{Budget, STRIDE, filled, run_to_completion};
use crate::trace::{Exactness, Trace};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vramscope_snapshot::{BlockState, Report, Snapshot, Warning};
use vramscope_units::{Addr, Bytes, EventIndex};

/// Block sizes of one device's window, and the bands that they give.
#[derive(Clone, Debug)]
pub struct Carving {
    /// What it was carved from.
    pub segments: Segments,
    /// Bytes carved out for each block of [`Trace::blocks`].
    pub sizes: Vec<Bytes>,
    /// `active_bytes` in every slot.
    pub active: Series,
    /// `allocated_bytes` in every slot.
    pub allocated: Series,
    /// `active_bytes` over the window.
    pub active_band: Band,
    /// `allocated_bytes` over the window.
    pub allocated_band: Band,
    /// For each block the first slot in which it no longer counts as allocated; its own first when
    /// it never did.
    allocated_until: Vec<u32>,
    /// Exact when the replay meets the final segments block for block.
    pub exactness: Exactness,
    /// Where it does not.
    pub warnings: Vec<Warning>,
}

impl Carving {
    /// Replay a device's window.
    pub fn new(snapshot: &Snapshot, trace: &Trace) -> Self {
        run_to_completion(Self::sliced(snapshot, trace, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Self {
        let sizes = filled(Bytes(0), trace.blocks.len(), budget).await;
        let mut replay = Replay::new(snapshot, trace, sizes);
        while let Some(cost) = replay.step() {
            budget.charge(cost).await;
        }
        replay.finish()
    }

    /// Whether a block counts to `allocated_bytes` in a slot.
    pub fn is_allocated(&self, trace: &Trace, block: u32, slot: u32) -> bool {
        trace.blocks[block as usize].enters <= slot && slot < self.allocated_until[block as usize]
    }
}

/// What it costs to replay an event, or to look up an address, as [`Budget`] counts it.
const REPLAYED: u64 = 4;

/// What it costs to place a block from before the window: tables grow for it.
const PLACED: u64 = 24;

/// Sizes and states of the active blocks of the final segments, by address.
type Finals = FxHashMap<u64, (u64, BlockState)>;

/// Mapped ranges of one stream that touch are of one expandable segment: each has an address space
/// of its own, larger than what is ever mapped.
fn group(span: &Span) -> Option<u32> {
    span.is_expandable.then_some(u32::from(span.stream.0))
}

struct Replay<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    stage: Stage<'a>,
    /// How far it is in this stage: segments, blocks or slots.
    at: usize,
    segments: Segments,
    /// The first span that has not come.
    next: usize,
    /// Blocks and spans from before the window, by address, the last of each first.
    live: Vec<u32>,
    before: Vec<u32>,
    rounding: Rounding,
    finals: Finals,
    arena: Arena,
    sizes: Vec<Bytes>,
    /// Ends of requests in blocks that got more than they asked for: the block to which that rest
    /// belongs.
    slack: FxHashMap<u64, u32>,
    /// Where blocks from before the window end whose size is not sure: they may have kept up to 1
    /// MiB more.
    loose: BTreeMap<u64, u32>,
    /// Of the final segments: blocks that were compared, that were different, and the first of
    /// those.
    met: (usize, u32, Option<Addr>),
    /// What each slot adds to `allocated_bytes`; sums wrap, as changes below zero do.
    changes: Vec<u64>,
    active: Series,
    allocated: Series,
    until: Vec<u32>,
    bands: [Band; 2],
    report: Report,
}

/// What is done one after the other, each in strides.
enum Stage<'a> {
    Segments(Box<Finding<'a>>),
    Finals,
    /// A run of spans that make one piece: its end, its group, up to where it has been filled, and
    /// where its last piece begins.
    Start(Option<(u64, Option<u32>, u64, Option<u64>)>),
    Events,
    Meet,
    Room,
    Blocks,
    Sums,
}

impl<'a> Replay<'a> {
    fn new(snapshot: &'a Snapshot, trace: &'a Trace, sizes: Vec<Bytes>) -> Self {
        Self {
            snapshot,
            trace,
            stage: Stage::Segments(Box::new(Finding::new(snapshot, &trace.device))),
            at: 0,
            segments: Segments::default(),
            next: 0,
            live: Vec::new(),
            before: Vec::new(),
            rounding: Rounding::new(snapshot),
            finals: Finals::default(),
            arena: if trace.device.excerpt.is_some() {
                Arena::with_gaps()
            } else {
                Arena::default()
            },
            sizes,
            slack: FxHashMap::default(),
            loose: BTreeMap::new(),
            met: (0, 0, None),
            changes: Vec::new(),
            active: Series::default(),
            allocated: Series::default(),
            until: Vec::with_capacity(trace.blocks.len()),
            bands: [Band::default(); 2],
            report: Report::default(),
        }
    }

    /// Goes on by a stride, and says what that cost; `None` when all is done.
    fn step(&mut self) -> Option<u64> {
        let finals = self.snapshot.segments_of(&self.trace.device);
        let slots = self.trace.slots() as usize + 1;
        let count = match &mut self.stage {
            Stage::Segments(finding) => match finding.step() {
                Some(cost) => return Some(cost),
                None => 0,
            },
            Stage::Start(_) => return Some(self.start()),
            Stage::Finals | Stage::Meet => finals.len(),
            Stage::Events => self.trace.device.events.len(),
            Stage::Blocks => self.sizes.len(),
            Stage::Room => slots,
            // The last change is behind the window.
            Stage::Sums => slots - 1,
        };
        if self.at >= count {
            if let Stage::Sums = self.stage {
                return None;
            }
            self.at = 0;
            self.stage = match std::mem::replace(&mut self.stage, Stage::Finals) {
                Stage::Segments(finding) => {
                    self.segments = finding.finish();
                    Stage::Finals
                }
                Stage::Finals => {
                    self.sort_before();
                    Stage::Start(None)
                }
                Stage::Start(_) => Stage::Events,
                Stage::Events => Stage::Meet,
                Stage::Meet => {
                    self.meet();
                    self.changes.reserve_exact(slots);
                    Stage::Room
                }
                Stage::Room => Stage::Blocks,
                Stage::Blocks | Stage::Sums => {
                    let slots = slots - 1;
                    (self.active, self.allocated) =
                        (Series::with_capacity(slots), Series::with_capacity(slots));
                    Stage::Sums
                }
            };
            return Some(1);
        }
        let from = self.at;
        if let Stage::Finals | Stage::Meet = self.stage {
            self.at += 1;
            let blocks = self.snapshot.blocks_of(&finals[from]);
            if let Stage::Finals = self.stage {
                let active = blocks.iter().filter(|b| b.state.is_active());
                self.finals.extend(active.map(|b| (b.address.0, (b.size.0, b.state))));
            } else {
                self.compare(blocks);
            }
            return Some(blocks.len() as u64 * REPLAYED);
        }
        let to = count.min(from + STRIDE);
        self.at = to;
        match self.stage {
            Stage::Events => (from..to).for_each(|event| self.event(EventIndex(event as u32))),
            // Nobody has touched that memory yet, and it is slow to touch here and there: so it is
            // touched in order first.
            Stage::Room => self.changes.resize(to, 0),
            Stage::Blocks => (from..to).for_each(|block| self.count(block)),
            _ => (from..to).for_each(|slot| self.sum(slot)),
        }
        Some((to - from) as u64 * REPLAYED)
    }

    fn off(&mut self, message: impl FnOnce() -> String) {
        self.report.warn("carving", None, message);
    }

    /// The size that the final segments give a block, if it is one of theirs.
    fn known(&self, block: &Block) -> Option<u64> {
        let to_the_end = block.leaves == self.trace.slots();
        to_the_end.then(|| self.finals.get(&block.address.0)).flatten().map(|&(size, _)| size)
    }

    fn sort_before(&mut self) {
        let (blocks, spans) = (&self.trace.blocks, &self.segments.spans);
        self.next = spans.partition_point(|s| s.enters == 0);
        self.live =
            (0..).zip(blocks).take_while(|(_, b)| b.is_preexisting()).map(|(i, _)| i).collect();
        self.live.sort_unstable_by_key(|&i| blocks[i as usize].address);
        self.live.reverse();
        self.before = (0..).zip(spans).filter(|(_, s)| s.enters == 0).map(|(i, _)| i).collect();
        self.before.sort_unstable_by_key(|&i| spans[i as usize].address);
        self.before.reverse();
    }

    /// The next pieces before the window: blocks that are known to have been live, and free ones
    /// between them.
    fn start(&mut self) -> u64 {
        let Stage::Start(run) = &mut self.stage else { return 0 };
        let Some((end, group, mut at, mut behind)) =
            run.take().or_else(|| next_run(&self.segments, &mut self.before))
        else {
            for i in std::mem::take(&mut self.live).into_iter().rev() {
                self.outside(i);
            }
            self.stage = Stage::Events;
            return 1;
        };
        let blocks = &self.trace.blocks;
        for placed in 0..STRIDE as u64 / PLACED {
            let Some(i) = self.live.pop_if(|i| blocks[*i as usize].address.0 < end) else {
                if at < end {
                    self.arena.push(at, end - at, None, group, behind);
                }
                return (1 + placed) * PLACED;
            };
            let address = blocks[i as usize].address.0;
            if address < at {
                self.outside(i);
                continue;
            }
            if at < address {
                self.arena.push(at, address - at, None, group, behind);
                behind = Some(at);
            }
            let limit = self.live.last().map_or(end, |&n| blocks[n as usize].address.0.min(end));
            let size = self.size_before(i, limit, group.is_some());
            self.take(i, size);
            self.arena.push(address, size, Some(i), group, behind);
            behind = Some(address);
            at = address.saturating_add(size);
        }
        self.stage = Stage::Start(Some((end, group, at, behind)));
        STRIDE as u64
    }

    /// The size of a block from before the window that must end at `limit`.
    fn size_before(&mut self, i: u32, limit: u64, is_expandable: bool) -> u64 {
        let block = self.trace.blocks[i as usize];
        let room = limit - block.address.0;
        if let Some(known) = self.known(&block) {
            return known.min(room);
        }
        let size = self.rounding.round(block.bytes.0).min(room);
        let gap = room - size;
        // A free block so small is never split off there: it is what was left of the block's own.
        let is_large = size > SMALL_SIZE && !is_expandable;
        if is_large && (gap <= SMALL_SIZE || size >= self.rounding.max_split_size) {
            return room;
        }
        if is_large {
            self.loose.insert(block.address.0 + size, i);
        }
        size
    }

    /// A block that lies in no segment, or in another block.
    fn outside(&mut self, i: u32) {
        let block = self.trace.blocks[i as usize];
        let size = self.known(&block).unwrap_or_else(|| self.rounding.round(block.bytes.0));
        self.sizes[i as usize] = Bytes(size);
        self.off(|| {
            format!(
                "the block at {} from before the window lies in no segment of its own",
                block.address
            )
        });
    }

    /// Notes a block's size, and where what it did not ask for begins.
    fn take(&mut self, i: u32, size: u64) {
        self.sizes[i as usize] = Bytes(size);
        let block = &self.trace.blocks[i as usize];
        let asked = self.rounding.round(block.bytes.0);
        if asked < size {
            self.slack.insert(block.address.0 + asked, i);
        }
    }

    /// What an event does to segments and blocks.
    fn event(&mut self, event: EventIndex) {
        let (row, slot, snapshot) =
            (self.trace.device.events.start + event.0, event.0 + 1, self.snapshot);
        if let Some((false, is_expandable)) = segment_event(snapshot.events.action(row)) {
            let (address, size) = (snapshot.events.addr(row), snapshot.events.size(row));
            if !self.arena.release(address.0, size.0, is_expandable) {
                self.off(|| {
                    format!("{event} gives back memory that is in use or was never reserved")
                });
            }
        }
        while let Some(span) = self.segments.spans.get(self.next).filter(|s| s.enters == slot) {
            self.next += 1;
            // What an unmap leaves over is there already.
            if span.event == Some(event) {
                self.arena.reserve(span.address.0, span.size.0, group(span));
            }
        }
        for change in self.trace.changes_at(slot) {
            if change.enters() { self.enter(change.block()) } else { self.leave(change.block()) }
        }
    }

    fn enter(&mut self, i: u32) {
        let block = self.trace.blocks[i as usize];
        let asked = self.rounding.round(block.bytes.0);
        let known = self.known(&block);
        self.uncover(block.address.0);
        self.stretch(block.address.0);
        self.reach(block.address.0);
        let Some(piece) =
            self.arena.get(block.address.0).filter(|p| p.block.is_none() && p.size >= asked)
        else {
            self.sizes[i as usize] = Bytes(known.unwrap_or(asked));
            let (address, bytes) = (block.address, block.bytes);
            self.off(|| {
                format!("{} at {address} does not fit the free memory there", bytes.exact())
            });
            return;
        };
        let rest = piece.size - asked;
        let splits = if asked <= SMALL_SIZE || piece.group.is_some() {
            rest >= MIN_BLOCK_SIZE
        } else {
            asked < self.rounding.max_split_size && rest > SMALL_SIZE
        };
        let replayed = if splits { asked } else { piece.size };
        let size = known.filter(|&k| k <= piece.size).unwrap_or(replayed);
        if size != replayed {
            let address = block.address;
            self.off(|| format!("the block at {address} has {size} bytes in the final segments, and {replayed} by the allocator's rules"));
        }
        self.take(i, size);
        self.arena.carve(block.address.0, size, i);
    }

    /// A block that begins where another's request ended: that one was split after all (CUDA graph
    /// trees restore their pools block by block, and before the window it is only known what was
    /// asked for).
    fn uncover(&mut self, address: u64) {
        let Some(owner) = self.slack.remove(&address) else { return };
        let start = self.trace.blocks[owner as usize].address.0;
        if self.arena.get(start).is_some_and(|p| p.block == Some(owner) && address < p.end()) {
            let size = address - start;
            self.sizes[owner as usize] = Bytes(size);
            self.arena.carve(start, size, owner);
        }
    }

    /// A block that begins within free memory, and not at its start, shows that the block before
    /// it, whose size was not sure, reaches up to there.
    fn stretch(&mut self, address: u64) {
        // One that begins right there shows that it does not reach further.
        self.loose.remove(&address);
        let Some((&end, &owner)) = self.loose.range(..address).next_back() else { return };
        if address - end > SMALL_SIZE || self.arena.get(address).is_some() {
            return;
        }
        let start = self.trace.blocks[owner as usize].address.0;
        if self.arena.stretch(start, owner, address) {
            self.loose.remove(&end);
            self.take(owner, address - start);
        }
    }

    /// In a part of a trace blocks begin anywhere in free memory: those that were carved before
    /// them are not there.
    fn reach(&mut self, address: u64) {
        if self.trace.device.excerpt.is_none() || self.arena.get(address).is_some() {
            return;
        }
        let (blocks, rounding) = (&self.trace.blocks, &self.rounding);
        let needs = |i: u32| {
            let block = &blocks[i as usize];
            block.address.0.saturating_add(rounding.round(block.bytes.0))
        };
        if let Some(owner) = self.arena.cut(address, needs) {
            self.take(owner, address - self.trace.blocks[owner as usize].address.0);
        }
    }

    fn leave(&mut self, i: u32) {
        let address = self.trace.blocks[i as usize].address;
        if !self.arena.free(address.0, i) {
            self.off(|| {
                format!("the block at {address} is freed, and was not where it should have been")
            });
        }
    }

    /// The last state against the final segments': some of their blocks.
    fn compare(&mut self, blocks: &[vramscope_snapshot::Block]) {
        let (count, different, first) = &mut self.met;
        *count += blocks.len();
        for block in blocks {
            let piece = self.arena.get(block.address.0);
            let is_active = block.state.is_active();
            let same =
                piece.is_some_and(|p| p.size == block.size.0 && p.block.is_some() == is_active);
            if !same {
                *different += 1;
                first.get_or_insert(block.address);
            }
        }
    }

    /// All of them have been compared.
    fn meet(&mut self) {
        let (count, different, first) = self.met;
        if let Some(first) = first {
            self.report.warn_many("carving_end", None, different, || {
                format!("{different} of {count} blocks of the final segments are not as the replay leaves them, first that at {first}: active_bytes and allocated_bytes are estimates")
            });
        } else if count != self.arena.len() {
            let pieces = self.arena.len();
            self.report.warn("carving_end", None, || {
                format!("the replay ends with {pieces} blocks, the final segments with {count}: active_bytes and allocated_bytes are estimates")
            });
        }
    }

    /// What a block adds to `allocated_bytes`.
    fn count(&mut self, i: usize) {
        let (block, size) = (&self.trace.blocks[i], self.sizes[i].0);
        let end = allocated_until(block, &self.finals).clamp(block.enters, block.leaves);
        let [enters, leaves] = [block.enters, end].map(|slot| slot as usize);
        self.changes[enters] = self.changes[enters].wrapping_add(size);
        self.changes[leaves] = self.changes[leaves].wrapping_sub(size);
        self.until.push(end);
    }

    /// Both bands in a slot.
    fn sum(&mut self, slot: usize) {
        let mut change = 0u64;
        for part in self.trace.changes_at(slot as u32) {
            let size = self.sizes[part.block() as usize].0;
            change =
                if part.enters() { change.wrapping_add(size) } else { change.wrapping_sub(size) };
        }
        let changes = [change, self.changes[slot]];
        for ((series, band), change) in
            [&mut self.active, &mut self.allocated].into_iter().zip(&mut self.bands).zip(changes)
        {
            band.add_slot(slot, change as i64);
            series.push(band.end.max(0) as u64);
        }
    }

    fn finish(self) -> Carving {
        // Free memory was cut by blocks that a part of a trace does not have; it is said that sizes
        // are estimates there.
        let is_whole = self.trace.device.excerpt.is_none();
        let replay = if is_whole { self.report.warnings() } else { &[] };
        let warnings = [self.segments.warnings.as_slice(), replay].concat();
        let exactness = if warnings.is_empty() && is_whole {
            self.trace.exactness
        } else {
            Exactness::Estimate
        };
        let [active_band, allocated_band] = self.bands;
        Carving {
            segments: self.segments,
            sizes: self.sizes,
            active: self.active,
            allocated: self.allocated,
            active_band,
            allocated_band,
            allocated_until: self.until,
            exactness,
            warnings,
        }
    }
}

/// The next spans that make one piece: their end, group and start.
fn next_run(
    segments: &Segments,
    before: &mut Vec<u32>,
) -> Option<(u64, Option<u32>, u64, Option<u64>)> {
    let spans = &segments.spans;
    let mut last = &spans[before.pop()? as usize];
    let start = last.address.0;
    while let Some(i) = before.pop_if(|i| {
        let next = &spans[*i as usize];
        group(last).is_some() && group(last) == group(next) && last.end() == next.address.0
    }) {
        last = &spans[i as usize];
    }
    Some((last.end(), group(last), start, None))
}

/// The slot from which a block no longer counts as allocated: its free is asked for. That was
/// before the window for those that were pending then.
fn allocated_until(block: &Block, finals: &Finals) -> u32 {
    if let Some(event) = block.free_requested() {
        return event.0 + 1;
    }
    let pending_at_end =
        || finals.get(&block.address.0).is_some_and(|f| f.1 == BlockState::PendingFree);
    match block.origin() {
        Origin::PreexistingFreed => 0,
        Origin::PreexistingLive if pending_at_end() => 0,
        _ => block.leaves,
    }
}
