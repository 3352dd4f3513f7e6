//! The first backward pass failed.

use super::repeat::close_spans;
use super::{Rest, made};
use crate::category::Category;
use crate::recipes::facts::{Facts, logits_until};
use crate::recipes::lives::{Failure, Life, Lives, Span};
use crate::step_phases::StepPhase;
use vramscope_trace::slicing::Budget;

/// What forward kept is freed in reverse order, each with a temporary of its size. Gradients come
/// in the order of the parameters, from the last. Then the optimizer's states with temporaries:
/// two for each parameter, as `AdamW` has, because the optimizer cannot be seen yet. Then forward
/// and backward once more.
pub(super) async fn complete(
    lives: &mut Lives,
    facts: &Facts,
    failure: Failure,
    step: i32,
    budget: &mut Budget,
) -> Rest {
    let (Some(forward), Some(backward)) =
        (lives.span(step, StepPhase::Forward), lives.span(step, StepPhase::Backward))
    else {
        return super::unknown(lives, failure, StepPhase::Backward, step);
    };
    let at = failure.at;
    let of_data = |life: &Life| {
        matches!(life.category, Category::Activation | Category::Temporary | Category::Unknown)
    };
    let blocks = lives.born(forward.0, forward.1);
    let kept: Vec<usize> = blocks
        .clone()
        .rev()
        .filter(|&index| lives.all[index].stays() && of_data(&lives.all[index]))
        .collect();
    let logits = logits_until(lives, facts, blocks, forward.1).map(|logits| logits.block);
    let temporary = |begin: f64, end: f64, bytes: u64| Life {
        bytes,
        ..made(failure, begin, end, Category::Temporary, StepPhase::Backward, step)
    };
    budget.charge(2 * lives.all.len() as u64).await;
    let mut new = workspaces(lives, backward.0, at);
    // The failed request may be a workspace.
    if new.iter().all(|workspace| workspace.bytes != failure.bytes) {
        new.push(temporary(at, at + 6.0, failure.bytes));
    }
    for life in &mut lives.all {
        if life.begin >= backward.0 && life.stays() && life.category == Category::Temporary {
            life.end = at + 6.0;
        }
    }
    budget.charge(lives.all.len() as u64).await;
    let parameters: Vec<u64> = lives
        .all
        .iter()
        .rev()
        .filter(|life| life.category == Category::Parameter && life.stays())
        .map(|life| life.bytes)
        .collect();
    let from = at + 8.0;
    let end = from + 2.0 * kept.len() as f64 + 2.0;
    let logits_bytes = logits.map_or(0, |index| lives.all[index].bytes);
    for (nth, &index) in kept.iter().enumerate() {
        let time = from + 2.0 * nth as f64;
        let life = &mut lives.all[index];
        life.dies_in = Some((StepPhase::Backward, step));
        if Some(index) == logits {
            life.end = end + 5.0;
            continue;
        }
        if life.bytes != logits_bytes && nth > 0 {
            new.push(temporary(time, time + 3.0, life.bytes));
        }
        life.end = if nth > 0 { time + 1.0 } else { at + 7.0 };
    }
    let have = gradients_die(lives, end + 20.0, step);
    let missing = parameters.get(have..).unwrap_or_default();
    let count = missing.len() as f64;
    for (nth, &bytes) in missing.iter().enumerate() {
        let begin = from + 2.0 * kept.len() as f64 * (nth + 1) as f64 / (count + 1.0);
        let gradient =
            made(failure, begin, end + 20.0, Category::Gradient, StepPhase::Backward, step);
        let dies_in = Some((StepPhase::Optimizer, step));
        new.push(Life { bytes, dies_in, ..gradient });
    }
    update(&mut new, &parameters, failure, step, end);
    lives.all.append(&mut new);
    close_spans(lives, at, end + 5.5);
    let optimizer = Span { begin: end + 5.5, end: end + 20.5, phase: StepPhase::Optimizer, step };
    lives.spans.push(optimizer);
    if let Some(index) = logits {
        lives.all[index].end = f64::INFINITY;
        lives.all[index].dies_in = None;
    }
    let logits = logits.map(|index| (lives.all[index].begin, lives.all[index].bytes));
    lives.sort(budget).await;
    again(lives, facts, step, end, backward.0, logits, budget).await;
    Rest::Backward
}

