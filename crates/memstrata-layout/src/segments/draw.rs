//! The strips of a cell of the segments view.

use super::SegmentTiles;
use super::merge::{Merge, Small};
use crate::axis::Axis;
use crate::colour::Colours;
use crate::tile::{Cell, STRIP_BUDGET, shown_state};
use memstrata_analysis::{Carving, Trace};
use memstrata_render::{Colour, MERGED, NO_BLOCK, Strips};

impl SegmentTiles {
    /// The strips of a cell, whose rows count units of the y axis. `rows` are spans of [`Carving::segments`] with their
    /// lower and upper edges in units, from the top one down. A segment's ground comes before what lies in it.
    pub fn strips(
        &self,
        axis: Axis<'_>,
        carving: &Carving,
        rows: &[(u32, f64, f64)],
        cell: Cell,
        colours: &Colours,
    ) -> Strips {
        let column = |c: u32| shown_state(axis, cell.slot.saturating_add(u64::from(c) << cell.kx), cell.kx);
        let states: Vec<u32> = (0..cell.columns).map_while(column).collect();
        let mut draw = Draw {
            tiles: self,
            trace: axis.trace(),
            carving,
            colours,
            cell,
            states,
            least: (1u64 << cell.ky) as f64 / 2.0,
            strips: Strips::default(),
            small: Vec::new(),
            merge: Merge::new(cell.columns),
        };
        if draw.states.is_empty() {
            return draw.strips;
        }
        while draw.all(rows).is_none() {
            draw.strips.clear();
            draw.small.clear();
            draw.least *= 2.0;
        }
        draw.strips
    }
}

struct Draw<'a> {
    tiles: &'a SegmentTiles,
    trace: &'a Trace,
    carving: &'a Carving,
    colours: &'a Colours,
    cell: Cell,
    /// The state that each column shows.
    states: Vec<u32>,
    /// What is lower is merged.
    least: f64,
    strips: Strips,
    small: Vec<Small>,
    merge: Merge,
}

