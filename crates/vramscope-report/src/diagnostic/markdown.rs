//! An answer in Markdown, for a pull request or an issue: the findings, a table of changes, and the
//! rest folded.

use super::{Answer, Bar, Diagnostic, Fact, FigureRow, LeverRow, LineRow, RankRow};
use crate::markdown::{code_cell, escape, inline_code};
use std::fmt::Write as _;
use vramscope_inference::capitalized;
use vramscope_units::grouped;

/// The answer in Markdown.
pub fn markdown(answer: &Answer) -> String {
    let mut out = String::from("### GPU memory\n\n");
    if let Some(dry) = &answer.dry {
        line(&mut out, format_args!("**{}**\n", escape(&capitalized(dry))));
    }
    if let Some(empty) = &answer.empty {
        line(&mut out, format_args!("{}\n", escape(&capitalized(empty))));
    }
    let (first, others) = answer.parts();
    if first.is_empty() {
        peak(&mut out, answer);
    }
    for one in first {
        finding(&mut out, one);
    }
    for process in &answer.processes {
        line(&mut out, format_args!("{}\n", escape(process)));
    }
    if !first.is_empty() {
        peak(&mut out, answer);
    }
    ranks(&mut out, &answer.ranks);
    rows(&mut out, &answer.levers);
    for one in others {
        finding(&mut out, one);
    }
    if answer.omitted > 0 {
        line(&mut out, format_args!("and {} more\n", grouped(answer.omitted as u64)));
    }
    if !answer.help.is_empty() || !answer.notes.is_empty() {
        out.push_str("<details><summary>What next, and what was not looked for</summary>\n\n");
        for help in &answer.help {
            line(&mut out, format_args!("- {}", inline_code(help)));
        }
        for note in &answer.notes {
            line(&mut out, format_args!("- {}", escape(note)));
        }
        out.push_str("\n</details>\n");
    }
    out
}

fn peak(out: &mut String, answer: &Answer) {
    let Some((words, bar)) = &answer.peak else { return };
    let parts = bar.legend();
    let parts = parts.iter().map(|part| format!("{} {}", part.label, part.bytes));
    let parts: Vec<String> = parts.collect();
    let words = capitalized(words);
    line(out, format_args!("**{}**: {}\n", escape(&words), escape(&parts.join(", "))));
    holding_lines(out, bar);
    if !bar.lines.is_empty() {
        out.push('\n');
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a String takes all text");
}

fn holding_lines(out: &mut String, bar: &Bar) {
    for of in &bar.lines {
        let LineRow { bytes, share, site, text } = of;
        line(out, format_args!("- {bytes} ({share}): {}, {}", inline_code(site), escape(text)));
    }
}

fn finding(out: &mut String, one: &Diagnostic) {
    let level = format!("{}[{}]", one.level.name(), one.kind);
    line(out, format_args!("**{}: {}**\n", escape(&level), escape(&one.headline)));
    // Without a file it is a place in a log, not in code.
    let place = match (one.site.as_str(), one.note.as_str()) {
        _ if one.file.is_empty() => escape(&one.place()),
        ("", _) => "in ".to_owned(),
        (site, "") => format!("{}, in ", inline_code(site)),
        (site, note) => format!("{}, {}, in ", inline_code(site), escape(note)),
    };
    let file = if one.file.is_empty() { String::new() } else { inline_code(&one.file) };
    line(out, format_args!("- {place}{file}"));
    if let Some((_, source)) = &one.source {
        let what = if one.what.is_empty() { String::new() } else { format!(": {}", one.what) };
        line(out, format_args!("- {}{}", inline_code(source), escape(&what)));
    }
    if let Some(bar) = &one.bar {
        let parts = bar.legend();
        let parts: Vec<String> =
            parts.iter().map(|part| format!("{} {}", part.label, part.bytes)).collect();
        line(out, format_args!("- {}: {}", escape(&bar.title), escape(&parts.join(", "))));
        holding_lines(out, bar);
    }
    for Fact { label, text } in &one.facts {
        let label = label.name();
        line(out, format_args!("- {label}: {}", escape(text)));
    }
    for look in &one.looks {
        let site = if look.site.is_empty() {
            String::new()
        } else {
            format!("{}: ", inline_code(&look.site))
        };
        line(out, format_args!("- look at {site}{}", escape(&look.text)));
    }
    out.push('\n');
    rows(out, &one.fixes);
    figures(out, &one.figures);
    if !one.detail.is_empty() {
        line(
            out,
            format_args!(
                "<details><summary>Details</summary>\n\n{}\n\n</details>\n",
                escape(&one.detail)
            ),
        );
    }
}

fn rows(out: &mut String, rows: &[LeverRow]) {
    if rows.is_empty() {
        return;
    }
    let columns: Vec<_> = LeverRow::columns(rows).collect();
    let (mut heads, mut rule) = (String::new(), String::new());
    for (head, class, _) in &columns {
        write!(heads, " {head} |").expect("a String takes all text");
        rule.push_str(if *class == "number" { "---:|" } else { "---|" });
    }
    line(out, format_args!("| | change |{heads}\n|---|---|{rule}"));
    for row in rows {
        let mut cells = String::new();
        for (_, _, text) in &columns {
            write!(cells, " {} |", text(row)).expect("a String takes all text");
        }
        line(out, format_args!("| {} | {} |{cells}", row.label, code_cell(&row.text)));
    }
    out.push('\n');
}

fn figures(out: &mut String, rows: &[FigureRow]) {
    if rows.is_empty() {
        return;
    }
    out.push_str("| figure | bytes | meaning |\n|---|---:|---|\n");
    for row in rows {
        line(out, format_args!("| {} | {} | {} |", row.name, row.bytes, escape(&row.meaning)));
    }
    out.push('\n');
}

fn ranks(out: &mut String, rows: &[RankRow]) {
    if rows.is_empty() {
        return;
    }
    out.push_str("| rank | peak | reserved | alive at the end | |\n|---|---:|---:|---:|---|\n");
    for row in rows {
        let [peak, reserved, kept] = &row.bytes;
        let level = row.level.map_or("", super::Level::name);
        line(out, format_args!("| {} | {peak} | {reserved} | {kept} | {level} |", row.ranks));
    }
    out.push('\n');
}
