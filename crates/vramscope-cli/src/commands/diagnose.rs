//! `vramscope diagnose`.

use super::cards::{each_of_index, is_index, refuse_reading};
use super::findings::{self, Devices, FailedFile};
use crate::Failure;
use crate::arguments::{Diagnose as Arguments, DiffFormat, Format};
use crate::mcp::call;
use crate::output;
use crate::paths::{Links, expand};
use crate::sources::Sources;
use crate::terminal;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use vramscope_report::check::{Check, Expression, Figures};
use vramscope_report::diagnose::{
    Diagnosed, Diagnosis, Listing, MAX_FINDINGS, at_peak, diagnose, with_levers,
};
use vramscope_report::diagnostic::{Answer, markdown, text};
use vramscope_report::peak::BandKind;
use vramscope_report::side::Side;
use vramscope_report::{Target, now};

/// Findings of `--all` in text and Markdown when `--limit` is absent.
const DEFAULT_LIMIT: usize = 20;

/// A diagnosis, with what concerns this call.
#[derive(Serialize, JsonSchema)]
pub struct Report {
    #[serde(flatten)]
    diagnosis: Diagnosis,
    /// The files that could not be read, and why.
    errors: Vec<FailedFile>,
    /// The results of `--fail-on`; absent without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Check>,
}

impl Report {
    /// A diagnosis, and the files that could not be read.
    pub fn new(diagnosis: Diagnosis, errors: Vec<FailedFile>) -> Self {
        Self { diagnosis, errors, checks: Vec::new() }
    }
}

/// Prints what is wrong with files, what to change, and what could not be looked for.
///
/// # Errors
/// An expression is invalid, a folder cannot be listed, an input cannot be read, the output cannot
/// be written, or an expression holds.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let expressions = expressions(&arguments.fail_on)?;
    let sources = Sources::new(&arguments.source)?;
    let (indexes, others): (Vec<PathBuf>, Vec<PathBuf>) =
        arguments.paths.iter().cloned().partition(|path| is_index(path));
    // Of many ranks the search for levers would take longer than all else.
    let recordings = expand(&others, Links::Everywhere).into_iter();
    let is_table = |path: &Path| path.extension().is_some_and(|of| of == "json");
    let has_levers = recordings.filter(|of| of.is_named || !is_table(&of.path)).count() == 1;
    let has_figures = !expressions.is_empty();
    let mut devices = if indexes.is_empty() || !others.is_empty() {
        findings::each_device(&others, &arguments.window, |target: Target<'_>| {
            let diagnosed = if has_levers { with_levers(target) } else { at_peak(target) };
            let side =
                |target| now(async |budget| Side::new(target, BandKind::Requested, budget).await);
            (diagnosed, has_figures.then(|| Figures::Side(Box::new(side(target)))))
        })?
    } else {
        Devices::none()
    };
    for path in &indexes {
        refuse_reading(path, &arguments.window)?;
        add_index(path, has_figures, &mut devices);
    }
    let (each, figures): (Vec<Diagnosed>, Vec<Option<Figures>>) = devices.each.into_iter().unzip();
    let is_json = arguments.format == DiffFormat::Json;
    if devices.files_read == 0 && (!is_json || call::is_call()) {
        // An answer needs a snapshot that was read. Scripts get the errors as JSON.
        return devices.outcome.and(Err(Failure::Input));
    }
    let listing = match arguments.format {
        _ if !arguments.all => Listing::Main(arguments.limit.unwrap_or(MAX_FINDINGS)),
        DiffFormat::Json => Listing::All(arguments.limit.unwrap_or(usize::MAX)),
        DiffFormat::Text | DiffFormat::Markdown => {
            Listing::All(arguments.limit.unwrap_or(DEFAULT_LIMIT))
        }
    };
    let figures: Vec<Figures> = figures.into_iter().flatten().collect();
    let checks = expressions.iter().map(|one| one.check_each(&figures));
    let checks: Vec<Check> = checks.collect::<Result<_, String>>().map_err(Failure::Usage)?;
    let mut diagnosis = diagnose(each, listing, devices.skipped_files);
    if !sources.is_empty() {
        add_sources(&mut diagnosis, &sources);
    }
    let failed = failed(&checks);
    match arguments.format {
        DiffFormat::Json => {
            let diagnosis = match arguments.max_bytes {
                _ if arguments.all => diagnosis,
                Some(bytes) => diagnosis.fitted_to(bytes),
                None => diagnosis.fitted(),
            };
            let report = Report { checks, ..Report::new(diagnosis, devices.errors) };
            output::print(&report, Format::Json, |out, report| {
                terminal::write(
                    out,
                    &text(&answer(&report.diagnosis, arguments), terminal::width()),
                )
            })?;
        }
        DiffFormat::Text => {
            terminal::print(&text(&answer(&diagnosis, arguments), terminal::width()))?;
        }
        DiffFormat::Markdown => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            out.write_all(markdown(&answer(&diagnosis, arguments)).as_bytes())?;
            out.flush()?;
        }
    }
    if devices.files_read == 0 {
        return devices.outcome.and(Err(Failure::Input));
    }
    devices.outcome?;
    if failed { Err(Failure::Check) } else { Ok(()) }
}

