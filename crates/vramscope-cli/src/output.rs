//! Output on standard output: JSON, and text with aligned tables and terminal colors.

mod table;

use crate::Failure;
use crate::arguments::Format;
use crate::mcp::call;
use crate::printable::{Shield, printable};
use crate::row_per_line::RowPerLine;
use crate::width;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::Serializer;
use std::fmt;
use std::io::{self, Write};
pub(crate) use table::Table;
use vramscope_report::device_name;
pub(crate) use vramscope_report::disambiguate::{site_label, site_labels};
use vramscope_report::summary::WarningSummary;
use vramscope_units::{Bytes, grouped};

/// Style of headings and names.
pub(crate) const STRONG: Style = Style::new().bold();
/// Style of secondary text.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Style of warnings, failed checks and findings of medium severity.
pub(crate) const WARNING: Style =
    Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
/// Style of findings of high severity.
pub(crate) const ERROR: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

/// All styles.
pub(crate) const STYLES: [Style; 4] = [STRONG, FAINT, WARNING, ERROR];

/// The wording for the state before the first event.
pub(crate) const BEFORE_WINDOW: &str = "before the window";

/// Writes a line on standard error: what went wrong. Text of files in it is shown, not sent.
pub(crate) fn complain(what: impl fmt::Display) {
    eprintln!("vramscope: {}", printable(&what.to_string()));
}

/// Says that a file could not be read, and why.
pub(crate) fn complain_of(path: &str, why: &str) {
    if call::is_call() {
        call::note(path, why);
    } else {
        complain(format_args!("{path}: {why}"));
    }
}

/// Text in a style, with characters that act on a terminal shown. The output stream removes the
/// escape codes where it has no colors.
pub(crate) fn styled(style: Style, text: impl fmt::Display) -> String {
    format!("{style}{}{style:#}", printable(&text.to_string()))
}

/// Rows of a text table when `--limit` is absent.
const DEFAULT_ROWS: usize = 20;

/// The number of rows to show: `--limit`, or by default some in text and all in JSON.
pub(crate) fn limit(given: Option<usize>, is_text: bool) -> Option<usize> {
    given.or(is_text.then_some(DEFAULT_ROWS))
}

/// Says how many rows of a table are left out, if any.
pub(crate) fn write_omitted(out: &mut dyn Write, omitted: usize, rows: &str) -> io::Result<()> {
    if omitted == 0 {
        return Ok(());
    }
    let rows = if omitted == 1 { rows.strip_suffix('s').unwrap_or(rows) } else { rows };
    writeln!(out, "  and {} more {rows} (--limit N shows more)", grouped(omitted as u64))
}

/// Prints a report as JSON, or as text that `text` writes.
pub(crate) fn print<T: Serialize>(
    report: &T,
    format: Format,
    text: impl FnOnce(&mut dyn Write, &T) -> io::Result<()>,
) -> Result<(), Failure> {
    match format {
        Format::Json if call::is_call() => call::print(report, text)?,
        Format::Json => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            report.serialize(&mut Serializer::with_formatter(&mut out, RowPerLine::default()))?;
            writeln!(out)?;
            out.flush()?;
        }
        Format::Text => {
            let out = io::BufWriter::new(anstream::stdout().lock());
            let mut out = Shield::new(out, width::columns());
            text(&mut out, report)?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Writes the folder that all files are in, if there is one. Returns the number of bytes of its
/// path, which the names of the files go without.
pub(crate) fn write_folder<'a>(
    out: &mut dyn Write,
    paths: &(impl Iterator<Item = &'a str> + Clone),
) -> io::Result<usize> {
    let Some(first) = paths.clone().next() else { return Ok(0) };
    let is_common = |folder: &str| paths.clone().all(|path| path.starts_with(folder));
    let ends = first.match_indices('/').map(|(at, _)| at + 1);
    let Some(end) = ends.rev().find(|&end| is_common(&first[..end])) else { return Ok(0) };
    writeln!(out, "{}", styled(STRONG, &first[..end]))?;
    Ok(end)
}

/// Writes a file's warnings, one per line. With several devices, a line names its device.
pub(crate) fn warnings(
    out: &mut dyn Write,
    warnings: &[WarningSummary],
    several_devices: bool,
) -> io::Result<()> {
    for WarningSummary { message, device, count, .. } in warnings {
        let device = device
            .filter(|_| several_devices)
            .map_or_else(String::new, |d| format!("{}: ", device_name(d)));
        let message = printable(message);
        let times = if *count > 1 {
            format!(" ({} times)", grouped(u64::from(*count)))
        } else {
            String::new()
        };
        writeln!(out, "  {} {device}{message}{times}", styled(WARNING, "warning:"))?;
    }
    Ok(())
}

/// A byte count that can be negative: a change, or a count from a damaged file.
pub(crate) fn signed_bytes(bytes: i64) -> String {
    format!("{}{}", if bytes < 0 { "-" } else { "" }, Bytes(bytes.unsigned_abs()))
}

/// A share in percent; `-` of a total of 0.
pub(crate) fn percent(part: u128, whole: u128) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// An event: `#17`. Event -1 is the state before the window.
pub(crate) fn event(event: i64) -> String {
    match u32::try_from(event) {
        Ok(event) => vramscope_units::EventIndex(event).to_string(),
        Err(_) => BEFORE_WINDOW.to_owned(),
    }
}

/// The state after an event: `after #17`. Event -1 is the state before the window.
pub(crate) fn after_event(event: i64) -> String {
    match u32::try_from(event) {
        Ok(event) => format!("after {}", vramscope_units::EventIndex(event)),
        Err(_) => BEFORE_WINDOW.to_owned(),
    }
}

/// The note that marks a number as an estimate. Empty for an exact number.
pub(crate) fn estimate_note(exactness: &str) -> &'static str {
    if exactness == "exact" { "" } else { " (estimate)" }
}

/// What kind of device it is: ` (Ascend NPU)`. Empty for CUDA and the host.
pub(crate) fn backend(name: Option<&str>) -> String {
    let kind = name.and_then(vramscope_report::DeviceKind::of_backend);
    kind.and_then(vramscope_report::DeviceKind::word)
        .map_or_else(String::new, |word| format!(" ({word})"))
}
