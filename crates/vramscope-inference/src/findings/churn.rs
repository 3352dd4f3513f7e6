//! Memory returned to the driver and reserved again.

use super::returns::{Burst, Cause, Returns};
use super::{Evidence, Facts, Finding, Severity, parts};
use crate::steps::Steps;
use rustc_hash::FxHashSet;
use std::ops::Range;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, STRIDE, strides};
use vramscope_units::Bytes;

/// The fewest bytes reserved again to report: one segment of the large pool (`kLargeBuffer`).
const MIN_BYTES: u64 = 20 << 20;

/// The fewest returns of a finding that matters.
const MIN_COSTLY_BURSTS: usize = 3;

/// The part of the reserved peak that is reserved again in a finding that matters.
const COSTLY_PEAK_DIVISOR: u64 = 4;

/// Memory that was returned to the driver and reserved again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentChurn {
    /// True if the allocator returned the segments to make room; false if the program did, or a
    /// library.
    pub by_allocator: bool,
    /// The search that returned the segments; `None` if something else did.
    pub search: Option<AlgorithmSearch>,
    /// Bytes returned.
    pub returned: Bytes,
    /// Segments, or ranges of expandable segments, returned.
    pub segments: usize,
    /// Returns. Each waits for the device.
    pub bursts: usize,
    /// Bytes reserved again, at most the bytes returned before.
    pub reserved_again: Bytes,
    /// The first event of each return.
    pub at: Vec<u32>,
}

/// cuDNN's search for the fastest algorithm of each convolution (`torch.backends.cudnn.benchmark`).
/// It tries algorithms with large workspaces, and empties the cache afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmSearch {
    /// The first step with a search; `None` where no step is known.
    pub step: Option<u32>,
    /// The number of steps with a search; 0 where none is known.
    pub steps: usize,
    /// The peak of `requested_bytes` in these steps.
    pub peak: Bytes,
    /// The peak in later steps without a search; `None` if there is none.
    pub later: Option<Bytes>,
    /// The largest workspace that was tried.
    pub largest: Bytes,
    /// Its call stack.
    pub largest_at: StackId,
}

/// A workspace that is only tried lives for at most this many events.
const MAX_TRIAL_EVENTS: u32 = 8;

/// Churn by cause. `explained` are the events of OOMs, whose own returns are part of their finding.
pub(super) async fn churn(
    cx: Evidence<'_>,
    returns: &Returns,
    explained: &[Range<u32>],
    budget: &mut Budget,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (cause, min_bursts) in [
        (Cause::MakeRoom, 1),
        // One return between two phases of a program is the purpose of empty_cache.
        (Cause::Request, 2),
        (Cause::Search, 1),
    ] {
        let bursts: Vec<&Burst> = (returns.bursts.iter())
            .filter(|burst| burst.cause == cause)
            .filter(|burst| {
                cause != Cause::MakeRoom
                    || !explained.iter().any(|range| range.contains(&burst.events.start))
            })
            .collect();
        budget.charge((returns.bursts.len() * (1 + explained.len())) as u64).await;
        if bursts.len() < min_bursts {
            continue;
        }
        let again = reserved_again(&bursts, &returns.reservations, budget).await;
        if again < MIN_BYTES {
            continue;
        }
        let search = match cause {
            Cause::Search => Some(search(cx, &bursts, budget).await),
            _ => None,
        };
        found.push(finding(cx, &bursts, search, again));
    }
    found
}

/// Bytes that are reserved again: of each reservation, what earlier bursts returned and no earlier
/// reservation took.
async fn reserved_again(
    bursts: &[&Burst],
    reservations: &[(u32, u64)],
    budget: &mut Budget,
) -> u64 {
    let (mut outstanding, mut again, mut next) = (0u64, 0u64, 0);
    for part in reservations.chunks(STRIDE) {
        budget.charge(part.len() as u64).await;
        for &(event, bytes) in part {
            while let Some(burst) = bursts.get(next).filter(|burst| burst.events.start < event) {
                outstanding = outstanding.saturating_add(burst.bytes);
                next += 1;
            }
            let taken = bytes.min(outstanding);
            outstanding -= taken;
            again = again.saturating_add(taken);
        }
    }
    again
}

