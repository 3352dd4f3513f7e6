//! The columns that the table of blocks sorts by, and their keys.

use crate::{Target, row_site};
use serde::{Deserialize, Serialize};
use vramscope_inference::Category;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, STRIDE};
use vramscope_trace::{NoStack, lifetime, parallel, sort};

/// A column of the block table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum BlockSort {
    /// Requested bytes.
    #[default]
    Size,
    /// Block size: bytes that the allocator carved out of a segment.
    BlockSize,
    /// The category's name.
    Category,
    /// The event of the alloc. Blocks from before the window come first.
    Allocated,
    /// The event that completed the free. Blocks that are live at the end come last.
    Freed,
    /// Lifetime within the window in microseconds (in events without a clock).
    Lifetime,
    /// Requested bytes times lifetime.
    ByteSeconds,
    /// The address.
    Address,
    /// The stream.
    Stream,
    /// The call site.
    Site,
}

/// The keys of a column's values.
pub struct SortKeys<'a> {
    target: Target<'a>,
    column: BlockSort,
    /// The rank of each stack's call site; empty for other columns.
    sites: Vec<u32>,
}

impl<'a> SortKeys<'a> {
    /// The keys of a column.
    pub async fn new(target: Target<'a>, column: BlockSort, budget: &mut Budget) -> Self {
        let sites = match column {
            BlockSort::Site => site_ranks(target, budget).await,
            _ => Vec::new(),
        };
        Self { target, column, sites }
    }

    /// The key of a block. Byte-seconds that do not fit saturate.
    pub fn key(&self, index: u32) -> u64 {
        let (at, trace) = (self.target, self.target.trace());
        let block = &trace.blocks[index as usize];
        match self.column {
            BlockSort::Size => block.bytes.0,
            BlockSort::BlockSize => at.entry.carving(at.index).sizes[index as usize].0,
            BlockSort::Category => {
                let name = at.entry.categories(at.index).get(index).category.name();
                Category::ALL.iter().filter(|c| c.name() < name).count() as u64
            }
            BlockSort::Allocated => block.enters.into(),
            // Of blocks that are live at the end, those with a pending free come first.
            BlockSort::Freed => {
                u64::from(block.leaves) << 1 | u64::from(block.free_requested().is_none())
            }
            BlockSort::Lifetime => lifetime(trace, block),
            BlockSort::ByteSeconds => u64::try_from(self.wide(index)).unwrap_or(u64::MAX),
            BlockSort::Address => block.address.0,
            // Flipping the sign bit maps the order of signed numbers to that of unsigned ones.
            BlockSort::Stream => at.snapshot().stream(block.stream) as u64 ^ 1 << 63,
            BlockSort::Site => {
                let site = u64::from(self.sites[block.stack.0 as usize]);
                // Labels of missing stacks follow each other, in the order of their texts.
                site << 2 | trace.no_stack(block).map_or(0, reason_rank)
            }
        }
    }

    /// [`SortKeys::key`] with all digits of byte-seconds.
    pub fn wide(&self, index: u32) -> u128 {
        if self.column != BlockSort::ByteSeconds {
            return self.key(index).into();
        }
        let trace = self.target.trace();
        let block = &trace.blocks[index as usize];
        u128::from(block.bytes.0) * u128::from(lifetime(trace, block))
    }
}

/// The rank of a reason by its label.
fn reason_rank(why: NoStack) -> u64 {
    match why {
        NoStack::Backward => 0,
        NoStack::BeforeRecording => 1,
        NoStack::NotRecorded => 2,
    }
}

/// The rank of each stack's call site in alphabetical order, by stack. Equal sites share a rank.
async fn site_ranks(at: Target<'_>, budget: &mut Budget) -> Vec<u32> {
    let count = at.snapshot().stacks.len() as u32;
    let mut names: Vec<(String, u32)> = Vec::with_capacity(count as usize);
    let stride = (STRIDE * parallel::threads()) as u32;
    for from in (0..count).step_by(stride as usize) {
        names.extend(parallel::filter_map(stride.min(count - from), |i| {
            let stack = StackId(from + i);
            let no_stack = (stack == StackId::EMPTY).then_some(NoStack::Backward);
            Some((row_site(at.entry, stack, no_stack), stack.0))
        }));
        budget.charge(32 * STRIDE as u64).await;
    }
    sort(&mut names, budget).await;
    let mut ranks = vec![0; names.len()];
    let mut rank = 0;
    for (i, (name, stack)) in names.iter().enumerate() {
        if i > 0 && *name != names[i - 1].0 {
            rank += 1;
        }
        ranks[*stack as usize] = rank;
    }
    ranks
}
