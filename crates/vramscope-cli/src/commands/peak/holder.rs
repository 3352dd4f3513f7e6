//! `vramscope peak --by holder`.

use crate::Failure;
use crate::arguments::{Format, Peak as Arguments, When};
use crate::commands;
use crate::output::{self, STRONG, Table, percent, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::holders::{DropRecord, HoldersReport, holders_at};
use vramscope_report::state::At;
use vramscope_report::{Target, device_name};
use vramscope_units::{Bytes, grouped};

/// Roots in text when `--limit` is absent.
const DEFAULT_LIMIT: usize = 12;
/// Drops in text when `--limit` is absent.
const DEFAULT_DROPS: usize = 12;
/// Drops in text free at least one part in this many of the largest.
const MIN_SHARE: u64 = 50;

/// Prints what holds the blocks that are live at the peak, or at another moment.
///
/// # Errors
/// The moment does not exist, or the output cannot be written.
pub(super) fn run(target: Target<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let format = arguments.input.common.format;
    let limit = arguments.limit.or((format == Format::Text).then_some(DEFAULT_LIMIT));
    let at = arguments.at.unwrap_or(When::At(At::Peak));
    let slot = commands::slot(target, at)?;
    let text = |out: &mut dyn Write, report: &HoldersReport<'_>| {
        text(out, report, at, arguments.limit.unwrap_or(DEFAULT_DROPS))
    };
    output::print(&holders_at(target, slot, limit), format, text)
}

fn text(out: &mut dyn Write, report: &HoldersReport<'_>, at: When, limit: usize) -> io::Result<()> {
    writeln!(out, "{}  {}", styled(STRONG, report.path), device_name(report.device))?;
    let of = if at == When::At(At::Peak) { "peaks at" } else { "is" };
    let share = match report.complete {
        Some(_) => format!("; named references hold {}", Bytes(report.held_bytes)),
        None => String::new(),
    };
    writeln!(
        out,
        "requested_bytes {of} {}, {}{share}",
        styled(STRONG, Bytes(report.bytes)),
        output::event(report.event),
    )?;
    report.text.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
    if report.complete.is_none() {
        return Ok(());
    }
    writeln!(out)?;
    let frees = if report.complete == Some(false) { "frees at most" } else { "frees" };
    let head = ["bytes", "share", "category", frees, "held by"];
    let mut table = Table::new(&head, &[true, true, false, true, false]);
    table.optional([1, 2]);
    for row in &report.rows {
        let indent = "  ".repeat(row.depth as usize);
        table.row(vec![
            Bytes(row.bytes).to_string(),
            percent(row.bytes.into(), report.bytes.into()),
            row.category.replace('_', " "),
            row.frees_bytes.map_or_else(String::new, |bytes| Bytes(bytes).to_string()),
            format!("{indent}{}", printable(&row.holder)),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, report.omitted, "holders")?;
    drops(out, report, limit)
}

/// What dropping references frees.
fn drops(out: &mut dyn Write, report: &HoldersReport<'_>, limit: usize) -> io::Result<()> {
    let least = report.drops.iter().map(|row| row.bytes).max().unwrap_or(0) / MIN_SHARE;
    let large: Vec<&DropRecord> = report.drops.iter().filter(|row| row.bytes > least).collect();
    if large.is_empty() || !report.has_tree() {
        return Ok(());
    }
    writeln!(out)?;
    let frees = if report.complete == Some(false) { "frees at most" } else { "frees" };
    let mut table = Table::new(&[frees, "blocks", "dropping, at the end"], &[true, true, false]);
    for row in large.iter().take(limit) {
        let indent = "  ".repeat(row.depth as usize);
        table.row(vec![
            Bytes(row.bytes).to_string(),
            grouped(row.blocks),
            format!("{indent}{}", printable(&row.text)),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, large.len().saturating_sub(limit), "drops")
}
