//! Tiles that take long are drawn in slices: what is asked meanwhile does not wait for them.

use std::fmt::Write as _;
use vramscope_protocol::views::{
    Answer, At, BlockSort, BlockTable, ColorBy, FlameSpec, FlameWeight, GROWN, Layer, MarkedRange,
    Query, ROW_UNITS, SegmentSort, SegmentSpec, Table, TextForm,
};
use vramscope_protocol::{AxisKind, DeviceRef, Request, Response, TileKey};
use vramscope_session::{Column, FileSession, Slice};

const TARGET: DeviceRef = DeviceRef { part: 0, device: 0 };
const BLOCKS: u32 = 200_000;
const LIVE: u32 = 10_000;
/// All events in a tile's columns: 2^10 slots in each of 512.
const WHOLE: TileKey = TileKey { kx: 10, ky: 14, ix: 0, iy: 0 };
/// As much, and so fine that it takes several slices.
const FINE: TileKey = TileKey { ky: 12, ..WHOLE };
const ABOVE: TileKey = TileKey { iy: 1, ..WHOLE };
const NEAR: TileKey = TileKey { kx: 0, ..WHOLE };

/// Blocks that come and, when many others have come, go.
fn engine() -> FileSession {
    let mut json = String::from("{\"segments\":[],\"device_traces\":[[");
    let mut put = |action, block: u32| {
        let comma = if json.ends_with('[') { "" } else { "," };
        // Ever the same 40,000 places, and sizes from 512 bytes to 5 KiB.
        let (address, size) =
            (4096 + 8192 * u64::from(block % 40_000), 512 * (1 + block * 7919 % 10));
        write!(json, "{comma}{{\"action\":\"{action}\",\"addr\":{address},\"size\":{size}}}")
            .expect("a String takes all text");
    };
    for block in 0..BLOCKS {
        put("alloc", block);
        if block >= LIVE {
            // The oldest two take turns, so that a later one goes first.
            put("free_completed", (block - LIVE) ^ 1);
        }
    }
    json.push_str("]]}");
    opened(&json)
}

/// A file in JSON, whole.
fn opened(json: &str) -> FileSession {
    let mut engine = FileSession::new("made.json", json.len() as u64);
    engine.feed(json.as_bytes()).expect("a snapshot");
    assert!(matches!(engine.finish(), Response::Loaded(_)));
    engine
}

fn tiles(id: u32, color: ColorBy, tiles: &[TileKey]) -> Request {
    let layer = Layer::Timeline { color, bands: false, search: String::new() };
    Request::Tiles { id, target: TARGET, axis: AxisKind::Event, layer, tiles: tiles.to_vec() }
}

