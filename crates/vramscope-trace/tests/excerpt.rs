//! Excerpts: files of which only a range of events is read. Every state in the range equals that of
//! the whole file.

use crate::bytes_of;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use vramscope_snapshot::{Action, Reader, SegmentType, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Carving, Exactness, Segments, Trace};

fn load(bytes: &[u8], events: Option<Range<u32>>, chunk: usize) -> Snapshot {
    let mut reader = events.map_or_else(Reader::default, Reader::for_event_range);
    for piece in bytes.chunks(chunk) {
        reader.feed(piece).expect("a snapshot");
    }
    reader.finish().expect("a snapshot").remove(0).snapshot
}

/// The live blocks of a slot: address, bytes, stack and stream. Stack and stream ids are the same
/// in an excerpt as in the whole file.
fn live(trace: &Trace, slot: u32) -> BTreeSet<(u64, u64, u32, u16)> {
    let live = trace.blocks.iter().filter(|b| b.is_live_at(slot));
    live.map(|b| (b.address.0, b.bytes.0, b.stack.0, b.stream.0)).collect()
}

/// Compares an excerpt with the whole file. Returns the number of rows of the excerpt.
fn assert_matches(name: &str, whole: &Snapshot, part: &Snapshot, events: &Range<u32>) -> usize {
    assert_eq!(part.devices.len(), whole.devices.len(), "{name}");
    let mut rows = 0;
    for (device, of_whole) in part.devices.iter().zip(&whole.devices) {
        let (part_trace, whole_trace) = (Trace::new(part, device), Trace::new(whole, of_whole));
        rows += device.events.len();
        let seen = of_whole.events.len() as u32;
        let Some(excerpt) = &device.excerpt else {
            assert_eq!(
                device.events.len(),
                of_whole.events.len(),
                "{name}: the whole file is no excerpt"
            );
            continue;
        };
        let (from, to) = (events.start.min(seen), events.end.min(seen));
        assert_eq!((excerpt.of, &excerpt.events), (seen, &(from..to)), "{name}");
        assert_eq!(part_trace.warnings[0].kind.name(), "part", "{name}");
        // The excerpt has all rows of the range.
        for event in from..to {
            let row = device.events.start + excerpt.before + event - from;
            let of = of_whole.events.start + event;
            assert_eq!(
                part.events.action(row),
                whole.events.action(of),
                "{name} {events:?} at {event}"
            );
            assert_eq!(
                part.events.addr(row),
                whole.events.addr(of),
                "{name} {events:?} at {event}"
            );
            assert_eq!(
                part.events.time(row),
                whole.events.time(of),
                "{name} {events:?} at {event}"
            );
            for (mine, other) in [
                (&part.events.user_metadata, &whole.events.user_metadata),
                (&part.events.compile_context, &whole.events.compile_context),
            ] {
                let text = vramscope_snapshot::Events::sparse(mine, row);
                assert_eq!(
                    text,
                    vramscope_snapshot::Events::sparse(other, of),
                    "{name} {events:?} at {event}"
                );
            }
        }
        // The excerpt has all states of the range, which are one more than its events.
        let here = |slot: u32| excerpt.before + slot - from;
        let requested = |trace: &Trace, slots: Range<u32>| -> Vec<u64> {
            trace.requested.values(slots).collect()
        };
        assert_eq!(
            requested(&part_trace, here(from)..here(to) + 1),
            requested(&whole_trace, from..to + 1),
            "{name} {events:?}: requested bytes"
        );
        let reserved = (
            now(async |budget| part_trace.reserved(part, budget).await),
            now(async |budget| whole_trace.reserved(whole, budget).await),
        );
        assert!(
            reserved.0.values(here(from)..here(to) + 1).eq(reserved.1.values(from..to + 1)),
            "{name} {events:?}: reserved bytes"
        );
        let sizes = (
            now(async |budget| Carving::new(part, &part_trace, budget).await),
            now(async |budget| Carving::new(whole, &whole_trace, budget).await),
        );
        assert_eq!(sizes.0.exactness, Exactness::Estimate);
        let within = |carving: &Carving, slots: Range<u32>| -> Vec<u64> {
            carving.active.values(slots).collect()
        };
        let active = (within(&sizes.0, here(from)..here(to) + 1), within(&sizes.1, from..to + 1));
        // The allocator leaves up to 1 MiB unsplit. Only events outside of the range show it.
        let off = active.0.iter().zip(&active.1).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
        assert!(off <= 1 << 20, "{name} {events:?}: active bytes are {off} bytes apart");
        let step = ((to - from) / 40).max(1) as usize;
        for slot in (from..=to).step_by(step).chain([to]) {
            assert_eq!(
                live(&part_trace, here(slot)),
                live(&whole_trace, slot),
                "{name} {events:?}: slot {slot}"
            );
            let spans = |carving: &Carving, slot: u32| -> Vec<_> {
                let spans = carving.segments.at(slot).into_iter();
                spans
                    .map(|s| (s.address, s.size, s.is_expandable, s.stream, s.pool, s.stack))
                    .collect()
            };
            assert_eq!(
                spans(&sizes.0, here(slot)),
                spans(&sizes.1, slot),
                "{name} {events:?}: segments in slot {slot}"
            );
        }
        // The excerpt keeps few events from outside of the range: at most three for each block that
        // is live at the start or end of the range, or at the end of the file.
        let segment_events = of_whole.events.clone().filter(|&row| {
            (Action::SEGMENT_ALLOC..=Action::SEGMENT_UNMAP).contains(&whole.events.action(row))
        });
        let around = live(&whole_trace, from).len()
            + live(&whole_trace, to).len()
            + live(&whole_trace, seen).len();
        let max_rows = (to - from) as usize + 3 * around + 4 * segment_events.count();
        assert!(
            device.events.len() <= max_rows,
            "{name} {events:?}: {} rows, more than {max_rows}",
            device.events.len()
        );
    }
    rows
}