impl Draw<'_> {
    /// `None` when there would be more strips than the budget.
    fn all(&mut self, rows: &[(u32, f64, f64)]) -> Option<()> {
        let mut rest = rows;
        while let [(_, low, high), ..] = *rest {
            // Rows that are too low to see are drawn together, as many as can be seen.
            let mut bottom = low;
            let mut count = 1;
            while high - bottom < self.least
                && let Some(&(_, next, top)) = rest.get(count)
                && top - next < self.least
            {
                bottom = next;
                count += 1;
            }
            let (group, others) = rest.split_at(count);
            rest = others;
            if self.is_near(bottom, high) {
                self.ground(group);
                for &(span, low, high) in group {
                    let content = content(low, high);
                    // Parts of a row are counted from its own ground, so that no merged strip crosses into the next row.
                    self.pieces(span, content, if count == 1 { content.0 } else { bottom })?;
                }
                self.flush();
            }
            if self.strips.len() > STRIP_BUDGET {
                return None;
            }
        }
        Some(())
    }

    /// Whether something is in the cell, or so near that it may be merged with what is.
    fn is_near(&self, low: f64, high: f64) -> bool {
        let bottom = self.cell.low as f64;
        let top = bottom + f64::from(self.cell.rows) * (1u64 << self.cell.ky) as f64;
        high > bottom - self.least && low < top + self.least
    }

    /// The columns that show a state from `enters` on and before `leaves`.
    fn columns(&self, enters: u32, leaves: u32) -> [u32; 2] {
        [enters, leaves].map(|slot| self.states.partition_point(|&s| s < slot) as u32)
    }

    fn ground(&mut self, rows: &[(u32, f64, f64)]) {
        for &(span, low, high) in rows {
            let known = &self.carving.segments.spans[span as usize];
            let columns = self.columns(known.enters, known.leaves);
            let (low, high) = content(low, high);
            if columns[0] < columns[1] {
                let (weight, pending) = (known.size.0, columns[1]);
                self.small.push(Small { bucket: 0, low, high, columns, pending, weight, block: NO_BLOCK });
            }
        }
        self.flush();
    }

    /// Draws the blocks of a span that can be seen, and notes the others.
    fn pieces(&mut self, span: u32, (bottom, top): (f64, f64), base: f64) -> Option<()> {
        let (Some(&first), Some(&last)) = (self.states.first(), self.states.last()) else { return Some(()) };
        let known = &self.carving.segments.spans[span as usize];
        if known.enters > last || known.leaves <= first {
            return Some(());
        }
        let scale = (top - bottom) / known.size.0.max(1) as f64;
        let y = |address: u64| bottom + (address - known.address.0) as f64 * scale;
        for block in self.tiles.live(self.trace, span, first, last) {
            let (it, size) = (&self.trace.blocks[block as usize], self.carving.sizes[block as usize].0);
            let from = it.address.0.max(known.address.0);
            let to = it.address.0.saturating_add(size).min(known.end());
            if from >= to {
                continue;
            }
            let (low, high) = (y(from), y(to));
            if !self.is_near(low, high) {
                continue;
            }
            let columns = self.columns(it.enters.max(known.enters), it.leaves.min(known.leaves));
            let [x0, x1] = columns;
            if x0 >= x1 {
                continue;
            }
            let pending = it.free_requested().map_or(x1, |event| self.columns(event.0 + 1, 0)[0].clamp(x0, x1));
            if high - low < self.least {
                let bucket = ((low - base) / self.least) as u32;
                self.small.push(Small { bucket, low, high, columns, pending, weight: to - from, block });
                continue;
            }
            self.put([x0, pending], [low, high], self.colours.of(block), block);
            self.put([pending, x1], [low, high], self.pending(block), block);
            if self.strips.len() > STRIP_BUDGET {
                return None;
            }
        }
        Some(())
    }

    /// Of a block that waits for its free to complete.
    fn pending(&self, block: u32) -> Colour {
        let colour = self.colours.of(block);
        if colour == Colour::DIMMED { colour } else { Colour::PENDING }
    }

    /// Draws what was noted, merged.
    fn flush(&mut self) {
        let mut small = std::mem::take(&mut self.small);
        let mut merge = std::mem::take(&mut self.merge);
        small.sort_unstable_by(|a, b| {
            a.bucket.cmp(&b.bucket).then(a.low.total_cmp(&b.low)).then(a.columns.cmp(&b.columns))
        });
        for group in small.chunk_by(|a, b| a.bucket == b.bucket) {
            merge.runs(group, |run| {
                let (lowest, highest) = (&group[run.lowest as usize], &group[run.highest as usize]);
                let block = group[run.largest as usize].block;
                let y = [lowest.low, highest.high.max(lowest.high)];
                let (colour, word) = match block {
                    NO_BLOCK => (Colour::SEGMENT, NO_BLOCK),
                    _ if run.pending => (self.pending(block), block),
                    _ => (self.colours.of(block), block),
                };
                let is_merged = run.lowest != run.highest && block != NO_BLOCK;
                self.put(run.columns, y, colour, if is_merged { word | MERGED } else { word });
            });
        }
        small.clear();
        (self.small, self.merge) = (small, merge);
    }

    fn put(&mut self, [x0, x1]: [u32; 2], y: [f64; 2], colour: Colour, block: u32) {
        let (low, height) = (self.cell.low as f64, (1u64 << self.cell.ky) as f64);
        let [y0, y1] = y.map(|y| ((y - low) / height).clamp(0.0, f64::from(self.cell.rows)) as f32);
        if x0 < x1 && y0 < y1 {
            self.strips.push([x0 as f32, y0, x1 as f32, y1], colour, block);
        }
    }
}

/// What of a row its segment takes: a sixteenth below and above is the gap to its neighbours.
fn content(low: f64, high: f64) -> (f64, f64) {
    let gap = (high - low) / 16.0;
    (low + gap, high - gap)
}
