//! What the peaks of the phases mean, in sentences.

use super::{Formula, Limiting, NextStepRecord, Phases, SumRecord};
use vramscope_units::Bytes;

/// The sentences of a report, in order of importance.
pub(super) fn sentences(report: &Phases<'_>) -> Vec<String> {
    let Some(limiting) = &report.limiting else { return Vec::new() };
    let mut texts = vec![limits(limiting, &report.sum)];
    texts.extend(checkpointing(limiting, &report.sum));
    texts.extend(report.formula.as_ref().map(formula));
    texts.extend(report.next_step.as_ref().and_then(next_step));
    texts
}

/// ` of step 2`; empty outside of steps.
fn of_step(row: &SumRecord) -> String {
    row.step.map_or(String::new(), |step| format!(" of step {step}"))
}

fn limits(limiting: &Limiting, sum: &[SumRecord]) -> String {
    let peak = format!(
        "The {} phase{} limits: it peaks at {}",
        limiting.phase,
        of_step(&sum[0]),
        Bytes(limiting.bytes)
    );
    match (limiting.next_phase, limiting.next_bytes) {
        (Some(next), Some(bytes)) => {
            let lower = Bytes(limiting.bytes - bytes);
            format!("{peak}. The {next} phase peaks {lower} lower, at {}.", Bytes(bytes))
        }
        _ => format!("{peak}."),
    }
}

/// What activation checkpointing can gain at most.
fn checkpointing(limiting: &Limiting, sum: &[SumRecord]) -> Option<String> {
    let is_pass = |row: &&SumRecord| row.phase == "forward" || row.phase == "backward";
    let has_backward = sum.iter().any(|row| row.phase == "backward");
    let has_activations = sum.iter().filter(is_pass).any(|row| row.activation > 0);
    if !has_backward || !has_activations {
        return None;
    }
    let (bytes, phase) =
        (limiting.without_activations_bytes, limiting.without_activations_phase);
    Some(if bytes == limiting.bytes {
        format!(
            "Activation checkpointing gains nothing: the {phase} phase needs as much without \
             activations."
        )
    } else {
        format!(
            "Activation checkpointing below {} gains nothing: the {phase} phase needs that much \
             without activations.",
            Bytes(bytes)
        )
    })
}

fn formula(formula: &Formula) -> String {
    let error = Bytes(formula.error_bytes.unsigned_abs());
    let difference = match formula.error_bytes {
        0 => "the peak".to_owned(),
        1.. => format!("{error} more than the peak"),
        _ => format!("{error} less than the peak"),
    };
    format!(
        "The formula P + O + max(G + T, A) gives {}, {difference}.",
        Bytes(formula.bytes)
    )
}

/// The estimate of the second step, unless it was recorded.
fn next_step(next: &NextStepRecord) -> Option<String> {
    if next.recorded_bytes.is_some() {
        return None;
    }
    Some(format!(
        "The next step needs about {} in its {} phase (estimate): the optimizer allocated {} of \
         state in the first step, after that phase, or later in it.",
        Bytes(next.peak_bytes),
        next.phase,
        Bytes(next.new_state_bytes),
    ))
}
