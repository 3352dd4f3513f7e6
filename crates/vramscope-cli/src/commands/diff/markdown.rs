//! A comparison as GitHub Markdown, for a pull request comment.

use std::io::{self, Write};
use vramscope_report::diff::{Diff, amount, markdown};
use vramscope_report::markdown::{code_cell, escape, inline_code};
use vramscope_report::text::signed_count;

/// Writes failed checks, passed checks, totals, then the call stacks that change most.
pub(super) fn write(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    let failed = diff.checks.iter().filter(|c| c.holds).count();
    let title = match (failed, diff.checks.len()) {
        (_, 0) => String::new(),
        (0, _) => ": all checks pass".to_owned(),
        (1, _) => ": 1 check fails".to_owned(),
        (n, _) => format!(": {n} checks fail"),
    };
    writeln!(out, "{}{title}\n", markdown::TITLE)?;
    for check in diff.checks.iter().filter(|c| c.holds) {
        writeln!(out, "- :x: {} holds", inline_code(&check.expression))?;
        check.texts.iter().try_for_each(|text| writeln!(out, "  - {}", escape(text)))?;
    }
    for check in diff.checks.iter().filter(|c| !c.holds) {
        writeln!(out, "- :white_check_mark: {} does not hold", inline_code(&check.expression))?;
    }
    if !diff.checks.is_empty() {
        writeln!(out)?;
    }
    if diff.pairs.len() > 1 {
        writeln!(out, "{} → {}\n", inline_code(&diff.a), inline_code(&diff.b))?;
        write_ranks(out, diff)?;
    }
    if let Some(pair) = diff.largest() {
        let mut text = String::new();
        markdown::write_pair(&mut text, diff.band, pair).map_err(io::Error::other)?;
        out.write_all(text.as_bytes())?;
    }
    for (paths, which) in [(&diff.only_a, &diff.a), (&diff.only_b, &diff.b)] {
        for path in paths {
            writeln!(out, "\n:warning: {} is only in {}.", inline_code(path), inline_code(which))?;
        }
    }
    Ok(())
}

fn write_ranks(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    writeln!(out, "| | {} peak before | after | change | | OOMs | findings |", diff.band.name())?;
    writeln!(out, "|:--|--:|--:|--:|--:|--:|--:|")?;
    for pair in &diff.pairs {
        let peak = pair.band(diff.band).peak;
        let [a, b, change] = amount(peak);
        writeln!(
            out,
            "| {} | {a} | {b} | {change} | {} | {} | {} |",
            code_cell(&pair.name()),
            peak.percent(),
            signed_count(pair.ooms.change.0),
            signed_count(pair.findings.count.change.0),
        )?;
    }
    writeln!(out)
}
