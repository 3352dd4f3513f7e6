//! A viewport query: the strips of one cell of a global grid.
//!
//! A column shows one state that the device was really in: of those in the column the first at
//! which the total is largest. So the drawn height is the curve's maximum there, and no peak is
//! lost, however many events share a column. A block's strip goes on from column to column while it
//! does not change.

use crate::axis::Axis;
use crate::color::Colors;
use crate::least::Least;
use crate::sumtree::Piece;
use crate::sweep::Sweep;
use vramscope_analysis::Trace;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_render::{MERGED, Strips};

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
    /// Nodes and blocks of the sum tree visited.
    pub nodes: u64,
    /// Nodes of it made anew.
    pub updates: u64,
    /// Changes of the trace looked at.
    pub changes: u64,
    /// How often the query was repeated with a coarser threshold to meet the budget.
    pub retries: u32,
}

impl Cost {
    /// All of it in one number, about proportional to the time that it takes.
    pub fn work(&self) -> u64 {
        self.nodes + self.updates + self.changes
    }
}

/// Answers queries about one trace; keeps the last state, so that neighboring queries are quick.
///
/// Only what changes from a column to the next is walked again, and blocks that come and go between
/// the two are passed over. `tests/budget.rs` holds queries to this, on made traces and on
/// recordings: at most 4 nodes visited for each of the cell's columns times rows; each change of
/// the trace in its range looked at once, and a sixteenth of all blocks at most to get there, as
/// much again for each retry; for each change at most as many nodes made anew as the tree has
/// levels. (That 4 is no theorem: blocks could be placed so that a walk goes down all levels for
/// each piece.) A retry at least doubles what is merged where most of it is, and leaves the rest of
/// the cell alone; tests see no more than four.
#[derive(Clone)]
pub struct Timeline {
    sweep: Sweep,
}

/// A cell on its way to strips.
#[derive(Debug)]
pub struct Drawing {
    cell: Cell,
    /// What is lower is merged.
    least: Least,
    /// The next column, and the state that the one before shows.
    column: u32,
    state: Option<u32>,
    /// What is in the column before, upwards, each with the column in which it begins.
    open: Vec<(Piece, u32)>,
    /// Room that is used again.
    closing: Vec<(Piece, u32)>,
    strips: Strips,
    cost: Cost,
}

impl Drawing {
    /// Of a cell, with nothing drawn yet.
    pub fn new(cell: Cell) -> Self {
        Self {
            cell,
            least: Least::of_rows(cell.low, cell.rows, cell.ky, row_threshold(cell.ky)),
            column: 0,
            state: None,
            open: Vec::new(),
            closing: Vec::new(),
            strips: Strips::default(),
            cost: Cost::default(),
        }
    }

    /// The cell.
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Hands over what has been drawn, in the cell's columns and rows, x before y; and says what it
    /// cost.
    pub fn finish(&mut self) -> (Strips, Cost) {
        (std::mem::take(&mut self.strips), self.cost)
    }

    fn high(&self) -> u64 {
        self.cell.low.saturating_add(u64::from(self.cell.rows) << self.cell.ky)
    }

    /// How many of the open pieces a change above `settled` cannot reach.
    fn settled(&self, settled: u64) -> usize {
        let end = self.open.partition_point(|(piece, _)| piece.high <= settled);
        // The last one would go on to grow, if what is above it became smaller.
        let grows =
            end > 0 && self.open[end - 1].0.bytes() < self.least.at(self.open[end - 1].0.low);
        end - usize::from(grows)
    }

    /// A strip ends before a column.
    fn put(&mut self, (piece, x0): (Piece, u32), x1: u32, colors: &Colors) {
        let (low, high) = (self.cell.low, self.high());
        let y = |bytes: u64| (bytes.clamp(low, high) - low) as f64 / (1u64 << self.cell.ky) as f64;
        let block = if piece.merged { piece.block | MERGED } else { piece.block };
        let position = [x0 as f32, y(piece.low) as f32, x1 as f32, y(piece.high) as f32];
        // Less than a float can tell apart at this scale: its neighbors already meet.
        if position[1] < position[3] {
            self.strips.push(position, colors.of(piece.block), block);
        }
    }

    /// Nothing goes on beyond the last column that was drawn.
    fn close(&mut self, colors: &Colors) {
        for strip in std::mem::take(&mut self.open) {
            self.put(strip, self.column, colors);
        }
        self.column = self.cell.columns;
    }

    /// Everything anew, and coarser where most of it is, so that what is still looks the same in
    /// this cell and in those beside it. The columns that are left count half of what they have if
    /// they are like those so far, since they may have less in them.
    fn again(&mut self) {
        let ahead = self.cell.columns / (self.column + 1);
        self.cost.retries += 1;
        let (low, ky) = (self.cell.low, self.cell.ky);
        let drawn = self.strips.positions.iter().map(|strip| low + ((strip[1] as u64) << ky));
        let open = self.open.iter().map(|(piece, _)| piece.low);
        let each = (ahead / 2).max(1) as usize;
        self.least.coarsen(drawn.chain(open), each, STRIP_BUDGET * each.min(2) / 2);
        self.column = 0;
        self.state = None;
        self.open.clear();
        self.strips.clear();
    }
}

