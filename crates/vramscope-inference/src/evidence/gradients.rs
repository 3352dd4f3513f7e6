//! The gradients of a step: when they are freed.

use super::Run;
use crate::category::Category;
use crate::recipes::facts::Pass;
use crate::recipes::lives::Life;
use crate::step_phases::StepPhase;
use std::collections::BTreeMap;

/// Training passes of each whole step. The first and the last step may be cut.
pub(crate) fn passes_per_step(run: Run<'_>) -> Option<(u32, u32)> {
    let mut steps: BTreeMap<i32, u32> = BTreeMap::new();
    for pass in run.training() {
        *steps.entry(pass.step).or_default() += 1;
    }
    let mut counts: Vec<u32> = steps.into_values().collect();
    let steps = counts.len() as u32;
    counts.sort_unstable();
    (steps > 1).then(|| (counts[counts.len() / 2], steps))
}

/// When the gradients of a step are freed, as shares of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Gradients {
    pub(crate) bytes: u64,
    pub(crate) count: u32,
    /// Before the last of them is born.
    pub(crate) at_once: u64,
    /// They are alive in the next forward pass.
    pub(crate) in_forward: u64,
    /// They are alive after the next backward pass.
    pub(crate) kept: u64,
    /// Where the first of them is freed.
    pub(crate) step: i32,
}

/// The gradients of a step before the last.
pub(crate) fn of_step(run: Run<'_>) -> Option<Gradients> {
    let trained: Vec<&Pass> = run.training().collect();
    let steps: Vec<i32> = {
        let mut steps: Vec<i32> = trained.iter().map(|pass| pass.step).collect();
        steps.dedup();
        steps
    };
    let mut found: Option<Gradients> = None;
    for pair in steps.windows(2) {
        let next = trained.iter().find(|pass| pass.step == pair[1])?;
        let next_backward = next.backward?;
        let of_step = |life: &&Life| {
            life.category == Category::Gradient
                && life.step == pair[0]
                && life.phase != StepPhase::Optimizer
        };
        let all: Vec<&Life> = run.lives.all.iter().filter(of_step).collect();
        let last = all.last().map_or(0.0, |life| life.begin);
        let middle = f64::midpoint(next.begin, next.end);
        let sum = |is: &dyn Fn(&Life) -> bool| -> u64 {
            all.iter().filter(|life| is(life)).map(|life| life.bytes).sum()
        };
        let of = Gradients {
            bytes: sum(&|_| true),
            count: all.len() as u32,
            at_once: sum(&|life| life.end < last),
            in_forward: sum(&|life| life.end > middle),
            kept: sum(&|life| life.end > next_backward.end),
            step: pair[0],
        };
        // Without zero_grad(set_to_none=True) only the first step makes gradients.
        if of.bytes > found.map_or(0, |found| found.bytes) {
            found = Some(of);
        }
    }
    found
}
