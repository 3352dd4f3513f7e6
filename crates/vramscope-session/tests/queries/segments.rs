//! The segments view: rows, details of segments, and their blocks.

use super::harness::{TARGET, ask, load_file, open_session, report_target};
use super::{FILES, all_rows, number, value};
use vramscope_report::segments::segments;
use vramscope_session::messages::views::{
    Answer, GROWN, Query, ROW_UNITS, SegmentRow, SegmentSort, SegmentSpec,
};
use vramscope_session::messages::{Request, Response};
use vramscope_trace::slicing::now;

/// The height of a row: a quarter more for each factor of four over 2 MiB, up to two rows.
fn height_of(bytes: u64) -> f64 {
    let factors = (1..=4).filter(|&n| bytes >= (2 << 20) << (2 * n)).count();
    f64::from(ROW_UNITS) * (1.0 + factors as f64 / 4.0)
}

#[test]
fn rows_are_complete_and_sorted_in_every_order() {
    for name in FILES {
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let trace = &file.entries[0].traces[0];
        let event = i64::from(trace.slots()) - 2;
        for sort in
            [SegmentSort::Size, SegmentSort::Address, SegmentSort::Pool, SegmentSort::Occupancy]
        {
            let spec = SegmentSpec { sort, event, grown: Some(0) };
            let (info, rows) = all_rows(&mut session, &spec);
            // Rows and headers of pools do not overlap, and have no gaps.
            let mut indices: Vec<u32> = rows.iter().map(|r| r.segment).collect();
            let mut top = info.units;
            for row in &rows {
                if let Some(header) = info.groups.iter().find(|header| header.y1 == top) {
                    assert_eq!((sort, top - header.y0), (SegmentSort::Pool, ROW_UNITS.into()));
                    top = header.y0;
                }
                assert_eq!(row.y1, top, "{name}");
                let more = if row.segment == 0 { f64::from(ROW_UNITS * (GROWN - 1)) } else { 0.0 };
                assert_eq!(row.y1 - row.y0, height_of(number(&row.size)) + more, "{name}");
                assert!(row.segment != 0 || info.grown == Some((row.y0, row.y1)), "{name}");
                top = row.y0;
            }
            assert_eq!(top, 0.0);
            indices.sort_unstable();
            indices.dedup();
            assert_eq!(indices.len(), rows.len(), "{name}");
            // Every segment has a row.
            let places: Vec<_> = rows.iter().map(|r| (&r.address, r.size.value)).collect();
            for segment in 0.. {
                let Some(card) = answer!(session, Query::Segment { segment, event }, Detail) else {
                    assert!(segment as usize >= rows.len(), "{name}");
                    break;
                };
                let address = card.rows.iter().find(|r| r.key == "address").map(|r| &r.text);
                assert!(
                    places.iter().any(|&(a, size)| Some(a) == address && size == card.title.value),
                    "{name}"
                );
            }
            // A part has the rows that reach into it, at their positions.
            let part = (info.units * 0.4, info.units * 0.6);
            let query = Query::SegmentRows { rows: spec, y0: part.0, y1: part.1 };
            let within: Vec<_> =
                rows.iter().filter(|r| r.y0 < part.1 && part.0 < r.y1).cloned().collect();
            assert_eq!(answer!(session, query, SegmentRows), within);
            assert!(!within.is_empty() && within.len() <= rows.len(), "{name}");
            match sort {
                SegmentSort::Size => {
                    assert!(rows.is_sorted_by_key(|r| std::cmp::Reverse(number(&r.size))));
                }
                SegmentSort::Address => {
                    assert!(rows.is_sorted_by_key(|r| (r.address.len(), r.address.clone())));
                }
                SegmentSort::Pool => {}
                SegmentSort::Occupancy => {
                    let mut fill = |row: &SegmentRow| {
                        let card = answer!(
                            session,
                            Query::Segment { segment: row.segment, event },
                            Detail
                        )
                        .expect("a segment");
                        let is_reserved = card.rows.iter().any(|r| r.key == "active_bytes");
                        if is_reserved {
                            value(&card.rows, "active_bytes") as f64 / number(&row.size) as f64
                        } else {
                            2.0
                        }
                    };
                    let mut fills = Vec::new();
                    for row in &rows {
                        fills.push(fill(row));
                    }
                    assert!(fills.is_sorted_by(|a, b| a <= &(b + 1e-9)), "{name}: {fills:?}");
                }
            }
        }
    }
}

