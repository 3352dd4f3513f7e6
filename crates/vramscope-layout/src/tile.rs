//! Viewport queries: the strips of one cell of a global grid.
//!
//! A column shows one real state of the device: the first state in the column at which the total is
//! largest. The drawn height is therefore the maximum of the curve in the column, and no peak is
//! lost when many events share a column. A strip extends over adjacent columns while its piece of
//! the stack does not change.

use crate::axis::Axis;
use crate::color::Colors;
use crate::merge_threshold::MergeThreshold;
use crate::stack_order::StackOrder;
use crate::sumtree::StackPiece;
use crate::sweep::{Pieces, Sweep};
use std::sync::Arc;
use vramscope_render::{Color, MERGED, Strips};
use vramscope_trace::Trace;
use vramscope_trace::slicing::Budget;

/// A cell of the grid. Its columns are `2^kx` slots wide, and its rows `2^ky` bytes high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Log2 of the slots per column.
    pub kx: u8,
    /// Log2 of the bytes per row.
    pub ky: u8,
    /// The first slot.
    pub slot: u64,
    /// Number of columns.
    pub columns: u32,
    /// Lower edge in bytes.
    pub low: u64,
    /// Number of rows.
    pub rows: u32,
}

/// Maximum strips per cell. A cell with more is drawn again with coarser merging.
pub const STRIP_BUDGET: usize = 32 * 1024;

/// The cost of a query, in counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Nodes and blocks of the sum tree that were visited.
    pub nodes: u64,
    /// Nodes of the sum tree that were recomputed.
    pub updates: u64,
    /// Changes of the trace that were read.
    pub changes: u64,
    /// Restarts with coarser merging, to meet [`STRIP_BUDGET`].
    pub retries: u32,
}

impl Cost {
    /// Total cost as one number, roughly proportional to the time taken.
    pub fn work(&self) -> u64 {
        self.nodes + self.updates + self.changes
    }
}

/// Answers viewport queries about one trace. It keeps the last state, so that queries about
/// adjacent cells are fast.
///
/// From one column to the next, only the part of the stack above the lowest changed block is walked
/// again. Blocks that are allocated and freed between the two states are skipped.
///
/// `tests/budget.rs` checks these limits per query, on generated traces and on recordings:
///
/// - At most 4 nodes are visited per column and row of the cell. This is measured and not proven:
///   blocks can be placed such that a walk descends all levels for each piece.
/// - Each change of the trace in the cell's range is read once. Reaching the first column reads at
///   most 1/16 as many changes as the trace has blocks. Each retry adds as much again.
/// - Each change recomputes at most one node per level of the tree.
/// - At most four retries, six in a grouped stack: there, a change moves more of the stack. A
///   retry at least doubles the merge threshold of the busiest bands, and leaves the other bands
///   unchanged.
#[derive(Clone)]
pub struct Timeline {
    sweep: Sweep,
}

/// Which blocks of a cell have strips of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Each block that is at least half a row high. Lower ones are merged with their neighbors.
    #[default]
    Blocks,
    /// Each block that is at least two rows high. The rest of its group is one band, so all blocks
    /// of a group need one color.
    Bands,
    /// Each block that is at least two rows high. Lower ones are merged, and the strip shows which
    /// share of its bytes matches the search. A strip of less than a pixel would appear or vanish
    /// with the height of the plot.
    Hits,
}

impl Detail {
    /// The height below which pieces are merged, in bytes.
    pub(crate) fn threshold(self, ky: u8) -> u64 {
        let row = 1u64 << ky;
        match self {
            Self::Blocks | Self::Bands => row.div_ceil(2),
            Self::Hits => row.saturating_mul(2),
        }
    }
}

/// A partly drawn cell of the timeline.
#[derive(Debug)]
pub struct Drawing {
    cell: Cell,
    /// Pieces that are lower than this are merged.
    threshold: MergeThreshold,
    detail: Detail,
    /// Whether groups have shades of their color.
    shades: bool,
    /// The next column to draw.
    column: u32,
    /// The state that the previous column shows.
    state: Option<u32>,
    /// The pieces in the previous column from the bottom up.
    open: Vec<Open>,
    /// Scratch space: the part of `open` that may have changed.
    closing: Vec<Open>,
    strips: Strips,
    cost: Cost,
}

/// A piece that is drawn up to a later column.
#[derive(Clone, Copy, Debug)]
struct Open {
    piece: StackPiece,
    /// Whether the piece below is of another group.
    is_edge: bool,
    /// The first column.
    since: u32,
}

