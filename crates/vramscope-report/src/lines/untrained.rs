//! Parameters without gradients and optimizer state, beside others of their line that have both.

use crate::target::Target;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vramscope_inference::Category;
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 4;

/// At most this share of the gradients' bytes, in percent, may have a size that no parameter has.
/// The states' bytes may differ by as much from those of momentum (one state for a gradient) or
/// Adam (two). Judged on the recordings of `test_data`.
const MAX_OTHER_PERCENT: u64 = 5;

/// The bytes of parameters of these sizes that had no gradient, by the most gradients of each size
/// that were live at once. `None` if the file does not show whose gradients there are.
pub(super) async fn untrained(
    target: Target<'_>,
    parameters: &FxHashMap<u64, u32>,
    budget: &mut Budget,
) -> Option<Bytes> {
    let categories = target.entry.categories(target.index);
    let mut gradients: BTreeMap<u64, Vec<(u32, i32)>> = BTreeMap::new();
    let mut states: Vec<(u32, i32, u64)> = Vec::new();
    let visit = |i, block: &Block| match categories.get(i).category {
        Category::Gradient => {
            let of = gradients.entry(block.bytes.0).or_default();
            of.extend([(block.enters, 1), (block.leaves, -1)]);
        }
        Category::OptimizerState => {
            let bytes = block.bytes.0;
            states.extend([(block.enters, 1, bytes), (block.leaves, -1, bytes)]);
        }
        _ => {}
    };
    target.trace().each_block(COST_PER_BLOCK, budget, visit).await;
    states.sort_unstable();
    let states = most(states.into_iter().map(|(_, change, bytes)| (change, bytes)));
    let (mut whole, mut trained) = (0_u64, 0_u64);
    for (size, mut of) in gradients {
        of.sort_unstable();
        let of_size = most(of.into_iter().map(|(_, change)| (change, size)));
        let known = parameters.get(&size).map_or(0, |count| size.saturating_mul((*count).into()));
        whole = whole.saturating_add(of_size);
        trained = trained.saturating_add(of_size.min(known));
    }
    let all = parameters
        .iter()
        .fold(0_u64, |sum, (size, count)| sum.saturating_add(size.saturating_mul((*count).into())));
    let is_near = |a: u64, b: u64| {
        a.abs_diff(b).saturating_mul(100) <= a.max(b).saturating_mul(MAX_OTHER_PERCENT)
    };
    let is_known = trained > 0
        && is_near(whole, trained)
        && (is_near(states, whole) || is_near(states, whole.saturating_mul(2)));
    is_known.then(|| Bytes(all.saturating_sub(trained)))
}

/// The most bytes that are live at once. What leaves in a slot is not live beside what enters.
fn most(changes: impl Iterator<Item = (i32, u64)>) -> u64 {
    let (mut live, mut most) = (0_u64, 0_u64);
    for (change, bytes) in changes {
        live = if change < 0 { live.saturating_sub(bytes) } else { live.saturating_add(bytes) };
        most = most.max(live);
    }
    most
}
