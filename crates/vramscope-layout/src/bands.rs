//! Lines over the stack: allocated, active and reserved bytes.

use crate::axis::Axis;
use crate::tile::{Cell, States, shown_state};
use vramscope_analysis::Series;
use vramscope_render::{Color, NO_BLOCK, Strips};

/// Adds a line for each series, in its color. A series has one value per state.
///
/// A column's value is that of the state in `states`, which must have been found. Lines are two
/// rows high. At a jump a strip one column wide joins the two heights.
pub fn lines(axis: Axis<'_>, states: &States, series: &[(&Series, Color)], strips: &mut Strips) {
    let cell = states.cell();
    let before =
        cell.slot.checked_sub(1 << cell.kx).and_then(|from| shown_state(axis, from, cell.kx));
    for &(series, color) in series {
        push_line(cell, before, states.found(), series, color, strips);
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
    let rows = i64::from(cell.rows);
    let bottom = (cell.low >> cell.ky) as i64;
    // The middle of the line in rows of the cell. At least 1 above the ground, so that the line's
    // lower half is not cut off.
    let row_at = |state: Option<u32>| {
        let value = series.at(state?);
        Some(((value >> cell.ky) as i64).max(1) - bottom)
    };
    let mut push_strip = |x0: u32, x1: u32, y0: i64, y1: i64| {
        let [y0, y1] = [y0, y1].map(|y| y.clamp(0, rows));
        if x0 < x1 && y0 < y1 {
            strips.push([x0 as f32, y0 as f32, x1 as f32, y1 as f32], color, NO_BLOCK);
        }
    };
    let mut last = row_at(before);
    let mut since = 0;
    for column in 0..=cell.columns {
        let row = row_at(states.get(column as usize).copied());
        if row == last && column < cell.columns {
            continue;
        }
        if let Some(old) = last {
            push_strip(since, column, old - 1, old + 1);
            match row {
                Some(new) if new > old + 2 => push_strip(column, column + 1, old - 1, new - 1),
                Some(new) if new + 2 < old => push_strip(column, column + 1, new + 1, old + 1),
                _ => {}
            }
        }
        if row.is_none() {
            return;
        }
        (last, since) = (row, column);
    }
}
