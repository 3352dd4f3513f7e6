//! Properties of the other layers: segments, lines and flame graphs.

use std::ops::Range;
use std::path::Path;
use vramscope_layout::{
    Axis, AxisKind, Cell, Color, Colors, FlameRows, MERGED, NO_BLOCK, RowOrder, STRIP_BUDGET,
    SegmentDrawing, SegmentRows, SegmentTiles, States, Strips, lines,
};
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_trace::slicing::{Budget, now, run_to_completion};
use vramscope_trace::{Carving, Content, Flame, LiveSet, Measure, Piece, Sites, Trace, by_stack};

const ROW: u32 = 4096;

fn test_data(name: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    read(&std::fs::read(path).expect("the test file is readable"))
}

fn read(bytes: &[u8]) -> Snapshot {
    let mut reader = Reader::default();
    reader.feed(bytes).expect("a valid snapshot");
    reader.finish().expect("a valid snapshot").remove(0).snapshot
}

const FILES: [&str; 8] = [
    "scenarios/f02.pickle",
    "scenarios/f13.pickle",
    "edge/segments_only.pickle",
    "edge/no_time.pickle",
    "recorded/t26/linear_seed_python.pickle",
    "recorded/t26/streams.pickle.gz",
    "recorded/t26/expandable_gpt.pickle.gz",
    "recorded/gpt_late.pickle.gz",
];

/// The inputs for drawing the segments of a trace.
struct SegmentScene<'a> {
    axis: Axis<'a>,
    carving: Carving,
    tiles: SegmentTiles,
    colors: Colors,
    order: RowOrder,
}

impl<'a> SegmentScene<'a> {
    fn new(snapshot: &Snapshot, trace: &'a Trace) -> Self {
        let carving = now(async |budget| Carving::new(snapshot, trace, budget).await);
        Self {
            axis: Axis::new(trace, AxisKind::Event).expect("every trace has an event axis"),
            tiles: now(async |budget| SegmentTiles::new(trace, &carving, budget).await),
            colors: now(async |budget| Colors::by_site(trace, &Sites::new(snapshot), budget).await),
            order: shared(&carving),
            carving,
        }
    }

    fn rows(&self) -> SegmentRows<'_> {
        SegmentRows::new(&self.order, f64::from(ROW), None)
    }

    fn strips(&self, cell: Cell) -> Strips {
        self.tiles.strips(self.axis, &self.carving, self.rows(), cell, &self.colors)
    }
}

fn shared(carving: &Carving) -> RowOrder {
    now(async |budget| RowOrder::shared(&carving.segments.spans, budget).await)
}

/// The expected content of a column: each visible span and the state in which it is shown. By brute
/// force over all rows.
fn seen(
    carving: &Carving,
    tiles: &SegmentTiles,
    trace: &Trace,
    state: u32,
    states: &Range<u32>,
) -> Vec<(u32, u32)> {
    let (spans, order) = (&carving.segments.spans, shared(carving));
    let of_row = |row: usize| {
        let known = |span: u32| &spans[span as usize];
        let there = order.row(row).iter().find(|&&s| known(s).is_reserved_at(state));
        if let Some(&span) = there {
            return Some((span, state));
        }
        let &span = order.row(row).iter().rfind(|&&s| states.contains(&known(s).enters))?;
        let made_for = tiles.blocks_in(span).first().map(|&b| trace.blocks[b as usize].enters);
        let is_within = |&at: &u32| known(span).is_reserved_at(at) && at < states.end;
        Some((span, made_for.filter(is_within).unwrap_or(known(span).enters)))
    };
    (0..order.len()).filter_map(of_row).collect()
}

/// The state that a column shows, by brute force: the first at which the total is largest.
fn shown(axis: Axis<'_>, trace: &Trace, from: u64, to: u64) -> Option<u32> {
    let states = axis.states_in(from..to);
    states.rev().max_by_key(|&s| trace.requested.at(s))
}

