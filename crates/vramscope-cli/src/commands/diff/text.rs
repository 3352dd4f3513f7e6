//! A comparison as text.

use crate::output::{self, FAINT, STRONG, Table, WARNING, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::device_name;
use vramscope_report::diff::{Diff, Pair, amount};
use vramscope_report::text::signed_count;
use vramscope_units::grouped;

/// Writes the checks, then one row per rank, then the pair that changes most.
pub(super) fn write(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    for check in &diff.checks {
        let word = if check.holds { styled(WARNING, "FAIL") } else { styled(FAINT, "ok  ") };
        writeln!(out, "{word} {}", printable(&check.expression))?;
        check.texts.iter().try_for_each(|text| writeln!(out, "     {}", printable(text)))?;
    }
    if !diff.checks.is_empty() {
        writeln!(out)?;
    }
    if diff.pairs.len() > 1 {
        write_ranks(out, diff)?;
    }
    if let Some(pair) = diff.largest() {
        write_pair(out, diff, pair)?;
    }
    for (paths, which) in [(&diff.only_a, &diff.a), (&diff.only_b, &diff.b)] {
        for path in paths {
            let (path, which) = (printable(path), printable(which));
            writeln!(out, "{} {path} is only in {which}", styled(WARNING, "warning:"))?;
        }
    }
    Ok(())
}

fn write_ranks(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    writeln!(
        out,
        "{} -> {}, {} ranks\n",
        styled(STRONG, &diff.a),
        styled(STRONG, &diff.b),
        diff.pairs.len()
    )?;
    let peak = format!("{} peak", diff.band.name());
    let mut table = Table::new(
        &["", &peak, "", "change", "", "OOMs", "findings"],
        &[false, true, true, true, true, true, true],
    );
    for pair in &diff.pairs {
        let peak = pair.band(diff.band).peak;
        let mut row = vec![pair.name()];
        row.extend(amount(peak));
        row.extend([
            peak.percent(),
            signed_count(pair.ooms.change.0),
            signed_count(pair.findings.count.change.0),
        ]);
        table.row(row);
    }
    table.write(out)?;
    writeln!(out)
}

fn write_pair(out: &mut dyn Write, diff: &Diff, pair: &Pair) -> io::Result<()> {
    let place = |device: u32| {
        if pair.a.device == pair.b.device {
            String::new()
        } else {
            format!(" {}", device_name(device))
        }
    };
    writeln!(
        out,
        "{}{} -> {}{}{}\n",
        styled(STRONG, &pair.a.path),
        place(pair.a.device),
        styled(STRONG, &pair.b.path),
        place(pair.b.device),
        if pair.a.device == pair.b.device {
            format!("  {}", device_name(pair.b.device))
        } else {
            String::new()
        },
    )?;
    let recording = pair.recording_rows();
    if !recording.is_empty() {
        let mut table = Table::new(&["recording", "before", "after"], &[false; 3]);
        for row in recording {
            table.row(vec![row.name, row.a, row.b]);
        }
        table.write(out)?;
        writeln!(out)?;
    }
    for cause in &pair.causes {
        writeln!(out, "  {} {}\n", styled(WARNING, "cause:"), printable(cause))?;
    }
    if let Some(changes) = &pair.changes {
        for (at, text) in changes.texts().iter().enumerate() {
            let word = if at == 0 { "program:" } else { "        " };
            writeln!(out, "  {} {}", styled(STRONG, word), printable(text))?;
        }
        writeln!(out)?;
    }
    let mut table =
        Table::new(&["", "before", "after", "change", ""], &[false, true, true, true, true]);
    for row in pair.total_texts() {
        table.row(row.into());
    }
    table.write(out)?;
    for (findings, word) in [(&pair.findings.new, "new"), (&pair.findings.gone, "gone")] {
        for finding in findings {
            writeln!(
                out,
                "  {} {}: {}",
                styled(WARNING, format_args!("{word}:")),
                finding.record.kind.name(),
                printable(&finding.record.title)
            )?;
        }
    }
    let changed: Vec<_> = pair.categories.iter().filter(|c| c.bytes.change.0 != 0).collect();
    if !changed.is_empty() {
        writeln!(out)?;
        let mut table = Table::new(
            &["category", "before", "after", "change", ""],
            &[false, true, true, true, true],
        );
        for c in changed {
            let mut row = vec![c.category.name().to_owned()];
            row.extend(amount(c.bytes));
            row.push(c.bytes.percent());
            table.row(row);
        }
        table.write(out)?;
    }
    writeln!(out)?;
    write_stacks(out, diff, pair)
}

/// Writes the table of changed call stacks.
fn write_stacks(out: &mut dyn Write, diff: &Diff, pair: &Pair) -> io::Result<()> {
    let all = pair.stacks.as_deref().unwrap_or_default();
    let changed: Vec<_> =
        all.iter().filter(|s| s.bytes.change.0 != 0 || s.blocks.change.0 != 0).collect();
    let unit = if diff.band.name() == "reserved_bytes" { "segments" } else { "blocks" };
    if changed.is_empty() {
        return writeln!(out, "  No call stack changed at the peak of {}.", diff.band.name());
    }
    let mut table = Table::new(
        &["change", "before", "after", unit, "category", "call site"],
        &[true, true, true, true, false, false],
    );
    let named: Vec<_> =
        changed.iter().map(|s| (s.site.as_str(), s.frames.as_slice(), s.of_free)).collect();
    for (stack, site) in changed.iter().zip(output::site_labels(&named)) {
        let [a, b, change] = amount(stack.bytes);
        table.row(vec![
            change,
            a,
            b,
            signed_count(stack.blocks.change.0),
            stack.category.clone().unwrap_or_default(),
            site,
        ]);
    }
    table.write(out)?;
    if pair.stacks_left_out > 0 && changed.len() == all.len() {
        writeln!(
            out,
            "  and {} more call stacks (--limit N shows more)",
            grouped(pair.stacks_left_out as u64)
        )?;
    }
    Ok(())
}
