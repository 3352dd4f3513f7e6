//! Measures the queries of the views, one after the other: number of slices, longest slice and
//! total time.
//!
//! Block sizes, categories and pools are computed before, with tiles; the table of `queries` has
//! their time. Data that the first query of a kind computes and caches counts for that query. A
//! query that finds the cache has a row of its own.
//!
//! Other programs use the processors, too. A slice takes at most its wall time, and at most its
//! processor time plus 4 ms, the interval at which Linux counts. The smaller limit is reported, of
//! the best of several runs.

use crate::CHUNK;
use crate::queries::processor_time;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::{Duration, Instant};
use vramscope_report::peak::BandKind;
use vramscope_session::messages::views::{
    Bands, BlockSort, BlockTable, ColorBy, EventFilter, FlameSpec, FlameWeight, GroupBy, Layer,
    Looked, MarkedRange, Query, SegmentSort, SegmentSpec, Table, TextForm,
};
use vramscope_session::messages::{AxisKind, DeviceRef, Request, Response, TileKey};
use vramscope_session::{FileSession, Slice};
use vramscope_trace::parallel;

/// Interval at which Linux counts processor time.
const TICK: Duration = Duration::from_millis(4);

/// Slices and times of an answer.
#[derive(Clone, Copy)]
struct Row {
    slices: u32,
    longest: Duration,
    all: Duration,
}

pub(crate) fn run(path: &Path, runs: u32, only: Option<&str>) -> Result<()> {
    // On a thread of the pool: when it is the only one, its processor time covers all work.
    parallel::join(|| measure(path, runs, only), || ()).0
}

fn measure(path: &Path, runs: u32, only: Option<&str>) -> Result<()> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut names: Vec<String> = Vec::new();
    let mut best: Vec<Row> = Vec::new();
    for _ in 0..runs {
        let (mut session, target, events) = open(&bytes)?;
        let asked = queries(events)
            .into_iter()
            .filter(|(name, _)| only.is_none_or(|only| name.contains(only)));
        for (i, (name, query)) in asked.enumerate() {
            let row = ask(&mut session, Request::View { id: 0, target, query });
            match best.get_mut(i) {
                Some(best) => {
                    best.longest = best.longest.min(row.longest);
                    best.all = best.all.min(row.all);
                }
                None => {
                    names.push(name.to_owned());
                    best.push(row);
                }
            }
        }
    }
    println!("{}, best of {runs}\n", path.display());
    println!("{:<44} {:>8} {:>10} {:>10}", "", "slices", "longest ms", "all, ms");
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    for (name, row) in names.iter().zip(&best) {
        println!("{name:<44} {:>8} {:>10.1} {:>10.1}", row.slices, ms(row.longest), ms(row.all));
    }
    Ok(())
}

/// Opens the file and computes the data of tiles. Returns the session, the default device and its
/// number of events.
fn open(bytes: &[u8]) -> Result<(FileSession, DeviceRef, u32)> {
    let mut session = FileSession::new("bench", bytes.len() as u64);
    for chunk in bytes.chunks(CHUNK) {
        if let Err(failure) = session.feed(chunk) {
            bail!("{}", failure.message);
        }
    }
    let Response::Loaded(loaded) = session.finish() else { bail!("not loaded") };
    let part = loaded.parts.first().context("a snapshot")?;
    let target = DeviceRef { part: 0, device: part.default_device };
    let device = part.devices.iter().find(|d| d.device == target.device).context("a device")?;
    let events = device.events.value.try_into()?;
    let layer = Layer::Timeline {
        group: GroupBy::Block,
        color: ColorBy::Category,
        bands: Bands::ALL,
        search: String::new(),
    };
    let tiles = vec![TileKey { kx: 20, ky: 30, ix: 0, iy: 0 }];
    ask(&mut session, Request::Tiles { id: 0, target, axis: AxisKind::Event, layer, tiles });
    Ok((session, target, events))
}

fn ask(session: &mut FileSession, request: Request) -> Row {
    session.post(request);
    let mut row = Row { slices: 0, longest: Duration::ZERO, all: Duration::ZERO };
    loop {
        let (start, before) = (Instant::now(), processor_time());
        let slice = session.slice();
        let (time, spent) = (start.elapsed(), processor_time().saturating_sub(before));
        if matches!(slice, Slice::Idle) {
            return row;
        }
        // The processor time of this thread excludes that of others.
        let alone = parallel::threads() == 1;
        row.slices += 1;
        row.longest = row.longest.max(if alone { time.min(spent + TICK) } else { time });
        row.all += if alone { spent } else { time };
    }
}

