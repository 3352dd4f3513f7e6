//! The map of the segments in one state: all of them to scale, wrapped into lines like text.
//!
//! Segments of one group follow each other without gaps. A group begins at a new line, below a line
//! for its heading. x counts the bytes of a line, y counts units, and the first line is at the top.
//! Pieces too narrow to see are merged with their neighbors in the line into one strip.

use crate::color::Colors;
use crate::tile::{Cell, STRIP_BUDGET};
use std::ops::Range;
use vramscope_render::{Color, MERGED, NO_BLOCK, Strips};
use vramscope_trace::{Content, PieceKind, SegmentState};

/// Minimum width, in columns, of the last piece of a segment that is drawn with a gap on its right.
const MIN_COLUMNS_FOR_GAP: f64 = 5.0;

/// The part of a line's height that separates it from the next line: one in this many.
const GAP: f64 = 8.0;

/// Lines above a group's segments, for its heading.
const HEAD_LINES: u64 = 1;

/// Free memory that was not reserved in the earlier state.
pub const MAPPED: Color = Color::difference(2).hatched();

/// Memory that was free in the earlier state and is not reserved any more.
pub const RELEASED: Color = Color::difference(-2).hatched();

/// A block or free memory on the map.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The first byte, counted from the start of the first line.
    from: u64,
    /// The first byte behind it.
    to: u64,
    /// The block; [`NO_BLOCK`] for free memory.
    block: u32,
    /// Whether the block waits for its free to complete.
    pending: bool,
    /// How it differs from an earlier state.
    kind: PieceKind,
    /// Whether a segment ends with it.
    ends_segment: bool,
}

/// A part of the map in one line: the left and right edge in bytes, the lower and upper edge in
/// units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinePart {
    /// Left and right edge.
    pub x: [u64; 2],
    /// Lower and upper edge.
    pub y: [f64; 2],
}

/// The segments of one state, in lines.
#[derive(Clone, Debug, Default)]
pub struct SegmentMap {
    /// Pieces by place. They do not overlap.
    places: Vec<Place>,
    /// The first line of each group, which has its heading.
    heads: Vec<u64>,
    /// Number of lines.
    lines: u64,
    /// Bytes in a line, at least 1.
    line_bytes: u64,
    /// Units of the y axis per line.
    line_units: u32,
}

impl SegmentMap {
    /// Places the segments of each group in lines of `line_bytes`.
    pub fn new(groups: &[Vec<&SegmentState>], line_bytes: u64, line_units: u32) -> Self {
        let plain = |group: &Vec<_>| group.iter().map(|&segment| (segment, &[][..])).collect();
        let groups: Vec<Vec<_>> = groups.iter().map(plain).collect();
        Self::changed(&groups, line_bytes, line_units)
    }

    /// [`SegmentMap::new`] with the kinds of the pieces of each segment. Missing kinds are
    /// [`PieceKind::Now`].
    pub fn changed(
        groups: &[Vec<(&SegmentState, &[PieceKind])>],
        line_bytes: u64,
        line_units: u32,
    ) -> Self {
        let line_bytes = line_bytes.max(1);
        let mut map = Self { line_bytes, line_units, ..Self::default() };
        for group in groups {
            map.heads.push(map.lines);
            let start = map.lines.saturating_add(HEAD_LINES).saturating_mul(line_bytes);
            let mut at = start;
            for (segment, kinds) in group {
                let end = at.saturating_add(segment.size.0);
                for (index, piece) in segment.pieces.iter().enumerate() {
                    let offset = piece.address.0.saturating_sub(segment.address.0);
                    // Blocks of a damaged file can reach beyond their segment, or overlap.
                    let last = map.places.last().map_or(0, |place| place.to);
                    let from = at.saturating_add(offset).clamp(last.min(end), end);
                    let to = from.saturating_add(piece.size.0).min(end);
                    let (block, pending) = match piece.content {
                        Content::Free => (NO_BLOCK, false),
                        Content::Block { block, pending } => (block, pending),
                    };
                    if from < to {
                        let ends_segment = to == end;
                        let kind = kinds.get(index).copied().unwrap_or_default();
                        map.places.push(Place { from, to, block, pending, kind, ends_segment });
                    }
                }
                at = end;
            }
            let used = (at - start).div_ceil(line_bytes).max(1);
            map.lines = map.lines.saturating_add(HEAD_LINES).saturating_add(used);
        }
        map
    }

