//! The rest of a step that ran out of memory: what came after the failed request is not in the
//! file.
//!
//! A whole step before it is repeated. Without one, the optimizer's states that are missing, the
//! mirrored backward pass, or the layers that are missing complete the step. What cannot be
//! completed says so ([`Rest::Unknown`]).

mod backward;
mod evaluation;
mod forward;
mod like;
mod repeat;

use super::facts::{Facts, Pass};
use super::lives::{Failure, Life, Lives};
use crate::category::Category;
use crate::evidence::stacks::Place;
use crate::step_phases::StepPhase;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;

/// How the run was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// No request failed, or the run went on.
    Whole,
    /// By a whole step before it.
    Repeated,
    /// By the optimizer's states that were missing, and a further step.
    Optimizer,
    /// By a backward pass that mirrors forward, then states and a further step.
    Backward,
    /// By the layers that were missing, then as after [`Rest::Backward`].
    Forward,
    /// By the training pass, scaled by the inputs of the evaluation.
    Evaluation,
    /// By the same place of the last like pass, scaled by what both have.
    Like,
    /// It is not: the numbers are the least that the run needs.
    Unknown,
}

/// Inputs of equal batches differ by at most this many percent.
const SAME_INPUT_PERCENT: u64 = 5;

/// How a failed step is to be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// By what fits it best.
    Best,
    /// By the last like pass.
    Like,
    /// Not at all: the failed request alone.
    Request,
}

/// Completes the failed step. `stack` is that of the failed request.
pub(super) async fn complete(
    lives: &mut Lives,
    facts: &Facts,
    by: Completion,
    stack: Option<StackId>,
    budget: &mut Budget,
) -> Rest {
    let Some(failure) = lives.failure else { return Rest::Whole };
    let (phase, step) = lives.at(failure.at);
    budget.charge(2 * lives.all.len() as u64).await;
    cut(lives, failure.at);
    let like = match by {
        Completion::Best => None,
        Completion::Like => like::complete(lives, facts, failure, stack, budget).await,
        Completion::Request => return unknown(lives, failure, phase, step),
    };
    if let Some(rest) = like {
        return rest;
    }
    let first_update =
        lives.spans.iter().filter(|s| s.phase == StepPhase::Optimizer).map(|s| s.step).min();
    if phase == StepPhase::Optimizer && Some(step) == first_update {
        return repeat::optimizer(lives, facts, failure, step, budget).await;
    }
    let has_whole =
        lives.spans.iter().any(|s| s.step == step - 1 && s.phase == StepPhase::Backward);
    budget.charge(4 * lives.all.len() as u64).await;
    let factor = input_factor(lives, facts, step);
    let is_forward = phase == StepPhase::Forward;
    let callers = if is_forward { callers(lives, facts, failure.at) } else { Callers::Unknown };
    let is_training = match callers {
        Callers::Same => true,
        Callers::Other => false,
        Callers::Unknown => factor == 1.0 || phase == StepPhase::Backward,
    };
    if has_whole && is_training {
        return repeat::steps(lives, facts, failure, step, factor, budget).await;
    }
    if !has_whole && phase == StepPhase::Backward {
        return backward::complete(lives, facts, failure, step, budget).await;
    }
    let trained = facts.passes.iter().rfind(|p| p.backward.is_some() && p.end < failure.at);
    let is_pass = is_forward || matches!(phase, StepPhase::Evaluation | StepPhase::Other);
    let mut found = match trained {
        Some(trained) if is_pass => {
            evaluation::complete(lives, facts, failure, step, trained, budget).await
        }
        None if !has_whole && phase == StepPhase::Forward && !infers(lives, facts, failure.at) => {
            forward::complete(lives, facts, failure, step, budget).await
        }
        _ => None,
    };
    if found.is_none() {
        found = like::complete(lives, facts, failure, stack, budget).await;
    }
    found.unwrap_or_else(|| unknown(lives, failure, phase, step))
}

/// The largest share of its blocks' bytes that a pass of inference leaves, in percent.
const LEFT_PERCENT: u64 = 15;

