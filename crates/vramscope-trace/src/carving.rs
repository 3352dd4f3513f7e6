//! Block sizes. A trace records requested sizes only, so a replay of the allocator recovers them.
//!
//! A block starts at its event's address, which identifies the free extent that it was carved from.
//! The allocator's rules (`should_split`, `alloc_found_block` and `free_block` in
//! `c10/cuda/CUDACachingAllocator.cpp`) determine how much of the extent the block took. The final
//! segments list the sizes of blocks that are live at the end. Where they disagree with the replay,
//! the final segments win.
//!
//! This is not the model of `vramscope-allocator`. A trace says where each block lies, and the
//! replay follows it. The model decides where a block lies, which answers what another setting or
//! another device would have done. The two share the rules of rounding and splitting.

mod initial;
mod npu;

use crate::arena::Arena;
use crate::band::Band;
use crate::blocks::{Block, Origin};
use crate::rounding::Rounding;
use crate::segments::{SMALL_SIZE, Segments, SegmentsBuilder, Span, segment_event};
use crate::series::Series;
use crate::slicing::{Boxed, Budget, STRIDE, filled};
use crate::trace::{Exactness, Trace};
use initial::InitialRange;
use npu::Npu;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vramscope_snapshot::{BlockState, DeviceKind, Report, Snapshot, Warning, WarningKind};
use vramscope_units::{Addr, Bytes, EventIndex};

/// Block sizes of one device's window, and the bands that follow from them.
#[derive(Clone, Debug)]
pub struct Carving {
    /// The segments that blocks are carved from.
    pub segments: Segments,
    /// Size of each block of [`Trace::blocks`], including rounding and unsplit rest.
    pub sizes: Vec<Bytes>,
    /// `active_bytes` in every slot.
    pub active: Series,
    /// `allocated_bytes` in every slot.
    pub allocated: Series,
    /// `active_bytes` over the window.
    pub active_band: Band,
    /// `allocated_bytes` over the window.
    pub allocated_band: Band,
    /// For each block, the first slot in which it no longer counts as allocated. The slot in which
    /// it enters if it never counts.
    allocated_until: Vec<u32>,
    /// Exact when the replay ends with exactly the blocks of the final segments.
    pub exactness: Exactness,
    /// Differences between the replay and the file.
    pub warnings: Vec<Warning>,
}

impl Carving {
    /// Replays a device's window.
    #[inline(never)]
    pub fn new<'a>(
        snapshot: &'a Snapshot,
        trace: &'a Trace,
        budget: &'a mut Budget,
    ) -> Boxed<'a, Self> {
        Box::pin(async move {
            let sizes = filled(Bytes(0), trace.blocks.len(), budget).await;
            let mut replay = Replay::new(snapshot, trace, sizes);
            while let Some(cost) = replay.step() {
                budget.charge(cost).await;
            }
            replay.finish()
        })
    }

    /// Whether a block counts toward `allocated_bytes` in a slot.
    pub fn is_allocated(&self, trace: &Trace, block: u32, slot: u32) -> bool {
        trace.blocks[block as usize].enters <= slot && slot < self.allocated_until[block as usize]
    }
}

/// Cost of replaying an event or looking up an address, in units of [`Budget`].
const COST_PER_ITEM: u64 = 4;

/// Size and state of the active blocks of the final segments, by address.
type FinalBlocks = FxHashMap<u64, (u64, BlockState)>;

/// The group of a span in the [`Arena`]. Touching mapped ranges of one stream belong to one
/// expandable segment, because every expandable segment has its own address space, larger than any
/// mapped range.
fn group(span: &Span) -> Option<u32> {
    span.is_expandable.then_some(u32::from(span.stream.0))
}

