//! `vramscope peak --by shape`.

use crate::Failure;
use crate::arguments::{Format, Peak as Arguments, When};
use crate::commands;
use crate::output::{self, STRONG, Table, percent, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::Target;
use vramscope_report::shapes::{ShapeSource, ShapesReport, shapes_at};
use vramscope_report::state::At;
use vramscope_units::{Bytes, grouped};

/// Rows in text when `--limit` is absent.
const DEFAULT_LIMIT: usize = 20;
/// Sums by shape in text when `--limit` is absent.
const DEFAULT_SUMS: usize = 8;

/// Prints the shapes of the blocks that are live at the peak, or at another moment.
///
/// # Errors
/// The moment does not exist, or the output cannot be written.
pub(super) fn run(target: Target<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let format = arguments.input.common.format;
    let limit = arguments.limit.or((format == Format::Text).then_some(DEFAULT_LIMIT));
    let slot = commands::slot(target, arguments.at.unwrap_or(When::At(At::Peak)))?;
    let text = |out: &mut dyn Write, report: &ShapesReport<'_>| text(out, report, arguments.limit);
    output::print(&shapes_at(target, slot, limit), format, text)
}

/// The bytes of each shape.
fn sums(out: &mut dyn Write, report: &ShapesReport<'_>, limit: usize) -> io::Result<()> {
    let has_symbols = !report.legend.is_empty();
    let mut names = vec!["bytes", "share", "blocks", "shape"];
    names.extend(has_symbols.then_some("dims"));
    let mut table = Table::new(&names, &[true, true, true, false, false][..names.len()]);
    for sum in report.by_shape.iter().take(limit) {
        let mut row = vec![
            Bytes(sum.bytes).to_string(),
            percent(sum.bytes.into(), report.bytes.into()),
            grouped(sum.blocks.into()),
            sum.shape.text.clone(),
        ];
        row.extend(has_symbols.then(|| sum.shape.symbols.clone().unwrap_or_default()));
        table.row(row);
    }
    table.write(out)?;
    let omitted = report.by_shape.len().saturating_sub(limit);
    if omitted > 0 {
        writeln!(out, "  {} shapes omitted (--limit N shows more)", grouped(omitted as u64))?;
    }
    writeln!(out)
}

fn source_name(source: ShapeSource) -> &'static str {
    match source {
        ShapeSource::Sidecar => "sidecar",
        ShapeSource::Annotation => "annotation",
        ShapeSource::ShapeData => "shape_data",
        ShapeSource::Size => "size",
    }
}

fn text(out: &mut dyn Write, report: &ShapesReport<'_>, limit: Option<usize>) -> io::Result<()> {
    writeln!(
        out,
        "{}  {}",
        styled(STRONG, report.path),
        vramscope_report::device_name(report.device)
    )?;
    report.text.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
    if report.refused.is_some() && report.by_shape.is_empty() {
        return Ok(());
    }
    if !report.legend.is_empty() {
        let legend: Vec<&str> = report.legend.iter().map(|entry| entry.text.as_str()).collect();
        writeln!(out, "Shapes: {}.", legend.join(", "))?;
    }
    writeln!(out)?;
    sums(out, report, limit.unwrap_or(DEFAULT_SUMS))?;
    let mut table = Table::new(
        &["bytes", "share", "blocks", "category", "shape", "told by", "site"],
        &[true, true, true, false, false, false, false],
    );
    table.optional([5, 1]);
    for row in &report.rows {
        let shapes: Vec<&str> = row.shapes.iter().map(|shape| shape.text.as_str()).collect();
        let doubt = if row.is_certain || shapes.is_empty() { "" } else { "?" };
        table.row(vec![
            Bytes(row.bytes).to_string(),
            percent(row.bytes.into(), report.bytes.into()),
            grouped(row.blocks.into()),
            row.category.to_owned(),
            format!("{}{doubt}", shapes.join(" or ")),
            row.source.map_or("", source_name).to_owned(),
            row.site.clone(),
        ]);
    }
    table.write(out)?;
    if report.omitted > 0 {
        writeln!(out, "  {} rows omitted (--limit N shows more)", grouped(report.omitted as u64))?;
    }
    Ok(())
}
