//! `vramscope series`.

use super::index::Inputs;
use crate::Failure;
use crate::arguments::{Format, Series as Arguments};
use crate::output::{self, FAINT, STRONG, Table, signed_bytes, styled};
use crate::printable::printable;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use vramscope_report::card::Names;
use vramscope_report::device_name;
use vramscope_report::index::{EXTENSION, FailedFile, NO_DEVICE, Reader};
use vramscope_report::series::{Collector, RankSeries, RunSeries, SeriesReport};
use vramscope_units::{Bytes, grouped};

/// Iterations with a column of their own in text: the last ones.
const MAX_COLUMNS: usize = 6;

/// Bytes per read of an index.
const CHUNK_BYTES: usize = 1 << 20;

/// Prints the ranks of a run over its iterations.
///
/// # Errors
/// An input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.files.common;
    let is_index = |path: &PathBuf| path.to_string_lossy().ends_with(EXTENSION);
    let (indexes, others): (Vec<PathBuf>, Vec<PathBuf>) =
        arguments.files.paths.iter().cloned().partition(is_index);
    let mut collector = Collector::default();
    let mut outcome = Ok(());
    for path in &indexes {
        if let Err(why) = from_index(path, &mut collector) {
            output::complain(format_args!("{}: {why}", path.display()));
            outcome = Err(Failure::Input);
        }
    }
    if !others.is_empty() {
        let read = Inputs::new(&others)?.each_entry(&common.window, |entry| {
            collector.add(&entry, entry.as_ref().map_or(&Names::default(), |card| &card.names));
            Ok(())
        })?;
        collector.add_skipped(read.skipped_files as u64);
        outcome = outcome.and(read.outcome);
    }
    let limit = output::limit(arguments.limit, common.format == Format::Text);
    let report = collector.report(limit.unwrap_or(usize::MAX)).map_err(Failure::Usage)?;
    output::print(&report, common.format, text)?;
    outcome
}

/// Adds the cards of an index, compressed or not.
fn from_index(path: &Path, collector: &mut Collector) -> Result<(), String> {
    let read = || -> io::Result<Box<dyn Read>> {
        let mut file = File::open(path)?;
        let mut start = [0; 2];
        let is_packed = file.read_exact(&mut start).is_ok() && start == [0x1f, 0x8b];
        let file = BufReader::new(File::open(path)?);
        Ok(if is_packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
    };
    let failed = |error: io::Error| format!("cannot read the file: {error}");
    let mut file = read().map_err(failed)?;
    let (mut reader, mut chunk) = (Reader::default(), vec![0; CHUNK_BYTES]);
    loop {
        let bytes = file.read(&mut chunk).map_err(failed)?;
        if bytes == 0 {
            break;
        }
        for entry in reader.feed(&chunk[..bytes])? {
            if let Err(FailedFile { path, error, .. }) = &entry
                && error != NO_DEVICE
            {
                output::complain(format_args!("{path}: {error}"));
            }
            collector.add(&entry, reader.names());
        }
    }
    collector.add_skipped(reader.skipped_files());
    if reader.is_done() { Ok(()) } else { Err("the index ends early".to_owned()) }
}

fn text(out: &mut dyn Write, report: &SeriesReport) -> io::Result<()> {
    for run in &report.runs {
        run_text(out, run)?;
        writeln!(out)?;
    }
    if report.runs.is_empty() {
        writeln!(out, "No rank with an iteration: paths name none, such as iteration_100/rank3.")?;
    }
    for (files, one, many) in [
        (report.other_files, "file names", "files name"),
        (report.failed_files, "file could", "files could"),
    ] {
        let why = if one.ends_with("names") {
            "no rank or no iteration, or one that another file has"
        } else {
            "not be read"
        };
        match files {
            0 => {}
            1 => writeln!(out, "1 {one} {why}.")?,
            files => writeln!(out, "{} {many} {why}.", grouped(files as u64))?,
        }
    }
    Ok(())
}

fn run_text(out: &mut dyn Write, run: &RunSeries) -> io::Result<()> {
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
    table(out, run)?;
    output::write_omitted(out, run.omitted, "ranks")?;
    if !run.blind_spots.is_empty() {
        writeln!(out, "\nNot looked for:")?;
    }
    run.blind_spots.iter().try_for_each(|spot| writeln!(out, "  - {}", printable(spot)))
}

/// The peak of each rank by iteration, and its figures in the last one.
fn table(out: &mut dyn Write, run: &RunSeries) -> io::Result<()> {
    let first = run.iterations.len().saturating_sub(MAX_COLUMNS);
    let shown = &run.iterations[first..];
    let mut names = vec!["rank".to_owned()];
    names.extend(shown.iter().map(|iteration| format!("peak at {iteration}")));
    names.extend(["growth", "reserved", "- active", "largest free"].map(str::to_owned));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::new(&names, &vec![true; names.len()]);
    let has_devices = run.ranks.iter().any(|row| row.device != run.ranks[0].device);
    for row in &run.ranks {
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

/// What a rank's peak grew by from the first to the last iteration.
fn growth(row: &RankSeries) -> String {
    let growth: i64 = row.growth_bytes.iter().flatten().sum();
    match growth {
        0 => "0 B".to_owned(),
        1.. => format!("+{}", Bytes(growth.unsigned_abs())),
        _ => signed_bytes(growth),
    }
}