/// A replay of the allocator over one window.
struct Replay<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    stage: Stage<'a>,
    /// Number of items processed in the current stage: segments, events, blocks or slots.
    at: usize,
    segments: Segments,
    /// Index of the next span to reserve.
    next_span: usize,
    /// Blocks from before the window, highest address first. Placed from the end.
    initial_blocks: Vec<u32>,
    /// Spans from before the window, highest address first. Filled from the end.
    initial_spans: Vec<u32>,
    rounding: Rounding,
    npu: Npu,
    final_blocks: FinalBlocks,
    arena: Arena,
    sizes: Vec<Bytes>,
    /// Blocks that are larger than their rounded request, by the address where that request ends.
    oversized: FxHashMap<u64, u32>,
    /// Large blocks from before the window, by their assumed end. They may really be up to 1 MiB
    /// larger.
    uncertain_ends: BTreeMap<u64, u32>,
    end_check: EndCheck,
    /// Change of `allocated_bytes` in every slot. Negative changes wrap.
    allocated_changes: Vec<u64>,
    active: Series,
    allocated: Series,
    allocated_until: Vec<u32>,
    /// Bands of `active_bytes` and `allocated_bytes`.
    bands: [Band; 2],
    report: Report,
}

/// The comparison of the replay's last state with the final segments.
#[derive(Default)]
struct EndCheck {
    /// Blocks compared.
    compared: usize,
    /// Blocks that differ.
    different: u32,
    /// Address of the first block that differs.
    first: Option<Addr>,
}

/// The stages of a replay, in order. Each runs in strides.
enum Stage<'a> {
    /// Builds the spans.
    Segments(Box<SegmentsBuilder<'a>>),
    /// Collects the active blocks of the final segments.
    FinalBlocks,
    /// Fills the spans from before the window.
    InitialState(Option<InitialRange>),
    /// Replays the events.
    Events,
    /// Compares the last state with the final segments.
    EndCheck,
    /// Fills `allocated_changes` with zeros.
    ZeroChanges,
    /// Adds each block to `allocated_changes`.
    Blocks,
    /// Sums up both bands.
    Sums,
}

impl<'a> Replay<'a> {
    fn new(snapshot: &'a Snapshot, trace: &'a Trace, sizes: Vec<Bytes>) -> Self {
        Self {
            snapshot,
            trace,
            stage: Stage::Segments(Box::new(SegmentsBuilder::new(snapshot, &trace.device))),
            at: 0,
            segments: Segments::default(),
            next_span: 0,
            initial_blocks: Vec::new(),
            initial_spans: Vec::new(),
            rounding: Rounding::of(snapshot, &trace.device),
            npu: Npu::of(&trace.device),
            final_blocks: FinalBlocks::default(),
            arena: if trace.device.excerpt.is_some() || trace.device.kind == DeviceKind::Npu {
                Arena::with_gaps()
            } else {
                Arena::default()
            },
            sizes,
            oversized: FxHashMap::default(),
            uncertain_ends: BTreeMap::new(),
            end_check: EndCheck::default(),
            allocated_changes: Vec::new(),
            active: Series::default(),
            allocated: Series::default(),
            allocated_until: Vec::with_capacity(trace.blocks.len()),
            bands: [Band::default(); 2],
            report: Report::default(),
        }
    }

