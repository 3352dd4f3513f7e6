//! The allocator's state after any event: which blocks were live, and how segments were laid out.
//!
//! [`History`] keeps the live set at regular slots; a [`Cursor`] starts from the nearest of them and applies the changes
//! in between, forward or backward, so that going anywhere costs a search and a bounded replay.

use crate::carving::Carving;
use crate::pace::{Pace, at_once};
use crate::segments::{Segments, Span};
use crate::trace::Trace;
use memstrata_snapshot::{PoolIndex, SegmentType, StackId, StreamId};
use memstrata_units::{Addr, Bytes};
use std::collections::BTreeMap;

/// Checkpoints are at least this many slots apart, and never more numerous than keeps them smaller than the trace.
const SPACING: usize = 1024;

/// Where a device's blocks and spans are, at any slot.
pub struct History<'a> {
    trace: &'a Trace,
    segments: &'a Segments,
    spacing: u32,
    /// Live blocks and spans at slots 0, `spacing`, 2 `spacing`...
    checkpoints: Vec<(Vec<u32>, Vec<u32>)>,
    /// Spans by the slot in which they enter, and by that in which they leave.
    entering: Vec<(u32, u32)>,
    leaving: Vec<(u32, u32)>,
}

impl<'a> History<'a> {
    /// Walk the window once.
    pub fn new(trace: &'a Trace, segments: &'a Segments) -> Self {
        at_once(Self::paced(trace, segments, &mut Pace::endless()))
    }

    /// The same in slices.
    pub async fn paced(trace: &'a Trace, segments: &'a Segments, pace: &mut Pace) -> Self {
        let slots = trace.slots();
        let spans = || (0u32..).zip(&segments.spans);
        let mut entering: Vec<(u32, u32)> = spans().map(|(i, s)| (s.enters, i)).collect();
        let mut leaving: Vec<(u32, u32)> =
            spans().filter(|(_, s)| s.leaves < slots).map(|(i, s)| (s.leaves, i)).collect();
        entering.sort_unstable();
        leaving.sort_unstable();
        // A checkpoint costs what is live in it; with this spacing all together cost no more than the blocks do.
        let spacing = SPACING.max(most_live(trace, pace).await) as u32;
        let mut history = Self { trace, segments, spacing, checkpoints: Vec::new(), entering, leaving };
        let mut cursor = Cursor { history: &history, slot: 0, live: BTreeMap::new(), spans: BTreeMap::new() };
        cursor.enter(0);
        let mut checkpoints = Vec::with_capacity((slots / spacing) as usize + 1);
        for slot in 0..slots {
            if slot > 0 {
                cursor.forward();
            }
            pace.spend(16).await;
            if slot % spacing == 0 {
                checkpoints.push((cursor.live.values().copied().collect(), cursor.spans.values().copied().collect()));
            }
        }
        history.checkpoints = checkpoints;
        history
    }

    /// A cursor in a slot; a slot behind the last is the last.
    pub fn cursor(&self, slot: u32) -> Cursor<'_, 'a> {
        let slot = slot.min(self.trace.slots() - 1);
        // From whichever checkpoint is nearer.
        let index = ((slot + self.spacing / 2) / self.spacing).min(self.checkpoints.len() as u32 - 1);
        let (blocks, spans) = &self.checkpoints[index as usize];
        let live = blocks.iter().map(|&b| (self.trace.blocks[b as usize].address.0, b)).collect();
        let spans = spans.iter().map(|&s| (self.segments.spans[s as usize].address.0, s)).collect();
        let mut cursor = Cursor { history: self, slot: index * self.spacing, live, spans };
        cursor.walk(slot);
        cursor
    }
}

/// The largest number of blocks that are live at once.
async fn most_live(trace: &Trace, pace: &mut Pace) -> usize {
    let (mut live, mut most) = (0usize, 0);
    for slot in 0..trace.slots() {
        pace.spend(1).await;
        for change in trace.changes_at(slot) {
            live = if change.enters() { live + 1 } else { live - 1 };
        }
        most = most.max(live);
    }
    most
}

/// A place in a window: the live blocks and the spans there, by address.
#[derive(Clone)]
pub struct Cursor<'h, 'a> {
    history: &'h History<'a>,
    slot: u32,
    live: BTreeMap<u64, u32>,
    spans: BTreeMap<u64, u32>,
}

