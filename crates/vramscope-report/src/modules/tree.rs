//! The modules of a device as a tree, with the node of each block.

use super::layers::{Key, Layers, Split};
use super::link::link;
use super::nesting::{Entry, Kind, Nesting, ROOT};
use crate::{Target, text};
use rustc_hash::FxHashMap;
use vramscope_inference::Phase;
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::slicing::{Budget, filled, strides};
use vramscope_trace::{Block, NoStack, name_hash};
use vramscope_units::named;

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum What {
    /// All blocks.
    All,
    /// The modules that are named in the file beside the snapshot.
    NamedModules,
    /// A part of a recorded name: `layers`, `3`, `mlp`.
    Named(Box<str>),
    /// A module that call stacks show.
    Entry(u32),
    /// A layer of the module above.
    Layer(u32),
    /// Blocks of a module with layers, whose layer is not known.
    SomeLayer,
    /// All blocks that no module allocated.
    Outside,
    /// The same by what they are.
    OutsideOf(Place),
}

/// What allocated a block outside of modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    BeforeRecording,
    NoStack,
    Phase(Phase),
}

named! {
    /// How a node is known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ModuleBasis {
        /// The file beside the snapshot names it.
        Recorded = "recorded",
        /// Call stacks show it.
        Inferred = "inferred",
    }
}

/// The modules of a device. Node 0 has all blocks.
#[derive(Debug)]
pub struct Modules {
    nodes: Vec<Node>,
    /// The innermost node of each block.
    pub of_block: Vec<u32>,
    entries: Vec<Entry>,
    /// The lines that build an entry: of the entries that are linked with it.
    built_at: FxHashMap<u32, FrameId>,
    layers: Vec<Layers>,
}

#[derive(Debug)]
struct Node {
    parent: u32,
    what: What,
}

/// More parts of a name are left out.
const MAX_PARTS: usize = 24;

/// Nodes while they are made.
#[derive(Default)]
struct Nodes {
    nodes: Vec<Node>,
    known: FxHashMap<(u32, u64), u32>,
}

impl Nodes {
    fn add(&mut self, parent: u32, what: What) -> u32 {
        let key = match &what {
            What::All | What::SomeLayer => 0,
            What::NamedModules => 1,
            What::Outside => 2,
            What::OutsideOf(Place::BeforeRecording) => 3,
            What::OutsideOf(Place::NoStack) => 4,
            What::OutsideOf(Place::Phase(phase)) => 5 + *phase as u64,
            What::Entry(entry) => 1 << 32 | u64::from(*entry),
            What::Layer(layer) => 1 << 33 | u64::from(*layer),
            What::Named(name) => name_hash(name) | 1 << 63,
        };
        let nodes = &mut self.nodes;
        *self.known.entry((parent, key)).or_insert_with(|| {
            nodes.push(Node { parent, what });
            (nodes.len() - 1) as u32
        })
    }
}

