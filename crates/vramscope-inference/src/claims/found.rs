//! A finding: what all of them have in common, and the facts of its kind.

use super::id::FindingId;
use super::kinds::{Basis, FindingKind};
use super::severity::Severity;
use crate::category::Phase;
use crate::evidence::Evidence;
use std::ops::Deref;
use vramscope_snapshot::StackId;
use vramscope_trace::group_by_key;
use vramscope_units::Bytes;

/// The share of the reserved memory, in percent, from which a finding that ends no run has the
/// first words. Below it the peak has them.
const LEAD_PERCENT: u64 = 20;

/// One finding: what was found, how much it matters, the evidence, and the facts of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<F> {
    /// The part that all findings have.
    pub common: Common,
    /// The facts of its kind.
    pub facts: F,
}

impl<F> Deref for Found<F> {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

/// The part that all findings have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    /// The id.
    pub id: FindingId,
    /// The device's ordinal.
    pub device: u32,
    /// How much it matters.
    pub severity: Severity,
    /// Whether it can have the first words of an answer, unless its severity is low: it ends the
    /// run, grows, or costs `LEAD_PERCENT` of the reserved memory.
    pub leads: bool,
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
    /// The call stack of a request that failed; `None` if the finding is about no request.
    pub request: Option<StackId>,
    /// The call stacks that the finding is about, most bytes first.
    pub parts: Vec<Part>,
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

impl Common {
    /// The kind.
    pub fn kind(&self) -> FindingKind {
        self.id.kind
    }

    /// The call stack of the request that failed, or with most bytes; `None` if it has none.
    pub fn stack(&self) -> Option<StackId> {
        match self.request {
            Some(request) => (request != StackId::EMPTY).then_some(request),
            None => self.parts.first().map(|part| part.stack),
        }
    }

    /// The finding with its facts.
    pub(super) fn with<F>(self, facts: F) -> Found<F> {
        Found { common: self, facts }
    }
}

impl Evidence<'_> {
    /// A finding whose id is `kind-device-what`. Its severity follows from `cost`, the bytes that
    /// it costs at the peak.
    pub(super) fn found(
        &self,
        kind: FindingKind,
        what: impl std::fmt::Display,
        bytes: u64,
        cost: u64,
        events: Vec<u32>,
    ) -> Common {
        let device = self.trace.device.device;
        Common {
            id: FindingId { kind, device, what: what.to_string() },
            device,
            severity: Severity::of(kind, cost, self.trace.reserved_band.peak),
            leads: match kind {
                FindingKind::Oom | FindingKind::Growth | FindingKind::Cycle => true,
                // It costs time.
                FindingKind::Churn => false,
                _ => {
                    let reserved = self.trace.reserved_band.peak.max(0).unsigned_abs();
                    cost.saturating_mul(100) >= reserved.saturating_mul(LEAD_PERCENT)
                }
            },
            bytes,
            step: None,
            phase: None,
            basis: Basis::Recorded,
            events: sample(events),
            blocks: 0,
            request: None,
            parts: Vec::new(),
        }
    }
}

/// Sums up blocks by call stack, most bytes first. `blocks` has a stack and the bytes of each
/// block.
pub(super) fn parts(blocks: impl IntoIterator<Item = (StackId, u64)>) -> Vec<Part> {
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