#[test]
fn segment_occupancy_equals_the_report() {
    let files = [
        "t26/gpt_small.pickle.gz",
        "t26/streams.pickle.gz",
        "t20/pools.pickle",
        "gpt_late.pickle.gz",
    ];
    for name in files.map(|name| format!("recorded/{name}")) {
        let name = name.as_str();
        let (mut session, _) = open_session(name);
        let file = load_file(name);
        let trace = &file.entries[0].traces[0];
        let rows = all_rows(&mut session, &SegmentSpec::default()).1;
        for slot in [0, trace.slots() / 2, trace.slots() - 1] {
            let expected =
                now(async |budget| segments(report_target(&file), slot, None, budget).await);
            let mut found = Vec::new();
            for row in &rows {
                let query = Query::Segment { segment: row.segment, event: i64::from(slot) - 1 };
                let card = answer!(session, query, Detail).expect("a segment");
                assert_eq!((&*card.kind, &card.title), ("Segment", &row.size));
                if let Some(now) = card.rows.iter().find(|r| r.key == "now") {
                    assert!(now.text.contains("reserved") || now.text.contains("released"));
                    assert!(card.stacks.is_empty() && card.heading.is_empty());
                    continue;
                }
                let holds: u64 = card.stacks.iter().map(|s| number(&s.bytes)).sum();
                assert!(
                    card.stacks.len() == 12 || holds == value(&card.rows, "requested_bytes") as u64,
                    "{name}: {card:?}"
                );
                assert!(card.copy.contains("largest free piece: "), "{}", card.copy);
                let keys =
                    ["allocated_bytes", "active_bytes", "requested_bytes", "free", "largest_free"];
                let address = row.address.replace('_', "");
                found.push((
                    address,
                    number(&row.size),
                    keys.map(|key| value(&card.rows, key) as u64),
                ));
            }
            found.sort_unstable();
            let mut expected: Vec<_> = expected
                .segments
                .iter()
                .map(|s| {
                    (
                        s.address.to_string(),
                        s.total_size.0,
                        [s.allocated, s.active, s.requested, s.free, s.largest_free]
                            .map(|bytes| bytes.0),
                    )
                })
                .collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "{name} in slot {slot}");
        }
    }
}

#[test]
fn segments_add_up_to_the_bands() {
    // The files have blocks whose free was requested before the window, and blocks that extend over
    // several mapped ranges.
    for name in [
        "scenarios/f08.pickle",
        "recorded/gpt_state_only.pickle",
        "recorded/t26/expandable_gpt.pickle.gz",
    ] {
        let (mut session, loaded) = open_session(name);
        let rows = all_rows(&mut session, &SegmentSpec::default()).1;
        let end = loaded.parts[0].devices[0].axes[0].extent as i64 - 2;
        for event in [-1, end / 2, end] {
            let state = answer!(session, Query::StateAt { event }, StateAt);
            let mut cards = Vec::new();
            for row in &rows {
                let card = answer!(session, Query::Segment { segment: row.segment, event }, Detail)
                    .expect("a segment");
                if !card.rows.iter().any(|r| r.key == "now") {
                    cards.push(card);
                }
            }
            for key in ["allocated_bytes", "active_bytes", "requested_bytes"] {
                let sum: i64 = cards.iter().map(|card| value(&card.rows, key)).sum();
                assert_eq!(sum, value(&state.bands, key), "{name} at {event}: {key}");
            }
            let free: i64 = cards.iter().map(|card| value(&card.rows, "free")).sum();
            assert_eq!(free, value(&state.bands, "cached_free"), "{name} at {event}");
        }
    }
}

#[test]
fn segment_of_a_block_contains_it() {
    let (mut session, _) = open_session("recorded/t26/expandable_gpt.pickle.gz");
    let (info, rows) = all_rows(&mut session, &SegmentSpec::default());
    assert!(rows.iter().any(|r| r.label == "expandable"));
    assert_eq!(info.text, "56 mapped ranges in 50 rows · peak reserved 2.28 GiB");
    for block in [0, 1, 100, 1000] {
        let segment = answer!(session, Query::SegmentOf { block }, SegmentOf).expect("a segment");
        let (info, rows) =
            all_rows(&mut session, &SegmentSpec { grown: Some(segment), ..SegmentSpec::default() });
        let row = rows.iter().find(|r| Some((r.y0, r.y1)) == info.grown).expect("a row");
        session.post(Request::Block { id: 1, target: TARGET, block });
        let Some(Response::Block { detail: Some(detail), .. }) = session.step().map(|r| r.response)
        else {
            panic!("a block")
        };
        let parse = |text: &str| {
            u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address")
        };
        let address = detail.reference.split([':', '@']).nth(1).map(parse).expect("an address");
        let low = parse(&row.address.replace('_', ""));
        assert!(low <= address && address < low + number(&row.size), "{row:?} {address:x}");
    }
    assert_eq!(answer!(session, Query::SegmentOf { block: u32::MAX }, SegmentOf), None);
    assert!(answer!(session, Query::Segment { segment: u32::MAX, event: 0 }, Detail).is_none());
}
