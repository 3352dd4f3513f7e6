//! Failed allocations. All failures before the optimizer steps again are one finding: about the one
//! that ended the run, else about the first.

mod action;
mod aftermath;
mod driver;
mod facts;
mod history;
mod state;
mod words;

pub use aftermath::{Aftermath, Climb};
pub use facts::{Context, Grows, LargerPass, OomStory, Repeated, Returned, Verdict};

use crate::backward_site::{Allocation, BackwardSite, backward_sites};
use crate::claims::found::{Common, Found, Part};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::severity::Severity;
use crate::evidence::Evidence;
use crate::evidence::{Cause, Returns};
use crate::steps::{StepSource, Steps};
use std::ops::Range;
use vramscope_snapshot::{Action, StackId};
use vramscope_trace::Series;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Exactness, Oom};
use vramscope_units::Bytes;

/// The OOM findings, first failure first.
#[derive(Default)]
pub(super) struct Stories {
    pub(super) found: Vec<Found<Box<OomStory>>>,
    /// The events of each: from the begin of the step that failed, or from the first failure, to
    /// the last failure.
    pub(super) events: Vec<Range<u32>>,
}

/// The failures of one cause, and where they are.
struct Cascade<'a> {
    ooms: &'a [Oom],
    /// The failure that counts.
    oom: Oom,
    /// What followed the last.
    aftermath: Aftermath,
    /// The training step, from 0.
    step: Option<u32>,
    /// The events to which the finding refers.
    events: Range<u32>,
}

pub(super) async fn stories(cx: Evidence<'_>, returns: &Returns, budget: &mut Budget) -> Stories {
    if cx.trace.ooms.is_empty() {
        return Stories::default();
    }
    let reserved = cx.trace.reserved(cx.snapshot, budget).await;
    let mut stories = Stories::default();
    let mut known_room = 0;
    for cascade in cascades(cx, returns, budget).await {
        let finding = story(cx, &cascade, returns, &reserved, known_room, budget).await;
        known_room = known_room.max(finding.facts.room.unwrap_or_default().0);
        stories.found.push(finding);
        stories.events.push(cascade.events);
    }
    stories
}

/// Groups the failures of a device. Without an optimizer's steps nothing separates them.
async fn cascades<'a>(
    cx: Evidence<'a>,
    returns: &Returns,
    budget: &mut Budget,
) -> Vec<Cascade<'a>> {
    let optimizer_steps = cx.steps.filter(|steps| {
        matches!(
            steps.source,
            StepSource::ProfilerStep | StepSource::OptimizerStep | StepSource::OptimizerUpdate
        )
    });
    let before = |steps: &Steps, oom: &Oom| steps.before(oom.event.0 + 1);
    let is_same =
        |a: &Oom, b: &Oom| optimizer_steps.is_none_or(|steps| before(steps, a) == before(steps, b));
    let mut cascades = Vec::new();
    for ooms in cx.trace.ooms.chunk_by(is_same) {
        let (first, last) = (ooms[0], ooms[ooms.len() - 1]);
        let aftermath = aftermath::aftermath(cx, last, budget).await;
        let oom = ooms[aftermath::that_counts(cx, ooms, aftermath)];
        let step = cx.steps.filter(|steps| steps.are_training());
        let step = step.and_then(|steps| before(steps, &first).checked_sub(1));
        let begin = optimizer_steps
            .and_then(|steps| before(steps, &first).checked_sub(1).map(|step| steps.begins[step]));
        let flush = returns.bursts.iter().find(|burst| burst.events.end == first.event.0);
        let begin = begin.or(flush.map(|burst| burst.events.start)).unwrap_or(first.event.0);
        cascades.push(Cascade {
            ooms,
            oom,
            aftermath,
            step: step.map(|step| step as u32),
            events: begin..last.event.0 + 1,
        });
    }
    cascades
}

