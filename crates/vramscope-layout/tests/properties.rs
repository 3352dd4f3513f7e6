//! Properties of viewport queries at all scales: on random traces, edge cases and recordings.

use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use vramscope_layout::{
    Axis, AxisKind, Cell, Colors, Cost, Detail, Drawing, MERGED, PickPoint, STRIP_BUDGET,
    StackOrder, Strips, Timeline,
};
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Block, Sites, Trace};

fn load(bytes: &[u8]) -> Snapshot {
    let mut reader = Reader::default();
    reader.feed(bytes).expect("a valid snapshot");
    reader.finish().expect("a valid snapshot").remove(0).snapshot
}

fn test_data(name: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    load(&std::fs::read(path).expect("the test file is readable"))
}

/// Number of groups of [`group_of`]. The last one is empty.
const GROUPS: usize = 8;

fn group_of(block: &Block) -> u32 {
    (block.address.0 / 512 % (GROUPS as u64 - 1)) as u32
}

/// A timeline, and how its stack is drawn.
struct Stacked {
    timeline: Timeline,
    is_grouped: bool,
    detail: Detail,
}

/// Merged strips are lower than this many rows.
fn merged_rows(detail: Detail) -> u64 {
    if detail == Detail::Hits { 4 } else { 1 }
}

impl Stacked {
    /// Ungrouped and grouped stacks, one that draws groups as bands, and those of a search.
    fn all(trace: &Trace) -> [Self; 5] {
        use Detail::{Bands, Blocks, Hits};
        [(false, Blocks), (true, Blocks), (true, Bands), (false, Hits), (true, Hits)]
            .map(|(is_grouped, detail)| Self::new(trace, is_grouped, detail))
    }

    fn new(trace: &Trace, is_grouped: bool, detail: Detail) -> Self {
        let timeline = if is_grouped {
            let groups: Vec<u32> = trace.blocks.iter().map(group_of).collect();
            let order = now(async |budget| StackOrder::new(&groups, GROUPS, budget).await);
            now(async |budget| Timeline::grouped(trace, Arc::new(order), budget).await)
        } else {
            now(async |budget| Timeline::new(trace, budget).await)
        };
        Self { timeline, is_grouped, detail }
    }

    fn strips(&mut self, axis: Axis<'_>, cell: Cell, colors: &Colors) -> (Strips, Cost) {
        let mut drawing = Drawing::new(cell, self.detail);
        while !self.timeline.draw(&mut drawing, axis, colors, u64::MAX) {}
        drawing.finish()
    }

    /// The key by which blocks are ordered in the stack.
    fn key(&self, index: u32, block: &Block) -> (u32, u32) {
        (if self.is_grouped { group_of(block) } else { 0 }, index)
    }
}

/// The largest total among the states that a column of slots shows, by brute force.
fn maximum(axis: Axis<'_>, trace: &Trace, from: u64, to: u64) -> Option<u64> {
    if from >= axis.extent() {
        return None;
    }
    let visible = |state: u32| {
        let begins = axis.slot_of(state);
        let ends = axis.slot_of(state + 1);
        // A column shows the states that begin in it, even those without duration, and the state
        // that lasts into it.
        (from <= begins && begins < to) || (begins < from && from < ends)
    };
    (0..trace.slots()).filter(|&s| visible(s)).map(|s| trace.requested.at(s)).max()
}

/// Checks all properties for the cells of a trace at one scale.
fn check(name: &str, snapshot: &Snapshot, trace: &Trace, kind: AxisKind, kx: u8, ky: u8) {
    let Some(axis) = Axis::new(trace, kind) else { return };
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(snapshot), budget).await);
    for mut stacked in Stacked::all(trace) {
        check_stacked(name, &mut stacked, axis, &colors, kx, ky);
    }
}

