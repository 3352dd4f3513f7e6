//! A pair as GitHub Markdown, for a pull request comment.

use super::{Pair, ProgramChanges, amount};
use crate::disambiguate::site_labels;
use crate::markdown::{code_cell, escape, inline_code};
use crate::peak::BandKind;
use crate::text::signed_count;
use std::fmt;
use vramscope_units::grouped;

/// The title of a comparison.
pub const TITLE: &str = "### GPU memory";

/// Appends a pair: where both sides are from, why they differ, totals, then the call stacks that
/// change most.
///
/// # Errors
/// The writer fails.
pub fn write_pair(out: &mut dyn fmt::Write, band: BandKind, pair: &Pair) -> fmt::Result {
    writeln!(out, "{} → {}\n", inline_code(&pair.a.path), inline_code(&pair.b.path))?;
    for cause in &pair.causes {
        writeln!(out, "{}\n", escape(cause))?;
    }
    for text in pair.changes.iter().flat_map(ProgramChanges::texts) {
        writeln!(out, "{}\n", escape(&text))?;
    }
    let recording = pair.recording_rows();
    if !recording.is_empty() {
        writeln!(out, "| recording | before | after |\n|:--|:--|:--|")?;
        for row in recording {
            let [before, after] = [code_cell(&row.a), code_cell(&row.b)];
            writeln!(out, "| {} | {before} | {after} |", escape(&row.name))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "| | before | after | change | |\n|:--|--:|--:|--:|--:|")?;
    for [name, before, after, change, percent] in pair.total_texts() {
        let (name, change) = if name.contains("_bytes peak") {
            (format!("**{name}**"), format!("**{change}**"))
        } else {
            (name, change)
        };
        writeln!(out, "| {name} | {before} | {after} | {change} | {percent} |")?;
    }
    for (findings, word) in [(&pair.findings.new, "New"), (&pair.findings.gone, "Gone")] {
        for (i, finding) in findings.iter().enumerate() {
            let gap = if i == 0 { "\n" } else { "" };
            writeln!(out, "{gap}- {word}: {}", escape(&finding.record.text))?;
        }
    }
    let all = pair.stacks.as_deref().unwrap_or_default();
    let changed: Vec<_> =
        all.iter().filter(|s| s.bytes.change.0 != 0 || s.blocks.change.0 != 0).collect();
    if changed.is_empty() {
        return writeln!(out, "\nNo call stack changed at the peak of {}.", band.name());
    }
    let unit = if band.name() == "reserved_bytes" { "segments" } else { "blocks" };
    writeln!(out, "\nCall stacks at the peak of {}:\n", band.name())?;
    writeln!(
        out,
        "| change | before | after | {unit} | category | call site |\n|--:|--:|--:|--:|:--|:--|"
    )?;
    let named: Vec<_> =
        changed.iter().map(|s| (s.site.as_str(), s.frames.as_slice(), s.of_free)).collect();
    for (stack, site) in changed.iter().zip(site_labels(&named)) {
        let [a, b, change] = amount(stack.bytes);
        writeln!(
            out,
            "| {change} | {a} | {b} | {} | {} | {} |",
            signed_count(stack.blocks.change.0),
            stack.category.as_deref().unwrap_or_default(),
            code_cell(&site),
        )?;
    }
    if pair.stacks_left_out > 0 && changed.len() == all.len() {
        writeln!(
            out,
            "\n{} more call stacks are not listed.",
            grouped(pair.stacks_left_out as u64)
        )?;
    }
    Ok(())
}

/// The comparison of two files: what `vramscope diff --format markdown` prints about them.
pub fn of_pair(band: BandKind, pair: &Pair) -> String {
    let mut out = format!("{TITLE}\n\n");
    write_pair(&mut out, band, pair).expect("writing to a string");
    out
}