impl Modules {
    /// Finds the modules of a device, whose tensors, categories and steps exist.
    pub(crate) async fn new(target: Target<'_>, budget: &mut Budget) -> Self {
        let (trace, entry) = (target.trace(), target.entry);
        let mut is_used = filled(false, target.snapshot().stacks.len(), budget).await;
        let visit = |_, block: &Block| {
            if !block.has_stack_of_free() {
                is_used[block.stack.0 as usize] = block.stack != StackId::EMPTY;
            }
        };
        trace.each_block(1, budget, visit).await;
        let nesting = Nesting::new(target.snapshot(), &is_used, budget).await;
        let mut entry_of = filled(ROOT, trace.blocks.len(), budget).await;
        let visit = |index, block: &Block| {
            if !block.has_stack_of_free() {
                entry_of[index as usize] = nesting.of_stack[block.stack.0 as usize];
            }
        };
        trace.each_block(1, budget, visit).await;
        let split = Split::new(target, &nesting.entries, &entry_of, budget).await;
        let linked = link(&nesting.entries, &split.layers);
        let mut nodes = Nodes::default();
        nodes.add(0, What::All);
        let of_split = final_nodes(&mut nodes, &nesting, &split, &linked);
        let mut of_block = filled(0, trace.blocks.len(), budget).await;
        let tensors = entry.tensors(target.index);
        for part in strides(trace.blocks.len()) {
            budget.charge(4 * part.len() as u64).await;
            for index in part {
                let split_node = split.of_block[index];
                of_block[index] = if let Some(tensor) = tensors.get(&(index as u32)) {
                    named(&mut nodes, &tensor.kind, &tensor.name)
                } else if split_node != 0 {
                    some_layer(&mut nodes, &split, &of_split, split_node)
                } else {
                    let outside = nodes.add(0, What::Outside);
                    nodes.add(outside, What::OutsideOf(place(target, index)))
                };
            }
        }
        let mut built_at = FxHashMap::default();
        for (index, entry) in nesting.entries.iter().enumerate() {
            if let Some(caller) = entry.caller.filter(|_| entry.kind == Kind::Built) {
                built_at.insert(linked[index], caller);
            }
        }
        let (entries, layers) = (nesting.entries, split.layers);
        Self { nodes: nodes.nodes, of_block, entries, built_at, layers }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Always false: a node has all blocks.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node around a node, which has a smaller index. The node of all blocks has itself.
    pub fn parent(&self, node: u32) -> u32 {
        self.nodes[node as usize].parent
    }

    /// Whether a node has the blocks of a module, and how that is known.
    pub fn basis(&self, node: u32) -> Option<ModuleBasis> {
        match self.nodes[node as usize].what {
            What::NamedModules | What::Named(_) => Some(ModuleBasis::Recorded),
            What::Entry(_) | What::Layer(_) | What::SomeLayer => Some(ModuleBasis::Inferred),
            What::All | What::Outside | What::OutsideOf(_) => None,
        }
    }

    /// Whether any module has its name from the file beside the snapshot.
    pub fn are_named(&self) -> bool {
        self.nodes.iter().any(|node| node.what == What::NamedModules)
    }

    /// Whether call stacks show any module.
    pub fn are_inferred(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.what, What::Entry(_)))
    }

    /// The name of a node: `mlp`, `gpt.py:31 forward`, `[3]`.
    pub fn name(&self, target: Target<'_>, node: u32) -> String {
        match &self.nodes[node as usize].what {
            What::All => "all blocks".to_owned(),
            What::NamedModules => "named modules".to_owned(),
            What::Named(name) => name.to_string(),
            What::Entry(entry) => Self::name_of(target, &self.entries[*entry as usize]),
            What::Layer(layer) => format!("[{layer}]"),
            What::SomeLayer => "layer not known".to_owned(),
            What::Outside => "outside of modules".to_owned(),
            What::OutsideOf(place) => match place {
                Place::BeforeRecording => "before recording",
                Place::NoStack => "no call stack",
                Place::Phase(Phase::Forward) => "forward",
                Place::Phase(Phase::Backward) => "backward",
                Place::Phase(Phase::Optimizer) => "optimizer",
                Place::Phase(Phase::Other) => "other code",
                Place::Phase(Phase::Evaluation) => "evaluation",
            }
            .to_owned(),
        }
    }

    /// `gpt.py:31-32 forward`; `Block (gpt.py:31)` where functions have qualified names.
    fn name_of(target: Target<'_>, entry: &Entry) -> String {
        let snapshot = target.snapshot();
        let function = snapshot.text(entry.frame.name);
        let place = text::place_of(snapshot, entry.frame).unwrap_or_default();
        if let Some((class, _)) = function.rsplit_once('.') {
            return format!("{class} ({place})");
        }
        let lines = match entry.last_line {
            last if last > entry.frame.line => format!("-{last}"),
            _ => String::new(),
        };
        format!("{place}{lines} {function}")
    }

    /// The line that calls a node's module, and the one that builds it.
    pub fn lines(&self, target: Target<'_>, node: u32) -> (Option<String>, Option<String>) {
        let What::Entry(index) = self.nodes[node as usize].what else { return (None, None) };
        let entry = &self.entries[index as usize];
        let snapshot = target.snapshot();
        let place = |frame: FrameId| text::place_of(snapshot, snapshot.frame(frame));
        let called = entry.caller.filter(|_| entry.kind == Kind::Called).and_then(place);
        (called, self.built_at.get(&index).copied().and_then(place))
    }

    /// The number of layers that a node's module is split into.
    pub fn layers(&self, node: u32) -> Option<u32> {
        let What::Entry(entry) = self.nodes[node as usize].what else { return None };
        self.layers[entry as usize].count
    }

    /// Why a module that is called several times is not split into layers.
    pub fn not_split(&self, node: u32) -> Option<&'static str> {
        let What::Entry(entry) = self.nodes[node as usize].what else { return None };
        self.layers[entry as usize].not_split.map(super::layers::NotSplit::text)
    }
}