impl Drawing {
    /// A drawing of `cell` without any strips yet.
    pub fn new(cell: Cell, detail: Detail) -> Self {
        Self {
            cell,
            threshold: MergeThreshold::for_cell(
                cell.low,
                cell.rows,
                cell.ky,
                detail.threshold(cell.ky),
            ),
            detail,
            shades: false,
            column: 0,
            state: None,
            open: Vec::new(),
            closing: Vec::new(),
            strips: Strips::default(),
            cost: Cost::default(),
        }
    }

    /// Draws neighboring groups of one color in shades of it.
    #[must_use]
    pub fn shaded(self) -> Self {
        Self { shades: true, ..self }
    }

    /// The cell that is drawn.
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Takes the strips, and returns the cost of the query. Positions count columns and rows from
    /// the cell's lower left corner.
    pub fn finish(&mut self) -> (Strips, Cost) {
        (std::mem::take(&mut self.strips), self.cost)
    }

    fn high(&self) -> u64 {
        self.cell.low.saturating_add(u64::from(self.cell.rows) << self.cell.ky)
    }

    /// Number of open pieces that changes above `height` cannot affect.
    fn unchanged_pieces(&self, height: u64) -> usize {
        let end = self.open.partition_point(|open| open.piece.high <= height);
        // A last piece below the threshold can merge with smaller blocks that appear above it, and
        // a band with blocks of its group.
        let grows = end > 0
            && (self.detail == Detail::Bands
                || self.open[end - 1].piece.bytes()
                    < self.threshold.at(self.open[end - 1].piece.low));
        end - usize::from(grows)
    }

    /// Adds the strip of a piece up to column `x1`. A merged one shows its share of hits, and names
    /// the largest of them.
    fn push_strip(&mut self, open: Open, x1: u32, colors: &Colors) {
        let Open { piece, is_edge, since: x0 } = open;
        let (low, high) = (self.cell.low, self.high());
        let y = |bytes: u64| (bytes.clamp(low, high) - low) as f64 / (1u64 << self.cell.ky) as f64;
        let named = match piece.hits {
            Some(hits) if hits.bytes > 0 => hits.block,
            _ => piece.block,
        };
        let mut color = colors.of(named);
        if let (true, Some(group)) = (self.shades && color != Color::DIMMED, piece.group) {
            color = color.shaded(group);
        }
        if let Some(hits) = piece.hits {
            color = color.of_hits(hits.bytes, piece.bytes());
        }
        if is_edge {
            color = color.edged();
        }
        let block = if piece.merged { named | MERGED } else { named };
        let position = [x0 as f32, y(piece.low) as f32, x1 as f32, y(piece.high) as f32];
        // Pieces lower than the precision of an `f32` at this scale are left out. Their neighbors
        // already touch.
        if position[1] < position[3] {
            self.strips.push(position, color, block);
        }
    }

    /// Ends all open strips at the last drawn column, and ends the drawing.
    fn close(&mut self, colors: &Colors) {
        for strip in std::mem::take(&mut self.open) {
            self.push_strip(strip, self.column, colors);
        }
        self.column = self.cell.columns;
    }

    /// Restarts the drawing with a higher merge threshold in the busiest bands.
    ///
    /// Regions with few strips keep full detail, so that adjacent cells match. The columns that are
    /// left are expected to have half as many strips as the columns so far, because they may have
    /// fewer.
    fn restart_coarser(&mut self) {
        let ahead = self.cell.columns / (self.column + 1);
        self.cost.retries += 1;
        let (low, ky) = (self.cell.low, self.cell.ky);
        let drawn = self.strips.positions.iter().map(|strip| low + ((strip[1] as u64) << ky));
        let open = self.open.iter().map(|open| open.piece.low);
        let weight = (ahead / 2).max(1) as usize;
        self.threshold.coarsen(drawn.chain(open), weight, STRIP_BUDGET * weight.min(2) / 2);
        self.column = 0;
        self.state = None;
        self.open.clear();
        self.strips.clear();
    }
}

impl Timeline {
    /// A timeline of `trace`. All queries must be about this trace.
    pub async fn new(trace: &Trace, budget: &mut Budget) -> Self {
        Self { sweep: Sweep::new(trace, None, budget).await }
    }

    /// A timeline of `trace` whose stack is in the order of groups.
    pub async fn grouped(trace: &Trace, order: Arc<StackOrder>, budget: &mut Budget) -> Self {
        Self { sweep: Sweep::new(trace, Some(order), budget).await }
    }

    /// Sums the bytes that match a search apart, so that merged strips show their share. Call it
    /// again before drawing with the colors of another search.
    pub async fn keep_hits(&mut self, trace: &Trace, colors: &Colors, budget: &mut Budget) {
        self.sweep.keep_hits(trace, |block| colors.is_hit(block), budget).await;
    }

