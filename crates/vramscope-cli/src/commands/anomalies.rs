//! `vramscope anomalies`.

use crate::Failure;
use crate::arguments::Files;
use crate::output::{self, BAD, FAINT, STRONG, WARN, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::Severity;
use vramscope_report::findings::{Findings, across};
use vramscope_report::rank::RankSummary;
use vramscope_report::{FrameRecord, Target};
use vramscope_units::Bytes;

/// Findings in every file, and across them.
///
/// # Errors
/// When a folder cannot be listed, an input not be read, or the output not be written.
pub(crate) fn run(arguments: &Files) -> Result<(), Failure> {
    let (devices, outcome) = read::all(&arguments.paths, &arguments.common, |_, _, result| {
        let mut found: Vec<RankSummary> = Vec::new();
        if let Ok(file) = &result {
            for entry in &file.entries {
                let path = entry.path.clone();
                found.extend(
                    (0..entry.traces.len())
                        .map(|index| RankSummary::new(Target { path: &path, entry, index })),
                );
            }
        }
        found
    })?;
    let report = across(devices.into_iter().flatten().collect());
    output::print(&report, arguments.common.format, text)?;
    outcome
}

fn text(out: &mut dyn Write, report: &Findings) -> io::Result<()> {
    if report.anomalies.is_empty() {
        return writeln!(out, "No findings.");
    }
    for a in &report.anomalies {
        let style = match a.severity {
            Severity::High => BAD,
            Severity::Medium => WARN,
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
        writeln!(out, "             {}", a.text)?;
        let own: Vec<String> =
            a.frames.iter().filter(|f| !f.is_framework()).map(FrameRecord::label).collect();
        if own.len() > 1 {
            writeln!(out, "             called from {}", own[1..].join(", "))?;
        }
    }
    Ok(())
}
