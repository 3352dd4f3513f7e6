//! Which blocks lie in which segment and when, and the tiles of the segments view.
//!
//! Segments that used one address range one after another share a row. Blocks do not move, so each
//! block is one rectangle in its row. Blocks lower than half a row of the cell are merged with
//! their neighbors in the same part of the segment. A segment that is reserved and released within
//! a column is shown in that column, unless the column shows another segment of the row.

mod draw;
mod merge;
mod rows;
mod shared;

pub use draw::SegmentDrawing;
pub use rows::SegmentRows;
pub use shared::{ROW_QUARTERS, RowOrder};

use std::ops::Range;
use vramscope_trace::slicing::{Budget, STRIDE, strides};
use vramscope_trace::{Carving, Span, Trace};

/// Blocks per entry of [`SegmentTiles::freed_by`].
const CHUNK_BLOCKS: usize = 64;

/// A device's blocks, grouped by the spans of its segments. A span is the life of one segment, from
/// its reservation to its release.
#[derive(Clone, Debug, Default)]
pub struct SegmentTiles {
    /// The blocks of span `s` are `blocks[starts[s]..starts[s + 1]]`, ordered by `enters`.
    starts: Vec<u32>,
    blocks: Vec<u32>,
    /// For each chunk of [`CHUNK_BLOCKS`] blocks, the first slot from which all of them are freed.
    /// From that slot on the chunk is skipped.
    freed_by: Vec<u32>,
}

impl SegmentTiles {
    /// Assigns blocks to spans in one pass over the window.
    pub async fn new(trace: &Trace, carving: &Carving, budget: &mut Budget) -> Self {
        let lists = SpanWalk::new(trace, carving).run(budget).await;
        let mut starts = vec![0];
        let mut blocks = Vec::with_capacity(lists.iter().map(Vec::len).sum());
        for list in lists {
            budget.charge(1 + list.len() as u64 / 8).await;
            blocks.extend(list);
            starts.push(blocks.len() as u32);
        }
        let mut freed_by = Vec::with_capacity(blocks.len().div_ceil(CHUNK_BLOCKS));
        let leaves = |chunk: &[u32]| {
            chunk.iter().map(|&b| trace.blocks[b as usize].leaves).max().unwrap_or(0)
        };
        for part in blocks.chunks(STRIDE) {
            budget.charge(part.len() as u64).await;
            freed_by.extend(part.chunks(CHUNK_BLOCKS).map(leaves));
        }
        Self { starts, blocks, freed_by }
    }

    /// Number of spans.
    pub fn spans(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// All blocks that are ever in a span, ordered by `enters`.
    pub fn blocks_in(&self, span: u32) -> &[u32] {
        &self.blocks[self.starts[span as usize] as usize..self.starts[span as usize + 1] as usize]
    }

    /// The blocks of a span that are live in any slot from `first` to `last`, starting at index
    /// `at` within the span. Each item is the index to resume at, the number of blocks read for
    /// this item, and the block.
    fn live_blocks<'a>(
        &'a self,
        trace: &'a Trace,
        span: u32,
        first: u32,
        last: u32,
        at: usize,
    ) -> impl Iterator<Item = (usize, u64, u32)> + 'a {
        let (from, end) =
            (self.starts[span as usize] as usize, self.starts[span as usize + 1] as usize);
        let to = from
            + self.blocks[from..end].partition_point(|&b| trace.blocks[b as usize].enters <= last);
        let mut at = from + at;
        std::iter::from_fn(move || {
            let mut looked = 0;
            while at < to {
                if self.freed_by[at / CHUNK_BLOCKS] <= first {
                    at = (at / CHUNK_BLOCKS + 1) * CHUNK_BLOCKS;
                    continue;
                }
                let block = self.blocks[at];
                at += 1;
                looked += 1;
                if trace.blocks[block as usize].leaves > first {
                    return Some((at - from, looked, block));
                }
            }
            None
        })
    }
}

/// A pass over the window that tracks the reserved spans and assigns blocks to them.
struct SpanWalk<'a> {
    trace: &'a Trace,
    carving: &'a Carving,
    spans: &'a [Span],
    /// Reserved spans by address. They do not overlap.
    open: Vec<u32>,
    /// Live blocks that reserved spans do not cover completely.
    uncovered: Vec<u32>,
    /// The blocks of each span.
    lists: Vec<Vec<u32>>,
}