/// Asserts that the strips of a column do not overlap: either its blocks or its backgrounds.
fn assert_no_overlap(name: &str, strips: &Strips, column: u32, is_ground: bool) {
    let mut spans: Vec<[f32; 2]> = (0..strips.len())
        .filter(|&i| (strips.blocks[i] == NO_BLOCK) == is_ground)
        .map(|i| strips.positions[i])
        .filter(|p| p[0] <= column as f32 && (column as f32) < p[2])
        .map(|p| [p[1], p[3]])
        .collect();
    spans.sort_by(|a, b| a[0].total_cmp(&b[0]));
    for pair in spans.windows(2) {
        assert!(pair[0][1] <= pair[1][0], "{name}: {pair:?} overlap in column {column}");
    }
}

#[test]
fn consecutive_spans_of_one_place_share_a_row() {
    let mut saved_rows = 0;
    for name in FILES {
        let snapshot = test_data(name);
        for trace in &Trace::all(&snapshot) {
            let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
            let (spans, order) = (&carving.segments.spans, shared(&carving));
            assert_eq!(
                run_to_completion(RowOrder::shared(spans, &mut Budget::of(1))),
                order,
                "{name}"
            );
            let mut seen = vec![false; spans.len()];
            for row in (0..order.len()).map(|row| order.row(row)) {
                for pair in row.windows(2) {
                    let [one, next] = [pair[0], pair[1]].map(|span| &spans[span as usize]);
                    assert!(
                        one.leaves <= next.enters,
                        "{name}: {one:?} and {next:?} overlap in time"
                    );
                    assert_eq!((one.address, one.size), (next.address, next.size), "{name}");
                }
                for &span in row {
                    assert!(
                        !std::mem::replace(&mut seen[span as usize], true),
                        "{name}: {span} is in two rows"
                    );
                    assert_eq!(RowOrder::row_with(spans, span).as_deref(), Some(row), "{name}");
                }
            }
            assert!(seen.iter().all(|&seen| seen), "{name}");
            let mut places: Vec<_> = spans.iter().map(|s| (s.address, s.size, s.stream)).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(order.len(), places.len(), "{name}: no place changes its pool in this file");
            saved_rows += spans.len() - order.len();
        }
    }
    assert!(saved_rows > 0, "no spans share a row");
}

#[test]
fn segments_show_the_blocks_of_the_shown_state() {
    let mut brief = 0;
    for name in FILES {
        let snapshot = test_data(name);
        for trace in &Trace::all(&snapshot) {
            let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
            let tiles = now(async |budget| SegmentTiles::new(trace, &carving, budget).await);
            let colors = now(async |budget| Colors::by_segment(trace, &tiles, budget).await);
            let spans = &carving.segments.spans;
            // High enough that the smallest block of the largest segment is visible.
            let largest = spans.iter().map(|s| s.size.0).max().unwrap_or(0);
            let height = (largest as f64 / 512.0 * 1.2).max(f64::from(ROW));
            let order = shared(&carving);
            let rows = SegmentRows::new(&order, height, None);
            let total = (order.len() as f64 * height) as u32 + 1;
            for kind in [AxisKind::Event, AxisKind::Time] {
                let Some(axis) = Axis::new(trace, kind) else { continue };
                let fit = (axis.extent() / 64).max(1).ilog2() as u8;
                for (kx, at) in
                    [(0, 0), (0, axis.extent() / 2), (fit, 0), (fit / 2, axis.extent() / 3)]
                {
                    // Only 4 columns. More would exceed the strip budget and cause merging.
                    let cell =
                        Cell { kx, ky: 0, slot: at >> kx << kx, columns: 4, low: 0, rows: total };
                    let strips = tiles.strips(axis, &carving, rows, cell, &colors);
                    assert!(strips.len() <= STRIP_BUDGET, "{name}");
                    assert!(
                        strips.blocks.iter().all(|&b| b == NO_BLOCK || b & MERGED == 0),
                        "{name} merges"
                    );
                    for column in 0..cell.columns {
                        let from = cell.slot + (u64::from(column) << kx);
                        let Some(state) = shown(axis, trace, from, from + (1 << kx)) else {
                            continue;
                        };
                        assert_no_overlap(name, &strips, column, false);
                        assert_no_overlap(name, &strips, column, true);
                        let states = axis.states_in(from..from + (1 << kx));
                        let seen = seen(&carving, &tiles, trace, state, &states);
                        let here = seen.iter().filter(|&&(_, at)| at == state).count();
                        assert_eq!(
                            here,
                            carving.segments.at(state).len(),
                            "{name}: segments in state {state}"
                        );
                        brief += seen.len() - here;
                        let mut expected: Vec<(u32, bool)> = Vec::new();
                        for &(span, at) in &seen {
                            let (low, high) =
                                (spans[span as usize].address.0, spans[span as usize].end());
                            for segment in now(async |budget| LiveSet::new(trace, at, budget).await)
                                .segments(&carving)
                            {
                                let inside =
                                    |p: &&Piece| p.address.0 < high && low < p.address.0 + p.size.0;
                                expected.extend(segment.pieces.iter().filter(inside).filter_map(
                                    |p| match p.content {
                                        Content::Block { block, pending } => Some((block, pending)),
                                        Content::Free => None,
                                    },
                                ));
                            }
                        }
                        expected.sort_unstable();
                        // A block of an expandable segment lies in several mapped ranges.
                        expected.dedup();
                        let there = |i: &usize| {
                            let p = strips.positions[*i];
                            p[0] <= column as f32 && (column as f32) < p[2]
                        };
                        let mut found: Vec<(u32, bool)> = (0..strips.len())
                            .filter(there)
                            .filter(|&i| strips.blocks[i] != NO_BLOCK)
                            .map(|i| {
                                (strips.blocks[i], Color::from_word(strips.colors[i]).is_hatched())
                            })
                            .collect();
                        found.sort_unstable();
                        found.dedup();
                        assert_eq!(found, expected, "{name} state {state}");
                        let grounds = (0..strips.len())
                            .filter(there)
                            .filter(|&i| strips.blocks[i] == NO_BLOCK)
                            .count();
                        assert_eq!(grounds, seen.len(), "{name}: segments in state {state}");
                    }
                    for (i, p) in strips.positions.iter().enumerate() {
                        let [low, high] =
                            rows.edges(order.len() - 1 - (f64::from(p[1]) / height) as usize);
                        let gap = (high - low) / 16.0 - 0.01 * height;
                        assert!(
                            f64::from(p[1]) >= low + gap && f64::from(p[3]) <= high - gap,
                            "{name}: strip {i}"
                        );
                    }
                }
            }
        }
    }
    assert!(brief > 0, "no segment is reserved and released between two shown states");
}

