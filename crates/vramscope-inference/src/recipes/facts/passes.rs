//! Passes through the model: forward, and the backward pass that follows.

use crate::category::Category;
use crate::recipes::lives::{Lives, Span};
use crate::step_phases::StepPhase;

/// A pass through the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pass {
    pub(crate) begin: f64,
    pub(crate) end: f64,
    pub(crate) step: i32,
    /// The backward pass that follows; `None` for an evaluation.
    pub(crate) backward: Option<Span>,
}

/// Inputs of one batch are made within this many events.
const SAME_BATCH: f64 = 8.0;

/// All passes: forward spans, cut where the program makes inputs.
pub(crate) fn passes(lives: &Lives) -> Vec<Pass> {
    let mut inputs: Vec<f64> = lives
        .all
        .iter()
        .filter(|life| life.category == Category::Input && life.begin >= 0.0)
        .map(|life| life.begin)
        .collect();
    inputs.dedup();
    let mut passes = Vec::new();
    for (at, span) in lives.spans.iter().enumerate() {
        if !is_forward(span) {
            continue;
        }
        let mut cuts = vec![span.begin];
        let from = inputs.partition_point(|&input| input < span.begin);
        let of_span = inputs[from..].iter().take_while(|&&input| input < span.end);
        let mut last: Option<f64> = None;
        for &input in of_span {
            let is_new = last.is_none_or(|last| input - last > SAME_BATCH);
            if input > span.begin + SAME_BATCH && is_new {
                cuts.push(input);
            }
            last = Some(input);
        }
        let next = lives.spans[at + 1..]
            .iter()
            .find(|next| is_forward(next) || next.phase == StepPhase::Backward)
            .filter(|next| next.phase == StepPhase::Backward);
        if let Some(backward) = next {
            cuts.retain(|&cut| cut == span.begin || !is_of_one_pass(lives, span, cut, backward));
        }
        cuts.push(span.end);
        for cut in cuts.windows(2) {
            let backward = next.copied().filter(|_| cut[1] == span.end);
            passes.push(Pass { begin: cut[0], end: cut[1], step: span.step, backward });
        }
    }
    passes
}

/// Whether what comes before a cut belongs to the pass after it: the backward pass frees most of
/// what it left. Labels are often made after the forward pass.
fn is_of_one_pass(lives: &Lives, span: &Span, cut: f64, backward: &Span) -> bool {
    let (mut left, mut used) = (0_u64, 0_u64);
    for life in &lives.all[lives.born(span.begin, cut)] {
        if life.end > cut && !life.is_of_model() && life.category != Category::Input {
            left += life.bytes;
            let is_used = (backward.begin..backward.end).contains(&life.end);
            used += if is_used { life.bytes } else { 0 };
        }
    }
    used * 2 > left
}

fn is_forward(span: &Span) -> bool {
    matches!(span.phase, StepPhase::Forward | StepPhase::Evaluation)
}
