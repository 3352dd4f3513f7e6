//! Which part of a training step each stack is of, and which nodes its operations have.

use rustc_hash::FxHashMap;
use vramscope_snapshot::{FrameId, Snapshot, StackId};
use vramscope_trace::components;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Sites, is_framework_frame, is_python, node, operator};

/// The part of a training step that a stack is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The program's own code, in a forward pass.
    Forward {
        /// Whether it can be the first allocation of a pass. Code that backward runs again, as
        /// checkpointing does, cannot.
        starts_pass: bool,
    },
    /// A thread without Python frames, and the node that it runs.
    Backward {
        /// The node, as an index.
        node: Option<u16>,
    },
    /// An optimizer, the making of a model, and everything else.
    Other,
}

/// The parts of all stacks.
pub(super) struct StackParts {
    parts: Vec<Part>,
    /// The nodes of each stack's operations, as bits.
    masks: Vec<u128>,
    /// The names of the nodes.
    names: Vec<String>,
}

/// What a frame says about its stack.
#[derive(Clone, Copy)]
struct FrameHints {
    code: Code,
    /// Whether the frame is the entry point of a Python program or thread.
    is_root: bool,
    node: Option<u16>,
    /// The nodes of the frame's operation, as bits.
    mask: u128,
}

/// The code that a frame belongs to. Python's code comes last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Code {
    Compiled,
    /// The autograd engine.
    Engine,
    /// An optimizer, or a call of backward.
    Other,
    /// The start of a function of the program in a thread of backward.
    Function,
    /// Checkpointing, which runs the forward pass again.
    Checkpoint,
    /// Any other code of a framework.
    Library,
    User,
}

impl Code {
    fn is_python(self) -> bool {
        self >= Self::Other
    }
}

/// Nodes with bits. A program has a few dozen kinds of nodes.
const MAX_NODES: usize = 128;

/// Cost of a frame, in units of [`Budget`].
const COST_PER_FRAME: u64 = 50;

impl StackParts {
    pub(super) async fn new(snapshot: &Snapshot, sites: &Sites, budget: &mut Budget) -> Self {
        let mut nodes = Nodes::default();
        for part in strides(snapshot.frames.len()) {
            budget.charge(part.len() as u64 * COST_PER_FRAME).await;
            for id in part {
                let frame = snapshot.frame(FrameId(id as u32));
                nodes.add(&snapshot.text(frame.name));
            }
        }
        let mut frames: Vec<FrameHints> = Vec::with_capacity(snapshot.frames.len());
        for part in strides(snapshot.frames.len()) {
            budget.charge(part.len() as u64 * COST_PER_FRAME).await;
            frames.extend(part.map(|id| {
                let frame = snapshot.frame(FrameId(id as u32));
                hints(&nodes, &snapshot.text(frame.name), &snapshot.text(frame.file))
            }));
        }
        let count = snapshot.stacks.len();
        let stack = |id: usize| {
            let frames = &frames;
            let ids = snapshot.stacks.frames(StackId(id as u32));
            ids.iter().map(move |id| frames[id.0 as usize])
        };
        let (mut python, mut rooted) = (0, 0);
        for part in strides(count) {
            budget.charge(4 * part.len() as u64).await;
            for outermost in part.filter_map(|id| stack(id).rfind(|f| f.code.is_python())) {
                python += 1;
                rooted += u32::from(outermost.is_root);
            }
        }
        let have_roots = 2 * rooted > python;
        let (mut parts, mut masks) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for id in 0..count {
            budget.charge(2 + 2 * snapshot.stacks.frames(StackId(id as u32)).len() as u64).await;
            let site = sites.get(StackId(id as u32)).frame;
            let is_init = site.is_some_and(|f| snapshot.strings.bytes(f.name) == b"__init__");
            parts.push(part(&|| stack(id), is_init, have_roots));
            masks.push(stack(id).fold(0, |mask, frame| mask | frame.mask));
        }
        Self { parts, masks, names: nodes.names }
    }

    pub(super) fn get(&self, stack: StackId) -> Part {
        self.parts[stack.0 as usize]
    }

    /// The nodes whose operation is in a stack.
    pub(super) fn nodes_of(&self, stack: StackId) -> impl Iterator<Item = u16> {
        let mask = self.masks[stack.0 as usize];
        (0..MAX_NODES as u16)
            .take_while(move |&n| mask >> n != 0)
            .filter(move |&n| mask >> n & 1 == 1)
    }

