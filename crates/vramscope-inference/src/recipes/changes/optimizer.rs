//! Another optimizer: its temporaries and its states.

use crate::category::Category;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;
use std::collections::BTreeMap;

/// bitsandbytes keeps states of fewer elements in 32 bits (`min_8bit_size`).
const MIN_8BIT_ELEMENTS: u64 = 4096;

/// Elements that share a scale (bitsandbytes, `blocksize`).
const ELEMENTS_PER_SCALE: u64 = 256;

/// The optimizer's temporaries of each step, ascending.
pub(super) fn temporaries(lives: &Lives) -> BTreeMap<i32, Vec<usize>> {
    let mut of_steps: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    for (index, life) in lives.all.iter().enumerate() {
        if is_temporary(life) {
            of_steps.entry(life.step).or_default().push(index);
        }
    }
    of_steps
}

fn is_temporary(life: &Life) -> bool {
    life.phase == StepPhase::Optimizer
        && !life.is_of_model()
        && !matches!(life.category, Category::Gradient | Category::Communication)
        && life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Optimizer)
        && life.bytes > 512
}

/// `foreach:off`: at most two temporaries of a parameter's size at once.
pub(super) fn foreach_off(lives: &mut Lives) -> Applied {
    let mut changed = 0;
    for temporaries in temporaries(lives).into_values() {
        for (at, &index) in temporaries.iter().enumerate() {
            if let Some(&next) = temporaries.get(at + 2) {
                let end = lives.all[next].begin - 0.25;
                changed += u32::from(end < lives.all[index].end);
                lives.all[index].end = lives.all[index].end.min(end);
            }
        }
    }
    Applied { changed, had_it: changed == 0, ..Applied::default() }
}

/// `optimizer:fused`: no temporaries.
pub(super) fn fused(lives: &mut Lives) -> Applied {
    let mut changed = 0;
    for index in temporaries(lives).into_values().flatten() {
        lives.all[index].drop();
        changed += 1;
    }
    Applied { changed, had_it: changed == 0, ..Applied::default() }
}

/// `optimizer:sgd`: neither temporaries nor states.
///
/// # Errors
/// There are no states.
pub(super) fn sgd(lives: &mut Lives) -> Result<Applied, Declined> {
    fused(lives);
    with_states(lives, |life| {
        life.drop();
        None
    })
}

/// `optimizer:8bit`: an element of a state has one byte, and 256 share a scale.
///
/// # Errors
/// There are no states.
pub(super) fn eight_bit(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    fused(lives);
    with_states(lives, |life| {
        let elements = life.bytes / state_element(life, facts);
        if elements < MIN_8BIT_ELEMENTS {
            return None;
        }
        life.bytes = elements;
        let scales = Life {
            begin: life.begin + 0.25,
            bytes: elements.div_ceil(ELEMENTS_PER_SCALE) * 4,
            ..*life
        };
        Some(scales)
    })
}

/// `optimizer:adafactor`: a matrix has one state for its rows and one for its columns.
///
/// # Errors
/// There are no states.
pub(super) fn adafactor(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    if facts.widths.is_empty() {
        return Err(Declined::NoTokens);
    }
    let mut rows = true;
    with_states(lives, |life| {
        let element = state_element(life, facts);
        let elements = life.bytes / element;
        // Rows and columns of the matrix: a width divides its elements.
        let width = facts
            .widths
            .iter()
            .rev()
            .find(|&&width| width > 1 && elements > width && elements.is_multiple_of(width));
        if let Some(&width) = width {
            let of = if rows { width } else { elements / width };
            life.bytes = of * element;
        }
        rows = !rows;
        None
    })
}

/// `optimizer:muon`: a matrix has one state. `AdamW` updates vectors, the embedding and the head.
///
/// # Errors
/// There are no states.
pub(super) fn muon(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let largest = facts.parameters.keys().next_back().copied().unwrap_or(0);
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    with_states(lives, |life| {
        let is_vector = life.bytes / state_element(life, facts) < MIN_8BIT_ELEMENTS;
        if is_vector || life.bytes == largest {
            return None;
        }
        // Of the two states of a matrix one stays.
        let count = seen.entry(life.bytes).or_default();
        *count += 1;
        if count.is_multiple_of(2) {
            life.drop();
        }
        None
    })
}

/// Bytes of an element of a state: those of the parameters, and four for a state with twice the
/// size of a parameter in 16 bits.
fn state_element(life: &Life, facts: &Facts) -> u64 {
    let is_wide = facts.element == 2
        && !facts.parameters.contains_key(&life.bytes)
        && facts.parameters.contains_key(&(life.bytes / 2));
    if is_wide { 4 } else { facts.element }
}

/// Changes every state. The change may return a block that is made beside it.
fn with_states(
    lives: &mut Lives,
    mut change: impl FnMut(&mut Life) -> Option<Life>,
) -> Result<Applied, Declined> {
    let mut new = Vec::new();
    let mut changed = 0;
    for life in &mut lives.all {
        if life.category == Category::OptimizerState {
            new.extend(change(life));
            changed += 1;
        }
    }
    lives.all.extend(new);
    if changed == 0 {
        Err(Declined::NoStates)
    } else {
        Ok(Applied { changed, ..Applied::default() })
    }
}
