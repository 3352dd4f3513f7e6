//! From one block to the next of its kind.

use super::blocks::slot_after;
use super::search::Matcher;
use crate::detail;
use crate::protocol::BlockDetail;
use crate::protocol::views::Looked;
use crate::report::Target;

/// The next block that enters after an event, or before it; at the ends it goes round.
///
/// Blocks stand in the order in which they enter. Those from before the window all enter together: from one of them it
/// goes on from the block itself.
pub(crate) fn next(at: Target<'_>, of: &Looked, event: i64, from: Option<u32>, backwards: bool) -> Option<BlockDetail> {
    let trace = at.trace();
    let blocks = &trace.blocks;
    let slot = slot_after(trace, event);
    let entered = |until: u32| blocks.partition_point(|b| b.enters < until) as u32;
    let from = from.filter(|&i| blocks.get(i as usize).is_some_and(|b| b.enters == slot));
    let (before, after) = from.map_or_else(|| (entered(slot), entered(slot + 1)), |block| (block, block + 1));
    let found = match of {
        Looked::Search { text } => {
            let matcher = Matcher::new(at, text)?;
            around(before, after, blocks.len() as u32, backwards, |i| matcher.block(at, i))
        }
        &Looked::Stack { block } => {
            let like = blocks.get(block as usize)?;
            let kind = (like.stack, like.has_stack_of_free());
            around(before, after, blocks.len() as u32, backwards, |i| {
                let block = &blocks[i as usize];
                (block.stack, block.has_stack_of_free()) == kind
            })
        }
    };
    detail::block(at.part, trace, found?)
}

/// The first that is wanted from `after` on and round to it, or the same from `before` backwards.
fn around(before: u32, after: u32, end: u32, backwards: bool, is_wanted: impl Fn(u32) -> bool) -> Option<u32> {
    if backwards {
        (0..before).rev().chain((before..end).rev()).find(|&i| is_wanted(i))
    } else {
        (after..end).chain(0..after).find(|&i| is_wanted(i))
    }
}
