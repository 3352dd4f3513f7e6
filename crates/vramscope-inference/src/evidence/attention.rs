//! Whether attention keeps maps.

use super::Run;
use super::marks::Mark;
use super::proof::{Enabled, Proof};
use crate::recipes::facts::attention_maps;
use crate::recipes::lives::Life;
use crate::step_phases::StepPhase;

/// Fewer bytes are the probabilities of a few classes.
const MIN_MAP: u64 = 64 << 10;

/// Whether attention keeps no maps.
pub(crate) fn is_flash(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let pass = run.typical()?;
    let maps = attention_maps(run.lives, run.facts);
    let is_kept = |life: &&Life| {
        (pass.begin..pass.end).contains(&life.begin)
            && life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward)
    };
    let kept: Vec<&Life> = maps.iter().map(|&map| &run.lives.all[map]).filter(is_kept).collect();
    let of_softmax = |life: &Life| run.lives.is_made_by(life, Mark::SOFTMAX, 2);
    if let Some(largest) = kept.iter().max_by_key(|life| (of_softmax(life), life.bytes)) {
        if largest.bytes < MIN_MAP {
            return None;
        }
        let proof = Proof {
            site: run.site(largest),
            count: kept.len() as u32,
            bytes: kept.iter().map(|life| life.bytes).sum(),
            ..Proof::default()
        };
        return Some((Enabled::Off, proof));
    }
    let mut calls = run.made_in(pass).filter(|(_, life)| run.lives.mark(life).has(Mark::FLASH));
    let first = calls.next().filter(|_| maps.is_empty())?;
    let by = run.outermost(first.1, Mark::FLASH);
    let count = 1 + calls.count() as u32;
    Some((Enabled::On, Proof { by, count, ..Proof::default() }))
}
