//! One flame graph: its tree, what of it is shown, and what is said of its nodes.

use super::words::Weight;
use vramscope_analysis::slicing::{Budget, strides};
use vramscope_analysis::{Flame, Share, Sites, by_stack_sliced};
use vramscope_layout::{Cell, Color, FlameRows, Strips, frame_color};
use vramscope_protocol::views::{FlameBox, FlameInfo, FlameNode, FlameSpec, FlameStep, ROW_UNITS};
use vramscope_report::Target;
use vramscope_report::{Quantity, text};
use vramscope_snapshot::{FrameId, Snapshot, StackId};

/// In place of the frames of a stack that has only such as are left out.
const FRAMEWORK_ONLY: FrameId = FrameId(u32::MAX);
/// How many boxes an answer has at most: more names than fit on a screen.
const BOXES: usize = 2000;

/// One flame graph.
pub(crate) struct Graph {
    spec: FlameSpec,
    weight: Weight,
    tree: Flame,
    rows: FlameRows,
    /// Whether a frame stands between the user's code and the allocator, by [`FrameId`].
    framework: Vec<bool>,
    /// Of each node.
    colors: Vec<Color>,
    /// Whether the frame of each node is found by the search; empty without one.
    found: Vec<bool>,
}

impl Graph {
    /// From the blocks of a device; `spec` is without root and search.
    pub(crate) async fn sliced(at: Target<'_>, spec: &FlameSpec, budget: &mut Budget) -> Self {
        let (trace, carving) = (at.trace(), at.entry.carving(at.index));
        let weight = Weight::sliced(trace, spec, budget).await;
        let framework = framework_frames(at.snapshot());
        let weighs = |i: u32| weight.measure.within(trace, carving, i, weight.events);
        let shares = by_stack_sliced(trace, weighs, budget).await;
        let path_of = |share: &Share, path: &mut Vec<Option<FrameId>>| {
            frames_of(at.snapshot(), spec, &framework, share.stack, path);
        };
        let tree = Flame::with_paths(&shares, path_of, budget).await;
        let rows = FlameRows::new(&tree, ROW_UNITS);
        let mut graph = Self {
            spec: spec.clone(),
            weight,
            tree,
            rows,
            framework,
            colors: Vec::new(),
            found: Vec::new(),
        };
        graph.look(at, "");
        graph
    }

    /// What is shown of it from now on.
    pub(super) fn show(&mut self, at: Target<'_>, root: &str, search: &str) {
        if self.spec.root != root {
            root.clone_into(&mut self.spec.root);
            let node = self.node_at(root).unwrap_or(0);
            self.rows.focus(&self.tree, node);
        }
        if self.spec.search != search {
            self.look(at, search);
        }
    }

    /// Look for a text in all frames, and color them.
    fn look(&mut self, at: Target<'_>, search: &str) {
        search.clone_into(&mut self.spec.search);
        let wanted = search.to_lowercase();
        let snapshot = at.snapshot();
        let frames = (0..snapshot.frames.len() as u32).map(FrameId);
        let hits: Vec<bool> = if wanted.is_empty() {
            Vec::new()
        } else {
            frames.map(|frame| is_hit(snapshot, frame, &wanted)).collect()
        };
        let nodes = 0..self.tree.nodes.len() as u32;
        let is_found = |node: u32| match self.frame_of(node) {
            Some(frame) => hits[frame.0 as usize],
            None => node > 0 && self.title(snapshot, node).contains(&wanted),
        };
        self.found =
            if wanted.is_empty() { Vec::new() } else { nodes.clone().map(is_found).collect() };
        self.colors = nodes.map(|node| self.color(snapshot, node)).collect();
    }

    fn color(&self, snapshot: &Snapshot, node: u32) -> Color {
        if self.found.get(node as usize) == Some(&false) {
            return Color::DIMMED;
        }
        match self.frame_of(node) {
            Some(frame) if !self.framework[frame.0 as usize] => {
                frame_color(Sites::hash_of(snapshot, snapshot.frame(frame)))
            }
            _ => Color::NO_STACK,
        }
    }

    /// The strips of a tile.
    pub(crate) fn strips(&self, cell: Cell) -> Strips {
        self.rows.strips(&self.tree, cell, |node| self.colors[node as usize])
    }

