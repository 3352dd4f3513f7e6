//! `vramscope diagnose`.

use super::diff::markdown::escape;
use super::findings;
use crate::Failure;
use crate::arguments::Findings as Arguments;
use crate::output::{STRONG, styled};
use std::io::{self, Write};
use vramscope_report::diagnose::{Diagnosis, MAX_FINDINGS, diagnose};

/// Prints the verdict about files, the main findings and what could not be looked for.
///
/// # Errors
/// A folder cannot be listed, an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (ranks, skipped_files, outcome) = findings::read_ranks(arguments)?;
    let report = diagnose(ranks, arguments.limit.unwrap_or(MAX_FINDINGS), skipped_files);
    findings::print(&report, arguments.format, text, markdown)?;
    outcome
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
