//! Another batch: what grows with tokens is scaled.

use super::growth::{is_near, of_step};
use super::prelude::*;
use crate::recipes::scaled;

pub(super) static BATCH: Change = Change {
    form: "batch:K",
    does: "what grows with tokens is K times as large",
    error_percent: Some(2.0),
    cost: Cost::Batch,
    tries: |offer| offer.earlier_batch.into_iter().chain([0.75, 0.5]).map(Value::Factor).collect(),
    is_smaller_batch: true,
    scales_passes: true,
    apply: |lives, facts, value, _| scale(lives, facts, value.factor(), |_| true),
    compare: |_, a, b| compare(a, b, false),
    line: Line::Training,
    what: "the forward pass of a training step; the change is where its inputs are made",
    snippet: include_str!("snippets/batch.py"),
    called: |value, _, _| format!("{value} x the batch"),
    ..Change::PLAIN
};

/// Scales what grows with tokens, and is wanted.
///
/// # Errors
/// Nothing grows.
pub(super) fn scale(
    lives: &mut Lives,
    facts: &Facts,
    factor: f64,
    is_wanted: impl Fn(&Life) -> bool,
) -> Result<Applied, Declined> {
    let mut changed = 0;
    for life in &mut lives.all {
        if facts.grows(life) && is_wanted(life) {
            life.other *= facts.other_if_scaled(life, factor);
            life.bytes = scaled(life.bytes, factor);
            changed += 1;
        }
    }
    Applied::of(changed, Declined::NothingGrows)
}

/// The factor of the batch, or of the sequences.
pub(super) fn compare(a: &Features, b: &Features, is_sequence: bool) -> Compared {
    match of_step(a, b) {
        Err(unnamed) => unnamed,
        Ok(Some(of)) if !is_near(of.factor, 1.0) => match of.is_sequence {
            is if is == is_sequence => Compared::Came(Value::Factor(of.factor)),
            false if of.may_be_sequence => Compared::Or(Value::Factor(of.factor)),
            _ => Compared::Same,
        },
        Ok(_) => Compared::Same,
    }
}