    /// Its numbers.
    pub(crate) fn info(&self, at: Target<'_>) -> FlameInfo {
        let root = &self.tree.nodes[self.rows.root() as usize];
        let step = |&node: &u32| FlameStep {
            path: self.path(node),
            text: self.title(at.snapshot(), node),
        };
        FlameInfo {
            total: self.weight.quantity(root.total),
            extent: self.rows.extent(&self.tree) as f64,
            rows: self.rows.rows(),
            text: self.weight.text(at.trace(), &self.spec),
            matched: (!self.found.is_empty()).then(|| self.weight.quantity(self.matched())),
            path: self.rows.path().iter().map(step).collect(),
        }
    }

    /// What is shown of stacks with a frame that the search finds.
    fn matched(&self) -> u128 {
        let (mut node, root) = (self.rows.root(), self.rows.root());
        if self.rows.path().iter().any(|&above| self.found[above as usize]) {
            return self.tree.nodes[root as usize].total;
        }
        let mut sum = 0;
        while node < self.rows.end(root) {
            if self.found[node as usize] {
                // All stacks below it go through it: whatever they find there, they are counted
                // here.
                sum += self.tree.nodes[node as usize].total;
                node = self.rows.end(node);
            } else {
                node += 1;
            }
        }
        sum
    }

    /// The nodes between two places that are wide enough for a name, from the top.
    pub(crate) fn boxes(&self, at: Target<'_>, x0: f64, x1: f64, least: f64) -> Vec<FlameBox> {
        let shown = |node: u32| {
            let [left, right] = self.rows.span(&self.tree, node).map(|x| x as f64);
            right > left && right - left >= least && right >= x0 && left <= x1
        };
        let root = self.rows.root();
        let mut nodes: Vec<u32> = self.rows.path().iter().copied().filter(|&n| shown(n)).collect();
        // Row by row, so that the names that are left out are the lowest.
        let mut row: Vec<u32> = if shown(root) { vec![root] } else { Vec::new() };
        while !row.is_empty() && nodes.len() < BOXES {
            row = row
                .iter()
                .flat_map(|&node| self.rows.children(node))
                .filter(|&n| shown(n))
                .collect();
            nodes.extend(&row);
        }
        nodes.truncate(BOXES);
        nodes.into_iter().map(|node| self.named(at.snapshot(), node)).collect()
    }

    fn named(&self, snapshot: &Snapshot, node: u32) -> FlameBox {
        let [x0, x1] = self.rows.span(&self.tree, node).map(|x| x as f64);
        let [y0, y1] = self.rows.edges(&self.tree, node).map(|y| y as f64);
        let frame = self.frame_of(node).map(|frame| snapshot.frame(frame));
        let named = frame
            .map(|frame| (snapshot.text(frame.name), frame))
            .filter(|(name, _)| !name.is_empty());
        let (text, place) = match named {
            Some((name, frame)) => {
                (name.into_owned(), text::place_of(snapshot, frame).unwrap_or_default())
            }
            None => (self.title(snapshot, node), String::new()),
        };
        FlameBox { node, x0, x1, y0, y1, text, place }
    }

    /// What is known of a node.
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
            path: self.path(node),
            parent: above.map(|above| self.path(above)),
            title: self.title(at.snapshot(), node),
            total: self.weight.quantity(known.total),
            text: self.share(node),
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

    /// `12.3 % of all, 40 blocks; 1.2 MiB of its own`.
    fn share(&self, node: u32) -> String {
        let known = &self.tree.nodes[node as usize];
        let all = self.tree.nodes[0].total.max(1);
        let percent = known.total as f64 / all as f64 * 100.0;
        let blocks = Quantity::count(u64::from(known.blocks), "block", "blocks").exact;
        let own = match known.own {
            own if own > 0 && own < known.total => {
                format!("; {} of its own", self.weight.quantity(own).text)
            }
            _ => String::new(),
        };
        let free = if known.is_of_free {
            "; from before the window, by the stack of the free"
        } else {
            ""
        };
        format!("{percent:.1} % of all, {blocks}{own}{free}")
    }

