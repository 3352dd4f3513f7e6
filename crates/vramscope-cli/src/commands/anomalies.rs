//! `vramscope anomalies`.

use super::findings;
use crate::Failure;
use crate::arguments::{DiffFormat, Findings as Arguments};
use std::io::{self, Write};
use vramscope_report::card::Card;
use vramscope_report::findings::{Findings, across};

/// Findings in text and Markdown when `--limit` is absent.
const DEFAULT_LIMIT: usize = 20;

/// Prints the findings in each file and across ranks.
///
/// # Errors
/// A folder cannot be listed, an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let devices = findings::each_device(arguments, Card::new)?;
    let mut report = across(devices.each, devices.skipped_files);
    let default = (arguments.format != DiffFormat::Json).then_some(DEFAULT_LIMIT);
    report.truncate(arguments.limit.or(default).unwrap_or(usize::MAX));
    findings::print(&report, arguments.format, text, markdown)?;
    devices.outcome
}

fn text(out: &mut dyn Write, report: &Findings) -> io::Result<()> {
    findings::text(out, &report.anomalies, report.omitted)?;
    findings::blind_text(out, report.found() > 0, &report.blind_spots)
}

fn markdown(out: &mut dyn Write, report: &Findings) -> io::Result<()> {
    let count = match report.found() {
        0 => "nothing found".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{} findings", vramscope_units::grouped(count as u64)),
    };
    writeln!(out, "### GPU memory: {count}\n")?;
    findings::markdown(out, &report.anomalies, report.omitted)?;
    findings::blind_markdown(out, report.found() > 0, &report.blind_spots)
}
