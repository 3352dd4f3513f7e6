//! The scale of the time axis. Long times in which nothing happens take little room: start-up,
//! before the program holds memory, and gaps between events.

use crate::clock::Clock;
use crate::series::Series;

/// A trace with fewer events has an even scale.
const MIN_EVENTS: u32 = 64;
/// A gap between two events is cut when it takes more than this part of the window.
const GAP_PARTS: u64 = 25;
/// Start-up is cut when it takes more than this part of the window.
const START_PARTS: u64 = 10;
/// The width of a cut is this part of the time that is not cut.
const CUT_PARTS: u64 = 40;
/// Start-up ends when this part of the peak is in use.
const SMALL_PARTS: u64 = 100;

/// A part of the window that takes less room than others. All numbers are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The first offset from the window's start.
    pub from: u64,
    /// The offset at its end.
    pub to: u64,
    /// The position of `from` on the scale.
    pub at: u64,
    /// The width on the scale.
    pub width: u64,
    /// Whether it is start-up. Otherwise there are no events in it.
    pub is_start: bool,
}

/// The positions of offsets from a window's start. Positions never decrease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeScale {
    cuts: Vec<Cut>,
}

impl TimeScale {
    /// The scale of a window. It costs a few hundred reads of the clock.
    pub fn new(clock: &Clock, requested: &Series, peak: i64) -> Self {
        let span = clock.span();
        if clock.count() < MIN_EVENTS || span < GAP_PARTS * CUT_PARTS {
            return Self::default();
        }
        let mut cuts: Vec<Cut> = Vec::new();
        let start = start_of(clock, requested, peak);
        if start > span / START_PARTS {
            cuts.push(Cut { from: 0, to: start, at: 0, width: 0, is_start: true });
        }
        // A gap that is long enough contains a whole bin without events.
        let edge =
            |bin: u64| (u128::from(span) * u128::from(bin) / u128::from(2 * GAP_PARTS)) as u64;
        for bin in 0..2 * GAP_PARTS {
            let next = clock.events_before(edge(bin + 1));
            let Some(last) = next.checked_sub(1).filter(|_| next < clock.count()) else { continue };
            let (from, to) = (clock.offset(last), clock.offset(next));
            let is_known = cuts.last().is_some_and(|cut| from < cut.to);
            if from <= edge(bin) && to - from > span / GAP_PARTS && !is_known {
                cuts.push(Cut { from, to, at: 0, width: 0, is_start: false });
            }
        }
        let cut: u64 = cuts.iter().map(|cut| cut.to - cut.from).sum();
        let width = ((span - cut) / CUT_PARTS).max(1);
        cuts.retain(|cut| cut.to - cut.from > 2 * width);
        let mut removed = 0;
        for cut in &mut cuts {
            (cut.at, cut.width) = (cut.from - removed, width);
            removed += cut.to - cut.from - width;
        }
        Self { cuts }
    }

    /// The parts that take less room, in order.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// The position of an offset.
    pub fn position(&self, offset: u64) -> u64 {
        let index = self.cuts.partition_point(|cut| cut.from <= offset);
        let Some(cut) = index.checked_sub(1).map(|index| &self.cuts[index]) else { return offset };
        if offset >= cut.to {
            return cut.at + cut.width + (offset - cut.to);
        }
        let part = u128::from(offset - cut.from) * u128::from(cut.width);
        cut.at + (part / u128::from(cut.to - cut.from)) as u64
    }

    /// The first offset whose position is not below a position.
    pub fn offset(&self, position: u64) -> u64 {
        let index = self.cuts.partition_point(|cut| cut.at < position);
        let Some(cut) = index.checked_sub(1).map(|index| &self.cuts[index]) else {
            return position;
        };
        let within = position - cut.at;
        if within >= cut.width {
            return cut.to.saturating_add(within - cut.width);
        }
        let part = u128::from(within) * u128::from(cut.to - cut.from);
        cut.from + part.div_ceil(u128::from(cut.width)) as u64
    }
}