fn check_stacked(
    name: &str,
    stacked: &mut Stacked,
    axis: Axis<'_>,
    colors: &Colors,
    kx: u8,
    ky: u8,
) {
    let trace = axis.trace();
    let (columns, rows) = (16u32, 64u32);
    let height = (trace.requested_band.peak.max(0) as u64 >> ky) / u64::from(rows) + 1;
    let width = (axis.extent() >> kx) / u64::from(columns) + 1;
    // Whole stacks, cell by cell: about 7 columns of cells, and at most 200 cells in each.
    for ix in (0..width).step_by((width as usize / 6).max(1)) {
        let slot = (ix * u64::from(columns)) << kx;
        let mut drawn = vec![0f64; columns as usize];
        for iy in 0..height.min(200) {
            let low = (iy * u64::from(rows)) << ky;
            let cell = Cell { kx, ky, slot, columns, low, rows };
            let (strips, cost) = stacked.strips(axis, cell, colors);
            assert!(strips.len() <= STRIP_BUDGET, "{name}");
            let bound = 8 * u64::from(columns) * u64::from(rows) + 64 * u64::from(columns) * 2;
            assert!(
                cost.retries > 0 || cost.nodes <= bound,
                "{name}: {} nodes for {columns} x {rows}",
                cost.nodes
            );
            let mut covered: Vec<Vec<(f32, f32)>> = vec![Vec::new(); columns as usize];
            for (i, &[x0, y0, x1, y1]) in strips.positions.iter().enumerate() {
                assert!(0.0 <= x0 && x0 < x1 && x1 <= columns as f32, "{name}: x {x0}..{x1}");
                assert!(0.0 <= y0 && y0 < y1 && y1 <= rows as f32, "{name}: y {y0}..{y1}");
                assert!((strips.blocks[i] & !MERGED) < trace.blocks.len() as u32, "{name}");
                for column in &mut covered[x0 as usize..x1 as usize] {
                    column.push((y0, y1));
                }
            }
            for (column, mut spans) in covered.into_iter().enumerate() {
                spans.sort_by(|a, b| a.0.total_cmp(&b.0));
                // No gap and no overlap: each strip begins where the strip below it ends.
                for pair in spans.windows(2) {
                    assert_eq!(
                        pair[0].1, pair[1].0,
                        "{name}: column {column} of cell {ix}, {iy} at {kx}, {ky}"
                    );
                }
                if let (Some(first), Some(last)) = (spans.first(), spans.last()) {
                    assert_eq!(first.0, 0.0, "{name}: a stack stands on the ground");
                    drawn[column] =
                        drawn[column].max(low as f64 + f64::from(last.1) * (1u64 << ky) as f64);
                }
            }
        }
        if height <= 200 {
            for (column, &drawn) in drawn.iter().enumerate() {
                let from = slot + ((column as u64) << kx);
                let expected = maximum(axis, trace, from, from + (1 << kx)).unwrap_or(0) as f64;
                let off = (drawn - expected).abs();
                // Rows are `f32` within a cell: exact to a millionth of the cell's height.
                assert!(
                    off <= f64::from(rows) * (1u64 << ky) as f64 * 1e-6,
                    "{name}: column at {from} is drawn to {drawn}, expected {expected}"
                );
            }
        }
    }
}

/// Scales from single events to the whole trace, and from single bytes to the whole stack.
fn check_all(name: &str, snapshot: &Snapshot) {
    for trace in &Trace::all(snapshot) {
        let peak = trace.requested_band.peak.max(1) as u64;
        let fit_y = (peak / 64).max(1).ilog2() as u8 + 1;
        for kind in [AxisKind::Event, AxisKind::Time] {
            let Some(axis) = Axis::new(trace, kind) else { continue };
            let fit_x = (axis.extent() / 16).max(1).ilog2() as u8 + 1;
            for kx in [0, fit_x / 2, fit_x] {
                for ky in [fit_y, fit_y.saturating_sub(3)] {
                    check(name, snapshot, trace, kind, kx, ky);
                }
            }
        }
    }
}

#[test]
fn strips_of_scenarios_reach_the_curve() {
    for i in 1..=20 {
        let name = format!("scenarios/f{i:02}.pickle");
        check_all(&name, &test_data(&name));
    }
}

#[test]
fn strips_of_edge_cases_and_recordings_reach_the_curve() {
    for name in [
        "edge/times.pickle",
        "edge/no_time.pickle",
        "edge/segments_only.pickle",
        "edge/lost_alloc.pickle",
        "edge/two_devices.pickle",
        "recorded/t26/linear_seed_python.pickle",
        "recorded/t26/streams.pickle.gz",
        "recorded/gpt_late.pickle.gz",
    ] {
        check_all(name, &test_data(name));
    }
}

