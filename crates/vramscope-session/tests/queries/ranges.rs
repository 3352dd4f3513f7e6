//! Ranges, frames, tooltips, markers and steps between blocks, compared with reports.

use super::harness::{GPT, Opened, TARGET, all_files, hit, number, open, table};
use std::cmp::Reverse;
use vramscope_report::peak::{BandKind, peak};
use vramscope_session::messages::views::{
    Answer, Bands, ColorBy, DetailCard, GroupBy, Layer, Looked, MarkedRange, NextBlock, Query,
};
use vramscope_session::messages::{AxisKind, BlockDetail, DeviceRef, Request, Response};
use vramscope_units::grouped;

impl Opened {
    fn next(&mut self, of: Looked, event: i64, backwards: bool) -> Option<BlockDetail> {
        let block = match of {
            Looked::Stack { block } => Some(block),
            Looked::Search { .. } => None,
        };
        let next = self.next_from(of, event, block, backwards)?;
        assert_eq!(next.place, "", "only a search has places");
        Some(next.detail)
    }

    fn next_from(
        &mut self,
        of: Looked,
        event: i64,
        block: Option<u32>,
        backwards: bool,
    ) -> Option<NextBlock> {
        match self.ask(Query::Next { of, event, block, backwards }) {
            Answer::Next(next) => next.map(|next| *next),
            other => panic!("{other:?}"),
        }
    }

    fn found_from(&mut self, of: Looked, from: Option<u32>, backwards: bool) -> Option<NextBlock> {
        self.next_from(of, 0, from, backwards)
    }

    fn range(&mut self, axis: AxisKind, x0: f64, x1: f64) -> Option<DetailCard> {
        match self.ask(Query::Range(MarkedRange { axis, x0, x1 })) {
            Answer::Detail(card) => card.map(|c| *c),
            other => panic!("{other:?}"),
        }
    }

    fn frame(&mut self, name: &str, file: &str, line: u32) -> Option<DetailCard> {
        match self.ask(Query::Frame { name: name.into(), file: file.into(), line }) {
            Answer::Detail(card) => card.map(|c| *c),
            other => panic!("{other:?}"),
        }
    }
}

fn raw(card: &DetailCard, key: &str) -> i64 {
    let row = card.rows.iter().find(|r| r.key == key).unwrap_or_else(|| panic!("no row {key}"));
    row.raw.as_deref().expect("an exact number").parse().expect("digits")
}

#[test]
fn next_goes_through_a_search_by_size_and_wraps_around() {
    for (name, text) in [(GPT, "forward >100KiB"), ("recorded/gpt_late.pickle.gz", ">=1")] {
        let mut opened = open(name);
        let search = || Looked::Search { text: text.into() };
        let mut order = opened.order(&table(text));
        order.sort_by_key(|&i| {
            let block = &opened.file.entries[0].traces[0].blocks[i as usize];
            (Reverse(block.bytes), i)
        });
        let count = order.len();
        assert!(count > 3);
        let mut from = None;
        for (place, &block) in order.iter().chain(&order[..1]).enumerate().take(50) {
            let next = opened.found_from(search(), from, false).expect("a block");
            let place =
                format!("{} of {}", grouped((place % count) as u64 + 1), grouped(count as u64));
            assert_eq!((next.detail.block, next.place), (block, place));
            from = Some(block);
        }
        let mut from = Some(order[1]);
        for &block in [order[0]].iter().chain(order.iter().rev().take(4)) {
            let next = opened.found_from(search(), from, true).expect("a block");
            assert_eq!(next.detail.block, block);
            from = Some(block);
        }
        // A block that the search does not find is like none.
        let first = opened.found_from(search(), Some(u32::MAX), false).expect("a block");
        assert_eq!(first.detail.block, order[0]);
        let last = opened.found_from(search(), None, true).expect("a block");
        assert_eq!(Some(&last.detail.block), order.last());
    }
}

#[test]
fn next_wraps_around() {
    let mut opened = open(GPT);
    assert!(opened.next(Looked::Search { text: ">abc".into() }, 0, false).is_none());
    assert!(opened.next(Looked::Search { text: "no such thing".into() }, 0, false).is_none());
    assert!(opened.next(Looked::Stack { block: u32::MAX }, 0, false).is_none());

    // A full turn visits every block of a stack once, also blocks from before the window.
    for name in [GPT, "recorded/gpt_late.pickle.gz"] {
        let mut opened = open(name);
        let trace = opened.report().trace();
        let blocks: Vec<_> =
            trace.blocks.iter().map(|b| (b.stack, b.has_stack_of_free(), b.enters)).collect();
        for first in [0, blocks.len() as u32 / 2] {
            let kind = |i: u32| (blocks[i as usize].0, blocks[i as usize].1);
            let same = (0..blocks.len() as u32).filter(|&i| kind(i) == kind(first)).count().min(40);
            for backwards in [false, true] {
                let (mut at, mut visited) = (first, Vec::new());
                for _ in 0..same {
                    let event = i64::from(blocks[at as usize].2) - 1;
                    at = opened
                        .next(Looked::Stack { block: at }, event, backwards)
                        .expect("at least the block itself")
                        .block;
                    assert_eq!(kind(at), kind(first));
                    assert!(!visited.contains(&at), "{name}: {at} is visited twice");
                    visited.push(at);
                }
                assert!(same == 40 || visited.last() == Some(&first), "{name}: a full turn");
            }
        }
    }
}

