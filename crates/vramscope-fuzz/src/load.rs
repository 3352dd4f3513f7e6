//! Runs a file from its bytes to every report, tile and answer.

use crate::pieces;
use serde::de::IgnoredAny;
use vramscope_report::LoadedFile;
use vramscope_report::card::Card;
use vramscope_report::now;
use vramscope_report::peak::BandKind;
use vramscope_report::summary::{ErrorKind, ErrorSummary};
use vramscope_report::{
    Target, blocks, changes, events, export, findings, flame, info, peak, segments, state, summary,
    uses,
};
use vramscope_session::messages::views::{
    Bands, BlockSort, BlockTable, ColorBy, EventFilter, FlameSpec, FlameWeight, GroupBy, Layer,
    Looked, MapSpec, MarkedRange, Query, SegmentSort, SegmentSpec, Table, TextForm,
};
use vramscope_session::messages::{
    AxisKind, DeviceRef, Failure, Loaded, Request, Response, TileKey,
};
use vramscope_session::{FileSession, Loader};

/// Devices of a file that are queried. A file can claim any number of devices.
const DEVICES: usize = 3;

/// Loads the bytes as a file and runs every report and query. A file that cannot be read gives a
/// message; one that can be read gives totals that agree.
///
/// # Panics
/// When an invariant is broken.
pub fn load(data: &[u8]) {
    let Some((size, bytes)) = pieces(data) else { return };
    let whole = read(bytes, bytes.len().max(1));
    let in_pieces = read(bytes, size);
    match (&whole, &in_pieces) {
        (Ok(a), Ok(b)) => assert_eq!(totals(a), totals(b), "in pieces of {size} bytes"),
        (Err(a), Err(b)) => {
            // Damaged gzip data gives nonsense before its damage is detected. The size of the
            // pieces decides which of the two is reported.
            if !bytes.starts_with(&[0x1f, 0x8b]) {
                assert_eq!(a.message, b.message, "in pieces of {size} bytes");
            }
            assert!(!a.message.is_empty() && !b.message.is_empty(), "a failure has a message");
        }
        _ => panic!("the result differs in pieces of {size} bytes"),
    }
    drop(in_pieces);
    let whole = whole.map_err(|Failure { message, hint, file, .. }| ErrorSummary {
        message,
        hint,
        kind: file.unwrap_or(ErrorKind::Unreadable),
        byte_offset: None,
    });
    let json = serde_json::to_string(&summary::summarize("fuzz", bytes.len() as u64, &whole))
        .expect("a summary");
    assert!(!json.is_empty());
    let Ok(file) = whole else { return };
    for entry in &file.entries {
        for index in 0..entry.traces.len().min(DEVICES) {
            report(Target { path: "fuzz", entry, index });
        }
    }
    ask(bytes);
}

fn read(bytes: &[u8], size: usize) -> Result<LoadedFile, Failure> {
    let mut loader = Loader::new("fuzz", bytes.len() as u64);
    for piece in bytes.chunks(size) {
        loader.feed(piece)?;
    }
    loader.finish()
}

/// Totals by which two readings of a file are compared.
fn totals(file: &LoadedFile) -> Vec<(u32, usize, usize, Vec<u64>)> {
    let traces = file.entries.iter().flat_map(|part| &part.traces);
    traces
        .map(|t| (t.device.device, t.device.events.len(), t.blocks.len(), t.requested.to_vec()))
        .collect()
}

/// Runs every report of a device.
pub(crate) fn report(target: Target<'_>) {
    let trace = target.trace();
    let end = trace.requested.len() as u32 - 1;
    for slot in [0, end / 2, end] {
        // The live blocks add up to the curve.
        let live = trace.blocks.iter().filter(|b| b.is_live_at(slot));
        let sum: u128 = live.map(|b| u128::from(b.bytes.0)).sum();
        assert_eq!(sum, u128::from(trace.requested.at(slot)), "requested bytes in slot {slot}");
        let state = serde_json::to_value(state::state(target, slot, None)).expect("a state");
        assert_eq!(state["requested_bytes"], trace.requested.at(slot));
        let uses = uses::uses_at(target, Some(slot), None);
        if uses.refused.is_none() {
            assert_eq!(uses.bytes, trace.requested.at(slot), "uses in slot {slot}");
            assert!(uses.floor <= uses.step_peak, "the floor is at most the peak");
        }
        print(&uses);
        print(&now(async |budget| segments::segments(target, slot, None, budget).await));
    }
    print(&changes::state_changes(target, 0, end, None));
    print(&events::events(target, &events::EventFilter::default(), Some(50)));
    for band in [BandKind::Requested, BandKind::Active, BandKind::Allocated, BandKind::Reserved] {
        print(&peak::peak(target, band, Some(10)));
    }
    for weight in [
        flame::Weight::Bytes(end),
        flame::Weight::ByteSeconds,
        flame::Weight::Count,
        flame::Weight::Churn,
    ] {
        print(&flame::flame(target, weight));
    }
    for sort in
        [blocks::BlockSort::Size, blocks::BlockSort::Lifetime, blocks::BlockSort::ByteSeconds]
    {
        print(&blocks::blocks(target, sort, Some(50)));
    }
    exports(target);
    print(&now(async |budget| {
        let mut info = info::info("fuzz", target.entry, budget).await;
        info::add_optimizations(&mut info, target.entry, budget).await;
        info
    }));
    let card = || now(async |budget| Card::new(target, budget).await);
    print(&findings::across(vec![card(), card()]));
}

