//! The flame graph of a comparison: widths are the bytes of one side, colors the change.

use super::Compared;
use super::stacks::{change_card, held_rows};
use crate::messages::views::{
    ComparedFlame, ComparedNode, ComparedTile, ComparedTree, FlameBox, FlameInfo, FlameStep,
    ROW_UNITS,
};
use crate::messages::{DetailRow, TileKey};
use crate::queries::flame::MAX_BOXES;
use crate::queries::tiles::cell;
use vramscope_layout::{Color, FlameRows};
use vramscope_report::diff::{BytesDiff, DiffFlame, TreeOrder, amount};
use vramscope_report::{Quantity, text};
use vramscope_units::Bytes;

/// A frame of the next color changes by more than these percent of its larger side.
const LEVEL_PERCENT: [u64; 3] = [10, 30, 60];

/// A flame graph of both sides, with its shown root.
#[derive(Debug)]
pub(super) struct FlameGraph {
    spec: ComparedTree,
    flame: DiffFlame,
    rows: FlameRows,
}

impl FlameGraph {
    fn new(compared: &Compared, spec: &ComparedTree) -> Self {
        let order = TreeOrder {
            of_a: spec.of_a,
            inverted: spec.inverted,
            hide_framework: spec.hide_framework,
        };
        let flame = DiffFlame::new(&compared.stacks, order);
        let rows = FlameRows::new(&flame.tree, ROW_UNITS);
        let spec = ComparedTree { root: String::new(), ..spec.clone() };
        Self { spec, flame, rows }
    }

    fn show(&mut self, root: &str) {
        if self.spec.root != root {
            root.clone_into(&mut self.spec.root);
            let node = self.rows.node_at(root).unwrap_or(0);
            self.rows.focus(&self.flame.tree, node);
        }
    }

    fn color(&self, node: u32) -> Color {
        Color::difference(level(self.flame.bytes[node as usize]))
    }

    fn flame_box(&self, node: u32) -> FlameBox {
        let [x0, x1] = self.rows.span(&self.flame.tree, node).map(|x| x as f64);
        let [y0, y1] = self.rows.edges(&self.flame.tree, node).map(|y| y as f64);
        let (text, place) = match self.flame.frame(node) {
            Some(frame) if !frame.name.is_empty() => (
                text::short_name(&frame.name),
                text::place_if_known(&frame.file, frame.line).unwrap_or_default(),
            ),
            _ => (self.flame.label(node), String::new()),
        };
        let bytes = self.flame.bytes[node as usize];
        let [a, b, change] = amount(bytes);
        let held = if self.spec.of_a { a } else { b };
        let weight = match bytes.change.0 {
            0 => held,
            _ => format!("{held}, {change}"),
        };
        let color = self.color(node).word();
        FlameBox { node, x0, x1, y0, y1, text, place, weight, color }
    }

    /// The bytes below the root whose stacks have no width.
    fn missing(&self) -> u64 {
        let root = self.rows.root();
        let tree = &self.flame.tree;
        let mut sum = 0;
        let mut node = root;
        while node < self.rows.end(root) {
            if tree.nodes[node as usize].total == 0 {
                let BytesDiff { a, b, .. } = self.flame.bytes[node as usize];
                sum += a.max(b).0.unsigned_abs();
                node = self.rows.end(node);
            } else {
                node += 1;
            }
        }
        sum
    }
}

/// The step of a change's color. A tenth of the larger side is still a faint color, so that the eye
/// finds what changed most.
fn level(bytes: BytesDiff) -> i8 {
    let larger = u128::from(bytes.a.0.unsigned_abs().max(bytes.b.0.unsigned_abs()));
    let change = u128::from(bytes.change.0.unsigned_abs()) * 100;
    let above = LEVEL_PERCENT.iter().filter(|&&p| change > larger * u128::from(p)).count();
    bytes.change.0.signum() as i8 * (1 + above as i8)
}

impl Compared {
    /// The graph of a specification with its root.
    fn graph(&mut self, spec: &ComparedTree) -> &FlameGraph {
        let known = self.flame.take().filter(|known| {
            let ComparedTree { of_a, inverted, hide_framework, .. } = known.spec;
            (of_a, inverted, hide_framework) == (spec.of_a, spec.inverted, spec.hide_framework)
        });
        let mut graph = known.unwrap_or_else(|| FlameGraph::new(self, spec));
        graph.show(&spec.root);
        self.flame.insert(graph)
    }

    /// Whether each stack goes through the root of a graph; `None` for all.
    pub(super) fn below(&mut self, spec: &ComparedTree) -> Option<Vec<bool>> {
        if spec.root.is_empty() {
            return None;
        }
        let graph = self.graph(spec);
        let root = graph.rows.root();
        let below = root..graph.rows.end(root);
        Some(graph.flame.tree.leaves.iter().map(|leaf| below.contains(leaf)).collect())
    }

