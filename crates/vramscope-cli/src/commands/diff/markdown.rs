//! A comparison for a comment on a pull request, as GitHub writes its tables.

use crate::output::{self, signed};
use std::io::{self, Write};
use vramscope_report::Category;
use vramscope_report::Quantity;
use vramscope_report::diff::{Diff, Pair};
use vramscope_report::text::signed_count;
use vramscope_units::grouped;

/// Failed checks first, then totals, then the call stacks that change most.
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
        writeln!(out, "- :x: {}", code(&check.expression))?;
        check.texts.iter().try_for_each(|text| writeln!(out, "  - {}", plain(text)))?;
    }
    for check in diff.checks.iter().filter(|c| !c.holds) {
        writeln!(out, "- :white_check_mark: not {}", code(&check.expression))?;
    }
    if !diff.checks.is_empty() {
        writeln!(out)?;
    }
    if diff.pairs.len() > 1 {
        writeln!(out, "{} → {}\n", code(&diff.a), code(&diff.b))?;
        ranks(out, diff)?;
    }
    if let Some(pair) = diff.largest() {
        self::pair(out, diff, pair)?;
    }
    for (paths, which) in [(&diff.only_a, &diff.a), (&diff.only_b, &diff.b)] {
        for path in paths {
            writeln!(out, "\n:warning: {} is only in {}.", code(path), code(which))?;
        }
    }
    Ok(())
}

fn ranks(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    writeln!(out, "| | {} peak before | after | change | | OOMs | findings |", diff.band.name())?;
    writeln!(out, "|:--|--:|--:|--:|--:|--:|--:|")?;
    for pair in &diff.pairs {
        let peak = pair.band(diff.band).peak;
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell(&pair.name()),
            signed(peak.a),
            signed(peak.b),
            Quantity::change_of_bytes(peak.change).text,
            peak.percent(),
            signed_count(pair.ooms.change),
            signed_count(pair.findings.count.change),
        )?;
    }
    writeln!(out)
}

fn pair(out: &mut dyn Write, diff: &Diff, pair: &Pair) -> io::Result<()> {
    writeln!(out, "{} → {}\n", code(&pair.a.path), code(&pair.b.path))?;
    writeln!(out, "| | before | after | change | |\n|:--|--:|--:|--:|--:|")?;
    for [name, before, after, change, percent] in super::figures(pair) {
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
            writeln!(out, "{gap}- {word}: {}", plain(&finding.text))?;
        }
    }
    let all = pair.stacks.as_deref().unwrap_or_default();
    let changed: Vec<_> =
        all.iter().filter(|s| s.bytes.change != 0 || s.blocks.change != 0).collect();
    if changed.is_empty() {
        return writeln!(
            out,
            "\nNo call stack holds more or less at the peak of {}.",
            diff.band.name()
        );
    }
    let what = if diff.band.name() == "reserved_bytes" { "segments" } else { "blocks" };
    writeln!(out, "\nCall stacks at the peak of {}:\n", diff.band.name())?;
    writeln!(
        out,
        "| change | before | after | {what} | category | call site |\n|--:|--:|--:|--:|:--|:--|"
    )?;
    let named: Vec<_> =
        changed.iter().map(|s| (s.site.as_str(), s.frames.as_slice(), s.of_free)).collect();
    for (stack, site) in changed.iter().zip(output::sites(&named)) {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            Quantity::change_of_bytes(stack.bytes.change).text,
            signed(stack.bytes.a),
            signed(stack.bytes.b),
            signed_count(stack.blocks.change),
            stack.category.map_or("", Category::name),
            cell(&site),
        )?;
    }
    if pair.stacks_left_out > 0 && changed.len() == all.len() {
        writeln!(out, "\nand {} more call stacks.", grouped(pair.stacks_left_out as u64))?;
    }
    Ok(())
}

/// Text as code. Names come from files: nothing in them may end the code, begin HTML or mention
/// anybody.
fn code(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{line}{gap}{fence}")
}

/// The same in a table, where a bar ends the cell even in code.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A sentence, some words of which come from files.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' => {
                out.extend(['\\', c])
            }
            '&' => out.push_str("&amp;"),
            // A space of no width keeps a name from being mentioned.
            '@' => out.push_str("@\u{200b}"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_stay_text() {
        assert_eq!(code("a.py:3 f"), "`a.py:3 f`");
        assert_eq!(code("`x``y"), "``` `x``y ```");
        assert_eq!(cell("a|b\nc"), "`a\\|b c`");
        assert_eq!(plain("<b> of @me, a_b"), "\\<b\\> of @\u{200b}me, a\\_b");
    }
}
