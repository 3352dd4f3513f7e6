//! Pinned host memory: the rows of `host_segments` and `host_traces` as a device of their own.
//!
//! PyTorch's allocator of pinned memory (`ATen/core/CachingHostAllocator.h`) never splits a
//! segment: each holds one block.

use crate::device_kind::DeviceKind;
use crate::ids::{PoolIndex, StreamId};
use crate::segments::{Block, BlockState, Segment, SegmentType};
use crate::snapshot::{Device, Excerpt, HOST};
use crate::tables::{Tables, ext};
use std::ops::Range;
use vramscope_pickle::{Heap, Value};
use vramscope_units::Bytes;

/// Appends the host's segments to `segments`. Returns the host as a device, if the file has data of
/// it.
pub(crate) fn device(
    heap: &mut Heap,
    tables: &mut Tables,
    [listed, trace]: [Option<Value>; 2],
    segments: &mut Vec<Segment>,
) -> Option<Device> {
    let (events, excerpt): (Range<u32>, Option<Excerpt>) = trace.map_or((0..0, None), |value| {
        (tables.rows(heap, value, ext::EVENT), tables.excerpt(heap.resolve(value)))
    });
    let start = segments.len();
    if let Some(value) = listed {
        let kind = tables.list_kind(heap, value);
        if kind != Some(ext::BLOCK) {
            for row in tables.rows(heap, value, ext::SEGMENT) {
                let segment = tables.segments[row as usize].clone();
                segments.push(with_block(segment, &mut tables.blocks));
            }
        }
        // A dict without a key of segments is read as a block.
        if kind.is_none_or(|kind| kind == ext::BLOCK) {
            let rows = tables.rows(heap, value, ext::BLOCK);
            segments.extend(rows.map(|row| around(&tables.blocks[row as usize], row)));
        }
    }
    segments[start..].iter_mut().for_each(|segment| segment.device = HOST);
    crate::segments::sort(&mut segments[start..]);
    let range = start as u32..segments.len() as u32;
    let is_empty = events.is_empty() && range.is_empty();
    (!is_empty).then_some(Device {
        device: HOST,
        kind: DeviceKind::Host,
        events,
        segments: range,
        excerpt,
    })
}

/// Adds the block of a segment that the file lists without blocks.
fn with_block(mut segment: Segment, blocks: &mut Vec<Block>) -> Segment {
    if segment.blocks.is_empty() && segment.total_size.0 > 0 {
        let state = match (segment.allocated_size.0, segment.active_size.0) {
            (0, 0) => BlockState::Inactive,
            (0, _) => BlockState::PendingFree,
            _ => BlockState::Allocated,
        };
        let requested = match segment.requested_size {
            Bytes(0) => segment.total_size,
            bytes => bytes,
        };
        blocks.push(Block {
            address: segment.address,
            size: segment.total_size,
            requested_size: requested,
            state,
            stack: segment.stack,
        });
        segment.blocks = blocks.len() as u32 - 1..blocks.len() as u32;
    }
    segment
}

/// The segment of a block that the file lists without one.
fn around(block: &Block, row: u32) -> Segment {
    let when = |counts: bool| if counts { block.size } else { Bytes(0) };
    Segment {
        device: HOST,
        address: block.address,
        total_size: block.size,
        allocated_size: when(block.state == BlockState::Allocated),
        active_size: when(block.state.is_active()),
        requested_size: block.requested_size,
        stream: StreamId(0),
        segment_type: SegmentType::Unknown,
        pool: PoolIndex::UNKNOWN,
        is_expandable: false,
        stack: block.stack,
        blocks: row..row + 1,
    }
}