/// The final node of each node of a split.
fn final_nodes(nodes: &mut Nodes, nesting: &Nesting, split: &Split, linked: &[u32]) -> Vec<u32> {
    let mut of_split = vec![0; split.nodes.len()];
    for (index, &(above, key)) in split.nodes.iter().enumerate().skip(1) {
        let around = of_split[above as usize];
        of_split[index] = match key {
            Key::Layer(layer) => nodes.add(around, What::Layer(layer)),
            Key::Entry(entry) => {
                let (same, parent) =
                    (linked[entry as usize], nesting.entries[entry as usize].parent);
                let is_moved = same != entry && linked[parent as usize] == parent;
                let around = if is_moved {
                    // The module is called below modules that do not build it.
                    let path = nesting.path(nesting.entries[same as usize].parent);
                    path.into_iter().fold(0, |at, entry| nodes.add(at, What::Entry(entry)))
                } else {
                    around
                };
                nodes.add(around, What::Entry(same))
            }
        };
    }
    of_split
}

/// The node of a block in a module: below `SomeLayer` where the module has layers and the block is
/// in none of them.
fn some_layer(nodes: &mut Nodes, split: &Split, of_split: &[u32], node: u32) -> u32 {
    let has_layers = |node: u32| match split.nodes[node as usize].1 {
        Key::Entry(entry) => split.layers[entry as usize].count.is_some(),
        Key::Layer(_) => false,
    };
    let mut path = vec![node];
    while let Some(&at) = path.last().filter(|&&at| split.nodes[at as usize].0 != 0) {
        path.push(split.nodes[at as usize].0);
    }
    path.reverse();
    let is_unknown = |index: usize| {
        let next = path.get(index + 1).map(|&next| split.nodes[next as usize].1);
        has_layers(path[index]) && !matches!(next, Some(Key::Layer(_)))
    };
    let Some(first) = (0..path.len()).find(|&index| is_unknown(index)) else {
        return of_split[node as usize];
    };
    let mut at = nodes.add(of_split[path[first] as usize], What::SomeLayer);
    for &node in &path[first + 1..] {
        let what = nodes.nodes[of_split[node as usize] as usize].what.clone();
        at = nodes.add(at, what);
    }
    at
}

/// The node of a tensor with a recorded name. The last part of the name is the tensor's own, and an
/// optimizer's state has that of its parameter before it.
fn named(nodes: &mut Nodes, kind: &str, name: &str) -> u32 {
    let mut parts: Vec<&str> = name.split('.').collect();
    parts.pop();
    if kind == "optimizer_state" {
        parts.pop();
    }
    let all = nodes.add(0, What::NamedModules);
    parts.into_iter().take(MAX_PARTS).fold(all, |at, part| nodes.add(at, What::Named(part.into())))
}

/// What allocated a block outside of modules.
fn place(target: Target<'_>, index: usize) -> Place {
    let block = &target.trace().blocks[index];
    if block.has_stack_of_free() || block.is_preexisting() {
        return Place::BeforeRecording;
    }
    match target.trace().no_stack(block) {
        Some(NoStack::BeforeRecording) => return Place::BeforeRecording,
        Some(NoStack::NotRecorded) => return Place::NoStack,
        Some(NoStack::Backward) | None => {}
    }
    let Some(event) = block.alloc_event() else { return Place::NoStack };
    let phases = target.entry.categories(target.index).phases();
    let span = phases.get(phases.partition_point(|span| span.end <= event.0));
    match (span, target.trace().no_stack(block)) {
        (_, Some(NoStack::Backward)) => Place::Phase(Phase::Backward),
        (Some(span), _) => Place::Phase(span.phase),
        (None, _) => Place::Phase(Phase::Other),
    }
}