/// Writes every format of other tools, and reads those of JSON.
fn exports(target: Target<'_>) {
    let weight = flame::Weight::ByteSeconds;
    for form in [
        export::ExportFormat::Csv,
        export::ExportFormat::Perfetto,
        export::ExportFormat::Speedscope(weight),
        export::ExportFormat::Folded(weight),
    ] {
        let mut text = Vec::new();
        now(async |budget| export::export(target, form, &mut text, budget).await)
            .expect("memory takes all bytes");
        let text = String::from_utf8(text).expect("UTF-8");
        match form {
            export::ExportFormat::Perfetto | export::ExportFormat::Speedscope(_) => {
                serde_json::from_str::<IgnoredAny>(&text).expect("JSON");
            }
            export::ExportFormat::Csv => {
                assert!(text.lines().count() > target.trace().blocks.len(), "a line per block");
            }
            export::ExportFormat::Folded(_) => {
                let count =
                    |line: &str| line.rsplit_once(' ').map(|(_, count)| count.parse::<u128>());
                assert!(text.lines().all(|line| count(line).is_some_and(|count| count.is_ok())));
            }
        }
    }
}

fn print(report: &impl serde::Serialize) {
    drop(serde_json::to_string(report).expect("a report serializes"));
}

/// Sends every kind of request that the page sends.
fn ask(bytes: &[u8]) {
    let mut session = FileSession::new("fuzz", bytes.len() as u64);
    session.feed(bytes).expect("the same bytes were read before");
    let Response::Loaded(Loaded { parts, .. }) = session.finish() else {
        panic!("the same bytes were loaded before")
    };
    for (part, loaded) in (0..).zip(&parts) {
        for device in loaded.devices.iter().take(DEVICES) {
            let target = DeviceRef { part, device: device.device };
            for axis in [AxisKind::Event, AxisKind::Time] {
                for request in pictures(target, axis) {
                    answer(&mut session, request);
                }
            }
            for query in queries() {
                answer(&mut session, Request::View { id: 9, target, query });
            }
        }
    }
}

fn answer(session: &mut FileSession, request: Request) {
    session.post(request);
    while let Some(reply) = session.step() {
        drop(serde_json::to_string(&reply.response).expect("an answer serializes"));
    }
}

fn pictures(target: DeviceRef, axis: AxisKind) -> Vec<Request> {
    let rows = SegmentSpec::default();
    let bands = Layer::Timeline {
        group: GroupBy::Module,
        color: ColorBy::Category,
        bands: Bands::NONE,
        search: String::new(),
    };
    let layers = [
        Layer::Timeline {
            group: GroupBy::Block,
            color: ColorBy::Stack,
            bands: Bands::NONE,
            search: String::new(),
        },
        Layer::Timeline {
            group: GroupBy::Line,
            color: ColorBy::Category,
            bands: Bands::ALL,
            search: ">1KiB".to_owned(),
        },
        bands.clone(),
        Layer::Segments { color: ColorBy::Age, rows, search: "py".to_owned() },
        Layer::Flame { flame: FlameSpec::default() },
        Layer::Map {
            color: ColorBy::Size,
            map: MapSpec { event: 3, from: Some(1), lines: 30 },
            search: String::new(),
        },
    ];
    // Tiles of a whole small trace, a whole large one, one event and one byte, and far outside.
    let keys = [[4, 20, 0], [30, 50, 0], [0, 0, 0], [0, 0, u32::MAX], [63, 63, 1]];
    let tiles = keys.map(|[k, ky, i]| TileKey { kx: k as u8, ky: ky as u8, ix: i, iy: i }).to_vec();
    let mut all: Vec<Request> = layers
        .into_iter()
        .map(|layer| Request::Tiles { id: 1, target, axis, layer, tiles: tiles.clone() })
        .collect();
    let (layer, slot, bytes) = (bands, 5.0, 100.0);
    all.push(Request::Pick {
        id: 2,
        target,
        axis,
        layer,
        kx: 3,
        ky: 10,
        slot,
        bytes,
        hover: false,
    });
    all.push(Request::MapRange { id: 3, target, from: axis, x0: -1.0, x1: 1e30 });
    all.push(Request::Block { id: 4, target, block: 0 });
    all.push(Request::Find { id: 5, part: target.part, reference: "0:0x0@pre".to_owned() });
    all
}

