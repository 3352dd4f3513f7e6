//! A pass of another size failed, after whole training steps.

use super::{Failure, Rest};
use crate::recipes::facts::{Facts, Pass};
use crate::recipes::lives::{Life, Lives, Span};
use crate::step_phases::StepPhase;
use vramscope_trace::slicing::Budget;

/// The last training pass' forward, scaled by the inputs: twice, because the graph of the first
/// lives until the second has replaced it; once if an evaluation is in the file.
pub(super) async fn complete(
    lives: &mut Lives,
    facts: &Facts,
    failure: Failure,
    step: i32,
    trained: &Pass,
    budget: &mut Budget,
) -> Option<Rest> {
    let backward = trained.backward?;
    budget.charge(lives.all.len() as u64).await;
    let mut own = facts.last_inputs(lives);
    own.retain(|input| input.begin > backward.end);
    let begin = own.iter().map(|input| input.begin).reduce(f64::min)?;
    let of_trained: Vec<Life> =
        trained.inputs.iter().filter_map(|&index| lives.all.get(index as usize)).copied().collect();
    let before = of_trained.iter().map(|input| input.bytes).max()?;
    let now = own.iter().map(|input| input.bytes).max()?;
    let factor = now as f64 / before as f64;
    let from = of_trained.iter().map(|input| input.begin).reduce(f64::min)?;
    let to = trained.end;
    let is_known = facts.passes.iter().any(|pass| {
        pass.backward.is_none() && pass.begin >= backward.end && pass.end <= begin + 1.0
    });
    budget.charge(2 * lives.all.len() as u64).await;
    let rounds = if is_known { 1 } else { 2 };
    lives.all.retain(|life| life.begin < begin || life.is_of_model());
    let (at, length) = (failure.at + 10.0, to - from + 4.0);
    let end = at + f64::from(rounds) * length;
    for life in &mut lives.all {
        if life.stays() && !life.is_of_model() && life.begin >= backward.end {
            life.end = end - 1.0;
        }
    }
    let mut new = Vec::new();
    for life in &lives.all[lives.born(from, to)] {
        if life.is_of_model() {
            continue;
        }
        let bytes =
            if facts.grows(life) { crate::recipes::scaled(life.bytes, factor) } else { life.bytes };
        for round in 0..rounds {
            let offset = at + f64::from(round) * length - from;
            let end = if life.end < to { life.end + offset } else { end - 1.0 + f64::from(round) };
            new.push(Life {
                begin: life.begin + offset,
                end,
                bytes,
                phase: StepPhase::Forward,
                step,
                dies_in: Some((StepPhase::Forward, step)),
                ..*life
            });
        }
    }
    lives.all.append(&mut new);
    let newest = of_trained.iter().map(|input| input.begin).fold(from, f64::max);
    let made = newest - from + 1.0;
    lives.spans.retain(|span| span.begin < begin);
    if let Some(last) = lives.spans.last_mut() {
        last.end = last.end.min(begin);
    }
    for round in 0..rounds {
        let start = at + f64::from(round) * length;
        let span = |begin, end, phase| Span { begin, end, phase, step };
        lives.spans.push(span(start - 0.5, start + made, StepPhase::Other));
        lives.spans.push(span(start + made, start + length - 0.6, StepPhase::Forward));
    }
    let after = Span { begin: end - 0.6, end: end + 9.0, phase: StepPhase::Other, step };
    lives.spans.push(after);
    lives.sort(budget).await;
    Some(Rest::Evaluation)
}
