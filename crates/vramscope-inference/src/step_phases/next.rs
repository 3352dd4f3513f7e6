//! The peak of the second step, estimated from the first.
//!
//! An optimizer allocates its state in the first step, after that step's forward and backward
//! passes. In the second step the state is there from the start. So the second step needs what the
//! first needed without the state, plus the whole state. The same holds for workspaces. Results
//! that the program still holds after the first step stay until the second has replaced them.

use super::{PhasePeak, StepPhase};
use crate::category::{Categories, Category};
use crate::steps::Steps;
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, strides};

/// What the second step needs, if it does what the first did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// Bytes of optimizer state that the first step allocated, and that are live after it.
    pub new_state: u64,
    /// The same of parameters, buffers and workspaces.
    pub other_new: u64,
    /// The phases of the first step, from the first forward pass on. A phase that occurs several
    /// times has the values of its highest occurrence.
    pub phases: Vec<NextPhase>,
}

/// A phase of the second step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextPhase {
    /// The phase.
    pub phase: StepPhase,
    /// The most bytes in the first step, without what is new in it.
    pub without_new: u64,
    /// Bytes of activations and inputs of the first step that are live after it, and that the
    /// second step replaces in this phase or later.
    pub held: u64,
    /// The estimate: those bytes and all that is new.
    pub bytes: u64,
}

impl NextStep {
    /// The phase with the estimated peak of the second step.
    pub fn peak(&self) -> Option<&NextPhase> {
        // `max_by_key` takes the last of equals. The first phase is the earliest.
        self.phases.iter().rev().max_by_key(|phase| phase.bytes)
    }
}

/// The estimate from the first whole training step. `None` unless it has all three phases, its
/// optimizer allocated most of the state that is live after it, and live bytes grew by that state.
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
    let work: Vec<&PhasePeak> = first.skip_while(|part| part.phase != StepPhase::Forward).collect();
    let has = |phase| work.iter().any(|part| part.phase == phase);
    if !has(StepPhase::Backward) || !has(StepPhase::Optimizer) {
        return None;
    }
    let end = steps.begins[1];
    let mut next = NextStep { new_state: 0, other_new: 0, phases: Vec::new() };
    let mut parts: Vec<NextPhase> = Vec::with_capacity(work.len());
    for part in &work {
        let (mut without_new, mut held) = (0, 0);
        for stride in strides((part.end - part.begin) as usize) {
            budget.charge(4 * stride.len() as u64).await;
            for slot in part.begin + 1 + stride.start as u32..part.begin + 1 + stride.end as u32 {
                for change in trace.changes_at(slot).iter().filter(|change| change.enters()) {
                    let block = &trace.blocks[change.block() as usize];
                    if block.leaves <= end {
                        continue;
                    }
                    match categories.get(change.block()).category {
                        Category::OptimizerState => next.new_state += block.bytes.0,
                        Category::Parameter | Category::Buffer | Category::Workspace => {
                            next.other_new += block.bytes.0;
                        }
                        Category::Activation | Category::Input => held += block.bytes.0,
                        _ => {}
                    }
                }
                let new = next.new_state + next.other_new;
                without_new = without_new.max(trace.requested.at(slot) - new);
            }
        }
        parts.push(NextPhase { phase: part.phase, without_new, held, bytes: 0 });
    }
    // State that replaces older state is not new: live bytes do not grow by it.
    let growth = trace.requested.at(end).saturating_sub(trace.requested.at(work[0].begin));
    let older_state = work[0].categories[Category::OptimizerState as usize];
    if next.new_state <= older_state || growth < next.new_state - next.new_state / 8 {
        return None;
    }
    hold(&mut parts);
    for part in &mut parts {
        part.bytes = part.without_new + part.held + next.new_state + next.other_new;
    }
    for part in parts {
        match next.phases.iter_mut().find(|other| other.phase == part.phase) {
            Some(other) if other.bytes >= part.bytes => {}
            Some(other) => *other = part,
            None => next.phases.push(part),
        }
    }
    Some(next)
}

/// Carries what each part left over to the parts of the second step that still hold it: up to the
/// first part of the same phase, which replaces it.
fn hold(parts: &mut [NextPhase]) {
    let phases: Vec<StepPhase> = parts.iter().map(|part| part.phase).collect();
    let mut until = vec![0; parts.len()];
    for (part, phase) in parts.iter_mut().zip(&phases) {
        let first = phases.iter().position(|other| other == phase).unwrap_or(0);
        until[first] += std::mem::take(&mut part.held);
    }
    let mut held = 0;
    for (part, replaced) in parts.iter_mut().zip(until).rev() {
        held += replaced;
        part.held = held;
    }
}
