//! The time axis. Events keep the file's order. The time of an event is the running maximum of the
//! recorded times, so it never decreases.

use std::sync::Arc;
use vramscope_snapshot::{Device, Events, Snapshot};
use vramscope_units::Micros;

/// The times of a device's events.
#[derive(Clone, Debug)]
pub struct Clock {
    /// `time_us` of the first event that has one, since the Unix epoch.
    pub start: Micros,
    /// Number of events.
    count: u32,
    times: Times,
}

/// Event times that never decrease.
#[derive(Clone, Debug)]
enum Times {
    /// The recorded times themselves, starting at this row. Nearly all recordings are like this.
    Recorded(Arc<Events>, u32),
    /// The running maximum of the recorded times, where they decrease or some are missing.
    RunningMax(RunningMax),
}

/// Microseconds since [`Clock::start`], by event.
#[derive(Clone, Debug, Default)]
struct RunningMax {
    /// The lower 32 bits. They hold the whole offset during the first 71 minutes.
    low: Vec<u32>,
    /// Events at which the upper 32 bits change, with their new value.
    high: Vec<(u32, u32)>,
}

impl Clock {
    /// Reads the times of a device's events. `None` when no event has a time.
    pub fn new(snapshot: &Snapshot, device: &Device) -> Option<Self> {
        let start = device.events.clone().find_map(|row| snapshot.events.time(row))?;
        let (events, rows) = (&snapshot.events, device.events.clone());
        let is_sorted =
            events.times_rise(rows.clone()) || is_sorted(rows.clone().map(|row| events.time(row)));
        let times = if is_sorted {
            Times::Recorded(Arc::clone(events), rows.start)
        } else {
            Times::RunningMax(RunningMax::new(start, rows.clone().map(|row| events.time(row))))
        };
        Some(Self { start, count: rows.len() as u32, times })
    }

    /// Microseconds from the window's start to an event.
    pub fn offset(&self, event: u32) -> u64 {
        match &self.times {
            // `is_sorted` guarantees that the difference neither is negative nor overflows.
            Times::Recorded(events, first) => {
                events.recorded_time(first + event).0.wrapping_sub(self.start.0) as u64
            }
            Times::RunningMax(times) => times.at(event),
        }
    }

    /// Number of events.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Microseconds from the first event to the last.
    pub fn span(&self) -> u64 {
        self.count.checked_sub(1).map_or(0, |last| self.offset(last))
    }

    /// Number of events before an offset, which is the index of the first event at or after it.
    pub fn events_before(&self, offset: u64) -> u32 {
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = from.midpoint(to);
            if self.offset(middle) < offset { from = middle + 1 } else { to = middle }
        }
        from
    }
}

/// Microseconds from `start` to `time`. 0 if `time` is earlier.
fn since(start: Micros, time: Micros) -> u64 {
    time.0.saturating_sub(start.0).max(0) as u64
}

/// Whether every event has a time, times never decrease, and their differences do not overflow.
fn is_sorted(mut times: impl Iterator<Item = Option<Micros>>) -> bool {
    let Some(first) = times.next().flatten() else { return false };
    let mut last = first;
    times.all(|time| {
        let follows =
            time.is_some_and(|time| last <= time && time.0.checked_sub(first.0).is_some());
        last = time.unwrap_or(last);
        follows
    })
}

impl RunningMax {
    fn new(start: Micros, times: impl ExactSizeIterator<Item = Option<Micros>>) -> Self {
        let mut running = Self { low: Vec::with_capacity(times.len()), high: Vec::new() };
        let mut last = 0u64;
        for (event, time) in (0u32..).zip(times) {
            // An event with a missing or a decreasing time gets the time of the event before it.
            let before = (last >> 32) as u32;
            last = last.max(time.map_or(0, |time| since(start, time)));
            let after = (last >> 32) as u32;
            if after != before {
                running.high.push((event, after));
            }
            running.low.push(last as u32);
        }
        running
    }

    fn at(&self, event: u32) -> u64 {
        let changes = self.high.partition_point(|&(from, _)| from <= event);
        let high = changes.checked_sub(1).map_or(0, |last| self.high[last].1);
        u64::from(high) << 32 | u64::from(self.low[event as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vramscope_snapshot::Reader;

    const DAY: u64 = 86_400_000_000;

    /// The clock of events with these times.
    fn clock(times: &[Option<u64>]) -> Clock {
        let event = |time: &Option<u64>| {
            let time = time.map_or_else(String::new, |t| {
                format!(r#", "time_us": {}"#, t + 1_700_000_000_000_000)
            });
            format!(r#"{{"action": "alloc", "addr": 4096, "size": 1{time}}}"#)
        };
        let events: Vec<String> = times.iter().map(event).collect();
        let json = format!(r#"{{"segments": [], "device_traces": [[], [{}]]}}"#, events.join(","));
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("JSON");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        Clock::new(&snapshot, &snapshot.devices[0]).expect("times")
    }

    #[test]
    fn offsets_span_days_and_ignore_decreasing_times() {
        let clock = clock(&[5, 7, 6, DAY, 3 * DAY, 3 * DAY - 9, 3 * DAY + 1].map(Some));
        let offsets = [0, 2, 2, DAY - 5, 3 * DAY - 5, 3 * DAY - 5, 3 * DAY - 4];
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|event| clock.offset(event)), offsets);
        assert_eq!(clock.span(), 3 * DAY - 4);
        let before = [0, 1, 2, 3, DAY - 5, DAY, 3 * DAY - 4, u64::MAX]
            .map(|offset| clock.events_before(offset));
        assert_eq!(before, [0, 1, 1, 3, 3, 4, 6, 7]);
    }

    #[test]
    fn sorted_times_are_read_from_the_events() {
        assert!(matches!(clock(&[5, 5, 7, 3 * DAY].map(Some)).times, Times::Recorded(..)));
        assert!(matches!(clock(&[Some(5), Some(4)]).times, Times::RunningMax(_)));
        assert!(matches!(clock(&[None, Some(5)]).times, Times::RunningMax(_)));
        assert!(matches!(clock(&[Some(5), None, Some(6)]).times, Times::RunningMax(_)));
    }

    proptest! {
        #[test]
        fn offsets_are_the_running_maximum(
            steps in proptest::collection::vec(0..1u64 << 31, 1..60),
            replaced in proptest::collection::btree_map(
                0..60usize,
                prop_oneof![Just(None), (0..1u64 << 35).prop_map(Some)],
                0..3,
            ),
        ) {
            let mut time = 0;
            let mut times: Vec<Option<u64>> = steps
                .iter()
                .map(|step| {
                    time += step;
                    Some(time)
                })
                .collect();
            for (at, time) in replaced {
                if at < times.len() {
                    times[at] = time;
                }
            }
            prop_assume!(times.iter().any(Option::is_some));
            let clock = clock(&times);
            let start = times.iter().flatten().next().copied().unwrap_or(0);
            let mut last = 0;
            for (event, time) in (0..).zip(&times) {
                last = last.max(time.unwrap_or(0).saturating_sub(start));
                prop_assert_eq!(clock.offset(event), last);
                let before = (0..event).find(|&e| clock.offset(e) >= last).unwrap_or(event);
                prop_assert_eq!(clock.events_before(last), before);
            }
            prop_assert_eq!(clock.span(), last);
        }
    }
}
