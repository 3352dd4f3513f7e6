//! Upper bounds on the cost of queries, in counts, at all scales: on generated traces of up to
//! 300,000 blocks and on recordings.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use vramscope_layout::{
    Axis, AxisKind, Cell, Colors, Cost, Detail, Drawing, PickPoint, STRIP_BUDGET, StackOrder,
    TILE_COLUMNS, TILE_ROWS, Timeline,
};
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Sites, Trace};

/// Maximum nodes visited per column and row of a cell. See the documentation of [`Timeline`].
const MAX_NODES: u64 = 4;
/// Blocks per leaf of the sum tree.
const LEAF_BLOCKS: u64 = 16;

fn load(bytes: &[u8]) -> Snapshot {
    let mut reader = Reader::default();
    reader.feed(bytes).expect("a valid snapshot");
    reader.finish().expect("a valid snapshot").remove(0).snapshot
}

fn test_data(name: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    load(&std::fs::read(path).expect("the test file is readable"))
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A trace of `blocks` blocks, of which about `live` are live at a time. Most blocks live for a
/// short time, and some live until the end. Sizes are `512 * size(random)` bytes.
fn generated(blocks: u64, live: u64, size: impl Fn(&mut Random) -> u64) -> Snapshot {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut json = String::with_capacity(blocks as usize * 130);
    json.push_str("{\"segments\":[],\"device_traces\":[[");
    let mut time = 1_700_000_000_000_000;
    let mut held: Vec<u64> = Vec::new();
    let mut put = |random: &mut Random, action, address: u64, bytes: u64| {
        // Mostly less than 20 µs apart, with a pause of 100 ms for one event in 1,000.
        time += if random.below(1000) == 0 { 100_000 } else { random.below(20) };
        let comma = if json.ends_with('[') { "" } else { "," };
        write!(
            json,
            "{comma}{{\"action\":\"{action}\",\"addr\":{address},\"size\":{bytes},\
             \"time_us\":{time}}}"
        )
        .expect("writing to a String cannot fail");
    };
    let mut sizes = Vec::with_capacity(blocks as usize);
    for block in 0..blocks {
        sizes.push(512 * size(&mut random));
        put(&mut random, "alloc", (block + 1) << 30, sizes[block as usize]);
        held.push(block);
        if held.len() as u64 > live {
            // One of the latest 100 live blocks, or one of the later half.
            let among = if random.below(4) == 0 { live / 2 } else { 100 };
            let at = held.len() - 1 - random.below(among) as usize;
            let freed = held.remove(at);
            put(&mut random, "free_completed", (freed + 1) << 30, sizes[freed as usize]);
        }
    }
    json.push_str("]]}");
    load(json.as_bytes())
}

/// The cells that a page of 1600 x 800 pixels requests for a view around the middle. The view shows
/// the share `of_slots` of the slots and the share `of_bytes` of the bytes.
fn cells(axis: Axis<'_>, of_slots: f64, of_bytes: f64) -> Vec<Cell> {
    let whole = [axis.extent() as f64, axis.trace().requested_band.peak.max(1) as f64];
    let (width, height) = ((whole[0] * of_slots).max(1600.0), (whole[1] * of_bytes).max(64.0));
    let kx = (width / 1600.0).max(1.0).log2().ceil() as u8;
    let ky = (height / 800.0).max(1.0).log2().floor() as u8;
    let range = |whole: f64, shown: f64, lines: u32, k: u8| {
        let from = ((whole - shown) / 2.0).max(0.0);
        let size = f64::from(lines) * f64::from(k).exp2();
        (from / size) as u64..((from + shown).min(whole) / size).ceil() as u64
    };
    let columns = range(whole[0], width, TILE_COLUMNS, kx);
    let rows = range(whole[1], height, TILE_ROWS, ky);
    let cell = |ix: u64, iy: u64| Cell {
        kx,
        ky,
        slot: (ix * u64::from(TILE_COLUMNS)) << kx,
        columns: TILE_COLUMNS,
        low: (iy * u64::from(TILE_ROWS)) << ky,
        rows: TILE_ROWS,
    };
    rows.flat_map(|iy| columns.clone().map(move |ix| cell(ix, iy))).collect()
}

/// Checks the bounds for the cells of all scales, with and without groups. Returns the total cost
/// of ungrouped cells, and their number.
fn check(name: &str, snapshot: &Snapshot) -> (Cost, u64) {
    let trace = &Trace::all(snapshot)[0];
    let cost = check_stack(
        name,
        snapshot,
        (trace, now(async |budget| Timeline::new(trace, budget).await)),
        None,
    );
    // Few groups of many blocks, as categories are, and many groups, as lines are. Blocks that are
    // allocated one after the other are in different groups, as in a forward pass.
    let details = [(11, Detail::Blocks), (11, Detail::Bands), (1000, Detail::Bands)];
    for (count, detail) in details {
        let groups: Vec<u32> = (0..trace.blocks.len() as u32).map(|i| i % count).collect();
        let name = format!("{name}, {count} groups, {detail:?}");
        let order = now(async |budget| StackOrder::new(&groups, count as usize, budget).await);
        let timeline = now(async |budget| Timeline::grouped(trace, Arc::new(order), budget).await);
        check_stack(&name, snapshot, (trace, timeline), Some(detail));
    }
    cost
}

fn check_stack(
    name: &str,
    snapshot: &Snapshot,
    (trace, mut timeline): (&Trace, Timeline),
    grouped: Option<Detail>,
) -> (Cost, u64) {
    let (is_grouped, detail) = (grouped.is_some(), grouped.unwrap_or_default());
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(snapshot), budget).await);
    let leaves = (trace.blocks.len() as u64).div_ceil(LEAF_BLOCKS);
    let depth = u64::from(leaves.next_power_of_two().ilog2()) + 1;
    let (mut sum, mut count) = (Cost::default(), 0);
    for kind in [AxisKind::Event, AxisKind::Time] {
        let Some(axis) = Axis::new(trace, kind) else { continue };
        for (of_slots, of_bytes) in [
            (1.0, 1.0),
            (0.1, 1.0),
            (0.01, 1.0),
            (0.001, 1.0),
            (0.1, 0.1),
            (0.01, 0.1),
            (0.001, 0.01),
            (0.0, 0.0),
        ] {
            for cell in cells(axis, of_slots, of_bytes) {
                let mut drawing = Drawing::new(cell, detail);
                while !timeline.draw(&mut drawing, axis, &colors, u64::MAX) {}
                let (strips, cost) = drawing.finish();
                let name = format!("{name}, {cell:?}: {cost:?}");
                assert!(strips.len() <= STRIP_BUDGET, "{name}: {} strips", strips.len());
                let area = u64::from(cell.columns) * u64::from(cell.rows);
                // A grouped stack may need two more retries, each of which draws the cell again.
                let max_retries = if is_grouped { 6 } else { 4 };
                assert!(cost.retries <= max_retries, "{name}");
                let max_nodes = MAX_NODES * area * (1 + u64::from(max_retries)) / 5;
                assert!(cost.nodes <= max_nodes, "{name}");
                let end = cell.slot + (u64::from(cell.columns) << cell.kx);
                let states = axis.states_in(cell.slot..end);
                let events = u64::from(states.end - states.start);
                // The sweep moves to the first column and then through the cell. Each retry does so
                // again.
                let passes = 1 + u64::from(cost.retries);
                assert!(
                    cost.changes <= passes * (events + leaves),
                    "{name}: {events} events, {leaves} leaves"
                );
                assert!(
                    cost.updates <= depth * cost.changes + 2 * passes * leaves,
                    "{name}: {depth} levels"
                );
                sum.nodes += cost.nodes;
                sum.changes += cost.changes;
                sum.updates += cost.updates;
                sum.retries += cost.retries;
                count += 1;
            }
        }
    }
    (sum, count)
}

