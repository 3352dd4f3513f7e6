//! Long work runs in slices, so that urgent requests do not wait for it.

use std::fmt::Write as _;
use vramscope_session::messages::views::{
    Answer, Bands, BlockSort, BlockTable, ColorBy, FlameSpec, FlameWeight, GROWN, GroupBy, Layer,
    MarkedRange, Query, ROW_UNITS, SegmentSort, SegmentSpec, Table, TextForm,
};
use vramscope_session::messages::{AxisKind, DeviceRef, Request, Response, TileKey};
use vramscope_session::{Column, FileSession, Slice};
use vramscope_trace::parallel;

const TARGET: DeviceRef = DeviceRef { part: 0, device: 0 };
const BLOCKS: u32 = 200_000;
const LIVE: u32 = 10_000;
/// A tile of all events: 512 columns of 2^10 slots.
const WHOLE: TileKey = TileKey { kx: 10, ky: 14, ix: 0, iy: 0 };
/// A finer tile of all events, which takes several slices.
const FINE: TileKey = TileKey { ky: 12, ..WHOLE };
const ABOVE: TileKey = TileKey { iy: 1, ..WHOLE };
const NEAR: TileKey = TileKey { kx: 0, ..WHOLE };

/// A file of 200,000 blocks, of which 10,000 are live at a time.
fn open_large() -> FileSession {
    let mut json = String::from("{\"segments\":[],\"device_traces\":[[");
    let mut put = |action, block: u32| {
        let comma = if json.ends_with('[') { "" } else { "," };
        // 40,000 addresses in turn, and sizes from 512 bytes to 5 KiB.
        let (address, size) =
            (4096 + 8192 * u64::from(block % 40_000), 512 * (1 + block * 7919 % 10));
        write!(json, "{comma}{{\"action\":\"{action}\",\"addr\":{address},\"size\":{size}}}")
            .expect("writing to a String cannot fail");
    };
    for block in 0..BLOCKS {
        put("alloc", block);
        if block >= LIVE {
            // Of two neighbors the later block is freed first.
            put("free_completed", (block - LIVE) ^ 1);
        }
    }
    json.push_str("]]}");
    open_json(&json)
}

/// A session with a loaded JSON file.
fn open_json(json: &str) -> FileSession {
    let mut session = FileSession::new("made.json", json.len() as u64);
    session.feed(json.as_bytes()).expect("a snapshot");
    assert!(matches!(session.finish(), Response::Loaded(_)));
    session
}

fn layer(color: ColorBy) -> Layer {
    Layer::Timeline { group: GroupBy::Block, color, bands: Bands::NONE, search: String::new() }
}

fn tiles(id: u32, color: ColorBy, tiles: &[TileKey]) -> Request {
    let layer = layer(color);
    Request::Tiles { id, target: TARGET, axis: AxisKind::Event, layer, tiles: tiles.to_vec() }
}

