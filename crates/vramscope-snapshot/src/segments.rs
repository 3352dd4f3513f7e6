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
    /// Reserved bytes.
    pub total_size: Bytes,
    /// Bytes of its allocated blocks, rounded up by the allocator.
    pub allocated_size: Bytes,
    /// `allocated_size` plus the blocks that wait for an event before they are free.
    pub active_size: Bytes,
    /// Requested bytes of its active blocks.
    pub requested_size: Bytes,
    /// The stream that the segment was allocated on.
    pub stream: StreamId,
    /// Which size class of requests it serves.
    pub segment_type: SegmentType,
    /// Its memory pool.
    pub pool: PoolIndex,
    /// Whether it is part of an expandable segment.
    pub is_expandable: bool,
    /// The call stack of the allocation that reserved it.
    pub stack: StackId,
    /// Its blocks: rows of [`Snapshot::blocks`](crate::Snapshot::blocks), in address order.
    pub blocks: Range<u32>,
}

/// The size classes of PyTorch's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentType {
    /// `small`: requests up to 1 MiB.
    Small,
    /// `large`: requests above 1 MiB.
    Large,
    /// The file does not name the class.
    Unknown,
}

/// The state of a block.
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
    /// Whether the block's memory is in use.
    pub fn is_active(self) -> bool {
        self != Self::Inactive
    }
}

/// A block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Base address. Before PyTorch 2.1 files have none: then it is the sum of the
    /// segment's address and the sizes of the blocks before it.
    pub address: Addr,
    /// Bytes, rounded up by the allocator.
    pub size: Bytes,
    /// Requested bytes. Valid only for active blocks: inactive blocks have the value of their last
    /// use.
    pub requested_size: Bytes,
    /// The block's state.
    pub state: BlockState,
    /// The call stack of the live allocation.
    pub stack: StackId,
}

/// Sorts segments by device, then address.
pub(crate) fn sort(segments: &mut [Segment]) {
    segments.sort_by_key(|segment| (segment.device, segment.address));
}
