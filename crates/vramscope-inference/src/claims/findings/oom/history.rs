//! What the steps around a failed allocation show.

use super::{Grows, LargerPass, Repeated};
use crate::category::Category;
use crate::evidence::Evidence;
use crate::evidence::passes::{Pass, PassKind};
use crate::step_floors::slope_before;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, Origin};
use vramscope_units::Bytes;

/// A step is larger than another from this many percent of its bytes.
const LARGER_PERCENT: u64 = 110;

/// What is larger by more than this factor is of another kind than what it is compared with.
const MAX_RATIO: u64 = 64;

/// The fewest bytes of a failed step that count as kept.
const MIN_KEPT: u64 = 16 << 20;

/// The pass that failed, if it makes more inputs or activations than all passes before it whose
/// inputs come from the same lines.
pub(super) async fn larger_pass(
    cx: Evidence<'_>,
    event: u32,
    budget: &mut Budget,
) -> Option<LargerPass> {
    let failed = cx.passes.of_event(event)?;
    let passes = &cx.passes.all[..=failed];
    let stack = |pass: &Pass| Some(cx.trace.blocks[*pass.inputs.first()? as usize].stack);
    let own = stack(&passes[failed])?;
    let alike: Vec<usize> = (0..=failed).filter(|&at| stack(&passes[at]) == Some(own)).collect();
    let mut sums = vec![[0u64; 2]; passes.len()];
    for &at in &alike {
        let inputs = passes[at].inputs.iter().filter(|&&block| block_is_made(cx, block, event));
        sums[at][0] = inputs.map(|&block| cx.trace.blocks[block as usize].bytes.0).sum();
    }
    let visit = |index, block: &Block| {
        let made = block.alloc_event().filter(|made| made.0 <= event);
        let Some(at) = made.and_then(|made| cx.passes.of_event(made.0)) else { return };
        if cx.categories.get(index).category == Category::Activation {
            sums[at][1] += block.bytes.0;
        }
    };
    cx.trace.each_block(8, budget, visit).await;
    let before = &alike[..alike.len() - 1];
    let larger = |kind: usize, category: Category| {
        let largest = before.iter().copied().rev().max_by_key(|&at| sums[at][kind])?;
        let (bytes, most) = (sums[failed][kind], sums[largest][kind]);
        let is_larger = most > 0 && u128::from(bytes) * 100 >= u128::from(most * LARGER_PERCENT);
        let is_alike = bytes / MAX_RATIO <= most;
        // Equal inputs make equal activations: the pass only came further, or does other things.
        let (inputs, of_largest) = (sums[failed][0], sums[largest][0]);
        let has_equal_inputs =
            kind == 1 && inputs > 0 && inputs.abs_diff(of_largest) * 20 <= inputs;
        let pass = &passes[largest];
        let step = u32::try_from(pass.step).ok().filter(|_| pass.kind == PassKind::Step);
        (is_larger && is_alike && !has_equal_inputs).then_some(LargerPass {
            category,
            bytes: Bytes(bytes),
            before: Bytes(most),
            step,
        })
    };
    larger(0, Category::Input).or_else(|| larger(1, Category::Activation))
}

/// Whether a block is made until an event.
fn block_is_made(cx: Evidence<'_>, block: u32, event: u32) -> bool {
    cx.trace.blocks[block as usize].enters <= event
}

/// The most results of one line that wait for a backward pass at a failure, if they are many more
/// than the line makes in a pass that has one.
pub(super) async fn repeated(
    cx: Evidence<'_>,
    event: u32,
    budget: &mut Budget,
) -> Option<Repeated> {
    let failed = cx.passes.of_event(event)?;
    let is_open = cx.passes.all[failed].backward.is_none();
    let trained = || cx.passes.all[..failed].iter().filter(|pass| pass.backward.is_some());
    let last = trained().next_back().filter(|_| is_open)?.over();
    let mut sums: FxHashMap<FrameId, (u32, u64)> = FxHashMap::default();
    let mut before: FxHashMap<(FrameId, usize), u32> = FxHashMap::default();
    let mut lines: FxHashMap<StackId, Option<FrameId>> = FxHashMap::default();
    let visit = |index, block: &Block| {
        let Some(made) = block.alloc_event().filter(|made| made.0 <= event) else { return };
        if cx.categories.get(index).category != Category::Activation {
            return;
        }
        let line = lines.entry(block.stack).or_insert_with(|| cx.program_frame(block.stack));
        let Some(line) = *line else { return };
        if f64::from(made.0) > last && block.is_live_at(event) {
            let (count, bytes) = sums.entry(line).or_default();
            (*count, *bytes) = (*count + 1, *bytes + block.bytes.0);
        } else if let Some(at) = cx.passes.of_event(made.0) {
            *before.entry((line, at)).or_default() += 1;
        }
    };
    cx.trace.each_block(8, budget, visit).await;
    let (line, (count, _)) = sums.into_iter().max_by_key(|&(line, (_, bytes))| (bytes, line.0))?;
    let is_of_line = |((of, at), _): &(&(FrameId, usize), &u32)| {
        *of == line && cx.passes.all[*at].backward.is_some()
    };
    let most = before.iter().filter(is_of_line).map(|(_, &count)| count).max()?;
    let line = cx.snapshot.frame(line);
    (count >= MIN_REPEATED * most).then_some(Repeated { line, count, before: most })
}

/// A line that has run this many times as often since the last backward pass repeats itself.
const MIN_REPEATED: u32 = 4;

/// How the floor grew before an event: from step to step, or from pass to pass.
pub(super) async fn grows(cx: Evidence<'_>, event: u32, budget: &mut Budget) -> Option<Grows> {
    let passes = cx.passes.in_a_row();
    for steps in cx.steps.into_iter().chain(&passes) {
        if let Some(slope) = slope_before(cx.trace, steps, event, budget).await {
            let after = |step: u32| steps.begins[step as usize + 1];
            return Some(Grows {
                per_step: slope.per_step,
                between: [after(slope.from), after(slope.to)],
                steps: slope.to - slope.from,
                words: steps.words(),
            });
        }
    }
    None
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
