//! `vramscope matrix`.

use super::findings;
use crate::Failure;
use crate::arguments::{Format, Matrix as Arguments};
use crate::output::{self, STRONG, Table, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::card::Card;
use vramscope_report::matrix::{MatrixReport, RunMatrix, matrices};
use vramscope_report::now;
use vramscope_units::{Bytes, grouped};

/// Columns of single ranks in text. More ranks are shown by cluster.
const MAX_COLUMNS: usize = 8;

/// Prints what each rank holds at its peak, by call site.
///
/// # Errors
/// A folder cannot be listed, an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.files.common;
    let devices = findings::each_device_of(&arguments.files.paths, &common.window, |target| {
        now(async |budget| Card::new(target, budget).await)
    })?;
    let limit = output::limit(arguments.limit, common.format == Format::Text);
    let report = matrices(&devices.each, devices.skipped_files, limit.unwrap_or(usize::MAX));
    output::print(&report, common.format, text)?;
    devices.outcome
}

fn text(out: &mut dyn Write, report: &MatrixReport) -> io::Result<()> {
    for run in &report.runs {
        let folder = if run.folder.is_empty() { "." } else { &run.folder };
        let count = grouped(run.columns.len() as u64);
        writeln!(out, "{}  {count} ranks", styled(STRONG, folder))?;
        run.text.iter().try_for_each(|sentence| writeln!(out, "  {}", printable(sentence)))?;
        writeln!(out)?;
        table(out, run)?;
        output::write_omitted(out, run.omitted, "call sites")?;
        writeln!(out)?;
    }
    match report.other_files {
        _ if report.runs.is_empty() => {
            writeln!(out, "No run with several ranks: file names have no ranks, or one rank only.")
        }
        0 => Ok(()),
        1 => writeln!(out, "1 more file is no rank of a run with several ranks."),
        files => writeln!(
            out,
            "{} more files are no ranks of a run with several ranks.",
            grouped(files as u64)
        ),
    }
}

/// The bytes by call site: on each rank, or with many ranks the median of each cluster.
fn table(out: &mut dyn Write, run: &RunMatrix) -> io::Result<()> {
    let by_rank = run.columns.len() <= MAX_COLUMNS;
    let mut names: Vec<String> = ["median", "max", "on"].map(str::to_owned).to_vec();
    if by_rank {
        names.extend(run.columns.iter().map(|column| format!("rank {}", column.rank)));
    } else if run.clusters.len() <= MAX_COLUMNS {
        names.extend(run.clusters.iter().map(|cluster| cluster.text.clone()));
    }
    let numbers = names.len();
    names.push("site".to_owned());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut right = [true; 4 + MAX_COLUMNS];
    right[numbers] = false;
    let mut table = Table::new(&names, &right[..names.len()]);
    for row in &run.rows {
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
    table.write(out)
}
