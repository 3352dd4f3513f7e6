//! What the peaks of the phases mean, in sentences.

use super::{Formula, Limiting, NextStepRecord, Phases, SumRecord};
use vramscope_units::Bytes;

/// The sentences of a report, in order of importance. `repetitions` is their number, and the word
/// for one.
pub(super) fn sentences(report: &Phases<'_>, repetitions: Option<(u32, &str)>) -> Vec<String> {
    let Some(limiting) = &report.limiting else { return Vec::new() };
    let mut texts = vec![limits(limiting, &report.sum, repetitions)];
    // The window of a first step does not have the peak of the run.
    match &report.next_step {
        Some(next) if next.recorded_bytes.is_none() => texts.push(next_step(next)),
        _ => texts.extend(checkpointing(limiting, &report.sum)),
    }
    texts.extend(report.formula.as_ref().map(formula));
    texts
}

/// A phase as the subject of a sentence.
fn named(phase: &str) -> String {
    if phase == "other" { "other code".to_owned() } else { format!("the {phase} phase") }
}

/// ` of step 2`, or ` of request 2 of 8`; empty outside of steps.
fn of_step(row: &SumRecord, repetitions: Option<(u32, &str)>) -> String {
    match (row.step, repetitions) {
        (Some(step), Some((of, word))) => format!(" of {word} {step} of {of}"),
        (Some(step), None) => format!(" of step {step}"),
        (None, _) => String::new(),
    }
}

fn limits(limiting: &Limiting, sum: &[SumRecord], repetitions: Option<(u32, &str)>) -> String {
    let peak = format!(
        "The peak is {}, in {}{}",
        Bytes(limiting.bytes),
        named(limiting.phase),
        of_step(&sum[0], repetitions),
    );
    match (limiting.next_phase, limiting.next_bytes) {
        (Some(next), Some(bytes)) => {
            let (next, lower) = (named(next), Bytes(limiting.bytes - bytes));
            format!("{peak}. The next lower is {}, in {next}: {lower} less.", Bytes(bytes))
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
    let bytes = limiting.without_activations_bytes;
    let phase = named(limiting.without_activations_phase);
    Some(if bytes == limiting.bytes {
        format!(
            "Activation checkpointing gains nothing: {phase} needs as much without activations."
        )
    } else {
        let bytes = Bytes(bytes);
        format!(
            "Activation checkpointing below {bytes} gains nothing: {phase} needs that much without \
             activations."
        )
    })
}

fn formula(formula: &Formula) -> String {
    let error = Bytes(formula.error_bytes.unsigned_abs());
    let difference = match formula.error_bytes {
        0 => "which is the peak".to_owned(),
        1.. => format!("{error} more than the peak"),
        _ => format!("{error} less than the peak"),
    };
    format!("The formula P + O + max(G + T, A) gives {}, {difference}.", Bytes(formula.bytes))
}

/// The estimate of the second step.
fn next_step(next: &NextStepRecord) -> String {
    format!(
        "The next step peaks at about {} in {}, if it repeats the first (estimate): {} of \
         optimizer state are then there from its start.",
        Bytes(next.peak_bytes),
        named(next.phase),
        Bytes(next.new_state_bytes),
    )
}
