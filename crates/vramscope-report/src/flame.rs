//! `vramscope flame`: call stacks rolled up, outermost frame first.

use super::{Target, event_of, frame};
use serde::Serialize;
use std::borrow::Cow;
use vramscope_analysis::{Flame as Tree, FlameNode, Measure, by_stack};

/// What a block counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Requested bytes, if live in the slot.
    Bytes(u32),
    /// Requested bytes times microseconds within the window (times events where there is no clock).
    ByteSeconds,
    /// One allocation.
    Count,
    /// Requested bytes, however short it lived.
    Churn,
}

/// `vramscope.flame/1`.
#[derive(Debug, Serialize)]
pub struct Flame<'a> {
    /// The name and version of this form.
    pub schema: &'static str,
    /// The file.
    pub path: &'a str,
    /// The device.
    pub device: u32,
    /// `bytes`, `byte_us`, `byte_events` or `allocations`.
    pub unit: &'static str,
    /// The event after which blocks are counted, -1 before the window; null when all of the window
    /// counts.
    pub event: Option<i64>,
    /// The sum over all blocks.
    pub total: u128,
    /// Depth first, the root first, children by weight.
    pub nodes: Vec<NodeRow<'a>>,
}

/// A frame under the frames that lead to it.
#[derive(Debug, Serialize)]
pub struct NodeRow<'a> {
    /// Index of the node that it is under; the root's own is 0.
    pub parent: u32,
    /// 0 for the root.
    pub depth: u32,
    /// The function; `(all)` for the root, `(no call stack)` for blocks without one.
    pub name: Cow<'a, str>,
    /// The file.
    pub file: Cow<'a, str>,
    /// The line; 0 when unknown.
    pub line: u32,
    /// Whether the stack is that of frees: the blocks were allocated before the window.
    pub of_free: bool,
    /// Of stacks that end here.
    pub own: u128,
    /// Of all stacks that come through here.
    pub total: u128,
    /// Blocks that those stacks count.
    pub blocks: u32,
}

/// A device's call stacks as a tree.
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
    let shares = by_stack(target.trace(), target.entry.carving(target.index), measure);
    let tree = Tree::new(target.snapshot(), &shares);
    Flame {
        schema: "vramscope.flame/1",
        path: target.path,
        device: target.device(),
        unit,
        event,
        total: tree.nodes[0].total,
        nodes: tree.nodes.iter().map(|n| node(target, n)).collect(),
    }
}

fn node<'a>(target: Target<'a>, node: &FlameNode) -> NodeRow<'a> {
    let (name, file, line) = match node.frame {
        Some(id) => {
            let row = frame(target.snapshot(), id);
            (row.name, row.file, row.line)
        }
        None if node.depth == 0 => (Cow::Borrowed("(all)"), Cow::Borrowed(""), 0),
        None => (Cow::Borrowed("(no call stack)"), Cow::Borrowed(""), 0),
    };
    NodeRow {
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
