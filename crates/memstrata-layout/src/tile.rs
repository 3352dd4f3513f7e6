//! A viewport query: the strips of one cell of a global grid.
//!
//! A column shows one state that the device was really in: of those in the column the first at which the total is
//! largest. So the drawn height is the curve's maximum there, and no peak is lost, however many events share a column.
//! A block's strip goes on from column to column while it does not change.

use crate::axis::Axis;
use crate::colour::Colours;
use crate::sumtree::Piece;
use crate::sweep::Sweep;
use memstrata_analysis::Trace;
use memstrata_render::{MERGED, Strips};

/// Which cell: columns `2^kx` slots wide, rows `2^ky` bytes high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Log2 of the slots in a column.
    pub kx: u8,
    /// Log2 of the bytes in a row.
    pub ky: u8,
    /// The first slot.
    pub slot: u64,
    /// How many columns.
    pub columns: u32,
    /// The lowest byte.
    pub low: u64,
    /// How many rows.
    pub rows: u32,
}

/// The most strips that a cell may have before it is drawn coarser.
pub const STRIP_BUDGET: usize = 32 * 1024;

/// What a query cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Nodes of the sum tree visited.
    pub nodes: u64,
    /// States that the sweep passed.
    pub states: u64,
    /// How often the query was repeated with a coarser threshold to meet the budget.
    pub retries: u32,
}

/// Answers queries about one trace; keeps the last state, so that neighbouring queries are quick.
pub struct Timeline {
    sweep: Sweep,
}

impl Timeline {
    /// For one trace; all queries must be about the same one.
    pub fn new(trace: &Trace) -> Self {
        Self { sweep: Sweep::new(trace) }
    }

    /// The strips of a cell, in its columns and rows, x before y.
    pub fn strips(&mut self, axis: Axis<'_>, cell: Cell, colours: &Colours) -> (Strips, Cost) {
        let mut cost = Cost::default();
        let mut least = row_threshold(cell.ky);
        loop {
            if let Some(strips) = self.attempt(axis, cell, colours, least, &mut cost) {
                return (strips, cost);
            }
            cost.retries += 1;
            least *= 2;
        }
    }

    /// `None` when there would be more strips than the budget.
    fn attempt(
        &mut self,
        axis: Axis<'_>,
        cell: Cell,
        colours: &Colours,
        least: u64,
        cost: &mut Cost,
    ) -> Option<Strips> {
        let (low, high) = (cell.low, cell.low.saturating_add(u64::from(cell.rows) << cell.ky));
        let mut strips = Strips::default();
        let mut open: Vec<(Piece, u32)> = Vec::new();
        let mut still_open = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut last_state = None;
        let put = |strips: &mut Strips, (piece, x0): (Piece, u32), x1: u32| {
            let y = |bytes: u64| (bytes.clamp(low, high) - low) as f64 / (1u64 << cell.ky) as f64;
            let block = if piece.merged { piece.block | MERGED } else { piece.block };
            let position = [x0 as f32, y(piece.low) as f32, x1 as f32, y(piece.high) as f32];
            // Less than a float can tell apart at this scale: its neighbours already meet.
            if position[1] < position[3] {
                strips.push(position, colours.of(piece.block), block);
            }
        };
        for column in 0..cell.columns {
            let from = cell.slot + (u64::from(column) << cell.kx);
            let Some(state) = shown_state(axis, from, cell.kx) else {
                for strip in open.drain(..) {
                    put(&mut strips, strip, column);
                }
                break;
            };
            if last_state == Some(state) {
                continue;
            }
            cost.states += u64::from(last_state.map_or(0, |last: u32| state.abs_diff(last)));
            last_state = Some(state);
            self.sweep.seek(axis.trace(), state);
            pieces.clear();
            cost.nodes += self.sweep.tree.walk(low, high, least, |piece| pieces.push(piece));
            // Both lists go upwards, so equal pieces are met in one pass.
            let mut before = open.drain(..).peekable();
            for &piece in &pieces {
                while let Some(strip) = before.next_if(|(old, _)| old.low < piece.low) {
                    put(&mut strips, strip, column);
                }
                match before.next_if(|(old, _)| *old == piece) {
                    Some(strip) => still_open.push(strip),
                    None => still_open.push((piece, column)),
                }
            }
            for strip in before {
                put(&mut strips, strip, column);
            }
            std::mem::swap(&mut open, &mut still_open);
            if strips.len() + open.len() > STRIP_BUDGET {
                return None;
            }
        }
        for strip in open.drain(..) {
            put(&mut strips, strip, cell.columns);
        }
        Some(strips)
    }

    pub(crate) fn sweep(&mut self) -> &mut Sweep {
        &mut self.sweep
    }
}

/// What is lower than half a row is merged.
pub(crate) fn row_threshold(ky: u8) -> u64 {
    (1u64 << ky).div_ceil(2)
}

/// The state that a column shows: the first at which the total is largest.
pub(crate) fn shown_state(axis: Axis<'_>, from: u64, kx: u8) -> Option<u32> {
    let states = axis.states_in(from..from.saturating_add(1 << kx));
    let totals = axis.trace().requested.get(states.start as usize..states.end as usize)?;
    let mut best = (states.start, *totals.first()?);
    for (state, &total) in (states.start..).zip(totals) {
        if total > best.1 {
            best = (state, total);
        }
    }
    Some(best.0)
}
