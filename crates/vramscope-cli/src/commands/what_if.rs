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
use vramscope_report::now;
use vramscope_report::what_if::{
    Item, Options, OtherRecordings, PoolPartsRecord, RankLimit, ScenarioRecord, Sizes,
    WhatIfReport, WrongItem, basis_text, edit_text, fit_text, growth, limit_text, outcome_text,
    pair_text, peak_text, rest_text, sentence, what_if,
};
use vramscope_report::{LoadedFile, Recipe, Target};

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
    let options = options(arguments)?;
    match arguments.paths.as_slice() {
        [path] if !path.is_dir() => {
            let second =
                arguments.and.as_deref().map(|path| second(path, arguments)).transpose()?;
            let read =
                read::each_file(&arguments.paths, &arguments.common.window, |_, _, result| {
                    Some(answer(&result.ok()?, arguments, &options, &[], second.as_ref()))
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
        _ => of_run(arguments, &options),
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
fn of_run(arguments: &Arguments, options: &Options) -> Result<(), Failure> {
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
            Some(answer(&result.ok()?, arguments, options, &limits, None))
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

/// The items of the question that the arguments make.
fn options(arguments: &Arguments) -> Result<Options, Failure> {
    let list = |name, texts: &[String]| -> Vec<Item> {
        texts.iter().map(|text| Item::new(name, format!("[{text}]"))).collect()
    };
    let mut items = list("set", &arguments.set);
    items.extend(list("change", &arguments.change));
    for (name, value) in [
        ("device_memory", &arguments.device_memory),
        ("pytorch_memory", &arguments.pytorch_memory),
        ("fit", &arguments.fit),
        ("tokens", &arguments.tokens),
    ] {
        items.extend(value.as_ref().map(|value| Item::new(name, value)));
    }
    for scale in &arguments.scale {
        let (category, factor) = scale.split_once(':').ok_or_else(|| {
            Failure::Usage(format!(
                "--scale {scale}: expected CATEGORY:K, such as optimizer_state:0.25"
            ))
        })?;
        items.push(Item::new(category, factor));
    }
    items.extend(arguments.without.iter().map(|what| Item::new(what, "0")));
    let mut options = Options::of(&items).map_err(usage)?;
    if let Some(recipes) = &arguments.apply {
        options.recipes = Recipe::parse_list(recipes).map_err(|error| {
            let expected: Vec<&str> = match error.expected {
                "" => Recipe::forms().collect(),
                one => vec![one],
            };
            let expected = expected.join("; ");
            Failure::Usage(format!("--apply {}: expected {expected}", error.text))
        })?;
    }
    Ok(options)
}

fn usage(error: WrongItem) -> Failure {
    Failure::Usage(error.text)
}

/// The answer for a file; an error if the device does not exist, or a call site is wrong.
fn answer(
    file: &LoadedFile,
    arguments: &Arguments,
    options: &Options,
    limits: &[RankLimit],
    second: Option<&Sizes>,
) -> Result<WhatIfReport, Failure> {
    let target = select(file, arguments)?;
    let (growth, pair) = second.map(|second| growth(target, second)).unzip();
    let others =
        OtherRecordings { limit: RankLimit::for_rank(target, limits), growth: growth.flatten() };
    let mut report =
        now(async |budget| what_if(target, options, &others, budget).await).map_err(usage)?;
    report.pair = pair;
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
    if let Some(rest) = rest_text(report) {
        writeln!(out, "{rest}")?;
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
    let found = report.scenarios.iter().flat_map(|scenario| &scenario.found);
    for (at, found) in found.enumerate() {
        let before = if at == 0 { "\n" } else { "" };
        writeln!(out, "{before}{}", printable(found))?;
    }
    if let [scenario] = &report.scenarios[..] {
        for edit in &scenario.edits {
            writeln!(out)?;
            for line in edit_text(edit).lines() {
                writeln!(out, "{}", printable(line))?;
            }
        }
    }
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
    if scenario.declined.is_some() {
        let empty = String::new;
        let (change, outcome) = (scenario.change.clone(), outcome_text(scenario));
        return vec![change, empty(), empty(), empty(), empty(), outcome, empty()];
    }
    vec![
        scenario.change.clone(),
        peak_text(scenario),
        scenario.active_peak.to_string(),
        scenario.flushes.0.to_string(),
        scenario.least_device_memory.map_or(String::new(), |b| b.to_string()),
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
        row.extend(parts.map(|bytes| bytes.to_string()));
        table.row(row);
    }
    table
}