#[test]
fn sliced_segments_equal_unsliced() {
    for name in FILES {
        let snapshot = test_data(name);
        for trace in &Trace::all(&snapshot) {
            let scene = SegmentScene::new(&snapshot, trace);
            let SegmentScene { axis, carving, tiles, colors, .. } = &scene;
            let kx = (axis.extent() / 256).max(1).ilog2() as u8 + 1;
            for ky in [4, 9] {
                let cell = Cell { kx, ky, slot: 0, columns: 256, low: 0, rows: 1024 };
                let whole = scene.strips(cell);
                let mut drawing = SegmentDrawing::new(cell);
                let mut slices = 1;
                while !tiles.draw(&mut drawing, *axis, carving, scene.rows(), colors, 40) {
                    slices += 1;
                }
                assert_eq!(drawing.finish(), whole, "{name} in {slices} slices");
                assert!(slices > 1 || trace.blocks.len() < 100, "{name}");
            }
        }
    }
}

#[test]
fn zoomed_out_segments_are_merged_and_none_is_lost() {
    for name in FILES {
        let snapshot = test_data(name);
        for trace in &Trace::all(&snapshot) {
            let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
            let tiles = now(async |budget| SegmentTiles::new(trace, &carving, budget).await);
            let by_size = now(async |budget| Colors::by_size(trace, budget).await);
            let colors = now(async |budget| by_size.dimmed(|block| block % 2 == 0, budget).await);
            let order = shared(&carving);
            let rows = SegmentRows::new(&order, f64::from(ROW), None);
            let axis = Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
            let kx = (axis.extent() / 64).max(1).ilog2() as u8;
            // From rows of 64 cell rows, which are easily visible, to rows of less than one.
            for ky in [6, 10, 13, 16] {
                let lines = ((order.len() as u64 * u64::from(ROW)) >> ky) as u32 + 1;
                let cell = Cell { kx, ky, slot: 0, columns: 64, low: 0, rows: lines };
                let strips = tiles.strips(axis, &carving, rows, cell, &colors);
                // At most two block strips and one background per visible row and column.
                assert!(
                    strips.len() <= 3 * 64 * (2 * lines as usize + 2),
                    "{name}: {} strips",
                    strips.len()
                );
                for column in 0..64u32 {
                    let from = u64::from(column) << kx;
                    let Some(state) = shown(axis, trace, from, from + (1 << kx)) else { continue };
                    assert_no_overlap(name, &strips, column, false);
                    assert_no_overlap(name, &strips, column, true);
                    let there = |i: usize| {
                        let p = strips.positions[i];
                        p[0] <= column as f32 && (column as f32) < p[2]
                    };
                    let has = |ground: bool| {
                        (0..strips.len())
                            .any(|i| there(i) && (strips.blocks[i] == NO_BLOCK) == ground)
                    };
                    let seen = seen(
                        &carving,
                        &tiles,
                        trace,
                        state,
                        &axis.states_in(from..from + (1 << kx)),
                    );
                    assert_eq!(has(true), !seen.is_empty(), "{name} state {state}");
                    let is_live = |&(span, at): &(u32, u32)| {
                        let mut blocks =
                            tiles.blocks_in(span).iter().map(|&b| &trace.blocks[b as usize]);
                        blocks.any(|block| block.is_live_at(at))
                    };
                    assert_eq!(has(false), seen.iter().any(is_live), "{name} state {state}");
                }
            }
            // Overlapping cells agree where they overlap.
            let whole = Cell { kx, ky: 4, slot: 0, columns: 64, low: 0, rows: 64 };
            let part = Cell { low: 16 << 4, rows: 16, ..whole };
            let cut = |strips: &Strips, by: f32| -> Vec<([u32; 4], u32)> {
                let mut all: Vec<_> = (0..strips.len())
                    .map(|i| (strips.positions[i], strips.blocks[i]))
                    .map(|([x0, y0, x1, y1], b)| {
                        ([x0, (y0 - by).clamp(0.0, 16.0), x1, (y1 - by).clamp(0.0, 16.0)], b)
                    })
                    .filter(|(p, _)| p[1] < p[3])
                    // Compare in thousandths of a row: both cells round from their own corner.
                    .map(|(p, b)| (p.map(|v| (v * 1000.0).round() as u32), b))
                    .collect();
                all.sort_unstable();
                all
            };
            let (one, other) = (
                tiles.strips(axis, &carving, rows, whole, &colors),
                tiles.strips(axis, &carving, rows, part, &colors),
            );
            assert_eq!(cut(&one, 16.0), cut(&other, 0.0), "{name}");
        }
    }
}

