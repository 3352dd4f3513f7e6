//! The engine's answers about a file, as a page would ask for them.

use std::path::Path;
use vramscope_protocol::views::{ColorBy, Layer};
use vramscope_protocol::{
    AxisKind, BlockDetail, DeviceRef, Hit, Loaded, MERGED, Request, Response, TileKey,
};
use vramscope_session::{Column, FileSession, Reply};

const TARGET: DeviceRef = DeviceRef { part: 0, device: 0 };

fn engine(name: &str) -> (FileSession, Loaded) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let bytes = std::fs::read(path).expect("a file of test_data");
    let mut engine = FileSession::new(name, bytes.len() as u64);
    for chunk in bytes.chunks(50_000) {
        engine.feed(chunk).expect("a snapshot");
    }
    let Response::Loaded(loaded) = engine.finish() else { panic!("{name} is a snapshot") };
    (engine, loaded)
}

fn only(engine: &mut FileSession, request: Request) -> Response {
    engine.post(request);
    let Some(Reply { response, .. }) = engine.step() else { panic!("one answer") };
    assert!(engine.step().is_none(), "one answer only");
    response
}

fn find(engine: &mut FileSession, reference: &str) -> Option<BlockDetail> {
    match only(engine, Request::Find { id: 7, part: 0, reference: reference.into() }) {
        Response::Block { id: 7, detail } => detail,
        other => panic!("{other:?}"),
    }
}

fn row<'a>(detail: &'a BlockDetail, key: &str) -> &'a str {
    detail.rows.iter().find(|r| r.key == key).map_or("", |r| &r.text)
}

#[test]
fn details_say_everything_about_a_block() {
    // A 1000 100; A 1200 200; A 1400 300; F 1200; A 1200 50 (hexadecimal addresses)
    let (mut engine, _) = engine("scenarios/f02.pickle");
    let second = find(&mut engine, "0:0x1200@5").expect("the second block at its address");
    assert_eq!(second.address, "0x1200_1");
    assert_eq!((second.bytes.value, row(&second, "requested")), (50, "50 bytes"));
    assert_eq!(row(&second, "block_bytes"), "512 bytes");
    assert_eq!(row(&second, "free_completed"), "live at the end");
    let first = find(&mut engine, "0:0x1200@1").expect("the first");
    assert_eq!(first.address, "0x1200");
    assert!(row(&first, "alloc_event").starts_with("#1"), "{}", row(&first, "alloc_event"));
    assert!(row(&first, "free_requested").starts_with("#3"));
    assert!(row(&first, "free_completed").starts_with("#4"));
    assert!(row(&first, "lifetime").starts_with("3 events"));
    assert!(first.copy.contains("0:0x1200@1") && !first.stack.frames.is_empty());
    assert!(find(&mut engine, "0:0x1200@2").is_none());
    assert!(find(&mut engine, "1:0x1200@1").is_none());
    assert!(find(&mut engine, "nonsense").is_none());
}

#[test]
fn blocks_from_before_the_window_say_so() {
    // A 1400 200; F 1000 (700); F 1400: the block at 1000 was there before, and its stack is that
    // of its free.
    let (mut engine, loaded) = engine("scenarios/f04.pickle");
    assert_eq!(loaded.parts[0].devices[0].start.value, 700);
    let block = find(&mut engine, "0:0x1000@pre").expect("it was freed in the window");
    assert_eq!(row(&block, "alloc_event"), "before the window");
    assert!(
        block.stack.note.as_deref().is_some_and(|n| n.contains("stack of the free")),
        "{:?}",
        block.stack.note
    );
    assert_eq!(block.spans[0].x0, 0.0);
}

#[test]
fn hover_names_the_block_or_what_was_merged() {
    let (mut engine, loaded) = engine("recorded/t26/gpt_small.pickle.gz");
    let axis = loaded.parts[0].devices[0].axes[0];
    let pick = |engine: &mut FileSession, kx, ky, slot, bytes| -> Option<Hit> {
        let request =
            Request::Pick { id: 1, target: TARGET, axis: AxisKind::Event, kx, ky, slot, bytes };
        match only(engine, request) {
            Response::Picked { hit, .. } => hit,
            other => panic!("{other:?}"),
        }
    };
    let fine = pick(&mut engine, 0, 0, axis.peak, 1.0).expect("the ground of the stack");
    assert_eq!(fine.count, 1);
    assert!(
        fine.lines[0].contains("lived") || fine.lines[0].contains("live at the end"),
        "{:?}",
        fine.lines
    );
    // Rows of 256 MiB: everything small is merged.
    let coarse = pick(&mut engine, 6, 28, axis.peak, 1.0).expect("the ground of the stack");
    assert!(coarse.count > 1 && coarse.title.contains("blocks, "), "{}", coarse.title);
    assert_eq!(coarse.lines.len(), 3, "the largest members");
    assert!(pick(&mut engine, 0, 0, axis.peak, 1e18).is_none());
    assert!(pick(&mut engine, 0, 0, -5.0, 1.0).is_none());
}