/// Lets the gradients that backward has made die at a time, after the optimizer's step. Returns how
/// many there are.
fn gradients_die(lives: &mut Lives, at: f64, step: i32) -> usize {
    let is_gradient = |life: &&mut Life| life.category == Category::Gradient && life.stays();
    let mut count = 0;
    for life in lives.all.iter_mut().filter(is_gradient) {
        life.end = at;
        life.dies_in = Some((StepPhase::Optimizer, step));
        count += 1;
    }
    count
}

/// The workspaces that backward makes at `begin`. It runs in a thread of its own with its own
/// handle of cuBLAS, so it makes those that forward made and that stay once more, unless it has
/// them.
fn workspaces(lives: &Lives, backward: f64, begin: f64) -> Vec<Life> {
    let all = || {
        let of_run = |life: &&Life| life.category == Category::Workspace && life.begin >= 0.0;
        lives.all.iter().filter(of_run)
    };
    if all().any(|life| life.begin >= backward) {
        return Vec::new();
    }
    let of_forward = all().filter(|life| life.stays() && life.phase == StepPhase::Forward);
    of_forward
        .map(|life| Life { begin, phase: StepPhase::Backward, stack: None, ..*life })
        .collect()
}

/// Adds the states of `AdamW`, and a temporary for each parameter.
fn update(new: &mut Vec<Life>, parameters: &[u64], failure: Failure, step: i32, end: f64) {
    let spread = 1.0 / parameters.len().max(1) as f64;
    for (nth, &bytes) in parameters.iter().enumerate() {
        let at = spread * nth as f64;
        let block = |begin: f64, end: f64, category: Category| Life {
            bytes,
            ..made(failure, begin, end, category, StepPhase::Optimizer, step)
        };
        let state = block(end + 6.0 + at, f64::INFINITY, Category::OptimizerState);
        new.extend([state; 2]);
        new.push(block(end + 10.0 + at, end + 15.0, Category::Temporary));
    }
}

/// Adds forward and backward once more. The old logits live to the new backward pass.
async fn again(
    lives: &mut Lives,
    facts: &Facts,
    step: i32,
    end: f64,
    backward: f64,
    logits: Option<(f64, u64)>,
    budget: &mut Budget,
) {
    budget.charge(2 * lives.all.len() as u64).await;
    let (from, to, at) = (facts.first_input, end + 5.0, end + 30.0);
    let moved = |time: f64| at + time - from;
    let mut new: Vec<Life> = lives.all[lives.born(from, to)]
        .iter()
        .filter(|life| !life.is_of_model())
        .map(|life| Life {
            begin: moved(life.begin),
            end: moved(life.end),
            step: step + 1,
            dies_in: life.dies_in.map(|(phase, _)| (phase, step + 1)),
            ..*life
        })
        .collect();
    if let Some((begin, bytes)) = logits {
        let old = lives.all.iter_mut().find(|life| life.begin == begin && life.bytes == bytes);
        if let Some(old) = old {
            old.end = moved(backward) - 0.2;
        }
    }
    lives.all.append(&mut new);
    let spans: Vec<Span> = lives
        .spans
        .iter()
        .filter(|span| span.end > from && span.begin < to)
        .map(|span| Span {
            begin: moved(span.begin.max(from)),
            end: moved(span.end.min(to)),
            phase: span.phase,
            step: step + 1,
        })
        .collect();
    lives.spans.extend(spans);
    lives.sort(budget).await;
}
