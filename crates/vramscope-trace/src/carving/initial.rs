//! The state before the window: fills the first spans with blocks and free extents.

use super::{Replay, Stage, group};
use crate::segments::{SMALL_SIZE, Segments};
use crate::slicing::STRIDE;
use vramscope_units::Bytes;

/// Cost of placing a block from before the window, in units of a [budget](crate::slicing::Budget).
/// Hash tables grow for it.
const COST_PER_INITIAL_BLOCK: u64 = 24;

/// Touching spans from before the window, being filled with blocks and free extents in address
/// order.
pub(super) struct InitialRange {
    end: u64,
    group: Option<u32>,
    /// The address up to which the range is filled.
    filled_to: u64,
    /// Start of the last extent.
    last_extent: Option<u64>,
}

impl Replay<'_> {
    /// Collects the blocks and spans from before the window, in descending address order.
    pub(super) fn sort_initial_state(&mut self) {
        let (blocks, spans) = (&self.trace.blocks, &self.segments.spans);
        self.next_span = spans.partition_point(|s| s.enters == 0);
        self.initial_blocks =
            (0..).zip(blocks).take_while(|(_, b)| b.is_preexisting()).map(|(i, _)| i).collect();
        self.initial_blocks.sort_by_key(|&i| blocks[i as usize].address);
        self.initial_blocks.reverse();
        self.initial_spans =
            (0..).zip(spans).filter(|(_, s)| s.enters == 0).map(|(i, _)| i).collect();
        self.initial_spans.sort_by_key(|&i| spans[i as usize].address);
        self.initial_spans.reverse();
    }

    /// Places one stride of blocks from before the window, with free extents between them. Returns
    /// the cost in units of a [budget](crate::slicing::Budget).
    pub(super) fn place_initial_blocks(&mut self) -> u64 {
        let Stage::InitialState(range) = &mut self.stage else { return 0 };
        let Some(InitialRange { end, group, mut filled_to, mut last_extent }) =
            range.take().or_else(|| next_range(&self.segments, &mut self.initial_spans))
        else {
            for i in std::mem::take(&mut self.initial_blocks).into_iter().rev() {
                self.place_outside(i);
            }
            self.stage = Stage::Events;
            return 1;
        };
        let blocks = &self.trace.blocks;
        for placed in 0..STRIDE as u64 / COST_PER_INITIAL_BLOCK {
            let Some(i) = self.initial_blocks.pop_if(|i| blocks[*i as usize].address.0 < end)
            else {
                if filled_to < end {
                    self.arena.push(filled_to, end - filled_to, None, group, last_extent);
                }
                return (1 + placed) * COST_PER_INITIAL_BLOCK;
            };
            let address = blocks[i as usize].address.0;
            if address < filled_to {
                self.place_outside(i);
                continue;
            }
            if filled_to < address {
                self.arena.push(filled_to, address - filled_to, None, group, last_extent);
                last_extent = Some(filled_to);
            }
            let next = self.initial_blocks.last();
            let limit = next.map_or(end, |&next| blocks[next as usize].address.0.min(end));
            let size = self.initial_size(i, limit, group.is_some() || self.npu.splits_all());
            self.set_size(i, size);
            self.arena.push(address, size, Some(i), group, last_extent);
            last_extent = Some(address);
            filled_to = address.saturating_add(size);
        }
        let range = InitialRange { end, group, filled_to, last_extent };
        self.stage = Stage::InitialState(Some(range));
        STRIDE as u64
    }

    /// The size of a block from before the window that must not reach beyond `limit`.
    /// `to_the_last`: all rests of 512 bytes are split off.
    fn initial_size(&mut self, i: u32, limit: u64, to_the_last: bool) -> u64 {
        let block = self.trace.blocks[i as usize];
        let available = limit - block.address.0;
        if let Some(size) = self.final_size(&block) {
            return size.min(available);
        }
        if self.rounding.takes_whole_segments {
            return available;
        }
        let size = self.rounding.round(block.bytes.0).min(available);
        let gap = available - size;
        // The allocator never splits off such a small rest. The gap belongs to the block.
        let is_large = size > SMALL_SIZE && !to_the_last;
        if is_large && (gap <= SMALL_SIZE || size >= self.rounding.max_split_size()) {
            return available;
        }
        if is_large {
            self.uncertain_ends.insert(block.address.0 + size, i);
        }
        size
    }

    /// Sets the size of a block that lies in no segment, or overlaps another block.
    fn place_outside(&mut self, i: u32) {
        let block = self.trace.blocks[i as usize];
        let size = self.final_size(&block).unwrap_or_else(|| self.rounding.round(block.bytes.0));
        self.sizes[i as usize] = Bytes(size);
        self.warn(|| {
            format!(
                "the block at {} from before the window lies in no segment of its own",
                block.address
            )
        });
    }
}

/// Takes the next span from `initial_spans`, together with the mapped ranges that continue it.
fn next_range(segments: &Segments, initial_spans: &mut Vec<u32>) -> Option<InitialRange> {
    let spans = &segments.spans;
    let mut last = &spans[initial_spans.pop()? as usize];
    let start = last.address.0;
    while let Some(i) = initial_spans.pop_if(|i| {
        let next = &spans[*i as usize];
        group(last).is_some() && group(last) == group(next) && last.end() == next.address.0
    }) {
        last = &spans[i as usize];
    }
    let (end, group) = (last.end(), group(last));
    Some(InitialRange { end, group, filled_to: start, last_extent: None })
}
