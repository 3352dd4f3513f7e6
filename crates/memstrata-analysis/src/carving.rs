//! Block sizes, which no trace holds: recovered by replaying how the allocator carves its segments.
//!
//! A block starts at its event's address, so it is known which free piece it was carved from, and with the allocator's
//! rules (`should_split`, `alloc_found_block` and `free_block` in `c10/cuda/CUDACachingAllocator.cpp`) how much of it was
//! taken. Blocks that are live at the end stand in the final segments with their sizes, which win where the two disagree.

use crate::arena::Arena;
use crate::band::Band;
use crate::blocks::{Block, Origin};
use crate::rounding::{MIN_BLOCK_SIZE, Rounding};
use crate::segments::{SMALL_SIZE, Segments, Span, segment_event};
use crate::trace::{Exactness, Trace};
use memstrata_snapshot::{BlockState, Report, Snapshot, Warning};
use memstrata_units::{Bytes, EventIndex};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Block sizes of one device's window, and the bands that they give.
#[derive(Clone, Debug)]
pub struct Carving {
    /// What it was carved from.
    pub segments: Segments,
    /// Bytes carved out for each block of [`Trace::blocks`].
    pub sizes: Vec<Bytes>,
    /// `active_bytes` in every slot.
    pub active: Vec<u64>,
    /// `allocated_bytes` in every slot.
    pub allocated: Vec<u64>,
    /// `active_bytes` over the window.
    pub active_band: Band,
    /// `allocated_bytes` over the window.
    pub allocated_band: Band,
    /// For each block the first slot in which it no longer counts as allocated; its own first when it never did.
    allocated_until: Vec<u32>,
    /// Exact when the replay meets the final segments block for block.
    pub exactness: Exactness,
    /// Where it does not.
    pub warnings: Vec<Warning>,
}

impl Carving {
    /// Replay a device's window.
    pub fn new(snapshot: &Snapshot, trace: &Trace) -> Self {
        let segments = Segments::new(snapshot, &trace.device);
        let mut replay = Replay {
            trace,
            rounding: Rounding::new(snapshot),
            finals: finals(snapshot, trace),
            arena: if trace.device.excerpt.is_some() { Arena::with_gaps() } else { Arena::default() },
            sizes: vec![Bytes(0); trace.blocks.len()],
            slack: FxHashMap::default(),
            loose: BTreeMap::new(),
            report: Report::default(),
        };
        replay.start(&segments);
        let mut next = segments.spans.partition_point(|s| s.enters == 0);
        for slot in 1..trace.slots() {
            let row = trace.device.events.start + slot - 1;
            if let Some((false, is_expandable)) = segment_event(snapshot.events.action(row)) {
                let (address, size) = (snapshot.events.addr(row), snapshot.events.size(row));
                if !replay.arena.release(address.0, size.0, is_expandable) {
                    replay.off(|| {
                        format!("{} gives back memory that is in use or was never reserved", EventIndex(slot - 1))
                    });
                }
            }
            while let Some(span) = segments.spans.get(next).filter(|s| s.enters == slot) {
                next += 1;
                // What an unmap leaves over is there already.
                if span.event == Some(EventIndex(slot - 1)) {
                    replay.arena.reserve(span.address.0, span.size.0, group(span));
                }
            }
            for change in trace.changes_at(slot) {
                if change.enters() { replay.enter(change.block()) } else { replay.leave(change.block()) }
            }
        }
        replay.meet(snapshot);
        replay.finish(segments)
    }

    /// Whether a block counts to `allocated_bytes` in a slot.
    pub fn is_allocated(&self, trace: &Trace, block: u32, slot: u32) -> bool {
        trace.blocks[block as usize].enters <= slot && slot < self.allocated_until[block as usize]
    }
}

/// Sizes and states of the active blocks of the final segments, by address.
type Finals = FxHashMap<u64, (u64, BlockState)>;

fn finals(snapshot: &Snapshot, trace: &Trace) -> Finals {
    let blocks = snapshot.segments_of(&trace.device).iter().flat_map(|s| snapshot.blocks_of(s));
    blocks.filter(|b| b.state.is_active()).map(|b| (b.address.0, (b.size.0, b.state))).collect()
}

/// Mapped ranges of one stream that touch are of one expandable segment: each has an address space of its own, larger
/// than what is ever mapped.
fn group(span: &Span) -> Option<u32> {
    span.is_expandable.then_some(u32::from(span.stream.0))
}

struct Replay<'a> {
    trace: &'a Trace,
    rounding: Rounding,
    finals: Finals,
    arena: Arena,
    sizes: Vec<Bytes>,
    /// Ends of requests in blocks that got more than they asked for: the block to which that rest belongs.
    slack: FxHashMap<u64, u32>,
    /// Where blocks from before the window end whose size is not sure: they may have kept up to 1 MiB more.
    loose: BTreeMap<u64, u32>,
    report: Report,
}

