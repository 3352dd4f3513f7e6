//! Detects where training steps begin.
//!
//! Named ranges come first, then the optimizer's updates, then forward passes that follow a
//! backward pass. Allocations that repeat without a backward pass are repetitions: forward passes,
//! generated tokens or requests. They are never called training steps. Layers of one forward pass
//! are neither.

mod optimizers;
mod period;
mod within;

use crate::category::{Phase, PhaseSpan};
use period::{Period, period};
use vramscope_snapshot::{Snapshot, Stage};
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Boxed, Budget};
use vramscope_units::{Micros, named};

named! {
    /// The evidence that steps were inferred from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StepSource {
        /// `ProfilerStep#N` ranges, which `torch.profiler` records at every call of its `step()`.
        ProfilerStep = "profiler_step",
        /// `Optimizer.step#NAME.step` ranges, which every `torch.optim.Optimizer` records. A step
        /// ends where such a range ends.
        OptimizerStep = "optimizer_step",
        /// Phases: a step ends where the optimizer's code after a backward pass ends.
        OptimizerUpdate = "optimizer_update",
        /// Phases: a step begins where a forward pass follows a backward pass. It can be a
        /// micro-batch.
        Rhythm = "rhythm",
        /// Call stacks that allocate once per repetition, without a backward pass.
        Repetition = "repetition",
    }
}

/// The steps in one device's window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The slot before the first event of every step, ascending. The last slot ends the last whole
    /// step. Step `i` has the slots after `begins[i]`, up to and including `begins[i + 1]`.
    pub begins: Vec<u32>,
    /// The evidence that the steps were inferred from.
    pub source: StepSource,
    /// What repetitions are; `None` for training steps.
    pub repetition: Option<Repetition>,
}

/// What is known of repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Whether the window ends within a further repetition.
    pub is_cut_off: bool,
    /// Whether a repetition has several forward passes, as a request for many tokens has.
    pub has_passes: bool,
}

impl Steps {
    /// The fewest repetitions to accept.
    const MIN_REPETITIONS: usize = 2;