/// What the search costs at its peak.
async fn search(cx: Evidence<'_>, bursts: &[&Burst], budget: &mut Budget) -> AlgorithmSearch {
    let slots = cx.trace.slots();
    let steps = cx.steps.filter(|steps| steps.are_training());
    let mut searching: Vec<u32> =
        (bursts.iter()).filter_map(|burst| steps?.at(burst.events.start + 1)).collect();
    searching.dedup();
    let last = bursts.last().map_or(0, |burst| burst.events.end);
    // The slots of the steps with a search, and those of later steps without one.
    let (mut with, mut without): (Vec<Range<u32>>, Vec<Range<u32>>) = (Vec::new(), Vec::new());
    match (steps, searching.first()) {
        (Some(Steps { begins, .. }), Some(&first)) => {
            for (step, edges) in (0..).zip(begins.windows(2)).skip(first as usize) {
                let is_searching = searching.binary_search(&step).is_ok();
                let slots = edges[0] + 1..edges[1] + 1;
                if is_searching { with.push(slots) } else { without.push(slots) }
            }
        }
        _ => {
            with.push(0..(last + 1).min(slots));
            without.push((last + 1).min(slots)..slots);
        }
    }
    let mut peaks = [None; 2];
    for (peak, ranges) in peaks.iter_mut().zip([with, without]) {
        for slots in ranges {
            let largest = cx.trace.requested.largest_sliced(slots, budget).await;
            *peak = (*peak).max(largest.map(|most| most.1));
        }
    }
    let stacks: FxHashSet<StackId> = bursts.iter().map(|burst| burst.stack).collect();
    let mut largest = (0, StackId::EMPTY);
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        for block in &cx.trace.blocks[part] {
            let is_trial = block.leaves.saturating_sub(block.enters) <= MAX_TRIAL_EVENTS
                && block.enters <= last
                && stacks.contains(&block.stack);
            if is_trial && block.bytes.0 > largest.0 {
                largest = (block.bytes.0, block.stack);
            }
        }
    }
    AlgorithmSearch {
        step: searching.first().copied(),
        steps: searching.len(),
        peak: Bytes(peaks[0].unwrap_or(0)),
        later: peaks[1].map(Bytes),
        largest: Bytes(largest.0),
        largest_at: largest.1,
    }
}

fn finding(
    cx: Evidence<'_>,
    bursts: &[&Burst],
    search: Option<AlgorithmSearch>,
    again: u64,
) -> Finding {
    let by_allocator = bursts.first().is_some_and(|burst| burst.cause == Cause::MakeRoom);
    let facts = SegmentChurn {
        by_allocator,
        search,
        returned: Bytes(bursts.iter().map(|burst| burst.bytes).sum()),
        segments: bursts.iter().map(|burst| burst.events.len()).sum(),
        bursts: bursts.len(),
        reserved_again: Bytes(again),
        at: bursts.iter().map(|burst| burst.events.start).collect(),
    };
    let mut parts = parts(bursts.iter().map(|burst| (burst.stack, burst.bytes)));
    for part in &mut parts {
        part.blocks = 0;
    }
    let peak = cx.trace.reserved_band.peak.max(0) as u64;
    let is_costly = bursts.len() >= MIN_COSTLY_BURSTS && again >= peak / COSTLY_PEAK_DIVISOR;
    let what = match search {
        Some(_) => "search",
        None if by_allocator => "make-room",
        None => "on-request",
    };
    let cost = search
        .map(|AlgorithmSearch { peak, later, .. }| peak.0.saturating_sub(later.unwrap_or(peak).0));
    // A search is wanted, and its peak fitted.
    let is_costly = is_costly && search.is_none();
    let severity = if is_costly { Severity::Medium } else { Severity::Low };
    let bytes = cost.filter(|&cost| cost > 0).unwrap_or(again);
    let events = facts.at.clone();
    Finding {
        severity,
        basis: super::Basis::Exact,
        parts,
        step: search.and_then(|search| search.step.filter(|_| search.steps == 1)),
        ..cx.finding(what, bytes, bytes, events, Facts::Churn(facts))
    }
}
