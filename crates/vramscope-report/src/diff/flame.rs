//! The call stacks of a comparison as one tree, with the bytes of both sides at each node.

use super::{BytesDiff, CountDiff, StackDiff};
use crate::{FrameRecord, text};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::slicing::now;
use vramscope_trace::{Flame as Tree, Share};

/// Replaces the frames of a stack whose frames are all hidden.
const FRAMEWORK_ONLY: FrameId = FrameId(u32::MAX);

/// Which tree is made of the call stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeOrder {
    /// True if widths are the bytes of A, false if they are those of B.
    pub of_a: bool,
    /// True if the innermost frame is at the root.
    pub inverted: bool,
    /// Whether frames of PyTorch, Python and compiled code are left out.
    pub hide_framework: bool,
}

/// The tree of the call stacks of two sides.
#[derive(Debug)]
pub struct DiffFlame {
    /// The tree. Weights are the bytes of one side: nodes that it lacks have weight 0.
    pub tree: Tree,
    /// The bytes of each node in both sides, with those of all its descendants.
    pub bytes: Vec<BytesDiff>,
    /// The blocks of each node in both sides.
    pub blocks: Vec<CountDiff>,
    /// The frames that the tree's ids refer to.
    frames: Vec<FrameRecord<'static>>,
}

/// A node of the tree: a frame below its callers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DiffNode {
    /// Index of the parent node; 0 for the root.
    pub parent: u32,
    /// The number of ancestors; 0 for the root.
    pub depth: u32,
    /// The function; `(all)` for the root, and the reason for blocks without a call stack.
    pub name: String,
    /// The file's path.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
    /// True if this is the stack of the frees: the blocks were allocated before the window.
    pub of_free: bool,
    /// Bytes of all stacks through this node.
    #[serde(flatten)]
    pub bytes: BytesDiff,
    /// Blocks of all stacks through this node.
    pub blocks: CountDiff,
}

impl DiffFlame {
    /// The tree of the call stacks of a comparison.
    pub fn new(stacks: &[StackDiff], order: TreeOrder) -> Self {
        let mut frames: Vec<FrameRecord<'static>> = Vec::new();
        let mut known: FxHashMap<FrameRecord<'_>, u32> = FxHashMap::default();
        let mut paths: Vec<Vec<Option<FrameId>>> = Vec::with_capacity(stacks.len());
        for stack in stacks {
            let shown = stack.frames.iter().filter(|f| !order.hide_framework || !f.is_framework());
            let mut path: Vec<Option<FrameId>> = Vec::with_capacity(stack.frames.len());
            for frame in shown {
                let next = frames.len() as u32;
                let (name, file) = (&*frame.name, &*frame.file);
                let key = FrameRecord { name: name.into(), file: file.into(), line: frame.line };
                let id = *known.entry(key).or_insert(next);
                if id == next {
                    frames.push(frame.clone());
                }
                path.push(Some(FrameId(id)));
            }
            if !order.inverted {
                path.reverse();
            }
            if path.is_empty() && !stack.frames.is_empty() {
                path.push(Some(FRAMEWORK_ONLY));
            }
            paths.push(path);
        }
        let share = |(index, stack): (usize, &StackDiff)| Share {
            stack: StackId(index as u32),
            is_of_free: stack.of_free,
            no_stack: stack.no_stack,
            weight: (if order.of_a { stack.bytes.a } else { stack.bytes.b }).0.max(0) as u128,
            blocks: 0,
        };
        let shares: Vec<Share> = stacks.iter().enumerate().map(share).collect();
        let mut path_of = |share: &Share, path: &mut Vec<Option<FrameId>>| {
            path.extend(&paths[share.stack.0 as usize]);
        };
        let tree = now(async |budget| Tree::with_paths(&shares, &mut path_of, budget).await);
        let mut bytes = vec![BytesDiff::default(); tree.nodes.len()];
        let mut blocks = vec![CountDiff::default(); tree.nodes.len()];
        for (&leaf, stack) in tree.leaves.iter().zip(stacks) {
            let leaf = leaf as usize;
            bytes[leaf] = bytes[leaf].plus(stack.bytes);
            blocks[leaf] = blocks[leaf].plus(stack.blocks);
        }
        for node in (1..tree.nodes.len()).rev() {
            let parent = tree.nodes[node].parent as usize;
            bytes[parent] = bytes[parent].plus(bytes[node]);
            blocks[parent] = blocks[parent].plus(blocks[node]);
        }
        Self { tree, bytes, blocks, frames }
    }

