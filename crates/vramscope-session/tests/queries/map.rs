//! The map of segments.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, number};
use vramscope_report::changes::state_changes;
use vramscope_report::segments::segments;
use vramscope_session::messages::views::{Answer, MapInfo, MapSpec, Query};
use vramscope_trace::slicing::now;

#[test]
fn groups_and_pins_equal_the_report() {
    let mut pins = 0;
    for name in FILES {
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let slots = file.entries[0].traces[0].slots();
        for slot in [0, slots / 4, slots / 2, slots - 1] {
            let expected =
                now(async |budget| segments(report_target(&file), slot, None, budget).await);
            let map = MapSpec { event: i64::from(slot) - 1, from: None, lines: 30 };
            let info = answer!(session, Query::Map { map }, Map);
            let mut found: Vec<_> = info
                .groups
                .iter()
                .map(|g| [&g.reserved, &g.active, &g.free, &g.hole].map(number))
                .collect();
            found.sort_unstable();
            let mut wanted: Vec<_> = expected
                .free
                .iter()
                .map(|f| [f.reserved, f.active, f.free, f.largest_free])
                .collect();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{name} in {slot}");
            let kept: Vec<u64> = info.pins.iter().map(|pin| number(&pin.kept)).collect();
            let wanted: Vec<u64> = expected.pins.iter().map(|pin| pin.kept).collect();
            assert_eq!(kept, wanted, "{name} in {slot}");
            pins += kept.len();
            let segments: u64 = info.groups.iter().map(|g| number(&g.segments)).sum();
            assert_eq!(segments as usize, expected.segments.len());
            // All lines fit, and blocks are inside of their line.
            let lines = info.units / 4096.0;
            assert!(lines <= 30.0, "{name} in {slot}: {lines} lines");
            for pin in &info.pins {
                assert!(pin.x.0 < pin.x.1 && pin.x.1 <= info.line_bytes);
                assert!(0.0 <= pin.y.0 && pin.y.0 < pin.y.1 && pin.y.1 <= info.units);
            }
        }
    }
    assert!(pins > 2, "{pins} pins");
}

#[test]
fn lines_stay_as_long_while_the_cursor_steps() {
    let (mut session, loaded) = open_session("recorded/t26/gpt_small.pickle.gz");
    let events = loaded.parts[0].devices[0].events.value as i64;
    let mut lengths: Vec<u64> = (0..40)
        .map(|step| {
            let map = MapSpec { event: events / 2 + step, from: None, lines: 24 };
            answer!(session, Query::Map { map }, Map).line_bytes as u64
        })
        .collect();
    lengths.dedup();
    assert_eq!(lengths.len(), 1, "{lengths:?}");
}

#[test]
fn changes_equal_the_report_and_what_was_released_is_on_the_map() {
    let mut changed = 0;
    for name in FILES {
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let target = report_target(&file);
        let last = file.entries[0].traces[0].slots() - 1;
        for [from, to] in [[0, last / 2], [last / 3, last], [last, last / 2], [last, last]] {
            let events = [from, to].map(|slot| i64::from(slot) - 1);
            let expected = state_changes(target, from, to, None);
            let query = Query::Changes { from: events[0], to: events[1] };
            let found = answer!(session, query, Changes);
            let all = [&found.all.came, &found.all.went, &found.all.stayed].map(number);
            let wanted =
                [&expected.came, &expected.went, &expected.stayed].map(|shares| shares.bytes);
            assert_eq!(all, wanted, "{name} {events:?}");
            let nets: Vec<i128> = found.categories.iter().map(|row| row.net.value).collect();
            let wanted: Vec<i128> =
                expected.by_category.iter().map(|row| row.sums.net_bytes.into()).collect();
            assert_eq!(nets, wanted, "{name} {events:?}");
            for (row, wanted) in found.sites.iter().zip(&expected.by_site) {
                assert_eq!(row.label, wanted.site, "{name} {events:?}");
                assert_eq!(number(&row.came), wanted.sums.came.bytes, "{name} {events:?}");
                assert!((-1.0..=1.0).contains(&row.bar), "{name}: {}", row.bar);
            }
            // The map has all lines for the reserved memory of B, and for what was released.
            let map = MapSpec { event: events[1], from: Some(events[0]), lines: 30 };
            let info = answer!(session, Query::Map { map }, Map);
            let now = MapSpec { event: events[1], from: None, lines: 30 };
            let plain = answer!(session, Query::Map { map: now }, Map);
            assert_eq!(info.text, plain.text, "{name} {events:?}");
            let reserved = |info: &MapInfo| -> u64 {
                info.groups.iter().map(|group| number(&group.reserved)).sum()
            };
            assert_eq!(reserved(&info), expected.to.reserved_bytes, "{name} {events:?}");
            assert!(info.units / 4096.0 <= 30.0, "{name} {events:?}: {}", info.units);
            changed += expected.released_bytes;
        }
    }
    assert!(changed > 0, "nothing was released");
}
