//! A flame graph: its tree, colors and search.

use super::weight::Weight;
use crate::messages::views::{FlameSpec, ROW_UNITS};
use rustc_hash::FxHashMap;
use vramscope_layout::{Cell, Color, FlameRows, Strips, frame_color};
use vramscope_report::search::{Matcher, only_word};
use vramscope_report::{Target, text};
use vramscope_snapshot::{FrameId, Snapshot, StackId, StrId};
use vramscope_trace::slicing::{Budget, now};
use vramscope_trace::{Flame, Share, Sites, by_stack};

/// Replaces the frames of a stack whose frames are all hidden.
pub(super) const FRAMEWORK_ONLY: FrameId = FrameId(u32::MAX);

/// One flame graph.
pub(crate) struct Graph {
    pub(super) spec: FlameSpec,
    pub(super) weight: Weight,
    pub(super) tree: Flame,
    pub(super) rows: FlameRows,
    /// Whether a frame belongs to PyTorch, Python or compiled code, by [`FrameId`].
    framework: Vec<bool>,
    /// The color of each node.
    pub(super) colors: Vec<Color>,
    /// Whether each node matches the search; empty without a search.
    pub(super) matches: Vec<bool>,
    /// The weight of the blocks of a filter in each node; empty without a filter.
    pub(super) matched: Vec<u128>,
}

impl Graph {
    /// Builds the graph of a device. `spec` has neither root nor search.
    pub(crate) async fn new(at: Target<'_>, spec: &FlameSpec, budget: &mut Budget) -> Self {
        let (trace, carving) = (at.trace(), at.entry.carving(at.index));
        let weight = Weight::new(trace, spec, budget).await;
        let framework = framework_frames(at.snapshot());
        let weighs = |i: u32| weight.measure.within(trace, carving, i, weight.events);
        let shares = by_stack(trace, weighs, budget).await;
        let mut path_of = |share: &Share, path: &mut Vec<Option<FrameId>>| {
            frames_of(at.snapshot(), spec, &framework, share.stack, path);
        };
        let tree = Flame::with_paths(&shares, &mut path_of, budget).await;
        let rows = FlameRows::new(&tree, ROW_UNITS);
        let mut graph = Self {
            spec: spec.clone(),
            weight,
            tree,
            rows,
            framework,
            colors: Vec::new(),
            matches: Vec::new(),
            matched: Vec::new(),
        };
        graph.apply_search(at, "");
        graph
    }

    /// Sets the root and the search.
    pub(super) fn show(&mut self, at: Target<'_>, root: &str, search: &str) {
        if self.spec.root != root {
            root.clone_into(&mut self.spec.root);
            let node = self.rows.node_at(root).unwrap_or(0);
            self.rows.focus(&self.tree, node);
        }
        if self.spec.search != search {
            self.apply_search(at, search);
        }
    }

    /// Finds the nodes that contain a text, and colors all nodes.
    fn apply_search(&mut self, at: Target<'_>, search: &str) {
        search.clone_into(&mut self.spec.search);
        let snapshot = at.snapshot();
        (self.matches, self.matched) = if let Some(word) = only_word(search) {
            (self.of_word(snapshot, &word), Vec::new())
        } else if let Some(matcher) = now(async |budget| Matcher::new(at, search, budget).await) {
            self.of_blocks(at, &matcher)
        } else {
            (Vec::new(), Vec::new())
        };
        let nodes = 0..self.tree.nodes.len() as u32;
        self.colors = nodes.map(|node| self.color(snapshot, node)).collect();
    }

    /// The nodes whose frame contains a word.
    fn of_word(&self, snapshot: &Snapshot, wanted: &str) -> Vec<bool> {
        let frames = (0..snapshot.frames.len() as u32).map(FrameId);
        let frame_matches: Vec<bool> =
            frames.map(|frame| matches(snapshot, frame, wanted)).collect();
        let node_matches = |node: u32| match self.frame_of(node) {
            Some(frame) => frame_matches[frame.0 as usize],
            None => node > 0 && self.title(snapshot, node).contains(wanted),
        };
        (0..self.tree.nodes.len() as u32).map(node_matches).collect()
    }

