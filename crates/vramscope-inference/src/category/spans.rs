//! The phases of a window as whole spans, without short interruptions.

use serde::{Deserialize, Serialize};

/// The phase of a training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A forward pass, with the program's own code up to backward (the loss).
    Forward,
    /// A backward pass, with activations that it computes again.
    Backward,
    /// The end of a step: an optimizer's step, gradient clipping, scaling, zeroing gradients.
    Optimizer,
    /// Other code of the program: building the model, loading data.
    Other,
}

impl Phase {
    /// The name in JSON and texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Optimizer => "optimizer",
            Self::Other => "other",
        }
    }
}

/// A maximal part of the window in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// The first event.
    pub begin: u32,
    /// The event after the last.
    pub end: u32,
    /// The phase.
    pub phase: Phase,
}

/// Consecutive events that show one phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) begin: u32,
    pub(super) phase: Phase,
    /// Number of events that show the phase.
    pub(super) shown: u32,
}

/// Cost of merging a run, in units of [`vramscope_trace::slicing::Budget`].
pub(super) const COST_PER_RUN: u64 = 8;

/// A run is an interruption if the largest run of its phase shows more than this many times its
/// events.
const INTERRUPTION_DIVISOR: u32 = 8;

/// Merges runs into spans that cover a window of `events` events.
pub(super) fn merged(mut runs: Vec<Run>, events: u32) -> Vec<PhaseSpan> {
    if runs.is_empty() {
        return Vec::new();
    }
    absorb(&mut runs, |before, run, after| match (before, run.phase, after) {
        // A hook of a forward pass, the loss, the end of backward, clipping.
        (Some(before), Phase::Other, Some(after)) => joined(before.phase, after.phase),
        _ => None,
    });
    let mut largest = [0; 4];
    for run in &runs {
        let largest = &mut largest[run.phase as usize];
        *largest = run.shown.max(*largest);
    }
    absorb(&mut runs, |before, run, after| {
        let (before, after) = (before?.phase, after?.phase);
        let is_short = run.shown * INTERRUPTION_DIVISOR < largest[run.phase as usize];
        match run.phase {
            // The scale of a loss, or `zero_grad` just before backward.
            Phase::Optimizer if before == Phase::Forward && after == Phase::Backward => {
                Some(before)
            }
            Phase::Other => None,
            _ => (is_short && before == after).then_some(before),
        }
    });
    let mut spans: Vec<PhaseSpan> = Vec::with_capacity(runs.len() + 1);
    if runs[0].begin > 0 {
        spans.push(PhaseSpan { begin: 0, end: runs[0].begin, phase: Phase::Other });
    }
    for (i, run) in runs.iter().enumerate() {
        let end = runs.get(i + 1).map_or(events, |next| next.begin);
        match spans.last_mut() {
            Some(last) if last.phase == run.phase => last.end = end,
            _ => spans.push(PhaseSpan { begin: run.begin, end, phase: run.phase }),
        }
    }
    spans
}

/// The phase of the program's own code between two phases, if it belongs to either.
fn joined(before: Phase, after: Phase) -> Option<Phase> {
    match (before, after) {
        (Phase::Forward, Phase::Forward | Phase::Backward) => Some(Phase::Forward),
        (Phase::Backward, Phase::Backward) => Some(Phase::Backward),
        (Phase::Backward | Phase::Optimizer, Phase::Optimizer) => Some(Phase::Optimizer),
        _ => None,
    }
}

/// Gives each run the phase that `choose` returns for it and its neighbors, and joins runs of one
/// phase.
fn absorb(runs: &mut Vec<Run>, choose: impl Fn(Option<&Run>, &Run, Option<&Run>) -> Option<Phase>) {
    let mut kept: Vec<Run> = Vec::with_capacity(runs.len());
    for (i, run) in runs.iter().enumerate() {
        let phase = choose(kept.last(), run, runs.get(i + 1)).unwrap_or(run.phase);
        match kept.last_mut() {
            Some(last) if last.phase == phase => last.shown += run.shown,
            _ => kept.push(Run { phase, ..*run }),
        }
    }
    *runs = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans of a text with one letter for each event. A space shows no phase.
    fn spans(text: &str) -> String {
        let mut runs: Vec<Run> = Vec::new();
        for (begin, letter) in (0..).zip(text.chars()) {
            let phase = match letter {
                'f' => Phase::Forward,
                'b' => Phase::Backward,
                'o' => Phase::Optimizer,
                'u' => Phase::Other,
                _ => continue,
            };
            match runs.last_mut() {
                Some(last) if last.phase == phase => last.shown += 1,
                _ => runs.push(Run { begin, phase, shown: 1 }),
            }
        }
        let mut end = 0;
        let spans = merged(runs, text.len() as u32);
        let parts = spans.iter().map(|span| {
            assert_eq!(span.begin, end, "spans touch each other");
            end = span.end;
            let letter = ["f", "b", "o", "u"][span.phase as usize];
            letter.repeat((span.end - span.begin) as usize)
        });
        parts.collect()
    }

    #[test]
    fn user_code_belongs_to_the_phase_around_it() {
        // The first forward pass has a hook, a loss follows, and clipping follows backward.
        assert_eq!(spans(" uuffuffuubb bubuuoouo uff"), "uuufffffffbbbbbbooooooouff");
    }

    #[test]
    fn single_events_of_another_phase_do_not_interrupt() {
        let forward = "f".repeat(20);
        assert_eq!(
            spans(&format!("{forward}obbbfbbbooo{forward}bbb")),
            format!("{forward}fbbbbbbbooo{forward}bbb")
        );
    }

    #[test]
    fn forward_passes_of_micro_batches_separate_backward_passes() {
        assert_eq!(spans("uffbbuffbboo"), "uffbbuffbboo");
    }

    #[test]
    fn a_window_without_phases_has_no_spans() {
        assert_eq!(spans("   "), "");
    }
}