    /// The blocks that a node adds up, by index, ascending.
    pub(super) async fn blocks_below(
        &self,
        at: Target<'_>,
        node: u32,
        budget: &mut Budget,
    ) -> Vec<u32> {
        let Some(known) = self.tree.nodes.get(node as usize) else { return Vec::new() };
        let mut wanted = Vec::new();
        let mut above = node;
        while above != 0 {
            wanted.push(self.tree.nodes[above as usize].frame);
            above = self.tree.nodes[above as usize].parent;
        }
        wanted.reverse();
        let (trace, carving, snapshot) = (at.trace(), at.entry.carving(at.index), at.snapshot());
        // Whether a stack comes through here, told once for each.
        let mut through: Vec<Option<bool>> = vec![None; snapshot.stacks.len()];
        let mut path = Vec::new();
        let mut is_below = |i: u32| {
            let block = &trace.blocks[i as usize];
            if node > 0 && block.has_stack_of_free() != known.is_of_free {
                return false;
            }
            *through[block.stack.0 as usize].get_or_insert_with(|| {
                path.clear();
                frames_of(snapshot, &self.spec, &self.framework, block.stack, &mut path);
                path.starts_with(&wanted)
            })
        };
        let weighs = |i: u32| self.weight.measure.within(trace, carving, i, self.weight.events) > 0;
        let mut below = Vec::new();
        for part in strides(trace.blocks.len()) {
            budget.charge(3 * part.len() as u64).await;
            below.extend(part.map(|i| i as u32).filter(|&i| is_below(i) && weighs(i)));
        }
        below
    }

    /// The frame of a node, if it is one.
    fn frame_of(&self, node: u32) -> Option<FrameId> {
        self.tree.nodes[node as usize].frame.filter(|&frame| frame != FRAMEWORK_ONLY)
    }

    /// `forward model.py:212`.
    fn title(&self, snapshot: &Snapshot, node: u32) -> String {
        match self.tree.nodes[node as usize].frame {
            Some(FRAMEWORK_ONLY) => "(framework only)".to_owned(),
            Some(frame) => text::full_label(snapshot, snapshot.frame(frame)),
            None if node == 0 => "(all)".to_owned(),
            None => "(no call stack)".to_owned(),
        }
    }

    /// The places of a node and of those above it among their siblings: `0.2.1`.
    fn path(&self, node: u32) -> String {
        let mut places = Vec::new();
        let mut at = node;
        while at != 0 {
            let above = self.tree.nodes[at as usize].parent;
            places.extend(
                self.rows.children(above).position(|n| n == at).map(|place| place.to_string()),
            );
            at = above;
        }
        places.reverse();
        places.join(".")
    }

    /// The node at a path; `None` when it leads nowhere.
    fn node_at(&self, path: &str) -> Option<u32> {
        let mut places = path.split('.').filter(|place| !place.is_empty());
        places.try_fold(0, |node, place| self.rows.children(node).nth(place.parse().ok()?))
    }
}

/// Frames whose files are PyTorch's, Python's or compiled.
fn framework_frames(snapshot: &Snapshot) -> Vec<bool> {
    // Many frames are in one file.
    let mut files: Vec<Option<bool>> = vec![None; snapshot.strings.len()];
    let frames = (0..snapshot.frames.len() as u32).map(|id| snapshot.frame(FrameId(id)));
    frames
        .map(|f| *files[f.file.0 as usize].get_or_insert_with(|| text::is_framework(snapshot, f)))
        .collect()
}

/// The frames of a stack in the order of the graph, from the root on.
fn frames_of(
    snapshot: &Snapshot,
    spec: &FlameSpec,
    framework: &[bool],
    stack: StackId,
    path: &mut Vec<Option<FrameId>>,
) {
    let frames = snapshot.stacks.frames(stack);
    path.extend(
        frames
            .iter()
            .filter(|f| !spec.hide_framework || !framework[f.0 as usize])
            .copied()
            .map(Some),
    );
    if !spec.inverted {
        path.reverse();
    }
    if path.is_empty() {
        path.push(if frames.is_empty() { None } else { Some(FRAMEWORK_ONLY) });
    }
}

/// Whether a frame as people read it, or with its whole path, holds a text in small letters.
fn is_hit(snapshot: &Snapshot, id: FrameId, wanted: &str) -> bool {
    let frame = snapshot.frame(id);
    let whole =
        format!("{} {}:{}", snapshot.text(frame.name), snapshot.text(frame.file), frame.line);
    whole.to_lowercase().contains(wanted)
        || text::full_label(snapshot, frame).to_lowercase().contains(wanted)
}
