//! Flame graphs, compared with the report of the command line.

use super::*;
use crate::loader::Loader;
use crate::messages::AxisKind;
use crate::messages::views::{FlameBox, FlameNode, MarkedRange};
use std::path::Path;
use std::sync::Arc;
use vramscope_layout::{Axis, Cell, Color, NO_BLOCK};
use vramscope_report::flame::{Flame, Weight, flame};
use vramscope_report::{LoadedFile, Target};
use vramscope_trace::lifetime;
use vramscope_trace::slicing::now;

const DEVICE: DeviceRef = DeviceRef { part: 0, device: 0 };
const FILES: [&str; 5] = [
    "scenarios/f04.pickle",
    "edge/no_time.pickle",
    "edge/segments_only.pickle",
    "recorded/t26/linear_seed_all.pickle",
    "truth/gpt_backward.pickle.gz",
];

fn load(name: &str) -> Arc<LoadedFile> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let mut loader = Loader::new(name, 0);
    loader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
    Arc::new(loader.finish().expect("a snapshot"))
}

fn target(file: &LoadedFile) -> Target<'_> {
    Target { path: &file.path, entry: &file.entries[0], index: 0 }
}

/// The complete graph of a spec.
fn get<'a>(graphs: &'a mut Graphs, file: &Arc<LoadedFile>, spec: &FlameSpec) -> &'a Graph {
    let on = Subject::new(file, DEVICE).expect("a device");
    while graphs.poll(&on, spec).is_none() {}
    graphs.poll(&on, spec).expect("a graph in the cache")
}

fn spec(weight: FlameWeight) -> FlameSpec {
    FlameSpec { weight, ..FlameSpec::default() }
}

/// The range of these events on the event axis, both included. Slot `n + 1` is after event `n`.
fn events(first: u32, last: u32) -> MarkedRange {
    MarkedRange { axis: AxisKind::Event, x0: f64::from(first), x1: f64::from(last) + 2.0 }
}

/// The number of blocks of a node.
fn blocks_below(graph: &Graph, node: u32) -> usize {
    graph.tree.nodes.get(node as usize).map_or(0, |node| node.blocks as usize)
}

/// All nodes of a graph.
fn all_nodes(graph: &Graph, at: Target<'_>) -> Vec<FlameNode> {
    (0..).map_while(|node| graph.node(at, node)).collect()
}

#[test]
fn nodes_equal_the_flame_report() {
    for name in FILES {
        let file = load(name);
        let at = target(&file);
        let trace = at.trace();
        let peak = trace.requested_band.peak_event.map_or(0, |e| e + 1);
        let middle = trace.slots() / 2;
        let cursor = FlameSpec { event: i64::from(middle) - 1, ..spec(FlameWeight::Cursor) };
        let whole =
            FlameSpec { range: Some(events(0, trace.slots())), ..spec(FlameWeight::ByteSeconds) };
        let pairs = [
            (spec(FlameWeight::Peak), Weight::Bytes(peak)),
            (cursor, Weight::Bytes(middle)),
            (spec(FlameWeight::ByteSeconds), Weight::ByteSeconds),
            (whole, Weight::ByteSeconds),
            (spec(FlameWeight::Count), Weight::Count),
            (spec(FlameWeight::Churn), Weight::Churn),
        ];
        let mut graphs = Graphs::default();
        for (spec, weight) in pairs {
            let printed: Flame<'_> = flame(at, weight);
            let graph = get(&mut graphs, &file, &spec);
            let info = graph.info(at);
            assert_eq!(info.total.value, printed.total as i128, "{name} {spec:?}");
            assert_eq!(
                info.rows,
                printed.nodes.iter().map(|n| n.depth).max().unwrap_or(0) + 1,
                "{name} {spec:?}"
            );
            let nodes = all_nodes(graph, at);
            assert_eq!(nodes.len(), printed.nodes.len(), "{name} {spec:?}");
            for (node, row) in nodes.iter().zip(&printed.nodes) {
                assert_eq!(node.total.value, row.total as i128, "{name} {spec:?} {}", node.node);
                assert_eq!(node.above.unwrap_or(0), row.parent, "{name} {spec:?} {}", node.node);
                assert_eq!(node.file, row.file, "{name} {spec:?} {}", node.node);
                assert_eq!(
                    node.path.split('.').filter(|p| !p.is_empty()).count() as u32,
                    row.depth
                );
            }
            // A node has as many blocks as the report says.
            for (row, node) in printed.nodes.iter().enumerate() {
                let blocks = blocks_below(graph, row as u32);
                assert_eq!(blocks as u32, node.blocks, "{name} {spec:?} node {row}");
            }
        }
    }
}