/// The offset at which the program first holds a hundredth of the peak.
fn start_of(clock: &Clock, requested: &Series, peak: i64) -> u64 {
    let small = u64::try_from(peak).unwrap_or(0) / SMALL_PARTS;
    let is_reached =
        |slots: u32| requested.largest(0..slots).is_some_and(|(_, largest)| largest > small);
    let (mut below, mut above) = (0, requested.len() as u32);
    if !is_reached(above) {
        return 0;
    }
    // `below` slots do not reach it, and `above` slots do.
    while above - below > 1 {
        let middle = below.midpoint(above);
        if is_reached(middle) { above = middle } else { below = middle }
    }
    // The last of them is the slot after event `below - 1`.
    below.checked_sub(1).map_or(0, |event| clock.offset(event))
}

#[cfg(test)]
mod tests {
    use crate::Trace;
    use proptest::prelude::*;
    use vramscope_snapshot::Reader;

    /// A trace whose blocks of 1 MiB are allocated at these times. The first `small` are of 1 KiB.
    fn trace(times: &[u64], small: usize) -> Trace {
        let events: Vec<String> = times
            .iter()
            .enumerate()
            .map(|(i, time)| {
                let size = if i < small { 1 << 10 } else { 1 << 20 };
                format!(
                    r#"{{"action": "alloc", "addr": {}, "size": {size}, "time_us": {}}}"#,
                    (i + 1) << 21,
                    time + 1_700_000_000_000_000
                )
            })
            .collect();
        let json = format!(r#"{{"segments": [], "device_traces": [[{}]]}}"#, events.join(","));
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("JSON");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        Trace::all(&snapshot).remove(0)
    }

    fn burst(from: u64) -> impl Iterator<Item = u64> {
        (0..100).map(move |i| from + 10 * i)
    }

    #[test]
    fn start_up_and_idle_gaps_are_cut() {
        let times: Vec<u64> =
            [0, 400_000].into_iter().chain(burst(600_000)).chain(burst(900_000)).collect();
        let trace = trace(&times, 2);
        let cuts = trace.time_scale.cuts();
        let parts: Vec<_> = cuts.iter().map(|cut| (cut.from, cut.to, cut.is_start)).collect();
        assert_eq!(parts, [(0, 600_010, true), (600_990, 900_000, false)]);
        // 1,970 microseconds are not cut.
        assert!(cuts.iter().all(|cut| cut.width == 1_970 / 40), "{cuts:?}");
        assert_eq!((cuts[0].at, cuts[1].at), (0, 49 + 980));
        assert_eq!(trace.time_scale.position(900_990), 1_970 + 2 * 49);
    }

    #[test]
    fn busy_and_short_traces_have_an_even_scale() {
        let even: Vec<u64> = (0..500).map(|i| i * 1000).collect();
        assert!(trace(&even, 0).time_scale.cuts().is_empty());
        let few: Vec<u64> = [0, 10, 900_000].to_vec();
        assert!(trace(&few, 0).time_scale.cuts().is_empty());
    }

    proptest! {
        #[test]
        fn positions_never_decrease_and_can_be_inverted(
            gaps in proptest::collection::vec((1..50u64, 0..400_000u64), 1..5),
            small in 0..80usize,
            at in 0..2_000_000u64,
        ) {
            let (mut times, mut time) = (Vec::new(), 0);
            for (step, gap) in gaps {
                times.extend((0..100).map(|i| time + i * step));
                time += 100 * step + gap;
            }
            let trace = trace(&times, small);
            let (scale, clock) = (&trace.time_scale, trace.clock.as_ref().expect("a clock"));
            let at = at % (clock.span() + 10);
            prop_assert!(scale.position(at) <= scale.position(at + 1));
            // The inverse is the first offset at that position.
            let position = scale.position(at);
            let first = scale.offset(position);
            prop_assert!(first <= at && scale.position(first) == position);
            prop_assert!(first == 0 || scale.position(first - 1) < position);
            let length: u64 = scale.position(clock.span());
            prop_assert!(length <= clock.span());
        }
    }
}