/// Goes on until there is an answer: which it is, its columns, and the number of slices.
fn next(engine: &mut FileSession) -> (Response, Vec<(&'static str, Column)>, u32) {
    for slices in 1.. {
        match engine.slice() {
            Slice::Working => {}
            Slice::Answer(reply) => return (reply.response, reply.columns, slices),
            Slice::Idle => break,
        }
    }
    panic!("nothing was asked");
}

fn working(engine: &mut FileSession) {
    assert!(matches!(engine.slice(), Slice::Working));
}

#[test]
fn a_question_is_answered_before_the_tile_that_is_half_drawn() {
    let mut engine = engine();
    // In one go.
    engine.post(tiles(1, ColorBy::Stack, &[WHOLE]));
    let all = engine.step().expect("a tile");
    // The engine's own timeline, and that of the views.
    for color in [ColorBy::Stack, ColorBy::Size] {
        engine.post(tiles(2, color, &[WHOLE]));
        working(&mut engine);
        let pick = Request::Pick {
            id: 3,
            target: TARGET,
            axis: AxisKind::Event,
            kx: 10,
            ky: 14,
            slot: 5e4,
            bytes: 1e6,
        };
        engine.post(pick);
        let (response, _, slices) = next(&mut engine);
        assert!(
            matches!(response, Response::Picked { id: 3, hit: Some(_) }) && slices == 1,
            "{response:?}"
        );
        let (response, columns, slices) = next(&mut engine);
        assert!(matches!(response, Response::Tile { id: 2, key: WHOLE, .. }), "{response:?}");
        assert!(slices > 1, "{slices}");
        for at in [0, 2] {
            assert_eq!(columns[at], all.columns[at], "the same strips of the same blocks");
        }
        assert!(matches!(engine.slice(), Slice::Idle));
    }
}

#[test]
fn the_first_picture_comes_before_what_is_said_about_it() {
    let short = Query::Range(MarkedRange { axis: AxisKind::Event, x0: 0.0, x1: 10.0 });
    let question = || Request::View { id: 1, target: TARGET, query: short.clone() };
    let mut engine = engine();
    for first in [true, false] {
        engine.post(question());
        engine.post(tiles(2, ColorBy::Stack, &[WHOLE, ABOVE]));
        let order: Vec<bool> =
            (0..3).map(|_| matches!(next(&mut engine).0, Response::Tile { id: 2, .. })).collect();
        assert_eq!(order, if first { [true, true, false] } else { [false, true, true] });
    }
    // Without one nobody waits for it.
    let mut engine = self::engine();
    engine.post(question());
    assert!(matches!(next(&mut engine).0, Response::View { id: 1, .. }));
}

#[test]
fn a_tile_that_is_no_longer_asked_for_is_dropped_half_way() {
    let mut engine = engine();
    engine.post(tiles(1, ColorBy::Stack, &[WHOLE, ABOVE]));
    working(&mut engine);
    engine.post(tiles(2, ColorBy::Stack, &[NEAR]));
    let (response, _, _) = next(&mut engine);
    assert!(matches!(response, Response::Tile { id: 2, key: NEAR, .. }), "{response:?}");
    assert!(matches!(engine.slice(), Slice::Idle));
    // Another color is another tile.
    engine.post(tiles(3, ColorBy::Stack, &[WHOLE]));
    working(&mut engine);
    engine.post(tiles(4, ColorBy::Size, &[WHOLE]));
    let (response, _, slices) = next(&mut engine);
    assert!(
        matches!(response, Response::Tile { id: 4, key: WHOLE, .. }) && slices > 1,
        "{response:?}"
    );
    assert!(matches!(engine.slice(), Slice::Idle));
}

#[test]
fn a_tile_that_is_asked_for_again_goes_on() {
    let mut engine = engine();
    // What is made once is no part of what is counted.
    engine.post(tiles(0, ColorBy::Stack, &[NEAR]));
    next(&mut engine);
    engine.post(tiles(1, ColorBy::Stack, &[FINE]));
    let (_, all, whole) = next(&mut engine);
    assert!(whole > 2, "{whole} slices");
    engine.post(tiles(2, ColorBy::Stack, &[FINE]));
    for id in 3..whole + 2 {
        working(&mut engine);
        engine.post(tiles(id, ColorBy::Stack, &[NEAR, FINE]));
    }
    let (response, columns, slices) = next(&mut engine);
    assert!(
        matches!(response, Response::Tile { id, key: FINE, .. } if id == whole + 1),
        "{response:?}"
    );
    assert!(slices == 1 && columns == all);
    let (response, _, _) = next(&mut engine);
    assert!(matches!(response, Response::Tile { key: NEAR, .. }), "{response:?}");
    assert!(matches!(engine.slice(), Slice::Idle));
    // Tiles of another kind do not replace it.
    engine.post(tiles(1, ColorBy::Stack, &[FINE]));
    working(&mut engine);
    let layer = Layer::Flame { flame: vramscope_protocol::views::FlameSpec::default() };
    let flame = vec![TileKey { kx: 24, ky: 8, ix: 0, iy: 0 }];
    engine.post(Request::Tiles {
        id: 9,
        target: TARGET,
        axis: AxisKind::Event,
        layer,
        tiles: flame,
    });
    let (response, columns, _) = next(&mut engine);
    assert!(
        matches!(response, Response::Tile { id: 1, key: FINE, .. }) && columns == all,
        "{response:?}"
    );
    assert!(matches!(next(&mut engine).0, Response::Tile { id: 9, .. }));
}

/// What is asked, and what of a device it is made of that is kept: so many slices at least.
fn made_once() -> [(Request, u32); 5] {
    let lines = Layer::Timeline { color: ColorBy::Category, bands: true, search: String::new() };
    let segments = Layer::Segments {
        color: ColorBy::Segment,
        rows: SegmentSpec::default(),
        search: "0x".into(),
    };
    let tile = |layer| Request::Tiles {
        id: 1,
        target: TARGET,
        axis: AxisKind::Event,
        layer,
        tiles: vec![WHOLE],
    };
    let query = |query| Request::View { id: 1, target: TARGET, query };
    [
        (tiles(1, ColorBy::Stack, &[WHOLE]), 1),
        // Block sizes cost at least 4 units an event, categories 15 a block; a slice is 2^18 units.
        (tile(lines), 18),
        (tile(segments), 8),
        (query(Query::Card {}), 18),
        (query(Query::StateAt { at: At::Event { event: 1000 } }), 18),
    ]
}

#[test]
fn what_is_made_once_is_made_in_slices_and_a_pick_does_not_wait_for_it() {
    let pick = || Request::Pick {
        id: 9,
        target: TARGET,
        axis: AxisKind::Event,
        kx: 10,
        ky: 14,
        slot: 5e4,
        bytes: 1e6,
    };
    for (asked, least) in made_once() {
        let mut engine = engine();
        engine.post(asked.clone());
        let (all, columns, slices) = next(&mut engine);
        assert!(slices > least, "{slices} slices of {asked:?}");
        // With somebody who points at something all the time.
        let mut engine = self::engine();
        engine.post(pick());
        assert!(matches!(next(&mut engine).0, Response::Picked { id: 9, .. }));
        engine.post(asked.clone());
        let mut answers = Vec::new();
        while answers.is_empty() {
            engine.post(pick());
            let (response, _, waited) = next(&mut engine);
            assert!(
                matches!(response, Response::Picked { id: 9, hit: Some(_) }) && waited == 1,
                "{response:?}"
            );
            match engine.slice() {
                Slice::Working => {}
                Slice::Answer(reply) => answers.push(reply),
                Slice::Idle => panic!("{asked:?} is not answered"),
            }
        }
        assert_eq!(
            (format!("{:?}", answers[0].response), &answers[0].columns),
            (format!("{all:?}"), &columns)
        );
        // It is kept.
        engine.post(asked.clone());
        let (_, again, fewer) = next(&mut engine);
        assert!(
            again == columns && fewer + least <= slices + 1,
            "{fewer} slices, {slices} before, of {asked:?}"
        );
    }
}

/// Questions that take long on this file, each with the fewest slices that it takes when block
/// sizes are there.
fn long() -> [(Query, u32); 7] {
    let table = |text: &str, sort| BlockTable {
        text: text.to_owned(),
        category: String::new(),
        live_at: None,
        node: None,
        sort,
        descending: true,
    };
    let page = |table| Query::Blocks { table, from: 0, count: 10, near: None };
    let flame = FlameSpec { weight: FlameWeight::ByteSeconds, ..FlameSpec::default() };
    let all_blocks = Table::Blocks { table: table("", BlockSort::Allocated) };
    // A block costs at least so many units in each: 200,000 of them, in slices of 2^18.
    [
        (Query::Findings {}, 12),
        (Query::Card {}, 2),
        (Query::Range(MarkedRange { axis: AxisKind::Event, x0: 0.0, x1: 4e5 }), 3),
        (page(table("", BlockSort::Size)), 10),
        (page(table(">0", BlockSort::Site)), 10),
        (Query::Flame { flame }, 2),
        (Query::Export { what: all_blocks, form: TextForm::Csv }, 150),
    ]
}

#[test]
fn a_pick_and_tiles_do_not_wait_for_a_long_answer() {
    let pick = || Request::Pick {
        id: 9,
        target: TARGET,
        axis: AxisKind::Event,
        kx: 10,
        ky: 14,
        slot: 5e4,
        bytes: 1e6,
    };
    let query = |id, query: &Query| Request::View { id, target: TARGET, query: query.clone() };
    // What tiles and answers are made of is there before; the findings are left to the first
    // question.
    let prepared = || {
        let mut engine = engine();
        engine.post(pick());
        next(&mut engine);
        engine.post(tiles(1, ColorBy::Category, &[NEAR]));
        next(&mut engine);
        engine.post(query(1, &Query::Segments { rows: SegmentSpec::default() }));
        next(&mut engine);
        engine
    };
    let (mut alone, mut disturbed) = (prepared(), prepared());
    alone.post(tiles(1, ColorBy::Category, &[WHOLE]));
    let (_, of_tile, tile_slices) = next(&mut alone);
    for (asked, fewest) in long() {
        alone.post(query(2, &asked));
        let (expected, _, slices) = next(&mut alone);
        // Several threads do more in a slice.
        let fewest = if cfg!(feature = "parallel") { 2 } else { fewest };
        assert!(slices >= fewest, "{slices} slices of {asked:?}");
        disturbed.post(query(2, &asked));
        working(&mut disturbed);
        // It has a few slices before tiles, and then none until they are there.
        disturbed.post(tiles(3, ColorBy::Category, &[WHOLE]));
        disturbed.post(pick());
        let (response, _, waited) = next(&mut disturbed);
        assert!(
            matches!(response, Response::Picked { id: 9, hit: Some(_) }) && waited == 1,
            "{response:?}"
        );
        let (response, columns, waited) = next(&mut disturbed);
        let response = if slices > 8
            || matches!(asked, Query::Findings {} | Query::Card {} | Query::Export { .. })
        {
            assert!(
                matches!(response, Response::Tile { id: 3, key: WHOLE, .. }),
                "{response:?} before {asked:?}"
            );
            assert!(
                waited <= tile_slices + 8 && columns == of_tile,
                "{waited} slices, {tile_slices} alone"
            );
            disturbed.post(pick());
            assert!(matches!(next(&mut disturbed), (Response::Picked { .. }, _, 1)));
            next(&mut disturbed).0
        } else {
            assert!(matches!(next(&mut disturbed).0, Response::Tile { id: 3, .. }));
            response
        };
        assert_eq!(format!("{response:?}"), format!("{expected:?}"));
        assert!(matches!(disturbed.slice(), Slice::Idle));
    }
}

#[test]
fn short_questions_do_not_wait_for_long_ones_and_a_newer_one_takes_their_place() {
    let mut engine = engine();
    let query = |id, query: Query| Request::View { id, target: TARGET, query };
    let search = |text: &str| Query::Search { text: text.to_owned() };
    let blocks = || Query::Blocks {
        table: BlockTable {
            text: String::new(),
            category: String::new(),
            live_at: None,
            node: None,
            sort: BlockSort::Size,
            descending: false,
        },
        from: 0,
        count: 1,
        near: None,
    };
    engine.post(query(1, Query::Card {}));
    engine.post(query(2, blocks()));
    working(&mut engine);
    // Each has its turn.
    engine.post(query(3, Query::Hit { block: 7 }));
    let (response, _, waited) = next(&mut engine);
    assert!(
        matches!(response, Response::View { id: 3, answer: Answer::Hit(Some(_)) }) && waited <= 2,
        "{response:?}"
    );
    engine.post(query(4, search(">1024")));
    working(&mut engine);
    working(&mut engine);
    // What it has of the older one is dropped, and its answer never comes.
    engine.post(query(5, search(">2048")));
    let ids: Vec<u32> = std::iter::from_fn(|| engine.step())
        .map(|reply| match reply.response {
            Response::View { id, .. } => id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [5, 2, 1], "those that are known to be long are last");
}

/// So many segments come and go, a block in each.
const SEGMENTS: u32 = 30_000;
/// They come back to so many places.
const PLACES: u32 = 1000;

#[test]
fn rows_of_many_segments_are_put_in_order_in_slices_and_told_a_page_at_a_time() {
    let mut json = String::from("{\"segments\":[],\"device_traces\":[[");
    for segment in 0..SEGMENTS {
        let (address, mib) = (u64::from(segment % 100) << 30, 2 + segment * 7919 % PLACES);
        for (action, size) in
            [("segment_alloc", mib), ("alloc", 1), ("free_completed", 1), ("segment_free", mib)]
        {
            let comma = if json.ends_with('[') { "" } else { "," };
            let size = u64::from(size) << 20;
            write!(json, "{comma}{{\"action\":\"{action}\",\"addr\":{address},\"size\":{size}}}")
                .expect("a String takes all text");
        }
    }
    json.push_str("]]}");
    let mut engine = opened(&json);
    let ask = |query| Request::View { id: 1, target: TARGET, query };
    // Block sizes are there before.
    engine.post(ask(Query::SegmentOf { block: 0 }));
    next(&mut engine);
    let spec = SegmentSpec { sort: SegmentSort::Occupancy, event: 1, grown: Some(17) };
    engine.post(ask(Query::Segments { rows: spec.clone() }));
    let (response, _, slices) = next(&mut engine);
    let Response::View { answer: Answer::Segments(info), .. } = response else {
        panic!("{response:?}")
    };
    assert_eq!(info.units, f64::from((PLACES + GROWN - 1) * ROW_UNITS));
    assert!(info.text.starts_with("30,000 segments in 1,000 rows, "), "{}", info.text);
    assert!(cfg!(feature = "parallel") || slices > 1, "{slices} slices");
    // The order is kept, whichever row is higher.
    let (high, page) = (info.units, f64::from(40 * ROW_UNITS));
    for (y0, y1, least, most) in
        [(0.0, page, 37, 40), (high - page, high, 37, 40), (0.0, high, 500, 500)]
    {
        let rows = SegmentSpec { grown: Some(18), ..spec.clone() };
        engine.post(ask(Query::SegmentRows { rows, y0, y1 }));
        let (response, _, slices) = next(&mut engine);
        let Response::View { answer: Answer::SegmentRows(rows), .. } = response else {
            panic!("{response:?}")
        };
        assert!(
            slices == 1 && (least..=most).contains(&rows.len()),
            "{slices} slices, {} rows",
            rows.len()
        );
        assert_eq!(rows[0].y1, y1);
    }
}
