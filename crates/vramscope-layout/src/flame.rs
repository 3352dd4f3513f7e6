//! A flame graph as boxes: a row a depth with the root at the top, as wide as the weight.
//!
//! Weights can be larger than a float tells apart, so the x axis counts in units: the weight of
//! what is shown, halved until it is below 2^40. Nodes too narrow to see are drawn as one strip
//! with their neighbors in the same row.

use crate::tile::{Cell, STRIP_BUDGET};
use vramscope_analysis::Flame;
use vramscope_render::{Color, MERGED, Strips};

/// Units that the x axis stays below.
const EXTENT: u128 = 1 << 40;

/// Columns of a node that is drawn with a gap on its right.
const WITH_GAP: f64 = 5.0;

/// Where the nodes of one flame graph are, while one of them is the root of what is shown.
#[derive(Clone, Debug)]
pub struct FlameRows {
    /// The left edge of each node, as a weight from the whole's.
    left: Vec<u128>,
    /// One past the last node below each.
    ends: Vec<u32>,
    /// From the whole to the root.
    path: Vec<u32>,
    /// Rows from the whole's to the lowest that is shown.
    rows: u32,
    shift: u32,
    row_units: u32,
}

impl FlameRows {
    /// With all shown; a row is `row_units` high.
    pub fn new(flame: &Flame, row_units: u32) -> Self {
        let nodes = &flame.nodes;
        let mut ends = vec![nodes.len() as u32; nodes.len()];
        let mut left = vec![0u128; nodes.len()];
        // Where the next child of each open node begins: the children stand at its left edge, what
        // is its own behind them.
        let mut open: Vec<(u32, u128)> = Vec::new();
        for (i, node) in (0u32..).zip(nodes) {
            while open.last().is_some_and(|&(above, _)| nodes[above as usize].depth >= node.depth) {
                if let Some((above, _)) = open.pop() {
                    ends[above as usize] = i;
                }
            }
            if let Some((_, next)) = open.last_mut() {
                left[i as usize] = *next;
                *next += node.total;
            }
            open.push((i, left[i as usize]));
        }
        let mut rows = Self { left, ends, path: vec![0], rows: 1, shift: 0, row_units };
        rows.focus(flame, 0);
        rows
    }

    /// Show only a node, what is below it, and what it is below.
    pub fn focus(&mut self, flame: &Flame, root: u32) {
        let root = if (root as usize) < flame.nodes.len() { root } else { 0 };
        self.path.clear();
        let mut at = root;
        while at != 0 {
            self.path.push(at);
            at = flame.nodes[at as usize].parent;
        }
        self.path.push(0);
        self.path.reverse();
        let below = &flame.nodes[root as usize..self.ends[root as usize] as usize];
        self.rows = below.iter().map(|n| n.depth).max().unwrap_or(0) + 1;
        let total = flame.nodes[root as usize].total;
        self.shift = 0;
        while total >> self.shift >= EXTENT {
            self.shift += 1;
        }
    }

    /// The root of what is shown.
    pub fn root(&self) -> u32 {
        self.path.last().copied().unwrap_or(0)
    }

    /// From the whole to the root.
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// Width of the x axis in units.
    pub fn extent(&self, flame: &Flame) -> u64 {
        (flame.nodes[self.root() as usize].total >> self.shift) as u64
    }

    /// How many rows are shown, those above the root included.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Left and right edge of a node in units. What the root is below is as wide as it; what is
    /// elsewhere has no width.
    pub fn span(&self, flame: &Flame, node: u32) -> [u64; 2] {
        let root = self.root() as usize;
        let (from, to) = (self.left[root], self.left[root] + flame.nodes[root].total);
        let left = self.left[node as usize];
        [left, left + flame.nodes[node as usize].total]
            .map(|x| ((x.clamp(from, to) - from) >> self.shift) as u64)
    }

    /// Lower and upper edge of a node in units of the y axis.
    pub fn edges(&self, flame: &Flame, node: u32) -> [u64; 2] {
        let above = flame.nodes[node as usize].depth;
        [above + 1, above]
            .map(|row| u64::from(self.rows.saturating_sub(row)) * u64::from(self.row_units))
    }

    /// One past the last node below a node.
    pub fn end(&self, node: u32) -> u32 {
        self.ends[node as usize]
    }

