//! The allocator's state after any event: the live blocks, and the layout of segments.
//!
//! Blocks and spans know the slots in which they are live, so one scan over them gives the state in
//! a slot. The scan takes a few nanoseconds per block. Storing intermediate states would not pay
//! off.
use crate::carving::Carving;
use crate::segments::Span;
use crate::slicing::Budget;
use crate::trace::Trace;
use vramscope_snapshot::{PoolIndex, SegmentType, StackId, StreamId};
use vramscope_units::{Addr, Bytes};

/// The blocks that are live in one slot.
#[derive(Clone, Debug)]
pub struct LiveSet<'a> {
    trace: &'a Trace,
    slot: u32,
    /// Indices into [`Trace::blocks`], by address.
    blocks: Vec<u32>,
}

impl<'a> LiveSet<'a> {
    /// The live blocks of a slot. A slot behind the last is clamped to the last.
    pub async fn new(trace: &'a Trace, slot: u32, budget: &mut Budget) -> Self {
        let slot = slot.min(trace.slots() - 1);
        let live = trace.live_at(slot, budget).await;
        let mut blocks: Vec<u32> = live.iter().map(|&(index, _)| index).collect();
        blocks.sort_by_key(|&i| (trace.blocks[i as usize].address, i));
        Self { trace, slot, blocks }
    }

    /// Indices into [`Trace::blocks`], by address.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// The segments in this slot, by address, with the blocks and free ranges in them.
    pub fn segments(&self, carving: &Carving) -> Vec<SegmentState> {
        let spans = carving.segments.at(self.slot);
        let sized = |&index: &u32| {
            (self.trace.blocks[index as usize], carving.sizes[index as usize], index)
        };
        let mut live = self.blocks.iter().map(sized).peekable();
        let mut out = Vec::new();
        for spans in spans.chunk_by(|a, b| is_one_segment(a, b)) {
            let mut segment = SegmentState::of(spans);
            let end = spans[spans.len() - 1].end();
            while live.next_if(|(block, ..)| block.address < segment.address).is_some() {}
            let mut at = segment.address.0;
            while let Some((block, size, index)) = live.next_if(|(block, ..)| block.address.0 < end)
            {
                let address = block.address.0;
                if at < address {
                    segment.push(Piece {
                        address: Addr(at),
                        size: Bytes(address - at),
                        content: Content::Free,
                    });
                }
                let pending = !carving.is_allocated(self.trace, index, self.slot);
                segment.requested.0 += block.bytes.0;
                segment.push(Piece {
                    address: block.address,
                    size,
                    content: Content::Block { block: index, pending },
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

/// Whether two spans belong to one segment. Touching mapped ranges do, as in PyTorch's report.
fn is_one_segment(a: &Span, b: &Span) -> bool {
    a.is_expandable && b.is_expandable && a.end() == b.address.0 && a.stream == b.stream
}

/// A segment in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentState {
    /// First address.
    pub address: Addr,
    /// Bytes reserved.
    pub size: Bytes,
    /// Whether the segment is a mapped range of an expandable segment.
    pub is_expandable: bool,
    /// The stream that allocates from the segment.
    pub stream: StreamId,
    /// Memory pool, if the file names it.
    pub pool: PoolIndex,
    /// Whether the segment serves small or large requests.
    pub segment_type: SegmentType,
    /// The stack of the allocation that reserved the segment, or its first mapped range.
    pub stack: StackId,
    /// The slot in which the segment, or its first mapped range, appears.
    pub enters: u32,
    /// Sizes of the allocated blocks.
    pub allocated: Bytes,
    /// Sizes of the allocated blocks and of the blocks with a pending free.
    pub active: Bytes,
    /// Requested bytes of the active blocks. `active - requested` is lost to rounding.
    pub requested: Bytes,
    /// Cached free bytes.
    pub free: Bytes,
    /// Size of the largest free piece.
    pub largest_free: Bytes,
    /// Blocks and free ranges, by address, without gaps.
    pub pieces: Vec<Piece>,
}

/// A block or a free range of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First address.
    pub address: Addr,
    /// Size in bytes.
    pub size: Bytes,
    /// Block or free.
    pub content: Content,
}

/// The content of a piece of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Cached free memory.
    Free,
    /// A block of [`Trace::blocks`].
    Block {
        /// Index of the block.
        block: u32,
        /// Whether the block waits for its free to complete.
        pending: bool,
    },
}

impl SegmentState {
    /// An empty segment that consists of `spans`.
    fn of(spans: &[&Span]) -> Self {
        let first = spans[0];
        Self {
            address: first.address,
            size: Bytes(spans.iter().map(|s| s.size.0).sum()),
            is_expandable: first.is_expandable,
            stream: first.stream,
            pool: spans
                .iter()
                .map(|s| s.pool)
                .find(|&p| p != PoolIndex::UNKNOWN)
                .unwrap_or(PoolIndex::UNKNOWN),
            segment_type: first.segment_type,
            stack: first.stack,
            enters: first.enters,
            allocated: Bytes(0),
            active: Bytes(0),
            requested: Bytes(0),
            free: Bytes(0),
            largest_free: Bytes(0),
            pieces: Vec::new(),
        }
    }

    /// Appends the next piece, and adds its size to the sums.
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
