//! What the steps around a failed allocation show.

use super::LargerStep;
use crate::category::{Category, Phase};
use crate::evidence::Evidence;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, Origin};
use vramscope_units::Bytes;

/// A step is larger than another from this many percent of its bytes.
const LARGER_PERCENT: u64 = 110;

/// What is larger by more than this factor is of another kind than what it is compared with.
const MAX_RATIO: u64 = 64;

/// The fewest bytes of a failed step that count as kept.
const MIN_KEPT: u64 = 16 << 20;

/// The step that failed, if it allocates more inputs or activations than all steps before it.
pub(super) async fn larger_step(
    cx: Evidence<'_>,
    step: Option<u32>,
    slot: u32,
    budget: &mut Budget,
) -> Option<LargerStep> {
    let (steps, failed) = (cx.steps?, step.filter(|&step| step > 0)? as usize);
    // A step with an evaluation is larger than those without.
    let mut spans = cx.categories.phases().iter();
    if spans
        .any(|s| s.phase == Phase::Evaluation && (steps.begins[failed]..slot).contains(&s.begin))
    {
        return None;
    }
    let categories = [Category::Input, Category::Activation];
    let mut sums = vec![[0u64; 2]; failed + 1];
    let mut near = 0;
    let visit = |index, block: &Block| {
        if block.origin() != Origin::Alloc || block.enters > slot {
            return;
        }
        near = steps.before_near(block.enters, near);
        let of = cx.categories.get(index).category;
        let Some(kind) = categories.iter().position(|&category| category == of) else {
            return;
        };
        if let Some(sum) = near.checked_sub(1).and_then(|step| sums.get_mut(step)) {
            sum[kind] += block.bytes.0;
        }
    };
    cx.trace.each_block(2, budget, visit).await;
    let larger = |kind: usize| {
        let before = sums[..failed].iter().enumerate().rev().max_by_key(|(_, sum)| sum[kind])?;
        let (bytes, largest) = (sums[failed][kind], before.1[kind]);
        let is_larger =
            largest > 0 && u128::from(bytes) * 100 >= u128::from(largest * LARGER_PERCENT);
        let is_alike = bytes / MAX_RATIO <= largest;
        // Equal inputs make equal activations: the step only came further, or does other things.
        let inputs = |step: usize| sums[step][0];
        let (own, other) = (inputs(failed), inputs(before.0));
        let has_equal_inputs = kind == 1 && own > 0 && own.abs_diff(other) * 20 <= own;
        (is_larger && is_alike && !has_equal_inputs).then_some(LargerStep {
            category: categories[kind],
            bytes: Bytes(bytes),
            before: Bytes(largest),
            step: before.0 as u32,
        })
    };
    larger(0).or_else(|| larger(1))
}

/// Bytes and number of the blocks that the failed step allocated, and that are live at the end
/// although a later step is complete.
///
/// They are most blocks of the step, or blocks of call stacks whose blocks other steps free before
/// they end.
pub(super) async fn kept_after<'a>(
    cx: Evidence<'a>,
    step: Option<u32>,
    slot: u32,
    last: u32,
    budget: &mut Budget,
) -> Option<(Bytes, u32)> {
    // Step 0 also builds the model.
    let (steps, failed) = (cx.steps?, step.filter(|&step| step > 0)? as usize);
    steps.begins.last().filter(|&&end| end > last)?;
    let begin = steps.begins[failed];
    let mut live = 0;
    let mut kept: Vec<&Block> = Vec::new();
    let visit = |index, block: &'a Block| {
        let is_of_step = begin < block.enters && block.is_live_at(slot);
        let stays_on_purpose = || {
            matches!(
                cx.categories.get(index).category,
                Category::Parameter
                    | Category::Gradient
                    | Category::OptimizerState
                    | Category::Workspace
            )
        };
        if !is_of_step || stays_on_purpose() {
            return;
        }
        live += block.bytes.0;
        if block.leaves == cx.trace.slots() {
            kept.push(block);
        }
    };
    cx.trace.each_block(1, budget, visit).await;
    let bytes = |kept: &[&Block]| kept.iter().map(|block| block.bytes.0).sum::<u64>();
    if bytes(&kept) < MIN_KEPT {
        return None;
    }
    if bytes(&kept) < live / 2 {
        let brief = brief_stacks(cx, &kept, failed, budget).await;
        kept.retain(|block| brief.contains(&block.stack));
    }
    let bytes = bytes(&kept);
    (bytes >= MIN_KEPT).then_some((Bytes(bytes), kept.len() as u32))
}

/// The call stacks of these blocks whose blocks most other whole steps free before they end.
async fn brief_stacks(
    cx: Evidence<'_>,
    kept: &[&Block],
    failed: usize,
    budget: &mut Budget,
) -> FxHashSet<StackId> {
    let Some(steps) = cx.steps else { return FxHashSet::default() };
    let stacks = kept.iter().map(|block| block.stack).filter(|&stack| stack != StackId::EMPTY);
    // Steps that freed all blocks of the stack, and steps that did not.
    let mut ends: FxHashMap<StackId, FxHashMap<usize, bool>> =
        stacks.map(|stack| (stack, FxHashMap::default())).collect();
    let mut near = 0;
    let visit = |_, block: &Block| {
        if block.origin() == Origin::Alloc {
            let Some(of_steps) = ends.get_mut(&block.stack) else { return };
            near = steps.before_near(block.enters, near);
            let Some(step) = near.checked_sub(1).filter(|&step| step != failed) else { return };
            let Some(&end) = steps.begins.get(step + 1) else { return };
            *of_steps.entry(step).or_insert(true) &= block.leaves <= end;
        }
    };
    cx.trace.each_block(1, budget, visit).await;
    let is_brief = |of_steps: &FxHashMap<usize, bool>| {
        of_steps.values().filter(|&&all_freed| all_freed).count() * 2 > of_steps.len()
    };
    ends.into_iter().filter(|(_, of_steps)| is_brief(of_steps)).map(|end| end.0).collect()
}
