//! `vramscope diff`.

pub(super) mod markdown;
mod text;

use crate::Failure;
use crate::arguments::{Common, Diff as Arguments, DiffFormat, Format};
use crate::output::{self, signed_bytes};
use crate::paths::{self, Found};
use crate::read;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use vramscope_report::Quantity;
use vramscope_report::check::Expression;
use vramscope_report::diff::{Change, Diff, NamedSide, Pair, SettingDiff};
use vramscope_report::peak::BandKind;
use vramscope_report::side::Side;

/// Compares two snapshots, or the ranks of two runs.
///
/// # Errors
/// An expression is invalid, an input cannot be read, the device does not exist, no files form a
/// pair, the output cannot be written, or an expression holds.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let expressions: Vec<Expression> = arguments
        .fail_on
        .iter()
        .map(|text| Expression::parse(text))
        .collect::<Result<_, _>>()
        .map_err(Failure::Usage)?;
    let band = super::band(arguments.band);
    let (a, b) = (files(&arguments.a)?, files(&arguments.b)?);
    let common = Common {
        format: Format::Text,
        rules: arguments.rules.clone(),
        events: None,
        max_memory: arguments.max_memory,
    };
    let read = read::each_found(&[a.as_slice(), &b].concat(), &common, |_, _, result| {
        let Ok(file) = result else { return Ok(None) };
        let entry = &file.entries[0];
        read::select_device(entry, arguments.device, &entry.path)
            .map(|target| Some(Side::new(target, band)))
    })?;
    let outcome = read.outcome;
    let sides = read.each.into_iter().map(|side| side.unwrap_or(Ok(None)));
    let mut sides = sides.collect::<Result<Vec<Option<Side>>, Failure>>()?;
    let in_b = sides.split_off(a.len());
    let top = output::limit(arguments.limit, arguments.format != DiffFormat::Json);
    let named = |given: &Path, files: &[Found], sides: Vec<Option<Side>>| {
        let name = |Found { path, .. }: &Found| {
            path.strip_prefix(given).unwrap_or(path).to_string_lossy().into_owned()
        };
        let named: Vec<NamedSide> =
            files.iter().zip(sides).filter_map(|(path, side)| Some((name(path), side?))).collect();
        (given.to_string_lossy().into_owned(), named)
    };
    let (in_a, in_b) = (named(&arguments.a, &a, sides), named(&arguments.b, &b, in_b));
    let mut diff = Diff::new(in_a, in_b, band, top, &expressions);
    diff.skipped_files = read.skipped_files;
    if diff.pairs.is_empty() {
        if outcome.is_ok() {
            output::complain(format_args!(
                "nothing to compare: no file in {} has the name or rank of a file in {}",
                arguments.a.display(),
                arguments.b.display()
            ));
        }
        return Err(Failure::Input);
    }
    match arguments.format {
        DiffFormat::Json => output::print(&diff, Format::Json, |_, _| Ok(()))?,
        DiffFormat::Text => output::print(&diff, Format::Text, |out, diff| text::write(out, diff))?,
        DiffFormat::Markdown => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            markdown::write(&mut out, &diff)?;
            out.flush()?;
        }
    }
    for check in diff.checks.iter().filter(|c| c.matching_stacks == Some(0)) {
        output::complain(format_args!("{}: no call stack contains this text", check.expression));
    }
    let mut failed = false;
    for check in diff.checks.iter().filter(|c| c.holds) {
        failed = true;
        for text in &check.texts {
            output::complain(format_args!("{} holds: {text}", check.expression));
        }
    }
    outcome?;
    if failed { Err(Failure::Check) } else { Ok(()) }
}

/// The snapshot files of one side.
fn files(given: &PathBuf) -> Result<Vec<Found>, Failure> {
    let files = paths::expand(std::slice::from_ref(given))?;
    if files.is_empty() {
        output::complain(format_args!("no snapshots found in {}", given.display()));
        return Err(Failure::Input);
    }
    Ok(files)
}

/// The rows of the table of settings, steps and inputs: name, before, after. Equal steps and inputs
/// have a row only beside others that differ.
fn recording_rows(pair: &Pair) -> Vec<[String; 3]> {
    // A key that is in one file only belongs to another release of PyTorch.
    let setting = |s: &SettingDiff| Some([s.key.clone(), s.a.clone()?, s.b.clone()?]);
    let mut rows: Vec<[String; 3]> = pair.settings.iter().filter_map(setting).collect();
    let number = vramscope_units::signed_grouped;
    let row = |name: &str, c: Change| [name.to_owned(), number(c.a), number(c.b)];
    let inputs = pair.tokens.map(|tokens| tokens.input_bytes_per_step);
    let counts = [("whole training steps", Some(pair.steps)), ("input bytes per step", inputs)];
    let counts = counts.into_iter().filter_map(|(name, change)| Some((name, change?)));
    if !rows.is_empty() || counts.clone().any(|(_, change)| change.change != 0) {
        rows.extend(counts.filter(|(_, c)| (c.a, c.b) != (0, 0)).map(|(name, c)| row(name, c)));
    }
    rows
}

/// The rows of a pair's main table: name, before, after, change, change in percent.
fn total_rows(pair: &Pair) -> Vec<[String; 5]> {
    let row = |name: &str, change: Change| {
        let by = Quantity::change_of_bytes(change.change).text;
        [name.to_owned(), signed_bytes(change.a), signed_bytes(change.b), by, change.percent()]
    };
    let mut rows = Vec::new();
    for kind in BandKind::ALL {
        let band = pair.band(kind);
        let estimate = output::estimate_note(band.exactness);
        rows.push(row(&format!("{} peak{estimate}", kind.name()), band.peak));
        if band.start.a != 0 || band.start.b != 0 {
            rows.push(row(&format!("{} start", kind.name()), band.start));
        }
        rows.push(row(&format!("{} end", kind.name()), band.end));
    }
    let count = |name: &str, change: Change| {
        let number = vramscope_units::signed_grouped;
        let by = vramscope_report::text::signed_count(change.change);
        [name.to_owned(), number(change.a), number(change.b), by, change.percent()]
    };
    rows.push(count("blocks at the peak", pair.blocks));
    rows.push(count("out-of-memory events", pair.ooms));
    rows.push(count("findings", pair.findings.count));
    rows
}
