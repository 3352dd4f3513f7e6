//! Whether attention keeps maps.

use super::Run;
use super::marks::Mark;
use crate::claims::changes::{Enabled, Proof};
use crate::recipes::facts::attention_maps;
use crate::recipes::lives::Life;
use crate::step_phases::StepPhase;

/// Whether attention keeps no maps.
pub(crate) fn is_flash(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let pass = run.typical()?;
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
        return Some((Enabled::Off, proof));
    }
    if has_softmax(run) || !attention_maps(run.lives, run.facts).is_empty() {
        return None;
    }
    let mut calls = run.made_in(pass).filter(|(_, life)| run.lives.mark(life).has(Mark::FLASH));
    let by = run.outermost(calls.next()?.1, Mark::FLASH);
    let count = 1 + calls.count() as u32;
    Some((Enabled::On, Proof { by, count, ..Proof::default() }))
}

/// Whether a softmax made a block, outside of a loss.
fn is_softmax(run: Run<'_>, life: &Life) -> bool {
    life.bytes >= MIN_MAP
        && run.lives.is_made_by(life, Mark::SOFTMAX, 2)
        && !run.lives.is_made_by(life, Mark::CROSS_ENTROPY, 4)
}

/// Fewer bytes are the probabilities of a few classes.
const MIN_MAP: u64 = 64 << 10;

/// Whether a forward pass makes a softmax of that size.
pub(crate) fn has_softmax(run: Run<'_>) -> bool {
    run.lives.all.iter().any(|life| life.phase == StepPhase::Forward && is_softmax(run, life))
}
