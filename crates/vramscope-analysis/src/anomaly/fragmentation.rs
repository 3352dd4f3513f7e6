//! Reserved, but not in use, when the most was reserved; and more than was ever in use.

use super::{Anomaly, AnomalyKind, Context};
use vramscope_snapshot::Action;
use vramscope_units::{Bytes, EventIndex};

/// Worth a line from this share of what is reserved on.
const LEAST_PERCENT: i64 = 20;

/// And from this many bytes on.
const LEAST: i64 = 256 << 20;

pub(super) fn fragmentation(cx: &Context) -> Option<Anomaly> {
    let band = cx.trace.reserved_band;
    // What was reserved before the window is no peak of anything that the window shows.
    let event = band.peak_event?;
    let slot = slot_in_use(cx, event);
    let requested = cx.trace.requested.at(slot);
    let memory = (cx.free_at)(slot);
    // Without a replay, rounding counts as free too: an upper bound.
    let unused = memory.map_or(band.peak - requested as i64, |m| m.free as i64);
    // Free memory at that moment is no loss as far as it is needed at another one.
    let never_used = unused.min(band.peak - cx.trace.requested_band.peak);
    if never_used < LEAST || never_used * 100 < band.peak * LEAST_PERCENT {
        return None;
    }
    let bound = if memory.is_some() { "" } else { "up to " };
    let largest = memory
        .map(|m| format!("; the largest free block was {}", Bytes(m.largest)))
        .unwrap_or_default();
    Some(Anomaly {
        id: cx.id(AnomalyKind::Fragmentation, event),
        kind: AnomalyKind::Fragmentation,
        device: cx.trace.device.device,
        severity: cx.severity(AnomalyKind::Fragmentation, never_used as u64),
        bytes: never_used as u64,
        text: format!(
            "When most was reserved ({}, after {}), {bound}{} of it ({} %) was not in use{largest}; the program never \
             had more than {} in use",
            Bytes(band.peak as u64),
            EventIndex(event),
            Bytes(unused as u64),
            unused * 100 / band.peak,
            Bytes(cx.trace.requested_band.peak.max(0) as u64),
        ),
        events: vec![event],
        stack: None,
    })
}

/// The slot in which a segment that was just reserved is in use: the block that it was reserved for
/// is the next event (PyTorch records `segment_alloc` and `alloc` of one call one after the other).
pub(super) fn slot_in_use(cx: &Context, event: u32) -> u32 {
    let row = cx.trace.device.events.start + event + 1;
    let serves =
        row < cx.trace.device.events.end && cx.snapshot.events.action(row) == Action::ALLOC;
    event + 1 + u32::from(serves)
}
