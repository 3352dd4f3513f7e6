//! Time as an axis. The order of events is the file's; time is its running maximum, so that it never runs back.

use memstrata_snapshot::{Device, Snapshot};
use memstrata_units::Micros;

/// The times of a device's events.
#[derive(Clone, Debug)]
pub struct Clock {
    /// `time_us` of the first event that has one, since the Unix epoch.
    pub start: Micros,
    /// Microseconds since `start` of each event, the running maximum: the low half, which is all of it for the first 71 minutes.
    low: Vec<u32>,
    /// The events at which the high half changes, and to what.
    high: Vec<(u32, u32)>,
}

impl Clock {
    /// `None` when no event has a time.
    pub fn new(snapshot: &Snapshot, device: &Device) -> Option<Self> {
        let start = device.events.clone().find_map(|row| snapshot.events.time(row))?;
        let mut last = 0u64;
        let mut high = Vec::new();
        let low = (0u32..).zip(device.events.clone()).map(|(event, row)| {
            // An event without a time, or with one that runs back, is as late as the one before.
            let now = snapshot.events.time(row).map_or(0, |t| t.0.saturating_sub(start.0));
            let before = (last >> 32) as u32;
            last = last.max(now.max(0) as u64);
            let after = (last >> 32) as u32;
            if after != before {
                high.push((event, after));
            }
            last as u32
        });
        let low = low.collect();
        Some(Self { start, low, high })
    }

    /// Microseconds from the window's start to an event.
    pub fn offset(&self, event: u32) -> u64 {
        let changes = self.high.partition_point(|&(from, _)| from <= event);
        let high = changes.checked_sub(1).map_or(0, |last| self.high[last].1);
        u64::from(high) << 32 | u64::from(self.low[event as usize])
    }

    /// Microseconds from the first event to the last.
    pub fn span(&self) -> u64 {
        self.low.len().checked_sub(1).map_or(0, |last| self.offset(last as u32))
    }

    /// How many events are before this offset: the number of the first event at or after it.
    pub fn events_before(&self, offset: u64) -> u32 {
        let (mut from, mut to) = (0, self.low.len() as u32);
        while from < to {
            let middle = from.midpoint(to);
            if self.offset(middle) < offset { from = middle + 1 } else { to = middle }
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;
    use memstrata_snapshot::Reader;

    #[test]
    fn offsets_of_days_and_times_that_run_back() {
        let day = 86_400_000_000i64;
        let times = [5, 7, 6, day, 3 * day, 3 * day - 9, 3 * day + 1].map(|time| time + 1_700_000_000_000_000);
        let events = times.map(|time| format!(r#"{{"action": "alloc", "addr": 4096, "size": 1, "time_us": {time}}}"#));
        let json = format!(r#"{{"segments": [], "device_traces": [[{}]]}}"#, events.join(","));
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("JSON");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let clock = Clock::new(&snapshot, &snapshot.devices[0]).expect("times");
        let day = day as u64;
        let offsets = [0, 2, 2, day - 5, 3 * day - 5, 3 * day - 5, 3 * day - 4];
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|event| clock.offset(event)), offsets);
        assert_eq!(clock.span(), 3 * day - 4);
        let before = [0, 1, 2, 3, day - 5, day, 3 * day - 4, u64::MAX].map(|offset| clock.events_before(offset));
        assert_eq!(before, [0, 1, 1, 3, 3, 4, 6, 7]);
    }
}