const RECORDED: [&str; 12] = [
    "recorded/gpt_leak.pickle.gz",
    "recorded/gpt_late.pickle.gz",
    "recorded/gpt_ring10000.pickle.gz",
    "recorded/gpt_max_split.pickle.gz",
    "recorded/late_expandable_26.pickle.gz",
    "recorded/oom_expandable.pickle.gz",
    "recorded/t20/streams.pickle.gz",
    "recorded/t26/gpt_small.pickle.gz",
    "recorded/t26/expandable_gpt.pickle.gz",
    "recorded/t29/two_devices.pickle.gz",
    "edge/lost_alloc.pickle",
    "edge/metadata.pickle",
];

#[test]
fn excerpts_of_recordings_match_the_whole_file() {
    for name in RECORDED {
        let bytes = bytes_of(name);
        let whole = load(&bytes, None, usize::MAX);
        let events = whole.devices.iter().map(|d| d.events.len() as u32).max().unwrap_or(0);
        for (from, to) in
            [(0, 10), (0, 50), (35, 40), (47, 48), (50, 90), (60, 60), (90, 100), (100, 110)]
        {
            let range = events * from / 100..events * to / 100;
            let part = load(&bytes, Some(range.clone()), 4096);
            let rows = assert_matches(name, &whole, &part, &range);
            assert!(rows <= whole.events.len());
        }
    }
}

#[test]
fn a_short_excerpt_of_a_long_recording_has_few_rows() {
    let bytes = bytes_of("recorded/gpt_leak.pickle.gz");
    let whole = load(&bytes, None, usize::MAX);
    let middle = whole.events.len() as u32 / 2;
    let part = load(&bytes, Some(middle..middle + 100), 1 << 16);
    assert!(
        part.events.len() * 3 < whole.events.len(),
        "{} of {}",
        part.events.len(),
        whole.events.len()
    );
}

#[test]
fn an_excerpt_of_all_events_equals_the_whole_file() {
    let bytes = bytes_of("recorded/t26/gpt_small.pickle.gz");
    let (whole, all) =
        (load(&bytes, None, usize::MAX), load(&bytes, Some(0..u32::MAX), usize::MAX));
    assert_eq!(vramscope_snapshot::dump(&all), vramscope_snapshot::dump(&whole));
}

