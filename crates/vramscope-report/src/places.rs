//! Which pool each block came from, and which kind of segment.

use crate::Target;
use crate::text::{pool, segment_type, size_class};
use std::collections::BTreeMap;
use vramscope_trace::Span;
use vramscope_trace::slicing::{Budget, strides};

/// The segment in which each block of a trace lies. Most recordings name pools and sizes of
/// segments only, not of blocks.
pub struct BlockPlaces<'a> {
    target: Target<'a>,
    /// The blocks, ascending; `None` for all.
    blocks: Option<Vec<u32>>,
    /// The span of each of them; `None` if the trace has no segment there.
    spans: Vec<Option<&'a Span>>,
}

/// The cost of finding the span of a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 8;

impl<'a> BlockPlaces<'a> {
    /// Finds the segment of every block.
    pub async fn new(target: Target<'a>, budget: &mut Budget) -> Self {
        let all = (0..target.trace().blocks.len() as u32).collect();
        Self { target, blocks: None, spans: spans(target, all, budget).await }
    }

    /// Finds the segments of some blocks.
    pub async fn of(target: Target<'a>, mut blocks: Vec<u32>, budget: &mut Budget) -> Self {
        blocks.sort_unstable();
        let spans = spans(target, blocks.clone(), budget).await;
        Self { target, blocks: Some(blocks), spans }
    }

    fn span(&self, block: u32) -> Option<&'a Span> {
        let at = match &self.blocks {
            Some(blocks) => blocks.binary_search(&block).ok()?,
            None => block as usize,
        };
        self.spans[at]
    }

    /// The memory pool of a block: `[0, 0]` is the default pool; `None` if it is not recorded.
    pub fn pool(&self, block: u32) -> Option<[u64; 2]> {
        let snapshot = self.target.snapshot();
        let own = pool(snapshot, self.target.trace().blocks[block as usize].pool);
        own.or_else(|| pool(snapshot, self.span(block)?.pool))
    }

    /// `small` or `large`: the kind of the block's segment.
    pub fn segment_type(&self, block: u32) -> &'static str {
        let size = self.target.entry.carving(self.target.index).sizes[block as usize];
        let known = self.span(block).map(|span| segment_type(span.segment_type));
        known.filter(|&kind| kind != "unknown").unwrap_or_else(|| size_class(size))
    }
}

/// The span of each of these blocks.
async fn spans<'a>(
    target: Target<'a>,
    wanted: Vec<u32>,
    budget: &mut Budget,
) -> Vec<Option<&'a Span>> {
    let blocks = &target.trace().blocks;
    let mut order: Vec<u32> = (0..wanted.len() as u32).collect();
    order.sort_by_key(|&i| blocks[wanted[i as usize] as usize].enters);
    let all = &target.entry.carving(target.index).segments.spans;
    let mut next = (0u32..).zip(all).peekable();
    // The latest span at each address, by its index.
    let mut reserved: BTreeMap<u64, u32> = BTreeMap::new();
    let mut spans = vec![None; wanted.len()];
    for part in strides(order.len()) {
        budget.charge(COST_PER_BLOCK * part.len() as u64).await;
        for &i in &order[part] {
            let block = &blocks[wanted[i as usize] as usize];
            while let Some((index, _)) = next.next_if(|(_, span)| span.enters <= block.enters) {
                reserve(&mut reserved, all, index);
            }
            let below = reserved.range(..=block.address.0).next_back();
            spans[i as usize] = below
                .map(|(_, &span)| &all[span as usize])
                .filter(|span| block.address.0 < span.end());
        }
    }
    spans
}

/// Adds a span of `all`, in place of earlier spans at its addresses.
fn reserve(reserved: &mut BTreeMap<u64, u32>, all: &[Span], index: u32) {
    let span = &all[index as usize];
    let start = span.address.0;
    let stale: Vec<u64> = reserved
        .range(..span.end())
        .rev()
        .take_while(|&(_, &earlier)| all[earlier as usize].end() > start)
        .map(|(&address, _)| address)
        .collect();
    for address in stale {
        reserved.remove(&address);
    }
    reserved.insert(start, index);
}
