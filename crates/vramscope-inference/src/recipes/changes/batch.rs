//! Another batch, or longer sequences: what grows with tokens is scaled.

use crate::category::Category;
use crate::recipes::facts::{Facts, attention_maps};
use crate::recipes::lives::Lives;
use crate::recipes::{Applied, Declined, scaled};

/// `batch:K`.
pub(super) fn batch(lives: &mut Lives, facts: &Facts, factor: f64) -> Applied {
    let mut changed = 0;
    for life in &mut lives.all {
        if facts.grows(life) {
            life.bytes = scaled(life.bytes, factor);
            changed += 1;
        }
    }
    Applied { changed, ..Applied::default() }
}

/// `sequence:K`: maps of attention grow with the square.
///
/// # Errors
/// The number of tokens is not known.
pub(super) fn sequence(lives: &mut Lives, facts: &Facts, factor: f64) -> Result<Applied, Declined> {
    if facts.tokens.is_none() {
        return Err(Declined::NoTokens);
    }
    let maps = attention_maps(lives, facts);
    let mut next = maps.iter().copied().peekable();
    for (index, life) in lives.all.iter_mut().enumerate() {
        let is_map = next.next_if_eq(&index).is_some();
        if facts.grows(life) {
            let is_square = is_map && life.category != Category::Input;
            let factor = if is_square { factor * factor } else { factor };
            life.bytes = scaled(life.bytes, factor);
        }
    }
    Ok(Applied { changed: maps.len() as u32, ..Applied::default() })
}

/// `eval_batch:K`.
///
/// # Errors
/// No pass is an evaluation.
pub(super) fn evaluation(
    lives: &mut Lives,
    facts: &Facts,
    factor: f64,
) -> Result<Applied, Declined> {
    if facts.passes.iter().all(|pass| pass.backward.is_some()) {
        return Err(Declined::NoEvaluation);
    }
    let mut changed = 0;
    for life in &mut lives.all {
        if facts.grows(life) && facts.is_in_evaluation(life.begin) {
            life.bytes = scaled(life.bytes, factor);
            changed += 1;
        }
    }
    Ok(Applied { changed, ..Applied::default() })
}