/// Runs slices until the next reply: the response, its columns, and the number of slices.
fn next(session: &mut FileSession) -> (Response, Vec<(&'static str, Column)>, u32) {
    for slices in 1.. {
        match session.slice() {
            Slice::Working => {}
            Slice::Answer(reply) => return (reply.response, reply.columns, slices),
            Slice::Idle => break,
        }
    }
    panic!("no work is left");
}

/// A pick at a place in the first picture that has a block.
fn pick(id: u32) -> Request {
    Request::Pick {
        id,
        target: TARGET,
        axis: AxisKind::Event,
        layer: layer(ColorBy::Stack),
        kx: 10,
        ky: 14,
        slot: 5e4,
        bytes: 1e6,
        hover: true,
    }
}

/// Runs a slice without a reply.
fn working(session: &mut FileSession) {
    assert!(matches!(session.slice(), Slice::Working));
}

#[test]
fn pick_is_answered_before_a_partial_tile() {
    let mut session = open_large();
    // Without interruption.
    session.post(tiles(1, ColorBy::Stack, &[WHOLE]));
    let all = session.step().expect("a tile");
    for color in [ColorBy::Stack, ColorBy::Size] {
        session.post(tiles(2, color, &[WHOLE]));
        working(&mut session);
        session.post(pick(3));
        let (response, _, slices) = next(&mut session);
        assert!(
            matches!(response, Response::Picked { id: 3, hit: Some(_) }) && slices == 1,
            "{response:?}"
        );
        let (response, columns, slices) = next(&mut session);
        assert!(matches!(response, Response::Tile { id: 2, key: WHOLE, .. }), "{response:?}");
        assert!(slices > 1, "{slices}");
        for at in [0, 2] {
            assert_eq!(
                columns[at], all.columns[at],
                "strips and blocks do not depend on the color"
            );
        }
        assert!(matches!(session.slice(), Slice::Idle));
    }
}

#[test]
fn first_picture_comes_before_queries() {
    let short = Query::Range(MarkedRange { axis: AxisKind::Event, x0: 0.0, x1: 10.0 });
    let query = || Request::View { id: 1, target: TARGET, query: short.clone() };
    let mut session = open_large();
    for first in [true, false] {
        session.post(query());
        session.post(tiles(2, ColorBy::Stack, &[WHOLE, ABOVE]));
        let order: Vec<bool> =
            (0..3).map(|_| matches!(next(&mut session).0, Response::Tile { id: 2, .. })).collect();
        assert_eq!(order, if first { [true, true, false] } else { [false, true, true] });
    }
    // Without tiles, the query comes at once.
    let mut session = open_large();
    session.post(query());
    assert!(matches!(next(&mut session).0, Response::View { id: 1, .. }));
}

#[test]
fn partial_tile_is_cancelled_by_newer_tiles() {
    let mut session = open_large();
    session.post(tiles(1, ColorBy::Stack, &[WHOLE, ABOVE]));
    working(&mut session);
    session.post(tiles(2, ColorBy::Stack, &[NEAR]));
    let (response, _, _) = next(&mut session);
    assert!(matches!(response, Response::Tile { id: 2, key: NEAR, .. }), "{response:?}");
    assert!(matches!(session.slice(), Slice::Idle));
    // A tile of another color cancels it, too.
    session.post(tiles(3, ColorBy::Stack, &[WHOLE]));
    working(&mut session);
    session.post(tiles(4, ColorBy::Size, &[WHOLE]));
    let (response, _, slices) = next(&mut session);
    assert!(
        matches!(response, Response::Tile { id: 4, key: WHOLE, .. }) && slices > 1,
        "{response:?}"
    );
    assert!(matches!(session.slice(), Slice::Idle));
}

#[test]
fn partial_tile_continues_when_requested_again() {
    let mut session = open_large();
    // Computes the cached data first, so that it is not counted.
    session.post(tiles(0, ColorBy::Stack, &[NEAR]));
    next(&mut session);
    session.post(tiles(1, ColorBy::Stack, &[FINE]));
    let (_, all, whole) = next(&mut session);
    assert!(whole > 2, "{whole} slices");
    session.post(tiles(2, ColorBy::Stack, &[FINE]));
    for id in 3..whole + 2 {
        working(&mut session);
        session.post(tiles(id, ColorBy::Stack, &[NEAR, FINE]));
    }
    let (response, columns, slices) = next(&mut session);
    assert!(
        matches!(response, Response::Tile { id, key: FINE, .. } if id == whole + 1),
        "{response:?}"
    );
    assert!(slices == 1 && columns == all);
    let (response, _, _) = next(&mut session);
    assert!(matches!(response, Response::Tile { key: NEAR, .. }), "{response:?}");
    assert!(matches!(session.slice(), Slice::Idle));
    // Tiles of another kind of layer do not cancel it.
    session.post(tiles(1, ColorBy::Stack, &[FINE]));
    working(&mut session);
    let layer = Layer::Flame { flame: vramscope_session::messages::views::FlameSpec::default() };
    let flame = vec![TileKey { kx: 24, ky: 8, ix: 0, iy: 0 }];
    session.post(Request::Tiles {
        id: 9,
        target: TARGET,
        axis: AxisKind::Event,
        layer,
        tiles: flame,
    });
    let (response, columns, _) = next(&mut session);
    assert!(
        matches!(response, Response::Tile { id: 1, key: FINE, .. }) && columns == all,
        "{response:?}"
    );
    assert!(matches!(next(&mut session).0, Response::Tile { id: 9, .. }));
}

/// Requests, each with the minimum number of slices for the cached data that it needs.
fn requests_with_cached_data() -> [(Request, u32); 5] {
    let lines = Layer::Timeline {
        group: GroupBy::Block,
        color: ColorBy::Category,
        bands: Bands::ALL,
        search: String::new(),
    };
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
        // Block sizes cost at least 4 units for each event, categories at least 15 for each block.
        // A slice has 2^18 units.
        (tile(lines), 18),
        (tile(segments), 8),
        (query(Query::Card {}), 18),
        (query(Query::StateAt { event: 1000 }), 18),
    ]
}

