//! Answers do not depend on the size of slices.

use super::blocks::FilteredBlocks;
use super::events::FilteredEvents;
use super::what_if::AnsweredScenario;
use super::{Answering, Queries, Step, flame, segments, target};
use crate::loader::Loader;
use crate::messages::views::{
    Answer, Bands, BlockSort, BlockTable, ColorBy, EventFilter, ExportFormat, FlameSpec,
    FlameWeight, GroupBy, Layer, Looked, MarkedRange, Moments, Query, SegmentSort, SegmentSpec,
    Table, TextForm,
};
use crate::messages::{AxisKind, DeviceRef};
use std::path::Path;
use std::sync::Arc;
use vramscope_layout::LargestSites;
use vramscope_report::peak::BandKind;
use vramscope_report::{Derived, LoadedFile};
use vramscope_trace::slicing::{Budget, run_to_completion};

const FILES: [&str; 6] = [
    "recorded/t26/linear_seed_all.pickle",
    "recorded/t26/pools.pickle",
    "recorded/t26/oom_observer.pickle.gz",
    "scenarios/f04.pickle",
    "edge/segments_only.pickle",
    "edge/no_time.pickle",
];

pub(super) fn load(name: &str) -> Arc<LoadedFile> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let mut loader = Loader::new(name, 0);
    loader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
    Arc::new(loader.finish().expect("a snapshot"))
}

/// A table of blocks.
fn table(text: &str, sort: BlockSort) -> BlockTable {
    let text = text.to_owned();
    BlockTable { text, category: String::new(), live_at: None, sort, descending: true }
}

fn flame(weight: FlameWeight) -> FlameSpec {
    FlameSpec { weight, event: 5, ..FlameSpec::default() }
}

/// One query of every kind without a cache, for a trace of this many slots.
fn uncached_queries(slots: f64) -> Vec<Query> {
    let (axis, event) = (AxisKind::Event, (slots / 2.0) as i64);
    let rows = |sort| SegmentSpec { sort, event, grown: None };
    let next = |of, backwards| Query::Next { of, event, block: None, backwards };
    let search = |text: &str| Looked::Search { text: text.into() };
    let segments = Layer::Segments {
        color: ColorBy::default(),
        rows: rows(SegmentSort::Size),
        search: String::new(),
    };
    let question = "expandable_segments:True,device_memory:H100".to_owned();
    let picture = Query::Picture {
        layer: segments,
        axis,
        x0: 0.0,
        x1: slots,
        y0: 0.0,
        y1: 40_000.0,
        width: 200,
        height: 100,
        dark: true,
        simulated: None,
    };
    let mut all = vec![
        Query::Card {},
        Query::Summary {},
        Query::SimulatedSummary {},
        Query::Minimap { axis },
        Query::Minimap { axis: AxisKind::Time },
        Query::Phases { axis, x0: 0.0, x1: slots, columns: 100 },
        Query::StateAt { event },
        Query::StateAt { event: -1 },
        Query::EventAt { axis, slot: 1.5 },
        Query::Record { id: "no finding".into() },
        Query::Peak {},
        Query::Markers { events: vec![0, -1, event] },
        Query::Range(MarkedRange { axis, x0: 1.0, x1: slots - 2.0 }),
        Query::Range(MarkedRange { axis, x0: 0.0, x1: slots }),
        next(search("py"), false),
        next(search("no such frame"), true),
        next(Looked::Stack { block: 1 }, true),
        next(Looked::Stack { block: 1 }, false),
        Query::Search { text: "py".into() },
        Query::Search { text: "0x7".into() },
        Query::Segment { segment: 0, event },
        Query::Frame { name: "forward".into(), file: "/train/model.py".into(), line: 1 },
        Query::Settings {},
        picture,
        Query::Picture {
            layer: Layer::Timeline {
                group: GroupBy::Category,
                color: ColorBy::default(),
                bands: Bands::ALL,
                search: String::new(),
            },
            axis,
            x0: 0.0,
            x1: slots,
            y0: 0.0,
            y1: 4e8,
            width: 200,
            height: 100,
            dark: false,
            simulated: Some(question),
        },
        Query::SummaryPlot {},
        Query::Levers { bytes: None, all: false },
        Query::Levers { bytes: Some(1e9), all: true },
        Query::LeverSettings {},
        Query::Reserved {},
    ];
    let colors =
        [ColorBy::Category, ColorBy::Size, ColorBy::Age, ColorBy::Stream, ColorBy::Segment];
    all.extend(colors.map(|color| Query::Legend {
        color,
        event: Some(event),
        axis,
        x0: 1.0,
        x1: slots,
    }));
    all.push(Query::FreeLines { axis, x0: 0.0, x1: slots, columns: 40, event: 1 });
    all.push(Query::ReservedLine { axis, x0: 0.0, x1: slots, columns: 40 });
    all.push(Query::DeadLine { axis, x0: 0.0, x1: slots, columns: 40 });
    all.push(Query::Limit { axis });
    all.push(Query::Moments { axis, x0: 0.0, x1: slots, columns: 40, event: Some(event) });
    let states = vec![0.0, 2.0, slots];
    let moments = Moments { x1: slots, columns: 2, states, ..Moments::default() };
    all.push(Query::PinnedLine { moments: Box::new(moments), top: 1e9 });
    all.extend(BandKind::ALL.map(|band| Query::Side { band }));
    let exported = [
        Table::Blocks { table: table("", BlockSort::Site) },
        Table::Events { filter: EventFilter::default() },
        Table::Findings {},
        Table::Segments { event },
    ];
    let (weight, event) = (FlameWeight::Cursor, 5);
    let formats = [
        ExportFormat::Folded { weight, event },
        ExportFormat::Speedscope { weight, event },
        ExportFormat::Perfetto {},
    ];
    all.extend(formats.map(|format| Query::Convert { format }));
    all.push(Query::Markdown {});
    all.push(Query::Report { name: "rank 0".to_owned() });
    for what in exported {
        let both = [TextForm::Csv, TextForm::Json];
        all.extend(both.map(|form| Query::Export { what: what.clone(), form }));
    }
    all
}

