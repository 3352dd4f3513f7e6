//! What goes to a terminal: tables whose columns line up, in colors where there are any.

use crate::Failure;
use crate::arguments::Format;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};
use vramscope_report::FrameRecord;
use vramscope_report::disambiguate::apart;
use vramscope_report::summary::WarningSummary;
use vramscope_units::{Bytes, grouped};

/// Headings and names.
pub(crate) const STRONG: Style = Style::new().bold();
/// What matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// What is wrong.
pub(crate) const WARN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// What ends a run.
pub(crate) const BAD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

/// Text in a style; where the output has no colors, they are taken out again on the way.
pub(crate) fn styled(style: Style, text: impl fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Print a report: as JSON, or by `text`.
pub(crate) fn print<T: Serialize>(
    report: &T,
    format: Format,
    text: impl FnOnce(&mut dyn Write, &T) -> io::Result<()>,
) -> Result<(), Failure> {
    match format {
        Format::Json => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            serde_json::to_writer_pretty(&mut out, report)?;
            writeln!(out)?;
            out.flush()?;
        }
        Format::Text => {
            let mut out = io::BufWriter::new(anstream::stdout().lock());
            text(&mut out, report)?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Rows under headings; numbers to the right, text to the left.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: &'static [bool],
}

impl Table {
    /// `true` columns are numbers.
    pub(crate) fn new(head: &[&str], right: &'static [bool]) -> Self {
        let head = head.iter().map(|h| (*h).to_owned()).collect();
        Self { rows: vec![head], right }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let width =
            |column: usize| self.rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        for (i, row) in self.rows.iter().enumerate() {
            let mut line = String::from(" ");
            for (column, cell) in row.iter().enumerate() {
                let space = " ".repeat(widths[column] - cell.chars().count());
                let last = column + 1 == row.len();
                line.push(' ');
                match (self.right[column], last) {
                    (true, _) => line.extend([space.as_str(), cell, " "]),
                    (false, true) => line.push_str(cell),
                    (false, false) => line.extend([cell.as_str(), &space, " "]),
                }
            }
            if i == 0 {
                line = styled(FAINT, line.trim_end());
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// What is odd in a file; of a device, if it is one of several, with its ordinal.
pub(crate) fn warnings(
    out: &mut dyn Write,
    warnings: &[WarningSummary],
    several_devices: bool,
) -> io::Result<()> {
    for WarningSummary { message, device, count, .. } in warnings {
        let device = device
            .filter(|_| several_devices)
            .map_or_else(String::new, |d| format!("device {d}: "));
        let times = if *count > 1 {
            format!(" ({} times)", grouped(u64::from(*count)))
        } else {
            String::new()
        };
        writeln!(out, "  {} {device}{message}{times}", styled(WARN, "warning:"))?;
    }
    Ok(())
}

/// Bytes that a damaged file may put below zero.
pub(crate) fn signed(bytes: i64) -> String {
    format!("{}{}", if bytes < 0 { "-" } else { "" }, Bytes(bytes.unsigned_abs()))
}

/// A share of a whole, in percent.
pub(crate) fn percent(part: u128, whole: u128) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// A call site, and whether it is that of a free.
pub(crate) fn site(site: &str, of_free: bool) -> String {
    if of_free { format!("{site} (of its free)") } else { site.to_owned() }
}

/// Call stacks of a table, given as their site, their frames and whether they are those of frees.
/// What has the site of another row says what it is called through: `model.py:59 forward >
/// linear.py:125 forward`.
pub(crate) fn sites(stacks: &[(&str, &[FrameRecord<'_>], bool)]) -> Vec<String> {
    let named: Vec<_> = stacks.iter().map(|&(site, frames, _)| (site, frames)).collect();
    let told = stacks.iter().zip(apart(&named)).map(|(&(name, _, of_free), via)| match via {
        Some(via) => site(&format!("{name} > {}", via.label()), of_free),
        None => site(name, of_free),
    });
    told.collect()
}

/// The place of a moment: its event.
pub(crate) fn event(event: i64) -> String {
    match u32::try_from(event) {
        Ok(event) => vramscope_units::EventIndex(event).to_string(),
        Err(_) => "before the window".to_owned(),
    }
}