/// Whether no pass goes backward, and a whole one before a failure was dropped.
pub(super) fn infers(lives: &Lives, facts: &Facts, at: f64) -> bool {
    let mut whole = facts.passes.iter().filter(|pass| pass.over() < at);
    facts.training().next().is_none()
        && whole.any(|pass| {
            let of = lives.all[lives.born(pass.begin, pass.end)].iter();
            let made = of.filter(|life| !life.is_of_model() && life.category != Category::Input);
            let (mut all, mut left) = (0_u64, 0_u64);
            for life in made {
                all = all.saturating_add(life.bytes);
                left = left.saturating_add(if life.end > at { life.bytes } else { 0 });
            }
            all > 0 && left.saturating_mul(100) <= all.saturating_mul(LEFT_PERCENT)
        })
}

/// Leaves out what came after the failure: the unwinding of the exception.
fn cut(lives: &mut Lives, at: f64) {
    lives.all.retain(|life| life.begin < at);
    for life in &mut lives.all {
        if life.end > at {
            (life.end, life.dies_in) = (f64::INFINITY, None);
        }
    }
    lives.returns.retain(|(time, _)| *time < at);
}

/// How much larger the inputs of the failed step are than those of the step before it.
fn input_factor(lives: &Lives, facts: &Facts, step: i32) -> f64 {
    let inputs = || lives.all.iter().filter(|life| life.category == Category::Input);
    let spans = || lives.spans.iter().filter(|span| span.step == step - 1);
    let begin = spans().map(|span| span.begin).fold(f64::INFINITY, f64::min);
    let end = spans().map(|span| span.end).fold(0.0, f64::max);
    let most = |from: f64, to: f64| {
        let of = inputs().filter(|life| from < life.begin && life.begin < to);
        of.map(|life| life.bytes).max()
    };
    let before = most(begin - 0.5, end).unwrap_or(0);
    let Some(now) = facts.last_inputs(lives).iter().map(|life| life.bytes).max() else {
        return 1.0;
    };
    if now.abs_diff(before) * 100 <= before * SAME_INPUT_PERCENT || before == 0 {
        return 1.0;
    }
    now as f64 / before as f64
}

/// Whether the program calls the model from the lines of the last training pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callers {
    Same,
    /// From other lines, as an evaluation does.
    Other,
    /// The passes share no line, or one has no call stacks.
    Unknown,
}

/// Compares the callers of the pass that failed with those of the last training pass.
fn callers(lives: &Lives, facts: &Facts, at: f64) -> Callers {
    let trained = facts.passes.iter().rfind(|p| p.backward.is_some() && p.end < at);
    let failed = facts.passes.iter().rfind(|pass| pass.begin < at);
    let (Some(trained), Some(failed)) = (trained, failed) else { return Callers::Unknown };
    let chains = |pass: &Pass| -> FxHashMap<Place, Vec<Place>> {
        let of = lives.born(pass.begin, pass.end.min(at)).filter_map(|index| {
            let frames = lives.frames(&lives.all[index]);
            let own: Vec<Place> =
                lives.stacks.own(frames).map(|frame| lives.stacks.place(frame)).collect();
            Some((*own.first()?, own))
        });
        of.collect()
    };
    let (trained, failed) = (chains(trained), chains(failed));
    let mut shared = failed.iter().filter_map(|(inner, own)| Some((own, trained.get(inner)?)));
    match shared.clone().any(|(own, other)| own == other) {
        true => Callers::Same,
        false if shared.next().is_some() => Callers::Other,
        false => Callers::Unknown,
    }
}

/// Adds only the request that failed.
fn unknown(lives: &mut Lives, failure: Failure, phase: StepPhase, step: i32) -> Rest {
    let is_forward = matches!(phase, StepPhase::Forward | StepPhase::Evaluation);
    let category = if is_forward { Category::Activation } else { Category::Temporary };
    lives.all.push(made(failure, failure.at, f64::INFINITY, category, phase, step));
    Rest::Unknown
}

/// A block as large as the request that failed.
fn made(
    failure: Failure,
    begin: f64,
    end: f64,
    category: Category,
    phase: StepPhase,
    step: i32,
) -> Life {
    Life {
        begin,
        end,
        bytes: failure.bytes,
        stream: failure.stream,
        pool: 0,
        category,
        phase,
        step,
        dies_in: (end < f64::INFINITY).then_some((phase, step)),
        stack: None,
        element: 0,
        is_new: false,
        dead: f64::INFINITY,
        is_weight_copy: false,
        other: 1.0,
    }
}