    /// The number of lines that groups of these sizes take, with their headings.
    pub fn lines_for(group_bytes: &[u64], line_bytes: u64) -> u64 {
        let lines = |bytes: &u64| HEAD_LINES + bytes.div_ceil(line_bytes.max(1)).max(1);
        group_bytes.iter().map(lines).fold(0, u64::saturating_add)
    }

    /// Bytes in a line: the width of the x axis.
    pub fn line_bytes(&self) -> u64 {
        self.line_bytes
    }

    /// Height of all lines in units.
    pub fn units(&self) -> f64 {
        self.lines as f64 * f64::from(self.line_units)
    }

    /// The lower and upper edge of a group's heading in units.
    pub fn head(&self, group: usize) -> [f64; 2] {
        let line = self.heads[group];
        [self.edge(line + 1), self.edge(line)]
    }

    /// The parts of a block on the map, one for each line that it touches.
    pub fn parts_of(&self, block: u32) -> Vec<LinePart> {
        let found = self.places.iter().find(|place| place.block == block);
        let lines = found.map_or(0..0, |place| self.lines_of(place));
        let part = |line: u64| {
            let place = found?;
            let x = self.within(place, line);
            (x[0] < x[1]).then(|| LinePart { x, y: self.content(line) })
        };
        lines.filter_map(part).collect()
    }

    /// The strips of a cell. The cell's slots are bytes of a line.
    pub fn strips(&self, cell: Cell, colors: &Colors) -> Strips {
        // Pieces narrower than half a column are merged.
        let mut min_columns = 0.5;
        loop {
            if let Some(strips) = self.try_strips(cell, min_columns, colors) {
                return strips;
            }
            min_columns *= 2.0;
        }
    }

    /// The strips of a cell with all pieces narrower than `min_columns` columns merged. `None` when
    /// there are more strips than [`STRIP_BUDGET`].
    fn try_strips(&self, cell: Cell, min_columns: f64, colors: &Colors) -> Option<Strips> {
        let scale = (1u64 << cell.kx) as f64;
        let mut painter =
            Painter { cell, colors, strips: Strips::default(), run: None, y: [0.0; 2] };
        // Pieces up to one merge width outside the cell are included, so that strips merged across
        // the edge are equal in both cells.
        let margin = (min_columns * scale).ceil() as u64;
        let right = cell.slot.saturating_add(u64::from(cell.columns) << cell.kx);
        let [left, right] = [cell.slot.saturating_sub(margin), right.saturating_add(margin)];
        for line in self.lines_in(cell) {
            let [low, high] = self.content(line);
            painter.set_line([low, high]);
            let start = line.saturating_mul(self.line_bytes);
            let first = self.places.partition_point(|place| place.to <= start.saturating_add(left));
            for place in &self.places[first..] {
                if place.from >= start.saturating_add(right.min(self.line_bytes)) {
                    break;
                }
                let x = self.within(place, line);
                let columns = x.map(|x| (x as f64 - cell.slot as f64) / scale);
                if columns[1] - columns[0] < min_columns {
                    painter.add_narrow(place, columns, (x[0] as f64 / scale / min_columns).floor());
                } else {
                    let ends = place.ends_segment && place.to <= start + self.line_bytes;
                    painter.add_wide(place, columns, ends);
                }
            }
            painter.flush();
            if painter.strips.len() > STRIP_BUDGET && min_columns < f64::from(cell.columns) {
                return None;
            }
        }
        Some(painter.strips)
    }

