//! One device of one snapshot, and conversions between slots and events.

use crate::SnapshotEntry;
use vramscope_snapshot::Snapshot;
use vramscope_trace::{Exactness, Trace};

/// The subject of a report: one device of one snapshot of a file.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The file's path, followed by `#name` if the file contains several snapshots.
    pub path: &'a str,
    /// The snapshot.
    pub entry: &'a SnapshotEntry,
    /// Index of the device's trace in the snapshot.
    pub index: usize,
}

impl<'a> Target<'a> {
    /// The snapshot's tables.
    pub fn snapshot(&self) -> &'a Snapshot {
        &self.entry.snapshot
    }

    /// The device's trace.
    pub fn trace(&self) -> &'a Trace {
        &self.entry.traces[self.index]
    }

    /// The device's ordinal.
    pub fn device(&self) -> u32 {
        self.trace().device.device
    }
}

/// The slot after an event; slot 0, the state before the window, for `None`.
pub fn slot_of(event: Option<u32>) -> u32 {
    event.map_or(0, |e| e + 1)
}

/// The event before a slot; -1 for the state before the window.
pub fn event_of(slot: u32) -> i64 {
    i64::from(slot) - 1
}

/// The time of the event before a slot, in microseconds since the Unix epoch. `None` without a
/// clock, and for the state before the window.
pub fn time_of(trace: &Trace, slot: u32) -> Option<i64> {
    let clock = trace.clock.as_ref()?;
    slot.checked_sub(1).map(|event| clock.start.0 + clock.offset(event) as i64)
}

/// The name of an exactness in JSON.
pub fn exactness(of: Exactness) -> &'static str {
    match of {
        Exactness::Exact => "exact",
        Exactness::Estimate => "estimate",
    }
}

/// The slot after an event, clamped to the trace.
pub fn slot_after(trace: &Trace, event: i64) -> u32 {
    event.saturating_add(1).clamp(0, i64::from(trace.slots()) - 1) as u32
}
