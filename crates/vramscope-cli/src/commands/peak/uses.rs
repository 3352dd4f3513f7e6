//! `vramscope peak --by use`.

use crate::Failure;
use crate::arguments::{Format, Peak as Arguments};
use crate::commands;
use crate::output::{self, STRONG, Table, percent, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::uses::{UsesReport, group_text, uses_at};
use vramscope_report::{Target, device_name};
use vramscope_units::{Bytes, grouped};

/// Prints what becomes of the memory of a moment of the traced step.
///
/// # Errors
/// The moment does not exist, or the output cannot be written.
pub(super) fn run(target: Target<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let format = arguments.input.common.format;
    let limit = output::limit(arguments.limit, format == Format::Text);
    let slot = arguments.at.map(|at| commands::slot(target, at)).transpose()?;
    output::print(&uses_at(target, slot, limit), format, text)
}

fn text(out: &mut dyn Write, report: &UsesReport<'_>) -> io::Result<()> {
    writeln!(out, "{}  {}", styled(STRONG, report.path), device_name(report.device))?;
    if report.refused.is_some() {
        return report.text.iter().try_for_each(|line| writeln!(out, "{}", printable(line)));
    }
    let step = report.step.map_or_else(|| "the traced step".to_owned(), |n| format!("step {n}"));
    writeln!(
        out,
        "{} at {} of {step}, of {} operations",
        styled(STRONG, Bytes(report.bytes)),
        output::event(report.event),
        grouped(report.operations as u64),
    )?;
    report.text.iter().try_for_each(|line| writeln!(out, "{}", printable(line)))?;
    writeln!(out)?;
    let mut table = Table::new(&["bytes", "share", "blocks", "use"], &[true, true, true, false]);
    for of in &report.groups {
        table.row(vec![
            Bytes(of.bytes).to_string(),
            percent(of.bytes.into(), report.bytes.into()),
            grouped(of.blocks.into()),
            of.text.to_owned(),
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    let mut table = Table::new(
        &["bytes", "blocks", "use", "next in", "last operation", "category", "call site"],
        &[true, true, false, true, false, false, false],
    );
    table.optional([4, 5]);
    for row in &report.rows {
        let next = row.next_in_operations.filter(|&n| n > 0);
        table.row(vec![
            Bytes(row.bytes).to_string(),
            grouped(row.blocks.into()),
            group_text(row.group).to_owned(),
            next.map_or_else(String::new, |n| format!("{} ops", grouped(n.into()))),
            row.last_operation.clone().unwrap_or_default(),
            row.category.to_owned(),
            row.site.clone(),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, report.omitted, "rows")
}
