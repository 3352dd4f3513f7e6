//! `vramscope diff`.

mod markdown;
mod text;

use super::state;
use crate::Failure;
use crate::arguments::{
    Common, DeviceChoice, DeviceInput, Diff as Arguments, DiffFormat, Format, Window,
};
use crate::output;
use crate::paths::{self, Found};
use crate::read;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use vramscope_report::check::Expression;
use vramscope_report::diff::{
    Diff, NamedSide, ProgramChanges, SideProgram, found_changes, program_changes,
};
use vramscope_report::now;
use vramscope_report::side::Side;

/// Compares two snapshots, or the ranks of two runs.
///
/// # Errors
/// An expression is invalid, an input cannot be read, the device does not exist, no files form a
/// pair, the output cannot be written, or an expression holds.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(path_b) = &arguments.b else { return moments(arguments) };
    let expressions: Vec<Expression> = arguments
        .fail_on
        .iter()
        .map(|text| Expression::parse(text))
        .collect::<Result<_, _>>()
        .map_err(Failure::Usage)?;
    let band = super::band(arguments.band);
    let files = |path: &PathBuf| paths::to_read(std::slice::from_ref(path));
    let (a, b) = (files(&arguments.a), files(path_b));
    let window = Window::whole(&arguments.reading);
    // Programs are compared for two files, not for all ranks of two runs.
    let is_pair = a.len() == 1 && b.len() == 1;
    let read = read::each_found(&[a.as_slice(), &b].concat(), &window, |_, _, result| {
        let Ok(file) = result else { return Ok(None) };
        let entry = &file.entries[0];
        read::select_device(entry, arguments.device, &entry.path).map(|target| {
            Some(now(async |budget| {
                let side = Side::new(target, band, budget).await;
                let program = if is_pair { SideProgram::of(target, budget).await } else { None };
                (side, program)
            }))
        })
    })?;
    let outcome = read.outcome;
    let sides = read.each.into_iter().map(|side| side.unwrap_or(Ok(None)));
    let sides = sides.collect::<Result<Vec<Option<(Side, Option<SideProgram>)>>, Failure>>()?;
    let (mut sides, programs): (Vec<Option<Side>>, Vec<Option<SideProgram>>) =
        sides.into_iter().map(Option::unzip).map(|(side, of)| (side, of.flatten())).unzip();
    let changes = match (&programs[..], &sides[..]) {
        ([Some(before), Some(after)], [_, Some(side)]) => {
            changes(&a, [before, after], side, arguments, &window)?
        }
        _ => None,
    };
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
    let (in_a, in_b) = (named(&arguments.a, &a, sides), named(path_b, &b, in_b));
    let sides = [(&arguments.a, &in_a.1), (path_b, &in_b.1)];
    let without = sides.iter().find(|(_, named)| named.is_empty()).map(|(path, _)| *path);
    let mut diff = Diff::new(in_a, in_b, band, top, &expressions);
    diff.skipped_files = read.skipped_files;
    if let [pair] = &mut diff.pairs[..] {
        pair.changes = changes;
    }
    if diff.pairs.is_empty() {
        match without {
            _ if outcome.is_err() => {}
            Some(path) => output::complain_of(
                &path.to_string_lossy(),
                &format!("no snapshots found. {}", paths::SEARCHED),
            ),
            None => output::complain(format_args!(
                "nothing to compare: no file in {} has the name or rank of a file in {}",
                arguments.a.display(),
                path_b.display()
            )),
        }
        return Err(Failure::Input);
    }
    match arguments.format {
        DiffFormat::Json | DiffFormat::Text => {
            let format =
                if arguments.format == DiffFormat::Json { Format::Json } else { Format::Text };
            output::print(&diff, format, |out, diff| text::write(out, diff))?;
        }
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

/// Compares two moments of one file.
fn moments(arguments: &Arguments) -> Result<(), Failure> {
    let format = match arguments.format {
        DiffFormat::Text => Format::Text,
        DiffFormat::Json => Format::Json,
        DiffFormat::Markdown => {
            let message = "--format markdown compares files, not two moments of one";
            return Err(Failure::Usage(message.to_owned()));
        }
    };
    let input = DeviceInput {
        path: arguments.a.clone(),
        choice: DeviceChoice { device: arguments.device, snapshot: None },
        common: Common { format, window: Window::whole(&arguments.reading) },
    };
    state::run_changes(&input, [arguments.from, arguments.to], arguments.limit)
}

/// Names the changes of the program, and predicts B from A. A is read again, because each file is
/// dropped once its side is compared.
fn changes(
    first: &[Found],
    [before, after]: [&SideProgram; 2],
    side: &Side,
    arguments: &Arguments,
    window: &Window,
) -> Result<Option<ProgramChanges>, Failure> {
    let Some(found) = found_changes(before, after) else { return Ok(None) };
    let read = read::each_found(first, window, |_, _, result| {
        let entry = &result.ok()?.entries[0];
        let target = read::select_device(entry, arguments.device, &entry.path).ok()?;
        Some(now(async |budget| {
            program_changes(target, &found, [before, after], side, budget).await
        }))
    })?;
    Ok(read.each.into_iter().flatten().flatten().next())
}
