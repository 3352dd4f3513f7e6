//! `vramscope what-if`.

use crate::Failure;
use crate::arguments::WhatIf as Arguments;
use crate::output::{self, STRONG, Table, styled};
use crate::printable::printable;
use crate::{
    paths::{self, Links},
    read,
};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use vramscope_report::what_if::{
    Options, PoolPartsRecord, RankLimit, ScenarioRecord, Sizes, WhatIfReport, basis_text, fit,
    fit_text, growth, limit_text, outcome_text, pair_text, peak_text, sentence, what_if,
};
use vramscope_report::{LoadedFile, Target};
use vramscope_units::Bytes;

/// `vramscope.what-if-run/1`.
#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct RunReport {
    /// The schema's name and version.
    schema: &'static str,
    /// The answer for each file.
    reports: Vec<WhatIfReport>,
    /// Files of searched folders that are no snapshots.
    skipped_files: usize,
}

/// Prints what other settings, another device or another batch would reserve.
///
/// # Errors
/// A file cannot be read, the device does not exist, a setting is wrong, or the output cannot be
/// written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let has_tokens = arguments.fit.is_some() || arguments.tokens.is_some();
    if arguments.and.is_some() && !has_tokens {
        return Err(Failure::Usage("--and needs --fit or --tokens".to_owned()));
    }
    match arguments.paths.as_slice() {
        [path] if !path.is_dir() => {
            let second =
                arguments.and.as_deref().map(|path| second(path, arguments)).transpose()?;
            let read =
                read::each_file(&arguments.paths, &arguments.common.window, |_, _, result| {
                    Some(answer(&result.ok()?, arguments, &[], second.as_ref()))
                })?;
            let (results, _, outcome) = read.into_results();
            for report in results.flatten() {
                output::print(&report?, arguments.common.format, text)?;
            }
            outcome
        }
        _ if arguments.and.is_some() => {
            Err(Failure::Usage("--and takes one FILE before it".to_owned()))
        }
        _ => of_run(arguments),
    }
}

/// The sizes in the second recording.
fn second(path: &Path, arguments: &Arguments) -> Result<Sizes, Failure> {
    let read = read::each_file(&[path.to_owned()], &arguments.common.window, |_, _, result| {
        Some(select(&result.ok()?, arguments).map(Sizes::of))
    })?;
    let (results, _, outcome) = read.into_results();
    outcome?;
    results.flatten().next().unwrap_or(Err(Failure::Input))
}

/// Answers for each of several files. They are read twice, because memory holds one per core: first
/// for the limits that they show.
fn of_run(arguments: &Arguments) -> Result<(), Failure> {
    let mut files = paths::expand(&arguments.paths, Links::Everywhere);
    let read = read::each_found(&files, &arguments.common.window, |_, _, result| {
        let file = result.ok()?;
        Some(select(&file, arguments).ok().and_then(RankLimit::of))
    })?;
    let mut is_read = read.each.iter().map(|limit| limit.as_ref().is_some_and(Option::is_some));
    files.retain(|_| is_read.next().unwrap_or(false));
    let limits: Vec<RankLimit> = read.each.into_iter().flatten().flatten().flatten().collect();
    let mut outcome = read.outcome;
    let mut reports = Vec::new();
    if !files.is_empty() {
        let again = read::each_found(&files, &arguments.common.window, |_, _, result| {
            Some(answer(&result.ok()?, arguments, &limits, None))
        })?;
        for result in again.each.into_iter().flatten().flatten() {
            match result {
                Ok(report) => reports.push(report),
                Err(failure) => outcome = outcome.and(Err(failure)),
            }
        }
    }
    if reports.is_empty() && outcome.is_err() {
        return outcome;
    }
    let report =
        RunReport { schema: "vramscope.what-if-run/1", reports, skipped_files: read.skipped_files };
    output::print(&report, arguments.common.format, run_text)?;
    outcome
}