#[test]
fn cost_of_mixed_sizes_is_bounded() {
    // Half of the blocks are small, and 2 % are large.
    let snapshot = generated(300_000, 10_000, |random| match random.below(100) {
        0..50 => 1 + random.below(8),
        50..98 => 8 + random.below(2000),
        _ => 20_000 + random.below(100_000),
    });
    let (cost, cells) = check("mixed sizes", &snapshot);
    assert!(cells > 50);
    // The average is far below the bound, because adjacent columns share most of the stack.
    assert!(
        cost.nodes / cells < u64::from(TILE_COLUMNS) * u64::from(TILE_ROWS),
        "{cost:?} for {cells} cells"
    );
}

#[test]
fn cost_of_small_blocks_is_bounded() {
    let (cost, _) = check("small blocks", &generated(100_000, 30_000, |_| 1));
    assert!(cost.retries > 0, "no cell is merged further: {cost:?}");
}

#[test]
fn cost_of_recordings_is_bounded() {
    for name in [
        "recorded/t26/gpt_small.pickle.gz",
        "recorded/t20/resnet50_ok.pickle.gz",
        "recorded/t26/oom_observer.pickle.gz",
        "recorded/gpt_late.pickle.gz",
        "edge/segments_only.pickle",
    ] {
        check(name, &test_data(name));
    }
}

