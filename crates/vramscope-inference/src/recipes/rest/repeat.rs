//! Repeats a whole step in place of the one that failed.

use super::Rest;
use crate::category::Category;
use crate::recipes::facts::{Facts, Pass};
use crate::recipes::lives::{Failure, Life, Lives, Span};
use crate::recipes::scaled;
use crate::step_phases::StepPhase;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;

/// How often a whole step is repeated: fragmentation grows, and some runs fail in a later step.
const REPETITIONS: i32 = 3;

/// The part of the run to repeat.
struct Unit {
    begin: f64,
    end: f64,
    /// Where its backward pass begins.
    backward: f64,
    /// How much larger it is than in the recording.
    factor: f64,
    /// The step of its backward pass. An evaluation after that belongs to the next step.
    step: i32,
}

/// Drops the failed step, and repeats the whole one before it in its place. What grows with tokens
/// is larger by a factor: that of the inputs.
pub(super) async fn steps(
    lives: &mut Lives,
    facts: &Facts,
    failure: Failure,
    step: i32,
    factor: f64,
    budget: &mut Budget,
) -> Rest {
    budget.charge(2 * lives.all.len() as u64).await;
    let of = |step: i32| lives.spans.iter().filter(move |span| span.step == step);
    let begin = of(step - 1).map(|span| span.begin).fold(f64::INFINITY, f64::min);
    let end = of(step).map(|span| span.begin).fold(f64::INFINITY, f64::min);
    let end = after_evaluation(lives, facts, failure, step).unwrap_or(end);
    let begin = begin.max(facts.first_input);
    let backward = lives.span(step - 1, StepPhase::Backward).map_or(end, |span| span.0);
    let unit = Unit { begin, end, backward, factor, step: step - 1 };
    let border = Border::of(lives, facts, &unit, step);
    lives.all.retain(|life| life.begin < end || life.is_of_model());
    lives.spans.retain(|span| span.begin < end);
    for life in &mut lives.all {
        let is_of_run = !life.is_of_model() && life.begin >= facts.first_input;
        if life.end >= end && is_of_run {
            life.end = f64::INFINITY;
        }
    }
    lives.sort(budget).await;
    let mut at = failure.at + 4.0;
    for repetition in 0..REPETITIONS {
        repeat(lives, facts, &unit, at, step + repetition, &border, budget).await;
        at += end - begin + 1.0;
    }
    Rest::Repeated
}

/// When the pass that failed begins, if an evaluation came before it in its step, and in the step
/// before none did. What the evaluation left lives on into the failed pass, and comes again.
fn after_evaluation(lives: &Lives, facts: &Facts, failure: Failure, step: i32) -> Option<f64> {
    let passes = facts.passes.iter().filter(|pass| pass.begin < failure.at);
    let passes: Vec<&Pass> = passes.collect();
    let (failed, before) = passes.split_last()?;
    let is_evaluation = |pass: &Pass, of: i32| pass.step == of && pass.backward.is_none();
    let count = |of: i32| before.iter().filter(|pass| is_evaluation(pass, of)).count();
    if count(step) <= count(step - 1) {
        return None;
    }
    let last = before.last().filter(|pass| is_evaluation(pass, step))?;
    let inputs = lives.all[lives.born(last.end, failed.begin)].iter();
    let inputs = inputs.filter(|life| life.category == Category::Input).map(|life| life.begin);
    Some(inputs.fold(failed.begin, f64::min))
}

/// What lives on from a step into the next, and how far it lives into that.
struct Border(FxHashMap<(Option<StackId>, u64), VecDeque<Option<f64>>>);

impl Border {
    /// Reads it at the begin of the unit, if a step lies before it; else at its end.
    fn of(lives: &Lives, facts: &Facts, unit: &Unit, step: i32) -> Self {
        let has_before = lives.span(step - 2, StepPhase::Backward).is_some();
        let mut border = Self(FxHashMap::default());
        if !has_before {
            return border;
        }
        let first = lives.spans.iter().find(|span| span.step == step - 2);
        let from = first.map_or(facts.first_input, |span| span.begin).max(facts.first_input);
        for life in &lives.all[lives.born(from, unit.begin)] {
            if !life.is_of_model() && life.end >= unit.begin {
                let into = (life.end < unit.end).then_some(life.end - unit.begin);
                border.0.entry((life.stack, life.bytes)).or_default().push_back(into);
            }
        }
        border
    }

    /// How far blocks that live on from a unit live into the next; `None` if they stay, and the
    /// default if nothing like them was seen.
    fn next_ends(&self) -> impl FnMut(&Life, f64) -> Option<f64> {
        let mut left = self.0.clone();
        move |life, default| match left
            .get_mut(&(life.stack, life.bytes))
            .and_then(VecDeque::pop_front)
        {
            Some(into) => into,
            None => Some(default),
        }
    }
}

