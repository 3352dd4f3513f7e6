//! Findings: growing memory, delayed frees, retries, failed allocations, costly settings, outliers.
//!
//! A finding carries typed facts and the events that prove it. It claims only what the trace shows.
//! A block that is live at the end is not called a leak. A call stack whose live bytes grow in
//! every training step is called growth.

mod facts;
mod fragmentation;
mod growth;
mod never_freed;
mod oom;
mod outliers;
mod pending;
mod period;
mod retry;
mod settings;
mod severity;
mod steps;

pub use facts::{
    Facts, FindingKind, FixedSegments, Growth, OutlierItem, PendingFrees, SettingCost,
};
pub use outliers::{RankFacts, outliers};
pub use severity::Severity;
pub use steps::{StepSource, Steps};

use crate::site::Sites;
use crate::slicing::{self, Budget, run_to_completion, strides};
use crate::trace::{Trace, reserve_change};
use std::ops::Range;
use vramscope_snapshot::{Snapshot, StackId};

/// One finding: what was found, how much it matters and the evidence.
///
/// It carries data, not sentences. `vramscope-report` writes the text of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A stable id, equal for one file on every machine: kind, device, and an event, the hash of a
    /// call stack, or a name.
    pub id: String,
    /// The device's ordinal.
    pub device: u32,
    /// How much it matters.
    pub severity: Severity,
    /// Bytes that the finding is about.
    pub bytes: u64,
    /// Evidence: event indices from 0, ascending; at most 50, evenly sampled.
    pub events: Vec<u32>,
    /// The call stack that the finding is about, if any.
    pub stack: Option<StackId>,
    /// The facts of its kind.
    pub facts: Facts,
}

impl Finding {
    /// The kind, which the facts decide.
    pub fn kind(&self) -> FindingKind {
        self.facts.kind()
    }
}

/// Reserved memory that is not in use, from a replay of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeMemory {
    /// Bytes of inactive blocks.
    pub free: u64,
    /// Bytes of the largest of them.
    pub largest: u64,
}

/// Free memory in a slot; `None` where no replay knows it.
pub type FreeAt<'a> = dyn Fn(u32) -> Option<FreeMemory> + Sync + 'a;

/// One device's window and its lookups.
struct Context<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    sites: &'a Sites,
    free_at: &'a FreeAt<'a>,
}

/// The findings of one device, by severity, then bytes.
///
/// `free_at` gives the free memory in a slot, where a replay of the allocator knows it. Findings of
/// OOMs and fragmentation then name the largest free block.
pub fn findings(
    snapshot: &Snapshot,
    trace: &Trace,
    sites: &Sites,
    free_at: &FreeAt<'_>,
) -> Vec<Finding> {
    run_to_completion(findings_sliced(snapshot, trace, sites, free_at, &mut Budget::unlimited()))
}

/// [`findings`] in slices.
pub async fn findings_sliced(
    snapshot: &Snapshot,
    trace: &Trace,
    sites: &Sites,
    free_at: &FreeAt<'_>,
    budget: &mut Budget,
) -> Vec<Finding> {
    let cx = Context { snapshot, trace, sites, free_at };
    let mut allocator_budget = budget.fork();
    let (mut found, others) =
        slicing::join(of_steps(&cx, budget), of_allocator(&cx, &mut allocator_budget)).await;
    found.extend(others);
    sort(&mut found);
    found
}

/// The number of leading slots for which findings need free-memory data.
pub fn free_slots(trace: &Trace) -> u32 {
    let oom = trace.ooms.last().map_or(0, |oom| oom.event.0 + 2);
    let reserved_peak = trace.reserved_band.peak_event.map_or(0, |event| event + 3);
    oom.max(reserved_peak).min(trace.slots())
}

/// Findings that need training steps.
async fn of_steps(cx: &Context<'_>, budget: &mut Budget) -> Vec<Finding> {
    let steps = Steps::sliced(cx.snapshot, cx.trace, budget).await;
    let mut found = growth::growth(cx, steps.as_ref(), budget).await;
    let growing: Vec<StackId> = found.iter().filter_map(|f| f.stack).collect();
    found.extend(never_freed::never_freed(cx, steps.as_ref(), &growing, budget).await);
    found
}

/// Findings about the allocator.
async fn of_allocator(cx: &Context<'_>, budget: &mut Budget) -> Vec<Finding> {
    let mut found = pending::pending_frees(cx, budget).await;
    found.extend(oom::ooms(cx, budget).await);
    let returned = retry::ReturnedByCause::find(cx, budget).await;
    found.extend(retry::retries(cx, &returned));
    found.extend(settings::settings(cx, &returned, budget).await);
    found.extend(fragmentation::fragmentation(cx));
    found
}

fn sort(found: &mut [Finding]) {
    found.sort_unstable_by(|a, b| (a.severity, b.bytes, &a.id).cmp(&(b.severity, a.bytes, &b.id)));
}

impl Context<'_> {
    /// A finding whose id is `kind-device-what`.
    fn finding(
        &self,
        what: impl std::fmt::Display,
        bytes: u64,
        events: Vec<u32>,
        stack: Option<StackId>,
        facts: Facts,
    ) -> Finding {
        let (kind, device) = (facts.kind(), self.trace.device.device);
        Finding {
            id: format!("{}-{device}-{what}", kind.name()),
            device,
            severity: Severity::of(kind, bytes, self.trace.reserved_band.peak),
            bytes,
            events: sample(events),
            stack,
            facts,
        }
    }

    /// A finding about a call stack. The id has the stack's hash, which is equal in every rank.
    fn stack_finding(&self, stack: StackId, bytes: u64, events: Vec<u32>, facts: Facts) -> Finding {
        let hash = format_args!("{:016x}", self.sites.get(stack).stack_hash).to_string();
        self.finding(hash, bytes, events, Some(stack), facts)
    }

    /// The change of `reserved_bytes` over a range of events.
    async fn reserved_in(&self, events: Range<u32>, budget: &mut Budget) -> i64 {
        let mut sum = 0;
        for part in strides(events.len()) {
            budget.charge(part.len() as u64).await;
            let rows = part.map(|i| self.trace.device.events.start + events.start + i as u32);
            sum += rows.map(|row| reserve_change(self.snapshot, row)).sum::<i64>();
        }
        sum
    }

    /// A top-level setting's JSON text.
    fn setting(&self, key: &str) -> Option<&str> {
        self.snapshot.settings.iter().find(|s| s.0 == key).map(|s| s.1.as_str())
    }
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