/// Adds the devices of an index.
fn add_index(path: &Path, has_figures: bool, devices: &mut Devices<(Diagnosed, Option<Figures>)>) {
    let read = each_of_index(path, |entry, names| match entry {
        Ok(card) => {
            let card = (**card).clone().naming_its_own(names);
            let figures = has_figures.then(|| Figures::Card(Box::new(card.clone())));
            devices.each.push((Diagnosed::of_card(card), figures));
            devices.files_read += 1;
        }
        Err(file) => match FailedFile::of_index(file) {
            Some(failed) => devices.errors.push(failed),
            None => devices.files_read += 1,
        },
    });
    match read {
        Ok(skipped) => {
            let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
            devices.skipped_files = devices.skipped_files.saturating_add(skipped);
        }
        Err(why) => {
            output::complain_of(&path.to_string_lossy(), &why);
            devices.outcome = Err(Failure::Input);
        }
    }
}

fn answer(diagnosis: &Diagnosis, arguments: &Arguments) -> Answer {
    let paths = arguments.paths.iter().map(|path| path.to_string_lossy().into_owned());
    Answer::new(diagnosis, &paths.collect::<Vec<_>>(), arguments.all)
}

/// The parsed expressions of `--fail-on`. Each is about one file.
fn expressions(texts: &[String]) -> Result<Vec<Expression>, Failure> {
    let parse = |text: &String| {
        let parsed = Expression::parse(text)?;
        if parsed.is_about_change() {
            return Err(format!(
                "--fail-on '{text}': a change needs two files, use vramscope diff"
            ));
        }
        Ok(parsed)
    };
    texts.iter().map(parse).collect::<Result<_, String>>().map_err(Failure::Usage)
}

/// Says on standard error which expressions hold, before anything else is printed.
fn failed(checks: &[Check]) -> bool {
    for check in checks {
        if check.matching_stacks == Some(0) {
            let what = &check.expression;
            output::complain(format_args!("{what}: no call stack contains this text"));
        }
        for text in &check.texts {
            output::complain(format_args!("failed: {} ({text})", check.expression));
        }
    }
    checks.iter().any(|check| check.holds)
}

/// Adds the lines of source that the user's folders have.
fn add_sources(diagnosis: &mut Diagnosis, sources: &Sources) {
    for place in diagnosis.findings.iter_mut().filter_map(|entry| entry.record.place.as_mut()) {
        if place.source.is_some() {
            continue;
        }
        match sources.read(&place.file) {
            Ok(Some(file)) => {
                let line = (place.line as usize).checked_sub(1);
                let text = line.and_then(|line| file.text.lines().nth(line));
                place.source = text.map(|text| text.trim().to_owned());
            }
            Ok(None) => {}
            Err(why) => {
                output::complain(format_args!("{}: {why}", Path::new(&place.file).display()));
            }
        }
    }
}
