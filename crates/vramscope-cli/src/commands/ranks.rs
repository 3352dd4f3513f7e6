//! `vramscope ranks`.

mod one_gpu;
mod series;

use super::cards::{Inputs, each_of_index, is_index, refuse_reading};
use crate::Failure;
use crate::arguments::{Format, Ranks as Arguments};
use crate::output::{self, ERROR, STRONG, Table, WARNING, signed_bytes, styled};
use crate::printable::printable;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use vramscope_report::card::Names;
use vramscope_report::matrix::{RowRecord, RunMatrix, named};
use vramscope_report::ranks::{RankCollector, RankFinding, RankRow, Ranks};
use vramscope_report::{Severity, lower_first};
use vramscope_units::{Bytes, grouped};

/// Columns of single ranks in text. More ranks are shown by cluster.
const MAX_COLUMNS: usize = 8;

/// Findings in text.
const MAX_FINDINGS: usize = 5;

/// Text leaves out call sites that differ by less than this part of the highest peak.
const LEAST_DEVIATION_PART: u64 = 200;

/// Prints the ranks of a run side by side, and over its iterations.
///
/// # Errors
/// An input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.one_gpu {
        return one_gpu::run(arguments);
    }
    let common = &arguments.common;
    let (indexes, others): (Vec<PathBuf>, Vec<PathBuf>) =
        arguments.paths.iter().cloned().partition(|path| is_index(path));
    let mut ranks = RankCollector::default();
    let mut outcome = Ok(());
    for path in &indexes {
        refuse_reading(path, &common.window)?;
        match each_of_index(path, |entry, names| ranks.add(entry, names)) {
            Ok(skipped) => ranks.add_skipped(skipped),
            Err(why) => {
                output::complain_of(&path.to_string_lossy(), &why);
                outcome = Err(Failure::Input);
            }
        }
    }
    if !others.is_empty() {
        let read = Inputs::new(&others)?.each_entry(&common.window, |entry| {
            ranks.add(&entry, entry.as_ref().map_or(&Names::default(), |card| &card.names));
            Ok(())
        })?;
        ranks.add_skipped(read.skipped_files as u64);
        outcome = outcome.and(read.outcome);
    }
    if ranks.is_empty() && outcome.is_err() {
        return outcome;
    }
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let report = ranks.report(limit).map_err(Failure::Usage)?;
    let limit = output::limit(arguments.limit, common.format == Format::Text);
    output::print(&report, common.format, |out, report| {
        text(out, report, limit.unwrap_or(usize::MAX))
    })?;
    outcome
}

fn text(out: &mut dyn Write, report: &Ranks, limit: usize) -> io::Result<()> {
    // The folder of a run, without the iteration, and its last iteration.
    let mut last: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for row in &report.ranks {
        let known = last.entry(&row.folder).or_default();
        *known = (*known).max(row.iteration);
    }
    for (folder, iteration) in last {
        let rows: Vec<&RankRow> = report.ranks.iter().filter(|row| row.folder == folder).collect();
        let (of_last, of_others): (Vec<&RankRow>, Vec<&RankRow>) =
            rows.iter().partition(|row| row.iteration == iteration);
        let series = report.series.iter().find(|run| run.folder == folder);
        if let Some(series) = series.filter(|run| run.iterations.len() > 1) {
            series::run_text(out, series, limit)?;
            writeln!(out)?;
        }
        let folder = if folder.is_empty() { "." } else { folder };
        let at = match iteration {
            Some(iteration) if !of_others.is_empty() => format!(" of iteration {iteration}"),
            _ => String::new(),
        };
        writeln!(out, "{}  {}{at}", styled(STRONG, folder), counted(&of_last))?;
        let matrix = report.runs.iter().find(|run| {
            let mut columns = run.columns.iter();
            columns.any(|column| of_last.iter().any(|row| row.path == column.path))
        });
        if let Some(matrix) = matrix {
            matrix.text.iter().try_for_each(|text| writeln!(out, "  {}", printable(text)))?;
        }
        writeln!(out)?;
        rank_table(out, &of_last, limit)?;
        findings(out, &of_last)?;
        writeln!(out)?;
        if let Some(matrix) = matrix {
            sites(out, matrix, limit)?;
            writeln!(out)?;
        }
    }
    if report.runs.is_empty() {
        writeln!(out, "No run with several ranks: file names have no ranks, or one rank only.")?;
    }
    match report.failed_files {
        0 => Ok(()),
        1 => writeln!(out, "1 file could not be read."),
        files => writeln!(out, "{} files could not be read.", grouped(files as u64)),
    }
}