#[test]
fn pick_returns_the_drawn_strip() {
    for name in [
        "recorded/t26/linear_seed_python.pickle",
        "recorded/gpt_late.pickle.gz",
        "scenarios/f13.pickle",
    ] {
        let snapshot = test_data(name);
        let trace = &Trace::all(&snapshot)[0];
        let axis = Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
        let colors =
            now(async |budget| Colors::by_site(trace, &Sites::new(&snapshot), budget).await);
        let rows = 64;
        let ky = (trace.requested_band.peak as u64 / u64::from(rows)).max(1).ilog2() as u8 + 1;
        let kx = (axis.extent() / 64).max(1).ilog2() as u8 + 1;
        let cell = Cell { kx, ky, slot: 0, columns: 64, low: 0, rows };
        for mut stacked in Stacked::all(trace) {
            check_picks(name, &mut stacked, axis, &colors, cell);
        }
    }
}

fn check_picks(name: &str, stacked: &mut Stacked, axis: Axis<'_>, colors: &Colors, cell: Cell) {
    let (strips, _) = stacked.strips(axis, cell, colors);
    let (trace, detail, Cell { kx, ky, rows, .. }) = (axis.trace(), stacked.detail, cell);
    assert!(!strips.is_empty(), "{name}");
    for (i, &[x0, y0, x1, y1]) in strips.positions.iter().enumerate() {
        if y1 - y0 < 0.01 {
            continue; // the middle of such a thin strip may round into its neighbor
        }
        let slot = f64::from(x0 + x1) / 2.0 * (1u64 << kx) as f64;
        let bytes = f64::from(y0 + y1) / 2.0 * (1u64 << ky) as f64;
        let point = PickPoint { kx, ky, slot, bytes, cell_rows: rows, detail };
        let picked = stacked.timeline.pick(axis, point).expect("a strip is drawn there");
        assert_eq!(picked.block, strips.blocks[i] & !MERGED, "{name} strip {i}");
        assert_eq!(picked.count > 1, strips.blocks[i] & MERGED != 0, "{name} strip {i}");
        let members: u64 =
            trace.blocks.iter().filter(|b| b.is_live_at(picked.state)).map(|b| b.bytes.0).sum();
        assert!(picked.bytes <= members, "{name}");
        match picked.group {
            Some(group) => assert_eq!(group, group_of(&trace.blocks[picked.block as usize])),
            None => assert!(
                !stacked.is_grouped || picked.bytes < merged_rows(detail) << ky,
                "{name} strip {i}"
            ),
        }
    }
    let bytes = trace.requested_band.peak as f64 + 1.0;
    let above = PickPoint { kx, ky, slot: 0.5, bytes, cell_rows: rows, detail };
    assert_eq!(stacked.timeline.pick(axis, above), None, "{name}: nothing above the stack");
}

/// A valid trace of allocs and frees over 40 addresses, as JSON. A step is an address, a size, and
/// the time since the previous step in 1/8 µs.
fn random_trace(steps: &[(u8, u32, u16)]) -> String {
    let mut live = [0u32; 40];
    let mut out = String::from("{\"segments\":[],\"device_traces\":[[");
    let mut time = 1_000_000u64;
    let mut comma = "";
    for &(place, size, wait) in steps {
        time += u64::from(wait) / 8;
        let at = usize::from(place) % live.len();
        let action = if live[at] == 0 { "alloc" } else { "free_completed" };
        let bytes = if live[at] == 0 { size % 5000 + 1 } else { live[at] };
        live[at] = if live[at] == 0 { bytes } else { 0 };
        write!(
            out,
            "{comma}{{\"action\":\"{action}\",\"addr\":{},\"size\":{bytes},\"time_us\":{time}}}",
            4096 * (at + 1)
        )
        .expect("writing to a String cannot fail");
        comma = ",";
    }
    out + "]]}"
}

/// The expected stack of a column, by brute force: the blocks of the first state at which the total
/// is largest, from the bottom up. Each has its lower and its upper edge in bytes.
fn stack(stacked: &Stacked, axis: Axis<'_>, from: u64, to: u64) -> Vec<(u32, u64, u64)> {
    let trace = axis.trace();
    let Some(largest) = maximum(axis, trace, from, to) else { return Vec::new() };
    let is_shown = |&state: &u32| {
        let (begins, ends) = (axis.slot_of(state), axis.slot_of(state + 1));
        let is_in = (from <= begins && begins < to) || (begins < from && from < ends);
        is_in && trace.requested.at(state) == largest
    };
    let Some(state) = (0..trace.slots()).find(is_shown) else { return Vec::new() };
    let mut below = 0;
    let mut out = Vec::new();
    let mut live: Vec<(u32, &Block)> =
        (0u32..).zip(&trace.blocks).filter(|(_, it)| it.is_live_at(state)).collect();
    live.sort_by_key(|&(block, it)| stacked.key(block, it));
    for (block, it) in live {
        out.push((block, below, below + it.bytes.0));
        below += it.bytes.0;
    }
    out
}