fn select<'a>(file: &'a LoadedFile, arguments: &Arguments) -> Result<Target<'a>, Failure> {
    let entry = read::select_entry(file, arguments.choice.snapshot.as_deref())?;
    read::select_device(entry, arguments.choice.device, &entry.path)
}

/// The answer for a file; an error if the device does not exist, or a setting is wrong.
fn answer(
    file: &LoadedFile,
    arguments: &Arguments,
    limits: &[RankLimit],
    second: Option<&Sizes>,
) -> Result<WhatIfReport, Failure> {
    let target = select(file, arguments)?;
    let mut options = Options {
        set: arguments.set.clone(),
        change: arguments.change.clone(),
        device_memory: arguments.fit.or(arguments.device_memory),
        pytorch_memory: arguments.pytorch_memory,
        tokens: arguments.tokens,
        without: arguments.without.clone(),
        scale: arguments.scale.clone(),
        other_rank: RankLimit::for_rank(target, limits),
        growth: None,
    };
    let pair = second.map(|second| growth(target, second));
    let (growth, pair) = pair.unzip();
    options.growth = growth.flatten();
    let mut report = what_if(target, &options).map_err(Failure::Usage)?;
    report.pair = pair;
    if arguments.fit.is_some() {
        report.fit = fit(target, &options);
    }
    Ok(report)
}

fn run_text(out: &mut dyn Write, run: &RunReport) -> io::Result<()> {
    for (i, report) in run.reports.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        text(out, report)?;
    }
    Ok(())
}

fn text(out: &mut dyn Write, report: &WhatIfReport) -> io::Result<()> {
    let device = vramscope_report::device_name(report.device);
    writeln!(out, "{}  {device}", styled(STRONG, &report.path))?;
    if let Some(why) = &report.declined {
        return writeln!(out, "{}", printable(why));
    }
    writeln!(out, "The model reproduces this recording to the byte.")?;
    if let Some(limit) = report.calibration.as_ref().and_then(|c| limit_text(&c.capacity)) {
        writeln!(out, "{limit}")?;
    }
    if let Some(sentence) = sentence(report) {
        writeln!(out, "{sentence}")?;
    }
    if let Some(pair) = &report.pair {
        writeln!(out, "{}", pair_text(pair))?;
    }
    writeln!(out)?;
    let mut table = Table::new(
        &["change", "reserved peak", "active peak", "flushes", "needs", "outcome", "basis"],
        &[false, true, true, true, true, false, false],
    );
    report.scenarios.iter().for_each(|scenario| table.row(row(scenario)));
    table.write(out)?;
    if report.pools.len() > 1 {
        writeln!(out, "\nThe reserved peak by pool and stream")?;
        pools(&report.pools).write(out)?;
    }
    if let Some(fit) = &report.fit {
        writeln!(out, "\n{}", fit_text(fit))?;
    }
    Ok(())
}

fn row(scenario: &ScenarioRecord) -> Vec<String> {
    vec![
        scenario.change.clone(),
        peak_text(scenario),
        Bytes(scenario.active_peak).to_string(),
        scenario.flushes.to_string(),
        scenario.least_device_memory.map_or(String::new(), |b| Bytes(b).to_string()),
        outcome_text(scenario),
        basis_text(scenario),
    ]
}

fn pools(pools: &[PoolPartsRecord]) -> Table {
    let mut table = Table::new(
        &["pool", "stream", "in use", "rounding", "idle", "stuck", "small"],
        &[false, true, true, true, true, true, true],
    );
    for PoolPartsRecord { pool, stream, parts } in pools {
        let pool = pool.map_or("default".to_owned(), |[a, b]| format!("({a}, {b})"));
        let parts = [parts.in_use, parts.rounding, parts.idle, parts.stuck, parts.small];
        let mut row = vec![pool, format!("{stream:#x}")];
        row.extend(parts.map(|bytes| Bytes(bytes).to_string()));
        table.row(row);
    }
    table
}