    pub(super) fn flame(&mut self, spec: &ComparedTree) -> ComparedFlame {
        let band = self.b.band.name().replace('_', " ");
        let event = if spec.of_a { self.a.event } else { self.b.event };
        let of_a = spec.of_a;
        let graph = self.graph(spec);
        let tree = &graph.flame.tree;
        let (shown, other) = if of_a { ("A", "B") } else { ("B", "A") };
        let place = super::place(event);
        let root = graph.rows.root() as usize;
        let bytes = graph.flame.bytes[root];
        let step = |&node: &u32| FlameStep {
            path: graph.rows.path_text(tree, node),
            text: graph.flame.label(node),
            terms: Vec::new(),
        };
        let total = Bytes(u64::try_from(tree.nodes[root].total).unwrap_or(u64::MAX));
        let missing = match graph.missing() {
            0 => None,
            bytes => Some(Quantity {
                text: format!("Not drawn: {} that only {other} holds", Bytes(bytes)),
                ..Quantity::bytes(Bytes(bytes))
            }),
        };
        let levels = -(Color::LEVELS as i8)..=Color::LEVELS as i8;
        ComparedFlame {
            info: FlameInfo {
                total: Quantity::bytes(total),
                extent: graph.rows.extent(tree) as f64,
                rows: graph.rows.rows(),
                text: format!("{band} at the peak of {shown}, {place}"),
                matched: None,
                path: graph.rows.path().iter().map(step).collect(),
            },
            text: change_text(bytes),
            missing,
            colors: levels.map(|level| Color::difference(level).word()).collect(),
        }
    }

    pub(super) fn boxes(&mut self, spec: &ComparedTree, x: [f64; 2], least: f64) -> Vec<FlameBox> {
        let graph = self.graph(spec);
        let nodes = graph.rows.wide_nodes(&graph.flame.tree, x, least, MAX_BOXES);
        nodes.into_iter().map(|node| graph.flame_box(node)).collect()
    }

    pub(super) fn node(&mut self, spec: &ComparedTree, node: u32) -> Option<ComparedNode> {
        let graph = self.graph(spec);
        let flame = &graph.flame;
        let known = flame.tree.nodes.get(node as usize)?;
        let bytes = flame.bytes[node as usize];
        let title = flame.label(node);
        let mut rows = held_rows(bytes, flame.blocks[node as usize]);
        rows.insert(0, DetailRow::new("frame", "frame", title.clone(), None));
        let mut frames = Vec::new();
        let mut at = node;
        while at != 0 {
            frames.extend(flame.frame(at));
            at = flame.tree.nodes[at as usize].parent;
        }
        if graph.spec.inverted {
            frames.reverse();
        }
        let note = known.is_of_free.then(|| {
            "This is the call stack of the free. The alloc is not in the trace.".to_owned()
        });
        Some(ComparedNode {
            path: graph.rows.path_text(&flame.tree, node),
            title,
            text: change_text(bytes),
            color: graph.color(node).word(),
            card: change_card(bytes, rows, &frames, note),
        })
    }

    pub(super) fn tiles(&mut self, spec: &ComparedTree, tiles: &[TileKey]) -> Vec<ComparedTile> {
        let graph = self.graph(spec);
        let tile = |&key: &TileKey| {
            let strips = graph.rows.strips(&graph.flame.tree, cell(key), &|node| graph.color(node));
            ComparedTile {
                key,
                positions: strips.positions.into_iter().flatten().collect(),
                colors: strips.colors,
                blocks: strips.blocks,
            }
        };
        tiles.iter().map(tile).collect()
    }
}

/// `1.20 GiB → 1.50 GiB, +307.2 MiB, +25.0 %`.
fn change_text(bytes: BytesDiff) -> String {
    let [a, b, change] = amount(bytes);
    match bytes.change.0 {
        0 => format!("{b} in both"),
        _ => format!("{a} → {b}, {change}, {}", bytes.percent()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_follow_the_share_that_changed() {
        let levels = [(0, 0), (100, 100), (100, 101), (90, 100), (89, 100), (60, 100), (3, 10)]
            .map(|(a, b)| level(BytesDiff::new(a, b)));
        assert_eq!(levels, [0, 0, 1, 1, 2, 3, 4].map(|level: i8| level));
        assert_eq!(
            [(0, 1), (1, 0), (100, 95)].map(|(a, b)| level(BytesDiff::new(a, b))),
            [4, -4, -1]
        );
    }

    #[test]
    fn sides_are_named_in_words() {
        assert_eq!(change_text(BytesDiff::new(0, 1024)), "0 B → 1.00 KiB, +1.00 KiB, new");
        assert_eq!(change_text(BytesDiff::new(512, 512)), "512 B in both");
    }
}
