//! The strips of a cell of the segments view.

use super::merge::{Merge, Small};
use super::{SegmentRows, SegmentTiles};
use crate::axis::Axis;
use crate::color::Colors;
use crate::least::Least;
use crate::tile::{Cell, STRIP_BUDGET, States};
use std::ops::Range;
use vramscope_analysis::{Carving, Trace};
use vramscope_render::{Color, MERGED, NO_BLOCK, Strips};

/// A cell of the segments view on its way to strips, some blocks at a time.
#[derive(Debug)]
pub struct SegmentDrawing {
    cell: Cell,
    states: States,
    /// How many times the least height that can be told is what is merged: more where most strips
    /// are.
    coarser: Least,
    /// What is lower is merged, of the rows that are being drawn.
    least: f64,
    strips: Strips,
    /// What is too low to see of the rows that are being drawn.
    merge: Merge,
    /// Where it goes on: the first row of a group of them, a row of the group, a column, and a
    /// block of the span there.
    at: [usize; 4],
    /// What it cost, as [`Cost::work`](crate::Cost::work) counts it: states, rows, spans and blocks
    /// that were looked at.
    work: u64,
}

impl SegmentDrawing {
    /// Of a cell, with nothing drawn yet. Its rows count units of the y axis.
    pub fn new(cell: Cell) -> Self {
        Self {
            cell,
            states: States::new(cell),
            coarser: Least::of_rows(cell.low, cell.rows, cell.ky, 1),
            least: 0.0,
            strips: Strips::default(),
            merge: Merge::new(cell.columns),
            at: [0; 4],
            work: 0,
        }
    }

    /// Hands over what has been drawn.
    pub fn finish(&mut self) -> Strips {
        std::mem::take(&mut self.strips)
    }

    /// What is merged anywhere between two heights.
    fn least_of(&self, low: f64, high: f64) -> f64 {
        // Half of a row of the cell.
        let finest = (1u64 << self.cell.ky) as f64 / 2.0;
        finest * self.coarser.over(low.max(0.0) as u64, high.max(0.0) as u64) as f64
    }

    /// Everything anew, and coarser where most of it is: segments in which little happens look the
    /// same in this cell and in those beside it. Rows that are left below this height may have as
    /// much in them as those so far, or half of it.
    fn again(&mut self, drawn: f64) {
        let Cell { low, rows, ky, .. } = self.cell;
        let height = f64::from(rows) * (1u64 << ky) as f64;
        let ahead = height / (low as f64 + height - drawn).clamp(height / 16.0, height);
        let each = (ahead / 2.0).max(1.0) as usize;
        let heights = self.strips.positions.iter().map(|strip| low + ((strip[1] as u64) << ky));
        self.coarser.coarsen(heights, each, STRIP_BUDGET * each.min(2) / 2);
        self.strips.clear();
        self.merge.clear();
        self.at = [0; 4];
    }
}

impl SegmentTiles {
    /// The strips of a cell, whose rows count units of the y axis, as `rows` do. A segment's ground
    /// comes before what lies in it.
    pub fn strips(
        &self,
        axis: Axis<'_>,
        carving: &Carving,
        rows: SegmentRows<'_>,
        cell: Cell,
        colors: &Colors,
    ) -> Strips {
        let mut drawing = SegmentDrawing::new(cell);
        while !self.draw(&mut drawing, axis, carving, rows, colors, u64::MAX) {}
        drawing.finish()
    }

    /// Goes on with a drawing until it is done, which it says, or until it has cost about so much
    /// more, as [`Cost::work`](crate::Cost::work) counts it. However often it stops, the strips are
    /// those of [`SegmentTiles::strips`].
    pub fn draw(
        &self,
        drawing: &mut SegmentDrawing,
        axis: Axis<'_>,
        carving: &Carving,
        rows: SegmentRows<'_>,
        colors: &Colors,
        work: u64,
    ) -> bool {
        let end = drawing.work.saturating_add(work);
        if !drawing.states.find(axis, &mut drawing.work, end) {
            return false;
        }
        let mut is_done = drawing.states.found().is_empty();
        let mut draw =
            Draw { tiles: self, axis, trace: axis.trace(), carving, colors, end, on: drawing };
        while !is_done && draw.on.work < end {
            is_done = draw.all(rows);
        }
        is_done
    }
}