#[test]
fn coarsening_leaves_quiet_segments_unchanged() {
    // Segment 0: 350 blocks stay live. Segment 1: up to 400 blocks are allocated and freed in the
    // first half of the trace. Segment 2: one block is allocated and freed in the second half.
    let (size, segments) = (160 << 10, [1u64 << 32, 2 << 32, 3 << 32]);
    let address = |segment: usize, place: u64| segments[segment] + place * size;
    let mut events: Vec<String> = Vec::new();
    let mut put = |action: &str, address: u64, size: u64| {
        events.push(format!("{{\"action\":\"{action}\",\"addr\":{address},\"size\":{size}}}"));
    };
    for segment in segments {
        put("segment_alloc", segment, 64 << 20);
    }
    for place in 0..350 {
        put("alloc", address(0, place), size);
    }
    let half = 1 << 17;
    let (mut live, mut random) = ([false; 400], 7u64);
    for _ in 0..half {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = (random >> 33) as usize % live.len();
        put(if live[place] { "free_completed" } else { "alloc" }, address(1, place as u64), size);
        live[place] ^= true;
    }
    for place in (0..live.len()).filter(|&place| live[place]) {
        put("free_completed", address(1, place as u64), size);
    }
    for _ in 0..half {
        for action in ["alloc", "free_completed"] {
            put(action, address(2, 0), size);
        }
    }
    let block = |size: u64, state: &str| {
        format!("{{\"size\":{size},\"requested_size\":{size},\"state\":\"{state}\"}}")
    };
    let stay: Vec<String> = (0..350).map(|_| block(size, "active_allocated")).collect();
    let rest = [
        format!("{},{}", stay.join(","), block((64 << 20) - 350 * size, "inactive")),
        block(64 << 20, "inactive"),
    ];
    let segment = |at: usize| {
        let (address, blocks) = (segments[at], &rest[at.min(1)]);
        format!("{{\"address\":{address},\"total_size\":{},\"blocks\":[{blocks}]}}", 64 << 20)
    };
    let segments = (0..3).map(segment).collect::<Vec<_>>().join(",");
    let snapshot = read(
        format!("{{\"segments\":[{segments}],\"device_traces\":[[{}]]}}", events.join(","))
            .as_bytes(),
    );

    let trace = &Trace::all(&snapshot)[0];
    let scene = SegmentScene::new(&snapshot, trace);
    // The strips of a segment in the middle column: edges, and block with the `MERGED` bit.
    let there = |slot: u64, of: u64| {
        let cell = Cell { kx: 9, ky: 3, slot, columns: 256, low: 0, rows: (3 * ROW) >> 3 };
        let strips = scene.strips(cell);
        assert!(strips.len() <= STRIP_BUDGET);
        let mut of_it: Vec<_> = (0..strips.len())
            .map(|i| (strips.positions[i], strips.blocks[i]))
            .filter(|&(p, block)| p[0] <= 128.0 && 128.0 < p[2] && block != NO_BLOCK)
            .filter(|&(_, block)| trace.blocks[(block & !MERGED) as usize].address.0 >> 32 == of)
            .map(|(p, block)| (p[1].to_bits(), p[3].to_bits(), block))
            .collect();
        of_it.sort_unstable();
        of_it
    };
    let quiet = there(half + 4096, 1);
    assert_eq!(quiet.len(), 350);
    assert!(
        there(512, 2).iter().any(|&(.., block)| block & MERGED != 0),
        "the busy segment is not merged"
    );
    assert!(there(512, 1) == quiet);
}

