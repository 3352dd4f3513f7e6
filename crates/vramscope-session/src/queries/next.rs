//! Steps from one block to the next of a search or of a call stack.

use super::block_detail as detail;
use crate::messages::views::{Looked, NextBlock};
use std::cmp::Reverse;
use vramscope_report::search::{Matcher, matching};
use vramscope_report::{Target, slot_after};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::sort;
use vramscope_units::grouped;

/// The next block, or the previous one. Wraps around at the ends.
pub(crate) async fn next(
    at: Target<'_>,
    of: &Looked,
    event: i64,
    from: Option<u32>,
    backwards: bool,
    budget: &mut Budget,
) -> Option<NextBlock> {
    match of {
        Looked::Search { text } => found(at, text, from, backwards, budget).await,
        &Looked::Stack { block } => of_stack(at, block, event, from, backwards, budget).await,
    }
}

/// The next block of a search by size, the largest first. Without a block to start from, or if the
/// search does not find that block, the first of all.
async fn found(
    at: Target<'_>,
    text: &str,
    from: Option<u32>,
    backwards: bool,
    budget: &mut Budget,
) -> Option<NextBlock> {
    let matcher = Matcher::new(at, text, budget).await?;
    let found = matching(at, &matcher, budget).await;
    let size = |block: u32| at.trace().blocks[block as usize].bytes;
    let mut found: Vec<_> = found.into_iter().map(|block| (Reverse(size(block)), block)).collect();
    sort(&mut found, budget).await;
    let count = found.len();
    let known = from.and_then(|from| found.iter().position(|&(_, block)| block == from));
    let place = match (known, backwards) {
        (Some(place), false) => (place + 1) % count,
        (Some(place), true) => (place + count - 1) % count,
        (None, false) => 0,
        (None, true) => count.checked_sub(1)?,
    };
    let detail = detail::block(at, found.get(place)?.1)?;
    let place = format!("{} of {}", grouped(place as u64 + 1), grouped(count as u64));
    Some(NextBlock { detail, place })
}

/// The next block of a block's call stack that enters after an event, or the previous one before
/// it.
///
/// Blocks are sorted by the slot at which they enter. Blocks from before the window share slot 0.
/// So the search continues from block `from` if it enters at the event.
async fn of_stack(
    at: Target<'_>,
    block: u32,
    event: i64,
    from: Option<u32>,
    backwards: bool,
    budget: &mut Budget,
) -> Option<NextBlock> {
    let trace = at.trace();
    let blocks = &trace.blocks;
    let slot = slot_after(trace, event);
    let entered = |until: u32| blocks.partition_point(|b| b.enters < until) as u32;
    let from = from.filter(|&i| blocks.get(i as usize).is_some_and(|b| b.enters == slot));
    let (before, after) =
        from.map_or_else(|| (entered(slot), entered(slot + 1)), |block| (block, block + 1));
    let block = blocks.get(block as usize)?;
    let stack = (block.stack, block.has_stack_of_free());
    let has_stack = |i: u32| {
        let block = &blocks[i as usize];
        (block.stack, block.has_stack_of_free()) == stack
    };
    let found = around(before, after, blocks.len() as u32, backwards, has_stack, budget).await?;
    Some(NextBlock { detail: detail::block(at, found)?, place: String::new() })
}

/// The first wanted block from `after` on, or backwards from `before`; wraps around.
async fn around(
    before: u32,
    after: u32,
    end: u32,
    backwards: bool,
    is_wanted: impl Fn(u32) -> bool,
    budget: &mut Budget,
) -> Option<u32> {
    let ranges = if backwards { [0..before, before..end] } else { [after..end, 0..after] };
    for blocks in ranges {
        for part in strides(blocks.len()) {
            budget.charge(2 * part.len() as u64).await;
            let offsets = part.map(|i| i as u32);
            let found = if backwards {
                offsets.map(|i| blocks.end - 1 - i).find(|&i| is_wanted(i))
            } else {
                offsets.map(|i| blocks.start + i).find(|&i| is_wanted(i))
            };
            if found.is_some() {
                return found;
            }
        }
    }
    None
}
