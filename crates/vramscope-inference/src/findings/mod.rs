//! Findings: what costs memory, why, and what would change it.
//!
//! A finding carries typed facts and the events that prove it. It claims only what the trace shows.
//! One cause makes one finding; its call stacks are [`Part`]s of it. [`blind_spots`] tells what
//! could not be looked for.

mod blind;
mod churn;
mod cycle;
mod dead;
mod dominant;
mod facts;
mod frames;
mod gradients;
mod graph_pools;
mod growth;
mod held;
mod id;
mod marks;
mod memory_use;
mod no_grad;
mod oom;
mod peak_cause;
mod pending;
mod pinned;
mod ranks;
mod reserved;
mod returns;
mod saving;
mod severity;
mod stranded;

pub use blind::{BlindSpot, Overrun, blind_spots};
pub use churn::{AlgorithmSearch, SegmentChurn};
pub use cycle::Cycle;
pub use dead::DeadAtPeak;
pub use dominant::{Dominant, DominantCause};
pub use facts::{Basis, Facts, FindingKind};
pub use gradients::GradientsHeld;
pub use graph_pools::{GraphPools, PoolGrowth};
pub use growth::{Growth, GrowthKind};
pub use held::HeldTooLong;
pub use id::{FindingId, NoFindingId};
pub use memory_use::{MemoryUse, slot_of_reserved_peak};
pub(crate) use memory_use::{is_graph_pool, segments_at};
pub use no_grad::NoGrad;
pub use oom::{Aftermath, Climb, Context, LargerStep, OomStory, Returned, Verdict};
pub use peak_cause::PeakCause;
pub use pending::PendingFrees;
pub use pinned::{Pinned, PinnedCause};
pub use ranks::{RankFacts, RankSkew, RankStack, SkewCause, SkewSite, rank_runs, rank_skew};
pub use reserved::{CostlySetting, Creep, OutOfReach, ReservedPeak};
pub use severity::Severity;
pub use stranded::StrandedPool;

use crate::category::{Categories, Phase};
use crate::evidence::passes::Passes;
use crate::steps::Steps;
use crate::uses::Uses;
pub(crate) use returns::{Cause, Returns};
use vramscope_snapshot::{FrameId, Snapshot, StackId};
use vramscope_trace::Carving;
use vramscope_trace::Trace;
use vramscope_trace::group_by_key;
use vramscope_trace::slicing::{self, Boxed, Budget};
use vramscope_trace::{Sites, is_framework_frame};
use vramscope_units::Bytes;

/// One finding: what was found, how much it matters and the evidence.
///
/// It carries data, not sentences. `vramscope-report` writes the text of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The id.
    pub id: FindingId,
    /// The device's ordinal.
    pub device: u32,
    /// How much it matters.
    pub severity: Severity,
    /// Bytes that the finding is about.
    pub bytes: u64,
    /// The training step of the finding, from 0; `None` if it is about several or none.
    pub step: Option<u32>,
    /// The phase of the finding; `None` if it is about several or none.
    pub phase: Option<Phase>,
    /// How the numbers were obtained.
    pub basis: Basis,
    /// Evidence: event indices from 0, ascending; at most 50, evenly sampled.
    pub events: Vec<u32>,
    /// The number of blocks that the finding is about.
    pub blocks: u32,
    /// The call stacks that the finding is about, most bytes first.
    pub parts: Vec<Part>,
    /// The facts of its kind.
    pub facts: Facts,
}

/// The share of one call stack in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The call stack.
    pub stack: StackId,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its blocks.
    pub blocks: u32,
}

impl Finding {
    /// The kind, which the facts decide.
    pub fn kind(&self) -> FindingKind {
        self.facts.kind()
    }

    /// The call stack of the request that failed, or with most bytes; `None` if it has none.
    pub fn stack(&self) -> Option<StackId> {
        match &self.facts {
            Facts::Oom(story) => (story.stack != StackId::EMPTY).then_some(story.stack),
            _ => self.parts.first().map(|part| part.stack),
        }
    }
}

