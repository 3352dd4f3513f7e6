//! From one block to the next of its kind.

use super::block_detail as detail;
use super::search::Matcher;
use vramscope_analysis::slicing::{Budget, strides};
use vramscope_protocol::BlockDetail;
use vramscope_protocol::views::Looked;
use vramscope_report::{Target, slot_after};

/// The next block that enters after an event, or before it; at the ends it goes round.
///
/// Blocks stand in the order in which they enter. Those from before the window all enter together:
/// from one of them it goes on from the block itself.
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
            let like = blocks.get(block as usize)?;
            let kind = (like.stack, like.has_stack_of_free());
            let is_like = |i: u32| {
                let block = &blocks[i as usize];
                (block.stack, block.has_stack_of_free()) == kind
            };
            around(before, after, blocks.len() as u32, backwards, is_like, budget).await
        }
    };
    detail::block(at, found?)
}

/// The first that is wanted from `after` on and round to it, or the same from `before` backwards.
async fn around(
    before: u32,
    after: u32,
    end: u32,
    backwards: bool,
    is_wanted: impl Fn(u32) -> bool,
    budget: &mut Budget,
) -> Option<u32> {
    let round = if backwards { [0..before, before..end] } else { [after..end, 0..after] };
    for blocks in round {
        for part in strides(blocks.len()) {
            budget.charge(2 * part.len() as u64).await;
            let of_part = part.map(|i| i as u32);
            let found = if backwards {
                of_part.map(|i| blocks.end - 1 - i).find(|&i| is_wanted(i))
            } else {
                of_part.map(|i| blocks.start + i).find(|&i| is_wanted(i))
            };
            if found.is_some() {
                return found;
            }
        }
    }
    None
}