impl Replay<'_> {
    fn off(&mut self, message: impl FnOnce() -> String) {
        self.report.warn("carving", None, message);
    }

    /// The size that the final segments give a block, if it is one of theirs.
    fn known(&self, block: &Block) -> Option<u64> {
        let to_the_end = block.leaves == self.trace.slots();
        to_the_end.then(|| self.finals.get(&block.address.0)).flatten().map(|&(size, _)| size)
    }

    /// The pieces before the window: blocks that are known to have been live, and free ones between them.
    fn start(&mut self, segments: &Segments) {
        let mut live: Vec<u32> =
            (0..).zip(&self.trace.blocks).take_while(|(_, b)| b.is_preexisting()).map(|(i, _)| i).collect();
        live.sort_unstable_by_key(|&i| self.trace.blocks[i as usize].address);
        let mut live = live.into_iter().peekable();
        let mut spans: Vec<&Span> = segments.spans.iter().filter(|s| s.enters == 0).collect();
        spans.sort_unstable_by_key(|s| s.address);
        for run in spans.chunk_by(|a, b| group(a).is_some() && group(a) == group(b) && a.end() == b.address.0) {
            let (start, end, group) = (run[0].address.0, run[run.len() - 1].end(), group(run[0]));
            let mut at = start;
            let mut behind = None;
            while let Some(i) = live.next_if(|&i| self.trace.blocks[i as usize].address.0 < end) {
                let address = self.trace.blocks[i as usize].address.0;
                if address < at {
                    self.outside(i);
                    continue;
                }
                if at < address {
                    self.arena.push(at, address - at, None, group, behind);
                    behind = Some(at);
                }
                let limit = live.peek().map_or(end, |&n| self.trace.blocks[n as usize].address.0.min(end));
                let size = self.size_before(i, limit, group.is_some());
                self.take(i, size);
                self.arena.push(address, size, Some(i), group, behind);
                behind = Some(address);
                at = address.saturating_add(size);
            }
            if at < end {
                self.arena.push(at, end - at, None, group, behind);
            }
        }
        for i in live {
            self.outside(i);
        }
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
        self.off(|| format!("the block at {} from before the window lies in no segment of its own", block.address));
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

    fn enter(&mut self, i: u32) {
        let block = self.trace.blocks[i as usize];
        let asked = self.rounding.round(block.bytes.0);
        let known = self.known(&block);
        self.uncover(block.address.0);
        self.stretch(block.address.0);
        self.reach(block.address.0);
        let Some(piece) = self.arena.get(block.address.0).filter(|p| p.block.is_none() && p.size >= asked) else {
            self.sizes[i as usize] = Bytes(known.unwrap_or(asked));
            let (address, bytes) = (block.address, block.bytes);
            self.off(|| format!("{} at {address} does not fit the free memory there", bytes.exact()));
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

    /// A block that begins where another's request ended: that one was split after all (CUDA graph trees restore
    /// their pools block by block, and before the window it is only known what was asked for).
    fn uncover(&mut self, address: u64) {
        let Some(owner) = self.slack.remove(&address) else { return };
        let start = self.trace.blocks[owner as usize].address.0;
        if self.arena.get(start).is_some_and(|p| p.block == Some(owner) && address < p.end()) {
            let size = address - start;
            self.sizes[owner as usize] = Bytes(size);
            self.arena.carve(start, size, owner);
        }
    }

    /// A block that begins within free memory, and not at its start, shows that the block before it, whose size was not
    /// sure, reaches up to there.
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

    /// In a part of a trace blocks begin anywhere in free memory: those that were carved before them are not there.
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
            self.off(|| format!("the block at {address} is freed, and was not where it should have been"));
        }
    }

    /// The last state against the final segments'.
    fn meet(&mut self, snapshot: &Snapshot) {
        let finals = snapshot.segments_of(&self.trace.device).iter().flat_map(|s| snapshot.blocks_of(s));
        let (mut count, mut different, mut first) = (0, 0, None);
        for block in finals {
            count += 1;
            let piece = self.arena.get(block.address.0);
            let same = piece.is_some_and(|p| p.size == block.size.0 && p.block.is_some() == block.state.is_active());
            if !same {
                different += 1;
                first = first.or(Some(block.address));
            }
        }
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

    fn finish(self, segments: Segments) -> Carving {
        let slots = self.trace.slots() as usize;
        let (mut active, mut allocated) = (vec![0i64; slots + 1], vec![0i64; slots + 1]);
        let mut until = Vec::with_capacity(self.sizes.len());
        for (block, size) in self.trace.blocks.iter().zip(&self.sizes) {
            let (size, enters, leaves) = (size.0 as i64, block.enters as usize, block.leaves as usize);
            active[enters] += size;
            active[leaves] -= size;
            let end = allocated_until(block, &self.finals).clamp(block.enters, block.leaves);
            allocated[enters] += size;
            allocated[end as usize] -= size;
            until.push(end);
        }
        let (active, active_band) = sum(active);
        let (allocated, allocated_band) = sum(allocated);
        // Free memory was cut by blocks that a part of a trace does not have; it is said that sizes are estimates there.
        let is_whole = self.trace.device.excerpt.is_none();
        let replay = if is_whole { self.report.warnings() } else { &[] };
        let warnings = [segments.warnings.as_slice(), replay].concat();
        let exactness = if warnings.is_empty() && is_whole { self.trace.exactness } else { Exactness::Estimate };
        Carving {
            segments,
            sizes: self.sizes,
            active,
            allocated,
            active_band,
            allocated_band,
            allocated_until: until,
            exactness,
            warnings,
        }
    }
}

/// The slot from which a block no longer counts as allocated: its free is asked for. That was before the window for
/// those that were pending then.
fn allocated_until(block: &Block, finals: &Finals) -> u32 {
    if let Some(event) = block.free_requested() {
        return event.0 + 1;
    }
    let pending_at_end = || finals.get(&block.address.0).is_some_and(|f| f.1 == BlockState::PendingFree);
    match block.origin {
        Origin::PreexistingFreed => 0,
        Origin::PreexistingLive if pending_at_end() => 0,
        _ => block.leaves,
    }
}

/// The running sum of changes by slot, in the same memory; the last change is behind the window.
fn sum(mut changes: Vec<i64>) -> (Vec<u64>, Band) {
    changes.pop();
    let band = Band::of(changes[0], changes[1..].iter().copied());
    let mut total = 0;
    let series = changes.into_iter().map(|change| {
        total += change;
        total.max(0) as u64
    });
    (series.collect(), band)
}