/// What findings are derived from.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The snapshot's tables.
    pub snapshot: &'a Snapshot,
    /// One device's window.
    pub trace: &'a Trace,
    /// The call sites of the snapshot.
    pub sites: &'a Sites,
    /// Block sizes and segments.
    pub carving: &'a Carving,
    /// Categories of blocks, and phases.
    pub categories: &'a Categories,
    /// Training steps, or repetitions; `None` if nothing shows them.
    pub steps: Option<&'a Steps>,
    /// What repeats.
    pub passes: &'a Passes,
    /// What the operations of a traced step used; `None` if none was traced.
    pub uses: Option<&'a Uses>,
}

/// The findings of one device: by severity, then bytes.
#[inline(never)]
pub fn findings<'a>(cx: Evidence<'a>, budget: &'a mut Budget) -> Boxed<'a, Vec<Finding>> {
    Box::pin(async move {
        if cx.trace.device.kind.is_host() {
            // The other kinds are about the model and the settings of a GPU's allocator.
            let mut found = growth::growth(cx, budget).await;
            found.extend(pinned::pinned(cx, budget).await);
            sort(&mut found);
            return found;
        }
        let mut allocator_budget = budget.fork();
        let (mut found, others) =
            slicing::join(of_steps(cx, budget), of_allocator(cx, &mut allocator_budget)).await;
        found.extend(others);
        sort(&mut found);
        found
    })
}

/// Findings about the program's use of memory.
async fn of_steps(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    let mut found = growth::growth(cx, budget).await;
    let growing = stacks_of(&found);
    let marks = marks::Marks::new(cx, budget).await;
    found.extend(no_grad::no_grad(cx, &marks, &growing, budget).await);
    let told = stacks_of(&found);
    found.extend(cycle::cycle(cx, budget).await);
    found.extend(gradients::gradients_held(cx, &growing, budget).await);
    found.extend(held::held_too_long(cx, &told, budget).await);
    let told = stacks_of(&found);
    // One says which step sets the peak, the other what in it.
    // Graphs of an evaluation are no results of it.
    let peak = cx.trace.requested_band.peak.max(0) as u64;
    let is_graph = |finding: &Finding| match &finding.facts {
        Facts::NoGrad(graphs) => graphs.peak_without.0 < peak / 20 * 19,
        _ => false,
    };
    let has_graphs = found.iter().any(is_graph);
    found.extend(peak_cause::peak_cause(cx, &growing, has_graphs, budget).await);
    found.extend(dominant::dominant(cx, &marks, &told, budget).await);
    if let Some(dead) = dead::dead_at_peak(cx, budget).await {
        // It knows more of these lines: when they are used for the last time.
        let is_told = |part: &Part| dead.parts.iter().any(|one| one.stack == part.stack);
        found.retain(|finding| {
            finding.kind() != FindingKind::HeldTooLong || !finding.parts.iter().all(is_told)
        });
        found.push(dead);
    }
    found
}

/// The call stacks that findings tell of.
fn stacks_of(found: &[Finding]) -> Vec<StackId> {
    found.iter().flat_map(|finding| finding.parts.iter().map(|part| part.stack)).collect()
}

/// Findings about the allocator.
async fn of_allocator(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    let returns = Returns::find(cx, budget).await;
    let stories = oom::stories(cx, &returns, budget).await;
    let was_short = !cx.trace.ooms.is_empty() || returns.has_retries();
    let mut found: Vec<Finding> = pending::pending_frees(cx, budget).await.into_iter().collect();
    found.extend(churn::churn(cx, &returns, &stories.events, budget).await);
    // The finding about the failed allocation already tells of that memory.
    if !stories.names_stranded_memory() {
        let slot = memory_use::slot_of_reserved_peak(cx, budget).await;
        let segments = memory_use::segments_at(cx, slot, budget).await;
        // What the requests could not use shows when memory was reserved for them.
        let rise = memory_use::slot_of_last_rise(cx);
        let at_rise = if rise == slot {
            segments.clone()
        } else {
            memory_use::segments_at(cx, rise, budget).await
        };
        let out_of_reach = reserved::OutOfReach::find(cx, &at_rise, rise, budget).await;
        let of_reserved = reserved::reserved(cx, &segments, slot, out_of_reach, was_short, budget);
        found.extend(of_reserved.await);
        found.extend(stranded::stranded(cx, &at_rise, rise, was_short, budget).await);
        found.extend(graph_pools::graph_pools(cx, &segments, slot, budget).await);
    }
    found.extend(stories.found);
    found
}

