//! Findings and blind spots as text and Markdown.

use crate::Failure;
use crate::arguments::{Diagnose as Arguments, DiffFormat, Format, Window};
use crate::output::{self, ERROR, FAINT, STRONG, WARNING, styled};
use crate::printable::printable;
use crate::read;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;
use vramscope_report::findings::{BlindSpotRecord, FindingEntry};
use vramscope_report::markdown::{code_cell, escape, inline_code};
use vramscope_report::{Severity, Target};
use vramscope_units::grouped;

/// The devices of files.
pub(super) struct Devices<T> {
    /// The result of `work` for each device.
    pub(super) each: Vec<T>,
    /// Files that were read.
    pub(super) files_read: usize,
    /// Files of searched folders that are no snapshots.
    pub(super) skipped_files: usize,
    /// [`Failure::Input`] if a file could not be read.
    pub(super) outcome: Result<(), Failure>,
}

/// Reads files, and calls `work` with every device.
///
/// # Errors
/// A folder cannot be listed, or the rules cannot be read.
pub(super) fn each_device<T: Send>(
    arguments: &Arguments,
    work: impl Fn(Target<'_>) -> T + Sync,
) -> Result<Devices<T>, Failure> {
    each_device_of(&arguments.paths, &arguments.window, |target| {
        target.entry.simulate(target.index);
        work(target)
    })
}

/// [`each_device`], without what the model of the allocator says.
///
/// # Errors
/// A folder cannot be listed, or the rules cannot be read.
pub(super) fn each_device_of<T: Send>(
    paths: &[PathBuf],
    window: &Window,
    work: impl Fn(Target<'_>) -> T + Sync,
) -> Result<Devices<T>, Failure> {
    let read = read::each_file(paths, window, |_, _, result| {
        let was_read = result.is_ok();
        let mut devices: Vec<T> = Vec::new();
        for entry in result.iter().flat_map(|file| &file.entries) {
            let targets =
                (0..entry.traces.len()).map(|index| Target { path: &entry.path, entry, index });
            devices.extend(targets.map(&work));
        }
        (was_read, devices)
    })?;
    let (files, skipped_files, outcome) = read.into_results();
    let files: Vec<(bool, Vec<T>)> = files.collect();
    let files_read = files.iter().filter(|file| file.0).count();
    let each = files.into_iter().flat_map(|file| file.1).collect();
    Ok(Devices { each, files_read, skipped_files, outcome })
}

/// Prints a report in the given format.
pub(super) fn print<T: Serialize>(
    report: &T,
    format: DiffFormat,
    text: impl FnOnce(&mut dyn Write, &T) -> io::Result<()>,
    markdown: impl FnOnce(&mut dyn Write, &T) -> io::Result<()>,
) -> Result<(), Failure> {
    match format {
        DiffFormat::Json => output::print(report, Format::Json, text),
        DiffFormat::Text => output::print(report, Format::Text, text),
        DiffFormat::Markdown => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            markdown(&mut out, report)?;
            Ok(out.flush()?)
        }
    }
}

/// Writes findings as text, and the number of omitted findings.
pub(super) fn text(
    out: &mut dyn Write,
    findings: &[FindingEntry],
    omitted: usize,
) -> io::Result<()> {
    for FindingEntry { record: a, .. } in findings {
        let style = match a.severity {
            Severity::High => ERROR,
            Severity::Medium => WARNING,
            Severity::Low => FAINT,
        };
        let severity = styled(style, format_args!("{:<6}", a.severity.name()));
        writeln!(
            out,
            "{:>11}  {severity}  {}  {}",
            a.bytes.to_string(),
            a.kind.name(),
            styled(STRONG, &a.path)
        )?;
        writeln!(out, "             {}", styled(STRONG, &a.title))?;
        writeln!(out, "             {}", printable(&a.text))?;
        if !a.action.is_empty() {
            writeln!(out, "             {}", printable(&a.action))?;
        }
        if !a.called_from.is_empty() {
            let callers = a.called_from.join(", ");
            writeln!(out, "             called from {}", printable(&callers))?;
        }
    }
    if omitted > 0 {
        writeln!(
            out,
            "  and {} more (--limit N or --format json shows more)",
            grouped(omitted as u64)
        )?;
    }
    Ok(())
}

/// Writes what was not looked for as text. Without findings it also says so.
pub(super) fn blind_text(
    out: &mut dyn Write,
    found_any: bool,
    blind_spots: &[BlindSpotRecord],
) -> io::Result<()> {
    match (found_any, blind_spots.is_empty()) {
        (false, true) => return writeln!(out, "Nothing found."),
        (false, false) => writeln!(out, "Nothing found. Not looked for:")?,
        (true, true) => return Ok(()),
        (true, false) => writeln!(out, "\nNot looked for:")?,
    }
    blind_spots.iter().try_for_each(|spot| writeln!(out, "  - {}", printable(&spot.text)))
}

/// Writes findings as a list in Markdown, and the number of omitted findings.
pub(super) fn markdown(
    out: &mut dyn Write,
    findings: &[FindingEntry],
    omitted: usize,
) -> io::Result<()> {
    for FindingEntry { record: a, .. } in findings {
        writeln!(
            out,
            "- **{}** ({}, {}, {})",
            escape(&a.title),
            a.severity.name(),
            a.bytes,
            inline_code(&a.path)
        )?;
        writeln!(out, "  {}", escape(&a.text))?;
        if !a.action.is_empty() {
            writeln!(out, "  *{}*", escape(&a.action))?;
        }
    }
    if omitted > 0 {
        writeln!(out, "- and {} more", grouped(omitted as u64))?;
    }
    Ok(())
}

/// Writes findings as a table in Markdown, with what to do below it.
pub(super) fn markdown_table(
    out: &mut dyn Write,
    findings: &[FindingEntry],
    omitted: usize,
) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "| severity | bytes | finding | file |\n|---|---:|---|---|")?;
    for FindingEntry { record: a, .. } in findings {
        writeln!(
            out,
            "| {} | {} | **{}**<br>{} | {} |",
            a.severity.name(),
            a.bytes,
            escape(&a.title),
            escape(&a.text),
            code_cell(&a.path)
        )?;
    }
    if omitted > 0 {
        writeln!(out, "\nand {} more", grouped(omitted as u64))?;
    }
    let records = findings.iter().map(|finding| &finding.record);
    let mut actions = records.filter(|a| !a.action.is_empty()).peekable();
    if actions.peek().is_some() {
        writeln!(out, "\nWhat to do:\n")?;
    }
    actions.try_for_each(|a| writeln!(out, "- {}: {}", escape(&a.title), escape(&a.action)))
}

/// Writes what was not looked for as Markdown. Without findings it also says so.
pub(super) fn blind_markdown(
    out: &mut dyn Write,
    found_any: bool,
    blind_spots: &[BlindSpotRecord],
) -> io::Result<()> {
    if !found_any {
        writeln!(out, "Nothing found.")?;
    }
    if blind_spots.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNot looked for:\n")?;
    blind_spots.iter().try_for_each(|spot| writeln!(out, "- {}", escape(&spot.text)))
}
