//! Logits without a copy in 32 bits.

use super::chunked_loss::CHUNKED_LOSS;
use super::prelude::*;
use crate::recipes::facts::logits;

pub(super) static UPCAST_OFF: Change = Change {
    form: "upcast:off",
    does: "the copy of the logits in 32 bits goes, and what is computed from it is half as large",
    error_percent: Some(1.0),
    cause: Some("fp32 copy of the logits: a loss that takes bf16"),
    apply: |lives, facts, _, _| without_upcast(lives, facts),
    is_on: Some(is_on),
    on: ["logits are in 16 bits, and no line outside of the loss copies them", "such a copy"],
    proof: |state, words| match state {
        Enabled::On => format!("logits{} stay in 16 bits: {}", words.at, words.bytes),
        _ => format!("logits are copied to 32 bits{}: {}", words.at, words.bytes),
    },
    // Logits of a part are none of a pass.
    compare: |change, a, b| match CHUNKED_LOSS.compared(a, b) {
        Compared::Same => came(change, a, b),
        _ => Compared::Same,
    },
    must_stay: true,
    line: Line::Loss,
    what: "the loss of a copy in 32 bits",
    snippet: include_str!("snippets/upcast_off.py"),
    called: |_, _| "Compute the loss without an fp32 copy of the logits".to_owned(),
    ..Change::PLAIN
};

/// A copy of 16-bit logits in 32 bits, which no function of the loss makes.
fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let pass = run.typical().filter(|pass| pass.backward.is_some())?;
    let blocks = run.lives.born(pass.begin, pass.end);
    let logits = logits(run.lives, run.facts, blocks, pass)?;
    let first = &run.lives.all[logits.block];
    let copy = run
        .made_in(pass)
        .map(|(_, life)| life)
        .filter(|life| life.begin > first.begin)
        .find(|life| Some(life.bytes) == first.bytes.checked_mul(2));
    let proof =
        |of: &Life| Proof { site: run.site(of), count: 1, bytes: of.bytes, ..Proof::default() };
    if let Some(copy) = copy {
        // A loss under autocast copies logits itself.
        let is_of_loss = run.lives.is_made_by(copy, Mark::CROSS_ENTROPY, usize::MAX);
        return (!is_of_loss).then(|| (Enabled::Off, proof(copy)));
    }
    let is_low =
        first.bytes == 2 * logits.elements && (run.facts.may_cast || run.element() == Some(2));
    is_low.then(|| (Enabled::On, proof(first)))
}

/// # Errors
/// A pass has no logits, or they are not copied.
fn without_upcast(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let mut changed = 0;
    for pass in &facts.passes {
        let blocks = lives.born(pass.begin, pass.end);
        let logits = logits(lives, facts, blocks, pass).ok_or(Declined::NoLogits)?;
        if !logits.drop_upcast(lives, pass) {
            return Err(Declined::NoUpcast);
        }
        changed += 1;
    }
    Applied::of(changed, Declined::NoLogits)
}
