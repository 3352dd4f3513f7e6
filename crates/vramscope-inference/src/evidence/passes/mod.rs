//! Passes: what a program repeats over its window.
//!
//! A pass is a run through the model, with the backward pass that follows it. Phases show where one
//! begins. Within a phase inputs do that follow other work: their call site has begun a pass
//! before, or the backward pass does not free what came before. No rule counts events, because a
//! log call moves them.

mod before;
mod find;
#[cfg(test)]
mod tests;

use crate::category::{Categories, Category};
use crate::evidence::failure::failure;
use crate::step_phases::{StepPart, StepPhase, StepPhases};
use crate::steps::{Repetition, StepSource, Steps};
pub use before::Earlier;
pub(crate) use find::{Blocks, Made, outlives_steps, passes};
use vramscope_snapshot::Snapshot;
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Boxed, Budget};

/// The passes of one device's window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passes {
    /// The steps and phases in order. They cover every event. Empty if nothing shows a step or a
    /// phase.
    pub parts: Vec<StepPart>,
    /// The parts in steps, by time. Without a step all are of one, without phases what follows the
    /// first inputs is taken for a forward pass.
    pub spans: Vec<Span>,
    /// The passes, by time.
    pub all: Vec<Pass>,
}

impl Passes {
    /// The passes that end the window, if each begins with inputs of its own and has no backward
    /// pass: evaluations and requests. What stays after one can be compared with what stays after
    /// the next. The last is left out: it may not be whole. `None` if there is none, or if earlier
    /// rows are half as long: a rollout of each step collects results on purpose.
    pub fn in_a_row(&self) -> Option<Steps> {
        let is_own = |pass: &Pass| pass.kind == PassKind::Evaluation && !pass.inputs.is_empty();
        let mut rows = self.all.chunk_by(|a, b| is_own(a) == is_own(b)).rev();
        let row = rows.next().filter(|row| is_own(&row[0]))?;
        if rows.any(|other| is_own(&other[0]) && other.len() * 2 >= row.len()) {
            return None;
        }
        let mut begins: Vec<u32> =
            row.iter().map(|pass| pass.lead.max(0.0).ceil() as u32).collect();
        begins.dedup();
        let repetition = Some(Repetition { is_cut_off: true, has_passes: false });
        Some(Steps { begins, source: StepSource::Repetition, repetition })
    }

    /// The passes of a window. `steps` are those of the same trace.
    #[inline(never)]
    pub fn find<'a>(
        snapshot: &'a Snapshot,
        trace: &'a Trace,
        categories: &'a Categories,
        steps: Option<&'a Steps>,
        budget: &'a mut Budget,
    ) -> Boxed<'a, Self> {
        Box::pin(async move {
            let parts = StepPhases::parts(trace, categories, steps, budget).await;
            let is_whole = failure(snapshot, trace).is_none();
            let mut spans = of_parts(&parts, is_whole);
            if spans.is_empty() {
                budget.charge(trace.blocks.len() as u64).await;
                spans = of_inputs(snapshot, trace, categories);
            }
            let all = passes(&spans, &(trace, categories), budget).await;
            Self { parts, spans, all }
        })
    }
}

/// The parts in steps. What the optimizer does at the begin of a step belongs to the one before. An
/// evaluation after the last step is a step of its own, unless the run failed in it.
fn of_parts(parts: &[StepPart], is_whole: bool) -> Vec<Span> {
    let mut spans = Vec::with_capacity(parts.len());
    let mut last_step = None;
    let has_steps = parts.iter().any(|part| part.step.is_some());
    let has_passes = parts.iter().any(|part| part.phase == StepPhase::Forward);
    let only = (!has_steps && has_passes).then_some(0);
    let last = parts.iter().rev().find_map(|part| Some((part.end, part.step? + 1)));
    let is_evaluation = |part: &StepPart| part.phase == StepPhase::Evaluation;
    let last = last.filter(|_| is_whole);
    let tail = last.filter(|last| parts.iter().any(|p| p.begin >= last.0 && is_evaluation(p)));
    for part in parts {
        let after = tail.filter(|tail| part.begin >= tail.0).map(|tail| tail.1);
        let Some(step) = part.step.or(only).or(after) else { continue };
        let is_first = last_step != Some(step);
        last_step = Some(step);
        let belongs_before = is_first && part.phase == StepPhase::Optimizer;
        spans.push(Span {
            begin: f64::from(part.begin),
            end: f64::from(part.end),
            phase: part.phase,
            step: step as i32 - i32::from(belongs_before),
        });
    }
    spans
}

/// Takes what follows the first inputs for a forward pass.
fn of_inputs(snapshot: &Snapshot, trace: &Trace, categories: &Categories) -> Vec<Span> {
    let is_input = |index| categories.get(index).category == Category::Input;
    let blocks = (0..).zip(&trace.blocks);
    let made = blocks.filter_map(|(index, block)| Some((is_input(index), block.alloc_event()?.0)));
    let mut made =
        made.skip_while(|&(is_input, _)| !is_input).skip_while(|&(is_input, _)| is_input);
    let events = trace.device.events.len() as u32;
    let failure = failure(snapshot, trace);
    let end = failure.map_or(f64::from(events) + 1.0, |failure| failure.at + 1.0);
    let first = made.next().map_or(end, |(_, event)| f64::from(event));
    let span = |begin, end, phase| Span { begin, end, phase, step: 0 };
    vec![span(0.0, first, StepPhase::Other), span(first, end.max(first), StepPhase::Forward)]
}

/// A part of the window in one phase of one step. Times are events, with fractions where a recipe
/// puts something between two of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// When it begins.
    pub begin: f64,
    /// When it ends.
    pub end: f64,
    /// Its phase.
    pub phase: StepPhase,
    /// Its step, from 0. What the optimizer does at the begin of the first step has -1.
    pub step: i32,
}

impl Span {
    pub(super) fn is_of_model(&self) -> bool {
        matches!(self.phase, StepPhase::Forward | StepPhase::Evaluation | StepPhase::Generation)
    }
}

/// What repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassKind {
    /// The only pass of its step with a backward pass.
    Step,
    /// One of several passes of a step with backward passes.
    MicroBatch,
    /// A forward pass without a backward pass.
    Evaluation,
    /// A repetition that generates: a token or a request.
    Generation,
}

/// What shows where a pass begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassBasis {
    /// A phase begins.
    Phase,
    /// Inputs are made again.
    Inputs,
    /// Call sites allocate once in each repetition.
    Repetition,
}

/// A pass through the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// What repeats.
    pub kind: PassKind,
    /// What shows where it begins.
    pub basis: PassBasis,
    /// Its step, as [`Span::step`].
    pub step: i32,
    /// When what precedes its first input begins: the pass before and its optimizer step are over.
    /// The first pass begins with its first input.
    pub lead: f64,
    /// When its forward pass begins.
    pub begin: f64,
    /// When its forward pass ends.
    pub end: f64,
    /// The backward pass that follows.
    pub backward: Option<Span>,
    /// The blocks that are its inputs, by birth.
    pub inputs: Vec<u32>,
}

impl Pass {
    /// When it is over, with its backward pass.
    pub fn over(&self) -> f64 {
        self.backward.map_or(self.end, |backward| backward.end)
    }
}
