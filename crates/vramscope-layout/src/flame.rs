//! A flame graph as boxes: one row per depth with the root at the top, and widths by weight.
//!
//! Weights can exceed the precision of a float. The x axis therefore counts units: the weight of
//! the shown root, halved until it is below 2^40, is the number of units. Nodes too narrow to see
//! are merged with their neighbors in the row into one strip.

use crate::tile::{Cell, STRIP_BUDGET};
use vramscope_render::{Color, MERGED, Strips};
use vramscope_trace::Flame;

/// Exclusive upper limit of the x axis, in units.
const MAX_UNITS: u128 = 1 << 40;

/// Minimum width, in columns, of a node that is drawn with a gap on its right.
const MIN_COLUMNS_FOR_GAP: f64 = 5.0;

/// Positions of the nodes of a flame graph, for the node that is currently shown as root.
#[derive(Clone, Debug)]
pub struct FlameRows {
    /// Left edge of each node: the weight between it and the left edge of node 0.
    left: Vec<u128>,
    /// One past the last descendant of each node.
    ends: Vec<u32>,
    /// Nodes from node 0 to the shown root.
    path: Vec<u32>,
    /// Rows from that of node 0 to the lowest shown row.
    rows: u32,
    /// Log2 of the weight per unit of the x axis.
    shift: u32,
    /// Units of the y axis per row.
    row_units: u32,
}

impl FlameRows {
    /// Positions with node 0 as root. A row is `row_units` high.
    pub fn new(flame: &Flame, row_units: u32) -> Self {
        let nodes = &flame.nodes;
        let mut ends = vec![nodes.len() as u32; nodes.len()];
        let mut left = vec![0u128; nodes.len()];
        // The left edge of the next child of each open node. Children start at the left edge of
        // their parent, and the parent's own weight is to the right of them.
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

    /// Makes `root` the shown root: only its ancestors and its descendants are shown.
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
        while total >> self.shift >= MAX_UNITS {
            self.shift += 1;
        }
    }

    /// The shown root.
    pub fn root(&self) -> u32 {
        self.path.last().copied().unwrap_or(0)
    }

    /// The nodes from node 0 to the shown root.
    pub fn path(&self) -> &[u32] {
        &self.path
    }

    /// Width of the x axis in units.
    pub fn extent(&self, flame: &Flame) -> u64 {
        (flame.nodes[self.root() as usize].total >> self.shift) as u64
    }

    /// Number of shown rows, including those above the root.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Left and right edge of a node in units. Ancestors of the root are as wide as the root. Nodes
    /// outside the root have no width.
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

    /// One past the last descendant of a node.
    pub fn end(&self, node: u32) -> u32 {
        self.ends[node as usize]
    }