/// What it costs to place a block, as [`Cost::work`](crate::Cost::work) counts it.
const COST: u64 = 8;

/// A span in the columns that show it: each as it is in the column's state, or one of them as it
/// was in another.
#[derive(Clone, Copy)]
struct Seen {
    span: u32,
    columns: [u32; 2],
    state: Option<u32>,
}

struct Draw<'a> {
    tiles: &'a SegmentTiles,
    axis: Axis<'a>,
    trace: &'a Trace,
    carving: &'a Carving,
    colors: &'a Colors,
    /// The work at which it stops.
    end: u64,
    on: &'a mut SegmentDrawing,
}

impl Draw<'_> {
    /// Whether all is done. If not, it has come to its end, or has to begin anew.
    fn all(&mut self, rows: SegmentRows<'_>) -> bool {
        loop {
            let seen = self.seen(rows);
            let first = self.on.at[0].max(seen.start);
            if first >= seen.end {
                return true;
            }
            let [low, high] = rows.edges(first);
            let least = self.on.least_of(low, high);
            self.on.least = least;
            // Rows that are too low to see are drawn together, as many as can be seen.
            let mut bottom = low;
            let mut end = first + 1;
            while high - bottom < least && end < seen.end {
                let [next, top] = rows.edges(end);
                if top - next >= least {
                    break;
                }
                bottom = next;
                end += 1;
            }
            self.on.at[0] = first;
            if self.is_near(bottom, high) {
                if self.on.at[1..] == [0; 3] {
                    self.ground(rows, first..end);
                }
                while first + self.on.at[1] < end {
                    let row = first + self.on.at[1];
                    let content = content(rows.edges(row));
                    // Parts of a row are counted from its own ground, so that no merged strip
                    // crosses into the next row.
                    if !self.row(
                        rows.order().row(row),
                        content,
                        if end == first + 1 { content.0 } else { bottom },
                    ) {
                        return false;
                    }
                    self.on.at = [first, self.on.at[1] + 1, 0, 0];
                }
                if !self.flush(self.end) {
                    return false;
                }
            }
            if self.on.strips.len() > STRIP_BUDGET {
                self.on.again(bottom);
                continue;
            }
            self.on.work += (end - first) as u64;
            self.on.at = [end, 0, 0, 0];
            if self.on.work >= self.end {
                return false;
            }
        }
    }

    /// The rows that may have something in the cell. Such as are drawn together are counted from
    /// the first of all, so that they are the same in every cell.
    fn seen(&self, rows: SegmentRows<'_>) -> Range<usize> {
        let least = self.on.least_of(0.0, f64::MAX);
        let [bottom, top] = self.reach(least);
        if rows.height() < least { 0..rows.order().len() } else { rows.between(bottom, top) }
    }

    /// The heights between which something is in the cell, or so near that it may be merged with
    /// what is.
    fn reach(&self, least: f64) -> [f64; 2] {
        let Cell { low, rows, ky, .. } = self.on.cell;
        [low as f64 - least, low as f64 + f64::from(rows) * (1u64 << ky) as f64 + least]
    }

    /// Whether something of the rows that are being drawn is in the cell, or so near that it may be
    /// merged with what is.
    fn is_near(&self, low: f64, high: f64) -> bool {
        let [bottom, top] = self.reach(self.on.least);
        high > bottom && low < top
    }

    /// The columns that show a state from `enters` on and before `leaves`.
    fn columns(&self, enters: u32, leaves: u32) -> [u32; 2] {
        [enters, leaves].map(|slot| self.on.states.found().partition_point(|&s| s < slot) as u32)
    }

    /// The first span of a row that is to be seen in this column or a later one. Each takes a
    /// column at least, so that however many there are, no more are looked at than there are
    /// columns.
    ///
    /// A column shows what is there in its state. Where that is nothing of this row, it shows the
    /// last that was reserved in it, as it was when what it was reserved for was allocated: so none
    /// that comes and goes between two states is lost.
    fn next(&self, row: &[u32], column: u32) -> Option<Seen> {
        let (spans, states) = (&self.carving.segments.spans, self.on.states.found());
        let known = |at: usize| row.get(at).map(|&span| (span, &spans[span as usize]));
        let mut column = column as usize;
        loop {
            let &state = states.get(column)?;
            if let Some((span, known)) =
                known(row.partition_point(|&s| spans[s as usize].leaves <= state))
                && known.enters <= state
            {
                let behind = column + states[column..].partition_point(|&s| s < known.leaves);
                return Some(Seen { span, columns: [column as u32, behind as u32], state: None });
            }
            let within = self.states_in(column);
            let behind = row.partition_point(|&s| spans[s as usize].enters < within.end);
            if let Some((span, known)) = behind.checked_sub(1).and_then(known)
                && known.enters >= within.start
            {
                let first = self
                    .tiles
                    .blocks_in(span)
                    .first()
                    .map(|&b| self.trace.blocks[b as usize].enters);
                let during = known.enters..known.leaves.min(within.end);
                let state = first.filter(|first| during.contains(first)).unwrap_or(known.enters);
                return Some(Seen {
                    span,
                    columns: [column as u32, column as u32 + 1],
                    state: Some(state),
                });
            }
            let Cell { slot, kx, .. } = self.on.cell;
            let entering = self.axis.slot_of(known(behind)?.1.enters).saturating_sub(slot) >> kx;
            column = (entering as usize).max(column + 1);
        }
    }

    /// The states of a column.
    fn states_in(&self, column: usize) -> Range<u32> {
        let Cell { slot, kx, .. } = self.on.cell;
        let from = slot.saturating_add((column as u64) << kx);
        self.axis.states_in(from..from.saturating_add(1 << kx))
    }

    fn ground(&mut self, rows: SegmentRows<'_>, which: Range<usize>) {
        for row in which {
            let (low, high) = content(rows.edges(row));
            let row = rows.order().row(row);
            let mut next = self.next(row, 0);
            while let Some(Seen { span, mut columns, .. }) = next {
                // Those that follow each other without a gap have one ground.
                loop {
                    self.on.work += 1;
                    next = self.next(row, columns[1]);
                    match next {
                        Some(seen) if seen.columns[0] == columns[1] => columns[1] = seen.columns[1],
                        _ => break,
                    }
                }
                let (pending, weight) =
                    (columns[1], self.carving.segments.spans[span as usize].size.0);
                self.on.merge.push(Small {
                    bucket: 0,
                    low,
                    high,
                    columns,
                    pending,
                    weight,
                    block: NO_BLOCK,
                });
            }
        }
        // Rows that are drawn together are no more than have room within what can be seen.
        self.flush(u64::MAX);
    }

    /// Draws the blocks of a row that can be seen, and notes the others. False when it has to stop,
    /// or to begin anew.
    fn row(&mut self, row: &[u32], content: (f64, f64), base: f64) -> bool {
        while let Some(seen) = self.next(row, self.on.at[2] as u32) {
            if !self.pieces(seen, content, base) {
                return false;
            }
            self.on.at[2..].copy_from_slice(&[seen.columns[1] as usize, 0]);
            self.on.work += 1;
            if self.on.work >= self.end {
                return false;
            }
        }
        true
    }

    /// The same of a span.
    fn pieces(&mut self, seen: Seen, (bottom, top): (f64, f64), base: f64) -> bool {
        let shown = |column: u32| seen.state.unwrap_or(self.on.states.found()[column as usize]);
        let [first, last] = [seen.columns[0], seen.columns[1] - 1].map(shown);
        let span = seen.span;
        let known = &self.carving.segments.spans[span as usize];
        let scale = (top - bottom) / known.size.0.max(1) as f64;
        let y = |address: u64| bottom + (address - known.address.0) as f64 * scale;
        let tiles = self.tiles;
        for (next, looked, block) in tiles.live(self.trace, span, first, last, self.on.at[3]) {
            self.on.work += looked + COST;
            self.on.at[3] = next;
            self.piece(block, seen, base, y);
            if self.on.strips.len() > STRIP_BUDGET {
                self.on.again(bottom);
                return false;
            }
            if self.on.work >= self.end {
                return false;
            }
        }
        true
    }

    fn piece(&mut self, block: u32, seen: Seen, base: f64, y: impl Fn(u64) -> f64) {
        let known = &self.carving.segments.spans[seen.span as usize];
        let (it, size) = (&self.trace.blocks[block as usize], self.carving.sizes[block as usize].0);
        let from = it.address.0.max(known.address.0);
        let to = it.address.0.saturating_add(size).min(known.end());
        if from >= to {
            return;
        }
        let (low, high) = (y(from), y(to));
        if !self.is_near(low, high) {
            return;
        }
        let columns = match seen.state {
            Some(_) => seen.columns,
            None => self.columns(it.enters.max(known.enters), it.leaves.min(known.leaves)),
        };
        let [x0, x1] = columns;
        if x0 >= x1 {
            return;
        }
        let waits = |from: u32| match seen.state {
            Some(state) => {
                if from <= state {
                    x0
                } else {
                    x1
                }
            }
            None => self.columns(from, 0)[0].clamp(x0, x1),
        };
        let pending = it.free_requested().map_or(x1, |event| waits(event.0 + 1));
        if high - low < self.on.least {
            // Counted from below all that is near the cell.
            let part = |y: f64| ((y - base) / self.on.least).floor();
            let bucket = (part(low) - part(self.on.cell.low as f64 - 2.0 * self.on.least)) as u32;
            self.on.merge.push(Small {
                bucket,
                low,
                high,
                columns,
                pending,
                weight: to - from,
                block,
            });
            return;
        }
        self.put([x0, pending], [low, high], self.colors.of(block), block);
        self.put([pending, x1], [low, high], self.pending(block), block);
    }

    /// Of a block that waits for its free to complete.
    fn pending(&self, block: u32) -> Color {
        let color = self.colors.of(block);
        if color == Color::DIMMED { color } else { Color::PENDING }
    }

    /// Draws what was noted, merged. False when it has to stop before that is done.
    fn flush(&mut self, end: u64) -> bool {
        let mut merge = std::mem::take(&mut self.on.merge);
        let mut work = self.on.work;
        let is_done = merge.go_on(&mut work, end, |small, run| {
            let [lowest, highest] = [run.lowest, run.highest].map(|i| &small[i as usize]);
            let block = small[run.largest as usize].block;
            let y = [lowest.low, highest.high.max(lowest.high)];
            let (color, word) = match block {
                NO_BLOCK => (Color::SEGMENT, NO_BLOCK),
                _ if run.pending => (self.pending(block), block),
                _ => (self.colors.of(block), block),
            };
            let is_merged = run.lowest != run.highest && block != NO_BLOCK;
            self.put(run.columns, y, color, if is_merged { word | MERGED } else { word });
        });
        (self.on.merge, self.on.work) = (merge, work);
        is_done
    }

    fn put(&mut self, [x0, x1]: [u32; 2], y: [f64; 2], color: Color, block: u32) {
        let cell = self.on.cell;
        let (low, height) = (cell.low as f64, (1u64 << cell.ky) as f64);
        let [y0, y1] = y.map(|y| ((y - low) / height).clamp(0.0, f64::from(cell.rows)) as f32);
        if x0 < x1 && y0 < y1 {
            self.on.strips.push([x0 as f32, y0, x1 as f32, y1], color, block);
        }
    }
}

/// What of a row its segment takes: a sixteenth below and above is the gap to its neighbors.
fn content([low, high]: [f64; 2]) -> (f64, f64) {
    let gap = (high - low) / 16.0;
    (low + gap, high - gap)
}
