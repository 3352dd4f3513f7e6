//! Memory returned to the driver and reserved again.

use super::returns::{Burst, Cause, Returns};
use super::{Evidence, Facts, Finding, Severity, parts};
use std::ops::Range;
use vramscope_trace::slicing::{Budget, STRIDE};
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
    /// True if the allocator returned the segments to make room; false if the program did.
    pub by_allocator: bool,
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
    ] {
        let bursts: Vec<&Burst> = (returns.bursts.iter())
            .filter(|burst| burst.cause == cause)
            .filter(|burst| {
                cause == Cause::Request
                    || !explained.iter().any(|range| range.contains(&burst.events.start))
            })
            .collect();
        budget.charge((returns.bursts.len() * (1 + explained.len())) as u64).await;
        if bursts.len() < min_bursts {
            continue;
        }
        let again = reserved_again(&bursts, &returns.reservations, budget).await;
        if again >= MIN_BYTES {
            found.push(finding(cx, &bursts, cause, again));
        }
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

fn finding(cx: Evidence<'_>, bursts: &[&Burst], cause: Cause, again: u64) -> Finding {
    let by_allocator = cause == Cause::MakeRoom;
    let facts = SegmentChurn {
        by_allocator,
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
    let what = if by_allocator { "make-room" } else { "on-request" };
    let events = facts.at.clone();
    Finding {
        severity: if is_costly { Severity::Medium } else { Severity::Low },
        basis: super::Basis::Exact,
        parts,
        ..cx.finding(what, again, again, events, Facts::Churn(facts))
    }
}