#[test]
fn consecutive_segments_get_their_type_from_the_next_allocation() {
    // An excerpt can end in a long run of segment events. Searching from each of them separately
    // would take five billion steps.
    let (count, size) = (100_000u64, 2 << 20);
    let segment =
        |i: u64| format!(r#"{{"action":"segment_alloc","addr":{},"size":{size}}}"#, (i + 1) * size);
    let mut events: Vec<String> = (0..count).map(segment).collect();
    events.push(format!(r#"{{"action":"alloc","addr":{},"size":512}}"#, count * size));
    events.push(segment(count));
    let json = format!(r#"{{"device_traces":[[{}]],"segments":[]}}"#, events.join(","));
    let snapshot = load(json.as_bytes(), None, usize::MAX);
    let segments = Segments::new(&snapshot, &snapshot.devices[0]);
    let types: Vec<SegmentType> =
        segments.spans.iter().filter(|s| s.event.is_some()).map(|s| s.segment_type).collect();
    assert_eq!(types, vec![SegmentType::Small; count as usize + 1]);
}

/// Events: index into [`ACTIONS`], address and size.
type Events = Vec<(usize, u64, u64)>;
/// Final blocks: address, whether the block is active, and whether its free is pending.
type FinalBlocks = Vec<(u64, bool, bool)>;

/// Random events, mostly inconsistent, at four addresses.
fn trace() -> impl Strategy<Value = (Events, FinalBlocks)> {
    let event = (0..10usize, 0..4u64, 1..4u64);
    let finals = prop::collection::vec((0..4u64, any::<bool>(), any::<bool>()), 0..4);
    (prop::collection::vec(event, 0..60), finals)
}

const ACTIONS: [&str; 10] = [
    "alloc",
    "free_completed",
    "alloc",
    "free_completed",
    "free_requested",
    "free",
    "segment_alloc",
    "segment_free",
    "oom",
    "unheard_of",
];

fn json(
    events: &[(usize, u64, u64)],
    finals: &[(u64, bool, bool)],
    segments_first: bool,
) -> String {
    let events: Vec<String> = (0..)
        .zip(events)
        .map(|(time, &(action, at, size)): (u32, _)| {
            let (addr, name) = (4096 * (at + 1), ACTIONS[action]);
            // Segments are separate from blocks. Inconsistent segments would depend on the events
            // outside of the range.
            let addr = if name.starts_with("segment") { addr + 1_000_000 } else { addr };
            format!(
                r#"{{"action":"{name}","addr":{addr},"size":{},"time_us":{time},
                "user_metadata":"{time}",
                "frames":[{{"name":"f{time}","filename":"m.py","line":{time}}}]}}"#,
                size * 512
            )
        })
        .collect();
    let mut seen = BTreeSet::new();
    let blocks: Vec<String> = finals
        .iter()
        .filter(|(at, ..)| seen.insert(*at))
        .map(|&(at, active, pending)| {
            let state = match (active, pending) {
                (true, false) => "active_allocated",
                (true, true) => "active_pending_free",
                _ => "inactive",
            };
            format!(
                r#"{{"address":{},"size":2048,"requested_size":1500,"state":"{state}"}}"#,
                4096 * (at + 1)
            )
        })
        .collect();
    let traces = format!(r#""device_traces":[[{}]]"#, events.join(","));
    let blocks = blocks.join(",");
    let segments = format!(
        r#""segments":[{{"device":0,"address":0,"total_size":65536,"blocks":[{blocks}]}}]"#
    );
    if segments_first {
        format!("{{{segments},{traces}}}")
    } else {
        format!("{{{traces},{segments}}}")
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn excerpts_of_inconsistent_traces_have_the_same_states(
        (events, finals) in trace(),
        from in 0..60u32,
        len in 0..30u32,
        segments_first: bool,
    ) {
        let text = json(&events, &finals, segments_first);
        let range = from..from + len;
        let whole = load(text.as_bytes(), None, usize::MAX);
        let part = load(text.as_bytes(), Some(range.clone()), usize::MAX);
        let whole_trace = Trace::new(&whole, &whole.devices[0]);
        let device = &part.devices[0];
        let trace = Trace::new(&part, device);
        if let Some(excerpt) = &device.excerpt {
            let (from, to) = (excerpt.events.start, excerpt.events.end);
            for slot in from..=to {
                let here = excerpt.before + slot - from;
                prop_assert_eq!(live(&trace, here), live(&whole_trace, slot), "slot {}", slot);
                prop_assert_eq!(
                    trace.requested.at(here),
                    whole_trace.requested.at(slot),
                    "slot {}",
                    slot
                );
            }
        }
    }
}
