//! Requests about blocks, tiles and axes, and their order.

#[expect(dead_code, reason = "this target needs a part of the harness")]
mod harness;

use harness::{GPT, TARGET, load_file_as, open_session, report_target};
use vramscope_report::card::Card;
use vramscope_session::messages::views::{Bands, ColorBy, GroupBy, Layer};
use vramscope_session::messages::{
    AxisKind, BlockDetail, DeviceRef, Hit, MERGED, Request, Response, TileKey,
};
use vramscope_session::{Column, FileSession, Reply};
use vramscope_trace::slicing::now;

/// The only response to a request.
fn only(session: &mut FileSession, request: Request) -> Response {
    session.post(request);
    let Some(Reply { response, .. }) = session.step() else { panic!("one response") };
    assert!(session.step().is_none(), "only one response");
    response
}

fn find(session: &mut FileSession, reference: &str) -> Option<BlockDetail> {
    match only(session, Request::Find { id: 7, part: 0, reference: reference.into() }) {
        Response::Block { id: 7, detail } => detail,
        other => panic!("{other:?}"),
    }
}

fn row<'a>(detail: &'a BlockDetail, key: &str) -> &'a str {
    detail.rows.iter().find(|r| r.key == key).map_or("", |r| &r.text)
}

fn layer(group: GroupBy) -> Layer {
    Layer::Timeline { group, color: ColorBy::Category, bands: Bands::NONE, search: String::new() }
}

#[test]
fn block_details_have_all_rows() {
    // A 1000 100; A 1200 200; A 1400 300; F 1200; A 1200 50 (hexadecimal addresses)
    let (mut session, _) = open_session("scenarios/f02.pickle");
    let second = find(&mut session, "0:0x1200@5").expect("the second block at its address");
    assert_eq!(second.address, "0x1200 (2nd block here)");
    assert_eq!((second.bytes.value, row(&second, "requested")), (50, "50 bytes"));
    assert_eq!(row(&second, "block_bytes"), "512 bytes");
    assert_eq!(row(&second, "free_completed"), "not freed");
    let first = find(&mut session, "0:0x1200@1").expect("the first block at its address");
    assert_eq!(first.address, "0x1200");
    assert!(row(&first, "alloc_event").starts_with("#1"), "{}", row(&first, "alloc_event"));
    assert!(row(&first, "free_requested").starts_with("#3"));
    assert!(row(&first, "free_completed").starts_with("#4"));
    assert!(row(&first, "lifetime").ends_with(" (3 events)"));
    assert!(first.copy.contains("0:0x1200@1") && !first.stack.frames.is_empty());
    assert!(find(&mut session, "0:0x1200@2").is_none());
    assert!(find(&mut session, "1:0x1200@1").is_none());
    assert!(find(&mut session, "nonsense").is_none());
}

#[test]
fn block_details_mark_blocks_from_before_the_window() {
    // A 1400 200; F 1000 (700); F 1400. The block at 1000 was allocated before the window, and its
    // stack is that of its free.
    let (mut session, loaded) = open_session("scenarios/f04.pickle");
    assert_eq!(loaded.parts[0].devices[0].start.value, 700);
    let block = find(&mut session, "0:0x1000@pre").expect("a block freed in the window");
    assert_eq!(row(&block, "alloc_event"), "before the window");
    assert!(
        block.stack.note.as_deref().is_some_and(|n| n.contains("call stack of the free")),
        "{:?}",
        block.stack.note
    );
    assert_eq!(block.spans[0].x0, 0.0);
}

#[test]
fn pick_finds_a_block_or_a_merged_strip() {
    let (mut session, loaded) = open_session(GPT);
    let axis = loaded.parts[0].devices[0].axes[0];
    let pick = |session: &mut FileSession, kx, ky, slot, bytes| -> Option<Hit> {
        let (axis, layer) = (AxisKind::Event, layer(GroupBy::Block));
        let request =
            Request::Pick { id: 1, target: TARGET, axis, layer, kx, ky, slot, bytes, hover: false };
        match only(session, request) {
            Response::Picked { hit, .. } => hit,
            other => panic!("{other:?}"),
        }
    };
    let fine = pick(&mut session, 0, 0, axis.peak, 1.0).expect("the bottom of the stack");
    assert_eq!(fine.count, 1);
    assert!(fine.lines[0].contains("lifetime "), "{:?}", fine.lines);
    // Rows of 256 MiB merge all small blocks.
    let coarse = pick(&mut session, 6, 28, axis.peak, 1.0).expect("the bottom of the stack");
    assert!(coarse.count > 1 && coarse.title.contains("blocks, "), "{}", coarse.title);
    assert_eq!(coarse.lines.len(), 3, "the largest blocks");
    assert!(pick(&mut session, 0, 0, axis.peak, 1e18).is_none());
    assert!(pick(&mut session, 0, 0, -5.0, 1.0).is_none());
}