fn labels(group: GroupBy, x: [f64; 2], y: [f64; 2]) -> Query {
    let (size, letter) = ([900.0, 400.0], [6.2, 15.0]);
    let search = String::new();
    Query::GroupLabels { group, axis: AxisKind::Event, x, y, size, letter, search }
}

fn queries() -> Vec<Query> {
    let axis = AxisKind::Event;
    let table = |sort| BlockTable {
        text: String::new(),
        category: String::new(),
        live_at: Some(3),
        sort,
        descending: true,
    };
    let flame = FlameSpec {
        weight: FlameWeight::ByteSeconds,
        inverted: true,
        hide_framework: true,
        ..FlameSpec::default()
    };
    let text = "max_split_size_mb:4294967295,roundup_power2_divisions:2147483648,\
                device_memory:1GiB,batch:3,shard:NaN,del:py:0"
        .to_owned();
    vec![
        Query::Card {},
        Query::Map { map: MapSpec { event: i64::MAX, from: None, lines: u32::MAX } },
        Query::Map { map: MapSpec { event: 0, from: Some(i64::MAX), lines: 0 } },
        Query::PeakLens { peak: 0, width: 600.0, height: 400.0 },
        Query::PeakLens { peak: u32::MAX, width: f64::NAN, height: -1.0 },
        Query::Changes { from: i64::MIN, to: 3 },
        Query::Summary {},
        Query::Settings {},
        Query::Minimap { axis },
        Query::FoldedSteps { axis },
        Query::FoldedSteps { axis: AxisKind::Time },
        Query::Minimap { axis: AxisKind::Time },
        Query::Tracks { axis, x0: -5.0, x1: f64::NAN, columns: 100 },
        Query::StateAt { event: i64::MAX },
        Query::EventAt { axis, slot: f64::INFINITY },
        Query::Range(MarkedRange { axis, x0: 10.0, x1: 2.0 }),
        Query::Events { filter: EventFilter::default(), from: 0, count: 40, near: Some(7) },
        Query::Events {
            filter: EventFilter { actions: vec!["alloc".to_owned()], text: ">1".to_owned() },
            from: u32::MAX,
            count: u32::MAX,
            near: None,
        },
        Query::Blocks { table: table(BlockSort::Site), from: 0, count: 40, near: Some(0) },
        Query::Blocks { table: table(BlockSort::Lifetime), from: 1, count: u32::MAX, near: None },
        Query::Export {
            what: Table::Blocks { table: table(BlockSort::Size) },
            form: TextForm::Csv,
        },
        Query::Export { what: Table::Segments { event: 1 }, form: TextForm::Json },
        Query::Next {
            of: Looked::Search { text: "0x".to_owned() },
            event: -1,
            block: None,
            backwards: false,
        },
        Query::Next {
            of: Looked::Stack { block: 0 },
            event: i64::MIN,
            block: Some(1),
            backwards: true,
        },
        Query::Hit { block: u32::MAX },
        Query::Names { blocks: vec![0, 1, u32::MAX] },
        labels(GroupBy::Category, [0.0, 1e30], [0.0, 1e9]),
        labels(GroupBy::Line, [f64::NAN, 50.0], [f64::NAN, f64::INFINITY]),
        labels(GroupBy::Block, [0.0, 9.0], [0.0, 9.0]),
        Query::Search { text: "<2GiB".to_owned() },
        Query::Segments {
            rows: SegmentSpec { sort: SegmentSort::Occupancy, event: 2, grown: Some(0) },
        },
        Query::SegmentRows { rows: SegmentSpec::default(), y0: -1.0, y1: 1e6 },
        Query::Segment { segment: 0, event: 1 },
        Query::SegmentOf { block: 0 },
        Query::Flame { flame: flame.clone() },
        Query::FlameBoxes { flame: flame.clone(), x0: 0.0, x1: 1e9, least: 1.0 },
        Query::FlameNode { flame, node: 1 },
        Query::Frame { name: String::new(), file: String::new(), line: 0 },
        Query::SummaryPlot {},
        Query::Levers { bytes: Some(1e9), all: true },
        Query::LeverSettings {},
        Query::Scenario { text: text.clone() },
        Query::SimulatedCurve { text, axis, x0: -1.0, x1: 1e9, columns: u32::MAX },
    ]
}
