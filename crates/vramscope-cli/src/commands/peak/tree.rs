//! `vramscope peak --tree`.

use crate::Failure;
use crate::arguments::{FlameWeight, Peak as Arguments};
use crate::commands;
use crate::output::{self, FAINT, STRONG, percent, styled};
use crate::printable::printable;
use crate::width;
use std::io::{self, Write};
use vramscope_report::flame::{Flame, NodeRecord, flame};
use vramscope_report::{FrameRecord, Target, device_name};
use vramscope_units::{Bytes, grouped};

/// Columns of the numbers before a frame.
const NUMBERS: usize = 22;

/// Levels that have an indent of their own. Deeper ones have that of the last.
const MAX_INDENT: usize = 20;

/// Prints call stacks as a tree.
///
/// # Errors
/// The moment does not exist, or the output cannot be written.
pub(super) fn run(target: Target<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let weight = arguments.weight.unwrap_or(FlameWeight::Bytes);
    let weight = commands::weight(target, weight, arguments.at)?;
    output::print(&flame(target, weight), arguments.input.common.format, |out, f| {
        text(out, f, arguments)
    })
}

/// A node of the tree that is shown: frames of which each is the only caller of the next.
struct Shown<'a> {
    total: u128,
    labels: Vec<(String, bool)>,
    of_free: bool,
    children: Vec<Shown<'a>>,
    node: &'a NodeRecord<'a>,
}

fn text(out: &mut dyn Write, flame: &Flame<'_>, arguments: &Arguments) -> io::Result<()> {
    let place = flame.event.map_or_else(|| "the whole window".to_owned(), output::after_event);
    writeln!(out, "{}  {}, {place}", styled(STRONG, flame.path), device_name(flame.device))?;
    // The children of each node, in order. The first node is the root.
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); flame.nodes.len()];
    for (index, node) in flame.nodes.iter().enumerate().skip(1) {
        children[node.parent as usize].push(index);
    }
    let least = arguments.min * flame.total as f64 / 100.0;
    let tree = Tree { flame, children, least, all_frames: arguments.all_frames };
    let Some(root) = tree.of(0).into_iter().next() else { return Ok(()) };
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    let mut omitted = 0;
    write(out, &root, 0, flame, &mut left, &mut omitted)?;
    output::write_omitted(out, omitted, "rows")
}

struct Tree<'a> {
    flame: &'a Flame<'a>,
    children: Vec<Vec<usize>>,
    /// Nodes with less are hidden.
    least: f64,
    all_frames: bool,
}

impl<'a> Tree<'a> {
    /// What is shown of a node: itself, or what is below it where its frame is hidden.
    fn of(&self, index: usize) -> Vec<Shown<'a>> {
        // Stacks are deep, so this is no recursion: nodes are in depth-first order, and what is
        // below a node is known before the node.
        let mut known: Vec<Vec<Shown<'a>>> = Vec::new();
        known.resize_with(self.flame.nodes.len(), Vec::new);
        for at in (index..self.flame.nodes.len()).rev() {
            let node = &self.flame.nodes[at];
            let mut below: Vec<Shown<'a>> = Vec::new();
            for &child in &self.children[at] {
                below.append(&mut known[child]);
            }
            let mut below = merged(below);
            below.retain(|shown| shown.total as f64 >= self.least);
            let frame =
                FrameRecord { name: node.name.clone(), file: node.file.clone(), line: node.line };
            // A stack of such frames alone is shown by its outermost one.
            let is_only = node.depth == 1 && below.is_empty();
            let is_framework = frame.is_framework() && node.depth > 0;
            let is_hidden = is_framework && !self.all_frames && !is_only;
            if is_hidden {
                known[at] = below;
                continue;
            }
            let label = (frame.label(), is_framework);
            let shown = match <[Shown<'a>; 1]>::try_from(below) {
                // The only caller and all that it calls are one row.
                Ok([mut only])
                    if node.depth > 0 && only.total == node.total && only.node.depth > 0 =>
                {
                    only.labels.insert(0, label);
                    only.of_free |= node.of_free && node.depth == 1;
                    only
                }
                below => Shown {
                    total: node.total,
                    labels: vec![label],
                    of_free: node.of_free && node.depth == 1,
                    children: below.map_or_else(|many| many, Vec::from),
                    node,
                },
            };
            known[at] = vec![shown];
        }
        std::mem::take(&mut known[index])
    }
}

/// Rows of one name below different hidden frames are one row. The largest is first.
fn merged(rows: Vec<Shown<'_>>) -> Vec<Shown<'_>> {
    let mut kept: Vec<Shown<'_>> = Vec::new();
    for row in rows {
        let same = kept.iter_mut().find(|of| of.labels == row.labels && of.of_free == row.of_free);
        match same {
            Some(same) => {
                same.total += row.total;
                same.children.extend(row.children);
            }
            None => kept.push(row),
        }
    }
    for row in &mut kept {
        let children = std::mem::take(&mut row.children);
        let has_twins = children
            .iter()
            .enumerate()
            .any(|(at, one)| children[..at].iter().any(|other| other.labels == one.labels));
        row.children = if has_twins { merged(children) } else { children };
        row.children.sort_by_key(|child| std::cmp::Reverse(child.total));
    }
    kept.sort_by_key(|row| std::cmp::Reverse(row.total));
    kept
}

fn write(
    out: &mut dyn Write,
    row: &Shown<'_>,
    depth: usize,
    flame: &Flame<'_>,
    left: &mut usize,
    omitted: &mut usize,
) -> io::Result<()> {
    if *left == 0 {
        *omitted += 1;
    } else {
        *left -= 1;
        let indent = 2 * depth.min(MAX_INDENT);
        let note = if row.of_free { " (freed here, allocated before the window)" } else { "" };
        let labels: Vec<&str> = row.labels.iter().map(|label| label.0.as_str()).collect();
        let room = width::columns().saturating_sub(NUMBERS + indent + note.len()).max(10);
        let shown = width::middle(&labels.join(" > "), room);
        let is_faint = row.labels.iter().all(|label| label.1);
        writeln!(
            out,
            "{:>12} {:>7}  {}{}{note}",
            amount(flame, row.total),
            percent(row.total, flame.total),
            " ".repeat(indent),
            if is_faint { styled(FAINT, shown) } else { printable(&shown).into_owned() },
        )?;
    }
    row.children.iter().try_for_each(|child| write(out, child, depth + 1, flame, left, omitted))
}

fn amount(flame: &Flame<'_>, weight: u128) -> String {
    match flame.unit {
        "bytes" => Bytes(weight as u64).to_string(),
        // Only text is rounded. JSON has the exact product.
        "byte_us" => format!("{} s", Bytes((weight / 1_000_000) as u64)),
        "byte_events" => format!("{} events", Bytes(weight as u64)),
        _ => grouped(weight as u64),
    }
}
