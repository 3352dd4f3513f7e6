//! Draws the strips of one cell of the segments view.

use super::merge::{LowRect, Merger};
use super::{SegmentRows, SegmentTiles};
use crate::axis::Axis;
use crate::color::Colors;
use crate::merge_threshold::MergeThreshold;
use crate::tile::{Cell, STRIP_BUDGET, States};
use std::ops::Range;
use vramscope_render::{Color, MERGED, NO_BLOCK, Strips};
use vramscope_trace::{Carving, Trace};

/// A partly drawn cell of the segments view.
#[derive(Debug)]
pub struct SegmentDrawing {
    cell: Cell,
    states: States,
    /// Factor on the default merge height, per band of heights. It grows in the busiest bands.
    coarseness: MergeThreshold,
    /// Merge height of the current rows in units: lower blocks are merged.
    merge_height: f64,
    strips: Strips,
    /// The blocks of the current rows that are lower than the merge height.
    merger: Merger,
    /// The position to resume at: the first row of the current group of rows, the row within the
    /// group, the column, and the index of the block within its span.
    cursor: [usize; 4],
    /// Work so far, in units of [`Cost::work`](crate::Cost::work): states, rows, spans and blocks
    /// that were read.
    work: u64,
}

impl SegmentDrawing {
    /// A drawing of `cell` without any strips yet. The cell's rows count units of the y axis.
    pub fn new(cell: Cell) -> Self {
        Self {
            cell,
            states: States::new(cell),
            coarseness: MergeThreshold::for_cell(cell.low, cell.rows, cell.ky, 1),
            merge_height: 0.0,
            strips: Strips::default(),
            merger: Merger::new(cell.columns),
            cursor: [0; 4],
            work: 0,
        }
    }

    /// Takes the strips.
    pub fn finish(&mut self) -> Strips {
        std::mem::take(&mut self.strips)
    }

    /// The merge height between two heights, in units.
    fn merge_height_between(&self, low: f64, high: f64) -> f64 {
        // Half a row of the cell.
        let finest = (1u64 << self.cell.ky) as f64 / 2.0;
        finest * self.coarseness.max_between(low.max(0.0) as u64, high.max(0.0) as u64) as f64
    }

    /// Restarts the drawing with a larger merge height in the busiest bands. Segments with few
    /// strips keep full detail, so that adjacent cells match.
    ///
    /// Rows above the height `drawn` have been drawn. The rows below it are expected to have half
    /// as many strips, because they may have fewer.
    fn restart_coarser(&mut self, drawn: f64) {
        let Cell { low, rows, ky, .. } = self.cell;
        let height = f64::from(rows) * (1u64 << ky) as f64;
        let ahead = height / (low as f64 + height - drawn).clamp(height / 16.0, height);
        let weight = (ahead / 2.0).max(1.0) as usize;
        let heights = self.strips.positions.iter().map(|strip| low + ((strip[1] as u64) << ky));
        self.coarseness.coarsen(heights, weight, STRIP_BUDGET * weight.min(2) / 2);
        self.strips.clear();
        self.merger.clear();
        self.cursor = [0; 4];
    }
}

impl SegmentTiles {
    /// The strips of a cell. The cell's rows and `rows` both count units of the y axis. The
    /// background of a segment comes before its blocks.
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

    /// Continues a drawing. Returns true when it is done.
    ///
    /// Stops after about `work` units of [`Cost::work`](crate::Cost::work). The strips equal those
    /// of [`SegmentTiles::strips`], regardless of the number of pauses.
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
        let mut painter =
            Painter { tiles: self, axis, trace: axis.trace(), carving, colors, end, drawing };
        while !is_done && painter.drawing.work < end {
            is_done = painter.draw_rows(rows);
        }
        is_done
    }
}

/// Cost of drawing a block, in units of [`Cost::work`](crate::Cost::work).
const BLOCK_COST: u64 = 8;

/// A span, and the columns that show it.
#[derive(Clone, Copy)]
struct VisibleSpan {
    span: u32,
    /// First column, and one past the last.
    columns: [u32; 2],
    /// The state that is drawn instead of the column's state. Only for a span in a single column
    /// that is not reserved in the column's state.
    state: Option<u32>,
}