/// The finding about the failure of a cascade that counts.
async fn story(
    cx: Evidence<'_>,
    cascade: &Cascade<'_>,
    returns: &Returns,
    reserved: &Series,
    known_room: u64,
    budget: &mut Budget,
) -> Found<Box<OomStory>> {
    let oom = cascade.oom;
    let slot = oom.event.0 + 1;
    let state = state::State::at(cx, oom, budget).await;
    let earlier_peak = reserved.largest(0..slot).map_or(0, |(_, bytes)| bytes);
    budget.charge(u64::from(slot)).await;
    let room = oom.device_free.map(|free| reserved.at(slot).saturating_add(free.0));
    let shrunk = room.and_then(|room| earlier_peak.max(known_room).checked_sub(room));
    let shrunk = Bytes(shrunk.filter(|&bytes| bytes >= facts::MIN_SHRUNK).unwrap_or(0));
    let made_room = returns.bursts.iter().filter(|burst| {
        burst.cause == Cause::MakeRoom && cascade.events.contains(&burst.events.start)
    });
    let (flushes, retries): (Vec<_>, Vec<_>) = made_room
        .filter(|burst| burst.events.end <= oom.event.0)
        .partition(|burst| burst.events.end == oom.event.0);
    let flush = flushes
        .first()
        .map(|burst| Returned { segments: burst.events.len(), bytes: Bytes(burst.bytes) });
    let mut story = OomStory {
        event: oom.event,
        requested: oom.requested,
        last: cascade.ooms[cascade.ooms.len() - 1].event,
        failures: cascade.ooms.len(),
        aftermath: cascade.aftermath,
        climb: aftermath::climb(cx, oom, state.stack, budget).await,
        copies: state.copies,
        context: facts::Context::of(cx, oom.event.0, &state.categories, state.is_capture),
        graph_pools: state.graph_pools,
        stack: state.stack,
        backward: backward_of(cx, oom, state.stack, budget).await,
        twins: state.twins,
        verdict: Verdict::Unknown,
        device_free: oom.device_free,
        reserved: Bytes(reserved.at(slot)),
        room: room.map(Bytes),
        active: state.active,
        rounding: state.rounding,
        kind: state.kind,
        is_pool_assumed: state.is_pool_assumed,
        usable: state.usable,
        largest_usable: state.largest_usable,
        unusable: state.unusable,
        new_segment: state.new_segment,
        settings: state.settings,
        shrunk,
        flush,
        retries: retries.len(),
        categories: state.categories,
        larger: history::larger_pass(cx, oom.event.0, budget).await,
        repeated: history::repeated(cx, oom.event.0, budget).await,
        grows: history::grows(cx, oom.event.0, budget).await,
        kept: history::kept_after(cx, cascade.step, slot, cascade.events.end, budget).await,
    };
    let freed_late = flush_completed_free(cx, oom.event.0);
    story.verdict = story.judge(freed_late || state.has_fitting_pending);
    // Growth of fewer bytes than are missing is not the cause.
    let missing = story.excess().unwrap_or(story.requested);
    let grown = |of: &Grows| of.per_step.0.saturating_mul(of.steps.into());
    story.grows = story.grows.filter(|of| grown(of) >= missing.0);
    let is_exact = cx.trace.reserved_exactness() == Exactness::Exact
        && !story.is_pool_assumed
        && story.verdict != Verdict::Limit;
    let request = (story.stack != StackId::EMPTY).then_some(Part {
        stack: story.stack,
        bytes: oom.requested,
        blocks: 0,
    });
    let events = cascade.ooms.iter().map(|oom| oom.event.0).collect();
    let requested = oom.requested.0;
    let is_survived = cascade.aftermath == Aftermath::Handled && story.kept.is_none();
    let found = cx.found(FindingKind::Oom, oom.event.0, requested, requested, events);
    Common {
        severity: if is_survived { Severity::Low } else { found.severity },
        step: cascade.step,
        phase: cx.phase_at(oom.event.0),
        basis: if is_exact { Basis::Exact } else { Basis::Estimate },
        blocks: state.blocks,
        parts: request.into_iter().chain(state.holders).collect(),
        request: Some(story.stack),
        ..found
    }
    .with(Box::new(story))
}

/// The place of a failed request in backward.
async fn backward_of(
    cx: Evidence<'_>,
    oom: Oom,
    stack: StackId,
    budget: &mut Budget,
) -> Option<BackwardSite> {
    let request = Allocation::Failed { event: oom.event, bytes: oom.requested, stack };
    backward_sites(cx.snapshot, cx.trace, cx.sites, &[request], budget).await.pop().flatten()
}

/// Whether a delayed free completed right before a failure, when the allocator waited for all
/// streams.
fn flush_completed_free(cx: Evidence<'_>, event: u32) -> bool {
    let rows = &cx.trace.device.events;
    let action = |event: u32| cx.snapshot.events.action(rows.start + event);
    let is_part = |event: &u32| {
        matches!(
            action(*event),
            Action::FREE_COMPLETED | Action::SEGMENT_FREE | Action::SEGMENT_UNMAP
        )
    };
    (0..event).rev().take_while(is_part).any(|event| {
        cx.trace.changes_at(event + 1).iter().any(|change| {
            let block = &cx.trace.blocks[change.block() as usize];
            let requested = block.free_requested();
            !change.enters() && requested.is_some_and(|requested| requested.0 + 1 < event)
        })
    })
}

#[cfg(test)]
crate::claims::cases::cases! {
    Oom,
    fires: ["findings/oom_halved.pickle.gz", "findings/oom_ckpt_save.pickle.gz"],
    silent: ["findings/gan_step.pickle.gz"]
}
