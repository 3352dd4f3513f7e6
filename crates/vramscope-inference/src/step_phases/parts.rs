//! Cuts a window into parts of one step and one phase.

use super::StepPhase;
use crate::category::{Phase, PhaseSpan};
use crate::steps::Steps;
use vramscope_trace::slicing::{Budget, STRIDE};

/// Consecutive events of one step and one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPart {
    /// `None` before the first step and after the last.
    pub step: Option<u32>,
    /// The phase.
    pub phase: StepPhase,
    /// The first event.
    pub begin: u32,
    /// The event after the last.
    pub end: u32,
}

/// The parts of a window of `events` events, in order. They cover all events. Empty if nothing
/// shows a step or a phase. `generates` says whether repetitions have the phase `generation`.
pub(super) async fn parts(
    events: u32,
    spans: &[PhaseSpan],
    steps: Option<&Steps>,
    generates: bool,
    budget: &mut Budget,
) -> Vec<StepPart> {
    let begins = steps.map_or(&[][..], |steps| &steps.begins);
    let is_cut_off = steps.and_then(|steps| steps.repetition).map(|found| found.is_cut_off);
    let last = begins.len().saturating_sub(1);
    let whole = [PhaseSpan { begin: 0, end: events, phase: Phase::Other }];
    let spans = match spans {
        [] if begins.is_empty() => return Vec::new(),
        [] => &whole,
        spans => spans,
    };
    let mut parts = Vec::with_capacity(spans.len() + begins.len());
    let mut next = 0;
    for some in spans.chunks(STRIDE) {
        budget.charge(4 * some.len() as u64).await;
        for span in some {
            let mut begin = span.begin;
            while begin < span.end {
                while begins.get(next).is_some_and(|&b| b <= begin) {
                    next += 1;
                }
                let end = begins.get(next).map_or(span.end, |&b| b.min(span.end));
                let step = next.checked_sub(1).map(|step| step as u32);
                let is_repetition = |step: u32| (step as usize) < last || is_cut_off == Some(true);
                let phase = match step {
                    Some(step) if generates && is_repetition(step) => StepPhase::Generation,
                    _ => span.phase.into(),
                };
                push(&mut parts, StepPart { step, phase, begin, end });
                begin = end;
            }
        }
    }
    close(&mut parts, begins, is_cut_off);
    parts
}

/// Appends a part, or extends the last one.
fn push(parts: &mut Vec<StepPart>, part: StepPart) {
    match parts.last_mut() {
        Some(last) if (last.step, last.phase) == (part.step, part.phase) => last.end = part.end,
        _ => parts.push(part),
    }
}

/// What follows the last whole step is a step that was cut off, if it has work of a step.
/// `is_cut_off` says so of repetitions.
fn close(parts: &mut [StepPart], begins: &[u32], is_cut_off: Option<bool>) {
    let Some(last) = begins.len().checked_sub(1).map(|last| last as u32) else { return };
    let from = parts.partition_point(|part| part.step < Some(last));
    let tail = &mut parts[from..];
    let is_work = |phase| matches!(phase, StepPhase::Forward | StepPhase::Backward);
    if !is_cut_off.unwrap_or_else(|| tail.iter().any(|part| is_work(part.phase))) {
        for part in tail {
            part.step = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::{Repetition, StepSource};
    use vramscope_trace::slicing::now;

    /// Cuts spans, one letter for each event, at steps. Writes a step's number and its phases.
    fn cut(phases: &str, begins: &[u32], source: StepSource) -> String {
        repeat(phases, begins, source, false, true)
    }

    fn repeat(
        phases: &str,
        begins: &[u32],
        source: StepSource,
        generates: bool,
        is_cut_off: bool,
    ) -> String {
        let mut spans: Vec<PhaseSpan> = Vec::new();
        for (event, letter) in (0..).zip(phases.chars()) {
            let phase = match letter {
                'f' => Phase::Forward,
                'b' => Phase::Backward,
                'o' => Phase::Optimizer,
                'u' => Phase::Other,
                _ => continue,
            };
            match spans.last_mut() {
                Some(last) if last.phase == phase => last.end = event + 1,
                _ => spans.push(PhaseSpan { begin: event, end: event + 1, phase }),
            }
        }
        let repetition = (source == StepSource::Repetition)
            .then_some(Repetition { is_cut_off, has_passes: false });
        let steps = Steps { begins: begins.to_vec(), source, repetition };
        let steps = (!begins.is_empty()).then_some(&steps);
        let events = phases.len() as u32;
        let parts = now(async |budget| parts(events, &spans, steps, generates, budget).await);
        let mut end = 0;
        let texts = parts.iter().map(|part| {
            assert_eq!(part.begin, end, "parts touch each other");
            end = part.end;
            let step = part.step.map_or("-".to_owned(), |step| step.to_string());
            format!("{step}{}{}", &part.phase.name()[..1], part.end - part.begin)
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn steps_cut_phases() {
        let source = StepSource::OptimizerStep;
        assert_eq!(
            cut("uuffbbooffbboo", &[0, 8, 14], source),
            "0o2 0f2 0b2 0o2 1f2 1b2 1o2",
            "a step ends with the optimizer"
        );
        // Zeroing gradients belongs to the next step here.
        assert_eq!(cut("ffbbooffbboo", &[0, 5, 11], source), "0f2 0b2 0o1 1o1 1f2 1b2 1o1 -o1");
        assert_eq!(
            cut("uffbbffbbuu", &[1, 5, 9], StepSource::Rhythm),
            "-o1 0f2 0b2 1f2 1b2 -o2",
            "before the first step and after the last"
        );
    }

    #[test]
    fn work_after_the_last_whole_step_is_a_step_that_was_cut_off() {
        let source = StepSource::OptimizerStep;
        assert_eq!(cut("ffbbooffb", &[0, 6], source), "0f2 0b2 0o2 1f2 1b1");
        assert_eq!(cut("ffbboouuo", &[0, 6], source), "0f2 0b2 0o2 -o2 -o1");
    }

    #[test]
    fn repetitions_that_generate_have_one_phase() {
        let source = StepSource::Repetition;
        let parts =
            |generates, is_cut_off| repeat("uufufufuf", &[2, 4, 6], source, generates, is_cut_off);
        assert_eq!(parts(true, true), "-o2 0g2 1g2 2g3");
        assert_eq!(parts(true, false), "-o2 0g2 1g2 -f1 -o1 -f1", "the pattern has ended");
        assert_eq!(parts(false, true), "-o2 0f1 0o1 1f1 1o1 2f1 2o1 2f1");
    }

    #[test]
    fn phases_without_steps_and_steps_without_phases_are_parts() {
        assert_eq!(cut("uffbb", &[], StepSource::Rhythm), "-o1 -f2 -b2");
        assert_eq!(cut("    ", &[1, 3], StepSource::ProfilerStep), "-o1 0o2 -o1");
        assert_eq!(cut("    ", &[], StepSource::Rhythm), "");
    }
}