struct Painter<'a> {
    tiles: &'a SegmentTiles,
    axis: Axis<'a>,
    trace: &'a Trace,
    carving: &'a Carving,
    colors: &'a Colors,
    /// The work at which to pause.
    end: u64,
    drawing: &'a mut SegmentDrawing,
}

impl Painter<'_> {
    /// Draws the remaining rows. Returns false when it has to pause or to restart.
    fn draw_rows(&mut self, rows: SegmentRows<'_>) -> bool {
        loop {
            let visible = self.visible_rows(rows);
            let first = self.drawing.cursor[0].max(visible.start);
            if first >= visible.end {
                return true;
            }
            let [low, high] = rows.edges(first);
            let merge_height = self.drawing.merge_height_between(low, high);
            self.drawing.merge_height = merge_height;
            // Rows lower than the merge height are drawn as a group of about that height.
            let mut bottom = low;
            let mut end = first + 1;
            while high - bottom < merge_height && end < visible.end {
                let [next, top] = rows.edges(end);
                if top - next >= merge_height {
                    break;
                }
                bottom = next;
                end += 1;
            }
            self.drawing.cursor[0] = first;
            if self.is_near(bottom, high) {
                if self.drawing.cursor[1..] == [0; 3] {
                    self.push_backgrounds(rows, first..end);
                }
                while first + self.drawing.cursor[1] < end {
                    let row = first + self.drawing.cursor[1];
                    let content = content(rows.edges(row));
                    // The buckets of a single row are counted from its own background, so that no
                    // merged strip crosses into the next row.
                    if !self.draw_row(
                        rows.order().row(row),
                        content,
                        if end == first + 1 { content.0 } else { bottom },
                    ) {
                        return false;
                    }
                    self.drawing.cursor = [first, self.drawing.cursor[1] + 1, 0, 0];
                }
                if !self.flush(self.end) {
                    return false;
                }
            }
            if self.drawing.strips.len() > STRIP_BUDGET {
                self.drawing.restart_coarser(bottom);
                continue;
            }
            self.drawing.work += (end - first) as u64;
            self.drawing.cursor = [end, 0, 0, 0];
            if self.drawing.work >= self.end {
                return false;
            }
        }
    }

    /// The rows that may have strips in the cell. Grouping always starts at row 0, so that groups
    /// are equal in all cells.
    fn visible_rows(&self, rows: SegmentRows<'_>) -> Range<usize> {
        let merge_height = self.drawing.merge_height_between(0.0, f64::MAX);
        let [bottom, top] = self.reach(merge_height);
        if rows.height() < merge_height { 0..rows.order().len() } else { rows.between(bottom, top) }
    }

    /// The range of heights of the cell, extended by the merge height. Blocks in it may be merged
    /// with blocks in the cell.
    fn reach(&self, merge_height: f64) -> [f64; 2] {
        let Cell { low, rows, ky, .. } = self.drawing.cell;
        [
            low as f64 - merge_height,
            low as f64 + f64::from(rows) * (1u64 << ky) as f64 + merge_height,
        ]
    }

    /// Whether the range is in the cell, or close enough to be merged with blocks in the cell.
    fn is_near(&self, low: f64, high: f64) -> bool {
        let [bottom, top] = self.reach(self.drawing.merge_height);
        high > bottom && low < top
    }

    /// The columns that show a state from `enters` up to but not including `leaves`.
    fn columns(&self, enters: u32, leaves: u32) -> [u32; 2] {
        [enters, leaves]
            .map(|slot| self.drawing.states.found().partition_point(|&s| s < slot) as u32)
    }

    /// The first visible span of a row in `column` or a later column. A visible span takes at least
    /// one column, so a row has at most as many visible spans as there are columns.
    ///
    /// A column shows the span that is reserved in its state. If the row has none, the column shows
    /// the last span that was reserved within it, in the state in which the first block of the span
    /// was allocated. Spans that are reserved and released between two shown states are therefore
    /// not lost.
    fn next_visible(&self, row: &[u32], column: u32) -> Option<VisibleSpan> {
        let (spans, states) = (&self.carving.segments.spans, self.drawing.states.found());
        let span_data = |index: usize| row.get(index).map(|&span| (span, &spans[span as usize]));
        let mut column = column as usize;
        loop {
            let &state = states.get(column)?;
            if let Some((span, span_data)) =
                span_data(row.partition_point(|&s| spans[s as usize].leaves <= state))
                && span_data.enters <= state
            {
                let behind = column + states[column..].partition_point(|&s| s < span_data.leaves);
                return Some(VisibleSpan {
                    span,
                    columns: [column as u32, behind as u32],
                    state: None,
                });
            }
            let within = self.states_in(column);
            let behind = row.partition_point(|&s| spans[s as usize].enters < within.end);
            if let Some((span, span_data)) = behind.checked_sub(1).and_then(span_data)
                && span_data.enters >= within.start
            {
                let first = self
                    .tiles
                    .blocks_in(span)
                    .first()
                    .map(|&b| self.trace.blocks[b as usize].enters);
                let during = span_data.enters..span_data.leaves.min(within.end);
                let state =
                    first.filter(|first| during.contains(first)).unwrap_or(span_data.enters);
                return Some(VisibleSpan {
                    span,
                    columns: [column as u32, column as u32 + 1],
                    state: Some(state),
                });
            }
            let Cell { slot, kx, .. } = self.drawing.cell;
            let entering =
                self.axis.slot_of(span_data(behind)?.1.enters).saturating_sub(slot) >> kx;
            column = (entering as usize).max(column + 1);
        }
    }

    /// The states of a column.
    fn states_in(&self, column: usize) -> Range<u32> {
        let Cell { slot, kx, .. } = self.drawing.cell;
        let from = slot.saturating_add((column as u64) << kx);
        self.axis.states_in(from..from.saturating_add(1 << kx))
    }

    fn push_backgrounds(&mut self, rows: SegmentRows<'_>, which: Range<usize>) {
        for row in which {
            let (low, high) = content(rows.edges(row));
            let row = rows.order().row(row);
            let mut next = self.next_visible(row, 0);
            while let Some(VisibleSpan { span, mut columns, .. }) = next {
                // Consecutive spans without a gap share one background.
                loop {
                    self.drawing.work += 1;
                    next = self.next_visible(row, columns[1]);
                    match next {
                        Some(visible) if visible.columns[0] == columns[1] => {
                            columns[1] = visible.columns[1];
                        }
                        _ => break,
                    }
                }
                let (pending_from, weight) =
                    (columns[1], self.carving.segments.spans[span as usize].size.0);
                self.drawing.merger.push(LowRect {
                    bucket: 0,
                    low,
                    high,
                    columns,
                    pending_from,
                    weight,
                    block: NO_BLOCK,
                });
            }
        }
        // Without a pause: a group has few rows, because its height is about the merge height.
        self.flush(u64::MAX);
    }

    /// Draws the visible blocks of a row, and collects the low ones for merging. Returns false when
    /// it has to pause or to restart.
    fn draw_row(&mut self, row: &[u32], content: (f64, f64), base: f64) -> bool {
        while let Some(visible) = self.next_visible(row, self.drawing.cursor[2] as u32) {
            if !self.draw_span(visible, content, base) {
                return false;
            }
            self.drawing.cursor[2..].copy_from_slice(&[visible.columns[1] as usize, 0]);
            self.drawing.work += 1;
            if self.drawing.work >= self.end {
                return false;
            }
        }
        true
    }

    /// Draws the visible blocks of a span, as [`Painter::draw_row`] does for a row.
    fn draw_span(&mut self, visible: VisibleSpan, (bottom, top): (f64, f64), base: f64) -> bool {
        let shown =
            |column: u32| visible.state.unwrap_or(self.drawing.states.found()[column as usize]);
        let [first, last] = [visible.columns[0], visible.columns[1] - 1].map(shown);
        let span = visible.span;
        let span_data = &self.carving.segments.spans[span as usize];
        let scale = (top - bottom) / span_data.size.0.max(1) as f64;
        let y = |address: u64| bottom + (address - span_data.address.0) as f64 * scale;
        let tiles = self.tiles;
        for (next, read, block) in
            tiles.live_blocks(self.trace, span, first, last, self.drawing.cursor[3])
        {
            self.drawing.work += read + BLOCK_COST;
            self.drawing.cursor[3] = next;
            self.draw_block(block, visible, base, y);
            if self.drawing.strips.len() > STRIP_BUDGET {
                self.drawing.restart_coarser(bottom);
                return false;
            }
            if self.drawing.work >= self.end {
                return false;
            }
        }
        true
    }

    fn draw_block(&mut self, block: u32, visible: VisibleSpan, base: f64, y: impl Fn(u64) -> f64) {
        let span_data = &self.carving.segments.spans[visible.span as usize];
        let (block_data, size) =
            (&self.trace.blocks[block as usize], self.carving.sizes[block as usize].0);
        let from = block_data.address.0.max(span_data.address.0);
        let to = block_data.address.0.saturating_add(size).min(span_data.end());
        if from >= to {
            return;
        }
        let (low, high) = (y(from), y(to));
        if !self.is_near(low, high) {
            return;
        }
        let columns = match visible.state {
            Some(_) => visible.columns,
            None => self.columns(
                block_data.enters.max(span_data.enters),
                block_data.leaves.min(span_data.leaves),
            ),
        };
        let [x0, x1] = columns;
        if x0 >= x1 {
            return;
        }
        let column_of = |from: u32| match visible.state {
            Some(state) => {
                if from <= state {
                    x0
                } else {
                    x1
                }
            }
            None => self.columns(from, 0)[0].clamp(x0, x1),
        };
        let pending_from = block_data.free_requested().map_or(x1, |event| column_of(event.0 + 1));
        if high - low < self.drawing.merge_height {
            // Numbered from below everything that is near the cell.
            let bucket_of = |y: f64| ((y - base) / self.drawing.merge_height).floor();
            let bucket = (bucket_of(low)
                - bucket_of(self.drawing.cell.low as f64 - 2.0 * self.drawing.merge_height))
                as u32;
            self.drawing.merger.push(LowRect {
                bucket,
                low,
                high,
                columns,
                pending_from,
                weight: to - from,
                block,
            });
            return;
        }
        self.push_strip([x0, pending_from], [low, high], self.colors.of(block), block);
        self.push_strip([pending_from, x1], [low, high], self.pending_color(block), block);
    }

    /// The color of a block that waits for its free to complete.
    fn pending_color(&self, block: u32) -> Color {
        let color = self.colors.of(block);
        if color == Color::DIMMED { color } else { color.hatched() }
    }

    /// Merges and draws the collected low blocks. Returns false when it has to pause first.
    fn flush(&mut self, end: u64) -> bool {
        let mut merger = std::mem::take(&mut self.drawing.merger);
        let mut work = self.drawing.work;
        let is_done = merger.advance(&mut work, end, |small, run| {
            let [lowest, highest] = [run.lowest, run.highest].map(|i| &small[i as usize]);
            let block = small[run.largest as usize].block;
            let y = [lowest.low, highest.high.max(lowest.high)];
            let (color, word) = match block {
                NO_BLOCK => (Color::SEGMENT.hatched(), NO_BLOCK),
                _ if run.pending => (self.pending_color(block), block),
                _ => (self.colors.of(block), block),
            };
            let is_merged = run.lowest != run.highest && block != NO_BLOCK;
            self.push_strip(run.columns, y, color, if is_merged { word | MERGED } else { word });
        });
        (self.drawing.merger, self.drawing.work) = (merger, work);
        is_done
    }

    fn push_strip(&mut self, [x0, x1]: [u32; 2], y: [f64; 2], color: Color, block: u32) {
        let cell = self.drawing.cell;
        let (low, height) = (cell.low as f64, (1u64 << cell.ky) as f64);
        let [y0, y1] = y.map(|y| ((y - low) / height).clamp(0.0, f64::from(cell.rows)) as f32);
        if x0 < x1 && y0 < y1 {
            self.drawing.strips.push([x0 as f32, y0, x1 as f32, y1], color, block);
        }
    }
}

/// The part of a row that its segment fills: 1/16 at the bottom and at the top is the gap to the
/// neighbors.
fn content([low, high]: [f64; 2]) -> (f64, f64) {
    let gap = (high - low) / 16.0;
    (low + gap, high - gap)
}