#[test]
fn cached_data_is_computed_once_in_slices_between_picks() {
    for (request, min_slices) in requests_with_cached_data() {
        let mut session = open_large();
        session.post(request.clone());
        let (all, columns, slices) = next(&mut session);
        assert!(slices > min_slices, "{slices} slices of {request:?}");
        // With a pick before every slice.
        let mut session = open_large();
        session.post(pick(9));
        assert!(matches!(next(&mut session).0, Response::Picked { id: 9, .. }));
        session.post(request.clone());
        let mut answers = Vec::new();
        while answers.is_empty() {
            session.post(pick(9));
            let (response, _, waited) = next(&mut session);
            assert!(
                matches!(response, Response::Picked { id: 9, hit: Some(_) }) && waited == 1,
                "{response:?}"
            );
            match session.slice() {
                Slice::Working => {}
                Slice::Answer(reply) => answers.push(reply),
                Slice::Idle => panic!("{request:?} is not answered"),
            }
        }
        assert_eq!(
            (format!("{:?}", answers[0].response), &answers[0].columns),
            (format!("{all:?}"), &columns)
        );
        // The data is cached.
        session.post(request.clone());
        let (_, again, fewer) = next(&mut session);
        assert!(
            again == columns && fewer + min_slices <= slices + 1,
            "{fewer} slices, {slices} before, of {request:?}"
        );
    }
}

/// Long queries about this file, each with its minimum number of slices when block sizes exist.
fn long_queries() -> [(Query, u32); 7] {
    let table = |text: &str, sort| BlockTable {
        text: text.to_owned(),
        category: String::new(),
        live_at: None,
        sort,
        descending: true,
    };
    let page = |table| Query::Blocks { table, from: 0, count: 10, near: None };
    let flame = FlameSpec { weight: FlameWeight::ByteSeconds, ..FlameSpec::default() };
    let all_blocks = Table::Blocks { table: table("", BlockSort::Allocated) };
    // From the minimum cost of a block: 200,000 blocks, in slices of 2^18 units.
    [
        (Query::Summary {}, 12),
        (Query::Card {}, 2),
        (Query::Range(MarkedRange { axis: AxisKind::Event, x0: 0.0, x1: 4e5 }), 3),
        (page(table("", BlockSort::Size)), 10),
        (page(table(">0", BlockSort::Site)), 10),
        (Query::Flame { flame }, 2),
        (Query::Export { what: all_blocks, form: TextForm::Csv }, 150),
    ]
}

