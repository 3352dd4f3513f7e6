//! What the page shows of a flame graph: numbers, boxes with names, details of a node.

use super::graph::{FRAMEWORK_ONLY, Graph};
use crate::messages::views::{FlameBox, FlameInfo, FlameNode, FlameStep};
use vramscope_report::search::{STEP, WHOLE};
use vramscope_report::{Quantity, Target, text};
use vramscope_snapshot::Snapshot;

/// The maximum number of boxes of an answer: more names than fit on a screen.
pub(in crate::queries) const MAX_BOXES: usize = 2000;

impl Graph {
    /// The total, extent and path of the shown part.
    pub(crate) fn info(&self, at: Target<'_>) -> FlameInfo {
        let root = &self.tree.nodes[self.rows.root() as usize];
        let step = |&node: &u32| FlameStep {
            path: self.rows.path_text(&self.tree, node),
            text: self.title(at.snapshot(), node),
            terms: self.terms(at.snapshot(), node),
        };
        FlameInfo {
            total: self.weight.quantity(root.total),
            extent: self.rows.extent(&self.tree) as f64,
            rows: self.rows.rows(),
            text: self.weight.text(at.trace(), &self.spec),
            matched: (!self.matches.is_empty()).then(|| self.weight.quantity(self.matched())),
            path: self.rows.path().iter().map(step).collect(),
        }
    }

    /// The weight of the shown stacks with a matching frame.
    fn matched(&self) -> u128 {
        let (mut node, root) = (self.rows.root(), self.rows.root());
        if let Some(&matched) = self.matched.get(root as usize) {
            return matched;
        }
        if self.rows.path().iter().any(|&above| self.matches[above as usize]) {
            return self.tree.nodes[root as usize].total;
        }
        let mut sum = 0;
        while node < self.rows.end(root) {
            if self.matches[node as usize] {
                // The total includes all stacks below, so descendants are skipped.
                sum += self.tree.nodes[node as usize].total;
                node = self.rows.end(node);
            } else {
                node += 1;
            }
        }
        sum
    }

    /// The nodes between two x positions that are at least `min_width` wide, by row from the top.
    pub(crate) fn boxes(&self, at: Target<'_>, x0: f64, x1: f64, min_width: f64) -> Vec<FlameBox> {
        let nodes = self.rows.wide_nodes(&self.tree, [x0, x1], min_width, MAX_BOXES);
        nodes.into_iter().map(|node| self.flame_box(at.snapshot(), node)).collect()
    }

    fn flame_box(&self, snapshot: &Snapshot, node: u32) -> FlameBox {
        let [x0, x1] = self.rows.span(&self.tree, node).map(|x| x as f64);
        let [y0, y1] = self.rows.edges(&self.tree, node).map(|y| y as f64);
        let frame = self.frame_of(node).map(|frame| snapshot.frame(frame));
        let named = frame
            .map(|frame| (snapshot.text(frame.name), frame))
            .filter(|(name, _)| !name.is_empty());
        let (text, place) = match named {
            Some((_, frame)) => (
                text::short_function(snapshot, frame),
                text::place_of(snapshot, frame).unwrap_or_default(),
            ),
            None => (self.title(snapshot, node), String::new()),
        };
        let total = self.tree.nodes[node as usize].total;
        let weight = format!("{}, {:.0} %", self.weight.quantity(total).text, self.percent(total));
        let color = self.colors[node as usize].word();
        FlameBox { node, x0, x1, y0, y1, text, place, weight, color }
    }

    /// The details of a node, with its neighbors.
    pub(crate) fn node(&self, at: Target<'_>, node: u32) -> Option<FlameNode> {
        let known = self.tree.nodes.get(node as usize)?;
        let above = (node > 0).then_some(known.parent);
        let siblings: Vec<u32> =
            above.map_or_else(Vec::new, |above| self.rows.children(above).collect());
        let place = siblings.iter().position(|&n| n == node);
        let beside = |step: fn(usize) -> Option<usize>| {
            place.and_then(step).and_then(|p| siblings.get(p).copied())
        };
        let [x0, x1] = self.rows.span(&self.tree, node).map(|x| x as f64);
        let frame = self.frame_of(node).map(|frame| at.snapshot().frame(frame));
        Some(FlameNode {
            node,
            path: self.rows.path_text(&self.tree, node),
            parent: above.map(|above| self.rows.path_text(&self.tree, above)),
            title: self.title(at.snapshot(), node),
            terms: self.terms(at.snapshot(), node),
            total: self.weight.quantity(known.total),
            text: self.summary(node),
            file: frame
                .map_or_else(String::new, |frame| at.snapshot().text(frame.file).into_owned()),
            x0,
            x1,
            color: self.colors[node as usize].word(),
            child: self.rows.children(node).next(),
            before: beside(|p| p.checked_sub(1)),
            behind: beside(|p| p.checked_add(1)),
            above,
        })
    }

    /// The share, blocks and own weight of a node: `12.3 % of all, 40 blocks, 1.2 MiB self`.
    fn summary(&self, node: u32) -> String {
        let known = &self.tree.nodes[node as usize];
        let percent = self.percent(known.total);
        let blocks = Quantity::count(u64::from(known.blocks), "block", "blocks").exact;
        let own = match known.own {
            own if own > 0 && own < known.total => {
                format!(", {} self", self.weight.quantity(own).text)
            }
            _ => String::new(),
        };
        let free =
            if known.is_of_free { ", allocated before the window (stack of the free)" } else { "" };
        format!("{percent:.1} % of all, {blocks}{own}{free}")
    }

    /// A weight in percent of the whole graph.
    fn percent(&self, weight: u128) -> f64 {
        weight as f64 / self.tree.nodes[0].total.max(1) as f64 * 100.0
    }

    /// The terms of a search for the blocks of a node: its path.
    fn terms(&self, snapshot: &Snapshot, node: u32) -> Vec<String> {
        if let Some(why) = self.tree.nodes[node as usize].no_stack {
            return vec![format!("site:{}", text::no_stack(why))];
        }
        let mut labels = Vec::new();
        let mut at = node;
        while at != 0 {
            let Some(frame) = self.frame_of(at) else { return Vec::new() };
            labels.push(text::label_of(snapshot, snapshot.frame(frame)));
            at = self.tree.nodes[at as usize].parent;
        }
        labels.reverse();
        let key = if self.spec.inverted { "leaf" } else { "path" };
        let start = if self.spec.hide_framework { "" } else { WHOLE };
        match labels.as_slice() {
            [] => Vec::new(),
            labels => vec![format!("{key}:{start}{}", labels.join(STEP))],
        }
    }

    /// The label of a node: `model.py:212 forward`.
    pub(super) fn title(&self, snapshot: &Snapshot, node: u32) -> String {
        match self.tree.nodes[node as usize].frame {
            Some(FRAMEWORK_ONLY) => "(framework only)".to_owned(),
            Some(frame) => text::full_label(snapshot, snapshot.frame(frame)),
            None => {
                self.tree.nodes[node as usize].no_stack.map_or("(all)", text::no_stack).to_owned()
            }
        }
    }
}