#[test]
fn sliced_drawing_equals_unsliced() {
    let snapshot = generated(60_000, 5_000, |random| 1 + random.below(500));
    let trace = &Trace::all(&snapshot)[0];
    let axis = Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(&snapshot), budget).await);
    let mut random = Random(7);
    let (mut unsliced, mut sliced) = (
        now(async |budget| Timeline::new(trace, budget).await),
        now(async |budget| Timeline::new(trace, budget).await),
    );
    for cell in cells(axis, 1.0, 1.0).into_iter().chain(cells(axis, 0.05, 0.3)) {
        let (whole, cost) = unsliced.strips(axis, cell, &colors);
        let work = 20_000;
        let mut drawing = Drawing::new(cell, Detail::Blocks);
        let mut slices = 1;
        while !sliced.draw(&mut drawing, axis, &colors, work) {
            slices += 1;
            // A query about another place moves the sweep between two slices.
            let point = PickPoint {
                kx: 0,
                ky: 9,
                slot: random.below(axis.extent()) as f64,
                bytes: random.below(1 << 20) as f64,
                cell_rows: TILE_ROWS,
                detail: Detail::Blocks,
            };
            sliced.pick(axis, point);
        }
        let (strips, spent) = drawing.finish();
        assert!(strips == whole, "{cell:?} in {slices} slices");
        // The number of slices follows from the work. The work includes moving the sweep back.
        assert!(slices > 1 || spent.work() < 2 * work, "{spent:?}");
        assert!(slices <= spent.work() / work + 1, "{slices} slices for {spent:?}");
        assert_eq!((spent.nodes, spent.retries), (cost.nodes, cost.retries));
    }
}

