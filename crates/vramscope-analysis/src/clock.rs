//! Time as an axis. The order of events is the file's; time is its running maximum, so that it
//! never runs back.

use std::sync::Arc;
use vramscope_snapshot::{Device, Events, Snapshot};
use vramscope_units::Micros;

/// The times of a device's events.
#[derive(Clone, Debug)]
pub struct Clock {
    /// `time_us` of the first event that has one, since the Unix epoch.
    pub start: Micros,
    /// How many events there are.
    count: u32,
    times: Times,
}

/// Times that never run back.
#[derive(Clone, Debug)]
enum Times {
    /// Those of the events themselves, as nearly all recordings have them, from this row on.
    Recorded(Arc<Events>, u32),
    /// Their running maximum, where they do run back or some are missing.
    Raised(Raised),
}

/// Microseconds since the start.
#[derive(Clone, Debug, Default)]
struct Raised {
    /// The low halves, which are all of it for the first 71 minutes.
    low: Vec<u32>,
    /// The events at which the high half changes, and to what.
    high: Vec<(u32, u32)>,
}

impl Clock {
    /// `None` when no event has a time.
    pub fn new(snapshot: &Snapshot, device: &Device) -> Option<Self> {
        let start = device.events.clone().find_map(|row| snapshot.events.time(row))?;
        let (events, rows) = (&snapshot.events, device.events.clone());
        let rises =
            events.times_rise(rows.clone()) || rises(rows.clone().map(|row| events.time(row)));
        let times = if rises {
            Times::Recorded(Arc::clone(events), rows.start)
        } else {
            Times::Raised(Raised::new(start, rows.clone().map(|row| events.time(row))))
        };
        Some(Self { start, count: rows.len() as u32, times })
    }

    /// Microseconds from the window's start to an event.
    pub fn offset(&self, event: u32) -> u64 {
        match &self.times {
            // No earlier than the start, and no further from it than a number goes: then there is
            // nothing to ask.
            Times::Recorded(events, first) => {
                events.recorded_time(first + event).0.wrapping_sub(self.start.0) as u64
            }
            Times::Raised(raised) => raised.at(event),
        }
    }

    /// Microseconds from the first event to the last.
    pub fn span(&self) -> u64 {
        self.count.checked_sub(1).map_or(0, |last| self.offset(last))
    }

    /// How many events are before this offset: the number of the first event at or after it.
    pub fn events_before(&self, offset: u64) -> u32 {
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = from.midpoint(to);
            if self.offset(middle) < offset { from = middle + 1 } else { to = middle }
        }
        from
    }
}

/// Microseconds from one time to a later one; none if it is earlier.
fn since(start: Micros, time: Micros) -> u64 {
    time.0.saturating_sub(start.0).max(0) as u64
}

/// Whether there is a time everywhere, none is before the one in front of it, and how far they are
/// apart can be told.
fn rises(mut times: impl Iterator<Item = Option<Micros>>) -> bool {
    let Some(first) = times.next().flatten() else { return false };
    let mut last = first;
    times.all(|time| {
        let rises = time.is_some_and(|time| last <= time && time.0.checked_sub(first.0).is_some());
        last = time.unwrap_or(last);
        rises
    })
}

impl Raised {
    fn new(start: Micros, times: impl ExactSizeIterator<Item = Option<Micros>>) -> Self {
        let mut raised = Self { low: Vec::with_capacity(times.len()), high: Vec::new() };
        let mut last = 0u64;
        for (event, time) in (0u32..).zip(times) {
            // An event without a time, or with one that runs back, is as late as the one before.
            let before = (last >> 32) as u32;
            last = last.max(time.map_or(0, |time| since(start, time)));
            let after = (last >> 32) as u32;
            if after != before {
                raised.high.push((event, after));
            }
            raised.low.push(last as u32);
        }
        raised
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

    /// The clock of events at these times.
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
    fn offsets_of_days_and_times_that_run_back() {
        let clock = clock(&[5, 7, 6, DAY, 3 * DAY, 3 * DAY - 9, 3 * DAY + 1].map(Some));
        let offsets = [0, 2, 2, DAY - 5, 3 * DAY - 5, 3 * DAY - 5, 3 * DAY - 4];
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|event| clock.offset(event)), offsets);
        assert_eq!(clock.span(), 3 * DAY - 4);
        let before = [0, 1, 2, 3, DAY - 5, DAY, 3 * DAY - 4, u64::MAX]
            .map(|offset| clock.events_before(offset));
        assert_eq!(before, [0, 1, 1, 3, 3, 4, 6, 7]);
    }

    #[test]
    fn times_that_never_run_back_are_those_of_the_events() {
        assert!(matches!(clock(&[5, 5, 7, 3 * DAY].map(Some)).times, Times::Recorded(..)));
        assert!(matches!(clock(&[Some(5), Some(4)]).times, Times::Raised(_)));
        assert!(matches!(clock(&[None, Some(5)]).times, Times::Raised(_)));
        assert!(matches!(clock(&[Some(5), None, Some(6)]).times, Times::Raised(_)));
    }

    proptest! {
        #[test]
        fn offsets_are_the_running_maximum(
            steps in proptest::collection::vec(0..1u64 << 31, 1..60),
            odd in proptest::collection::btree_map(0..60usize, prop_oneof![Just(None), (0..1u64 << 35).prop_map(Some)], 0..3),
        ) {
            let mut time = 0;
            let mut times: Vec<Option<u64>> = steps.iter().map(|step| { time += step; Some(time) }).collect();
            for (at, time) in odd {
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