#[test]
fn time_range_equals_the_range_of_its_events_and_has_its_own_peak() {
    for name in ["recorded/t26/linear_seed_all.pickle", "truth/gpt_backward.pickle.gz"] {
        let file = load(name);
        let at = target(&file);
        let trace = at.trace();
        let (axis, last) =
            (Axis::new(trace, AxisKind::Time).expect("a recording has times"), trace.slots() - 2);
        let time = |event: u32| axis.slot_of(event + 1) as f64;
        // Between two events of different times, which the marked stretch of time begins and ends
        // with.
        let apart =
            |event: &u32| time(*event) > time(*event - 1) && time(*event) < time(*event + 1);
        let first = (last / 3..last).find(apart).expect("times differ");
        let end = (2 * last / 3..last).find(apart).expect("times differ");
        let of_time =
            MarkedRange { axis: AxisKind::Time, x0: time(first - 1), x1: time(end) + 1.0 };
        let mut graphs = Graphs::default();
        let mut info = |weight, range| {
            get(&mut graphs, &file, &FlameSpec { range: Some(range), ..spec(weight) }).info(at)
        };
        for weight in
            [FlameWeight::Peak, FlameWeight::ByteSeconds, FlameWeight::Count, FlameWeight::Churn]
        {
            let (by_time, by_event) = (info(weight, of_time), info(weight, events(first, end)));
            assert_eq!(
                (by_time.total, by_time.text),
                (by_event.total, by_event.text),
                "{name} {weight:?}"
            );
        }
        let (_, peak) = trace.requested.largest(first..end + 2).expect("states");
        let shown = info(FlameWeight::Peak, of_time);
        assert_eq!(shown.total.value, peak.into(), "{name}");
        assert!(
            shown.text.starts_with("requested bytes live at the peak of the range, #"),
            "{}",
            shown.text
        );
        let turned = MarkedRange { x0: of_time.x1, x1: of_time.x0, ..of_time };
        assert_eq!(
            info(FlameWeight::Count, turned).total,
            info(FlameWeight::Count, of_time).total,
            "{name}"
        );
        // A range within one state has no event.
        let none =
            info(FlameWeight::Count, MarkedRange { axis: AxisKind::Event, x0: 5.2, x1: 5.8 });
        assert_eq!(
            (none.total.value, none.text.as_str()),
            (0, "allocations in the range (no events)")
        );
    }
}

#[test]
fn parts_of_a_range_add_up() {
    for name in [
        "edge/no_time.pickle",
        "recorded/t26/linear_seed_all.pickle",
        "truth/gpt_backward.pickle.gz",
    ] {
        let file = load(name);
        let at = target(&file);
        let trace = at.trace();
        let last = trace.slots() - 2;
        let mut graphs = Graphs::default();
        let mut total = |weight, of_events: Option<(u32, u32)>| -> i128 {
            let range = of_events.map(|(first, last)| events(first, last));
            let spec = FlameSpec { range, ..spec(weight) };
            get(&mut graphs, &file, &spec).info(at).total.value
        };
        let cut = last / 3;
        for weight in [FlameWeight::Count, FlameWeight::Churn] {
            let parts = total(weight, Some((0, cut))) + total(weight, Some((cut + 1, last)));
            assert_eq!(parts, total(weight, None), "{name}");
        }
        let allocs =
            trace.blocks.iter().filter(|b| b.alloc_event().is_some_and(|e| e.0 <= cut)).count();
        assert_eq!(total(FlameWeight::Count, Some((0, cut))), allocs as i128, "{name}");
        // Time passes between events, so parts that share an event share no time. Without a clock,
        // an event itself is a unit of time.
        let next = if trace.clock.is_some() { cut } else { cut + 1 };
        let parts = total(FlameWeight::ByteSeconds, Some((0, cut)))
            + total(FlameWeight::ByteSeconds, Some((next, last)));
        assert_eq!(parts, total(FlameWeight::ByteSeconds, None), "{name}");
        let sum: i128 = trace
            .blocks
            .iter()
            .map(|b| i128::from(b.bytes.0) * i128::from(lifetime(trace, b)))
            .sum();
        assert_eq!(parts, sum, "{name}");
        // A range behind the last event.
        assert_eq!(total(FlameWeight::Churn, Some((u32::MAX, u32::MAX))), 0, "{name}");
    }
}

