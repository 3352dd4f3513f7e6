//! The iterations of a run as text.

use crate::output::{self, FAINT, STRONG, Table, signed_bytes, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::device_name;
use vramscope_report::series::{RankSeries, RunSeries};
use vramscope_units::{Bytes, grouped};

/// Iterations with a column of their own in text: the last ones.
const MAX_COLUMNS: usize = 4;

/// Writes the iterations of a run.
pub(super) fn run_text(out: &mut dyn Write, run: &RunSeries, limit: usize) -> io::Result<()> {
    let folder = if run.folder.is_empty() { "." } else { &run.folder };
    let count = |count: usize, word: &str| {
        format!("{} {word}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
    };
    let (ranks, iterations) = (run.ranks.len() + run.omitted, run.iterations.len());
    let (ranks, iterations) = (count(ranks, "rank"), count(iterations, "iteration"));
    writeln!(out, "{}  {ranks}, {iterations}", styled(STRONG, folder))?;
    run.text.iter().try_for_each(|sentence| writeln!(out, "  {}", printable(sentence)))?;
    for drift in &run.drifts {
        writeln!(out, "  {}", styled(FAINT, &drift.disproof))?;
    }
    writeln!(out)?;
    table(out, run, limit)?;
    output::write_omitted(out, run.omitted + run.ranks.len().saturating_sub(limit), "ranks")?;
    if !run.blind_spots.is_empty() {
        writeln!(out, "\nNot looked for:")?;
    }
    run.blind_spots.iter().try_for_each(|spot| writeln!(out, "  - {}", printable(spot)))
}

/// The peak of each rank by iteration, and its figures in the last one.
fn table(out: &mut dyn Write, run: &RunSeries, limit: usize) -> io::Result<()> {
    let first = run.iterations.len().saturating_sub(MAX_COLUMNS);
    let shown = &run.iterations[first..];
    let mut names = vec!["rank".to_owned()];
    names.extend(shown.iter().map(|iteration| format!("peak at {iteration}")));
    names.extend(["growth", "reserved", "- active", "largest free"].map(str::to_owned));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::new(&names, &vec![true; names.len()]);
    let has_devices = run.ranks.iter().any(|row| row.device != run.ranks[0].device);
    for row in run.ranks.iter().take(limit) {
        let name = if has_devices {
            format!("{} {}", row.rank, device_name(row.device))
        } else {
            row.rank.to_string()
        };
        let mut cells = vec![name];
        cells.extend(row.peak_bytes[first..].iter().map(|&bytes| bytes_or_none(bytes)));
        cells.push(growth(row));
        let last = |values: &[Option<i64>]| bytes_or_none(values.iter().rev().find_map(|&v| v));
        cells.extend(
            [&row.reserved_bytes, &row.free_bytes, &row.largest_free_bytes].map(|v| last(v)),
        );
        table.row(cells);
    }
    table.write(out)
}

fn bytes_or_none(bytes: Option<i64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), signed_bytes)
}

/// The growth of a rank's peak from the first to the last iteration.
fn growth(row: &RankSeries) -> String {
    let growth: i64 = row.growth_bytes.iter().flatten().sum();
    match growth {
        0 => "0 B".to_owned(),
        1.. => format!("+{}", Bytes(growth.unsigned_abs())),
        _ => signed_bytes(growth),
    }
}