/// Adds the unit's blocks once more at a time.
async fn repeat(
    lives: &mut Lives,
    facts: &Facts,
    unit: &Unit,
    at: f64,
    step: i32,
    border: &Border,
    budget: &mut Budget,
) {
    budget.charge(2 * lives.all.len() as u64).await;
    let moved = |time: f64| at + time - unit.begin;
    let step_of = |of: i32| if of > unit.step { step + 1 } else { step };
    let mut new: Vec<Life> = lives.all[lives.born(unit.begin, unit.end)]
        .iter()
        .filter(|life| !life.is_of_model())
        .map(|life| Life {
            begin: moved(life.begin),
            end: if life.end < unit.end { moved(life.end) } else { f64::INFINITY },
            bytes: if unit.factor != 1.0 && facts.grows(life) {
                scaled(life.bytes, unit.factor)
            } else {
                life.bytes
            },
            step: step_of(life.step),
            dies_in: life.dies_in.map(|(phase, of)| (phase, step_of(of))),
            ..*life
        })
        .collect();
    // Old logits and gradients.
    let mut next_end = border.next_ends();
    for life in &mut lives.all {
        let is_of_run = !life.is_of_model() && life.begin >= facts.first_input;
        if life.stays() && life.begin < at && is_of_run {
            let default = unit.backward - unit.begin - 0.2;
            if let Some(into) = next_end(life, default) {
                life.end = at + into;
                life.dies_in = Some((StepPhase::Forward, step));
            }
        }
    }
    lives.all.append(&mut new);
    let spans: Vec<Span> = lives
        .spans
        .iter()
        .filter(|span| span.end > unit.begin && span.begin < unit.end)
        .map(|span| Span {
            begin: moved(span.begin.max(unit.begin)),
            end: moved(span.end.min(unit.end)),
            phase: span.phase,
            step: step_of(span.step),
        })
        .collect();
    lives.spans.extend(spans);
    lives.spans.sort_by(|a, b| a.begin.total_cmp(&b.begin));
    lives.sort(budget).await;
}

/// The first step of the optimizer failed: adds the states that are missing, a temporary for each,
/// then forward and backward once more.
pub(super) async fn optimizer(
    lives: &mut Lives,
    facts: &Facts,
    failure: Failure,
    step: i32,
    budget: &mut Budget,
) -> Rest {
    budget.charge(4 * lives.all.len() as u64).await;
    let at = failure.at;
    let mut have: BTreeMap<u64, usize> = BTreeMap::new();
    for life in lives.all.iter().filter(|life| life.category == Category::OptimizerState) {
        *have.entry(life.bytes).or_default() += 1;
    }
    let gradients: Vec<Life> = lives
        .all
        .iter()
        .filter(|life| life.category == Category::Gradient && life.stays())
        .copied()
        .collect();
    let new = |gradient: &Life, begin: f64, end: f64, category: Category| Life {
        begin,
        end,
        category,
        phase: StepPhase::Optimizer,
        step,
        dies_in: (end < f64::INFINITY).then_some((StepPhase::Optimizer, step)),
        stack: None,
        ..*gradient
    };
    if !have.is_empty() {
        let mut of_size: BTreeMap<u64, Vec<&Life>> = BTreeMap::new();
        for gradient in &gradients {
            of_size.entry(gradient.bytes).or_default().push(gradient);
        }
        for (bytes, of) in &of_size {
            let missing = (2 * of.len()).saturating_sub(have.get(bytes).copied().unwrap_or(0));
            let state = |_| new(of[0], at + 0.1, f64::INFINITY, Category::OptimizerState);
            lives.all.extend((0..missing).map(state));
        }
        let mut made = end_temporaries(lives, step, at + 2.0);
        let is_missing = |gradient: &&Life| match made.get_mut(&gradient.bytes) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        let spread = 0.9 / gradients.len().max(1) as f64;
        lives.all.extend((0_u32..).zip(gradients.iter().filter(is_missing)).map(
            |(index, gradient)| {
                let begin = at + 1.0 + spread * f64::from(index);
                new(gradient, begin, at + 2.0, Category::Temporary)
            },
        ));
    }
    for life in &mut lives.all {
        if life.category == Category::Gradient && life.stays() {
            life.end = at + 3.0;
            life.dies_in = Some((StepPhase::Optimizer, step));
        }
    }
    close_spans(lives, at, at + 3.0);
    let Some((backward, end)) = lives.span(step, StepPhase::Backward) else {
        return Rest::Unknown;
    };
    let unit = Unit { begin: facts.first_input, end, backward, factor: 1.0, step };
    lives.sort(budget).await;
    let border = Border(FxHashMap::default());
    repeat(lives, facts, &unit, at + 4.0, step + 1, &border, budget).await;
    Rest::Optimizer
}

/// Ends the temporaries that an unfinished step of the optimizer holds, and counts them by size.
fn end_temporaries(lives: &mut Lives, step: i32, end: f64) -> BTreeMap<u64, usize> {
    let mut made = BTreeMap::new();
    for life in &mut lives.all {
        let is_of_step = life.phase == StepPhase::Optimizer && life.step == step;
        if is_of_step && life.category == Category::Temporary && life.stays() {
            (life.end, life.dies_in) = (end, Some((StepPhase::Optimizer, step)));
            *made.entry(life.bytes).or_default() += 1;
        }
    }
    made
}

/// Ends the spans before a time, and lets the last go on to `end`.
pub(super) fn close_spans(lives: &mut Lives, at: f64, end: f64) {
    lives.spans.retain(|span| span.begin < at);
    if let Some(last) = lives.spans.last_mut() {
        last.end = end;
    }
}