impl<'a> SpanWalk<'a> {
    fn new(trace: &'a Trace, carving: &'a Carving) -> Self {
        let spans = &carving.segments.spans;
        Self {
            trace,
            carving,
            spans,
            open: Vec::new(),
            uncovered: Vec::new(),
            lists: vec![Vec::new(); spans.len()],
        }
    }

    async fn run(mut self, budget: &mut Budget) -> Vec<Vec<u32>> {
        if self.spans.is_empty() {
            return self.lists;
        }
        let mut leaving: Vec<u32> = (0..self.spans.len() as u32).collect();
        leaving.sort_by_key(|&s| self.spans[s as usize].leaves);
        let (mut entered, mut left) = (0, 0);
        for part in strides(self.trace.slots() as usize) {
            budget.charge(part.len() as u64 * 2).await;
            for slot in part.start as u32..part.end as u32 {
                let before = (entered, left);
                while let Some(&span) =
                    leaving.get(left).filter(|&&s| self.spans[s as usize].leaves <= slot)
                {
                    left += 1;
                    budget.charge(self.lists[span as usize].len() as u64).await;
                    self.close(span, slot);
                }
                let first = entered;
                while self.spans.get(entered).is_some_and(|s| s.enters <= slot) {
                    self.open(entered as u32);
                    entered += 1;
                }
                if before != (entered, left) {
                    budget.charge(self.uncovered.len() as u64 * 2).await;
                    self.assign_uncovered(&(first as u32..entered as u32), slot);
                }
                self.enter(slot);
            }
        }
        self.lists
    }

    fn enter(&mut self, slot: u32) {
        for change in self.trace.changes_at(slot).iter().filter(|c| c.enters()) {
            if !self.assign(change.block(), &(0..u32::MAX)) {
                self.uncovered.push(change.block());
            }
        }
    }

    fn open(&mut self, span: u32) {
        let (spans, span_data) = (self.spans, &self.spans[span as usize]);
        if span_data.enters < span_data.leaves {
            let place =
                self.open.partition_point(|&s| spans[s as usize].address < span_data.address);
            self.open.insert(place, span);
        }
    }

    /// Releases a span. Its live blocks may continue in the spans that a partial unmap leaves over,
    /// or in no span.
    fn close(&mut self, span: u32, slot: u32) {
        let (spans, address) = (self.spans, self.spans[span as usize].address);
        let place = self.open.partition_point(|&s| spans[s as usize].address < address);
        if self.open.get(place) == Some(&span) {
            self.open.remove(place);
        }
        let blocks = &self.trace.blocks;
        self.uncovered.extend(
            self.lists[span as usize].iter().filter(|&&b| blocks[b as usize].leaves > slot),
        );
    }

    /// Assigns uncovered live blocks to the spans in `fresh`, which have just been reserved.
    fn assign_uncovered(&mut self, fresh: &Range<u32>, slot: u32) {
        let mut uncovered = std::mem::take(&mut self.uncovered);
        uncovered.sort_unstable();
        uncovered.dedup();
        uncovered.retain(|&block| {
            self.trace.blocks[block as usize].leaves > slot && !self.assign(block, fresh)
        });
        self.uncovered = uncovered;
    }

    /// Adds a block to the reserved spans in `which` that it overlaps. Returns whether reserved
    /// spans cover it completely.
    fn assign(&mut self, block: u32, which: &Range<u32>) -> bool {
        let from = self.trace.blocks[block as usize].address.0;
        let to = from.saturating_add(self.carving.sizes[block as usize].0);
        let first = self.open.partition_point(|&s| self.spans[s as usize].end() <= from);
        let mut covered = 0;
        for &span in &self.open[first..] {
            let span_data = &self.spans[span as usize];
            let (low, high) = (span_data.address.0.max(from), span_data.end().min(to));
            if low >= high {
                break;
            }
            covered += high - low;
            if which.contains(&span) {
                self.lists[span as usize].push(block);
            }
        }
        covered >= to - from
    }
}