    /// The strips of a cell. Positions count columns and rows from its lower left corner.
    pub fn strips(&mut self, axis: Axis<'_>, cell: Cell, colors: &Colors) -> (Strips, Cost) {
        let mut drawing = Drawing::new(cell, Detail::Blocks);
        while !self.draw(&mut drawing, axis, colors, u64::MAX) {}
        drawing.finish()
    }

    /// Continues a drawing. Returns true when it is done.
    ///
    /// Stops after the column in which it has spent `work` units of [`Cost::work`]. The strips do
    /// not depend on the number of pauses, nor on other queries in between.
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
        let pieces =
            Pieces { threshold: &drawing.threshold, bands: drawing.detail == Detail::Bands };
        let moved = self.sweep.seek(axis.trace(), state, pieces);
        drawing.cost.changes += moved.changes;
        drawing.cost.updates += moved.updates;
        moved.unchanged_below
    }

    /// Draws the next column.
    fn column(&mut self, drawing: &mut Drawing, axis: Axis<'_>, colors: &Colors) {
        let Cell { kx, slot, low, .. } = drawing.cell;
        let from = slot.saturating_add(u64::from(drawing.column) << kx);
        let Some(state) = shown_state(axis, from, kx) else {
            drawing.close(colors);
            return;
        };
        if drawing.state != Some(state) {
            let unchanged_below = self.seek(drawing, axis, state);
            // 0 in the first column, where no piece is open.
            let kept = drawing.unchanged_pieces(unchanged_below);
            drawing.state = Some(state);
            let mut closing = std::mem::take(&mut drawing.closing);
            closing.extend(drawing.open.drain(kept..));
            // The old and the new pieces are both in upward order, so one pass finds equal ones.
            let mut before = closing.drain(..).peekable();
            let bottom = drawing.open.last().map_or(low, |open| open.piece.high);
            let (high, column) = (drawing.high(), drawing.column);
            // Moved out of the drawing, because the walk's callback borrows the drawing mutably.
            let threshold = std::mem::replace(&mut drawing.threshold, MergeThreshold::uniform(1));
            let pieces = Pieces { threshold: &threshold, bands: drawing.detail == Detail::Bands };
            let nodes = self.sweep.walk(axis.trace(), bottom, high, pieces, &mut |piece| {
                while let Some(strip) = before.next_if(|old| old.piece.low < piece.low) {
                    drawing.push_strip(strip, column, colors);
                }
                let below = drawing.open.last().and_then(|open| open.piece.group);
                let is_edge = below.zip(piece.group).is_some_and(|(below, own)| below != own);
                let since = before
                    .next_if(|old| old.piece == piece && old.is_edge == is_edge)
                    .map_or(column, |old| old.since);
                drawing.open.push(Open { piece, is_edge, since });
            });
            for strip in before {
                drawing.push_strip(strip, column, colors);
            }
            drawing.threshold = threshold;
            drawing.cost.nodes += nodes;
            drawing.closing = closing;
            if drawing.strips.len() + drawing.open.len() > STRIP_BUDGET {
                drawing.restart_coarser();
                return;
            }
        }
        drawing.column += 1;
    }

    pub(crate) fn sweep(&mut self) -> &mut Sweep {
        &mut self.sweep
    }
}

/// The state that each column of a cell shows.
///
/// The search can be sliced, because it reads up to all states of the cell.
#[derive(Debug)]
pub struct States {
    cell: Cell,
    column: u32,
    found: Vec<u32>,
}

impl States {
    /// The states of `cell`, none of them found yet.
    pub fn new(cell: Cell) -> Self {
        Self { cell, column: 0, found: Vec::new() }
    }

    /// Continues the search. Returns true when all states are found, and false when `work` has
    /// reached `end`. Both are in units of [`Cost::work`].
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
            // Reading a state is far cheaper than visiting a node: states are contiguous numbers.
            *work += 1 + axis.states_in(from..from.saturating_add(1 << kx)).len() as u64 / 16;
        }
        true
    }

    /// The states found so far, one per column. Columns beyond the end of the axis have none.
    pub(crate) fn found(&self) -> &[u32] {
        &self.found
    }

    pub(crate) fn cell(&self) -> Cell {
        self.cell
    }
}

/// The state that the column at slot `from` shows: the first at which the total is largest. `None`
/// beyond the end of the axis.
pub(crate) fn shown_state(axis: Axis<'_>, from: u64, kx: u8) -> Option<u32> {
    let states = axis.states_in(from..from.saturating_add(1 << kx));
    axis.trace().requested.largest(states).map(|(state, _)| state)
}