    /// The nodes through which blocks of a filter go, and the weight of these blocks in each.
    fn of_blocks(&self, at: Target<'_>, matcher: &Matcher) -> (Vec<bool>, Vec<u128>) {
        let (trace, carving) = (at.trace(), at.entry.carving(at.index));
        let weighs = |i: u32| {
            let is_wanted = matcher.block(at, i);
            let weight = || self.weight.measure.within(trace, carving, i, self.weight.events);
            if is_wanted { weight() } else { 0 }
        };
        let shares = now(async |budget| by_stack(trace, weighs, budget).await);
        let mut path_of = |share: &Share, path: &mut Vec<Option<FrameId>>| {
            frames_of(at.snapshot(), &self.spec, &self.framework, share.stack, path);
        };
        let part = now(async |budget| Flame::with_paths(&shares, &mut path_of, budget).await);
        let mut matched = vec![0; self.tree.nodes.len()];
        let rows = FlameRows::new(&part, ROW_UNITS);
        // Both trees, node by node: the part has nodes of the whole only.
        let mut open = vec![(0, 0)];
        let key = |tree: &Flame, node: u32| {
            let node = &tree.nodes[node as usize];
            (node.frame, node.is_of_free, node.no_stack)
        };
        while let Some((whole, node)) = open.pop() {
            matched[whole as usize] = part.nodes[node as usize].total;
            let children: Vec<u32> = self.rows.children(whole).collect();
            for child in rows.children(node) {
                let same = children.iter().find(|&&of| key(&self.tree, of) == key(&part, child));
                open.extend(same.map(|&of| (of, child)));
            }
        }
        (matched.iter().map(|&weight| weight > 0).collect(), matched)
    }

    fn color(&self, snapshot: &Snapshot, node: u32) -> Color {
        if self.matches.get(node as usize) == Some(&false) {
            return Color::DIMMED;
        }
        match self.frame_of(node) {
            Some(frame) if !self.framework[frame.0 as usize] => {
                frame_color(Sites::hash_of(snapshot, snapshot.frame(frame)))
            }
            _ => Color::NO_STACK,
        }
    }

    /// The strips of a cell.
    pub(crate) fn strips(&self, cell: Cell) -> Strips {
        self.rows.strips(&self.tree, cell, &|node| self.colors[node as usize])
    }

    /// The frame of a node; `None` for the root, and for nodes that stand for no frame.
    pub(super) fn frame_of(&self, node: u32) -> Option<FrameId> {
        self.tree.nodes[node as usize].frame.filter(|&frame| frame != FRAMEWORK_ONLY)
    }
}

/// Whether each frame belongs to PyTorch, Python or compiled code, by [`FrameId`].
fn framework_frames(snapshot: &Snapshot) -> Vec<bool> {
    // Many frames share a function, and differ in their line.
    let mut functions: FxHashMap<(StrId, StrId), bool> = FxHashMap::default();
    let mut is_framework = |id: u32| {
        let frame = snapshot.frame(FrameId(id));
        let function = functions.entry((frame.name, frame.file));
        *function.or_insert_with(|| text::is_framework(snapshot, frame))
    };
    (0..snapshot.frames.len() as u32).map(&mut is_framework).collect()
}

/// Appends the frames of a stack to `path`, in the order of the graph from the root on.
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

/// Whether the label of a frame, or its name with the full path, contains a text in lower case.
fn matches(snapshot: &Snapshot, id: FrameId, wanted: &str) -> bool {
    let frame = snapshot.frame(id);
    let whole =
        format!("{} {}:{}", snapshot.text(frame.name), snapshot.text(frame.file), frame.line);
    whole.to_lowercase().contains(wanted)
        || text::full_label(snapshot, frame).to_lowercase().contains(wanted)
}
