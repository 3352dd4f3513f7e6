//! Tiles that take long are drawn in slices: what is asked meanwhile does not wait for them.

use memstrata_engine::protocol::views::{At, ColourBy, Layer, Query, SegmentSpec};
use memstrata_engine::protocol::{AxisKind, DeviceRef, Request, Response, TileKey};
use memstrata_engine::{Column, Engine, Slice};
use std::fmt::Write as _;

const TARGET: DeviceRef = DeviceRef { part: 0, device: 0 };
const BLOCKS: u32 = 200_000;
const LIVE: u32 = 10_000;
/// All events in a tile's columns: 2^10 slots in each of 512.
const WHOLE: TileKey = TileKey { kx: 10, ky: 14, ix: 0, iy: 0 };
const ABOVE: TileKey = TileKey { iy: 1, ..WHOLE };
const NEAR: TileKey = TileKey { kx: 0, ..WHOLE };

/// Blocks that come and, when many others have come, go.
fn engine() -> Engine {
    let mut json = String::from("{\"segments\":[],\"device_traces\":[[");
    let mut put = |action, block: u32| {
        let comma = if json.ends_with('[') { "" } else { "," };
        // Ever the same 40,000 places, and sizes from 512 bytes to 5 KiB.
        let (address, size) = (4096 + 8192 * u64::from(block % 40_000), 512 * (1 + block * 7919 % 10));
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
    let mut engine = Engine::new("made.json", json.len() as u64);
    engine.feed(json.as_bytes()).expect("a snapshot");
    assert!(matches!(engine.finish(), Response::Loaded(_)));
    engine
}

fn tiles(id: u32, colour: ColourBy, tiles: &[TileKey]) -> Request {
    let layer = Layer::Timeline { colour, bands: false, search: String::new() };
    Request::Tiles { id, target: TARGET, axis: AxisKind::Event, layer, tiles: tiles.to_vec() }
}

/// Goes on until there is an answer: which it is, its columns, and the number of slices.
fn next(engine: &mut Engine) -> (Response, Vec<(&'static str, Column)>, u32) {
    for slices in 1.. {
        match engine.slice() {
            Slice::Working => {}
            Slice::Answer(reply) => return (reply.response, reply.columns, slices),
            Slice::Idle => break,
        }
    }
    panic!("nothing was asked");
}

fn working(engine: &mut Engine) {
    assert!(matches!(engine.slice(), Slice::Working));
}

#[test]
fn a_question_is_answered_before_the_tile_that_is_half_drawn() {
    let mut engine = engine();
    // In one go.
    engine.post(tiles(1, ColourBy::Stack, &[WHOLE]));
    let all = engine.step().expect("a tile");
    // The engine's own timeline, and that of the views.
    for colour in [ColourBy::Stack, ColourBy::Size] {
        engine.post(tiles(2, colour, &[WHOLE]));
        working(&mut engine);
        let pick =
            Request::Pick { id: 3, target: TARGET, axis: AxisKind::Event, kx: 10, ky: 14, slot: 5e4, bytes: 1e6 };
        engine.post(pick);
        let (response, _, slices) = next(&mut engine);
        assert!(matches!(response, Response::Picked { id: 3, hit: Some(_) }) && slices == 1, "{response:?}");
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
fn a_tile_that_is_no_longer_asked_for_is_dropped_half_way() {
    let mut engine = engine();
    engine.post(tiles(1, ColourBy::Stack, &[WHOLE, ABOVE]));
    working(&mut engine);
    engine.post(tiles(2, ColourBy::Stack, &[NEAR]));
    let (response, _, _) = next(&mut engine);
    assert!(matches!(response, Response::Tile { id: 2, key: NEAR, .. }), "{response:?}");
    assert!(matches!(engine.slice(), Slice::Idle));
    // Another colour is another tile.
    engine.post(tiles(3, ColourBy::Stack, &[WHOLE]));
    working(&mut engine);
    engine.post(tiles(4, ColourBy::Size, &[WHOLE]));
    let (response, _, slices) = next(&mut engine);
    assert!(matches!(response, Response::Tile { id: 4, key: WHOLE, .. }) && slices > 1, "{response:?}");
    assert!(matches!(engine.slice(), Slice::Idle));
}

#[test]
fn a_tile_that_is_asked_for_again_goes_on() {
    let mut engine = engine();
    // What is made once is no part of what is counted.
    engine.post(tiles(0, ColourBy::Stack, &[NEAR]));
    next(&mut engine);
    engine.post(tiles(1, ColourBy::Stack, &[WHOLE]));
    let (_, all, whole) = next(&mut engine);
    assert!(whole > 2, "{whole} slices");
    engine.post(tiles(2, ColourBy::Stack, &[WHOLE]));
    for id in 3..whole + 2 {
        working(&mut engine);
        engine.post(tiles(id, ColourBy::Stack, &[NEAR, WHOLE]));
    }
    let (response, columns, slices) = next(&mut engine);
    assert!(matches!(response, Response::Tile { id, key: WHOLE, .. } if id == whole + 1), "{response:?}");
    assert!(slices == 1 && columns == all);
    let (response, _, _) = next(&mut engine);
    assert!(matches!(response, Response::Tile { key: NEAR, .. }), "{response:?}");
    assert!(matches!(engine.slice(), Slice::Idle));
    // Tiles of another kind do not replace it.
    engine.post(tiles(1, ColourBy::Stack, &[WHOLE]));
    working(&mut engine);
    let layer = Layer::Flame { flame: memstrata_engine::protocol::views::FlameSpec::default() };
    let flame = vec![TileKey { kx: 24, ky: 8, ix: 0, iy: 0 }];
    engine.post(Request::Tiles { id: 9, target: TARGET, axis: AxisKind::Event, layer, tiles: flame });
    let (response, columns, _) = next(&mut engine);
    assert!(matches!(response, Response::Tile { id: 1, key: WHOLE, .. }) && columns == all, "{response:?}");
    assert!(matches!(next(&mut engine).0, Response::Tile { id: 9, .. }));
}

/// What is asked, and what of a device it is made of that is kept: so many slices at least.
fn made_once() -> [(Request, u32); 5] {
    let lines = Layer::Timeline { colour: ColourBy::Category, bands: true, search: String::new() };
    let segments = Layer::Segments { colour: ColourBy::Segment, rows: SegmentSpec::default(), search: "0x".into() };
    let tile = |layer| Request::Tiles { id: 1, target: TARGET, axis: AxisKind::Event, layer, tiles: vec![WHOLE] };
    let query = |query| Request::View { id: 1, target: TARGET, query };
    [
        (tiles(1, ColourBy::Stack, &[WHOLE]), 1),
        // Block sizes cost at least 4 units an event, categories 15 a block; a slice is 2^18 units.
        (tile(lines), 18),
        (tile(segments), 8),
        (query(Query::Card {}), 18),
        (query(Query::Moment { at: At::Event { event: 1000 } }), 18),
    ]
}

#[test]
fn what_is_made_once_is_made_in_slices_and_a_pick_does_not_wait_for_it() {
    let pick = || Request::Pick { id: 9, target: TARGET, axis: AxisKind::Event, kx: 10, ky: 14, slot: 5e4, bytes: 1e6 };
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
            assert!(matches!(response, Response::Picked { id: 9, hit: Some(_) }) && waited == 1, "{response:?}");
            match engine.slice() {
                Slice::Working => {}
                Slice::Answer(reply) => answers.push(reply),
                Slice::Idle => panic!("{asked:?} is not answered"),
            }
        }
        assert_eq!((format!("{:?}", answers[0].response), &answers[0].columns), (format!("{all:?}"), &columns));
        // It is kept.
        engine.post(asked.clone());
        let (_, again, fewer) = next(&mut engine);
        assert!(again == columns && fewer + least <= slices + 1, "{fewer} slices, {slices} before, of {asked:?}");
    }
}