    /// The number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.names.len()
    }

    pub(super) fn name(&self, node: u16) -> &str {
        &self.names[usize::from(node)]
    }
}

fn part<I: DoubleEndedIterator<Item = FrameHints>>(
    frames: &impl Fn() -> I,
    is_init: bool,
    have_roots: bool,
) -> Part {
    let has = |code: Code| frames().any(|f| f.code == code);
    let Some(outermost) = frames().rfind(|f| f.code.is_python()) else {
        // An empty stack, or C++ frames only.
        let is_backward = frames().next().is_none() || has(Code::Engine);
        let node = frames().find_map(|f| f.node);
        return if is_backward { Part::Backward { node } } else { Part::Other };
    };
    let is_backward_code = outermost.code == Code::Function && !has(Code::Checkpoint);
    if is_backward_code || is_init || has(Code::Other) || !has(Code::User) {
        return Part::Other;
    }
    Part::Forward { starts_pass: outermost.is_root || !have_roots }
}

fn hints(nodes: &Nodes, name: &str, file: &str) -> FrameHints {
    let parts = components(file);
    let is_in = |end: &[&str]| parts.windows(end.len()).any(|part| part == end);
    let is_engine = name.starts_with("torch::autograd::") && !name.contains("VariableType");
    let code = match name {
        _ if !is_framework_frame(name, file) => Code::User,
        _ if !is_python(file) && is_engine => Code::Engine,
        _ if !is_python(file) => Code::Compiled,
        "_engine_run_backward" => Code::Other,
        "backward" if is_in(&["torch", "autograd", "__init__.py"]) => Code::Other,
        _ if is_in(&["torch", "optim"]) => Code::Other,
        _ if is_in(&["torch", "autograd", "function.py"]) => Code::Function,
        _ if is_in(&["torch", "utils", "checkpoint.py"]) => Code::Checkpoint,
        _ => Code::Library,
    };
    let operation = if code.is_python() { Some(name) } else { operator(name) };
    FrameHints {
        code,
        is_root: matches!(name, "<module>" | "_bootstrap" | "_run_module_as_main" | "_run_code"),
        node: if code.is_python() { None } else { nodes.index(name) },
        // The program's own functions can have the names of operations.
        mask: operation.filter(|_| code != Code::User).map_or(0, |name| nodes.mask(name)),
    }
}

/// The nodes that occur in a snapshot.
#[derive(Default)]
struct Nodes {
    names: Vec<String>,
    indices: FxHashMap<String, u16>,
    /// The nodes of an operation, as bits. The key is [`plain`].
    of_operation: FxHashMap<String, u128>,
}

impl Nodes {
    fn add(&mut self, function: &str) {
        let Some(name) = node(function) else { return };
        let index = self.names.len();
        if self.indices.contains_key(name) || index >= MAX_NODES {
            return;
        }
        self.indices.insert(name.to_owned(), index as u16);
        self.names.push(name.to_owned());
        if let Some((operation, _)) = name.rsplit_once("Backward") {
            *self.of_operation.entry(plain(operation)).or_default() |= 1 << index;
        }
    }

    fn index(&self, function: &str) -> Option<u16> {
        self.indices.get(node(function)?).copied()
    }

    /// The nodes of an operator or a Python function of PyTorch.
    fn mask(&self, operation: &str) -> u128 {
        if self.of_operation.is_empty() {
            return 0;
        }
        self.of_operation.get(&plain(operation)).copied().unwrap_or(0)
    }
}

/// A name without the spelling of its language: `logsoftmax` for `LogSoftmax`, `log_softmax` and
/// `_log_softmax`. Python's names have no `native`.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|&c| c != '_').map(|c| c.to_ascii_lowercase());
    let plain: String = letters.collect();
    plain.strip_prefix("native").map(str::to_owned).unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn plain_joins_the_names_of_nodes_operators_and_functions() {
        for (node, names) in [
            ("LogSoftmax", &["_log_softmax", "log_softmax"][..]),
            ("NativeLayerNorm", &["native_layer_norm", "layer_norm"]),
            ("Add", &["add", "add_"]),
            ("Mm", &["mm"]),
        ] {
            assert!(names.iter().all(|name| plain(name) == plain(node)), "{node}");
        }
        assert_ne!(plain("Bmm"), plain("mm"));
    }
}