#[test]
fn picks_and_tiles_do_not_wait_for_long_queries() {
    let query = |id, query: &Query| Request::View { id, target: TARGET, query: query.clone() };
    // Computes the cached data of tiles and answers first, but not the findings.
    let prepared = || {
        let mut session = open_large();
        session.post(pick(9));
        next(&mut session);
        session.post(tiles(1, ColorBy::Category, &[NEAR]));
        next(&mut session);
        session.post(query(1, &Query::Segments { rows: SegmentSpec::default() }));
        next(&mut session);
        session
    };
    let (mut alone, mut disturbed) = (prepared(), prepared());
    alone.post(tiles(1, ColorBy::Category, &[WHOLE]));
    let (_, of_tile, tile_slices) = next(&mut alone);
    for (long_query, min_slices) in long_queries() {
        alone.post(query(2, &long_query));
        let (expected, _, slices) = next(&mut alone);
        // Several threads do more work in a slice.
        let min_slices = if parallel::IS_ENABLED { 2 } else { min_slices };
        assert!(slices >= min_slices, "{slices} slices of {long_query:?}");
        disturbed.post(query(2, &long_query));
        working(&mut disturbed);
        // A query has a few slices before tiles, and then none until they are drawn.
        disturbed.post(tiles(3, ColorBy::Category, &[WHOLE]));
        disturbed.post(pick(9));
        let (response, _, waited) = next(&mut disturbed);
        assert!(
            matches!(response, Response::Picked { id: 9, hit: Some(_) }) && waited == 1,
            "{response:?}"
        );
        let (response, columns, waited) = next(&mut disturbed);
        let response = if slices > 8
            || matches!(long_query, Query::Summary {} | Query::Card {} | Query::Export { .. })
        {
            assert!(
                matches!(response, Response::Tile { id: 3, key: WHOLE, .. }),
                "{response:?} before {long_query:?}"
            );
            assert!(
                waited <= tile_slices + 8 && columns == of_tile,
                "{waited} slices, {tile_slices} alone"
            );
            disturbed.post(pick(9));
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
fn short_queries_do_not_wait_for_long_ones_and_newer_searches_replace_older_ones() {
    let mut session = open_large();
    let query = |id, query: Query| Request::View { id, target: TARGET, query };
    let search = |text: &str| Query::Search { text: text.to_owned() };
    let blocks = || Query::Blocks {
        table: BlockTable {
            text: String::new(),
            category: String::new(),
            live_at: None,
            sort: BlockSort::Size,
            descending: false,
        },
        from: 0,
        count: 1,
        near: None,
    };
    session.post(query(1, Query::Card {}));
    session.post(query(2, blocks()));
    working(&mut session);
    // Queries take turns.
    session.post(query(3, Query::Hit { block: 7 }));
    let (response, _, waited) = next(&mut session);
    assert!(
        matches!(response, Response::View { id: 3, answer: Answer::Hit(Some(_)) }) && waited <= 2,
        "{response:?}"
    );
    session.post(query(4, search(">1024")));
    working(&mut session);
    working(&mut session);
    // A newer search cancels the older one, which is never answered.
    session.post(query(5, search(">2048")));
    let ids: Vec<u32> = std::iter::from_fn(|| session.step())
        .map(|reply| match reply.response {
            Response::View { id, .. } => id,
            other => panic!("{other:?}"),
        })
        .collect();
    // The search and the table take turns, whichever is done first.
    assert_eq!(ids.last(), Some(&1), "long queries are last: {ids:?}");
    assert_eq!(ids.iter().sum::<u32>(), 1 + 2 + 5, "{ids:?}");
}

/// Segments that are reserved and released in turn, with a block in each.
const SEGMENTS: u32 = 30_000;
/// Rows that the segments share by address and size.
const ROWS: u32 = 1000;

#[test]
fn rows_of_many_segments_are_sorted_in_slices_and_sent_in_pages() {
    let mut json = String::from("{\"segments\":[],\"device_traces\":[[");
    for segment in 0..SEGMENTS {
        let (address, mib) = (u64::from(segment % 100) << 30, 2 + segment * 7919 % ROWS);
        for (action, size) in
            [("segment_alloc", mib), ("alloc", 1), ("free_completed", 1), ("segment_free", mib)]
        {
            let comma = if json.ends_with('[') { "" } else { "," };
            let size = u64::from(size) << 20;
            write!(json, "{comma}{{\"action\":\"{action}\",\"addr\":{address},\"size\":{size}}}")
                .expect("writing to a String cannot fail");
        }
    }
    json.push_str("]]}");
    let mut session = open_json(&json);
    let ask = |query| Request::View { id: 1, target: TARGET, query };
    // Computes block sizes first.
    session.post(ask(Query::SegmentOf { block: 0 }));
    next(&mut session);
    let spec = SegmentSpec { sort: SegmentSort::Occupancy, event: 1, grown: Some(17) };
    session.post(ask(Query::Segments { rows: spec.clone() }));
    let (response, _, slices) = next(&mut session);
    let Response::View { answer: Answer::Segments(info), .. } = response else {
        panic!("{response:?}")
    };
    // A quarter of a row more for each factor of four over 2 MiB. The sizes are 2 to 1,001 MiB.
    let quarters: u32 = (2..2 + ROWS)
        .map(|mib| 4 + [8, 32, 128, 512].into_iter().filter(|&least| mib >= least).count() as u32)
        .sum();
    assert_eq!(info.units, f64::from((quarters / 4 + GROWN - 1) * ROW_UNITS));
    assert_eq!(quarters % 4, 0);
    assert!(info.text.starts_with("30,000 segments in 1,000 rows · "), "{}", info.text);
    assert!(parallel::IS_ENABLED || slices > 1, "{slices} slices");
    // The cached order does not depend on the enlarged row.
    let (high, page) = (info.units, f64::from(40 * ROW_UNITS));
    // Rows are one or two high, and one is higher by three.
    for (y0, y1, min, max) in
        [(0.0, page, 18, 40), (high - page, high, 18, 40), (0.0, high, 500, 500)]
    {
        let rows = SegmentSpec { grown: Some(18), ..spec.clone() };
        session.post(ask(Query::SegmentRows { rows, y0, y1 }));
        let (response, _, slices) = next(&mut session);
        let Response::View { answer: Answer::SegmentRows(rows), .. } = response else {
            panic!("{response:?}")
        };
        assert!(
            slices == 1 && (min..=max).contains(&rows.len()),
            "{slices} slices, {} rows",
            rows.len()
        );
        // The first row reaches to the edge or across it.
        assert!(rows[0].y0 < y1 && y1 <= rows[0].y1, "{} to {}", rows[0].y0, rows[0].y1);
    }
}
