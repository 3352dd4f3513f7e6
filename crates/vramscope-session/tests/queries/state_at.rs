//! The state after an event, compared with the report of the report.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number, value};
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::state::state;
use vramscope_session::messages::views::{Answer, Query};
use vramscope_session::messages::{AxisKind, Span};

#[test]
fn state_equals_the_report() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let trace = &file.entries[0].traces[0];
        let last = i64::from(trace.slots()) - 2;
        for event in [-1, 0, last / 3, last / 2, last] {
            let event = event.clamp(-1, last);
            let answer = answer!(session, Query::StateAt { event }, StateAt);
            assert_eq!(answer.event, event, "{name}");
            let report = state(report_target(&file), (event + 1) as u32, None);
            let band = |key| value(&answer.bands, key) as u64;
            assert_eq!(band("requested_bytes"), report.requested_bytes, "{name} at {event}");
            assert_eq!(
                band("requested_bytes"),
                report.blocks.iter().map(|b| b.bytes).sum::<u64>(),
                "{name} at {event}"
            );
            assert_eq!(band("active_bytes"), report.active_bytes);
            assert_eq!(
                band("active_bytes"),
                report.blocks.iter().map(|b| b.block_bytes).sum::<u64>()
            );
            assert_eq!(band("allocated_bytes"), report.allocated_bytes);
            assert_eq!(band("reserved_bytes"), report.reserved_bytes);
            assert_eq!(
                band("reserved_bytes"),
                report.segments.iter().map(|s| s.total_size.0).sum::<u64>()
            );
            assert_eq!(
                band("cached_free"),
                report.segments.iter().map(|s| s.free.0).sum::<u64>(),
                "{name} at {event}"
            );
            assert_eq!(band("rounding_waste"), report.active_bytes - report.requested_bytes);
            assert_eq!(number(&answer.blocks), report.blocks.len() as u64);
            let expected: Vec<_> =
                report.categories.iter().map(|c| (c.category, c.bytes.0)).collect();
            let found: Vec<_> =
                answer.categories.iter().map(|c| (c.name, number(&c.bytes))).collect();
            assert_eq!(found, expected, "{name} at {event}");
            assert!(
                answer.stacks.len() <= 12
                    && answer.stacks.is_sorted_by_key(|s| std::cmp::Reverse(number(&s.bytes)))
            );
            assert_eq!(
                answer.spans[0],
                Span { kind: AxisKind::Event, x0: (event + 1) as f64, x1: (event + 2) as f64 }
            );
        }
    }
}

#[test]
fn state_at_the_peak_has_the_stacks_of_the_peak_report() {
    let name = "recorded/t26/gpt_small.pickle.gz";
    let (mut session, loaded) = open_session(name);
    let file = load_file(name);
    let report = peak(report_target(&file), BandKind::Requested, Some(12));
    let answer = answer!(session, Query::Peak {}, StateAt);
    let same = answer!(session, Query::StateAt { event: report.event }, StateAt);
    assert_eq!((answer.event, format!("{answer:?}")), (report.event, format!("{same:?}")));
    let expected: Vec<_> = report.stacks.iter().map(|s| (s.bytes, u64::from(s.blocks))).collect();
    let found: Vec<_> =
        answer.stacks.iter().map(|s| (number(&s.bytes), number(&s.blocks))).collect();
    assert_eq!(found, expected);
    let labels = answer.stacks.iter().zip(&report.stacks);
    for (row, share) in labels {
        let category = share.category.expect("of requested bytes");
        let of_one = answer.categories.iter().find(|c| c.name.name() == category);
        let label = of_one.map_or("mixed", |c| &*c.label);
        assert_eq!((row.note.as_str(), of_one.is_none()), (label, category == "mixed"));
    }
    // A slot of either axis gives the event.
    for axis in &loaded.parts[0].devices[0].axes {
        let slot = axis.peak + 0.4;
        let event = answer!(session, Query::EventAt { axis: axis.kind, slot }, EventAt);
        assert!(event >= report.event && event < report.event + 8, "{event} {}", report.event);
        assert!(axis.kind == AxisKind::Time || event == report.event);
    }
    let before = Query::EventAt { axis: AxisKind::Event, slot: f64::NAN };
    assert_eq!(answer!(session, before, EventAt), -1);
    let answer = answer!(session, Query::StateAt { event: -1 }, StateAt);
    assert_eq!(
        (answer.event, &*answer.label, &*answer.action),
        (-1, "before the window", "before the window")
    );
    let answer = answer!(session, Query::StateAt { event: i64::MAX }, StateAt);
    assert_eq!(
        answer.event,
        i64::try_from(file.entries[0].traces[0].device.events.len()).expect("few") - 1
    );
}

#[test]
fn state_has_the_block_of_its_event() {
    // A 1000 100; A 1200 200; A 1400 300; F 1200; A 1200 50 (hexadecimal addresses)
    let (mut session, _) = open_session("scenarios/f02.pickle");
    let mut found = Vec::new();
    for event in 0..6 {
        let answer = answer!(session, Query::StateAt { event }, StateAt);
        found.push((answer.block, answer.action));
    }
    let of = |block: u32, action: &str| (Some(block), action.to_owned());
    assert_eq!(found[..3], [of(0, "alloc 100 B"), of(1, "alloc 200 B"), of(2, "alloc 300 B")]);
    assert_eq!(
        found[3..],
        [of(1, "free_requested 200 B"), of(1, "free_completed 200 B"), of(3, "alloc 50 B")]
    );
    let answer = answer!(session, Query::StateAt { event: 5 }, StateAt);
    assert!(
        answer.spoken.starts_with("After event #5")
            && answer.spoken.contains("450 B requested in 3 blocks"),
        "{}",
        answer.spoken
    );
}
