//! The map of segments: to scale, complete, without overlaps.

use std::collections::BTreeMap;
use std::path::Path;
use vramscope_layout::{CAME, MAPPED, RELEASED, STAYED, WENT};
use vramscope_layout::{Cell, Color, Colors, MERGED, NO_BLOCK, SegmentMap, Strips};
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Carving, Content, LiveSet, SegmentState, Sites, Trace};
use vramscope_trace::{PieceKind, changed_segments};

const UNITS: u32 = 4096;
/// Log2 of the bytes per column: no block is smaller than 512 bytes.
const KX: u8 = 9;
/// Bytes of a line in these tests.
const LINE: u64 = 8 << 20;

fn test_data(name: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let mut reader = Reader::default();
    reader.feed(&std::fs::read(path).expect("the test file is readable")).expect("a snapshot");
    reader.finish().expect("a snapshot").remove(0).snapshot
}

/// A cell with all lines of a map, in columns of `2^kx` bytes and rows of a unit each.
fn whole(map: &SegmentMap, kx: u8) -> Cell {
    let columns = map.line_bytes().div_ceil(1 << kx) as u32;
    Cell { kx, ky: 0, slot: 0, columns, low: 0, rows: map.units() as u32 }
}

/// The columns of each block over all lines; free memory is [`NO_BLOCK`].
fn columns(strips: &Strips) -> BTreeMap<u32, f64> {
    let mut sums = BTreeMap::new();
    for (&[x0, _, x1, _], &block) in strips.positions.iter().zip(&strips.blocks) {
        *sums.entry(block).or_default() += f64::from(x1) - f64::from(x0);
    }
    sums
}

#[test]
fn every_byte_of_every_segment_is_drawn_once() {
    for name in [
        "recorded/t26/gpt_small.pickle.gz",
        "recorded/gpt_max_split.pickle.gz",
        "scenarios/f05.pickle",
    ] {
        let snapshot = test_data(name);
        let trace = &Trace::all(&snapshot)[0];
        let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
        let colors =
            now(async |budget| Colors::by_site(trace, &Sites::new(&snapshot), budget).await);
        for slot in [0, trace.slots() / 3, trace.slots() / 2, trace.slots() - 1] {
            let states =
                now(async |budget| LiveSet::new(trace, slot, budget).await).segments(&carving);
            let (small, large): (Vec<_>, Vec<_>) =
                states.iter().partition::<Vec<&SegmentState>, _>(|s| s.size.0 <= 2 << 20);
            let groups: Vec<Vec<&SegmentState>> =
                [small, large].into_iter().filter(|group| !group.is_empty()).collect();
            let map = SegmentMap::new(&groups, LINE, UNITS);
            let sizes: Vec<u64> =
                groups.iter().map(|group| group.iter().map(|s| s.size.0).sum()).collect();
            let lines = SegmentMap::lines_for(&sizes, LINE);
            assert_eq!(map.units(), lines as f64 * f64::from(UNITS), "{name} in {slot}");
            let strips = map.strips(whole(&map, KX), &colors);
            let drawn = columns(&strips);
            let mut free = 0;
            let (mut blocks, mut ends) = (0, 0);
            for state in &states {
                for (index, piece) in state.pieces.iter().enumerate() {
                    let is_last = index + 1 == state.pieces.len();
                    let wanted = (piece.size.0 >> KX) as f64;
                    match piece.content {
                        Content::Free => {
                            free += piece.size.0 >> KX;
                            ends += u32::from(is_last);
                        }
                        Content::Block { block, .. } => {
                            blocks += 1;
                            // A gap of one column at the end of a segment.
                            let gap = if is_last { 1.0 } else { 0.0 };
                            let columns = drawn[&block];
                            assert!(
                                (wanted - gap..=wanted).contains(&columns),
                                "{name} in {slot}: block {block} has {columns} of {wanted}"
                            );
                            // Its parts are where it is drawn.
                            let parts = map.parts_of(block);
                            let bytes: u64 = parts.iter().map(|part| part.x[1] - part.x[0]).sum();
                            assert_eq!(bytes, piece.size.0);
                        }
                    }
                }
            }
            let drawn_free = drawn.get(&NO_BLOCK).copied().unwrap_or_default();
            assert!(
                drawn_free <= free as f64 && drawn_free + f64::from(ends) >= free as f64,
                "{name} in {slot}: {drawn_free} of {free} free columns"
            );
            assert_eq!(drawn.len() - usize::from(free > 0), blocks, "{name} in {slot}");
            assert!(strips.blocks.iter().all(|&b| b == NO_BLOCK || b & MERGED == 0));
            without_overlaps(&strips);
        }
    }
}

