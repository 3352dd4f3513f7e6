//! Autocast without a cache of weights.

use super::autocast;
use super::prelude::*;
use crate::evidence::autocast::are_casts_short;

/// A cast of a weight dies after its use, unless the graph keeps it for backward.
pub(super) static AUTOCAST_CACHE_OFF: Change = Change {
    form: "autocast_cache:off",
    does: "casts of weights that backward does not need die after their use",
    error_percent: Some(1.0),
    cause: Some("autocast copies of weights: bf16 weights"),
    apply: |lives, facts, _, _| without_cast_cache(lives, facts),
    is_on: Some(are_casts_short),
    on: ["casts that backward does not need die within 12 events", "they live on"],
    proof: |state, words| {
        let casts = words.counted("cast");
        match state {
            Enabled::On => {
                format!("{casts} without use in backward die after their use{}", words.at)
            }
            _ => format!(
                "{casts} without use in backward live to the end of the pass{}: {}",
                words.at, words.bytes
            ),
        }
    },
    compare: |change, a, b| {
        let others = [&autocast::BF16, &autocast::OFF];
        let is_same = others.iter().all(|other| other.compared(a, b) == Compared::Same);
        if is_same { came(change, a, b) } else { Compared::Same }
    },
    line: Line::Training,
    what: "the forward pass of a training step",
    snippet: include_str!("snippets/autocast_cache_off.py"),
    called: |_, _| "Use autocast(cache_enabled=False)".to_owned(),
    ..Change::PLAIN
};

/// # Errors
/// Autocast is off, or keeps no cast beyond its use.
fn without_cast_cache(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    if !facts.has_autocast {
        return Err(Declined::NoAutocast);
    }
    let births: Vec<f64> = lives.all.iter().map(|life| life.begin).collect();
    let mut changed = 0;
    for life in &mut lives.all {
        let is_cached = life.is_weight_copy
            && life.dies_in.is_some_and(|(phase, _)| phase != StepPhase::Backward);
        let used = births.partition_point(|&birth| birth <= life.begin) + 1;
        let Some(end) = births.get(used).map(|birth| birth + 0.25).filter(|_| is_cached) else {
            continue;
        };
        if end < life.end {
            life.end = end;
            changed += 1;
        }
    }
    Applied::of(changed, Declined::HadIt)
}
