//! What a viewport query promises, on random traces, on the edge cases and on recordings, at every scale.

use memstrata_analysis::{Sites, Trace};
use memstrata_layout::{Axis, AxisKind, Cell, Colours, MERGED, Place, STRIP_BUDGET, Timeline};
use memstrata_snapshot::{Reader, Snapshot};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;

fn load(bytes: &[u8]) -> Snapshot {
    let mut reader = Reader::default();
    reader.feed(bytes).expect("a snapshot");
    reader.finish().expect("a snapshot").remove(0).snapshot
}

fn test_data(name: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    load(&std::fs::read(path).expect("a file of test_data"))
}

/// The largest total among the states that a column of slots shows, by looking at every one of them.
fn maximum(axis: Axis<'_>, trace: &Trace, from: u64, to: u64) -> Option<u64> {
    if from >= axis.extent() {
        return None;
    }
    let visible = |state: u32| {
        let begins = axis.slot_of(state);
        let ends = axis.slot_of(state + 1);
        // A state that begins in the column is in it, even when it lasts no time; so is one that began before and
        // lasts into it.
        (from <= begins && begins < to) || (begins < from && from < ends)
    };
    (0..trace.slots()).filter(|&s| visible(s)).map(|s| trace.requested[s as usize]).max()
}

/// All promises for all cells of a trace at one scale.
fn check(name: &str, snapshot: &Snapshot, trace: &Trace, kind: AxisKind, kx: u8, ky: u8) {
    let Some(axis) = Axis::new(trace, kind) else { return };
    let colours = Colours::by_site(trace, &Sites::new(snapshot));
    let mut timeline = Timeline::new(trace);
    let (columns, rows) = (16u32, 64u32);
    let height = (trace.requested_band.peak.max(0) as u64 >> ky) / u64::from(rows) + 1;
    let width = (axis.extent() >> kx) / u64::from(columns) + 1;
    // Whole stacks, cell by cell; at most so many of each kind.
    for ix in (0..width).step_by((width as usize / 6).max(1)) {
        let slot = (ix * u64::from(columns)) << kx;
        let mut drawn = vec![0f64; columns as usize];
        for iy in 0..height.min(200) {
            let low = (iy * u64::from(rows)) << ky;
            let cell = Cell { kx, ky, slot, columns, low, rows };
            let (strips, cost) = timeline.strips(axis, cell, &colours);
            assert!(strips.len() <= STRIP_BUDGET, "{name}");
            let bound = 8 * u64::from(columns) * u64::from(rows) + 64 * u64::from(columns) * 2;
            assert!(cost.retries > 0 || cost.nodes <= bound, "{name}: {} nodes for {columns} x {rows}", cost.nodes);
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
                // No gap and no overlap: each strip begins where the one below ends.
                for pair in spans.windows(2) {
                    assert_eq!(pair[0].1, pair[1].0, "{name}: column {column} of cell {ix}, {iy} at {kx}, {ky}");
                }
                if let (Some(first), Some(last)) = (spans.first(), spans.last()) {
                    assert_eq!(first.0, 0.0, "{name}: a stack stands on the ground");
                    drawn[column] = drawn[column].max(low as f64 + f64::from(last.1) * (1u64 << ky) as f64);
                }
            }
        }
        if height <= 200 {
            for (column, &drawn) in drawn.iter().enumerate() {
                let from = slot + ((column as u64) << kx);
                let expected = maximum(axis, trace, from, from + (1 << kx)).unwrap_or(0) as f64;
                let off = (drawn - expected).abs();
                // Rows are f32 within a cell: exact to a part in a million of the cell's height.
                assert!(
                    off <= f64::from(rows) * (1u64 << ky) as f64 * 1e-6,
                    "{name}: column at {from} is drawn to {drawn}, the curve's maximum there is {expected}"
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
fn scenarios_are_drawn_to_the_byte() {
    for i in 1..=20 {
        let name = format!("scenarios/f{i:02}.pickle");
        check_all(&name, &test_data(&name));
    }
}

#[test]
fn edge_cases_and_recordings_are_drawn_to_their_height() {
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
fn what_is_picked_is_what_is_drawn() {
    for name in ["recorded/t26/linear_seed_python.pickle", "recorded/gpt_late.pickle.gz", "scenarios/f13.pickle"] {
        let snapshot = test_data(name);
        let trace = &Trace::all(&snapshot)[0];
        let axis = Axis::new(trace, AxisKind::Event).expect("every trace has one");
        let colours = Colours::by_site(trace, &Sites::new(&snapshot));
        let mut timeline = Timeline::new(trace);
        let rows = 64;
        let ky = (trace.requested_band.peak as u64 / u64::from(rows)).max(1).ilog2() as u8 + 1;
        let kx = (axis.extent() / 64).max(1).ilog2() as u8 + 1;
        let cell = Cell { kx, ky, slot: 0, columns: 64, low: 0, rows };
        let (strips, _) = timeline.strips(axis, cell, &colours);
        assert!(!strips.is_empty(), "{name}");
        for (i, &[x0, y0, x1, y1]) in strips.positions.iter().enumerate() {
            if y1 - y0 < 0.01 {
                continue; // the middle of so thin a strip may round into its neighbour
            }
            let slot = f64::from(x0 + x1) / 2.0 * (1u64 << kx) as f64;
            let bytes = f64::from(y0 + y1) / 2.0 * (1u64 << ky) as f64;
            let place = Place { kx, ky, slot, bytes, cell_rows: rows };
            let picked = timeline.pick(axis, place).expect("there is a strip");
            assert_eq!(picked.block, strips.blocks[i] & !MERGED, "{name} strip {i}");
            assert_eq!(picked.count > 1, strips.blocks[i] & MERGED != 0, "{name} strip {i}");
            let members: u64 = trace
                .blocks
                .iter()
                .filter(|b| b.enters <= picked.state && picked.state < b.leaves)
                .map(|b| b.bytes.0)
                .sum();
            assert!(picked.bytes <= members, "{name}");
        }
        let above = Place { kx, ky, slot: 0.5, bytes: trace.requested_band.peak as f64 + 1.0, cell_rows: rows };
        assert_eq!(timeline.pick(axis, above), None, "{name}: nothing above the stack");
    }
}

/// A legal trace of allocs and frees over a few addresses, as JSON; sizes and order from the numbers given.
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
        .expect("a String takes all text");
        comma = ",";
    }
    out + "]]}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_traces_are_drawn_to_their_height(steps in proptest::collection::vec(any::<(u8, u32, u16)>(), 1..120)) {
        let snapshot = load(random_trace(&steps).as_bytes());
        check_all("random", &snapshot);
    }
}
