//! A model of PyTorch's caching allocator for CUDA devices that reserves the same bytes.

mod allocator;
mod blocks;
mod driver;
mod expandable;
mod observer;
mod release;
mod settings;
mod state;

pub use allocator::{Allocator, OutOfMemory, Request, Stats};
pub use blocks::{BlockId, BlockState};
pub use driver::{AddressOrder, Device};
pub use observer::{Observer, SegmentAction, SegmentEvent};
pub use settings::{
    DIVISION_INTERVALS, LARGE_SEGMENT, MIN_BLOCK_SIZE, SMALL_SEGMENT, SMALL_SIZE, Settings,
    segment_size,
};
pub use state::{BlockInfo, ReservedParts, StartBlock, StartSegment};
