//! What deserves a look: memory that grows, waits, is given back in vain, or cannot be had.
//!
//! Every finding is a plain sentence with the events that show it. Nothing here is a guess about
//! intent: a block that is alive at the end is not a leak, a call stack whose live bytes grow with
//! every training step is growth.

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

pub use outliers::{RankFacts, outliers};
pub use severity::Severity;
pub use steps::{StepSource, Steps};

use crate::site::Sites;
use crate::slicing::{self, Budget, run_to_completion, strides};
use crate::trace::{Trace, reserve_change};
use std::ops::Range;
use vramscope_snapshot::{Snapshot, StackId};

/// What kind of finding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnomalyKind {
    /// A call stack whose live bytes grow from training step to training step.
    Growth,
    /// A block that stayed, of a stack whose other blocks are freed.
    NeverFreed,
    /// Frees that waited for another stream before their memory could be used again.
    PendingFree,
    /// An allocation that failed.
    Oom,
    /// Much more reserved than in use when the most was reserved.
    Fragmentation,
    /// Segments given back to the driver and reserved again.
    Retry,
    /// An allocator setting that costs memory or time in this run.
    Settings,
    /// A rank that holds far more than its like.
    Outlier,
}

impl AnomalyKind {
    /// The name that programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::NeverFreed => "never_freed",
            Self::PendingFree => "pending_free",
            Self::Oom => "oom",
            Self::Fragmentation => "fragmentation",
            Self::Retry => "retry",
            Self::Settings => "settings",
            Self::Outlier => "outlier",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// The same for the same file on every machine: kind, device, and an event, a stack's hash or a
    /// name.
    pub id: String,
    /// What kind of finding it is.
    pub kind: AnomalyKind,
    /// The device's ordinal.
    pub device: u32,
    /// How much it matters.
    pub severity: Severity,
    /// How much memory it is about.
    pub bytes: u64,
    /// What an engineer should know, in a sentence or two.
    pub text: String,
    /// Events that show it, counted from 0, ascending; evenly chosen where there are many.
    pub events: Vec<u32>,
    /// The call stack it is about, where there is one.
    pub stack: Option<StackId>,
}

/// Reserved memory that is not in use, as a replay of the allocator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeMemory {
    /// Bytes of inactive blocks.
    pub free: u64,
    /// Bytes of the largest of them.
    pub largest: u64,
}

/// The free blocks in a slot, where that is known.
pub type FreeAt<'a> = dyn Fn(u32) -> Option<FreeMemory> + Sync + 'a;

/// Everything that is known about one device's window.
struct Context<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    sites: &'a Sites,
    free_at: &'a FreeAt<'a>,
}

/// The findings on one device, the most severe first and of those the one about most bytes.
/// `free_at` tells the free blocks in a slot where a replay of the allocator knows them: OOMs and
/// fragmentation then say how large the largest was.
pub fn anomalies(
    snapshot: &Snapshot,
    trace: &Trace,
    sites: &Sites,
    free_at: &FreeAt<'_>,
) -> Vec<Anomaly> {
    run_to_completion(anomalies_sliced(snapshot, trace, sites, free_at, &mut Budget::unlimited()))
}

/// The same in slices.
pub async fn anomalies_sliced(
    snapshot: &Snapshot,
    trace: &Trace,
    sites: &Sites,
    free_at: &FreeAt<'_>,
    budget: &mut Budget,
) -> Vec<Anomaly> {
    let cx = Context { snapshot, trace, sites, free_at };
    let mut beside = budget.fork();
    let (mut found, others) =
        slicing::join(of_steps(&cx, budget), of_allocator(&cx, &mut beside)).await;
    found.extend(others);
    sort(&mut found);
    found
}

/// Of how many slots, from the first on, findings ask for the free memory.
pub fn free_slots(trace: &Trace) -> u32 {
    let oom = trace.ooms.last().map_or(0, |oom| oom.event.0 + 2);
    let most = trace.reserved_band.peak_event.map_or(0, |event| event + 3);
    oom.max(most).min(trace.slots())
}

/// What training steps tell.
async fn of_steps(cx: &Context<'_>, budget: &mut Budget) -> Vec<Anomaly> {
    let steps = Steps::sliced(cx.snapshot, cx.trace, budget).await;
    let mut found = growth::growth(cx, steps.as_ref(), budget).await;
    let growing: Vec<StackId> = found.iter().filter_map(|a| a.stack).collect();
    found.extend(never_freed::never_freed(cx, steps.as_ref(), &growing, budget).await);
    found
}

/// What the allocator did.
async fn of_allocator(cx: &Context<'_>, budget: &mut Budget) -> Vec<Anomaly> {
    let mut found = pending::pending_frees(cx, budget).await;
    found.extend(oom::ooms(cx, budget).await);
    let given_back = retry::GivenBack::find(cx, budget).await;
    found.extend(retry::retries(cx, &given_back));
    found.extend(settings::settings(cx, &given_back, budget).await);
    found.extend(fragmentation::fragmentation(cx));
    found
}

fn sort(found: &mut [Anomaly]) {
    found.sort_unstable_by(|a, b| (a.severity, b.bytes, &a.id).cmp(&(b.severity, a.bytes, &b.id)));
}

impl Context<'_> {
    fn severity(&self, kind: AnomalyKind, bytes: u64) -> Severity {
        Severity::of(kind, bytes, self.trace.reserved_band.peak)
    }

    /// `kind-device-what`.
    fn id(&self, kind: AnomalyKind, what: impl std::fmt::Display) -> String {
        format!("{}-{}-{what}", kind.name(), self.trace.device.device)
    }

    /// An id made of a stack's hash, which is the same in every rank.
    fn stack_id(&self, kind: AnomalyKind, stack: StackId) -> String {
        self.id(kind, format_args!("{:016x}", self.sites.get(stack).stack_hash))
    }

    /// The call site of a stack: `file.py:line function`.
    fn label(&self, stack: StackId) -> String {
        let Some(frame) = self.sites.get(stack).frame else {
            return "a call without a recorded stack".to_owned();
        };
        let (name, file) = (self.snapshot.text(frame.name), self.snapshot.text(frame.file));
        // Without a frame of Python (backward has none) the innermost frame is the recorder itself.
        if frame.line == 0 {
            return "a call from compiled code".to_owned();
        }
        let file = file.rsplit(['/', '\\']).next().unwrap_or_default();
        format!("{file}:{} {name}", frame.line)
    }

    /// What some events, counted from 0, add to `reserved_bytes`.
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

/// How many events a finding names at most: enough to jump through, not a second trace.
const MOST_EVENTS: usize = 50;

/// At most [`MOST_EVENTS`] of these, in order and evenly chosen, the first and the last among them.
fn sample(mut events: Vec<u32>) -> Vec<u32> {
    events.sort_unstable();
    events.dedup();
    let count = events.len();
    if count <= MOST_EVENTS {
        return events;
    }
    (0..MOST_EVENTS).map(|i| events[i * (count - 1) / (MOST_EVENTS - 1)]).collect()
}

/// `1 block`, `12 blocks`.
fn counted(count: usize, noun: &str) -> String {
    format!(
        "{} {noun}{}",
        vramscope_units::grouped(count as u64),
        if count == 1 { "" } else { "s" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_events_are_thinned_evenly() {
        assert_eq!(sample(vec![3, 1, 1]), [1, 3]);
        let thinned = sample((0..1000).rev().collect());
        assert_eq!((thinned.len(), thinned[0], thinned[49]), (MOST_EVENTS, 0, 999));
    }
}
