//! Where training steps begin.

use super::period::period;
use crate::slicing::{Budget, run_to_completion};
use crate::trace::Trace;
use std::collections::BTreeMap;
use vramscope_snapshot::{Snapshot, Stage};
use vramscope_units::Micros;

/// How steps were told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// By `ProfilerStep#N` ranges, which `torch.profiler` names at every call of its `step()`.
    ProfilerStep,
    /// By `Optimizer.step#NAME.step` ranges, which every `torch.optim.Optimizer` names; a step ends
    /// where one ends.
    OptimizerStep,
    /// By call stacks that allocate once a step. A step can then also be a micro-batch or a
    /// generated token.
    Periodicity,
}

/// Training steps in one device's window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The slot before the first event of every step, ascending. The last one ends the last whole
    /// step: step `i` is what happens after `begins[i]`, up to and with `begins[i + 1]`.
    pub begins: Vec<u32>,
    /// How they were told.
    pub source: StepSource,
}

impl Steps {
    /// Fewer whole steps than this say nothing about steps.
    const FEWEST: usize = 2;

    /// From named ranges where there are, else from the rhythm of the allocations. `None` when
    /// neither shows steps.
    pub fn find(snapshot: &Snapshot, trace: &Trace) -> Option<Self> {
        run_to_completion(Self::sliced(snapshot, trace, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Option<Self> {
        for source in [StepSource::ProfilerStep, StepSource::OptimizerStep, StepSource::Periodicity]
        {
            let begins = match source {
                StepSource::ProfilerStep => profiler_steps(snapshot, trace),
                StepSource::OptimizerStep => optimizer_steps(snapshot, trace),
                StepSource::Periodicity => period(snapshot, trace, budget).await,
            };
            let steps = Self { begins, source };
            if steps.whole() >= Self::FEWEST {
                return Some(steps);
            }
            // A name is looked at for each.
            budget.charge(4 * snapshot.annotations.len() as u64).await;
        }
        None
    }

    /// How many whole steps there are.
    pub fn whole(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// How many of them are warm-up: there, optimizer state, caches and workspaces appear. `None`
    /// when there are too few steps to tell warm-up from what comes after.
    pub(super) fn warm_up(&self) -> Option<usize> {
        let steady = self.whole().checked_sub(4).filter(|&rest| rest > 0)?;
        Some(steady.min(2))
    }

    /// How many of the slots in `begins` are before `slot`: a block that enters there is live at
    /// `begins[n]` at the earliest, and was made in step `n - 1`.
    pub(super) fn before(&self, slot: u32) -> usize {
        self.begins.partition_point(|&b| b < slot)
    }

    /// The same, which is mostly `near`: neighbors enter in one step, and most blocks leave in the
    /// step in which they enter.
    pub(super) fn before_near(&self, slot: u32, near: usize) -> usize {
        let is_behind = near == 0 || self.begins.get(near - 1).is_some_and(|&b| b < slot);
        if is_behind && self.begins.get(near).is_none_or(|&b| slot <= b) {
            near
        } else {
            self.before(slot)
        }
    }
}

/// The slot of the state at a time.
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
    tidy(begins)
}

fn optimizer_steps(snapshot: &Snapshot, trace: &Trace) -> Vec<u32> {
    // Programs may have several optimizers: the one that steps most often gives the rhythm.
    let mut by_name: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for mark in snapshot.annotations.iter().filter(|mark| mark.stage == Stage::End) {
        let name = snapshot.text(mark.name);
        let slot = mark.time.and_then(|time| slot_at(trace, time));
        if let (true, Some(slot)) = (name.starts_with("Optimizer.step#"), slot) {
            by_name.entry(name.into_owned()).or_default().push(slot);
        }
    }
    let most = by_name.into_values().rev().max_by_key(Vec::len).unwrap_or_default();
    if most.is_empty() {
        return most;
    }
    // The first step begins with the window: what made the model cannot be told from it.
    tidy([vec![0], most].concat())
}

/// Ranges from before or after the window all fall on its edges: one boundary each.
fn tidy(mut begins: Vec<u32>) -> Vec<u32> {
    begins.sort_unstable();
    begins.dedup();
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_any_guess_the_step_is_the_same() {
        for begins in [vec![], vec![0], vec![3, 7, 8, 20]] {
            let steps = Steps { begins, source: StepSource::Periodicity };
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