    /// The frame of a node; `None` for the root, and for nodes that stand for no frame.
    pub fn frame(&self, node: u32) -> Option<&FrameRecord<'static>> {
        self.frames.get(self.tree.nodes[node as usize].frame?.0 as usize)
    }

    /// The name of a node that stands for no frame.
    pub fn name_without_frame(&self, node: u32) -> &'static str {
        let node = &self.tree.nodes[node as usize];
        match node.no_stack {
            _ if node.frame.is_some() => "(framework only)",
            Some(why) => text::no_stack(why),
            None => "(all)",
        }
    }

    /// The label of a node: `model.py:212 forward`.
    pub fn label(&self, node: u32) -> String {
        self.frame(node)
            .map_or_else(|| self.name_without_frame(node).to_owned(), FrameRecord::label)
    }

    /// The nodes in depth-first order from the root. Children are sorted by their bytes in one
    /// side.
    pub fn nodes(&self) -> Vec<DiffNode> {
        let node = |(index, node): (u32, &vramscope_trace::FlameNode)| {
            let frame = self.frame(index).cloned().unwrap_or_else(|| FrameRecord {
                name: Cow::Borrowed(self.name_without_frame(index)),
                file: Cow::Borrowed(""),
                line: 0,
            });
            DiffNode {
                parent: node.parent,
                depth: node.depth,
                name: frame.name.into_owned(),
                file: frame.file.into_owned(),
                line: frame.line,
                of_free: node.is_of_free,
                bytes: self.bytes[index as usize],
                blocks: self.blocks[index as usize],
            }
        };
        (0..).zip(&self.tree.nodes).map(node).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Matched;
    use super::*;

    fn stack(frames: &[&'static str], a: i64, b: i64) -> StackDiff {
        let frame = |&name: &&'static str| FrameRecord {
            name: name.into(),
            file: if name.starts_with("torch") {
                "/lib/site-packages/torch/nn/module.py"
            } else {
                "train.py"
            }
            .into(),
            line: 1,
        };
        StackDiff {
            bytes: BytesDiff::new(a, b),
            blocks: CountDiff::new(a.min(1), b.min(1)),
            category: None,
            matched: Matched::Same,
            of_free: false,
            site: String::new(),
            no_stack: None,
            frames: frames.iter().map(frame).collect(),
        }
    }

    fn rows(flame: &DiffFlame) -> Vec<(u32, String, i64, i64)> {
        flame.nodes().into_iter().map(|n| (n.depth, n.name, n.bytes.a.0, n.bytes.b.0)).collect()
    }

    fn row(depth: u32, name: &str, a: i64, b: i64) -> (u32, String, i64, i64) {
        (depth, name.to_owned(), a, b)
    }

    #[test]
    fn a_node_has_the_bytes_of_both_sides() {
        let stacks = [
            stack(&["new", "main"], 0, 70),
            stack(&["same", "main"], 20, 20),
            stack(&["gone", "main"], 50, 0),
        ];
        let of_b = DiffFlame::new(&stacks, TreeOrder::default());
        assert_eq!(
            rows(&of_b),
            [
                row(0, "(all)", 70, 90),
                row(1, "main", 70, 90),
                row(2, "new", 0, 70),
                row(2, "same", 20, 20),
                row(2, "gone", 50, 0)
            ]
        );
        assert_eq!((of_b.bytes[1].change.0, of_b.blocks[1]), (20, CountDiff::new(2, 2)));
        assert_eq!(of_b.tree.nodes[4].total, 0);
        let of_a = DiffFlame::new(&stacks, TreeOrder { of_a: true, ..TreeOrder::default() });
        let names: Vec<String> = rows(&of_a).into_iter().map(|row| row.1).collect();
        assert_eq!(names, ["(all)", "main", "gone", "same", "new"]);
        assert_eq!(of_a.tree.nodes[2].total, 50);
    }

    #[test]
    fn frames_can_be_hidden_and_inverted() {
        let stacks = [stack(&["inner", "torch_call", "main"], 1, 2), stack(&["torch_only"], 3, 4)];
        let order = TreeOrder { inverted: true, hide_framework: true, ..TreeOrder::default() };
        assert_eq!(
            rows(&DiffFlame::new(&stacks, order)),
            [
                row(0, "(all)", 4, 6),
                row(1, "(framework only)", 3, 4),
                row(1, "inner", 1, 2),
                row(2, "main", 1, 2)
            ]
        );
    }
}