    /// Runs one stride. Returns its cost in units of [`Budget`], or `None` when all stages are
    /// done.
    fn step(&mut self) -> Option<u64> {
        let final_segments = self.snapshot.segments_of(&self.trace.device);
        let slots = self.trace.slots() as usize;
        // Blocks that are live at the end leave in the slot behind the window.
        let change_slots = slots + 1;
        let count = match &mut self.stage {
            Stage::Segments(builder) => match builder.step() {
                Some(cost) => return Some(cost),
                None => 0,
            },
            Stage::InitialState(_) => return Some(self.place_initial_blocks()),
            Stage::FinalBlocks | Stage::EndCheck => final_segments.len(),
            Stage::Events => self.trace.device.events.len(),
            Stage::Blocks => self.sizes.len(),
            Stage::ZeroChanges => change_slots,
            Stage::Sums => slots,
        };
        if self.at >= count {
            if let Stage::Sums = self.stage {
                return None;
            }
            self.at = 0;
            self.stage = match std::mem::replace(&mut self.stage, Stage::FinalBlocks) {
                Stage::Segments(builder) => {
                    self.segments = builder.finish();
                    self.npu.start(&self.segments);
                    Stage::FinalBlocks
                }
                Stage::FinalBlocks => {
                    self.sort_initial_state();
                    Stage::InitialState(None)
                }
                Stage::InitialState(_) => Stage::Events,
                Stage::Events => Stage::EndCheck,
                Stage::EndCheck => {
                    self.finish_end_check();
                    self.allocated_changes.reserve_exact(change_slots);
                    Stage::ZeroChanges
                }
                Stage::ZeroChanges => Stage::Blocks,
                Stage::Blocks | Stage::Sums => {
                    (self.active, self.allocated) =
                        (Series::with_capacity(slots), Series::with_capacity(slots));
                    Stage::Sums
                }
            };
            return Some(1);
        }
        let from = self.at;
        if let Stage::FinalBlocks | Stage::EndCheck = self.stage {
            self.at += 1;
            let blocks = self.snapshot.blocks_of(&final_segments[from]);
            if let Stage::FinalBlocks = self.stage {
                let active = blocks.iter().filter(|b| b.state.is_active());
                self.final_blocks.extend(active.map(|b| (b.address.0, (b.size.0, b.state))));
            } else {
                self.check_end(blocks);
            }
            return Some(blocks.len() as u64 * COST_PER_ITEM);
        }
        let to = count.min(from + STRIDE);
        self.at = to;
        match self.stage {
            Stage::Events => (from..to).for_each(|event| self.event(EventIndex(event as u32))),
            // The first access to fresh memory is slow at random addresses. Zeroing it in order
            // first is faster.
            Stage::ZeroChanges => self.allocated_changes.resize(to, 0),
            Stage::Blocks => (from..to).for_each(|block| self.add_allocated(block)),
            _ => (from..to).for_each(|slot| self.sum(slot)),
        }
        Some((to - from) as u64 * COST_PER_ITEM)
    }

    fn warn(&mut self, message: impl FnOnce() -> String) {
        self.report.warn(WarningKind::Carving, None, message);
    }

    /// The size of a block in the final segments. `None` if the block is not live at the end.
    fn final_size(&self, block: &Block) -> Option<u64> {
        let is_live = block.leaves == self.trace.slots();
        is_live.then(|| self.final_blocks.get(&block.address.0)).flatten().map(|&(size, _)| size)
    }

    /// Sets the size of a block. Remembers a block that is larger than its rounded request.
    fn set_size(&mut self, i: u32, size: u64) {
        self.sizes[i as usize] = Bytes(size);
        let block = &self.trace.blocks[i as usize];
        let rounded = self.rounding.round(block.bytes.0);
        if rounded < size {
            self.oversized.insert(block.address.0 + rounded, i);
        }
    }

    /// Replays an event: first its segment, then its blocks.
    fn event(&mut self, event: EventIndex) {
        let (row, slot, snapshot) =
            (self.trace.device.events.start + event.0, event.0 + 1, self.snapshot);
        self.npu.observe(snapshot.events.action(row));
        if let Some((false, is_expandable)) = segment_event(snapshot.events.action(row)) {
            let (address, size) = (snapshot.events.addr(row), snapshot.events.size(row));
            if !self.arena.release(address.0, size.0, is_expandable) {
                self.warn(|| {
                    format!("{event} gives back memory that is in use or was never reserved")
                });
            }
        }
        while let Some(span) = self.segments.spans.get(self.next_span).filter(|s| s.enters == slot)
        {
            self.next_span += 1;
            // The rest of an unmapped span is already in the arena.
            if span.event == Some(event) {
                self.arena.reserve(span.address.0, span.size.0, group(span));
            }
        }
        for change in self.trace.changes_at(slot) {
            if change.enters() { self.enter(change.block()) } else { self.leave(change.block()) }
        }
    }

