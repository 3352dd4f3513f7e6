//! Evaluation without a graph.

use crate::category::Category;
use crate::recipes::facts::{Facts, logits};
use crate::recipes::lives::{Life, Lives};
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;
use rustc_hash::FxHashSet;
use vramscope_snapshot::StackId;

/// The largest share of an evaluation's bytes that a backward pass may free, in percent.
const MAX_USED_PERCENT: u64 = 10;

/// `eval:no_grad`: in passes without backward, all but logits and the last result die three
/// requests later. The recipe leaves out three kinds of memory: passes whose results a later
/// backward pass frees, a last pass that may belong to training, and pools of CUDA graphs.
///
/// # Errors
/// No evaluation keeps a graph.
pub(super) fn no_grad(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let mut changed = 0;
    let trained: FxHashSet<StackId> = facts
        .passes
        .iter()
        .filter(|pass| pass.backward.is_some())
        .flat_map(|pass| &lives.all[lives.born(pass.begin, pass.end)])
        .filter_map(|life| life.stack)
        .collect();
    for pass in facts.passes.iter().filter(|pass| pass.backward.is_none()) {
        let range = lives.born(pass.begin, pass.end);
        let of_data = |index: &usize| {
            let life = &lives.all[*index];
            matches!(
                life.category,
                Category::Activation | Category::Temporary | Category::Unknown | Category::Input
            ) && life.pool == 0
                && !lives.frames(life).is_empty()
        };
        let blocks: Vec<usize> = range.clone().filter(of_data).collect();
        let Some(&last) = blocks.last() else { continue };
        let lives_of = || blocks.iter().map(|&index| &lives.all[index]);
        let is_trained = |life: &Life| life.stack.is_some_and(|stack| trained.contains(&stack));
        let is_used =
            |life: &&Life| life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward);
        let bytes: u64 = lives_of().map(|life| life.bytes).sum();
        let used: u64 = lives_of().filter(is_used).map(|life| life.bytes).sum();
        if used.saturating_mul(100) > bytes.saturating_mul(MAX_USED_PERCENT) {
            continue;
        }
        if lives.failure.is_none()
            && lives_of().any(Life::stays)
            && lives_of().filter(|life| is_trained(life)).count() * 2 > blocks.len()
        {
            continue;
        }
        let kept = if blocks.len() > 6 { logits(lives, facts, range, pass) } else { None };
        // A variable holds it. What comes after it may be a workspace.
        let result = blocks.iter().copied().rfind(|&index| lives.all[index].end >= pass.end);
        let last_end = lives.all[last].begin + 0.5;
        for (at, &index) in blocks.iter().enumerate() {
            let later = blocks.get(at + 3).map(|&later| lives.all[later].begin + 0.25);
            let end = later.unwrap_or(last_end);
            let life = &mut lives.all[index];
            let is_result = kept.is_some_and(|logits| logits.block == index)
                || index == last
                || Some(index) == result;
            if !is_result && life.category != Category::Input && life.end > end {
                life.end = end;
                changed += 1;
            }
        }
    }
    if changed == 0 {
        Err(Declined::NoGraph)
    } else {
        Ok(Applied { changed, ..Applied::default() })
    }
}
