//! Time as an axis. The order of events is the file's; time is its running maximum, so that it never runs back.

use memstrata_snapshot::{Device, Snapshot};
use memstrata_units::Micros;

/// The times of a device's events.
#[derive(Clone, Debug)]
pub struct Clock {
    /// `time_us` of the first event that has one, since the Unix epoch.
    pub start: Micros,
    /// Microseconds since `start` of each event: the running maximum.
    offsets: Vec<u64>,
}

impl Clock {
    /// `None` when no event has a time.
    pub fn new(snapshot: &Snapshot, device: &Device) -> Option<Self> {
        let start = device.events.clone().find_map(|row| snapshot.events.time(row))?;
        let mut last = 0;
        let offsets = device.events.clone().map(|row| {
            // An event without a time, or with one that runs back, is as late as the one before.
            let now = snapshot.events.time(row).map_or(0, |t| t.0.saturating_sub(start.0));
            last = last.max(now.max(0) as u64);
            last
        });
        Some(Self { start, offsets: offsets.collect() })
    }

    /// Microseconds from the window's start to an event.
    pub fn offset(&self, event: u32) -> u64 {
        self.offsets[event as usize]
    }

    /// Microseconds from the first event to the last.
    pub fn span(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// How many events are before this offset: the number of the first event at or after it.
    pub fn events_before(&self, offset: u64) -> u32 {
        self.offsets.partition_point(|&o| o < offset) as u32
    }
}
