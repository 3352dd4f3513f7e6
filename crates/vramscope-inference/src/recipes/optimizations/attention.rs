//! Whether attention keeps maps.

use super::marks::Mark;
use super::{Enabled, Optimization, OptimizationKind, Proof, Run};
use crate::recipes::facts::attention_maps;
use crate::recipes::lives::Life;
use crate::step_phases::StepPhase;

pub(super) fn find(run: &Run<'_>) -> Option<Optimization> {
    let pass = run.typical()?;
    let optimization =
        |state, proof| Some(Optimization::new(OptimizationKind::FlashAttention, state, proof));
    let maps = attention_maps(&run.lives, &run.facts);
    let of_pass = maps
        .iter()
        .map(|&index| &run.lives.all[index])
        .filter(|life| (pass.begin..pass.end).contains(&life.begin));
    let is_kept = |life: &&Life| {
        life.phase == StepPhase::Forward
            && life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward)
    };
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
    if !maps.is_empty() {
        return None;
    }
    let mut calls = run.made_in(pass).filter(|(_, life)| run.mark(life).has(Mark::FLASH));
    let (_, first) = calls.next()?;
    let by = run.marked_frame(first, Mark::FLASH);
    let count = 1 + calls.count() as u32;
    optimization(Enabled::On, Proof { by, count, ..Proof::default() })
}