fn check_range(name: &str, card: &DetailCard, curve: &[u64]) {
    let (from, to) = (raw(card, "from"), raw(card, "to"));
    let (start, end) = (raw(card, "requested_from"), raw(card, "requested_to"));
    let (allocated, freed) = (raw(card, "allocated"), raw(card, "freed"));
    assert_eq!(
        (start, end),
        (curve[(from + 1) as usize] as i64, curve[(to + 1) as usize] as i64),
        "{name}"
    );
    assert_eq!(start + allocated - freed, end, "{name}: {from} to {to}");
    assert_eq!(number(&card.title), end - start);
    assert_eq!(card.title.text.starts_with('+'), end > start);
    let peak = curve[(from + 1) as usize..=(to + 1) as usize].iter().max().copied();
    assert_eq!(Some(raw(card, "peak") as u64), peak);
    let survived = raw(card, "survived");
    assert!(0 <= survived && survived <= allocated);
    let sum: i64 = card.stacks.iter().map(|s| number(&s.bytes)).sum();
    assert!(
        sum <= allocated && (card.stacks.len() == 50 || sum == allocated),
        "{name}: {sum} of {allocated}"
    );
    assert_eq!(card.heading.is_empty(), card.stacks.is_empty());
    assert!(card.stacks.iter().all(|s| s.note == "all freed" || s.note.ends_with(" still live")));
    let all_freed = card.stacks.iter().all(|s| s.note == "all freed");
    assert!(survived == 0 || card.stacks.len() == 50 || !all_freed, "{name}");
}

