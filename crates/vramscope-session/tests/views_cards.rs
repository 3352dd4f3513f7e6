//! The answers of the views about a whole file, a moment and a segment, against what the program
//! prints.

use std::path::Path;
use vramscope_protocol::views::*;
use vramscope_protocol::{AxisKind, DetailRow, DeviceRef, Loaded, Request, Response, Span};
use vramscope_report::LoadedFile;
use vramscope_report::peak::{BandKind, peak};
use vramscope_report::rank::RankSummary;
use vramscope_report::segments::segments;
use vramscope_report::state::{State, state};
use vramscope_report::{FindingKind, Severity, SnapshotEntry};
use vramscope_report::{Target, info::info};
use vramscope_session::{FileSession, Loader};

const TARGET: DeviceRef = DeviceRef { part: 0, device: 0 };

fn bytes(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    std::fs::read(path).expect("a file of test_data")
}

fn engine(name: &str) -> (FileSession, Loaded) {
    let mut engine = FileSession::new(name, 0);
    engine.feed(&bytes(name)).expect("a snapshot");
    let Response::Loaded(loaded) = engine.finish() else { panic!("{name} is a snapshot") };
    (engine, loaded)
}

fn file(name: &str) -> LoadedFile {
    let mut loader = Loader::new(name, 0);
    loader.feed(&bytes(name)).expect("a snapshot");
    loader.finish().expect("a snapshot")
}

fn target<'a>(name: &'a str, entry: &'a SnapshotEntry) -> Target<'a> {
    Target { path: name, entry, index: 0 }
}

fn ask(engine: &mut FileSession, target: DeviceRef, query: Query) -> Answer {
    engine.post(Request::View { id: 5, target, query });
    let reply = engine.step().expect("an answer");
    let Response::View { id: 5, answer } = reply.response else { panic!("{:?}", reply.response) };
    answer
}

macro_rules! answer {
    ($engine:expr, $query:expr, $kind:ident) => {{
        let query: Query = $query;
        match ask(&mut $engine, TARGET, query) {
            Answer::$kind(answer) => answer,
            other => panic!("{other:?}"),
        }
    }};
}

/// The rows of the segments view, page by page from the top.
fn all_rows(engine: &mut FileSession, spec: &SegmentSpec) -> (SegmentsInfo, Vec<SegmentRow>) {
    let info = answer!(*engine, Query::Segments { rows: spec.clone() }, Segments);
    let (mut rows, mut y1) = (Vec::<SegmentRow>::new(), info.units);
    while y1 > 0.0 {
        rows.extend(answer!(
            *engine,
            Query::SegmentRows { rows: spec.clone(), y0: 0.0, y1 },
            SegmentRows
        ));
        y1 = rows.last().expect("rows down to the bottom").y0;
    }
    (info, rows)
}

fn raw(row: &DetailRow) -> i64 {
    row.raw
        .as_deref()
        .and_then(|r| r.parse().ok())
        .unwrap_or_else(|| panic!("{} has an integer", row.key))
}

fn value(rows: &[DetailRow], key: &str) -> i64 {
    raw(rows.iter().find(|r| r.key == key).unwrap_or_else(|| panic!("a row {key}")))
}

fn text<'a>(rows: &'a [DetailRow], key: &str) -> &'a str {
    rows.iter().find(|r| r.key == key).map_or("", |r| &r.text)
}

fn number(quantity: &vramscope_protocol::Quantity) -> u64 {
    quantity.value.try_into().expect("an integer")
}

const FILES: [&str; 8] = [
    "scenarios/f05.pickle",
    "recorded/t20/gpt_small.pickle.gz",
    "recorded/t26/gpt_small.pickle.gz",
    "recorded/t26/streams.pickle.gz",
    "recorded/t29/expandable_gpt.pickle.gz",
    "recorded/gpt_max_split.pickle.gz",
    "recorded/misc/norecord.pickle",
    "recorded/oom_expandable.pickle.gz",
];