/// All queries of the protocol. Those whose results others reuse come first.
fn queries(events: u32) -> Vec<(&'static str, Query)> {
    let (axis, end) = (AxisKind::Event, f64::from(events));
    let middle = i64::from(events / 2);
    let table = |text: &str, sort| BlockTable {
        text: text.to_owned(),
        category: String::new(),
        live_at: None,
        sort,
        descending: true,
    };
    let page = |table| Query::Blocks { table, from: 0, count: 100, near: None };
    let flame = |weight| FlameSpec { weight, event: middle, ..FlameSpec::default() };
    let of_stacks = flame(FlameWeight::ByteSeconds);
    let rows = |sort| SegmentSpec { sort, event: middle, grown: None };
    let events_page = |text: &str| Query::Events {
        filter: EventFilter { actions: Vec::new(), text: text.to_owned() },
        from: 0,
        count: 100,
        near: None,
    };
    let next = |of| Query::Next { of, event: middle, block: None, backwards: false };
    let nowhere = || Looked::Search { text: "no such frame".to_owned() };
    let export = |what, form| Query::Export { what, form };
    let all_blocks = || Table::Blocks { table: table("", BlockSort::Allocated) };
    let all_events = || Table::Events { filter: EventFilter::default() };
    let picture = |layer, extent: f64, height: f64| Query::Picture {
        layer,
        axis,
        x0: 0.0,
        x1: extent,
        y0: 0.0,
        y1: height,
        width: 1600,
        height: 800,
        dark: false,
        simulated: None,
    };
    let timeline = Layer::Timeline {
        group: GroupBy::Block,
        color: ColorBy::Category,
        bands: Bands::ALL,
        search: String::new(),
    };
    let segments = Layer::Segments {
        color: ColorBy::Stack,
        rows: rows(SegmentSort::Size),
        search: String::new(),
    };
    // A frame of the files that `cargo xtask gen` writes. In other files the answer is empty.
    let frame = Query::Frame {
        name: "loss_backward".to_owned(),
        file: "/train/train.py".to_owned(),
        line: 141,
    };
    vec![
        ("card", Query::Card {}),
        ("summary, after the card", Query::Summary {}),
        ("minimap, after the card", Query::Minimap { axis }),
        ("settings", Query::Settings {}),
        ("tracks", Query::Tracks { axis, x0: 0.0, x1: end, columns: 1000 }),
        ("state, in the middle", Query::StateAt { event: middle }),
        ("state, at the end", Query::StateAt { event: i64::from(events) }),
        ("range, the whole", Query::Range(MarkedRange { axis, x0: 0.0, x1: end })),
        ("events, all", events_page("")),
        ("events, by a word", events_page("forward")),
        ("events, by a word, again", events_page("forward")),
        ("blocks, by size", page(table("", BlockSort::Size))),
        ("blocks, by size, again", page(table("", BlockSort::Size))),
        ("blocks, by allocation", page(table("", BlockSort::Allocated))),
        ("blocks, by byte-seconds", page(table("", BlockSort::ByteSeconds))),
        ("blocks, by site", page(table("", BlockSort::Site))),
        ("blocks, by a word", page(table("forward", BlockSort::Size))),
        ("hit", Query::Hit { block: events / 4 }),
        ("names", Query::Names { blocks: (0..100.min(events / 4)).collect() }),
        ("search, a word", Query::Search { text: "forward".to_owned() }),
        ("search, an address", Query::Search { text: "0x7".to_owned() }),
        ("next of a search that finds nothing", next(nowhere())),
        ("next of a stack", next(Looked::Stack { block: events / 4 })),
        ("segments, by size", Query::Segments { rows: rows(SegmentSort::Size) }),
        ("segments, by occupancy", Query::Segments { rows: rows(SegmentSort::Occupancy) }),
        (
            "segments, rows in view",
            Query::SegmentRows { rows: rows(SegmentSort::Size), y0: 0.0, y1: 4096.0 * 60.0 },
        ),
        ("segment", Query::Segment { segment: 0, event: middle }),
        ("segment of a block", Query::SegmentOf { block: events / 4 }),
        ("flame graph, peak", Query::Flame { flame: FlameSpec::default() }),
        ("flame graph, cursor", Query::Flame { flame: flame(FlameWeight::Cursor) }),
        ("flame graph, byte-seconds", Query::Flame { flame: of_stacks.clone() }),
        (
            "flame graph's boxes",
            Query::FlameBoxes { flame: of_stacks.clone(), x0: 0.0, x1: 1e18, least: 0.0 },
        ),
        ("flame graph's node", Query::FlameNode { flame: of_stacks.clone(), node: 1 }),
        (
            "flame graph, a search",
            Query::Flame { flame: FlameSpec { search: "forward".to_owned(), ..of_stacks.clone() } },
        ),
        ("frame", frame),
        ("side, requested", Query::Side { band: BandKind::Requested }),
        ("side, reserved", Query::Side { band: BandKind::Reserved }),
        ("export, findings", export(Table::Findings {}, TextForm::Csv)),
        ("export, segments", export(Table::Segments { event: middle }, TextForm::Csv)),
        ("export, events", export(all_events(), TextForm::Csv)),
        ("export, blocks", export(all_blocks(), TextForm::Csv)),
        ("picture, timeline", picture(timeline, end, 8e10)),
        ("picture, segments", picture(segments, end, 4096.0 * 500.0)),
        ("picture, flame graph", picture(Layer::Flame { flame: of_stacks }, 1e12, 4096.0 * 40.0)),
    ]
}
