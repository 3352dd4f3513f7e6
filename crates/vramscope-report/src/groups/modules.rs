//! Modules of a model and their layers, as far as call stacks show them.
//!
//! A stack names files and functions, not modules. A module appears in it as the line that calls
//! it: below that line is PyTorch's `_call_impl`, or the module's `__init__`. A line that calls a
//! module once for each layer allocates several times as often as the lines around it: where all
//! large stacks below a line allocate 84 times, and the caller's own ones 3 times, it runs 28
//! layers.

use crate::Target;
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Frame, FrameId, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, filled};
use vramscope_trace::{Block, is_framework_frame};

/// The modules of a recording.
pub(super) struct Modules {
    nodes: Vec<Node>,
    /// The node of each stack, by [`StackId`].
    of_stack: Vec<u32>,
}

/// A module that is called once for each layer, or is part of one.
#[derive(Clone, Copy)]
pub(super) struct Module {
    /// Identifies the module.
    pub(super) key: u64,
    /// The line that calls it.
    pub(super) caller: FrameId,
    /// Number of layers; at least 2.
    pub(super) layers: u32,
}

/// The calls of modules from a program's outermost call to one line.
struct Node {
    /// The node of the calling module. Callers come before what they call.
    parent: u32,
    /// The line that calls it. Meaningless for the root.
    caller: FrameId,
    /// Requested bytes of all blocks below.
    bytes: u64,
    /// The greatest common divisor of the numbers of allocations of all large stacks below.
    allocations: u32,
    /// The same of the large stacks whose innermost module this is; 0 without any.
    own: u32,
    /// Number of large stacks below.
    stacks: u32,
    /// Number of layers; 1 outside of layers.
    layers: u32,
}

impl Node {
    fn new(parent: u32, caller: FrameId) -> Self {
        Self { parent, caller, bytes: 0, allocations: 0, own: 0, stacks: 0, layers: 1 }
    }
}

/// The role of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Unknown,
    Framework,
    /// PyTorch's call of a module.
    Call,
    /// A constructor in the user's code.
    Init,
    User,
}

/// A stack counts where it has at least one part in this many of the bytes below a line. Stacks of
/// rare small blocks, such as a mask that is built once, say nothing about layers. Blocks that a
/// model allocates once beside its layers must count: of hundreds of layers, they are one part in
/// thousands.
const LARGE_STACK_DIVISOR: u64 = 10_000;

/// Fewest large stacks that prove layers.
const MIN_STACKS: u32 = 2;

/// The node of what the program calls outside of modules.
const ROOT: u32 = 0;

impl Modules {
    pub(super) async fn new(target: Target<'_>, budget: &mut Budget) -> Self {
        let (snapshot, trace) = (target.snapshot(), target.trace());
        let count = snapshot.stacks.len();
        let mut allocated = filled((0u64, 0u32), count, budget).await;
        let visit = |_, block: &Block| {
            if !block.is_preexisting() {
                let (bytes, blocks) = &mut allocated[block.stack.0 as usize];
                (*bytes, *blocks) = (*bytes + block.bytes.0, *blocks + 1);
            }
        };
        trace.each_block(1, budget, visit).await;
        let root = Node::new(ROOT, FrameId(0));
        let mut modules = Self { nodes: vec![root], of_stack: Vec::with_capacity(count) };
        let mut roles = filled(Role::Unknown, snapshot.frames.len(), budget).await;
        let mut known: FxHashMap<(u32, FrameId), u32> = FxHashMap::default();
        for id in (0..count as u32).map(StackId) {
            budget.charge(snapshot.stacks.frames(id).len() as u64).await;
            // A stack of other devices, or of frees, has no blocks here.
            let node = if allocated[id.0 as usize].1 == 0 {
                ROOT
            } else {
                modules.find(snapshot, id, &mut roles, &mut known)
            };
            modules.of_stack.push(node);
        }
        modules.count(&allocated);
        modules
    }

    /// The module of a stack's call site. `None` outside of layers.
    pub(super) fn of(&self, stack: StackId) -> Option<Module> {
        let node = self.of_stack[stack.0 as usize];
        let Node { layers, caller, .. } = self.nodes[node as usize];
        (layers > 1).then_some(Module { key: node.into(), caller, layers })
    }

    /// The node of a stack: the calls of modules around its innermost frame of the user's code.
    fn find(
        &mut self,
        snapshot: &Snapshot,
        stack: StackId,
        roles: &mut [Role],
        known: &mut FxHashMap<(u32, FrameId), u32>,
    ) -> u32 {
        let (mut node, mut user, mut is_call) = (ROOT, None, false);
        for &id in snapshot.stacks.frames(stack).iter().rev() {
            let role = &mut roles[id.0 as usize];
            if *role == Role::Unknown {
                *role = role_of(snapshot, snapshot.frame(id));
            }
            match role {
                Role::Call => is_call = true,
                Role::Unknown | Role::Framework => {}
                Role::User | Role::Init => {
                    if let Some(caller) = user.filter(|_| is_call || *role == Role::Init) {
                        node = *known.entry((node, caller)).or_insert_with(|| {
                            self.nodes.push(Node::new(node, caller));
                            self.nodes.len() as u32 - 1
                        });
                    }
                    (user, is_call) = (Some(id), false);
                }
            }
        }
        node
    }

    /// Finds the layers, from the bytes and the number of allocations of each stack.
    fn count(&mut self, allocated: &[(u64, u32)]) {
        let Self { nodes, of_stack, .. } = self;
        for (&node, &(bytes, _)) in of_stack.iter().zip(allocated) {
            above(nodes, node, |_, node| node.bytes = node.bytes.saturating_add(bytes));
        }
        for (&node, &(bytes, blocks)) in of_stack.iter().zip(allocated) {
            let innermost = node;
            above(nodes, node, |at, node| {
                if blocks > 0 && bytes >= node.bytes / LARGE_STACK_DIVISOR {
                    node.allocations = common_divisor(node.allocations, blocks);
                    node.stacks += 1;
                    if at == innermost {
                        node.own = common_divisor(node.own, blocks);
                    }
                }
            });
        }
        // How often the nearest module around each node that allocates itself does so, and its
        // layers.
        let mut around = vec![(0, 1)];
        for node in nodes.iter_mut().skip(1) {
            // The program's loop over steps calls the outermost modules: around them is nothing.
            let (calls, layers) = around[node.parent as usize];
            let repeats = node.allocations.checked_div(calls).unwrap_or(0);
            let is_multiple = repeats * calls == node.allocations;
            if is_multiple && (repeats == 1 || repeats > 1 && node.stacks >= MIN_STACKS) {
                node.layers = layers * repeats;
            }
            around.push(if node.own > 0 { (node.own, node.layers) } else { (calls, layers) });
        }
    }
}

/// Changes a node and all nodes that it is called by.
fn above(nodes: &mut [Node], mut node: u32, mut change: impl FnMut(u32, &mut Node)) {
    while node != ROOT {
        change(node, &mut nodes[node as usize]);
        node = nodes[node as usize].parent;
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn role_of(snapshot: &Snapshot, frame: Frame) -> Role {
    let name = snapshot.text(frame.name);
    if is_framework_frame(&name, &snapshot.text(frame.file)) {
        if name == "_call_impl" { Role::Call } else { Role::Framework }
    } else if name == "__init__" {
        Role::Init
    } else {
        Role::User
    }
}
