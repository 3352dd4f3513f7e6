//! Steps from one block to the next of a search or of a call stack.

use super::block_detail as detail;
use super::search::Matcher;
use vramscope_analysis::slicing::{Budget, strides};
use vramscope_protocol::BlockDetail;
use vramscope_protocol::views::Looked;
use vramscope_report::{Target, slot_after};

/// The next wanted block that enters after an event, or the previous one before it. Wraps around at
/// the ends of the trace.
///
/// Blocks are sorted by the slot at which they enter. Blocks from before the window share slot 0.
/// So the search continues from block `from` if it enters at the event.
pub(crate) async fn next(
    at: Target<'_>,
    of: &Looked,
    event: i64,
    from: Option<u32>,
    backwards: bool,
    budget: &mut Budget,
) -> Option<BlockDetail> {
    let trace = at.trace();
    let blocks = &trace.blocks;
    let slot = slot_after(trace, event);
    let entered = |until: u32| blocks.partition_point(|b| b.enters < until) as u32;
    let from = from.filter(|&i| blocks.get(i as usize).is_some_and(|b| b.enters == slot));
    let (before, after) =
        from.map_or_else(|| (entered(slot), entered(slot + 1)), |block| (block, block + 1));
    let found = match of {
        Looked::Search { text } => {
            let matcher = Matcher::new(at, text, budget).await?;
            around(before, after, blocks.len() as u32, backwards, |i| matcher.block(at, i), budget)
                .await
        }
        &Looked::Stack { block } => {
            let block = blocks.get(block as usize)?;
            let stack = (block.stack, block.has_stack_of_free());
            let has_stack = |i: u32| {
                let block = &blocks[i as usize];
                (block.stack, block.has_stack_of_free()) == stack
            };
            around(before, after, blocks.len() as u32, backwards, has_stack, budget).await
        }
    };
    detail::block(at, found?)
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