#[test]
fn columns_do_not_depend_on_their_predecessors() {
    // A cell of one column walks the whole stack. In a larger cell only the part above the lowest
    // changed block is walked. Sizes range from far below a row to more than a row.
    let snapshot = generated(20_000, 2_000, |random| {
        if random.below(3) == 0 { 1 + random.below(400) } else { 1 + random.below(9) }
    });
    let trace = &Trace::all(&snapshot)[0];
    let axis = Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(&snapshot), budget).await);
    let (mut single, mut many) = (
        now(async |budget| Timeline::new(trace, budget).await),
        now(async |budget| Timeline::new(trace, budget).await),
    );
    let mut random = Random(11);
    let mut compared = 0;
    for ky in 12..20 {
        for kx in [0, 0, 0, 2, 5] {
            let (columns, rows) = (128, 1024);
            let slot = random.below(axis.extent() - (u64::from(columns) << kx));
            // At the top of the stack, where the newest blocks are, or at a random height.
            let top = trace.requested.at(slot as u32);
            let height = if random.below(4) > 0 { top } else { random.below(top + 1) };
            let low = ((height >> ky) / u64::from(rows) * u64::from(rows)) << ky;
            let cell = Cell { kx, ky, slot, columns, low, rows };
            let (strips, cost) = many.strips(axis, cell, &colors);
            if cost.retries > 0 {
                continue; // the threshold then depends on all columns
            }
            for column in 0..columns {
                let alone = Cell { slot: slot + (u64::from(column) << kx), columns: 1, ..cell };
                let (whole, _) = single.strips(axis, alone, &colors);
                let list = |strips: &vramscope_layout::Strips, column: f32| {
                    let mut list: Vec<(u32, u32, u32)> = (0..strips.len())
                        .map(|i| (strips.positions[i], strips.blocks[i]))
                        .filter(|(p, _)| p[0] <= column && column < p[2])
                        .map(|(p, block)| (p[1].to_bits(), p[3].to_bits(), block))
                        .collect();
                    list.sort_unstable();
                    list
                };
                assert!(
                    list(&strips, column as f32) == list(&whole, 0.0),
                    "{cell:?}, column {column}"
                );
                compared += whole.len();
            }
        }
    }
    assert!(compared > 100_000, "{compared}");
}

#[test]
fn coarsening_leaves_quiet_bands_unchanged() {
    // 2,000 small blocks stay live. In the first two thirds of the trace, thousands of blocks above
    // them are allocated and freed.
    let mut random = Random(5);
    let mut json = String::from("{\"segments\":[],\"device_traces\":[[");
    let mut put = |action: &str, block: u64, size: u64| {
        let comma = if json.ends_with('[') { "" } else { "," };
        let address = (block + 1) << 30;
        write!(json, "{comma}{{\"action\":\"{action}\",\"addr\":{address},\"size\":{size}}}")
            .expect("writing to a String cannot fail");
    };
    let mut still = 0;
    for block in 0..2000 {
        let size = 512 * (1 + random.below(40));
        still += size;
        put("alloc", block, size);
    }
    let sizes: Vec<u64> = (0..2000).map(|_| 512 * (1 + random.below(40))).collect();
    for round in 0..30 {
        for (block, &size) in (2000 + 2000 * round..).zip(&sizes) {
            put("alloc", block, size);
        }
        for (block, &size) in (2000 + 2000 * round..).zip(&sizes) {
            put("free_completed", block, size);
        }
    }
    for round in 0..30_000 {
        put("alloc", 100_000 + round, 512);
        put("free_completed", 100_000 + round, 512);
    }
    json.push_str("]]}");
    let snapshot = load(json.as_bytes());
    let trace = &Trace::all(&snapshot)[0];
    let axis = Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(&snapshot), budget).await);
    let mut timeline = now(async |budget| Timeline::new(trace, budget).await);
    let cell =
        |slot: u64| Cell { kx: 7, ky: 15, slot, columns: TILE_COLUMNS, low: 0, rows: TILE_ROWS };
    // The strips of column 100, up to 90 % of the height of the blocks that stay live.
    let mut below = |slot: u64| {
        let (strips, cost) = timeline.strips(axis, cell(slot), &colors);
        let mut list: Vec<(u32, u32, u32)> = (0..strips.len())
            .map(|i| (strips.positions[i], strips.blocks[i]))
            .filter(|(p, _)| {
                p[0] <= 100.0 && 100.0 < p[2] && f64::from(p[3]) < (still >> 15) as f64 * 0.9
            })
            .map(|(p, block)| (p[1].to_bits(), p[3].to_bits(), block))
            .collect();
        list.sort_unstable();
        (list, cost.retries)
    };
    let (busy, busy_retries) = below(0);
    let (quiet, quiet_retries) = below(2000 + 120_000);
    assert!(busy_retries > 0 && quiet_retries == 0, "{busy_retries} {quiet_retries}");
    assert!(quiet.len() > 300, "{}", quiet.len());
    assert!(busy == quiet, "{} strips and {}", busy.len(), quiet.len());
}