    /// A node's children, largest first.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        let end = self.end(node);
        let first = (node + 1 < end).then_some(node + 1);
        std::iter::successors(first, move |&child| Some(self.end(child)).filter(|&next| next < end))
    }

    /// The path of a node: the sibling indices from node 0 to it, as in `0.2.1`.
    pub fn path_text(&self, flame: &Flame, node: u32) -> String {
        let mut indices = Vec::new();
        let mut at = node;
        while at != 0 {
            let above = flame.nodes[at as usize].parent;
            indices
                .extend(self.children(above).position(|n| n == at).map(|index| index.to_string()));
            at = above;
        }
        indices.reverse();
        indices.join(".")
    }

    /// The node at a path; `None` for an invalid path.
    pub fn node_at(&self, path: &str) -> Option<u32> {
        let mut indices = path.split('.').filter(|index| !index.is_empty());
        indices.try_fold(0, |node, index| self.children(node).nth(index.parse().ok()?))
    }

    /// The nodes between two x positions that are at least `min_width` wide, by row from the top:
    /// a limit of `most` nodes drops the lowest rows.
    pub fn wide_nodes(&self, flame: &Flame, x: [f64; 2], min_width: f64, most: usize) -> Vec<u32> {
        let is_shown = |node: u32| {
            let [left, right] = self.span(flame, node).map(|x| x as f64);
            right > left && right - left >= min_width && right >= x[0] && left <= x[1]
        };
        let mut nodes: Vec<u32> = self.path().iter().copied().filter(|&n| is_shown(n)).collect();
        // The root is the last of the path. The nodes after it are in order of their rows.
        let mut at = nodes.len().saturating_sub(1);
        while at < nodes.len() && nodes.len() < most {
            nodes.extend(self.children(nodes[at]).filter(|&n| is_shown(n)));
            at += 1;
        }
        nodes.truncate(most);
        nodes
    }

    /// The strips of a cell, in the colors of their nodes. The cell's slots are units of the x
    /// axis. The block number of a strip is its node.
    pub fn strips(&self, flame: &Flame, cell: Cell, color: &dyn Fn(u32) -> Color) -> Strips {
        // Nodes narrower than half a column are merged.
        let mut min_columns = 0.5;
        loop {
            if let Some(strips) = self.try_strips(flame, cell, min_columns, color) {
                return strips;
            }
            min_columns *= 2.0;
        }
    }

    /// The strips of a cell with all nodes narrower than `min_columns` columns merged. `None` when
    /// there are more strips than [`STRIP_BUDGET`].
    fn try_strips(
        &self,
        flame: &Flame,
        cell: Cell,
        min_columns: f64,
        color: &dyn Fn(u32) -> Color,
    ) -> Option<Strips> {
        // When rows are lower than half a row of the cell, only every `every`th row is drawn. Its
        // strips cover the rows below it, too.
        let every =
            ((1u64 << cell.ky) / 2).div_ceil(u64::from(self.row_units)).max(1).next_power_of_two()
                as u32;
        let mut painter =
            Painter { flame, cell, every, strips: Strips::default(), runs: Vec::new() };
        let scale = (1u64 << cell.kx) as f64;
        let right = f64::from(cell.columns);
        let root = self.root();
        let (above, end) = (self.path.len() - 1, self.end(root));
        let columns = |x: u64| (x as f64 - cell.slot as f64) / scale;
        for &node in self.path[..above]
            .iter()
            .filter(|&&n| flame.nodes[n as usize].depth.is_multiple_of(every))
        {
            painter.add_wide(self, node, [0, self.extent(flame)].map(columns), color(node));
        }
        let mut node = root;
        while node < end {
            let span = self.span(flame, node);
            let x = span.map(columns);
            let is_below = self.edges(flame, node)[1] <= cell.low;
            // Nodes up to one merge width outside the cell are included, so that strips merged
            // across the edge are equal in both cells.
            if x[0] == x[1] || x[1] < -min_columns || x[0] > right + min_columns || is_below {
                node = self.end(node);
                continue;
            }
            let row = flame.nodes[node as usize].depth;
            if row.is_multiple_of(every) {
                if x[1] - x[0] < min_columns {
                    let bucket = (span[0] as f64 / scale / min_columns).floor();
                    painter.add_narrow(self, node, x, bucket, color);
                } else {
                    painter.add_wide(self, node, x, color(node));
                }
            }
            if painter.strips.len() > STRIP_BUDGET {
                return None;
            }
            node += 1;
        }
        for row in 0..painter.runs.len() {
            painter.flush(self, row, color);
        }
        (painter.strips.len() <= STRIP_BUDGET).then_some(painter.strips)
    }
}

/// Neighbors in a row that are drawn as one strip. They all begin in one bucket. A bucket is as
/// wide as the merge width, so no wider node lies between them, and the strip hides none.
#[derive(Clone, Copy)]
struct MergedRun {
    bucket: f64,
    x: [f64; 2],
    node: u32,
    merged: bool,
}

struct Painter<'a> {
    flame: &'a Flame,
    cell: Cell,
    every: u32,
    strips: Strips,
    /// The open run of each drawn row.
    runs: Vec<Option<MergedRun>>,
}

impl Painter<'_> {
    fn add_wide(&mut self, rows: &FlameRows, node: u32, x: [f64; 2], color: Color) {
        let merged = self.every > 1 && node + 1 < rows.end(node);
        // A gap of one column separates neighbors when both are wide enough, because adjacent
        // frames often have one color.
        let gap = if x[1] - x[0] >= MIN_COLUMNS_FOR_GAP { 1.0 } else { 0.0 };
        self.push_strip(rows, node, [x[0], x[1] - gap], merged, color);
    }

    fn add_narrow(
        &mut self,
        rows: &FlameRows,
        node: u32,
        x: [f64; 2],
        bucket: f64,
        color: &dyn Fn(u32) -> Color,
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
                self.runs[row] = Some(MergedRun { bucket, x, node, merged: false });
            }
        }
    }

    fn flush(&mut self, rows: &FlameRows, row: usize, color: &dyn Fn(u32) -> Color) {
        if let Some(run) = self.runs[row].take() {
            self.push_strip(rows, run.node, run.x, run.merged, color(run.node));
        }
    }

    fn push_strip(&mut self, rows: &FlameRows, node: u32, x: [f64; 2], merged: bool, color: Color) {
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
