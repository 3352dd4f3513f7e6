//! The training steps of a device, and the bytes of data that a step reads.

use crate::target::Target;
use vramscope_inference::Category;
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;

/// The number of whole training steps, and the bytes of the input blocks of a typical step.
///
/// The bytes are the median over the steps. They are `None` if no block is known to be input.
pub(super) async fn of_steps(target: Target<'_>, budget: &mut Budget) -> (u32, Option<u64>) {
    let Some((mut allocated, kept)) = by_step(target, budget).await else { return (0, None) };
    allocated.pop();
    let whole = allocated.len();
    allocated.sort_unstable();
    let median = allocated.get(whole / 2).copied().unwrap_or(0);
    let bytes = if median > 0 { median } else { kept };
    (whole as u32, Some(bytes).filter(|&bytes| bytes > 0))
}

/// The bytes of the input blocks that each whole step allocates, and what follows the last one; and
/// those that are kept for all steps. `None` without steps.
pub(crate) async fn by_step(target: Target<'_>, budget: &mut Budget) -> Option<(Vec<u64>, u64)> {
    let (trace, categories) = (target.trace(), target.entry.categories(target.index));
    let steps = target.entry.steps(target.index)?;
    let (mut allocated, mut kept) = (vec![0u64; steps.whole() + 1], 0u64);
    let visit = |i, block: &Block| {
        if categories.get(i).category != Category::Input {
            return;
        }
        let step = steps.begins.partition_point(|&begin| begin < block.enters).checked_sub(1);
        match step.and_then(|step| allocated.get_mut(step)) {
            Some(bytes) => *bytes += block.bytes.0,
            // Some programs allocate their input once and copy each batch into it.
            None if step.is_none() && steps.begins.last() <= Some(&block.leaves) => {
                kept += block.bytes.0;
            }
            None => {}
        }
    };
    trace.each_block(1, budget, visit).await;
    Some((allocated, kept))
}
