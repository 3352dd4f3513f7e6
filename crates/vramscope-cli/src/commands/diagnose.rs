//! `vramscope diagnose`.

use super::findings;
use crate::Failure;
use crate::arguments::{Diagnose as Arguments, DiffFormat};
use crate::output::{STRONG, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::device_name;
use vramscope_report::diagnose::{
    Diagnosis, Headline, Listing, MAX_FINDINGS, at_peak, diagnose, savings_text, with_savings,
};
use vramscope_report::markdown::escape;
use vramscope_report::text::rank_name;
use vramscope_units::grouped;

/// Findings of `--all` in text and Markdown when `--limit` is absent.
const DEFAULT_LIMIT: usize = 20;

/// Prints the verdict about files, their findings and what could not be looked for.
///
/// # Errors
/// A folder cannot be listed, an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // Of many ranks the search for savings would take longer than all else.
    let devices = match arguments.paths.as_slice() {
        [path] if !path.is_dir() => findings::each_device(arguments, with_savings)?,
        _ => findings::each_device(arguments, at_peak)?,
    };
    if devices.files_read == 0 {
        // A verdict needs a snapshot that was read.
        return devices.outcome.and(Err(Failure::Input));
    }
    let listing = match arguments.format {
        _ if !arguments.all => Listing::Main(arguments.limit.unwrap_or(MAX_FINDINGS)),
        DiffFormat::Json => Listing::All(arguments.limit.unwrap_or(usize::MAX)),
        DiffFormat::Text | DiffFormat::Markdown => {
            Listing::All(arguments.limit.unwrap_or(DEFAULT_LIMIT))
        }
    };
    let report = diagnose(devices.each, listing, devices.skipped_files);
    if arguments.all {
        findings::print(&report, arguments.format, list_text, list_markdown)?;
    } else {
        findings::print(&report, arguments.format, text, markdown)?;
    }
    devices.outcome
}

/// The headline of each device, if there are several: the verdict begins with that of one.
fn lines(report: &Diagnosis) -> Vec<String> {
    if report.headlines.len() < 2 {
        return Vec::new();
    }
    let line = |of: &Headline| {
        let device = match report.headlines.iter().filter(|other| other.path == of.path).count() {
            1 => String::new(),
            _ => format!(", {}", device_name(of.device)),
        };
        // Several dumps of one rank are told apart by their names.
        let mut of_rank = report.headlines.iter().filter(|other| other.rank == of.rank);
        let rank = of.rank.filter(|_| of_rank.all(|other| other.path == of.path));
        format!("{}{device}: {}", rank_name(rank, &of.path), of.text)
    };
    let omitted = report.headlines_omitted.map(|count| format!("and {count} more"));
    report.headlines.iter().map(line).chain(omitted).collect()
}

fn text(out: &mut dyn Write, report: &Diagnosis) -> io::Result<()> {
    writeln!(out, "{}\n", styled(STRONG, &report.verdict))?;
    for line in lines(report) {
        writeln!(out, "{}", printable(&line))?;
    }
    if report.headlines.len() > 1 {
        writeln!(out)?;
    }
    findings::text(out, &report.findings, report.omitted.unwrap_or(0))?;
    if let Some(savings) = savings_text(&report.savings) {
        writeln!(out, "{}\n", printable(&savings))?;
    }
    findings::blind_text(out, report.found() > 0, &report.blind_spots)
}

/// The verdict, a table of the findings, and what to do, for a pull request or an issue.
fn markdown(out: &mut dyn Write, report: &Diagnosis) -> io::Result<()> {
    writeln!(out, "### GPU memory\n\n**{}**\n", escape(report.verdict.trim()))?;
    for line in lines(report) {
        writeln!(out, "- {}", escape(&line))?;
    }
    if report.headlines.len() > 1 {
        writeln!(out)?;
    }
    findings::markdown_table(out, &report.findings, report.omitted.unwrap_or(0))?;
    if let Some(savings) = savings_text(&report.savings) {
        writeln!(out, "\n{}", escape(&savings))?;
    }
    findings::blind_markdown(out, report.found() > 0, &report.blind_spots)
}

/// All findings.
fn list_text(out: &mut dyn Write, report: &Diagnosis) -> io::Result<()> {
    findings::text(out, &report.findings, report.omitted.unwrap_or(0))?;
    findings::blind_text(out, report.found() > 0, &report.blind_spots)
}

/// All findings, for a pull request or an issue.
fn list_markdown(out: &mut dyn Write, report: &Diagnosis) -> io::Result<()> {
    let count = match report.found() {
        0 => "nothing found".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{} findings", grouped(count as u64)),
    };
    writeln!(out, "### GPU memory: {count}\n")?;
    findings::markdown(out, &report.findings, report.omitted.unwrap_or(0))?;
    findings::blind_markdown(out, report.found() > 0, &report.blind_spots)
}
