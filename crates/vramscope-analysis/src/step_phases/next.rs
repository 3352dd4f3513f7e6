//! The peak of the second step, estimated from the first.
//!
//! An optimizer allocates its state in the first step, after that step's forward and backward
//! passes. In the second step the state is there from the start. So the second step needs what the
//! first needed without the state, plus the whole state.

use super::{PhasePeak, StepPhase};
use crate::category::{Categories, Category};
use crate::slicing::{Budget, strides};
use crate::steps::Steps;
use crate::trace::Trace;

/// What the second step needs, if it does what the first did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// Bytes of state that the optimizer allocated in the first step, and that are live after it.
    pub new_state: u64,
    /// The most bytes of each phase of the first step without that state, from the first forward
    /// pass on. Phases that occur several times have their largest value.
    pub phases: Vec<(StepPhase, u64)>,
}

impl NextStep {
    /// The phase with the estimated peak of the second step, and its bytes.
    pub fn peak(&self) -> Option<(StepPhase, u64)> {
        // `max_by_key` takes the last of equals. The first phase is the earliest.
        let highest = self.phases.iter().rev().max_by_key(|phase| phase.1);
        highest.map(|&(phase, bytes)| (phase, bytes + self.new_state))
    }
}

/// The estimate from the first whole training step. `None` unless it has all three phases, and its
/// optimizer allocated most of the state that is live after it.
pub(super) async fn next(
    trace: &Trace,
    categories: &Categories,
    steps: &Steps,
    phases: &[PhasePeak],
    budget: &mut Budget,
) -> Option<NextStep> {
    if !steps.are_training() || steps.whole() == 0 {
        return None;
    }
    let first = phases.iter().filter(|part| part.step == Some(0));
    let work: Vec<&PhasePeak> =
        first.skip_while(|part| part.phase != StepPhase::Forward).collect();
    let has = |phase| work.iter().any(|part| part.phase == phase);
    if !has(StepPhase::Backward) || !has(StepPhase::Optimizer) {
        return None;
    }
    let end = steps.begins[1];
    let mut next = NextStep { new_state: 0, phases: Vec::new() };
    for part in &work {
        let mut most = 0;
        for stride in strides((part.end - part.begin) as usize) {
            budget.charge(4 * stride.len() as u64).await;
            for slot in part.begin + 1 + stride.start as u32..part.begin + 1 + stride.end as u32 {
                for change in trace.changes_at(slot).iter().filter(|change| change.enters()) {
                    let block = &trace.blocks[change.block() as usize];
                    let is_state = part.phase == StepPhase::Optimizer
                        && categories.get(change.block()).category == Category::OptimizerState;
                    if is_state && block.leaves > end {
                        next.new_state += block.bytes.0;
                    }
                }
                most = most.max(trace.requested.at(slot) - next.new_state);
            }
        }
        match next.phases.iter_mut().find(|(phase, _)| *phase == part.phase) {
            Some((_, bytes)) => *bytes = most.max(*bytes),
            None => next.phases.push((part.phase, most)),
        }
    }
    let older_state = work[0].categories[Category::OptimizerState as usize];
    (next.new_state > older_state).then_some(next)
}
