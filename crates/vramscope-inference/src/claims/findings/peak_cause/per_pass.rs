//! Results that a loop over forward passes keeps, one of each pass.

use super::{PeakCause, found, live_at_peak};
use crate::category::Category;
use crate::claims::found::Found;
use crate::evidence::Evidence;
use crate::evidence::Materiality;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, group_by_key};
use vramscope_units::Bytes;

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality::percent(5);

/// The fewest blocks that are one for each pass.
const MIN_BLOCKS: usize = 16;

/// Blocks of one size and call stack outside of modules that are live at the peak, with a forward
/// pass between each two, in a window without training.
pub(in crate::claims::findings) async fn per_pass(
    cx: Evidence<'_>,
    growing: &[StackId],
    budget: &mut Budget,
) -> Option<Found<PeakCause>> {
    cx.steps.and_then(|steps| steps.repetition)?;
    let is_asked = |(index, block): &(u32, &Block)| {
        block.stack != StackId::EMPTY
            && !growing.contains(&block.stack)
            && matches!(
                cx.categories.get(*index).category,
                Category::Activation | Category::Temporary | Category::Input | Category::Unknown
            )
    };
    let live: Vec<((StackId, u64), &Block)> = live_at_peak(cx, budget)
        .await
        .into_iter()
        .filter(is_asked)
        .map(|(_, block)| ((block.stack, block.bytes.0), block))
        .collect();
    let mut largest: Option<(u64, Vec<&Block>)> = None;
    for ((stack, each), mut blocks) in group_by_key(live) {
        let bytes = each * blocks.len() as u64;
        if blocks.len() < MIN_BLOCKS
            || !MATTERS.is_met(bytes, cx.peak())
            || largest.as_ref().is_some_and(|(other, _)| *other >= bytes)
            || runs_module(cx, stack)
        {
            continue;
        }
        blocks.sort_by_key(|block| block.enters);
        let mut apart = 0;
        for pair in blocks.windows(2) {
            let changes = cx.trace.changes_in(pair[0].enters + 1..pair[1].enters);
            budget.charge(changes.len() as u64).await;
            let mut entering = changes.iter().filter(|change| change.enters());
            let is_pass = entering
                .any(|change| runs_module(cx, cx.trace.blocks[change.block() as usize].stack));
            apart += usize::from(is_pass);
        }
        if apart + 1 == blocks.len() {
            largest = Some((bytes, blocks));
        }
    }
    let (bytes, blocks) = largest?;
    let facts = PeakCause::PerPass {
        blocks: blocks.len() as u32,
        each: Bytes(bytes / blocks.len() as u64),
    };
    Some(found(cx, &format!("per_pass-{}", cx.hash(blocks[0].stack)), bytes, &blocks, facts))
}

fn runs_module(cx: Evidence<'_>, stack: StackId) -> bool {
    cx.snapshot.stacks.frames(stack).iter().any(|&frame| {
        matches!(&*cx.snapshot.text(cx.snapshot.frame(frame).name), "_call_impl" | "forward")
    })
}