fn sort(found: &mut [Finding]) {
    found.sort_by(|a, b| (a.severity, b.bytes, &a.id).cmp(&(b.severity, a.bytes, &b.id)));
}

impl Evidence<'_> {
    /// A finding whose id is `kind-device-what`. Its severity follows from `cost`, the bytes that
    /// it costs at the peak.
    fn finding(
        &self,
        what: impl std::fmt::Display,
        bytes: u64,
        cost: u64,
        events: Vec<u32>,
        facts: Facts,
    ) -> Finding {
        let (kind, device) = (facts.kind(), self.trace.device.device);
        Finding {
            id: FindingId { kind, device, what: what.to_string() },
            device,
            severity: Severity::of(kind, cost, self.trace.reserved_band.peak),
            bytes,
            step: None,
            phase: None,
            basis: Basis::Recorded,
            events: sample(events),
            blocks: 0,
            parts: Vec::new(),
            facts,
        }
    }

    /// Whether a frame is the program's, or that of a package that builds on PyTorch.
    fn is_program(&self, frame: FrameId) -> bool {
        let frame = self.snapshot.frame(frame);
        !is_framework_frame(&self.snapshot.text(frame.name), &self.snapshot.text(frame.file))
    }

    /// The phase of an event; `None` if nothing shows it.
    fn phase_at(&self, event: u32) -> Option<Phase> {
        let phases = self.categories.phases();
        let next = phases.partition_point(|span| span.begin <= event);
        let phase = phases[..next].last()?.phase;
        (phase != Phase::Other).then_some(phase)
    }

    /// The training step of the state after an event.
    fn step_at(&self, event: u32) -> Option<u32> {
        self.steps.filter(|steps| steps.are_training())?.at(event + 1)
    }

    /// The slot of the peak of `requested_bytes`.
    fn peak_slot(&self) -> u32 {
        self.trace.requested_band.peak_event.map_or(0, |event| event + 1)
    }

    /// A name for the id of a finding about a call stack: the stack's hash, equal in every rank.
    fn hash(&self, stack: StackId) -> String {
        format!("{:016x}", self.sites.get(stack).stack_hash)
    }

    /// A top-level setting's JSON text.
    fn setting(&self, key: &str) -> Option<&str> {
        self.snapshot.settings.iter().find(|s| s.0 == key).map(|s| s.1.as_str())
    }
}

/// Sums up blocks by call stack, most bytes first. `blocks` has a stack and the bytes of each
/// block.
fn parts(blocks: impl IntoIterator<Item = (StackId, u64)>) -> Vec<Part> {
    let part = |(stack, bytes): (StackId, Vec<u64>)| {
        let blocks = bytes.len() as u32;
        Part { stack, bytes: Bytes(bytes.iter().sum()), blocks }
    };
    let by_stack = group_by_key(blocks.into_iter().collect());
    let mut parts: Vec<Part> = by_stack.into_iter().map(part).collect();
    parts.sort_by_key(|part| (std::cmp::Reverse(part.bytes), part.stack));
    parts
}

/// The maximum number of events in a finding: enough to step through as evidence.
const MAX_EVENTS: usize = 50;

/// At most [`MAX_EVENTS`] of these events, in order and evenly spaced, with the first and the last.
fn sample(mut events: Vec<u32>) -> Vec<u32> {
    events.sort_unstable();
    events.dedup();
    let count = events.len();
    if count <= MAX_EVENTS {
        return events;
    }
    (0..MAX_EVENTS).map(|i| events[i * (count - 1) / (MAX_EVENTS - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_thins_many_events_evenly() {
        assert_eq!(sample(vec![3, 1, 1]), [1, 3]);
        let thinned = sample((0..1000).rev().collect());
        assert_eq!((thinned.len(), thinned[0], thinned[49]), (MAX_EVENTS, 0, 999));
    }
}
