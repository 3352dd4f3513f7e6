//! `vramscope peak --tree`.

use crate::Failure;
use crate::arguments::{FlameWeight, Peak as Arguments};
use crate::commands;
use crate::output::{self, FAINT, STRONG, percent, styled};
use crate::printable::printable;
use crate::width;
use std::collections::BTreeMap;
use std::io::{self, Write};
use vramscope_report::flame::{Flame, NodeRecord, flame};
use vramscope_report::{FrameRecord, Target, device_name};
use vramscope_units::{Bytes, grouped};

/// Columns of the numbers before a frame.
const NUMBERS: usize = 22;

/// Columns that a frame has at least.
const LEAST_LABEL: usize = 20;

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

/// A row of the tree before rows are joined: a frame below the frames that are shown.
struct Row {
    label: String,
    is_framework: bool,
    of_free: bool,
    total: u128,
    children: Vec<usize>,
}

fn text(out: &mut dyn Write, flame: &Flame<'_>, arguments: &Arguments) -> io::Result<()> {
    let place = flame.event.map_or_else(|| "the whole window".to_owned(), output::after_event);
    writeln!(out, "{}  {}, {place}", styled(STRONG, flame.path), device_name(flame.device))?;
    let rows = rows(flame, arguments.all_frames);
    let least = arguments.min * flame.total as f64 / 100.0;
    let columns = width::columns();
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    let mut omitted = 0;
    // The next row is the last.
    let mut next = vec![(0, 0)];
    while let Some((mut at, depth)) = next.pop() {
        let of_free = rows[at].of_free;
        let mut labels = vec![rows[at].label.as_str()];
        let mut is_faint = rows[at].is_framework;
        let shown = |at: usize| {
            rows[at].children.iter().copied().filter(|&row| rows[row].total as f64 >= least)
        };
        // The only row below a row is on its line, if all bytes are below.
        while at > 0 {
            let mut below = shown(at);
            let Some(only) = below.next() else { break };
            if below.next().is_some() || rows[only].total != rows[at].total {
                break;
            }
            at = only;
            labels.push(&rows[at].label);
            is_faint &= rows[at].is_framework;
        }
        let mut below: Vec<usize> = shown(at).collect();
        below.sort_by_key(|&row| rows[row].total);
        next.extend(below.into_iter().map(|row| (row, depth + 1)));
        if left == 0 {
            omitted += 1;
            continue;
        }
        left -= 1;
        let indent = 2 * depth.min(MAX_INDENT);
        let note = if of_free { " (freed here, allocated before the window)" } else { "" };
        let room = columns.saturating_sub(NUMBERS + indent + note.len()).max(LEAST_LABEL);
        let words = width::middle(&labels.join(" > "), room);
        writeln!(
            out,
            "{:>12} {:>7}  {}{}{note}",
            amount(flame, rows[at].total),
            percent(rows[at].total, flame.total),
            " ".repeat(indent),
            if is_faint { styled(FAINT, words) } else { printable(&words).into_owned() },
        )?;
    }
    output::write_omitted(out, omitted, "rows")
}

fn frame<'a>(node: &NodeRecord<'a>) -> FrameRecord<'a> {
    FrameRecord { name: node.name.clone(), file: node.file.clone(), line: node.line }
}

/// The rows of the tree. A frame of the interpreter, of PyTorch or of compiled code is none, unless
/// a stack has no others: what it calls is below its caller. Equal frames below one are one row.
fn rows(flame: &Flame<'_>, all_frames: bool) -> Vec<Row> {
    let is_framework: Vec<bool> =
        flame.nodes.iter().map(|node| node.depth > 0 && frame(node).is_framework()).collect();
    // Whether a node or one below it is a frame of the program. Nodes follow their callers.
    let mut has_own: Vec<bool> = is_framework.iter().map(|is_framework| !is_framework).collect();
    for (at, node) in flame.nodes.iter().enumerate().skip(1).rev() {
        if has_own[at] {
            has_own[node.parent as usize] = true;
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    // The row of each node: its own, or that of its caller.
    let mut row_of: Vec<usize> = Vec::with_capacity(flame.nodes.len());
    let mut known: BTreeMap<(usize, String, bool), usize> = BTreeMap::new();
    for (at, node) in flame.nodes.iter().enumerate() {
        let caller = if at == 0 { 0 } else { row_of[node.parent as usize] };
        let is_outermost = node.depth == 1 && !has_own[at];
        if is_framework[at] && !all_frames && !is_outermost {
            row_of.push(caller);
            continue;
        }
        let (label, of_free) = (frame(node).label(), node.of_free && node.depth == 1);
        let key = (caller, label.clone(), of_free);
        let row = *known.entry(key).or_insert_with(|| {
            let is_framework = is_framework[at];
            rows.push(Row { label, is_framework, of_free, total: 0, children: Vec::new() });
            rows.len() - 1
        });
        if rows[row].total == 0 && at > 0 {
            rows[caller].children.push(row);
        }
        rows[row].total += node.total;
        row_of.push(row);
    }
    rows
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