/// Compares every strip of a cell with the expected stack, to the last bit of its `f32` positions.
fn check_exactly(stacked: &mut Stacked, axis: Axis<'_>, colors: &Colors, cell: Cell) {
    let (strips, cost) = stacked.strips(axis, cell, colors);
    let width = f64::from(cell.ky).exp2();
    let high = cell.low + (u64::from(cell.rows) << cell.ky);
    let y = |bytes: u64| ((bytes.clamp(cell.low, high) - cell.low) as f64 / width) as f32;
    for column in 0..cell.columns {
        let from = cell.slot + (u64::from(column) << cell.kx);
        let stack = stack(stacked, axis, from, from + (1 << cell.kx));
        let mut at: Vec<usize> = (0..strips.len())
            .filter(|&i| {
                strips.positions[i][0] <= column as f32 && (column as f32) < strips.positions[i][2]
            })
            .collect();
        at.sort_by(|&a, &b| strips.positions[a][1].total_cmp(&strips.positions[b][1]));
        // No gap between the ground and the curve.
        let mut top = 0.0;
        for &i in &at {
            let [_, y0, _, y1] = strips.positions[i];
            assert_eq!(y0, top, "{cell:?}, column {column}");
            top = y1;
            let block = strips.blocks[i] & !MERGED;
            let known = stack.iter().find(|(live, _, _)| *live == block);
            let &(_, low, high) =
                known.unwrap_or_else(|| panic!("{cell:?}, column {column}: {block} is not live"));
            if strips.blocks[i] & MERGED == 0 {
                assert_eq!([y0, y1], [y(low), y(high)], "{cell:?}, column {column}: block {block}");
            } else {
                assert!(
                    y0 <= y(low) && y(high) <= y1,
                    "{cell:?}, column {column}: {block} is not in its strip"
                );
                // A walk merges pieces smaller than the threshold, and stops there. A merged strip
                // is therefore lower than two of them, or a band.
                if stacked.detail == Detail::Bands && y1 - y0 >= 1.0 {
                    check_band(
                        axis,
                        &stack,
                        [y0, y1].map(|y| cell.low + (f64::from(y) * width) as u64),
                    );
                } else {
                    assert!(
                        cost.retries > 0 || y1 - y0 < merged_rows(stacked.detail) as f32,
                        "{cell:?}, column {column}: a strip of {y0}..{y1}"
                    );
                }
            }
        }
        assert_eq!(
            top,
            y(stack.last().map_or(0, |last| last.2)),
            "{cell:?}, column {column}: the curve"
        );
    }
}

/// Checks that a merged strip between two heights has blocks of one group.
fn check_band(axis: Axis<'_>, stack: &[(u32, u64, u64)], [low, high]: [u64; 2]) {
    let inside =
        stack.iter().filter(|(_, from, to)| low < from.midpoint(*to) && from.midpoint(*to) < high);
    let mut groups: Vec<u32> =
        inside.map(|(block, ..)| group_of(&axis.trace().blocks[*block as usize])).collect();
    groups.dedup();
    assert_eq!(groups.len(), 1, "a band from {low} to {high} has several groups");
}

/// Checks cells at all scales, from the whole trace to single slots and bytes. Each entry of
/// `picks` chooses the scale and the position of one cell.
fn check_cells(snapshot: &Snapshot, picks: &[u32]) {
    let trace = &Trace::all(snapshot)[0];
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(snapshot), budget).await);
    let mut stacks = Stacked::all(trace);
    let (columns, rows) = (16, 64);
    let peak = trace.requested_band.peak.max(1) as u64;
    let fit = |all: u64, lines: u32| (all / u64::from(lines)).max(1).ilog2() + 1;
    for kind in [AxisKind::Event, AxisKind::Time] {
        let Some(axis) = Axis::new(trace, kind) else { continue };
        for (i, &pick) in picks.iter().enumerate() {
            let kx = i as u32 % (fit(axis.extent(), columns) + 1);
            let ky = (i as u32 / 3 + pick) % (fit(peak, rows) + 1);
            let place = |all: u64, lines: u32, k: u32, pick: u32| {
                let cells = (all >> k) / u64::from(lines) + 1;
                ((u64::from(pick) % cells) * u64::from(lines)) << k
            };
            let (slot, low) =
                (place(axis.extent(), columns, kx, pick), place(peak, rows, ky, pick >> 8));
            let cell = Cell { kx: kx as u8, ky: ky as u8, slot, columns, low, rows };
            for stacked in &mut stacks {
                check_exactly(stacked, axis, &colors, cell);
            }
        }
    }
}