/// Asserts that strips in a line follow each other.
fn without_overlaps(strips: &Strips) {
    let mut ends: BTreeMap<u32, f32> = BTreeMap::new();
    for [x0, y0, x1, _] in &strips.positions {
        let end = ends.entry(y0.to_bits()).or_default();
        assert!(*end <= *x0, "strips of a line overlap");
        *end = *x1;
    }
}

#[test]
fn cells_meet_and_narrow_pieces_merge() {
    let snapshot = test_data("recorded/t26/gpt_small.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(&snapshot), budget).await);
    let states =
        now(async |budget| LiveSet::new(trace, trace.slots() / 2, budget).await).segments(&carving);
    let map = SegmentMap::new(&[states.iter().collect()], LINE, UNITS);
    let kx = 13;
    let all = map.strips(whole(&map, kx), &colors);
    assert!(all.blocks.iter().any(|&block| block != NO_BLOCK && block & MERGED != 0), "merged");
    without_overlaps(&all);
    let total = |strips: &Strips| columns(strips).values().sum::<f64>();
    // Two halves of each line, then two halves of the lines.
    let cell = whole(&map, kx);
    let half = cell.columns / 2;
    let parts = [
        Cell { columns: half, ..cell },
        Cell { slot: u64::from(half) << kx, columns: cell.columns - half, ..cell },
    ];
    let sum: f64 = parts.map(|cell| total(&map.strips(cell, &colors))).iter().sum();
    assert!((sum - total(&all)).abs() < 1.0 + f64::from(UNITS).recip(), "{sum} {}", total(&all));
    let lines = map.units() as u32 / UNITS;
    let upper = Cell { low: u64::from(lines / 2 * UNITS), rows: cell.rows, ..cell };
    let lower = Cell { rows: lines / 2 * UNITS, ..cell };
    let sum: f64 = [upper, lower].map(|cell| total(&map.strips(cell, &colors))).iter().sum();
    assert!((sum - total(&all)).abs() < 1e-3);
}

#[test]
fn a_map_without_segments_is_empty() {
    let map = SegmentMap::new(&[], LINE, UNITS);
    assert_eq!((map.units(), map.parts_of(0)), (0.0, Vec::new()));
    let snapshot = test_data("recorded/t26/gpt_small.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let colors = now(async |budget| Colors::by_site(trace, &Sites::new(&snapshot), budget).await);
    let cell = Cell { kx: 40, ky: 44, slot: 0, columns: 256, low: 0, rows: 256 };
    assert!(map.strips(cell, &colors).positions.is_empty());
}

#[test]
fn a_map_of_changes_draws_what_came_went_and_stayed() {
    let snapshot = test_data("recorded/t26/gpt_small.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
    let [from, to] = [trace.slots() / 5, trace.slots() - 1];
    let states =
        |slot: u32| now(async |budget| LiveSet::new(trace, slot, budget).await).segments(&carving);
    let is_live_in = |block: u32, slot: u32| {
        let block = &trace.blocks[block as usize];
        block.is_live_at(slot)
    };
    for [from, to] in [[from, to], [to, from]] {
        let changed = changed_segments(&states(from), states(to), |block| is_live_in(block, to));
        let group: Vec<_> =
            changed.iter().map(|segment| (&segment.state, &segment.kinds[..])).collect();
        let map = SegmentMap::changed(&[group], LINE, UNITS);
        let colors = now(async |budget| Colors::by_change(trace, [from, to], budget).await);
        let strips = map.strips(whole(&map, KX), &colors);
        let mut drawn: BTreeMap<u32, f64> = BTreeMap::new();
        for (&[x0, _, x1, _], &color) in strips.positions.iter().zip(&strips.colors) {
            *drawn.entry(color).or_default() += f64::from(x1) - f64::from(x0);
        }
        let mut wanted: BTreeMap<u32, f64> = BTreeMap::new();
        for segment in &changed {
            for (piece, kind) in segment.state.pieces.iter().zip(&segment.kinds) {
                let color = match (kind, piece.content) {
                    (PieceKind::Mapped, _) => MAPPED,
                    (PieceKind::Released, _) => RELEASED,
                    (PieceKind::Went, _) => WENT.hatched(),
                    (PieceKind::Now, Content::Free) => Color::SEGMENT.hatched(),
                    (PieceKind::Now, Content::Block { block, pending }) => {
                        let color = if is_live_in(block, from) { STAYED } else { CAME };
                        if pending { color.hatched() } else { color }
                    }
                };
                *wanted.entry(color.word()).or_default() += (piece.size.0 >> KX) as f64;
            }
        }
        assert!(wanted.len() >= 5, "{wanted:?}");
        assert!(drawn.keys().eq(wanted.keys()), "{drawn:?} {wanted:?}");
        for (color, wanted) in wanted {
            // A gap of one column at the end of a segment.
            let gaps = changed.len() as f64;
            assert!((wanted - gaps..=wanted).contains(&drawn[&color]), "{color}");
        }
        without_overlaps(&strips);
    }
}