#[test]
fn inverted_and_filtered_graphs_have_the_same_total() {
    // Some files have stacks of C++ frames only.
    let hidden = ["truth/gpt_backward.pickle.gz", "recorded/t26/oom_observer.pickle.gz"]
        .map(|name| check_orders(&load(name)));
    assert!(hidden.iter().any(|&n| n > 0));
}

/// Compares the totals of all orders. Returns the number of blocks with framework frames only.
fn check_orders(file: &Arc<LoadedFile>) -> usize {
    let at = target(file);
    let mut graphs = Graphs::default();
    let total = get(&mut graphs, file, &spec(FlameWeight::Churn)).info(at).total;
    let frames_of = |stack| vramscope_report::frames(at.snapshot(), stack);
    let only_framework = |stack| {
        !frames_of(stack).is_empty()
            && frames_of(stack).iter().all(vramscope_report::FrameRecord::is_framework)
    };
    let allocs = || at.trace().blocks.iter().filter(|b| b.alloc_event().is_some());
    let hidden = allocs().filter(|b| only_framework(b.stack)).count();
    for (inverted, hide_framework) in [(true, false), (false, true), (true, true)] {
        let graph = get(
            &mut graphs,
            file,
            &FlameSpec { inverted, hide_framework, ..spec(FlameWeight::Churn) },
        );
        assert_eq!(graph.info(at).total, total);
        let nodes = all_nodes(graph, at);
        let own_files =
            nodes.iter().all(|n| n.file.is_empty() || !vramscope_trace::is_framework_file(&n.file));
        assert!(own_files || !hide_framework);
        let top: i128 = nodes.iter().filter(|n| n.above == Some(0)).map(|n| n.total.value).sum();
        assert_eq!(top, total.value, "all stacks start at children of the root");
        let framework = nodes.iter().find(|n| n.title == "(framework only)").map(|n| n.node);
        let blocks = |node| blocks_below(graph, node);
        let sum: usize = nodes.iter().filter(|n| n.above == Some(0)).map(|n| blocks(n.node)).sum();
        assert_eq!(sum, blocks(0));
        assert_eq!(framework.map(blocks), (hide_framework && hidden > 0).then_some(hidden));
    }
    hidden
}

