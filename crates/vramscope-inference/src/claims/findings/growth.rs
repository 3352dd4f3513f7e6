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

use crate::claims::found::Found;
use crate::evidence::Evidence;
use vramscope_trace::slicing::Budget;

pub use facts::{Growth, GrowthKind};
pub(super) use pattern::MIN_STEPS;

/// The growth in a device's window.
pub(super) async fn growth(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Found<Growth>> {
    // A cache grows from token to token on purpose, but not from request to request.
    let Some(steps) = cx.steps.filter(|steps| steps.show_growth()) else { return Vec::new() };
    let Some(steady) = pattern::steady(steps) else { return Vec::new() };
    let candidates = series::candidates(cx, steps, steady.clone(), budget).await;
    leak::merged(cx, steps, &steady, candidates, budget).await
}

#[cfg(test)]
crate::claims::cases::cases! {
    Growth,
    fires: [
        "findings/leak_every.pickle.gz",
        "findings/leak_hooks.pickle.gz",
        "findings/kv_session.pickle.gz"
    ],
    silent: [
        "findings/non_curriculum.pickle.gz",
        "findings/non_epoch_metric.pickle.gz",
        "findings/non_unfreeze.pickle.gz"
    ]
}
