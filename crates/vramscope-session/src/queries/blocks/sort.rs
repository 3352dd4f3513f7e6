//! Sorts the blocks of a table.

use super::{STRIDE_PER_THREAD, UNITS_PER_BLOCK};
use crate::queries::ranked_bitmap::RankedBitmap;
use std::ops::Not;
use vramscope_analysis::slicing::{Budget, STRIDE};
use vramscope_analysis::{Category, NoStack, lifetime, parallel, sort};
use vramscope_protocol::views::BlockSort;
use vramscope_report::{Target, row_site};
use vramscope_snapshot::StackId;

/// Sorts blocks by a column. Blocks with equal keys stay in stack order.
pub(super) async fn sort_blocks(
    at: Target<'_>,
    blocks: RankedBitmap,
    (column, descending): (BlockSort, bool),
    budget: &mut Budget,
) -> Vec<u32> {
    let sites = if column == BlockSort::Site { site_ranks(at, budget).await } else { Vec::new() };
    match column {
        // Only this column needs 128-bit keys, which double the memory of a sort.
        BlockSort::ByteSeconds => {
            let key = |i: u32| {
                let block = &at.trace().blocks[i as usize];
                u128::from(block.bytes.0) * u128::from(lifetime(at.trace(), block))
            };
            sorted(blocks, descending, key, budget).await
        }
        column => sorted(blocks, descending, |i| key(at, column, &sites, i), budget).await,
    }
}

/// Sorts by a key. The complement of a key gives the descending order.
async fn sorted<K: Ord + Copy + Send + Not<Output = K>>(
    blocks: RankedBitmap,
    descending: bool,
    key: impl Fn(u32) -> K + Sync,
    budget: &mut Budget,
) -> Vec<u32> {
    // Growing would copy all rows within one slice.
    let mut rows: Vec<(K, u32)> = Vec::with_capacity(blocks.len() as usize);
    let stride = (STRIDE_PER_THREAD * parallel::threads()) as u32;
    for from in (0..blocks.len()).step_by(stride as usize) {
        let part: Vec<u32> = blocks.range(from..from + stride).collect();
        rows.extend(parallel::map(&part, |&i| {
            let key = key(i);
            (if descending { !key } else { key }, i)
        }));
        budget.charge(UNITS_PER_BLOCK * STRIDE_PER_THREAD as u64).await;
    }
    drop(blocks);
    sort(&mut rows, budget).await;
    let mut order = Vec::with_capacity(rows.len());
    for part in rows.chunks(STRIDE_PER_THREAD) {
        order.extend(part.iter().map(|&(_, i)| i));
        budget.charge(part.len() as u64).await;
    }
    order
}

/// The sort key of a block as a 64-bit number. Byte-seconds saturate.
fn key(at: Target<'_>, column: BlockSort, sites: &[u32], index: u32) -> u64 {
    let trace = at.trace();
    let block = &trace.blocks[index as usize];
    match column {
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
        BlockSort::ByteSeconds => block.bytes.0.saturating_mul(lifetime(trace, block)),
        BlockSort::Address => block.address.0,
        // Flipping the sign bit maps the order of signed numbers to that of unsigned ones.
        BlockSort::Stream => at.snapshot().stream(block.stream) as u64 ^ 1 << 63,
        BlockSort::Site => {
            let site = u64::from(sites[block.stack.0 as usize]);
            // Labels of missing stacks follow each other, in the order of their texts.
            site << 2 | trace.no_stack(block).map_or(0, reason_rank)
        }
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
