//! `vramscope shapes`.

use crate::Failure;
use crate::arguments::{Format, Shapes as Arguments};
use crate::output::{self, STRONG, Table, percent, styled};
use crate::printable::printable;
use crate::read;
use std::fs::File;
use std::io::{self, Read as _, Write};
use vramscope_report::Widths;
use vramscope_report::shapes::{ShapesReport, shapes, widths_of_config};
use vramscope_units::{Bytes, grouped};

/// Rows in text when `--limit` is absent.
const DEFAULT_LIMIT: usize = 20;
/// A `config.json` has a few kilobytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Prints the shapes of the blocks that are live at the peak.
///
/// # Errors
/// The snapshot or the config cannot be read, the device does not exist, or the output cannot be
/// written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let given = given(arguments)?;
    read::with_device(&arguments.input, |target| {
        let format = arguments.input.common.format;
        let limit = arguments.limit.or((format == Format::Text).then_some(DEFAULT_LIMIT));
        output::print(&shapes(target, given, limit), format, text)
    })
}

/// The widths that the user gives.
fn given(arguments: &Arguments) -> Result<Option<Vec<Widths>>, Failure> {
    if let Some(path) = &arguments.config {
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::Usage(format!("{}: {why}", printable(&path.display().to_string())))
        };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| wrong(&error))?;
        file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).map_err(|error| wrong(&error))?;
        return widths_of_config(&text).map(Some).map_err(|why| wrong(&why));
    }
    let hidden = arguments.dims.first();
    Ok(hidden.map(|&hidden| Widths::given(hidden, &arguments.dims, None)))
}

fn text(out: &mut dyn Write, report: &ShapesReport<'_>) -> io::Result<()> {
    writeln!(
        out,
        "{}  {}",
        styled(STRONG, report.path),
        vramscope_report::device_name(report.device)
    )?;
    report.text.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
    if report.refused.is_some() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(
        &["bytes", "share", "blocks", "category", "shape", "site"],
        &[true, true, true, false, false, false],
    );
    for row in &report.rows {
        let shapes: Vec<&str> = row.shapes.iter().map(|shape| shape.text.as_str()).collect();
        let doubt = if row.is_certain || shapes.is_empty() { "" } else { "?" };
        table.row(vec![
            Bytes(row.bytes).to_string(),
            percent(row.bytes.into(), report.bytes.into()),
            grouped(row.blocks.into()),
            row.category.to_owned(),
            format!("{}{doubt}", shapes.join(" or ")),
            row.site.clone(),
        ]);
    }
    table.write(out)?;
    if report.omitted > 0 {
        writeln!(out, "  {} rows omitted (--limit N shows more)", grouped(report.omitted as u64))?;
    }
    Ok(())
}