#[test]
fn lines_are_at_the_value_of_the_shown_state() {
    for name in FILES {
        let snapshot = test_data(name);
        for trace in &Trace::all(&snapshot) {
            let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
            let reserved = now(async |budget| trace.reserved(&snapshot, budget).await);
            for series in [&carving.allocated, &carving.active, &reserved] {
                let axis =
                    Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
                let max = series.to_vec().into_iter().max().unwrap_or(0);
                for (kx, ky) in [
                    (0, 10),
                    ((axis.extent() / 64).max(1).ilog2() as u8, (max / 64).max(1).ilog2() as u8),
                ] {
                    let rows = (max >> ky) as u32 + 2;
                    let cell = Cell { kx, ky, slot: 0, columns: 64, low: 0, rows };
                    let mut strips = Strips::default();
                    let mut states = States::new(cell);
                    assert!(states.find(axis, &mut 0, u64::MAX));
                    lines(axis, &states, &[(series, Color::ACTIVE)], &mut strips);
                    assert!(strips.len() <= 2 * 128, "{name}");
                    // The casing is the same line, below it.
                    let casing = strips.len() / 2;
                    let is_casing = |&c: &u32| c == Color::CASING.word();
                    assert!(strips.colors[..casing].iter().all(is_casing), "{name}");
                    assert!(!strips.colors[casing..].iter().any(is_casing), "{name}");
                    assert_eq!(strips.positions[..casing], strips.positions[casing..], "{name}");
                    let line = &strips.positions[casing..];
                    let mut before: Option<f32> = None;
                    for column in 0..64u32 {
                        let from = u64::from(column) << kx;
                        let Some(state) = shown(axis, trace, from, from + (1 << kx)) else {
                            continue;
                        };
                        let value = (series.at(state) as f64 / (1u64 << ky) as f64) as f32;
                        let x = column as f32;
                        let level: Vec<_> = line.iter().filter(|p| p[0] <= x && x < p[2]).collect();
                        assert_eq!(level.len(), 1, "{name}: column {column}");
                        assert_eq!([level[0][1], level[0][3]], [value; 2], "{name}: {column}");
                        let jumps: Vec<_> =
                            line.iter().filter(|p| p[0] == x && p[2] == x).collect();
                        match before.filter(|&last| last != value) {
                            Some(last) => {
                                let ends = [last.min(value), last.max(value)];
                                assert_eq!(jumps.len(), 1, "{name}: column {column}");
                                assert_eq!([jumps[0][1], jumps[0][3]], ends, "{name}");
                            }
                            None => assert!(jumps.is_empty(), "{name}: column {column}"),
                        }
                        before = Some(value);
                    }
                    assert!(strips.blocks.iter().all(|&b| b == NO_BLOCK));
                }
            }
        }
    }
}