#[test]
fn a_card_says_what_the_program_prints() {
    for name in FILES {
        let (mut engine, _) = engine(name);
        let card = answer!(engine, Query::Card {}, Card);
        let file = file(name);
        let at = target(name, &file.entries[0]);
        let summary = RankSummary::new(at);
        let peaks: Vec<(&str, i128)> =
            card.bands.iter().map(|b| (b.name.name(), b.peak.value)).collect();
        assert_eq!(
            peaks,
            summary.peaks.iter().map(|p| (p.0, p.1.into())).collect::<Vec<_>>(),
            "{name}"
        );
        assert_eq!(
            card.bands.iter().map(|b| &*b.label).collect::<Vec<_>>(),
            ["requested", "active", "allocated", "reserved"]
        );
        // All that was live at the peak has a category; they come in their fixed order.
        let whole: u64 = card.categories.iter().map(|c| number(&c.bytes)).sum();
        assert_eq!(whole, number(&card.bands[0].peak), "{name}");
        let shares: f64 = card.categories.iter().map(|c| c.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{name}: {shares}");
        assert!(card.categories.is_sorted_by_key(|c| c.color), "{name}");
        assert_eq!(card.stacks.len(), summary.stacks.len());
        assert_eq!(number(&card.ooms), summary.ooms.len() as u64);
        let mut found: Vec<&str> = card.findings.iter().map(|f| &*f.id).collect();
        let mut told: Vec<&str> = summary.findings.iter().map(|a| &*a.id).collect();
        found.sort_unstable();
        told.sort_unstable();
        assert_eq!(found, told, "{name}");
        assert!(
            card.spark.starts_with("M0 32") && card.spark.ends_with("H200V32Z"),
            "{name}: {}",
            card.spark
        );
        let json = serde_json::to_string(&card).expect("it serializes");
        assert!(json.len() < 1 << 20, "{name}: {} bytes", json.len());
    }
}

#[test]
fn findings_name_a_block_and_a_place() {
    let name = "recorded/gpt_leak.pickle.gz";
    let (mut engine, loaded) = engine(name);
    let extents: Vec<f64> = loaded.parts[0].devices[0].axes.iter().map(|a| a.extent).collect();
    let findings = answer!(engine, Query::Findings {}, Findings);
    let growth = findings.first().expect("it leaks");
    assert_eq!(
        (growth.kind, &*growth.label, growth.severity),
        (FindingKind::Growth, "Growth", Severity::High)
    );
    assert!(growth.stack.frames.iter().any(|f| !f.framework), "{:?}", growth.stack);
    let event = growth.event.expect("it begins somewhere");
    assert_eq!(growth.spans.len(), 2);
    assert_eq!((growth.spans[0].kind, growth.spans[0].x0), (AxisKind::Event, f64::from(event + 1)));
    for (span, extent) in growth.spans.iter().zip(extents) {
        assert!(span.x0 < span.x1 && span.x1 <= extent, "{span:?}");
    }
    let reference = growth.reference.clone().expect("a block that stays");
    engine.post(Request::Find { id: 1, part: 0, reference });
    let Some(Response::Block { detail: Some(block), .. }) = engine.step().map(|r| r.response)
    else {
        panic!("it is there")
    };
    assert_eq!(block.stack.frames, growth.stack.frames);
    assert!(block.rows.iter().any(|r| r.text == "live at the end"));
}

#[test]
fn findings_are_in_the_order_of_their_severity() {
    for name in [
        "recorded/oom_expandable.pickle.gz",
        "recorded/gpt_max_split.pickle.gz",
        "recorded/t26/streams.pickle.gz",
    ] {
        let (mut engine, _) = engine(name);
        let findings = answer!(engine, Query::Findings {}, Findings);
        assert!(!findings.is_empty(), "{name}");
        let key = |f: &FindingRow| (f.severity, std::cmp::Reverse(number(&f.bytes)));
        let keys: Vec<_> = findings.iter().map(key).collect();
        assert!(keys.is_sorted(), "{name}: {keys:?}");
        for finding in &findings {
            assert!(
                finding.kind != FindingKind::Oom || finding.severity == Severity::High,
                "{finding:?}"
            );
            assert_eq!(finding.event.is_some(), !finding.spans.is_empty(), "{finding:?}");
        }
    }
}

/// The smallest y of a path, in its units.
fn top(path: &str) -> f64 {
    let parts = path
        .split(|c: char| c.is_ascii_alphabetic())
        .skip(2)
        .zip(path.matches(|c: char| c.is_ascii_alphabetic()).skip(1));
    let start =
        path[3..].split(|c: char| c.is_ascii_alphabetic()).next().and_then(|y| y.parse().ok());
    let tops = parts
        .filter(|(_, command)| *command == "V")
        .map(|(y, _)| y.parse::<f64>().expect("a number"));
    tops.chain(start).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_course_reaches_the_peaks_and_marks_what_happened() {
    for name in FILES {
        let (mut engine, loaded) = engine(name);
        let file = file(name);
        let trace = &file.entries[0].traces[0];
        let scale = trace.reserved_band.peak.max(trace.requested_band.peak) as f64;
        for axis in &loaded.parts[0].devices[0].axes {
            let minimap = answer!(engine, Query::Minimap { axis: axis.kind }, Minimap);
            for (path, peak) in [
                (&minimap.requested, trace.requested_band.peak),
                (&minimap.reserved, trace.reserved_band.peak),
            ] {
                let y = 100.0 * (1.0 - peak as f64 / scale);
                assert!((top(path) - y).abs() <= 0.051, "{name}: {} instead of {y}", top(path));
                assert!(
                    path.split(|c: char| !c.is_ascii_digit() && c != '.')
                        .all(|n| n.split('.').nth(1).is_none_or(|d| d.len() == 1)),
                    "{path}"
                );
            }
            let kinds = |kind: MarkKind| {
                minimap.marks.iter().filter(|m| m.kind == kind).collect::<Vec<_>>()
            };
            assert_eq!(kinds(MarkKind::Oom).len(), trace.ooms.len(), "{name}");
            let peaks = peak(target(name, &file.entries[0]), BandKind::Requested, Some(0)).peaks;
            let marked: Vec<i64> = kinds(MarkKind::Peak).iter().map(|m| m.event).collect();
            assert_eq!(marked, peaks.iter().map(|p| p.event).collect::<Vec<_>>(), "{name}");
            assert!(kinds(MarkKind::Peak).first().is_none_or(|m| m.slot == axis.peak), "{name}");
            for mark in &minimap.marks {
                assert!((0.0..axis.extent).contains(&mark.slot), "{name}: {mark:?}");
            }
        }
    }
    let (mut engine, _) = engine("recorded/t26/oom_observer.pickle.gz");
    let minimap = answer!(engine, Query::Minimap { axis: AxisKind::Event }, Minimap);
    let oom = minimap.marks.iter().find(|m| m.kind == MarkKind::Oom).expect("it ran out of memory");
    assert!(
        oom.text.starts_with("out of memory: ")
            && oom.text.contains(" requested, ")
            && oom.text.contains(" free at #"),
        "{}",
        oom.text
    );
    assert!(oom.id.starts_with("oom-0-"), "{}", oom.id);
    // Without a clock there is no such axis.
    let (mut engine, _) = self::engine("recorded/t20/gpt_small.pickle.gz");
    let minimap = answer!(engine, Query::Minimap { axis: AxisKind::Time }, Minimap);
    assert!(minimap.requested.is_empty() && minimap.marks.is_empty());
}

fn report<'a>(name: &'a str, file: &'a LoadedFile, slot: u32) -> State<'a> {
    state(target(name, &file.entries[0]), slot)
}

#[test]
fn a_moment_is_the_state_that_the_program_prints() {
    for name in FILES {
        let (mut engine, _) = engine(name);
        let file = file(name);
        let trace = &file.entries[0].traces[0];
        let last = i64::from(trace.slots()) - 2;
        for event in [-1, 0, last / 3, last / 2, last] {
            let event = event.clamp(-1, last);
            let moment = answer!(engine, Query::StateAt { at: At::Event { event } }, StateAt);
            assert_eq!(moment.event, event, "{name}");
            let state = report(name, &file, (event + 1) as u32);
            let band = |key| value(&moment.bands, key) as u64;
            assert_eq!(band("requested_bytes"), state.requested_bytes, "{name} at {event}");
            assert_eq!(
                band("requested_bytes"),
                state.blocks.iter().map(|b| b.bytes).sum::<u64>(),
                "{name} at {event}"
            );
            assert_eq!(band("active_bytes"), state.active_bytes);
            assert_eq!(
                band("active_bytes"),
                state.blocks.iter().map(|b| b.block_bytes).sum::<u64>()
            );
            assert_eq!(band("allocated_bytes"), state.allocated_bytes);
            assert_eq!(band("reserved_bytes"), state.reserved_bytes);
            assert_eq!(
                band("reserved_bytes"),
                state.segments.iter().map(|s| s.total_size).sum::<u64>()
            );
            assert_eq!(
                band("cached_free"),
                state.segments.iter().map(|s| s.free).sum::<u64>(),
                "{name} at {event}"
            );
            assert_eq!(band("rounding_waste"), state.active_bytes - state.requested_bytes);
            assert_eq!(number(&moment.blocks), state.blocks.len() as u64);
            let told: Vec<_> =
                state.categories.iter().map(|c| (c.category.to_owned(), c.bytes)).collect();
            let found: Vec<_> =
                moment.categories.iter().map(|c| (c.name.clone(), number(&c.bytes))).collect();
            assert_eq!(found, told, "{name} at {event}");
            assert!(
                moment.stacks.len() <= 12
                    && moment.stacks.is_sorted_by_key(|s| std::cmp::Reverse(number(&s.bytes)))
            );
            assert_eq!(
                moment.spans[0],
                Span { kind: AxisKind::Event, x0: (event + 1) as f64, x1: (event + 2) as f64 }
            );
        }
    }
}

#[test]
fn the_stacks_of_a_moment_are_those_of_the_peak() {
    let name = "recorded/t26/gpt_small.pickle.gz";
    let (mut engine, loaded) = engine(name);
    let file = file(name);
    let report = peak(target(name, &file.entries[0]), BandKind::Requested, Some(12));
    let moment = answer!(engine, Query::Peak {}, StateAt);
    let same = answer!(engine, Query::StateAt { at: At::Event { event: report.event } }, StateAt);
    assert_eq!((moment.event, format!("{moment:?}")), (report.event, format!("{same:?}")));
    let told: Vec<_> = report.stacks.iter().map(|s| (s.bytes, u64::from(s.blocks))).collect();
    let found: Vec<_> =
        moment.stacks.iter().map(|s| (number(&s.bytes), number(&s.blocks))).collect();
    assert_eq!(found, told);
    let labels = moment.stacks.iter().zip(&report.stacks);
    for (row, told) in labels {
        let category = told.category.expect("of requested bytes");
        let label = moment.categories.iter().find(|c| c.name == category).map(|c| &*c.label);
        assert_eq!(Some(row.note.as_str()), label);
    }
    // The same moment by its place on either axis.
    for axis in &loaded.parts[0].devices[0].axes {
        let same = answer!(
            engine,
            Query::StateAt { at: At::Slot { axis: axis.kind, slot: axis.peak + 0.4 } },
            StateAt
        );
        assert!(
            same.event >= report.event && same.event < report.event + 8,
            "{} {}",
            same.event,
            report.event
        );
        assert!(axis.kind == AxisKind::Time || same.event == report.event);
    }
    let moment = answer!(
        engine,
        Query::StateAt { at: At::Slot { axis: AxisKind::Event, slot: f64::NAN } },
        StateAt
    );
    assert_eq!(
        (moment.event, &*moment.label, &*moment.action),
        (-1, "before the window", "before the window")
    );
    let moment = answer!(engine, Query::StateAt { at: At::Event { event: i64::MAX } }, StateAt);
    assert_eq!(
        moment.event,
        i64::try_from(file.entries[0].traces[0].device.events.len()).expect("few") - 1
    );
}

#[test]
fn a_moment_knows_the_block_of_its_event() {
    // A 1000 100; A 1200 200; A 1400 300; F 1200; A 1200 50 (hexadecimal addresses)
    let (mut engine, _) = engine("scenarios/f02.pickle");
    let mut told = Vec::new();
    for event in 0..6 {
        let moment = answer!(engine, Query::StateAt { at: At::Event { event } }, StateAt);
        told.push((moment.block, moment.action));
    }
    let of = |block: u32, action: &str| (Some(block), action.to_owned());
    assert_eq!(told[..3], [of(0, "alloc 100 B"), of(1, "alloc 200 B"), of(2, "alloc 300 B")]);
    assert_eq!(
        told[3..],
        [of(1, "free_requested 200 B"), of(1, "free_completed 200 B"), of(3, "alloc 50 B")]
    );
    let moment = answer!(engine, Query::StateAt { at: At::Event { event: 5 } }, StateAt);
    assert!(
        moment.spoken.starts_with("After event #5")
            && moment.spoken.contains("450 B requested in 3 blocks"),
        "{}",
        moment.spoken
    );
}

#[test]
fn segments_are_rows_in_every_order() {
    for name in FILES {
        let (mut engine, _) = engine(name);
        let file = file(name);
        let trace = &file.entries[0].traces[0];
        let event = i64::from(trace.slots()) - 2;
        for sort in
            [SegmentSort::Size, SegmentSort::Address, SegmentSort::Pool, SegmentSort::Occupancy]
        {
            let spec = SegmentSpec { sort, event, grown: Some(0) };
            let (info, rows) = all_rows(&mut engine, &spec);
            // Each place once, one on top of the other.
            let mut indices: Vec<u32> = rows.iter().map(|r| r.segment).collect();
            let mut top = info.units;
            for row in &rows {
                assert_eq!(row.y1, top, "{name}");
                let height = if row.segment == 0 { ROW_UNITS * GROWN } else { ROW_UNITS };
                assert_eq!(row.y1 - row.y0, f64::from(height), "{name}");
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
                let Some(card) = answer!(engine, Query::Segment { segment, event }, Detail) else {
                    assert!(segment as usize >= rows.len(), "{name}");
                    break;
                };
                let address = card.rows.iter().find(|r| r.key == "address").map(|r| &r.text);
                assert!(
                    places.iter().any(|&(a, size)| Some(a) == address && size == card.title.value),
                    "{name}"
                );
            }
            // Of a part those that reach into it, where they are among all.
            let part = (info.units * 0.4, info.units * 0.6);
            let query = Query::SegmentRows { rows: spec, y0: part.0, y1: part.1 };
            let within: Vec<_> =
                rows.iter().filter(|r| r.y0 < part.1 && part.0 < r.y1).cloned().collect();
            assert_eq!(answer!(engine, query, SegmentRows), within);
            assert!(!within.is_empty() && within.len() <= rows.len(), "{name}");
            match sort {
                SegmentSort::Size => {
                    assert!(rows.is_sorted_by_key(|r| std::cmp::Reverse(number(&r.size))))
                }
                SegmentSort::Address => {
                    assert!(rows.is_sorted_by_key(|r| (r.address.len(), r.address.clone())))
                }
                SegmentSort::Pool => {}
                SegmentSort::Occupancy => {
                    let mut fill = |row: &SegmentRow| {
                        let card =
                            answer!(engine, Query::Segment { segment: row.segment, event }, Detail)
                                .expect("it is one");
                        let there = card.rows.iter().any(|r| r.key == "active_bytes");
                        if there {
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
fn a_segment_is_as_full_as_the_program_prints() {
    let files = [
        "t26/gpt_small.pickle.gz",
        "t26/streams.pickle.gz",
        "t20/pools.pickle",
        "gpt_late.pickle.gz",
    ];
    for name in files.map(|name| format!("recorded/{name}")) {
        let name = name.as_str();
        let (mut engine, _) = engine(name);
        let file = file(name);
        let trace = &file.entries[0].traces[0];
        let rows = all_rows(&mut engine, &SegmentSpec::default()).1;
        for slot in [0, trace.slots() / 2, trace.slots() - 1] {
            let told = segments(target(name, &file.entries[0]), slot);
            let mut there = Vec::new();
            for row in &rows {
                let query = Query::Segment { segment: row.segment, event: i64::from(slot) - 1 };
                let card = answer!(engine, query, Detail).expect("it is one");
                assert_eq!((&*card.kind, &card.title), ("Segment", &row.size));
                if let Some(now) = card.rows.iter().find(|r| r.key == "now") {
                    assert!(now.text.contains("reserved") || now.text.contains("given back"));
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
                there.push((
                    address,
                    number(&row.size),
                    keys.map(|key| value(&card.rows, key) as u64),
                ));
            }
            there.sort_unstable();
            let mut told: Vec<_> = told
                .segments
                .iter()
                .map(|s| {
                    (
                        s.address.clone(),
                        s.total_size,
                        [s.allocated, s.active, s.requested, s.free, s.largest_free],
                    )
                })
                .collect();
            told.sort_unstable();
            assert_eq!(there, told, "{name} in slot {slot}");
        }
    }
}

#[test]
fn segments_together_are_the_bands() {
    // Among them blocks whose free was asked for before the window, and blocks that lie over
    // several mapped ranges.
    for name in [
        "scenarios/f08.pickle",
        "recorded/gpt_state_only.pickle",
        "recorded/t26/expandable_gpt.pickle.gz",
    ] {
        let (mut engine, loaded) = engine(name);
        let rows = all_rows(&mut engine, &SegmentSpec::default()).1;
        let end = loaded.parts[0].devices[0].axes[0].extent as i64 - 2;
        for event in [-1, end / 2, end] {
            let moment = answer!(engine, Query::StateAt { at: At::Event { event } }, StateAt);
            let mut cards = Vec::new();
            for row in &rows {
                let card = answer!(engine, Query::Segment { segment: row.segment, event }, Detail)
                    .expect("it is one");
                if !card.rows.iter().any(|r| r.key == "now") {
                    cards.push(card);
                }
            }
            for key in ["allocated_bytes", "active_bytes", "requested_bytes"] {
                let sum: i64 = cards.iter().map(|card| value(&card.rows, key)).sum();
                assert_eq!(sum, value(&moment.bands, key), "{name} at {event}: {key}");
            }
            let free: i64 = cards.iter().map(|card| value(&card.rows, "free")).sum();
            assert_eq!(free, value(&moment.bands, "cached_free"), "{name} at {event}");
        }
    }
}

#[test]
fn blocks_lie_in_their_segments() {
    let (mut engine, _) = engine("recorded/t26/expandable_gpt.pickle.gz");
    let (info, rows) = all_rows(&mut engine, &SegmentSpec::default());
    assert!(rows.iter().any(|r| r.label == "expandable"));
    assert_eq!(info.text, "56 mapped ranges in 50 rows, 2.28 GiB reserved at most");
    for block in [0, 1, 100, 1000] {
        let segment =
            answer!(engine, Query::SegmentOf { block }, SegmentOf).expect("it lies in one");
        let (info, rows) =
            all_rows(&mut engine, &SegmentSpec { grown: Some(segment), ..SegmentSpec::default() });
        let row = rows.iter().find(|r| Some((r.y0, r.y1)) == info.grown).expect("a row");
        engine.post(Request::Block { id: 1, target: TARGET, block });
        let Some(Response::Block { detail: Some(detail), .. }) = engine.step().map(|r| r.response)
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
    assert_eq!(answer!(engine, Query::SegmentOf { block: u32::MAX }, SegmentOf), None);
    assert!(answer!(engine, Query::Segment { segment: u32::MAX, event: 0 }, Detail).is_none());
}

#[test]
fn tracks_show_every_range_and_no_more_than_can_be_seen() {
    let name = "recorded/ranks_fsdp/rank3_memory_snapshot.pickle.gz";
    let (mut engine, loaded) = engine(name);
    for axis in &loaded.parts[0].devices[0].axes {
        let mut counts = Vec::new();
        for columns in [10, 200, 1_000_000_000] {
            let query = Query::Tracks { axis: axis.kind, x0: 0.0, x1: axis.extent, columns };
            let tracks = answer!(engine, query, Tracks);
            assert!(tracks.lanes >= 2, "they nest");
            let mut ranges = 0;
            for lane in 0..tracks.lanes {
                let items: Vec<&TrackItem> =
                    tracks.items.iter().filter(|i| i.lane == lane).collect();
                assert!(items.len() <= 2 * columns as usize + 1, "{} in {columns}", items.len());
                assert!(items.is_sorted_by(
                    |a, b| a.x0 <= b.x0 && a.x1 <= b.x1 + axis.extent / f64::from(columns)
                ));
                for item in items {
                    assert!(
                        0.0 <= item.x0 && item.x0 <= item.x1 && item.x1 <= axis.extent,
                        "{item:?}"
                    );
                    let several = item
                        .text
                        .strip_suffix(" ranges")
                        .and_then(|n| n.replace(',', "").parse().ok());
                    ranges += several.unwrap_or(1u32);
                }
            }
            counts.push(ranges);
        }
        assert_eq!(counts, [counts[0]; 3], "none is lost");
        let file = file(name);
        let recorded: u32 = info(name, &file.entries[0]).annotations.values().sum();
        assert!(
            counts[0] <= recorded && counts[0] * 10 >= recorded * 9,
            "{counts:?} of {recorded}"
        );
    }
    // The same name has the same color in another rank.
    let color = |engine: &mut FileSession, extent: f64| {
        let query = Query::Tracks { axis: AxisKind::Event, x0: 0.0, x1: extent, columns: 100_000 };
        let tracks = answer!(*engine, query, Tracks);
        let item = tracks.items.into_iter().find(|i| i.text == "forward").expect("a forward pass");
        assert!(
            item.title.starts_with("## forward ##, ") && item.title.ends_with('s'),
            "{}",
            item.title
        );
        item.color
    };
    let (mut other, loaded_other) =
        self::engine("recorded/ranks_fsdp/rank2_memory_snapshot.pickle.gz");
    let extent = |loaded: &Loaded| loaded.parts[0].devices[0].axes[0].extent;
    assert_eq!(color(&mut engine, extent(&loaded)), color(&mut other, extent(&loaded_other)));
    // No clock, no view: no tracks.
    let empty = answer!(
        engine,
        Query::Tracks { axis: AxisKind::Event, x0: f64::NAN, x1: 1.0, columns: 0 },
        Tracks
    );
    assert!(empty.items.is_empty() && empty.lanes > 0);
    let (mut engine, _) = self::engine("recorded/t20/gpt_small.pickle.gz");
    let none = answer!(
        engine,
        Query::Tracks { axis: AxisKind::Event, x0: 0.0, x1: 9e9, columns: 9 },
        Tracks
    );
    assert_eq!(none, Tracks { lanes: 0, x0: 0.0, x1: 9e9, columns: 9, items: Vec::new() });
}

#[test]
fn settings_say_what_they_mean_for_the_run() {
    let setting = |card: &SettingsCard, key: &str| {
        card.settings
            .iter()
            .find(|s| s.key == key)
            .cloned()
            .unwrap_or_else(|| panic!("{key}: {card:?}"))
    };
    let (mut engine, _) = engine("recorded/gpt_max_split.pickle.gz");
    let card = answer!(engine, Query::Settings {}, Settings);
    let split = setting(&card, "max_split_size");
    assert_eq!(split.value, "128.0 MiB");
    assert!(split.text.contains(" Here ") && split.text.ends_with("so large."), "{}", split.text);
    let roundup = setting(&card, "roundup_power2_divisions");
    assert_eq!(roundup.value, "4");
    assert!(roundup.text.contains("at the peak"), "{}", roundup.text);
    assert!(setting(&card, "garbage_collection_threshold").text.contains("60 %"));
    assert_eq!(
        setting(&card, "PYTORCH_CUDA_ALLOC_CONF").value,
        "max_split_size_mb:128,garbage_collection_threshold:0.6,roundup_power2_divisions:4"
    );
    assert_eq!(card.settings.iter().filter(|s| s.key.starts_with("roundup")).count(), 1);
    assert!(card.note.is_none());
    assert_eq!(value(&card.provenance, "events"), 10169);

    let (mut engine, _) = self::engine("recorded/t29/expandable_gpt.pickle.gz");
    let card = answer!(engine, Query::Settings {}, Settings);
    let expandable = setting(&card, "expandable_segments");
    assert!(
        expandable.value == "true" && expandable.text.contains("mapped range"),
        "{expandable:?}"
    );
    assert_eq!(setting(&card, "max_split_size").value, "no limit");

    let (mut engine, _) = self::engine("edge/overflow.pickle");
    let card = answer!(engine, Query::Settings {}, Settings);
    assert_eq!(setting(&card, "max_split_size").value, "no limit");
    assert!(setting(&card, "trace_alloc_overflowed").text.contains("oldest events"));

    let (mut engine, _) = self::engine("recorded/t20/gpt_small.pickle.gz");
    let card = answer!(engine, Query::Settings {}, Settings);
    assert!(card.settings.is_empty() && card.note.is_some_and(|n| n.contains("2.3")));
    assert!(text(&card.provenance, "clock").contains("2.2"), "{:?}", card.provenance);

    let (mut engine, _) = self::engine("recorded/gpt_ring10000.pickle.gz");
    let card = answer!(engine, Query::Settings {}, Settings);
    assert!(
        text(&card.provenance, "ring_buffer").starts_with("probably full: 10,000"),
        "{:?}",
        card.provenance
    );
}

#[test]
fn odd_files_are_answered_too() {
    let mut asked = 0;
    for folder in ["edge", "scenarios", "recorded/misc"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(folder);
        for entry in std::fs::read_dir(path).expect("a folder") {
            let name =
                format!("{folder}/{}", entry.expect("an entry").file_name().to_string_lossy());
            if name.contains(".json") {
                continue;
            }
            let (mut engine, loaded) = engine(&name);
            let devices = loaded
                .parts
                .iter()
                .zip(0..)
                .flat_map(|(p, part)| p.devices.iter().map(move |d| (part, d)));
            for (part, device) in devices {
                let target = DeviceRef { part, device: device.device };
                let extent = device.axes[0].extent;
                let mut queries = vec![Query::Card {}, Query::Findings {}, Query::Settings {}];
                for axis in [AxisKind::Event, AxisKind::Time] {
                    queries.push(Query::Minimap { axis });
                    for x1 in [0.0, extent, f64::INFINITY, f64::NAN] {
                        queries.push(Query::Tracks { axis, x0: -1.0, x1, columns: 7 });
                        queries.push(Query::StateAt { at: At::Slot { axis, slot: x1 } });
                    }
                }
                for event in [i64::MIN, -1, 0, 3, i64::MAX] {
                    queries.push(Query::StateAt { at: At::Event { event } });
                    queries.push(Query::Segment { segment: 0, event });
                    let rows = SegmentSpec { sort: SegmentSort::Occupancy, event, grown: Some(99) };
                    let high = [-1.0, 5e4, f64::INFINITY, f64::NAN];
                    queries.extend(high.map(|y1| Query::SegmentRows {
                        rows: rows.clone(),
                        y0: 0.0,
                        y1,
                    }));
                    queries.push(Query::Segments { rows });
                }
                queries.push(Query::SegmentOf { block: 0 });
                for query in queries {
                    ask(&mut engine, target, query);
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 1000, "{asked}");
}