#[test]
fn ranges_add_up_to_the_curve() {
    let mut checked = 0;
    for name in all_files().into_iter().chain([GPT.to_owned()]) {
        let mut opened = open(&name);
        let Some(device) = opened.loaded.parts[0].devices.first().cloned() else { continue };
        let target = DeviceRef { part: 0, device: device.device };
        let curve = opened.report().trace().requested.to_vec();
        for axis in &device.axes {
            let n = 14;
            for i in 0..=n {
                for j in i..=n {
                    let x = |k: i32| axis.extent * f64::from(k) / f64::from(n);
                    let query = Query::Range(MarkedRange { axis: axis.kind, x0: x(i), x1: x(j) });
                    let Answer::Detail(Some(card)) = opened.ask_of(target, query) else {
                        panic!("a range")
                    };
                    check_range(&name, &card, &curve);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 5000, "{checked}");
}

#[test]
fn range_has_exact_edges_and_live_bytes() {
    // A 1000 100; A 1200 200; A 1400 300; F 1200 (two events); A 1200 50 (hexadecimal addresses)
    let mut opened = open("scenarios/f02.pickle");
    let event = AxisKind::Event;
    let all = opened.range(event, 0.0, 7.0).expect("a range");
    assert_eq!((raw(&all, "from"), raw(&all, "to")), (-1, 5));
    assert_eq!(
        (all.kind.as_str(), all.title.text.as_str(), all.title.exact.as_str()),
        ("Range", "+450 B", "+450 bytes")
    );
    let text = |card: &DetailCard, key: &str| {
        card.rows.iter().find(|r| r.key == key).map(|r| r.text.clone())
    };
    assert_eq!(text(&all, "allocated").as_deref(), Some("650 B, 4 blocks"));
    assert_eq!(text(&all, "freed").as_deref(), Some("200 B, 1 block"));
    assert_eq!(text(&all, "survived").as_deref(), Some("450 B, 3 blocks"));
    assert_eq!(text(&all, "from").as_deref(), Some("before the window"));
    assert!(all.copy.starts_with("Range  +450 bytes\nfrom: before the window\n"), "{}", all.copy);
    // Slots 2 to 5: from the state after event 1 to the state after event 4. Of the block of 200
    // bytes, only the free is in the range.
    let some = opened.range(event, 2.2, 5.5).expect("a range");
    assert_eq!((raw(&some, "from"), raw(&some, "to")), (1, 4));
    assert_eq!(
        (raw(&some, "allocated"), raw(&some, "freed"), raw(&some, "survived")),
        (300, 200, 300)
    );
    assert_eq!(opened.range(event, 5.5, 2.2).expect("a reversed range"), some);
    let down = opened.range(event, 4.0, 6.0).expect("a range");
    assert_eq!((down.title.text.as_str(), down.title.value), ("-200 B", -200));
    assert!(down.stacks.is_empty() && down.heading.is_empty());
    let nowhere = opened.range(event, 3.0, 3.0).expect("a state");
    assert_eq!((nowhere.title.text.as_str(), raw(&nowhere, "from")), ("0 B", raw(&nowhere, "to")));
    let beyond = opened.range(event, -1e300, f64::INFINITY).expect("a clamped range");
    assert_eq!(beyond, all);
    assert!(opened.range(event, f64::NAN, 1.0).is_none());
    assert!(
        open("edge/no_time.pickle").range(AxisKind::Time, 0.0, 1.0).is_none(),
        "no clock, no time axis"
    );
}

#[test]
fn frame_details_equal_the_peak_report() {
    for name in [
        GPT,
        "recorded/gpt_late.pickle.gz",
        "truth/resnet18_backward.pickle.gz",
        "edge/frames.pickle",
    ] {
        let mut opened = open(name);
        let report = |opened: &Opened| {
            let found = peak(opened.report(), BandKind::Requested, None);
            let frame = |f: &vramscope_report::peak::FrameShareRecord<'_>| {
                let (name, file) =
                    (f.frame.name.clone().into_owned(), f.frame.file.clone().into_owned());
                (name, file, f.frame.line, f.inclusive, f.exclusive)
            };
            let frames: Vec<_> = found.frames.iter().map(frame).collect();
            (found.total, frames)
        };
        let (total, frames) = report(&opened);
        for (function, file, line, inclusive, exclusive) in frames {
            let card = opened.frame(&function, &file, line).expect("a frame of the file");
            assert_eq!(raw(&card, "inclusive") as u64, inclusive, "{name}: {function}");
            assert_eq!(raw(&card, "exclusive") as u64, exclusive, "{name}: {function}");
            assert_eq!(number(&card.title) as u64, inclusive);
            let text = |key: &str| card.rows.iter().find(|r| r.key == key).map(|r| r.text.clone());
            assert_eq!(
                text("share"),
                Some(format!("{:.1} %", 100.0 * inclusive as f64 / total as f64))
            );
            let last = card.rows.iter().position(|r| r.key == "share").expect("a row");
            let categories: u64 =
                card.rows[last + 1..].iter().map(|r| raw(&card, &r.key) as u64).sum();
            assert_eq!(categories, inclusive, "{name}: {function}");
            let stacks: i64 = card.stacks.iter().map(|s| number(&s.bytes)).sum();
            let blocks: i64 = card.stacks.iter().map(|s| number(&s.blocks)).sum();
            assert!(card.stacks.len() <= 20);
            if card.stacks.len() < 20 {
                assert_eq!(
                    (stacks as u64, blocks),
                    (inclusive, raw(&card, "blocks")),
                    "{name}: {function}"
                );
                assert!((card.stacks.iter().map(|s| s.share).sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
        assert!(opened.frame("no such", "thing.py", 1).is_none());
    }
}

#[test]
fn tooltip_does_not_depend_on_the_view() {
    let mut opened = open(GPT);
    let peak = opened.loaded.parts[0].devices[0].axes[0].peak;
    let layer = Layer::Timeline {
        group: GroupBy::Block,
        color: ColorBy::Stack,
        bands: Bands::NONE,
        search: String::new(),
    };
    for height in [1.0, 1e6, 5e6, 2e7] {
        let request = Request::Pick {
            id: 1,
            target: TARGET,
            axis: AxisKind::Event,
            layer: layer.clone(),
            kx: 0,
            ky: 0,
            slot: peak,
            bytes: height,
            hover: false,
        };
        opened.session.post(request);
        let Some(Response::Picked { hit: Some(picked), .. }) =
            opened.session.step().map(|r| r.response)
        else {
            panic!("a block")
        };
        assert_eq!(hit(&mut opened, picked.block), Some(picked));
    }
    assert!(hit(&mut opened, u32::MAX).is_none());
}

#[test]
fn marker_has_the_position_and_label_of_the_state() {
    let mut opened = open(GPT);
    let last = opened.file.entries[0].traces[0].device.events.len() as i64 - 1;
    let there = [last, -1, 0, 1234];
    let absent = [last + 1, -2, i64::MIN, i64::MAX, i64::from(u32::MAX)];
    let Answer::Markers(markers) =
        opened.ask(Query::Markers { events: [&absent[..], &there].concat() })
    else {
        panic!("markers")
    };
    assert_eq!(markers.len(), there.len());
    for (marker, event) in markers.iter().zip(there) {
        let Answer::StateAt(state) = opened.ask(Query::StateAt { event }) else {
            panic!("a state")
        };
        assert_eq!(
            (marker.event, &marker.spans, &marker.label),
            (event, &state.spans, &state.label)
        );
        let [by_event, by_time] = &marker.spans[..] else { panic!("a span on each axis") };
        assert_eq!([by_event.x0, by_event.x1], [event + 1, event + 2].map(|slot| slot as f64));
        assert!(by_time.x0 >= 0.0 && by_time.x0 <= by_time.x1);
    }
}