#[test]
fn flame_children_lie_within_parents_and_strips_do_not_overlap() {
    for name in [
        "recorded/t26/linear_seed_all.pickle",
        "recorded/misc/deep.pickle.gz",
        "edge/deep_stack.pickle",
    ] {
        let snapshot = test_data(name);
        let trace = &Trace::all(&snapshot)[0];
        let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
        for measure in [Measure::Churn, Measure::ByteTime, Measure::Count] {
            let flame = now(async |budget| {
                let weight = |i| measure.of(trace, &carving, i);
                let shares = by_stack(trace, weight, budget).await;
                Flame::new(&snapshot, &shares, budget).await
            });
            let mut rows = FlameRows::new(&flame, ROW);
            let deep = flame.nodes.len() as u32 / 2;
            for root in [0, deep] {
                rows.focus(&flame, root);
                assert!(rows.extent(&flame) < 1 << 40, "{name}");
                let inside = root..rows.end(root);
                for node in inside.clone().skip(1) {
                    let (x, above) = (
                        rows.span(&flame, node),
                        rows.span(&flame, flame.nodes[node as usize].parent),
                    );
                    assert!(above[0] <= x[0] && x[0] <= x[1] && x[1] <= above[1], "{name}: {node}");
                    let (y, over) = (
                        rows.edges(&flame, node),
                        rows.edges(&flame, flame.nodes[node as usize].parent),
                    );
                    assert_eq!(y[1], over[0], "{name}: {node}");
                }
                for (kx_less, ky) in [(0, 8), (3, 8), (0, 14)] {
                    let fit = (rows.extent(&flame) / 256).max(1).ilog2() as u8 + 1;
                    let (kx, height) =
                        (fit.saturating_sub(kx_less), u64::from(rows.rows() * ROW) >> ky);
                    let cell =
                        Cell { kx, ky, slot: 0, columns: 256, low: 0, rows: height as u32 + 1 };
                    let strips = rows.strips(&flame, cell, &|node| Color::new(node as u8, 0));
                    assert!(strips.len() <= STRIP_BUDGET, "{name}");
                    assert_eq!(strips.is_empty(), rows.extent(&flame) == 0, "{name}");
                    let mut order: Vec<usize> = (0..strips.len()).collect();
                    order.sort_by(|&a, &b| {
                        let at = |i: usize| strips.positions[i];
                        at(a)[1].total_cmp(&at(b)[1]).then(at(a)[0].total_cmp(&at(b)[0]))
                    });
                    for pair in order.windows(2) {
                        let [a, b] = [pair[0], pair[1]].map(|i| strips.positions[i]);
                        assert!(a[1] != b[1] || a[2] <= b[0], "{name}: {a:?} and {b:?} overlap");
                    }
                    for (i, p) in strips.positions.iter().enumerate() {
                        let node = strips.blocks[i] & !MERGED;
                        let (x, y) = (rows.span(&flame, node), rows.edges(&flame, node));
                        // Up to the precision of an `f32` in a cell.
                        let left = x[0] as f64 / (1u64 << kx) as f64;
                        assert!(
                            f64::from(p[0]) <= left + 1e-4,
                            "{name}: {p:?} is of {node}, which begins at {}",
                            x[0]
                        );
                        assert!(
                            (f64::from(p[3]) * (1u64 << ky) as f64 - y[1] as f64).abs() < 1.0,
                            "{name}: {node}"
                        );
                    }
                    // Nodes of at least half a column have a strip of their own.
                    for node in inside.clone().filter(|_| ky < 12) {
                        let x = rows.span(&flame, node).map(|x| x as f64 / (1u64 << kx) as f64);
                        if x[1] - x[0] >= 0.5 && x[0] < 256.0 {
                            assert!(strips.blocks.contains(&node), "{name}: {node} is not drawn");
                        }
                    }
                }
            }
        }
    }
}