    /// The lines with units between the edges of a cell.
    fn lines_in(&self, cell: Cell) -> Range<u64> {
        let units = u64::from(self.line_units.max(1));
        let all = self.lines.saturating_mul(units);
        let high = cell.low.saturating_add(u64::from(cell.rows) << cell.ky).min(all);
        let first = (all - high) / units;
        let end = all.saturating_sub(cell.low.min(all)).div_ceil(units);
        first..end
    }

    /// The lines that a piece touches.
    fn lines_of(&self, place: &Place) -> Range<u64> {
        place.from / self.line_bytes..place.to.div_ceil(self.line_bytes)
    }

    /// The left and right edge of a piece within a line.
    fn within(&self, place: &Place, line: u64) -> [u64; 2] {
        let start = line.saturating_mul(self.line_bytes);
        let end = start.saturating_add(self.line_bytes);
        [place.from, place.to].map(|at| at.clamp(start, end) - start)
    }

    /// The upper edge of a line in units.
    fn edge(&self, line: u64) -> f64 {
        self.lines.saturating_sub(line) as f64 * f64::from(self.line_units)
    }

    /// The lower and upper edge of the pieces in a line.
    fn content(&self, line: u64) -> [f64; 2] {
        let top = self.edge(line);
        [top - f64::from(self.line_units) * (1.0 - 1.0 / GAP), top]
    }
}

/// Narrow neighbors in a line that are drawn as one strip. They all begin in one bucket, which is
/// as wide as the merge width, so no wider piece lies between them.
#[derive(Clone, Copy)]
struct MergedRun {
    bucket: f64,
    x: [f64; 2],
    largest: Place,
    merged: bool,
}

struct Painter<'a> {
    cell: Cell,
    colors: &'a Colors,
    strips: Strips,
    run: Option<MergedRun>,
    /// Lower and upper edge of the current line in rows of the cell.
    y: [f32; 2],
}

impl Painter<'_> {
    fn set_line(&mut self, edges: [f64; 2]) {
        let row = (1u64 << self.cell.ky) as f64;
        self.y = edges.map(|y| {
            ((y - self.cell.low as f64) / row).clamp(0.0, f64::from(self.cell.rows)) as f32
        });
    }

    fn add_wide(&mut self, place: &Place, x: [f64; 2], ends_segment: bool) {
        self.flush();
        // A gap of one column separates segments.
        let has_gap = ends_segment && x[1] - x[0] >= MIN_COLUMNS_FOR_GAP;
        self.push(place, [x[0], x[1] - if has_gap { 1.0 } else { 0.0 }], false);
    }

    fn add_narrow(&mut self, place: &Place, x: [f64; 2], bucket: f64) {
        match &mut self.run {
            Some(run) if run.bucket == bucket => {
                run.x[1] = x[1];
                run.merged = true;
                if place.to - place.from > run.largest.to - run.largest.from {
                    run.largest = *place;
                }
            }
            _ => {
                self.flush();
                self.run = Some(MergedRun { bucket, x, largest: *place, merged: false });
            }
        }
    }

    fn flush(&mut self) {
        if let Some(run) = self.run.take() {
            self.push(&run.largest, run.x, run.merged);
        }
    }

    fn push(&mut self, place: &Place, x: [f64; 2], merged: bool) {
        let x = x.map(|x| x.clamp(0.0, f64::from(self.cell.columns)) as f32);
        let color = match (place.kind, place.block) {
            (PieceKind::Mapped, _) => MAPPED,
            (PieceKind::Released, _) => RELEASED,
            (_, NO_BLOCK) => Color::SEGMENT.hatched(),
            (PieceKind::Went, block) => self.colors.of(block).hatched(),
            (PieceKind::Now, block) if place.pending => self.colors.of(block).hatched(),
            (PieceKind::Now, block) => self.colors.of(block),
        };
        if x[0] < x[1] && self.y[0] < self.y[1] {
            let block =
                if merged && place.block != NO_BLOCK { place.block | MERGED } else { place.block };
            self.strips.push([x[0], self.y[0], x[1], self.y[1]], color, block);
        }
    }
}
