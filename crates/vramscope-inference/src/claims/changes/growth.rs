//! By what sizes differ between two runs of a program.

use super::prelude::*;
use super::{autocast, params_bf16};
use crate::evidence::traits::Made;
use rustc_hash::FxHashMap;

/// How sizes differ that grow with tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) factor: f64,
    /// A size grows with the square of the factor.
    has_square: bool,
    /// A size does not grow: it is that of one sequence.
    has_constant: bool,
    /// A size does not grow, but there are as many more of it: one for each token.
    has_more: bool,
}

/// Factors of a batch are parts of this: halves, thirds, eighths.
const PARTS: f64 = 24.0;

/// How far a factor may be from such a part.
const MAX_PART_ERROR: f64 = 0.03;

/// How far inputs may be from the factor: each text may have one token more.
const MAX_INPUT_ERROR: f64 = 0.01;

/// Fewer call sites in both runs tell nothing.
const MIN_SITES: usize = 4;

/// The factor of most call sites, in percent of them.
const MOST: usize = 70;

pub(super) fn is_near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.02
}

pub(super) fn growth(a: &FxHashMap<u64, Made>, b: &FxHashMap<u64, Made>) -> Option<Growth> {
    let pairs = a.iter().filter_map(|(site, a)| Some((*a, *b.get(site)?)));
    let pairs: Vec<(Made, Made)> = pairs.filter(|(a, _)| a.bytes > 0).collect();
    let mut ratios: Vec<f64> = pairs.iter().map(|(a, b)| b.each() / a.each()).collect();
    if ratios.len() < MIN_SITES {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let factor = ratios[ratios.len() / 2];
    let near = ratios.iter().filter(|&&ratio| is_near(ratio, factor)).count();
    let has_square =
        !is_near(factor, 1.0) && ratios.iter().any(|&ratio| is_near(ratio, factor * factor));
    let constant = || pairs.iter().filter(|(a, b)| is_near(b.each() / a.each(), 1.0));
    let has_constant = constant().any(|(a, b)| a.count == b.count);
    let more = |a: &Made, b: &Made| is_near(f64::from(b.count) / f64::from(a.count), factor);
    let has_more = !is_near(factor, 1.0) && constant().any(|(a, b)| more(a, b));
    let is_most = near * 100 >= ratios.len() * MOST;
    is_most.then_some(Growth { factor, has_square, has_constant, has_more })
}

/// Whether a size of one sequence grows by the factor: positions, which the program makes itself.
/// Sequences are longer than a batch has of them.
fn has_part(
    a: &FxHashMap<u64, Made>,
    b: &FxHashMap<u64, Made>,
    tokens: Option<u64>,
    factor: f64,
) -> bool {
    let tokens = tokens.unwrap_or(0);
    let is_of_sequence = |bytes: u64| {
        let length = bytes / 8;
        let fits = length > 0 && bytes.is_multiple_of(8) && tokens.is_multiple_of(length);
        fits && (2..length).contains(&(tokens / length))
    };
    a.iter().any(|(site, of)| {
        let after = b.get(site).filter(|after| is_near(after.each() / of.each(), factor));
        of.is_own && of.count <= 2 && after.is_some() && is_of_sequence(of.each() as u64)
    })
}

/// Three digits of a factor: `0.333`.
pub(super) fn rounded(factor: f64) -> f64 {
    (factor * 1000.0).round() / 1000.0
}

/// How the batch of a step differs.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfStep {
    /// Its size, as a factor.
    pub(super) factor: f64,
    /// Micro-batches of a step, before and after.
    pub(super) passes: [u32; 2],
    /// Sequences are longer.
    pub(super) is_sequence: bool,
    /// Sequences may be longer: sizes do not tell.
    pub(super) may_be_sequence: bool,
}

/// Whether sizes differ for another reason than the batch: other elements.
pub(super) fn has_other_size(a: &Features, b: &Features) -> bool {
    let is_cast = [&autocast::BF16, &autocast::OFF];
    params_bf16::is_half(a, b)
        || is_cast.iter().any(|change| matches!(change.compared(a, b), Compared::Came(_)))
}

/// How the batch of a step differs; `Ok(None)` if that is not known.
///
/// # Errors
/// Sizes differ in a way that has no name.
pub(super) fn of_step(a: &Features, b: &Features) -> Result<Option<OfStep>, Compared> {
    let has_other_size = has_other_size(a, b);
    let (a, b) = (&a.traits, &b.traits);
    let (Some(before), Some(after)) = (a.passes, b.passes) else { return Ok(None) };
    if a.training.is_empty() || b.training.is_empty() {
        return Ok(None);
    }
    let of_pass = if has_other_size {
        let unchanged =
            Growth { factor: 1.0, has_square: false, has_constant: true, has_more: false };
        (a.inputs > 0 && a.inputs == b.inputs).then_some(unchanged)
    } else {
        growth(&a.training, &b.training)
    };
    let Growth { factor, has_square, has_constant, has_more } = of_pass.ok_or(Compared::Unnamed)?;
    let of_step = rounded(factor * f64::from(after) / f64::from(before));
    let mut found = OfStep {
        factor: of_step,
        passes: [before, after],
        is_sequence: false,
        may_be_sequence: false,
    };
    if is_near(of_step, 1.0) {
        return Ok(Some(found));
    }
    // Texts of other lengths are no change of the program, nor is an odd factor.
    let part = (factor * PARTS - (factor * PARTS).round()).abs();
    // Inputs grow by the factor, too. Else something else changed.
    let of_inputs = b.inputs as f64 / (a.inputs as f64).max(1.0);
    let is_other =
        a.inputs > 0 && b.inputs > 0 && (of_inputs / factor - 1.0).abs() > MAX_INPUT_ERROR;
    if !(a.is_steady && b.is_steady) || part > MAX_PART_ERROR || is_other {
        return Err(Compared::Unnamed);
    }
    // Images have no tokens. Micro-batches are parts of a batch.
    let has_tokens = after == before && a.tokens.is_some();
    let has_part = || has_part(&a.training, &b.training, a.tokens, factor);
    found.may_be_sequence = has_tokens && (!has_constant || has_more);
    found.is_sequence =
        (has_tokens && (has_square || has_more)) || (found.may_be_sequence && has_part());
    Ok(Some(found))
}