    /// A node's children, largest first.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        let end = self.end(node);
        let first = (node + 1 < end).then_some(node + 1);
        std::iter::successors(first, move |&child| Some(self.end(child)).filter(|&next| next < end))
    }

    /// The strips of a cell (its slots are units of the x axis), in the colors of their nodes; a
    /// strip's block is the node.
    pub fn strips(&self, flame: &Flame, cell: Cell, color: impl Fn(u32) -> Color) -> Strips {
        // What is narrower than half a column is merged.
        let mut least = 0.5;
        loop {
            if let Some(strips) = self.attempt(flame, cell, least, &color) {
                return strips;
            }
            least *= 2.0;
        }
    }

    /// `None` when there would be more strips than the budget.
    fn attempt(
        &self,
        flame: &Flame,
        cell: Cell,
        least: f64,
        color: &impl Fn(u32) -> Color,
    ) -> Option<Strips> {
        // Rows lower than half a row of the cell: only every so many is drawn, with those below it
        // behind it.
        let every =
            ((1u64 << cell.ky) / 2).div_ceil(u64::from(self.row_units)).max(1).next_power_of_two()
                as u32;
        let mut draw = Draw { flame, cell, every, strips: Strips::default(), runs: Vec::new() };
        let scale = (1u64 << cell.kx) as f64;
        let right = f64::from(cell.columns);
        let root = self.root();
        let (above, end) = (self.path.len() - 1, self.end(root));
        let columns = |x: u64| (x as f64 - cell.slot as f64) / scale;
        for &node in self.path[..above]
            .iter()
            .filter(|&&n| flame.nodes[n as usize].depth.is_multiple_of(every))
        {
            draw.at(self, node, [0, self.extent(flame)].map(columns), color(node));
        }
        let mut node = root;
        while node < end {
            let span = self.span(flame, node);
            let x = span.map(columns);
            let is_below = self.edges(flame, node)[1] <= cell.low;
            // One merged width beyond the edges is looked at too: what is merged there is the same
            // in both cells.
            if x[0] == x[1] || x[1] < -least || x[0] > right + least || is_below {
                node = self.end(node);
                continue;
            }
            let row = flame.nodes[node as usize].depth;
            if row.is_multiple_of(every) {
                if x[1] - x[0] < least {
                    let bucket = (span[0] as f64 / scale / least).floor();
                    draw.narrow(self, node, x, bucket, color);
                } else {
                    draw.at(self, node, x, color(node));
                }
            }
            if draw.strips.len() > STRIP_BUDGET {
                return None;
            }
            node += 1;
        }
        for row in 0..draw.runs.len() {
            draw.flush(self, row, color);
        }
        (draw.strips.len() <= STRIP_BUDGET).then_some(draw.strips)
    }
}

/// Neighbors in a row that are drawn as one. Those that begin in the same part of the row as wide
/// as what is merged have no wider node between them, so the strip hides none.
#[derive(Clone, Copy)]
struct Run {
    bucket: f64,
    x: [f64; 2],
    node: u32,
    merged: bool,
}

struct Draw<'a> {
    flame: &'a Flame,
    cell: Cell,
    every: u32,
    strips: Strips,
    /// The open run of each row that is drawn.
    runs: Vec<Option<Run>>,
}

impl Draw<'_> {
    fn at(&mut self, rows: &FlameRows, node: u32, x: [f64; 2], color: Color) {
        let merged = self.every > 1 && node + 1 < rows.end(node);
        // A line of ground between neighbors, where both can spare it: many frames have one
        // color.
        let gap = if x[1] - x[0] >= WITH_GAP { 1.0 } else { 0.0 };
        self.put(rows, node, [x[0], x[1] - gap], merged, color);
    }

    fn narrow(
        &mut self,
        rows: &FlameRows,
        node: u32,
        x: [f64; 2],
        bucket: f64,
        color: &impl Fn(u32) -> Color,
    ) {
        let row = (self.flame.nodes[node as usize].depth / self.every) as usize;
        if self.runs.len() <= row {
            self.runs.resize(row + 1, None);
        }
        let total = |n: u32| self.flame.nodes[n as usize].total;
        match &mut self.runs[row] {
            Some(run) if run.bucket == bucket => {
                run.x[1] = x[1];
                run.merged = true;
                if total(node) > total(run.node) {
                    run.node = node;
                }
            }
            _ => {
                self.flush(rows, row, color);
                self.runs[row] = Some(Run { bucket, x, node, merged: false });
            }
        }
    }

    fn flush(&mut self, rows: &FlameRows, row: usize, color: &impl Fn(u32) -> Color) {
        if let Some(run) = self.runs[row].take() {
            self.put(rows, run.node, run.x, run.merged, color(run.node));
        }
    }

    fn put(&mut self, rows: &FlameRows, node: u32, x: [f64; 2], merged: bool, color: Color) {
        let [_, top] = rows.edges(self.flame, node);
        let bottom = top.saturating_sub(u64::from(self.every) * u64::from(rows.row_units));
        let low = self.cell.low as f64;
        let y = [bottom, top].map(|y| {
            ((y as f64 - low) / (1u64 << self.cell.ky) as f64).clamp(0.0, f64::from(self.cell.rows))
        });
        let x = x.map(|x| x.clamp(0.0, f64::from(self.cell.columns)));
        let position = [x[0] as f32, y[0] as f32, x[1] as f32, y[1] as f32];
        if position[0] < position[2] && position[1] < position[3] {
            self.strips.push(position, color, if merged { node | MERGED } else { node });
        }
    }
}
