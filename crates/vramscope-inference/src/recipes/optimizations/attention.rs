//! Whether attention keeps maps.

use super::marks::Mark;
use super::{Enabled, Optimization, OptimizationKind, Proof, Run};
use crate::recipes::facts::attention_maps;
use crate::recipes::lives::Life;
use crate::recipes::stacks::Kind;
use crate::step_phases::StepPhase;

pub(super) fn find(run: &Run<'_>) -> Option<Optimization> {
    let pass = run.typical()?;
    let optimization =
        |state, proof| Some(Optimization::new(OptimizationKind::FlashAttention, state, proof));
    let is_kept = |life: &&Life| {
        life.phase == StepPhase::Forward
            && life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward)
    };
    let of_pass = run.made_in(pass).map(|(_, life)| life).filter(|life| is_softmax(run, life));
    let kept: Vec<&Life> = of_pass.filter(is_kept).collect();
    if let Some(largest) = kept.iter().max_by_key(|life| life.bytes) {
        let proof = Proof {
            site: run.site(largest),
            count: kept.len() as u32,
            bytes: kept.iter().map(|life| life.bytes).sum(),
            ..Proof::default()
        };
        return optimization(Enabled::Off, proof);
    }
    if has_softmax(run) || !attention_maps(&run.lives, &run.facts).is_empty() {
        return None;
    }
    let mut calls = run.made_in(pass).filter(|(_, life)| run.mark(life).has(Mark::FLASH));
    let (_, first) = calls.next()?;
    let by = run.outermost(first, Mark::FLASH);
    let count = 1 + calls.count() as u32;
    optimization(Enabled::On, Proof { by, count, ..Proof::default() })
}

/// Whether a softmax made a block, outside of a loss.
fn is_softmax(run: &Run<'_>, life: &Life) -> bool {
    let frames = run.lives.frames(life);
    let has = |kind: Kind, count: usize| {
        frames.iter().take(count).any(|&frame| run.lives.stacks.kind(frame).has(kind))
    };
    has(Kind::SOFTMAX, 2) && !has(Kind::CROSS_ENTROPY, 4) && life.bytes >= MIN_MAP
}

/// Fewer bytes are the probabilities of a few classes.
const MIN_MAP: u64 = 64 << 10;

/// Whether a forward pass makes a softmax of that size.
pub(super) fn has_softmax(run: &Run<'_>) -> bool {
    run.lives.all.iter().any(|life| life.phase == StepPhase::Forward && is_softmax(run, life))
}
