//! The allocator's state when the snapshot was taken: segments and their blocks.

use crate::ids::{PoolIndex, StackId, StreamId};
use std::ops::Range;
use vramscope_units::{Addr, Bytes};

/// One contiguous device allocation, or one contiguous mapped range of an expandable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Local device ordinal.
    pub device: u32,
    /// Base address.
    pub address: Addr,
    /// Bytes reserved by it.
    pub total_size: Bytes,
    /// Bytes of its allocated blocks, rounded.
    pub allocated_size: Bytes,
    /// The same, with blocks that wait for an event before they are free.
    pub active_size: Bytes,
    /// Requested bytes of its active blocks.
    pub requested_size: Bytes,
    /// The stream that it was made on.
    pub stream: StreamId,
    /// Which of the two pools by size it serves.
    pub segment_type: SegmentType,
    /// Its memory pool.
    pub pool: PoolIndex,
    /// Whether it belongs to an expandable segment.
    pub is_expandable: bool,
    /// The stack of the allocation that made it.
    pub stack: StackId,
    /// Its blocks: rows of [`Snapshot::blocks`](crate::Snapshot::blocks), in address order.
    pub blocks: Range<u32>,
}

/// The two pools by size of PyTorch's allocator: requests up to 1 MiB, and larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentType {
    /// `small`.
    Small,
    /// `large`.
    Large,
    /// The file does not say.
    Unknown,
}

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// `active_allocated`.
    Allocated,
    /// `active_pending_free`: freed by the program, still waiting for an event on another stream.
    PendingFree,
    /// `inactive`: cached, and free to use.
    Inactive,
}

impl BlockState {
    /// Whether its memory is in use.
    pub fn is_active(self) -> bool {
        self != Self::Inactive
    }
}

/// One block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Base address; where the file has none (before PyTorch 2.1) the running sum of sizes.
    pub address: Addr,
    /// Bytes carved out, rounded.
    pub size: Bytes,
    /// Bytes asked for. Only of use for active blocks: elsewhere it is left over from the last use.
    pub requested_size: Bytes,
    /// What it is doing.
    pub state: BlockState,
    /// The stack of the live allocation.
    pub stack: StackId,
}
