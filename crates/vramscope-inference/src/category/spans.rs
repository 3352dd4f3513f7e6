//! The phases of a window as whole spans, without short interruptions.
//!
//! [`super::evaluation`] says which forward passes are evaluation; the runs have that phase here.

use serde::{Deserialize, Serialize};
use vramscope_units::named;

named! {
    /// The phase of a training step.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum Phase {
        /// A forward pass, with the program's own code up to backward (the loss).
        Forward = "forward",
        /// A backward pass, with activations that it computes again.
        Backward = "backward",
        /// The end of a step: an optimizer's step, gradient clipping, scaling, zeroing gradients.
        Optimizer = "optimizer",
        /// Other code of the program: building the model, loading data.
        Other = "other",
        /// Forward passes between training steps that no backward pass follows, with the program's
        /// own code between them.
        Evaluation = "evaluation",
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
/// events. Half or double of it changes no peak of 473 recordings.
const INTERRUPTION_DIVISOR: u32 = 8;

/// Optimizer events between a forward and its backward pass that are no `zero_grad`: the scale of
/// the loss, which `GradScaler.scale` allocates with its growth (`torch/amp/grad_scaler.py`).
const MAX_SCALE_EVENTS: u32 = 2;

/// Merges runs into spans that cover a window of `events` events.
pub(super) fn merged(mut runs: Vec<Run>, events: u32) -> Vec<PhaseSpan> {
    if runs.is_empty() {
        return Vec::new();
    }
    join_losses(&mut runs);
    absorb(&mut runs, |before, run, after| match (before, run.phase, after.first()) {
        // A hook of a forward pass, the end of backward, clipping.
        (Some(before), Phase::Other, Some(after)) => joined(before.phase, after.phase),
        _ => None,
    });
    let mut largest = [0; 5];
    for run in &runs {
        let largest = &mut largest[run.phase as usize];
        *largest = run.shown.max(*largest);
    }
    absorb(&mut runs, |before, run, after| {
        let (before, after_phase) = (before?.phase, after.first()?.phase);
        let is_short = run.shown * INTERRUPTION_DIVISOR < largest[run.phase as usize];
        match run.phase {
            // The scale of a loss.
            Phase::Optimizer
                if before == Phase::Forward
                    && matches!(after_phase, Phase::Forward | Phase::Backward)
                    && run.shown <= MAX_SCALE_EVENTS =>
            {
                Some(before)
            }
            Phase::Other | Phase::Evaluation => None,
            // A forward pass between the program's own code, and its backward pass.
            Phase::Forward if before == Phase::Other && leads(after) => None,
            _ => (is_short && before == after_phase).then_some(before),
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
        (Phase::Forward, Phase::Forward) => Some(Phase::Forward),
        (Phase::Backward, Phase::Backward) => Some(Phase::Backward),
        (Phase::Backward | Phase::Optimizer, Phase::Optimizer) => Some(Phase::Optimizer),
        _ => None,
    }
}

/// Makes the program's own code between a forward pass and its backward pass a part of the forward
/// pass: the loss. A `zero_grad` can stand before or after it.
fn join_losses(runs: &mut [Run]) {
    let mut forward = None;
    for i in 0..runs.len() {
        match runs[i].phase {
            Phase::Forward => forward = Some(i),
            Phase::Other | Phase::Optimizer => {}
            Phase::Backward => {
                let between = forward.take().map_or(i, |forward| forward + 1)..i;
                let own = runs[between].iter_mut().filter(|run| run.phase == Phase::Other);
                own.for_each(|run| run.phase = Phase::Forward);
            }
            Phase::Evaluation => forward = None,
        }
    }
}

/// Whether a backward pass comes next, apart from `zero_grad` and the program's own code.
pub(super) fn leads(after: &[Run]) -> bool {
    let mut passes =
        after.iter().filter(|run| !matches!(run.phase, Phase::Other | Phase::Optimizer));
    passes.next().is_some_and(|run| run.phase == Phase::Backward)
}

/// Gives each run the phase that `choose` returns for it, the run before and the runs after it, and
/// joins runs of one phase.
fn absorb(runs: &mut Vec<Run>, choose: impl Fn(Option<&Run>, &Run, &[Run]) -> Option<Phase>) {
    let mut kept: Vec<Run> = Vec::with_capacity(runs.len());
    for (i, run) in runs.iter().enumerate() {
        let phase = choose(kept.last(), run, &runs[i + 1..]).unwrap_or(run.phase);
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
                'e' => Phase::Evaluation,
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
            let letter = ["f", "b", "o", "u", "e"][span.phase as usize];
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
    fn the_loss_before_zero_grad_belongs_to_forward() {
        assert_eq!(spans("uufffuuooobbbooo"), "uufffffooobbbooo", "zero_grad before backward");
        assert_eq!(spans("fffuuouubbbooo"), "ffffffffbbbooo", "a loss after an empty zero_grad");
        // Code after an evaluation is no loss.
        assert_eq!(spans("bbbooofffuuooofffbbb"), "bbbooofffuuooofffbbb");
    }

    #[test]
    fn long_evaluations_leave_training_passes_forward() {
        let evaluation = "f".repeat(40);
        let steps = "uufffuuooobbbooouufffuuooobbbooo";
        assert_eq!(
            spans(&format!("{steps}uu{evaluation}uuooo{steps}")),
            format!("{0}uu{evaluation}uuooo{0}", steps.replace("fffuu", "fffff"))
        );
        assert_eq!(spans("ooueeeeuufffubbb"), "ooueeeeuuffffbbb", "recognized evaluation");
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
