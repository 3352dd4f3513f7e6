//! Lines over the stack: allocated, active and reserved bytes.

use crate::axis::Axis;
use crate::tile::{Cell, States, shown_state};
use vramscope_render::{Color, NO_BLOCK, Strips};
use vramscope_trace::Series;

/// Distance in rows from a cell at which lines are added to it. Half a line with its casing is less
/// high, at any resolution of the screen.
const MARGIN_ROWS: f64 = 16.0;

/// Adds a stepped line for each series, in its color.
///
/// A column's value is that of the state in `states`, which must have been found. A level stretch
/// is a strip without height. At a jump, a strip without width joins the two heights at the left
/// edge of the later column. The casing of a line lies below all of its strips.
pub fn lines(axis: Axis<'_>, states: &States, series: &[(&Series, Color)], strips: &mut Strips) {
    let cell = states.cell();
    let before =
        cell.slot.checked_sub(1 << cell.kx).and_then(|from| shown_state(axis, from, cell.kx));
    for &(series, color) in series {
        for color in [Color::CASING, color] {
            push_line(cell, before, states.found(), series, color, strips);
        }
    }
}

/// Adds the area below the top of the stack, in one neutral color. It covers the pixels that the
/// blocks of a cell will cover.
///
/// The states of the columns must have been found.
pub fn outline(axis: Axis<'_>, states: &States, strips: &mut Strips) {
    let cell = states.cell();
    let (low, row) = (cell.low as f64, (1u64 << cell.ky) as f64);
    let rows = f64::from(cell.rows);
    let top_of = |state: u32| {
        ((axis.trace().requested.at(state) as f64 - low) / row).clamp(0.0, rows) as f32
    };
    let mut since = 0;
    for level in states.found().chunk_by(|&a, &b| top_of(a) == top_of(b)) {
        let (top, end) = (top_of(level[0]), since + level.len());
        if top > 0.0 {
            strips.push([since as f32, 0.0, end as f32, top], Color::NO_STACK, NO_BLOCK);
        }
        since = end;
    }
}

/// `before` is the state of the column left of the cell.
fn push_line(
    cell: Cell,
    before: Option<u32>,
    states: &[u32],
    series: &Series,
    color: Color,
    strips: &mut Strips,
) {
    let (low, row) = (cell.low as f64, (1u64 << cell.ky) as f64);
    let height_of = |state: u32| (series.at(state) as f64 - low) / row;
    let [bottom, top] = [-MARGIN_ROWS, f64::from(cell.rows) + MARGIN_ROWS];
    let mut push = |x: [u32; 2], from: f64, to: f64| {
        let [y0, y1] = [from, to].map(|y| y.clamp(bottom, top) as f32);
        let is_near = from.max(to) > bottom && from.min(to) < top;
        if is_near && (x[0] < x[1] || y0 < y1) {
            strips.push([x[0] as f32, y0, x[1] as f32, y1], color, NO_BLOCK);
        }
    };
    let mut last = before.map(height_of);
    let mut since = 0;
    for column in 0..=states.len() as u32 {
        let height = states.get(column as usize).map(|&state| height_of(state));
        if height == last && height.is_some() {
            continue;
        }
        if let Some(old) = last {
            if since < column {
                push([since, column], old, old);
            }
            if let Some(new) = height {
                push([column, column], old.min(new), old.max(new));
            }
        }
        (last, since) = (height, column);
    }
}
