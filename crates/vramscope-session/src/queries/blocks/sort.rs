//! Sorts the blocks of a table.

use super::{STRIDE_PER_THREAD, UNITS_PER_BLOCK};
use crate::queries::ranked_bitmap::RankedBitmap;
use std::ops::Not;
use vramscope_report::Target;
use vramscope_report::blocks::{BlockSort, SortKeys};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{parallel, sort};

/// Sorts blocks by a column. Blocks with equal keys stay in stack order.
pub(super) async fn sort_blocks(
    at: Target<'_>,
    blocks: RankedBitmap,
    (column, descending): (BlockSort, bool),
    budget: &mut Budget,
) -> Vec<u32> {
    let keys = SortKeys::new(at, column, budget).await;
    // Only byte-seconds need 128-bit keys, which double the memory of a sort.
    match column {
        BlockSort::ByteSeconds => sorted(blocks, descending, |i| keys.wide(i), budget).await,
        _ => sorted(blocks, descending, |i| keys.key(i), budget).await,
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