    /// Carves an entering block.
    fn enter(&mut self, i: u32) {
        let block = self.trace.blocks[i as usize];
        let rounded = self.rounding.round(block.bytes.0);
        let final_size = self.final_size(&block);
        self.split_oversized(block.address.0);
        self.stretch_uncertain(block.address.0);
        self.cut_in_excerpt(block.address.0);
        self.cut_aligned(block.address.0, rounded);
        let Some(extent) =
            self.arena.get(block.address.0).filter(|e| e.block.is_none() && e.size >= rounded)
        else {
            self.sizes[i as usize] = Bytes(final_size.unwrap_or(rounded));
            let (address, bytes) = (block.address, block.bytes);
            self.warn(|| {
                format!("{} at {address} does not fit the free memory there", bytes.exact())
            });
            return;
        };
        let rest = extent.size - rounded;
        let to_the_last = extent.group.is_some() || self.npu.splits_all();
        let splits = self.rounding.splits(rounded, rest, to_the_last);
        let replayed = if splits { rounded } else { extent.size };
        let size = final_size.filter(|&size| size <= extent.size).unwrap_or(replayed);
        if size != replayed {
            let address = block.address;
            self.warn(|| {
                format!(
                    "the block at {address} has {size} bytes in the final segments, \
                and {replayed} by the allocator's rules"
                )
            });
        }
        self.set_size(i, size);
        self.arena.carve(block.address.0, size, i);
    }

    /// Splits an oversized block when another block starts where its request ends: the allocator
    /// did split it.
    ///
    /// CUDA graph trees restore their pools block by block, so the split has no event. For blocks
    /// from before the window only the request is known.
    fn split_oversized(&mut self, address: u64) {
        let Some(owner) = self.oversized.remove(&address) else { return };
        let start = self.trace.blocks[owner as usize].address.0;
        if self.arena.get(start).is_some_and(|e| e.block == Some(owner) && address < e.end()) {
            let size = address - start;
            self.sizes[owner as usize] = Bytes(size);
            self.arena.carve(start, size, owner);
        }
    }

    /// Extends a block with an uncertain end up to `address`, where another block enters. A block
    /// that starts inside free memory shows that the block in front of it is larger than assumed.
    fn stretch_uncertain(&mut self, address: u64) {
        // A block that starts at the assumed end confirms it.
        self.uncertain_ends.remove(&address);
        let Some((&end, &owner)) = self.uncertain_ends.range(..address).next_back() else {
            return;
        };
        if address - end > SMALL_SIZE || self.arena.get(address).is_some() {
            return;
        }
        let start = self.trace.blocks[owner as usize].address.0;
        if self.arena.stretch(start, owner, address) {
            self.uncertain_ends.remove(&end);
            self.set_size(owner, address - start);
        }
    }

    /// Makes a free extent start at `address`. In an excerpt blocks can enter anywhere in free
    /// memory, because the trace lacks the blocks that were carved before them.
    fn cut_in_excerpt(&mut self, address: u64) {
        if self.trace.device.excerpt.is_none() || self.arena.get(address).is_some() {
            return;
        }
        let (blocks, rounding) = (&self.trace.blocks, &self.rounding);
        let min_end = |i: u32| {
            let block = &blocks[i as usize];
            block.address.0.saturating_add(rounding.round(block.bytes.0))
        };
        if let Some(owner) = self.arena.cut(address, min_end) {
            self.set_size(owner, address - self.trace.blocks[owner as usize].address.0);
        }
    }

