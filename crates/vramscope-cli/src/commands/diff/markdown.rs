//! A comparison as GitHub Markdown, for a pull request comment.

use crate::output::{self, signed_bytes};
use crate::printable::acts;
use std::io::{self, Write};
use vramscope_report::Quantity;
use vramscope_report::diff::{Diff, Pair};
use vramscope_report::text::signed_count;
use vramscope_units::grouped;

/// Writes failed checks, passed checks, totals, then the call stacks that change most.
pub(super) fn write(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    let failed = diff.checks.iter().filter(|c| c.holds).count();
    let title = match (failed, diff.checks.len()) {
        (_, 0) => String::new(),
        (0, _) => ": all checks pass".to_owned(),
        (1, _) => ": 1 check fails".to_owned(),
        (n, _) => format!(": {n} checks fail"),
    };
    writeln!(out, "### GPU memory{title}\n")?;
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
        write_pair(out, diff, pair)?;
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
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            code_cell(&pair.name()),
            signed_bytes(peak.a),
            signed_bytes(peak.b),
            Quantity::change_of_bytes(peak.change).text,
            peak.percent(),
            signed_count(pair.ooms.change),
            signed_count(pair.findings.count.change),
        )?;
    }
    writeln!(out)
}

fn write_pair(out: &mut dyn Write, diff: &Diff, pair: &Pair) -> io::Result<()> {
    writeln!(out, "{} → {}\n", inline_code(&pair.a.path), inline_code(&pair.b.path))?;
    for cause in &pair.causes {
        writeln!(out, "{}\n", escape(cause))?;
    }
    let recording = super::recording_rows(pair);
    if !recording.is_empty() {
        writeln!(out, "| recording | before | after |\n|:--|:--|:--|")?;
        for [name, before, after] in recording {
            let [before, after] = [code_cell(&before), code_cell(&after)];
            writeln!(out, "| {} | {before} | {after} |", escape(&name))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "| | before | after | change | |\n|:--|--:|--:|--:|--:|")?;
    for [name, before, after, change, percent] in super::total_rows(pair) {
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
            writeln!(out, "{gap}- {word}: {}", escape(&finding.text))?;
        }
    }
    let all = pair.stacks.as_deref().unwrap_or_default();
    let changed: Vec<_> =
        all.iter().filter(|s| s.bytes.change != 0 || s.blocks.change != 0).collect();
    if changed.is_empty() {
        return writeln!(out, "\nNo call stack changed at the peak of {}.", diff.band.name());
    }
    let unit = if diff.band.name() == "reserved_bytes" { "segments" } else { "blocks" };
    writeln!(out, "\nCall stacks at the peak of {}:\n", diff.band.name())?;
    writeln!(
        out,
        "| change | before | after | {unit} | category | call site |\n|--:|--:|--:|--:|:--|:--|"
    )?;
    let named: Vec<_> =
        changed.iter().map(|s| (s.site.as_str(), s.frames.as_slice(), s.of_free)).collect();
    for (stack, site) in changed.iter().zip(output::site_labels(&named)) {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            Quantity::change_of_bytes(stack.bytes.change).text,
            signed_bytes(stack.bytes.a),
            signed_bytes(stack.bytes.b),
            signed_count(stack.blocks.change),
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

/// Text as inline code. Names come from files, so they must not end the code span, open an HTML tag
/// or mention a user.
pub(in crate::commands) fn inline_code(text: &str) -> String {
    let line: String = text.chars().map(|c| if acts(c) { ' ' } else { c }).collect();
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{line}{gap}{fence}")
}

/// Inline code for a table cell, where a bar ends the cell even inside code.
fn code_cell(text: &str) -> String {
    inline_code(text).replace('|', "\\|")
}

/// Escapes a sentence that contains names from files.
pub(in crate::commands) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' => {
                out.extend(['\\', c]);
            }
            '&' => out.push_str("&amp;"),
            // A zero-width space prevents a mention.
            '@' => out.push_str("@\u{200b}"),
            c if acts(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_are_escaped() {
        assert_eq!(inline_code("a.py:3 f"), "`a.py:3 f`");
        assert_eq!(inline_code("`x``y"), "``` `x``y ```");
        assert_eq!(code_cell("a|b\nc"), "`a\\|b c`");
        assert_eq!(escape("<b> of @me, a_b"), "\\<b\\> of @\u{200b}me, a\\_b");
    }
}
