//! `vramscope diagnose`.

use super::findings;
use crate::Failure;
use crate::arguments::Findings as Arguments;
use crate::output::{STRONG, styled};
use std::io::{self, Write};
use vramscope_report::diagnose::{Diagnosis, MAX_FINDINGS, at_peak, diagnose};
use vramscope_report::markdown::escape;

/// Prints the verdict about files, the main findings and what could not be looked for.
///
/// # Errors
/// A folder cannot be listed, an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let devices = findings::each_device(arguments, at_peak)?;
    let limit = arguments.limit.unwrap_or(MAX_FINDINGS);
    let report = diagnose(devices.each, limit, devices.skipped_files);
    findings::print(&report, arguments.format, text, markdown)?;
    devices.outcome
}

fn text(out: &mut dyn Write, report: &Diagnosis) -> io::Result<()> {
    writeln!(out, "{}\n", styled(STRONG, &report.verdict))?;
    findings::text(out, &report.findings, report.omitted.unwrap_or(0))?;
    findings::blind_text(out, report.found() > 0, &report.blind_spots)
}

fn markdown(out: &mut dyn Write, report: &Diagnosis) -> io::Result<()> {
    writeln!(out, "### GPU memory\n\n{}\n", escape(&report.verdict))?;
    findings::markdown(out, &report.findings, report.omitted.unwrap_or(0))?;
    findings::blind_markdown(out, report.found() > 0, &report.blind_spots)
}
