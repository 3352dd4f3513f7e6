//! The optimizer updates a parameter as soon as its gradient is there.

use super::optimizer::temporaries;
use crate::category::Category;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;
use rustc_hash::FxHashMap;

/// `optimizer_in_backward`: a gradient dies at birth, that of a weight used twice at the end of
/// backward. Each update needs two temporaries of its size. States are born there.
///
/// # Errors
/// No backward pass makes gradients.
pub(super) fn optimizer_in_backward(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    for index in temporaries(lives).into_values().flatten() {
        lives.all[index].drop();
    }
    let mut changed = 0;
    for step in lives.steps() {
        let Some(backward) = lives.span(step, StepPhase::Backward) else { continue };
        changed += of_step(lives, facts, step, backward);
    }
    if changed == 0 {
        Err(Declined::NoGradients)
    } else {
        Ok(Applied { changed, ..Applied::default() })
    }
}

fn of_step(lives: &mut Lives, facts: &Facts, step: i32, backward: (f64, f64)) -> u32 {
    let is_of_step = |life: &Life| life.step == step && life.phase == StepPhase::Backward;
    let temporary = |life: &&Life| is_of_step(life) && life.category == Category::Temporary;
    // A second gradient of one weight is a temporary that is added to the first.
    let mut last: FxHashMap<u64, f64> = FxHashMap::default();
    for life in lives.all.iter().filter(temporary) {
        let begin = last.entry(life.bytes).or_insert(life.begin);
        *begin = begin.max(life.begin);
    }
    let is_tied = |life: &Life| {
        facts.parameters.get(&life.bytes) == Some(&1)
            && last.get(&life.bytes).is_some_and(|&begin| begin > life.begin)
    };
    let mut new = Vec::new();
    let mut births: FxHashMap<u64, Vec<f64>> = FxHashMap::default();
    for life in &mut lives.all {
        if life.category != Category::Gradient || life.step != step {
            continue;
        }
        births.entry(life.bytes).or_default().push(life.begin);
        if life.phase != StepPhase::Backward {
            continue;
        }
        let end = if is_tied(life) { backward.1 - 0.5 } else { life.begin + 0.5 };
        for at in [0.15, 0.1] {
            let begin = end - at;
            new.push(Life { begin, end, category: Category::Temporary, is_new: true, ..*life });
        }
        life.end = end;
    }
    let states = lives.all.iter_mut().filter(|life| {
        life.category == Category::OptimizerState
            && life.phase == StepPhase::Optimizer
            && life.step == step
            && life.bytes > 512
    });
    for state in states {
        if let Some(births) = births.get(&state.bytes) {
            state.begin = births[births.len() / 2] + 0.3;
        }
    }
    let changed = new.len() as u32 / 2;
    lives.all.extend(new);
    changed
}