#[test]
fn strips_of_recordings_are_exact() {
    for name in [
        "recorded/t26/linear_seed_python.pickle",
        "recorded/gpt_late.pickle.gz",
        "edge/lost_alloc.pickle",
    ] {
        check_cells(
            &test_data(name),
            &[0, 2_654_435_769, 1_640_531_527, 77, 901, 40_503, 3, 65_600, 12, 999_999_937],
        );
    }
}

#[test]
fn strips_are_exact_far_from_the_origin() {
    const GIB: u64 = 1 << 30;
    const HOURS: u64 = 7 * 3600 * 1_000_000;
    let json = format!(
        "{{\"segments\":[],\"device_traces\":[[\
         {{\"action\":\"alloc\",\"addr\":4096,\"size\":{},\"time_us\":1000}},\
         {{\"action\":\"alloc\",\"addr\":512,\"size\":512,\"time_us\":{}}},\
         {{\"action\":\"alloc\",\"addr\":1024,\"size\":3,\"time_us\":{}}},\
         {{\"action\":\"free_completed\",\"addr\":512,\"size\":512,\"time_us\":{}}}]]}}",
        100 * GIB,
        1000 + HOURS,
        1001 + HOURS,
        1003 + HOURS,
    );
    let snapshot = load(json.as_bytes());
    let trace = &Trace::all(&snapshot)[0];
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(&snapshot), budget).await);
    let mut stacked = Stacked::new(trace, false, Detail::Blocks);
    for (kind, slot) in [(AxisKind::Event, 2), (AxisKind::Time, HOURS / 64 + HOURS)] {
        let axis = Axis::new(trace, kind).expect("the trace has timestamps");
        // Rows of one byte, starting at 100 GiB, and columns of one event or one microsecond.
        let cell = Cell { kx: 0, ky: 0, slot, columns: 8, low: 100 * GIB, rows: 1024 };
        let (strips, _) = stacked.strips(axis, cell, &colors);
        // After the free the upper block moves down.
        let expected = match kind {
            AxisKind::Event => {
                [[1.0, 512.0, 2.0, 515.0], [0.0, 0.0, 2.0, 512.0], [2.0, 0.0, 3.0, 3.0]]
            }
            _ => [[1.0, 512.0, 3.0, 515.0], [0.0, 0.0, 3.0, 512.0], [3.0, 0.0, 8.0, 3.0]],
        };
        let sorted = |mut positions: Vec<[f32; 4]>| {
            positions.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
            positions
        };
        assert_eq!(sorted(strips.positions), sorted(expected.to_vec()), "{kind:?}");
        check_exactly(&mut stacked, axis, &colors, cell);
        // Half a byte above 100 GiB is inside the small block.
        let point = PickPoint {
            kx: 0,
            ky: 0,
            slot: slot as f64,
            bytes: (100 * GIB) as f64 + 0.5,
            cell_rows: 1024,
            detail: Detail::Blocks,
        };
        assert_eq!(
            stacked.timeline.pick(axis, point).map(|picked| (picked.bytes, picked.count)),
            Some((512, 1))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn strips_of_random_traces_reach_the_curve(
        steps in proptest::collection::vec(any::<(u8, u32, u16)>(), 1..120),
    ) {
        let snapshot = load(random_trace(&steps).as_bytes());
        check_all("random", &snapshot);
    }

    #[test]
    fn strips_of_random_cells_are_exact(
        steps in proptest::collection::vec(any::<(u8, u32, u16)>(), 1..400),
        picks in proptest::collection::vec(any::<u32>(), 12),
    ) {
        let snapshot = load(random_trace(&steps).as_bytes());
        check_cells(&snapshot, &picks);
    }
}