#[test]
fn root_and_search_change_the_shown_part() {
    let file = load("truth/gpt_backward.pickle.gz");
    let at = target(&file);
    let mut graphs = Graphs::default();
    let graph = get(&mut graphs, &file, &FlameSpec::default());
    let info = graph.info(at);
    assert_eq!((info.path.len(), info.matched.is_none()), (1, true));
    assert!(info.text.starts_with("requested bytes live at the peak, #"), "{}", info.text);
    let nodes = all_nodes(graph, at);
    let deep = nodes.iter().find(|n| n.path.split('.').count() == 4).expect("a deep node");
    let found = deep.title.to_uppercase();
    let spec = FlameSpec { root: deep.path.clone(), ..FlameSpec::default() };
    let graph = get(&mut graphs, &file, &spec);
    let info = graph.info(at);
    assert_eq!((info.total.clone(), info.path.len()), (deep.total.clone(), 5));
    assert_eq!(info.path[4].path, deep.path);
    assert_eq!(info.path[4].text, deep.title);
    let shown = graph.node(at, deep.node).expect("a node");
    assert_eq!((shown.x0, shown.x1), (0.0, info.extent));
    let boxes = graph.boxes(at, 0.0, info.extent, info.extent / 100.0);
    assert!(
        boxes.iter().any(|b| b.node == deep.node)
            && boxes.iter().any(|b| b.node == 0 && b.text == "(all)")
    );
    assert!(
        boxes
            .iter()
            .all(|b| b.x1 - b.x0 >= info.extent / 100.0 && b.y1 <= f64::from(info.rows * 4096))
    );
    let label = |b: &FlameBox| format!("{} {}", b.place, b.text).trim_start().to_owned();
    let title = |node: u32| graph.node(at, node).expect("a node").title;
    assert!(
        boxes.iter().all(|b| label(b) == title(b.node))
            && boxes.iter().any(|b| b.place.contains(".py:"))
    );
    assert!(graph.boxes(at, f64::NAN, 1.0, 0.0).is_empty());

    let spec = FlameSpec { search: found, ..FlameSpec::default() };
    let graph = get(&mut graphs, &file, &spec);
    let matched = graph.info(at).matched.expect("a search").value;
    let snapshot = at.snapshot();
    let peak = at.trace().requested_band.peak_event.map_or(0, |e| e + 1);
    let holds = |stack| {
        snapshot.stack(stack).any(|f| vramscope_report::text::full_label(snapshot, f) == deep.title)
    };
    let live = at.trace().blocks.iter().filter(|b| b.is_live_at(peak));
    let expected: u64 = live.filter(|b| holds(b.stack)).map(|b| b.bytes.0).sum();
    assert_eq!(matched, i128::from(expected), "each stack counts once");
    let cell = Cell { kx: 30, ky: 12, slot: 0, columns: 512, low: 0, rows: 1024 };
    let strips = graph.strips(cell);
    assert!(strips.colors.contains(&Color::DIMMED.word()) && !strips.blocks.contains(&NO_BLOCK));
    let none = get(
        &mut graphs,
        &file,
        &FlameSpec { search: "no such frame".into(), ..FlameSpec::default() },
    );
    assert_eq!(none.info(at).matched.map(|q| q.value), Some(0));
    // An invalid path shows the whole graph.
    let lost =
        get(&mut graphs, &file, &FlameSpec { root: "0.999.x".into(), ..FlameSpec::default() });
    assert_eq!(lost.info(at).path.len(), 1);
    assert!(lost.node(at, u32::MAX).is_none() && blocks_below(lost, u32::MAX) == 0);
    assert_eq!(graphs.0.len(), 1, "root and search share a cached tree");
}

#[test]
fn every_weight_has_its_unit() {
    let file = load("truth/gpt_backward.pickle.gz");
    let at = target(&file);
    let mut graphs = Graphs::default();
    let mut texts = |weight| {
        let info = get(&mut graphs, &file, &spec(weight)).info(at);
        (info.total.text, info.total.exact, info.text)
    };
    let (text, exact, description) = texts(FlameWeight::Count);
    assert!(
        text.ends_with(" allocations")
            && text == exact
            && description == "allocations in the window",
        "{text} {description}"
    );
    let (text, exact, description) = texts(FlameWeight::ByteSeconds);
    assert!(text.ends_with("iB·s") && exact.ends_with(" B·µs"), "{text} {exact}");
    assert_eq!(description, "requested bytes × seconds of lifetime in the window");
    let (text, exact, _) = texts(FlameWeight::Churn);
    assert!(text.ends_with("iB") && exact.ends_with(" bytes"), "{text} {exact}");
    let weight = now(async |budget| {
        super::weight::Weight::new(at.trace(), &spec(FlameWeight::Churn), budget).await
    });
    assert_eq!(weight.quantity(u128::MAX).value, i128::MAX);
}
