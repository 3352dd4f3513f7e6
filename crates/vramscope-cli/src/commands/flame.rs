//! `vramscope flame`.

use crate::Failure;
use crate::arguments::Flame as Arguments;
use crate::output::{self, FAINT, STRONG, percent, styled};
use crate::printable::printable;
use crate::read;
use std::io::{self, Write};
use vramscope_report::FrameRecord;
use vramscope_report::device_name;
use vramscope_report::flame::{Flame, flame};
use vramscope_units::{Bytes, grouped};

/// Prints call stacks as a tree.
///
/// # Errors
/// The file cannot be read, the device or event does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let weight = super::weight(target, arguments.weight, &arguments.moment)?;
        let min_percent = arguments.min;
        output::print(&flame(target, weight), arguments.input.common.format, |out, f| {
            text(out, f, min_percent)
        })
    })
}

fn text(out: &mut dyn Write, flame: &Flame<'_>, min_percent: f64) -> io::Result<()> {
    let amount = |weight: u128| match flame.unit {
        "bytes" => Bytes(weight as u64).to_string(),
        // Only text is rounded. JSON has the exact product.
        "byte_us" => format!("{} s", Bytes((weight / 1_000_000) as u64)),
        "byte_events" => format!("{} events", Bytes(weight as u64)),
        _ => grouped(weight as u64),
    };
    let place = flame.event.map_or_else(|| "the whole window".to_owned(), output::after_event);
    writeln!(out, "{}  {}, {place}", styled(STRONG, flame.path), device_name(flame.device))?;
    let mut hidden_below = u32::MAX;
    for node in &flame.nodes {
        if node.depth > hidden_below {
            continue;
        }
        hidden_below = u32::MAX;
        if (node.total as f64) * 100.0 < min_percent * flame.total as f64 {
            hidden_below = node.depth;
            continue;
        }
        let frame =
            FrameRecord { name: node.name.clone(), file: node.file.clone(), line: node.line };
        let label = frame.label();
        let label = if frame.is_framework() && node.depth > 0 {
            styled(FAINT, label)
        } else {
            printable(&label).into_owned()
        };
        writeln!(
            out,
            "{:>12} {:>7}  {}{label}{}",
            amount(node.total),
            percent(node.total, flame.total),
            "  ".repeat(node.depth as usize),
            if node.of_free && node.depth == 1 {
                " (freed here, allocated before the window)"
            } else {
                ""
            },
        )?;
    }
    Ok(())
}