    /// Frees a leaving block.
    fn leave(&mut self, i: u32) {
        let address = self.trace.blocks[i as usize].address;
        if !self.arena.free(address.0, i) {
            self.warn(|| {
                format!("the block at {address} is freed, and was not where it should have been")
            });
        }
    }

    /// Compares the last state with the blocks of one final segment.
    fn check_end(&mut self, blocks: &[vramscope_snapshot::Block]) {
        let check = &mut self.end_check;
        check.compared += blocks.len();
        for block in blocks {
            let extent = self.arena.get(block.address.0);
            let is_active = block.state.is_active();
            let is_equal =
                extent.is_some_and(|e| e.size == block.size.0 && e.block.is_some() == is_active);
            if !is_equal {
                check.different += 1;
                check.first.get_or_insert(block.address);
            }
        }
    }

    /// Reports the result of the comparison.
    fn finish_end_check(&mut self) {
        let EndCheck { compared: count, different, first } = self.end_check;
        if let Some(first) = first {
            self.report.warn_many(WarningKind::CarvingEnd, None, different, || {
                format!(
                    "{different} of {count} blocks of the final segments are not as the \
                    replay leaves them, first that at {first}: active_bytes and allocated_bytes \
                    are estimates"
                )
            });
        } else if count != self.arena.len() {
            let pieces = self.arena.len();
            self.report.warn(WarningKind::CarvingEnd, None, || {
                format!(
                    "the replay ends with {pieces} blocks, the final segments with {count}: \
                    active_bytes and allocated_bytes are estimates"
                )
            });
        }
    }

    /// Adds a block to `allocated_changes`.
    fn add_allocated(&mut self, i: usize) {
        let (block, size) = (&self.trace.blocks[i], self.sizes[i].0);
        let end = allocated_until(block, &self.final_blocks).clamp(block.enters, block.leaves);
        let [enters, leaves] = [block.enters, end].map(|slot| slot as usize);
        let changes = &mut self.allocated_changes;
        changes[enters] = changes[enters].wrapping_add(size);
        changes[leaves] = changes[leaves].wrapping_sub(size);
        self.allocated_until.push(end);
    }

    /// Appends a slot to both series and bands.
    fn sum(&mut self, slot: usize) {
        let mut active = 0u64;
        for change in self.trace.changes_at(slot as u32) {
            let size = self.sizes[change.block() as usize].0;
            active =
                if change.enters() { active.wrapping_add(size) } else { active.wrapping_sub(size) };
        }
        let changes = [active, self.allocated_changes[slot]];
        for ((series, band), change) in
            [&mut self.active, &mut self.allocated].into_iter().zip(&mut self.bands).zip(changes)
        {
            band.add_slot(slot, change as i64);
            series.push(band.end.max(0) as u64);
        }
    }

    fn finish(self) -> Carving {
        // In an excerpt the replay cannot be exact: blocks that the excerpt lacks were carved too.
        // The excerpt's own warning already calls its sizes estimates.
        let is_whole = self.trace.device.excerpt.is_none();
        let replay = if is_whole { self.report.warnings() } else { &[] };
        let warnings = [self.segments.warnings.as_slice(), replay].concat();
        let exactness = if warnings.is_empty() && is_whole {
            self.trace.lives_exactness()
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
            allocated_until: self.allocated_until,
            exactness,
            warnings,
        }
    }
}

/// The first slot in which a block no longer counts as allocated, because its free was requested.
/// The request of a block that was already pending came before the window.
fn allocated_until(block: &Block, final_blocks: &FinalBlocks) -> u32 {
    if let Some(event) = block.free_requested() {
        return event.0 + 1;
    }
    let pending_at_end =
        || final_blocks.get(&block.address.0).is_some_and(|f| f.1 == BlockState::PendingFree);
    match block.origin() {
        Origin::PreexistingFreed => 0,
        Origin::PreexistingLive if pending_at_end() => 0,
        _ => block.leaves,
    }
}
