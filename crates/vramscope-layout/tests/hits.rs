//! Hits of a search in merged strips: a picture of any height shows the share that they have.

use std::path::Path;
use std::sync::Arc;
use vramscope_layout::{
    Axis, AxisKind, Cell, Color, Colors, Detail, Drawing, MERGED, StackOrder, Strips, Timeline,
};
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Sites, Trace};

/// The largest rounding error of a share: it has 256 steps.
const TOLERANCE: f64 = 1.0 / 256.0;

const GROUPS: u32 = 5;

fn test_data(name: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let mut reader = Reader::default();
    reader.feed(&std::fs::read(path).expect("the test file is readable")).expect("a snapshot");
    reader.finish().expect("a valid snapshot").remove(0).snapshot
}

/// One block in seven: most small ones have no hit beside them.
fn is_hit(block: u32) -> bool {
    block % 7 == 3
}

/// A stack, grouped or not, that sums the hits of a search apart.
fn timeline(trace: &Trace, is_grouped: bool, colors: &Colors) -> Timeline {
    now(async |budget| {
        let mut timeline = if is_grouped {
            let groups: Vec<u32> = (0..trace.blocks.len() as u32).map(|b| b % GROUPS).collect();
            let order = StackOrder::new(&groups, GROUPS as usize, budget).await;
            Timeline::grouped(trace, Arc::new(order), budget).await
        } else {
            Timeline::new(trace, budget).await
        };
        timeline.keep_hits(trace, colors, budget).await;
        timeline
    })
}

fn strips(timeline: &mut Timeline, mut drawing: Drawing, at: (Axis<'_>, &Colors)) -> Strips {
    while !timeline.draw(&mut drawing, at.0, at.1, u64::MAX) {}
    drawing.finish().0
}

/// The share of hits that is drawn in a column.
fn drawn_share(strips: &Strips, column: u32) -> f64 {
    let there = |at: &[f32; 4]| at[0] <= column as f32 && (column as f32) < at[2];
    let (mut hits, mut all) = (0.0, 0.0);
    for (at, &color) in strips.positions.iter().zip(&strips.colors) {
        if there(at) {
            let height = f64::from(at[3] - at[1]);
            hits += height * Color::from_word(color).share();
            all += height;
        }
    }
    hits / f64::max(all, f64::MIN_POSITIVE)
}

#[test]
fn the_share_of_hits_is_drawn_at_every_height() {
    let snapshot = test_data("recorded/t26/gpt_small.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let axis = Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
    let colors = now(async |budget| {
        let colors = Colors::by_site(trace, &Sites::new(&snapshot), budget).await;
        colors.dimmed(is_hit, budget).await
    });
    let columns = 64;
    let kx = (axis.extent() / u64::from(columns)).ilog2() as u8 + 1;
    // The first state of each column at which the total is largest, by brute force.
    let expected: Vec<f64> = (0..columns)
        .map_while(|column| {
            let states = column << kx..((column + 1) << kx).min(trace.slots());
            let state = states.rev().max_by_key(|&state| trace.requested.at(state))?;
            let bytes = |keep: &dyn Fn(u32) -> bool| -> u64 {
                (0..trace.blocks.len() as u32)
                    .filter(|&b| trace.blocks[b as usize].is_live_at(state) && keep(b))
                    .map(|b| trace.blocks[b as usize].bytes.0)
                    .sum()
            };
            Some(bytes(&is_hit) as f64 / bytes(&|_| true).max(1) as f64)
        })
        .collect();
    let peak = trace.requested_band.peak as u64;
    for is_grouped in [false, true] {
        let mut timeline = timeline(trace, is_grouped, &colors);
        // Pixels of the plot: rows are at most as many. The last merge nearly everything.
        for pixels in [600, 900, 1000, 40, 7] {
            let ky = (peak / pixels).max(1).ilog2() as u8 + 1;
            let rows = (peak >> ky) as u32 + 1;
            let cell = Cell { kx, ky, slot: 0, columns, low: 0, rows };
            let strips = strips(&mut timeline, Drawing::new(cell, Detail::Hits), (axis, &colors));
            for (column, expected) in expected.iter().enumerate() {
                let drawn = drawn_share(&strips, column as u32);
                assert!(
                    (drawn - expected).abs() <= TOLERANCE,
                    "column {column} of {pixels} pixels: {drawn} of {expected}"
                );
            }
            let is_part = |&word: &u32| {
                let share = Color::from_word(word).share();
                0.0 < share && share < 1.0
            };
            assert!(strips.colors.iter().any(is_part), "some strips merge hits and others");
            for (&block, &word) in strips.blocks.iter().zip(&strips.colors) {
                let is_lit = Color::from_word(word).plain() != Color::DIMMED;
                assert_eq!(is_lit, is_hit(block & !MERGED), "a lit strip names a hit");
            }
        }
    }
}

#[test]
fn groups_of_one_color_have_edges_and_shades() {
    let snapshot = test_data("recorded/t26/gpt_small.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let axis = Axis::new(trace, AxisKind::Event).expect("every trace has an event axis");
    let colors = now(async |budget| {
        let none = vramscope_layout::Colors::by_size(trace, budget).await;
        none.dimmed(|_| true, budget).await
    });
    let mut timeline = timeline(trace, true, &colors);
    let peak = trace.requested_band.peak as u64;
    let ky = (peak / 600).max(1).ilog2() as u8 + 1;
    let slot = u64::from(trace.slots()) / 2;
    let cell = Cell { kx: 0, ky, slot, columns: 1, low: 0, rows: 1024 };
    let drawn = strips(&mut timeline, Drawing::new(cell, Detail::Bands).shaded(), (axis, &colors));
    let mut pieces: Vec<usize> = (0..drawn.len()).collect();
    pieces.sort_by(|&a, &b| drawn.positions[a][1].total_cmp(&drawn.positions[b][1]));
    let mut below: Option<u32> = None;
    let mut edges = 0;
    for piece in pieces {
        let color = Color::from_word(drawn.colors[piece]);
        let height = drawn.positions[piece][3] - drawn.positions[piece][1];
        // A piece of less than a row may have blocks of several groups.
        let group = (height >= 1.0).then(|| (drawn.blocks[piece] & !MERGED) % GROUPS);
        if let Some(group) = group {
            assert_eq!(color.shade(), group % Color::SHADES);
        }
        if let (Some(below), Some(group)) = (below, group) {
            assert_eq!(color.is_edged(), below != group);
            edges += u32::from(color.is_edged());
        }
        below = group;
    }
    assert_eq!(edges, GROUPS - 1, "one line between two bands");
    let plain = strips(&mut timeline, Drawing::new(cell, Detail::Bands), (axis, &colors));
    assert!(plain.colors.iter().all(|&word| Color::from_word(word).shade() == 0));
}