#[test]
fn newer_questions_replace_older_ones_and_the_pointer_comes_first() {
    let (mut engine, _) = engine("scenarios/f01.pickle");
    let tile = |ix| TileKey { kx: 0, ky: 4, ix, iy: 0 };
    let layer = Layer::Timeline { color: ColorBy::Stack, bands: false, search: String::new() };
    let tiles = |id, tiles| Request::Tiles {
        id,
        target: TARGET,
        axis: AxisKind::Event,
        layer: layer.clone(),
        tiles,
    };
    let pick = |id| Request::Pick {
        id,
        target: TARGET,
        axis: AxisKind::Event,
        kx: 0,
        ky: 0,
        slot: 2.0,
        bytes: 1.0,
    };
    engine.post(tiles(1, vec![tile(0), tile(1)]));
    engine.post(pick(2));
    engine.post(tiles(3, vec![tile(0)]));
    engine.post(pick(4));
    assert!(matches!(engine.step().map(|r| r.response), Some(Response::Picked { id: 4, .. })));
    let reply = engine.step().expect("the newer tiles");
    let Response::Tile { id: 3, strips, .. } = reply.response else {
        panic!("{:?}", reply.response)
    };
    let [
        ("positions", Column::F32(positions)),
        ("colors", Column::U32(colors)),
        ("blocks", Column::U32(blocks)),
    ] = reply.columns.as_slice()
    else {
        panic!("three named columns")
    };
    assert_eq!(
        (positions.len(), colors.len(), blocks.len()),
        (4 * strips as usize, strips as usize, strips as usize)
    );
    assert!(blocks.iter().all(|b| b & MERGED == 0 || b & !MERGED < 2));
    assert!(engine.step().is_none());
}

#[test]
fn a_range_keeps_its_states_when_the_axis_changes() {
    let (mut engine, loaded) = engine("recorded/t26/gpt_small.pickle.gz");
    let axes = &loaded.parts[0].devices[0].axes;
    assert_eq!(axes.len(), 2);
    let map = |engine: &mut FileSession, from, x0, x1| match only(
        engine,
        Request::MapRange { id: 1, target: TARGET, from, x0, x1 },
    ) {
        Response::Range { x0, x1, .. } => (x0, x1),
        other => panic!("{other:?}"),
    };
    let (t0, t1) = map(&mut engine, AxisKind::Event, 1000.0, 2000.0);
    assert!(0.0 < t0 && t0 < t1 && t1 < axes[1].extent, "{t0} {t1}");
    let (x0, x1) = map(&mut engine, AxisKind::Time, t0, t1);
    // Events at the same microsecond cannot be told apart by time.
    assert!((x0 - 1000.0).abs() < 20.0 && (x1 - 2000.0).abs() < 20.0, "{x0} {x1}");
    let all = map(&mut engine, AxisKind::Event, 0.0, axes[0].extent);
    assert_eq!(all, (0.0, axes[1].extent));
}

#[test]
fn files_without_history_say_why() {
    let (_, loaded) = engine("recorded/misc/norecord.pickle");
    let device = &loaded.parts[0].devices[0];
    assert!(device.note.as_deref().is_some_and(|n| n.contains("_record_memory_history")));
    assert_eq!(device.peak.value, 50_852_000);
    assert_eq!(device.axes.len(), 1, "no clock, no time axis");
    let (_, loaded) = engine("recorded/misc/nothing.pickle");
    assert!(loaded.parts[0].devices.is_empty() && loaded.parts[0].peak.is_none());
}

#[test]
fn a_page_with_two_snapshots_has_two_parts() {
    let (mut engine, loaded) = engine("containers/trace_plot.html");
    assert_eq!(loaded.parts.len(), 2);
    assert!(!loaded.parts[1].name.is_empty());
    let target = DeviceRef { part: 1, device: 0 };
    let request = Request::Block { id: 9, target, block: 0 };
    assert!(matches!(only(&mut engine, request), Response::Block { id: 9, detail: Some(_) }));
}

#[test]
fn questions_before_the_load_are_refused() {
    let mut engine = FileSession::new("x", 0);
    let answer = only(&mut engine, Request::Block { id: 3, target: TARGET, block: 0 });
    assert!(matches!(answer, Response::Failed(f) if f.id == Some(3)));
    let Response::Failed(failure) = engine.finish() else { panic!("nothing was read") };
    assert_eq!((failure.id, failure.message.as_str()), (None, "the file is empty"));
}

#[test]
fn a_rank_is_summed_up_in_little_memory() {
    let bytes = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../test_data/recorded/t26/oom_observer.pickle.gz"
    ));
    let bytes = bytes.expect("a file of test_data");
    let mut loader = vramscope_session::Loader::new("rank7.pickle", 0);
    loader.feed(&bytes).expect("a snapshot");
    let file = loader.finish().expect("a snapshot");
    let target =
        vramscope_report::Target { path: "rank7.pickle", entry: &file.entries[0], index: 0 };
    let summary = vramscope_report::rank::RankSummary::new(target);
    assert_eq!((summary.rank, summary.ooms.len()), (Some(7), 1));
    let whole: u64 = summary.categories.iter().map(|c| c.bytes).sum();
    assert_eq!(
        Some(whole as i64),
        summary.peaks.first().map(|p| p.1),
        "categories add up to the peak"
    );
    // C++ stacks of fifty frames: a thousand such ranks are a gigabyte at most.
    let json = serde_json::to_string(&summary).expect("it serializes");
    assert!(json.len() < 1 << 20, "{} bytes", json.len());
}