impl Timeline {
    /// For one trace; all queries must be about the same one.
    pub fn new(trace: &Trace) -> Self {
        run_to_completion(Self::sliced(trace, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced(trace: &Trace, budget: &mut Budget) -> Self {
        Self { sweep: Sweep::new(trace, budget).await }
    }

    /// The strips of a cell, in its columns and rows, x before y.
    pub fn strips(&mut self, axis: Axis<'_>, cell: Cell, colors: &Colors) -> (Strips, Cost) {
        let mut drawing = Drawing::new(cell);
        while !self.draw(&mut drawing, axis, colors, u64::MAX) {}
        drawing.finish()
    }

    /// Goes on with a drawing until it is done, which it says, or has cost about so much
    /// [`Cost::work`] more: it ends with a column. Whatever else was asked in between, and however
    /// often it stopped, the strips are the same.
    pub fn draw(
        &mut self,
        drawing: &mut Drawing,
        axis: Axis<'_>,
        colors: &Colors,
        work: u64,
    ) -> bool {
        let end = drawing.cost.work().saturating_add(work);
        if let Some(state) = drawing.state {
            self.seek(drawing, axis, state);
        }
        while drawing.column < drawing.cell.columns && drawing.cost.work() < end {
            self.column(drawing, axis, colors);
        }
        if drawing.column >= drawing.cell.columns {
            drawing.close(colors);
            return true;
        }
        false
    }

    fn seek(&mut self, drawing: &mut Drawing, axis: Axis<'_>, state: u32) -> u64 {
        let moved = self.sweep.seek(axis.trace(), state, &drawing.least);
        drawing.cost.changes += moved.changes;
        drawing.cost.updates += moved.updates;
        moved.settled
    }

    fn column(&mut self, drawing: &mut Drawing, axis: Axis<'_>, colors: &Colors) {
        let Cell { kx, slot, low, .. } = drawing.cell;
        let from = slot.saturating_add(u64::from(drawing.column) << kx);
        let Some(state) = shown_state(axis, from, kx) else {
            drawing.close(colors);
            return;
        };
        if drawing.state != Some(state) {
            let settled = self.seek(drawing, axis, state);
            // In the first column nothing is open.
            let kept = drawing.settled(settled);
            drawing.state = Some(state);
            let mut closing = std::mem::take(&mut drawing.closing);
            closing.extend(drawing.open.drain(kept..));
            // Both go upwards, so equal pieces are met in one pass.
            let mut before = closing.drain(..).peekable();
            let bottom = drawing.open.last().map_or(low, |(piece, _)| piece.high);
            let (high, column) = (drawing.high(), drawing.column);
            // Lent to the walk, which hands pieces to the drawing.
            let least = std::mem::replace(&mut drawing.least, Least::even(1));
            let nodes = self.sweep.walk(axis.trace(), bottom, high, &least, &mut |piece| {
                while let Some(strip) = before.next_if(|(old, _)| old.low < piece.low) {
                    drawing.put(strip, column, colors);
                }
                let since =
                    before.next_if(|(old, _)| *old == piece).map_or(column, |(_, since)| since);
                drawing.open.push((piece, since));
            });
            for strip in before {
                drawing.put(strip, column, colors);
            }
            drawing.least = least;
            drawing.cost.nodes += nodes;
            drawing.closing = closing;
            if drawing.strips.len() + drawing.open.len() > STRIP_BUDGET {
                drawing.again();
                return;
            }
        }
        drawing.column += 1;
    }

    pub(crate) fn sweep(&mut self) -> &mut Sweep {
        &mut self.sweep
    }
}

/// What is lower than half a row is merged.
pub(crate) fn row_threshold(ky: u8) -> u64 {
    (1u64 << ky).div_ceil(2)
}

/// The state that each column of a cell shows, found some columns at a time: all states of a cell
/// may be looked at for them.
#[derive(Debug)]
pub struct States {
    cell: Cell,
    column: u32,
    found: Vec<u32>,
}

impl States {
    /// Of a cell, with nothing found yet.
    pub fn new(cell: Cell) -> Self {
        Self { cell, column: 0, found: Vec::new() }
    }

    /// Goes on until all are found, which it says, or until `work`, counted as [`Cost::work`], has
    /// come to `end`.
    pub fn find(&mut self, axis: Axis<'_>, work: &mut u64, end: u64) -> bool {
        let Cell { kx, slot, columns, .. } = self.cell;
        while self.column < columns {
            if *work >= end {
                return false;
            }
            let from = slot.saturating_add(u64::from(self.column) << kx);
            let Some(state) = shown_state(axis, from, kx) else {
                self.column = columns;
                return true;
            };
            self.found.push(state);
            self.column += 1;
            // To look at a state costs far less than at a node: they are numbers in a row.
            *work += 1 + axis.states_in(from..from.saturating_add(1 << kx)).len() as u64 / 16;
        }
        true
    }

    /// Those that were found; columns beyond the axis's end show none.
    pub(crate) fn found(&self) -> &[u32] {
        &self.found
    }

    pub(crate) fn cell(&self) -> Cell {
        self.cell
    }
}

/// The state that a column shows: the first at which the total is largest.
pub(crate) fn shown_state(axis: Axis<'_>, from: u64, kx: u8) -> Option<u32> {
    let states = axis.states_in(from..from.saturating_add(1 << kx));
    axis.trace().requested.largest(states).map(|(state, _)| state)
}
