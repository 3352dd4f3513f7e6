//! `vramscope peak --tree`: bytes or allocations by call stack, as a tree with outermost frames
//! first.

use super::{Target, event_of, frame, text};
use serde::Serialize;
use std::borrow::Cow;
use vramscope_trace::slicing::now;
use vramscope_trace::{Flame as Tree, FlameNode, Measure, by_stack};

/// The weight of a block in a flame graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Requested bytes of blocks that are live in this slot.
    Bytes(u32),
    /// Requested bytes times microseconds within the window (times events without a clock).
    ByteSeconds,
    /// The number of allocations.
    Count,
    /// Requested bytes of all allocations, whatever their lifetime.
    Churn,
}

/// `vramscope.peak-tree/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flame<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The device's ordinal.
    pub device: u32,
    /// The unit of weights: `bytes`, `byte_us`, `byte_events` or `allocations`.
    pub unit: &'static str,
    /// The event after which live blocks count; -1 is the state before the window. Null if the
    /// whole window counts.
    pub event: Option<i64>,
    /// The weight of all blocks.
    pub total: u128,
    /// The tree in depth-first order from the root. Children are sorted by weight.
    pub nodes: Vec<NodeRecord<'a>>,
}

/// A node of the tree: a frame below its callers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeRecord<'a> {
    /// Index of the parent node; 0 for the root.
    pub parent: u32,
    /// The number of ancestors; 0 for the root.
    pub depth: u32,
    /// The function; `(all)` for the root, and the reason for blocks without a call stack:
    /// `(before recording)`, `(backward, no Python frames)` or `(no call stack)`.
    pub name: Cow<'a, str>,
    /// The file's path.
    pub file: Cow<'a, str>,
    /// The line; 0 when unknown.
    pub line: u32,
    /// True if this is the stack of the frees: the blocks were allocated before the window.
    pub of_free: bool,
    /// The weight of stacks that end at this node.
    pub own: u128,
    /// The weight of all stacks through this node.
    pub total: u128,
    /// Blocks of all stacks through this node.
    pub blocks: u32,
}

/// The call stacks of a device as a tree.
pub fn flame(target: Target<'_>, weight: Weight) -> Flame<'_> {
    let (measure, unit, event) = match weight {
        Weight::Bytes(slot) => (Measure::Requested(slot), "bytes", Some(event_of(slot))),
        Weight::ByteSeconds if target.trace().clock.is_some() => {
            (Measure::ByteTime, "byte_us", None)
        }
        Weight::ByteSeconds => (Measure::ByteTime, "byte_events", None),
        Weight::Count => (Measure::Count, "allocations", None),
        Weight::Churn => (Measure::Churn, "bytes", None),
    };
    let tree = now(async |budget| {
        let (trace, carving) = (target.trace(), target.entry.carving(target.index));
        let shares = by_stack(trace, |i| measure.of(trace, carving, i), budget).await;
        Tree::new(target.snapshot(), &shares, budget).await
    });
    Flame {
        schema: "vramscope.peak-tree/1",
        path: target.path,
        device: target.device(),
        unit,
        event,
        total: tree.nodes[0].total,
        nodes: tree.nodes.iter().map(|n| node(target, n)).collect(),
    }
}

fn node<'a>(target: Target<'a>, node: &FlameNode) -> NodeRecord<'a> {
    let (name, file, line) = match node.frame {
        Some(id) => {
            let row = frame(target.snapshot(), id);
            (row.name, row.file, row.line)
        }
        None => {
            let name = node.no_stack.map_or("(all)", text::no_stack);
            (Cow::Borrowed(name), Cow::Borrowed(""), 0)
        }
    };
    NodeRecord {
        parent: node.parent,
        depth: node.depth,
        name,
        file,
        line,
        of_free: node.is_of_free,
        own: node.own,
        total: node.total,
        blocks: node.blocks,
    }
}