impl<'a> Cursor<'_, 'a> {
    /// The slot it is in.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Live blocks, by address.
    pub fn live(&self) -> impl ExactSizeIterator<Item = u32> {
        self.live.values().copied()
    }

    /// Go to a slot: step by step when it is near, from a checkpoint otherwise.
    pub fn seek(&mut self, slot: u32) {
        if slot.abs_diff(self.slot) <= self.history.spacing {
            self.walk(slot.min(self.history.trace.slots() - 1));
        } else {
            *self = self.history.cursor(slot);
        }
    }

    fn walk(&mut self, slot: u32) {
        while self.slot < slot {
            self.forward();
        }
        while self.slot > slot {
            self.backward();
        }
    }

    /// One slot on.
    fn forward(&mut self) {
        self.slot += 1;
        let (trace, segments) = (self.history.trace, self.history.segments);
        for change in trace.changes_at(self.slot).iter().filter(|c| !c.enters()) {
            remove(&mut self.live, trace.blocks[change.block() as usize].address.0, change.block());
        }
        for &(_, span) in at(&self.history.leaving, self.slot) {
            remove(&mut self.spans, segments.spans[span as usize].address.0, span);
        }
        self.enter(self.slot);
    }

    fn enter(&mut self, slot: u32) {
        let (trace, segments) = (self.history.trace, self.history.segments);
        for &(_, span) in at(&self.history.entering, slot) {
            self.spans.insert(segments.spans[span as usize].address.0, span);
        }
        for change in trace.changes_at(slot).iter().filter(|c| c.enters()) {
            self.live.insert(trace.blocks[change.block() as usize].address.0, change.block());
        }
    }

    /// One slot back: what entered is taken out, then what left is put back.
    fn backward(&mut self) {
        let (trace, segments) = (self.history.trace, self.history.segments);
        for change in trace.changes_at(self.slot).iter().filter(|c| c.enters()) {
            remove(&mut self.live, trace.blocks[change.block() as usize].address.0, change.block());
        }
        for &(_, span) in at(&self.history.entering, self.slot) {
            remove(&mut self.spans, segments.spans[span as usize].address.0, span);
        }
        for &(_, span) in at(&self.history.leaving, self.slot) {
            self.spans.insert(segments.spans[span as usize].address.0, span);
        }
        for change in trace.changes_at(self.slot).iter().filter(|c| !c.enters()) {
            self.live.insert(trace.blocks[change.block() as usize].address.0, change.block());
        }
        self.slot -= 1;
    }

    /// The segments here, by address, with what lies in them.
    pub fn segments(&self, carving: &Carving) -> Vec<SegmentState> {
        let spans: Vec<&'a Span> = self.spans.values().map(|&s| &self.history.segments.spans[s as usize]).collect();
        let mut live = self.live.range(..).peekable();
        let mut out = Vec::new();
        for run in spans.chunk_by(|a, b| belong(a, b)) {
            let mut segment = SegmentState::of(run);
            let end = run[run.len() - 1].end();
            while live.next_if(|&(&address, _)| address < segment.address.0).is_some() {}
            let mut at = segment.address.0;
            while let Some((&address, &block)) = live.next_if(|&(&address, _)| address < end) {
                if at < address {
                    segment.push(Piece { address: Addr(at), size: Bytes(address - at), content: Content::Free });
                }
                let (known, size) = (self.history.trace.blocks[block as usize], carving.sizes[block as usize]);
                let pending = !carving.is_allocated(self.history.trace, block, self.slot);
                segment.requested.0 += known.bytes.0;
                segment.push(Piece { address: Addr(address), size, content: Content::Block { block, pending } });
                at = address.saturating_add(size.0).max(at);
            }
            if at < end {
                segment.push(Piece { address: Addr(at), size: Bytes(end - at), content: Content::Free });
            }
            out.push(segment);
        }
        out
    }
}

fn at(list: &[(u32, u32)], slot: u32) -> &[(u32, u32)] {
    let from = list.partition_point(|&(s, _)| s < slot);
    let to = from + list[from..].partition_point(|&(s, _)| s == slot);
    &list[from..to]
}

/// In untidy traces two things can claim one address; the later stays.
fn remove(map: &mut BTreeMap<u64, u32>, address: u64, which: u32) {
    if map.get(&address) == Some(&which) {
        map.remove(&address);
    }
}

/// Mapped ranges that touch are one segment, as PyTorch reports them.
fn belong(a: &Span, b: &Span) -> bool {
    a.is_expandable && b.is_expandable && a.end() == b.address.0 && a.stream == b.stream
}

/// A segment at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentState {
    /// Where it lies.
    pub address: Addr,
    /// Bytes reserved.
    pub size: Bytes,
    /// Whether it is a mapped range of an expandable segment.
    pub is_expandable: bool,
    /// The stream that it serves.
    pub stream: StreamId,
    /// The memory pool, where the file tells.
    pub pool: PoolIndex,
    /// Which of the two pools by size it serves.
    pub segment_type: SegmentType,
    /// The stack of the allocation that made (the first range of) it.
    pub stack: StackId,
    /// Block sizes of what the program holds.
    pub allocated: Bytes,
    /// The same with what waits for its free to complete.
    pub active: Bytes,
    /// Requested bytes of the active blocks; `active - requested` is lost to rounding.
    pub requested: Bytes,
    /// Bytes that are free to use.
    pub free: Bytes,
    /// The largest free piece.
    pub largest_free: Bytes,
    /// Blocks and free pieces, by address, without gaps.
    pub pieces: Vec<Piece>,
}

/// A piece of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins.
    pub address: Addr,
    /// Bytes of it.
    pub size: Bytes,
    /// What is there.
    pub content: Content,
}

/// What a piece of a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing: it is cached, and free to use.
    Free,
    /// A block of [`Trace::blocks`].
    Block {
        /// Its index.
        block: u32,
        /// Whether it waits for its free to complete.
        pending: bool,
    },
}

impl SegmentState {
    fn of(run: &[&Span]) -> Self {
        let first = run[0];
        Self {
            address: first.address,
            size: Bytes(run.iter().map(|s| s.size.0).sum()),
            is_expandable: first.is_expandable,
            stream: first.stream,
            pool: run.iter().map(|s| s.pool).find(|&p| p != PoolIndex::UNKNOWN).unwrap_or(PoolIndex::UNKNOWN),
            segment_type: first.segment_type,
            stack: first.stack,
            allocated: Bytes(0),
            active: Bytes(0),
            requested: Bytes(0),
            free: Bytes(0),
            largest_free: Bytes(0),
            pieces: Vec::new(),
        }
    }

    fn push(&mut self, piece: Piece) {
        match piece.content {
            Content::Free => {
                self.free.0 += piece.size.0;
                self.largest_free = self.largest_free.max(piece.size);
            }
            Content::Block { pending, .. } => {
                self.active.0 += piece.size.0;
                self.allocated.0 += if pending { 0 } else { piece.size.0 };
            }
        }
        self.pieces.push(piece);
    }
}