#[test]
fn the_outline_covers_the_columns_of_the_stack_before_any_category_is_known() {
    let (mut session, loaded) = open_session(GPT);
    let device = &loaded.parts[0].devices[0];
    let (axis, extent) = (AxisKind::Event, device.axes[0].extent);
    let tile = TileKey { kx: extent.log2().ceil() as u8 - 9, ky: 24, ix: 0, iy: 0 };
    let mut strips = |layer: Layer| -> Vec<[f32; 4]> {
        let tiles = vec![tile];
        session.post(Request::Tiles { id: 1, target: TARGET, axis, layer, tiles });
        let reply = session.step().expect("a tile");
        let positions = reply.columns.iter().find(|(name, _)| *name == "positions");
        let Some((_, Column::F32(positions))) = positions else { panic!("{reply:?}") };
        positions.as_chunks().0.to_vec()
    };
    let tops = |strips: &[[f32; 4]]| -> Vec<f32> {
        let top = |column: f32| {
            let over = strips.iter().filter(|[x0, _, x1, _]| *x0 <= column && column < *x1);
            over.map(|[.., y1]| *y1).fold(0.0, f32::max)
        };
        (0..512).map(|column| top(column as f32)).collect()
    };
    let outline = strips(Layer::Outline {});
    assert!(outline.iter().all(|[_, y0, ..]| *y0 == 0.0), "{outline:?}");
    let (outline, stack) = (tops(&outline), tops(&strips(layer(GroupBy::Category))));
    assert!(outline.iter().any(|&top| top > 0.0));
    for (column, (a, b)) in outline.iter().zip(&stack).enumerate() {
        assert!((a - b).abs() < 0.5, "column {column}: {a} and {b}");
    }
}

#[test]
fn newer_requests_cancel_older_ones_and_picks_come_first() {
    let (mut session, _) = open_session("scenarios/f01.pickle");
    let tile = |ix| TileKey { kx: 0, ky: 4, ix, iy: 0 };
    let layer = layer(GroupBy::Block);
    let tiles = |id, tiles| Request::Tiles {
        id,
        target: TARGET,
        axis: AxisKind::Event,
        layer: layer.clone(),
        tiles,
    };
    let pick = |id, hover| Request::Pick {
        id,
        target: TARGET,
        axis: AxisKind::Event,
        layer: layer.clone(),
        kx: 0,
        ky: 0,
        slot: 2.0,
        bytes: 1.0,
        hover,
    };
    session.post(tiles(1, vec![tile(0), tile(1)]));
    session.post(pick(2, true));
    session.post(tiles(3, vec![tile(0)]));
    session.post(pick(4, true));
    session.post(pick(5, false));
    session.post(pick(6, false));
    for answered in [4, 5, 6] {
        let reply = session.step().expect("an answer").response;
        assert!(matches!(reply, Response::Picked { id, .. } if id == answered), "{answered}");
    }
    let reply = session.step().expect("the newer tiles");
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
    assert!(session.step().is_none());
}

#[test]
fn map_range_keeps_the_states() {
    let (mut session, loaded) = open_session(GPT);
    let axes = &loaded.parts[0].devices[0].axes;
    assert_eq!(axes.len(), 2);
    let map = |session: &mut FileSession, from, x0, x1| match only(
        session,
        Request::MapRange { id: 1, target: TARGET, from, x0, x1 },
    ) {
        Response::Range { x0, x1, .. } => (x0, x1),
        other => panic!("{other:?}"),
    };
    let (t0, t1) = map(&mut session, AxisKind::Event, 1000.0, 2000.0);
    assert!(0.0 < t0 && t0 < t1 && t1 < axes[1].extent, "{t0} {t1}");
    let (x0, x1) = map(&mut session, AxisKind::Time, t0, t1);
    // Events of the same microsecond share a slot of the time axis.
    assert!((x0 - 1000.0).abs() < 20.0 && (x1 - 2000.0).abs() < 20.0, "{x0} {x1}");
    let all = map(&mut session, AxisKind::Event, 0.0, axes[0].extent);
    assert_eq!(all, (0.0, axes[1].extent));
}

#[test]
fn files_without_history_have_a_note() {
    let (_, loaded) = open_session("recorded/misc/norecord.pickle");
    let device = &loaded.parts[0].devices[0];
    assert!(device.note.as_deref().is_some_and(|n| n.contains("_record_memory_history")));
    assert_eq!(device.peak.value, 50_852_000);
    assert_eq!(device.axes.len(), 1, "no clock, no time axis");
    let (_, loaded) = open_session("recorded/misc/nothing.pickle");
    assert!(loaded.parts[0].devices.is_empty() && loaded.parts[0].peak.is_none());
}

#[test]
fn html_with_two_snapshots_has_two_parts() {
    let (mut session, loaded) = open_session("containers/trace_plot.html");
    assert_eq!(loaded.parts.len(), 2);
    assert!(!loaded.parts[1].name.is_empty());
    let target = DeviceRef { part: 1, device: 0 };
    let request = Request::Block { id: 9, target, block: 0 };
    assert!(matches!(only(&mut session, request), Response::Block { id: 9, detail: Some(_) }));
}

#[test]
fn requests_before_the_load_fail() {
    let mut session = FileSession::new("x", 0);
    let answer = only(&mut session, Request::Block { id: 3, target: TARGET, block: 0 });
    assert!(matches!(answer, Response::Failed(f) if f.id == Some(3)));
    let Response::Failed(failure) = session.finish() else { panic!("an empty file") };
    assert_eq!((failure.id, failure.message.as_str()), (None, "the file is empty"));
}

#[test]
fn the_card_of_a_rank_is_small() {
    let file = load_file_as("rank7.pickle", "recorded/t26/oom_observer.pickle.gz");
    let card = now(async |budget| Card::new(report_target(&file), budget).await);
    assert_eq!((card.rank, card.ooms.len()), (Some(7), 1));
    let whole: u64 = card.categories.iter().map(|c| c.bytes.0).sum();
    assert_eq!(whole as i64, card.bands[0].peak.0, "categories add up to the peak");
    // The file has C++ stacks of 50 frames. Ten thousand such ranks take at most 160 MiB.
    let json = card.short().to_json();
    assert!(json.len() < 16 << 10, "{} bytes", json.len());
}
