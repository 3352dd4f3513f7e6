//! The allocator's state after any event: which blocks were live, and how segments were laid out.
//!
//! Every block says in which slots it is live, and every span in which it is there, so one look at
//! each of them tells what there is in a slot. That is a few nanoseconds a block, which no list of
//! earlier states would be worth.

use crate::carving::Carving;
use crate::segments::Span;
use crate::slicing::{Budget, run_to_completion, strides};
use crate::trace::Trace;
use vramscope_snapshot::{PoolIndex, SegmentType, StackId, StreamId};
use vramscope_units::{Addr, Bytes};

/// The blocks that are live in one slot.
#[derive(Clone, Debug)]
pub struct LiveSet<'a> {
    trace: &'a Trace,
    slot: u32,
    /// By address.
    blocks: Vec<u32>,
}

impl<'a> LiveSet<'a> {
    /// Those of a slot; a slot behind the last is the last.
    pub fn new(trace: &'a Trace, slot: u32) -> Self {
        run_to_completion(Self::sliced(trace, slot, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced(trace: &'a Trace, slot: u32, budget: &mut Budget) -> Self {
        let slot = slot.min(trace.slots() - 1);
        let mut blocks = Vec::new();
        for part in strides(trace.blocks.len()) {
            budget.charge(part.len() as u64).await;
            let of_part = (part.start as u32..).zip(&trace.blocks[part]);
            blocks.extend(
                of_part.filter(|(_, b)| b.enters <= slot && slot < b.leaves).map(|(i, _)| i),
            );
        }
        blocks.sort_unstable_by_key(|&i| (trace.blocks[i as usize].address, i));
        Self { trace, slot, blocks }
    }

    /// Indices into [`Trace::blocks`], by address.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// The segments in this slot, by address, with what lies in them.
    pub fn segments(&self, carving: &Carving) -> Vec<SegmentState> {
        let spans = carving.segments.at(self.slot);
        let known = |&block: &u32| {
            (self.trace.blocks[block as usize], carving.sizes[block as usize], block)
        };
        let mut live = self.blocks.iter().map(known).peekable();
        let mut out = Vec::new();
        for run in spans.chunk_by(|a, b| belong(a, b)) {
            let mut segment = SegmentState::of(run);
            let end = run[run.len() - 1].end();
            while live.next_if(|(known, ..)| known.address < segment.address).is_some() {}
            let mut at = segment.address.0;
            while let Some((known, size, block)) = live.next_if(|(known, ..)| known.address.0 < end)
            {
                let address = known.address.0;
                if at < address {
                    segment.push(Piece {
                        address: Addr(at),
                        size: Bytes(address - at),
                        content: Content::Free,
                    });
                }
                let pending = !carving.is_allocated(self.trace, block, self.slot);
                segment.requested.0 += known.bytes.0;
                segment.push(Piece {
                    address: known.address,
                    size,
                    content: Content::Block { block, pending },
                });
                at = address.saturating_add(size.0).max(at);
            }
            if at < end {
                segment.push(Piece {
                    address: Addr(at),
                    size: Bytes(end - at),
                    content: Content::Free,
                });
            }
            out.push(segment);
        }
        out
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
            pool: run
                .iter()
                .map(|s| s.pool)
                .find(|&p| p != PoolIndex::UNKNOWN)
                .unwrap_or(PoolIndex::UNKNOWN),
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
