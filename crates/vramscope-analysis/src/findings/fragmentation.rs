//! Reserved memory that is not in use at the peak of `reserved_bytes`, and that exceeds the peak of
//! `requested_bytes`.

use super::{Context, Facts, Finding};
use vramscope_snapshot::Action;
use vramscope_units::{Bytes, EventIndex};

/// The smallest share of the reserved peak to report.
const MIN_PERCENT: i64 = 20;

/// The fewest bytes to report.
const MIN_BYTES: i64 = 256 << 20;

pub(super) fn fragmentation(cx: &Context) -> Option<Finding> {
    let band = cx.trace.reserved_band;
    // A peak before the window shows nothing about the window.
    let event = band.peak_event?;
    let slot = slot_in_use(cx, event);
    let requested = cx.trace.requested.at(slot);
    let memory = (cx.free_at)(slot);
    // Without a replay, rounding counts as free too: an upper bound.
    let unused = memory.map_or(band.peak - requested as i64, |m| m.free as i64);
    // Free memory that is in use at another moment is no loss.
    let never_used = unused.min(band.peak - cx.trace.requested_band.peak);
    if never_used < MIN_BYTES || never_used * 100 < band.peak * MIN_PERCENT {
        return None;
    }
    let facts = Facts::Fragmentation {
        event: EventIndex(event),
        reserved_peak: Bytes(band.peak as u64),
        unused: Bytes(unused as u64),
        largest_free: memory.map(|m| Bytes(m.largest)),
        requested_peak: Bytes(cx.trace.requested_band.peak.max(0) as u64),
    };
    Some(cx.finding(event, never_used as u64, vec![event], None, facts))
}

/// The slot in which a segment reserved at `event` is in use.
///
/// PyTorch records `segment_alloc` and `alloc` of one call one after the other, so the block that
/// the segment was reserved for is the next event.
pub(super) fn slot_in_use(cx: &Context, event: u32) -> u32 {
    let row = cx.trace.device.events.start + event + 1;
    let serves =
        row < cx.trace.device.events.end && cx.snapshot.events.action(row) == Action::ALLOC;
    event + 1 + u32::from(serves)
}
