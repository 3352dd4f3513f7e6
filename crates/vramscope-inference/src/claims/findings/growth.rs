//! Memory that grows from training step to training step.
//!
//! Memory is compared at step boundaries, where activations are freed. Two series are tested per
//! call stack, then per call site. Bytes that are allocated in a step and never freed show memory
//! that is kept. Net live bytes also show a tensor that is replaced by a larger one in every step.
//! Call stacks that grow in the same steps are one leak.

mod facts;
mod leak;
mod pattern;
mod series;
mod words;

use crate::category::{Phase, PhaseSpan};
use crate::claims::found::Found;
use crate::evidence::{Evidence, Materiality};
use crate::steps::Steps;
use vramscope_trace::slicing::Budget;

pub use facts::{Growth, GrowthKind};
pub(super) use pattern::{MIN_GROWING_STEPS, MIN_STEPS};

/// What growth that was seen too few times has to hold of the peak.
const MATTERS: Materiality = Materiality::percent(5);

/// The growth in a device's window.
pub(super) async fn growth(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Found<Growth>> {
    // A cache grows from token to token on purpose, but not from request to request.
    if let Some(steps) = cx.steps.filter(|steps| steps.show_growth()) {
        let found = of_steps(cx, steps, budget).await;
        if !found.is_empty() {
            return found;
        }
    }
    match cx.passes.in_a_row() {
        Some(passes) => of_steps(cx, &passes, budget).await,
        None => Vec::new(),
    }
}

async fn of_steps(cx: Evidence<'_>, steps: &Steps, budget: &mut Budget) -> Vec<Found<Growth>> {
    let Some(steady) = pattern::steady(steps) else { return Vec::new() };
    let found = series::candidates(cx, steps, steady.clone(), MIN_GROWING_STEPS, budget).await;
    let mut leaks = leak::merged(cx, steps, &steady, found, budget).await;
    // Training is long, and a few bytes a step add up. Of requests 1 % of the peak matters.
    let is_small = |bytes: u64| bytes.saturating_mul(100) < cx.peak();
    leaks.retain(|leak| steps.are_training() || !is_small(leak.common.bytes));
    leaks
}

/// Growth that was seen too few times to be a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Few {
    /// How often it was seen.
    pub(super) seen: usize,
    /// Its bytes after the last whole step.
    pub(super) bytes: u64,
}

/// The largest growth that was seen one time less than a finding needs, in a run that evaluates
/// from time to time.
pub(super) async fn few(cx: Evidence<'_>, budget: &mut Budget) -> Option<Few> {
    let steps = cx.steps.filter(|steps| steps.are_training())?;
    let steady = pattern::steady(steps)?;
    let seen = MIN_GROWING_STEPS - 1;
    let evaluates = |span: &&PhaseSpan| span.phase == Phase::Evaluation;
    if cx.categories.phases().iter().filter(evaluates).count() < seen {
        return None;
    }
    let found = series::candidates(cx, steps, steady, seen, budget).await;
    let mut bytes = 0;
    for candidate in found.iter().filter(|candidate| candidate.series.len() == seen) {
        bytes += candidate.blocks.iter().map(|&i| cx.trace.blocks[i as usize].bytes.0).sum::<u64>();
    }
    MATTERS.is_met(bytes, cx.peak()).then_some(Few { seen, bytes })
}

#[cfg(test)]
crate::claims::cases::cases! {
    Growth,
    fires: [
        "cases/opacus_eval.pickle.gz",
        "causes/metric.pickle.gz",
        "findings/leak_every.pickle.gz",
        "findings/leak_hooks.pickle.gz",
        "findings/kv_session.pickle.gz"
    ],
    silent: [
        "causes/metric_cured.pickle.gz",
        "findings/non_curriculum.pickle.gz",
        "findings/non_epoch_metric.pickle.gz",
        "findings/non_unfreeze.pickle.gz"
    ]
}
