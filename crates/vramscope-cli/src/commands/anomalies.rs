//! `vramscope anomalies`.

use crate::Failure;
use crate::arguments::Files;
use crate::output::{self, ERROR, FAINT, STRONG, WARNING, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::Severity;
use vramscope_report::Target;
use vramscope_report::findings::{Findings, across};
use vramscope_report::rank::RankSummary;
use vramscope_units::Bytes;

/// Prints the findings in each file and across ranks.
///
/// # Errors
/// A folder cannot be listed, an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Files) -> Result<(), Failure> {
    let read = read::each_file(&arguments.paths, &arguments.common, |_, _, result| {
        let mut ranks: Vec<RankSummary> = Vec::new();
        if let Ok(file) = &result {
            for entry in &file.entries {
                let path = entry.path.clone();
                ranks.extend(
                    (0..entry.traces.len())
                        .map(|index| RankSummary::new(Target { path: &path, entry, index })),
                );
            }
        }
        ranks
    })?;
    let (ranks, _skipped_files, outcome) = read.into_results();
    let report = across(ranks.flatten().collect());
    output::print(&report, arguments.common.format, text)?;
    outcome
}

fn text(out: &mut dyn Write, report: &Findings) -> io::Result<()> {
    if report.anomalies.is_empty() {
        return writeln!(out, "No findings.");
    }
    for a in &report.anomalies {
        let style = match a.severity {
            Severity::High => ERROR,
            Severity::Medium => WARNING,
            Severity::Low => FAINT,
        };
        let severity = styled(style, format_args!("{:<6}", a.severity.name()));
        writeln!(
            out,
            "{:>11}  {severity}  {}  {}",
            Bytes(a.bytes).to_string(),
            a.kind.name(),
            styled(STRONG, &a.path)
        )?;
        writeln!(out, "             {}", styled(STRONG, &a.title))?;
        writeln!(out, "             {}", a.text)?;
        if !a.action.is_empty() {
            writeln!(out, "             {}", a.action)?;
        }
        if !a.called_from.is_empty() {
            writeln!(out, "             called from {}", a.called_from.join(", "))?;
        }
    }
    Ok(())
}