    /// Infers steps. `phases` are the phases of the same trace. `None` if nothing shows steps.
    #[inline(never)]
    pub fn find<'a>(
        snapshot: &'a Snapshot,
        trace: &'a Trace,
        phases: &'a [PhaseSpan],
        budget: &'a mut Budget,
    ) -> Boxed<'a, Option<Self>> {
        Box::pin(async move {
            for source in [
                StepSource::ProfilerStep,
                StepSource::OptimizerStep,
                StepSource::OptimizerUpdate,
                StepSource::Rhythm,
            ] {
                let begins = match source {
                    StepSource::ProfilerStep => profiler_steps(snapshot, trace),
                    StepSource::OptimizerStep => {
                        optimizers::steps(snapshot, trace, phases, budget).await
                    }
                    StepSource::OptimizerUpdate => updates(phases),
                    _ => rhythm(phases),
                };
                // Each attempt reads the name of every annotation.
                budget.charge(4 * snapshot.annotations.len() as u64).await;
                let steps = Self { begins, source, repetition: None };
                if steps.whole() > 0 {
                    return Some(steps);
                }
            }
            // A window with a backward pass trains. What repeats in it without one is a layer.
            if phases.iter().any(|span| span.phase == Phase::Backward) {
                return None;
            }
            let Period { begins, is_cut_off } = period(snapshot, trace, budget).await;
            if within::is_one_pass(snapshot, trace, &begins, budget).await {
                return None;
            }
            let has_passes = within::has_passes(snapshot, trace, &begins, budget).await;
            let repetition = Some(Repetition { is_cut_off, has_passes });
            let steps = Self { begins, source: StepSource::Repetition, repetition };
            (steps.whole() >= Self::MIN_REPETITIONS).then_some(steps)
        })
    }

    /// Whether the steps are training steps.
    pub fn are_training(&self) -> bool {
        self.source != StepSource::Repetition
    }

    /// Whether what grows from one to the next can be a fault: training steps, and repetitions of
    /// several forward passes.
    pub fn show_growth(&self) -> bool {
        self.repetition.is_none_or(|repetition| repetition.has_passes)
    }

    /// The words for one and for several. A repetition of several forward passes is a request, one
    /// of a single forward pass a pass.
    pub fn words(&self) -> [&'static str; 2] {
        match self.repetition {
            None => Self::TRAINING,
            Some(Repetition { has_passes: true, .. }) => ["request", "requests"],
            Some(_) => ["pass", "passes"],
        }
    }

    /// The words for training steps.
    pub const TRAINING: [&'static str; 2] = ["step", "steps"];

    /// The step that contains the state of a slot. `None` after the last whole step and before the
    /// first.
    pub fn at(&self, slot: u32) -> Option<u32> {
        let next = self.before(slot);
        (next > 0 && next < self.begins.len()).then(|| next as u32 - 1)
    }

    /// The number of whole steps.
    pub fn whole(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// The number `n` of slots in `begins` that are before `slot`. A block that enters at `slot` is
    /// live at `begins[n]` at the earliest, and was allocated in step `n - 1`.
    pub(crate) fn before(&self, slot: u32) -> usize {
        self.begins.partition_point(|&b| b < slot)
    }

    /// [`Self::before`], fast if the result is `near`. Consecutive blocks mostly enter in one step,
    /// and most blocks leave in the step in which they enter.
    pub(crate) fn before_near(&self, slot: u32, near: usize) -> usize {
        let is_behind = near == 0 || self.begins.get(near - 1).is_some_and(|&b| b < slot);
        if is_behind && self.begins.get(near).is_none_or(|&b| slot <= b) {
            near
        } else {
            self.before(slot)
        }
    }
}

/// The slot of the state at a time; `None` without a clock.
fn slot_at(trace: &Trace, time: Micros) -> Option<u32> {
    let clock = trace.clock.as_ref()?;
    let offset = u64::try_from(time.0.saturating_sub(clock.start.0)).unwrap_or(0);
    Some(clock.events_before(offset))
}

fn profiler_steps(snapshot: &Snapshot, trace: &Trace) -> Vec<u32> {
    let mut begins = Vec::new();
    let mut last_end = None;
    for mark in &snapshot.annotations {
        if !snapshot.text(mark.name).starts_with("ProfilerStep#") {
            continue;
        }
        let Some(slot) = mark.time.and_then(|time| slot_at(trace, time)) else { continue };
        match mark.stage {
            Stage::Start => begins.push(slot),
            Stage::End => last_end = last_end.max(Some(slot)),
        }
    }
    begins.extend(last_end);
    sorted(begins)
}

/// The slots at which the optimizer's code after a backward pass ends. Empty if the window goes on
/// training without such code, as when later updates allocate nothing.
fn updates(phases: &[PhaseSpan]) -> Vec<u32> {
    let mut begins = vec![0];
    // Backward passes since the last update, and the most between two updates.
    let (mut passes, mut most) = (0, 0);
    // After a forward pass comes `zero_grad`, and no update.
    let mut in_forward = false;
    for span in phases {
        match span.phase {
            Phase::Forward => in_forward = true,
            Phase::Backward => (passes, in_forward) = (passes + 1, false),
            Phase::Optimizer if passes > 0 && !in_forward => {
                begins.push(span.end);
                most = most.max(passes);
                passes = 0;
            }
            _ => {}
        }
    }
    if passes > 2 * most { Vec::new() } else { begins }
}

/// The slots at which a forward pass begins that leads to a backward pass.
fn rhythm(phases: &[PhaseSpan]) -> Vec<u32> {
    let mut begins = Vec::new();
    let (mut forward, mut end) = (None, None);
    for span in phases {
        match span.phase {
            Phase::Forward => forward = forward.or(Some(span.begin)),
            Phase::Backward => {
                begins.extend(forward.take());
                end = Some(span.end);
            }
            _ => {}
        }
    }
    begins.extend(end);
    sorted(begins)
}

/// Sorts boundaries and merges equal ones. Ranges outside the window all fall on its two edges.
fn sorted(mut begins: Vec<u32>) -> Vec<u32> {
    begins.sort_unstable();
    begins.dedup();
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_near_equals_before_for_any_hint() {
        for begins in [vec![], vec![0], vec![3, 7, 8, 20]] {
            let steps = Steps { begins, source: StepSource::Repetition, repetition: None };
            for slot in 0..25 {
                for near in 0..7 {
                    assert_eq!(
                        steps.before_near(slot, near),
                        steps.before(slot),
                        "{steps:?} {slot} {near}"
                    );
                }
            }
        }
    }
}