/// The figures of each rank, those that ran out of memory first.
fn rank_table(out: &mut dyn Write, rows: &[&RankRow], limit: usize) -> io::Result<()> {
    let mut rows = rows.to_vec();
    let is_long = rows.len() > limit;
    rows.sort_by_key(|row| {
        let peak = if is_long { Reverse(row.peak_bytes) } else { Reverse(0) };
        (Reverse(row.ooms > 0), peak, row.rank, row.device)
    });
    let has_devices = rows.iter().any(|row| row.device != rows[0].device);
    let mut names = vec!["rank", "peak", "reserved", "after the last step"];
    names.extend(has_devices.then_some("device"));
    names.push("worst finding");
    let mut right = vec![true; names.len()];
    right[0] = rows.iter().all(|row| row.rank.is_some());
    right[names.len() - 1] = false;
    let mut table = Table::new(&names, &right);
    table.whole([names.len() - 1]);
    for row in rows.iter().take(limit) {
        let name = row.rank.map_or_else(|| file_name(&row.path), |rank| rank.to_string());
        let mut cells = vec![
            name,
            signed_bytes(row.peak_bytes),
            signed_bytes(row.reserved_bytes),
            Bytes(row.kept_bytes).to_string(),
        ];
        cells.extend(has_devices.then(|| row.device.to_string()));
        let finding = row.finding.as_ref().map(|of| {
            format!("{:<6} {} {}", of.severity.name(), of.kind.name().replace('_', " "), of.bytes)
        });
        cells.push(finding.unwrap_or_default());
        table.row(cells);
    }
    table.write(out)?;
    let failed = rows.iter().skip(limit).filter(|row| row.ooms > 0).count();
    output::write_omitted(out, rows.len().saturating_sub(limit), "ranks")?;
    if failed > 0 {
        let count = grouped(failed as u64);
        writeln!(out, "  {}", styled(ERROR, format!("{count} of these ran out of memory, too")))?;
    }
    Ok(())
}

/// How many ranks these are. A rank that a launcher has started again has several snapshots.
fn counted(rows: &[&RankRow]) -> String {
    let count = |number: usize, word: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{} {word}{plural}", grouped(number as u64))
    };
    let ranks: Option<BTreeSet<u32>> = rows.iter().map(|row| row.rank).collect();
    match ranks {
        Some(ranks) if ranks.len() == rows.len() => count(ranks.len(), "rank"),
        Some(ranks) => {
            format!("{} of {}", count(rows.len(), "snapshot"), count(ranks.len(), "rank"))
        }
        None => count(rows.len(), "snapshot"),
    }
}

/// The findings above low, those of several ranks once.
fn findings(out: &mut dyn Write, rows: &[&RankRow]) -> io::Result<()> {
    let mut texts: Vec<(&RankFinding, Vec<u32>)> = Vec::new();
    for row in rows {
        let Some(finding) = row.finding.as_ref().filter(|of| of.severity != Severity::Low) else {
            continue;
        };
        match texts.iter_mut().find(|(known, _)| known.text == finding.text) {
            Some((_, ranks)) => ranks.extend(row.rank),
            None => texts.push((finding, row.rank.into_iter().collect())),
        }
    }
    texts.sort_by_key(|(of, _)| (of.severity, Reverse(of.bytes)));
    for (finding, ranks) in texts.iter().take(MAX_FINDINGS) {
        let style = if finding.severity == Severity::High { ERROR } else { WARNING };
        let title = if ranks.is_empty() {
            finding.text.clone()
        } else {
            format!("{}: {}", named(ranks), lower_first(&finding.text))
        };
        let severity = styled(style, finding.severity.name());
        writeln!(out, "  {severity}  {}", printable(&title))?;
    }
    output::write_omitted(out, texts.len().saturating_sub(MAX_FINDINGS), "findings")
}

fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}

/// The call sites that differ between ranks: their bytes on each rank, or with many ranks the
/// median of each cluster.
fn sites(out: &mut dyn Write, run: &RunMatrix, limit: usize) -> io::Result<()> {
    let peak = run.columns.iter().map(|column| column.peak_bytes).max().unwrap_or(0);
    let mut differing: Vec<&RowRecord> = run
        .rows
        .iter()
        .filter(|row| row.deviation > 0 && row.deviation >= peak / LEAST_DEVIATION_PART)
        .collect();
    differing.sort_by_key(|row| Reverse(row.deviation));
    let alike = run.rows.len() - differing.len() + run.omitted;
    if differing.is_empty() {
        return match alike {
            1 => writeln!(out, "  The one call site holds about the same on every rank."),
            count => writeln!(
                out,
                "  All {} call sites hold about the same on every rank.",
                grouped(count as u64)
            ),
        };
    }
    let by_rank = run.columns.len() <= MAX_COLUMNS;
    let mut names: Vec<String> = ["median", "max", "on"].map(str::to_owned).to_vec();
    if by_rank {
        names.extend(run.columns.iter().map(|column| format!("rank {}", column.rank)));
    } else if run.clusters.len() <= MAX_COLUMNS {
        names.extend(run.clusters.iter().map(|cluster| cluster.text.clone()));
    }
    let numbers = names.len();
    names.push("call site".to_owned());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut right = [true; 4 + MAX_COLUMNS];
    right[numbers] = false;
    let mut table = Table::new(&names, &right[..names.len()]);
    // The columns of ranks go first where the terminal is narrow, those of the last ranks first.
    table.optional((3..numbers).rev());
    for row in differing.iter().take(limit) {
        let of = |bytes: u64| if bytes == 0 { "-".to_owned() } else { Bytes(bytes).to_string() };
        let mut cells = vec![of(row.median), of(row.max), format!("rank {}", row.max_rank)];
        if by_rank {
            cells.extend(row.bytes.iter().map(|&bytes| of(bytes)));
        } else if numbers > 3 {
            cells.extend(row.clusters.iter().map(|&bytes| of(bytes)));
        }
        cells.push(row.site.clone());
        table.row(cells);
    }
    table.write(out)?;
    output::write_omitted(out, differing.len().saturating_sub(limit), "call sites")?;
    match alike {
        0 => Ok(()),
        1 => writeln!(out, "  1 more call site holds about the same on every rank."),
        count => writeln!(
            out,
            "  {} more call sites hold about the same on every rank.",
            grouped(count as u64)
        ),
    }
}