/// The answer in slices of `slice` work units, and the number of slices.
fn answer_in_slices(
    file: &Arc<LoadedFile>,
    device: DeviceRef,
    query: &Query,
    slice: u64,
) -> (Option<Answer>, u32) {
    let (mut queries, mut answering) =
        (Queries { slice, ..Queries::default() }, Answering::default());
    for slices in 1.. {
        match queries.answer(file, device, query, &mut answering) {
            Step::Working => {}
            Step::Done(answer) => return (Some(answer), slices),
            Step::NoSuchDevice => return (None, slices),
        }
    }
    unreachable!("an answer ends")
}

#[test]
fn answers_in_the_smallest_slices_equal_those_in_one_slice() {
    for name in FILES {
        // Two copies, so that they share no derived data.
        let (whole, file) = (load(name), load(name));
        let trace = &file.entries[0].traces[0];
        let (device, slots) = (trace.device.device, trace.slots());
        let device = DeviceRef { part: 0, device };
        let mut in_several_slices = 0;
        for query in uncached_queries(slots.into()) {
            let (expected, slices_of_whole) = answer_in_slices(&whole, device, &query, u64::MAX);
            let (answer, slices) = answer_in_slices(&file, device, &query, 1);
            assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "{name}: {query:?}");
            assert!(answer.is_some() && slices_of_whole == 1, "{name}: {query:?}");
            in_several_slices += usize::from(slices > 1);
        }
        assert!(in_several_slices > 12 || slots < 2, "{name}: {in_several_slices}");
        let unknown = DeviceRef { part: 7, device: 0 };
        assert!(answer_in_slices(&file, unknown, &Query::Card {}, 1).0.is_none());
    }
}

#[test]
fn cached_values_in_the_smallest_slices_equal_those_in_one_slice() {
    for name in FILES {
        let file = load(name);
        let device = file.entries[0].traces[0].device.device;
        let at = target(&file, DeviceRef { part: 0, device }).expect("a device");
        let sorts = [
            BlockSort::Size,
            BlockSort::Freed,
            BlockSort::ByteSeconds,
            BlockSort::Site,
            BlockSort::Stream,
        ];
        for (text, sort) in ["", "py"].iter().flat_map(|text| sorts.map(|sort| (text, sort))) {
            let order = |mut budget: Budget| {
                let table = table(text, sort);
                run_to_completion(FilteredBlocks::new(at, &table, &mut budget)).order
            };
            assert_eq!(
                order(Budget::of(1)),
                order(Budget::unlimited()),
                "{name}: {text:?} {sort:?}"
            );
        }
        for text in ["", "py", "(("] {
            let filter = EventFilter { actions: vec!["alloc".into()], text: text.into() };
            let rows = |mut budget: Budget| {
                let filtered = run_to_completion(FilteredEvents::new(at, &filter, &mut budget));
                filtered.rows(0..filtered.total()).collect::<Vec<u32>>()
            };
            assert_eq!(rows(Budget::of(1)), rows(Budget::unlimited()), "{name}: {text:?}");
        }
        for sort in
            [SegmentSort::Size, SegmentSort::Address, SegmentSort::Pool, SegmentSort::Occupancy]
        {
            let spec = SegmentSpec { sort, event: 2, grown: None };
            let rows = |mut budget: Budget| {
                let order = run_to_completion(segments::Order::new(at, &spec, &mut budget));
                format!(
                    "{:?} {:?}",
                    order.info(at, &spec),
                    order.rows(at, &spec, 0.0, f64::INFINITY)
                )
            };
            assert_eq!(rows(Budget::of(1)), rows(Budget::unlimited()), "{name}: {sort:?}");
        }
        run_to_completion(at.entry.derive(Derived::WhatIf, at.index, &mut Budget::unlimited()));
        for text in ["", "batch:0.5", "expandable_segments:True,device_memory:H100"] {
            let card = |mut budget: Budget| {
                run_to_completion(AnsweredScenario::new(at, text, &mut budget)).card
            };
            assert_eq!(card(Budget::of(1)), card(Budget::unlimited()), "{name}: {text}");
        }
        let sites = |mut budget: Budget| {
            let sites = &at.entry.sites;
            run_to_completion(LargestSites::new(at.trace(), sites, &mut budget)).sites
        };
        assert_eq!(sites(Budget::of(1)), sites(Budget::unlimited()), "{name}");
        for weight in
            [FlameWeight::Peak, FlameWeight::Cursor, FlameWeight::ByteSeconds, FlameWeight::Count]
        {
            let nodes = |mut budget: Budget| {
                let graph = run_to_completion(flame::Graph::new(at, &flame(weight), &mut budget));
                let nodes: Vec<_> = (0..).map_while(|node| graph.node(at, node)).collect();
                format!("{:?} {nodes:?}", graph.info(at))
            };
            assert_eq!(nodes(Budget::of(1)), nodes(Budget::unlimited()), "{name}: {weight:?}");
        }
    }
}
