//! Which blocks lie in which segment, and when; and the tiles of the segments view.
//!
//! Segments that were at one place one after the other share a row. Blocks do not move, so in a row
//! each is one rectangle. What is lower than half a row of the cell is merged with its neighbors
//! in the same part of the segment. A segment that comes and goes within a column is shown in it,
//! unless the column shows another one of its row.

mod draw;
mod merge;
mod rows;
mod shared;

pub use draw::SegmentDrawing;
pub use rows::SegmentRows;
pub use shared::RowOrder;

use std::ops::Range;
use vramscope_analysis::slicing::{Budget, STRIDE, run_to_completion, strides};
use vramscope_analysis::{Carving, Span, Trace};

/// So many blocks share one entry of [`SegmentTiles::last`].
const CHUNK: usize = 64;

/// A device's blocks by the spans of its segments.
#[derive(Clone, Debug, Default)]
pub struct SegmentTiles {
    /// Blocks of span `s` are `blocks[starts[s]..starts[s + 1]]`, in the order in which they are
    /// there.
    starts: Vec<u32>,
    blocks: Vec<u32>,
    /// The latest slot in which any of [`CHUNK`] blocks leaves: what is over is passed in long
    /// strides.
    last: Vec<u32>,
}

impl SegmentTiles {
    /// Walk the window once.
    pub fn new(trace: &Trace, carving: &Carving) -> Self {
        run_to_completion(Self::sliced(trace, carving, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced(trace: &Trace, carving: &Carving, budget: &mut Budget) -> Self {
        let lists = Walk::new(trace, carving).run(budget).await;
        let mut starts = vec![0];
        let mut blocks = Vec::with_capacity(lists.iter().map(Vec::len).sum());
        for list in lists {
            budget.charge(1 + list.len() as u64 / 8).await;
            blocks.extend(list);
            starts.push(blocks.len() as u32);
        }
        let mut last = Vec::with_capacity(blocks.len().div_ceil(CHUNK));
        let leaves = |chunk: &[u32]| {
            chunk.iter().map(|&b| trace.blocks[b as usize].leaves).max().unwrap_or(0)
        };
        for part in blocks.chunks(STRIDE) {
            budget.charge(part.len() as u64).await;
            last.extend(part.chunks(CHUNK).map(leaves));
        }
        Self { starts, blocks, last }
    }

    /// How many spans there are.
    pub fn spans(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// The blocks that are ever in a span, in the order in which they are there.
    pub fn blocks_in(&self, span: u32) -> &[u32] {
        &self.blocks[self.starts[span as usize] as usize..self.starts[span as usize + 1] as usize]
    }

    /// Those of a span that are live in any slot from `first` to `last`, beginning with the block
    /// `at` of it; each with where to go on behind it, and after how many that were looked at.
    fn live<'a>(
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
                if self.last[at / CHUNK] <= first {
                    at = (at / CHUNK + 1) * CHUNK;
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

/// Goes along the window with the spans that are there.
struct Walk<'a> {
    trace: &'a Trace,
    carving: &'a Carving,
    spans: &'a [Span],
    /// Spans that are there, by address; they do not overlap.
    open: Vec<u32>,
    /// Live blocks that are not wholly in spans that are there.
    homeless: Vec<u32>,
    lists: Vec<Vec<u32>>,
}

impl<'a> Walk<'a> {
    fn new(trace: &'a Trace, carving: &'a Carving) -> Self {
        let spans = &carving.segments.spans;
        Self {
            trace,
            carving,
            spans,
            open: Vec::new(),
            homeless: Vec::new(),
            lists: vec![Vec::new(); spans.len()],
        }
    }

    async fn run(mut self, budget: &mut Budget) -> Vec<Vec<u32>> {
        if self.spans.is_empty() {
            return self.lists;
        }
        let mut leaving: Vec<u32> = (0..self.spans.len() as u32).collect();
        leaving.sort_unstable_by_key(|&s| self.spans[s as usize].leaves);
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
                    budget.charge(self.homeless.len() as u64 * 2).await;
                    self.settle(&(first as u32..entered as u32), slot);
                }
                self.enter(slot);
            }
        }
        self.lists
    }

    fn enter(&mut self, slot: u32) {
        for change in self.trace.changes_at(slot).iter().filter(|c| c.enters()) {
            if !self.house(change.block(), &(0..u32::MAX)) {
                self.homeless.push(change.block());
            }
        }
    }

    fn open(&mut self, span: u32) {
        let (spans, known) = (self.spans, &self.spans[span as usize]);
        if known.enters < known.leaves {
            let place = self.open.partition_point(|&s| spans[s as usize].address < known.address);
            self.open.insert(place, span);
        }
    }

    /// What is live in it goes on, in what an unmap leaves over, or in nothing.
    fn close(&mut self, span: u32, slot: u32) {
        let (spans, address) = (self.spans, self.spans[span as usize].address);
        let place = self.open.partition_point(|&s| spans[s as usize].address < address);
        if self.open.get(place) == Some(&span) {
            self.open.remove(place);
        }
        let blocks = &self.trace.blocks;
        self.homeless.extend(
            self.lists[span as usize].iter().filter(|&&b| blocks[b as usize].leaves > slot),
        );
    }

    /// Gives the homeless to the spans that have just come.
    fn settle(&mut self, fresh: &Range<u32>, slot: u32) {
        let mut homeless = std::mem::take(&mut self.homeless);
        homeless.sort_unstable();
        homeless.dedup();
        homeless.retain(|&block| {
            self.trace.blocks[block as usize].leaves > slot && !self.house(block, fresh)
        });
        self.homeless = homeless;
    }

    /// Notes a block in those of `which` that are there and that it reaches into; whether it lies
    /// wholly in spans.
    fn house(&mut self, block: u32, which: &Range<u32>) -> bool {
        let from = self.trace.blocks[block as usize].address.0;
        let to = from.saturating_add(self.carving.sizes[block as usize].0);
        let first = self.open.partition_point(|&s| self.spans[s as usize].end() <= from);
        let mut covered = 0;
        for &span in &self.open[first..] {
            let known = &self.spans[span as usize];
            let (low, high) = (known.address.0.max(from), known.end().min(to));
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
