//! Longer sequences.

use super::batch::compare;
use super::prelude::*;
use crate::recipes::facts::attention_maps;
use crate::recipes::scaled;

pub(super) static SEQUENCE: Change = Change {
    form: "sequence:K",
    does: "what grows with tokens is K times as large, and attention maps grow with the square",
    error_percent: Some(2.0),
    cost: Cost::Batch,
    scales_passes: true,
    apply: |lives, facts, value, _| sequence(lives, facts, value.factor()),
    compare: |_, a, b| compare(a, b, true),
    line: Line::Training,
    what: "the forward pass of a training step; the change is where its inputs are made",
    snippet: include_str!("snippets/sequence.py"),
    called: |value, _| part_of(value, "sequence length"),
    found: Some(|maps, _| match maps {
        0 => String::new(),
        _ => format!("{maps} maps grow with the square"),
    }),
    ..Change::PLAIN
};

/// # Errors
/// The number of tokens is not known, another input may get longer, or nothing grows.
fn sequence(lives: &mut Lives, facts: &Facts, factor: f64) -> Result<Applied, Declined> {
    if facts.tokens.is_none() {
        return Err(Declined::NoTokens);
    }
    if facts.has_other_input(lives) {
        return Err(Declined::TwoInputs);
    }
    let maps = attention_maps(lives, facts);
    let mut next = maps.iter().copied().peekable();
    let mut changed = 0;
    for (index, life) in lives.all.iter_mut().enumerate() {
        let is_map = next.next_if_eq(&index).is_some();
        if facts.grows(life) {
            let is_square = is_map && life.category != Category::Input;
            let factor = if is_square { factor * factor } else { factor };
            life.other *= facts.other_if_scaled(life, factor);
            life.bytes = scaled(life.bytes, factor);
            changed += 1;
        }
    }
    let applied = Applied::of(changed, Declined::NothingGrows)?;
    Ok(Applied { found: maps.len() as u32, ..applied })
}
