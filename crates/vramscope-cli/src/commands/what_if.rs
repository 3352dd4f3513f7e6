//! `vramscope what-if`.

use crate::Failure;
use crate::arguments::WhatIf as Arguments;
use crate::output::{self, STRONG, Table, styled};
use crate::printable::printable;
use crate::{paths, read};
use serde::Serialize;
use std::io::{self, Write};
use vramscope_report::diagnostic::cost_text;
use vramscope_report::now;
use vramscope_report::what_if::{
    Item, Options, PoolPartsRecord, RankLimit, ScenarioRecord, WhatIfReport, basis_text,
    batch_text, edit_text, limit_text, outcome_text, plan_text, range_text, rest_text, sentence,
    time_text, what_if,
};
use vramscope_report::{LoadedFile, PlanRecord, Recipe, Target};

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

/// Prints what other settings, another device or a changed program would reserve.
///
/// # Errors
/// A file cannot be read, the device does not exist, a setting is wrong, or the output cannot be
/// written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = options(arguments)?;
    match arguments.paths.as_slice() {
        [path] if !path.is_dir() => {
            let read =
                read::each_file(&arguments.paths, &arguments.common.window, |_, _, result| {
                    Some(answer(&result.ok()?, arguments, &options, &[]))
                })?;
            let (results, _, outcome) = read.into_results();
            for report in results.flatten() {
                output::print(&report?, arguments.common.format, text)?;
            }
            outcome
        }
        _ => of_run(arguments, &options),
    }
}

/// Answers for each of several files. They are read twice, because memory holds one per core: first
/// for the limits that they show.
fn of_run(arguments: &Arguments, options: &Options) -> Result<(), Failure> {
    let mut files = paths::to_read(&arguments.paths);
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
            Some(answer(&result.ok()?, arguments, options, &limits))
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
        ("plan", &arguments.plan),
        ("length", &arguments.length),
        ("cache_tokens", &arguments.cache_tokens),
    ] {
        items.extend(value.as_ref().map(|value| Item::new(name, value)));
    }
    let mut options = Options::of(&items).map_err(|error| Failure::Usage(error.text))?;
    if let Some(recipes) = &arguments.apply {
        options.recipes = Recipe::parse_list(recipes)
            .map_err(|error| Failure::Usage(format!("--apply: {error}")))?;
    }
    Ok(options)
}

/// The answer for a file; an error if the device does not exist.
fn answer(
    file: &LoadedFile,
    arguments: &Arguments,
    options: &Options,
    limits: &[RankLimit],
) -> Result<WhatIfReport, Failure> {
    let target = select(file, arguments)?;
    let limit = RankLimit::for_rank(target, limits);
    Ok(now(async |budget| what_if(target, options, limit, budget).await))
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
    if let ([scenario], None) = (&report.scenarios[..], &report.plan) {
        let needs = scenario.least_device_memory.map(|needs| format!("needs {needs}, "));
        let (needs, outcome) = (needs.unwrap_or_default(), outcome_text(scenario));
        let answer = format!("{}: {needs}{outcome}.", scenario.change);
        writeln!(out, "{}", styled(STRONG, answer))?;
    }
    if let Some(serving) = &report.serving {
        super::serving::write(out, serving)?;
        writeln!(out)?;
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
    if let Some(plan) = &report.plan {
        return plan_table(out, plan);
    }
    writeln!(out)?;
    let mut table = Table::new(
        &[
            "change",
            "needs",
            "outcome",
            "reserves",
            "range",
            "active peak",
            "cache emptied",
            "basis",
        ],
        &[false, true, false, true, true, true, true, false],
    );
    // The range, how often the cache is emptied, the active peak and the basis, where the terminal
    // is narrow.
    table.optional([4, 6, 5, 7]);
    if report.scenarios.iter().all(|scenario| scenario.declined.is_none()) {
        table.whole([2, 7]);
    }
    report.scenarios.iter().for_each(|scenario| table.row(row(scenario)));
    table.write(out)?;
    let found = report.scenarios.iter().flat_map(|scenario| scenario.found.clone());
    let times = report.scenarios.iter().filter_map(time_text);
    for (at, found) in found.chain(times).enumerate() {
        let before = if at == 0 { "\n" } else { "" };
        writeln!(out, "{before}{}", printable(&found))?;
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
    Ok(())
}

/// The changes of a plan, by what they cost.
fn plan_table(out: &mut dyn Write, plan: &PlanRecord) -> io::Result<()> {
    writeln!(out, "\n{}", printable(&plan_text(plan)))?;
    if plan.sets.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(
        &["costs", "change", "needs", "largest that fits with it"],
        &[false, false, true, false],
    );
    for set in &plan.sets {
        table.row(vec![
            cost_text(&set.lever),
            set.lever.text.clone(),
            set.lever.needs_bytes.to_string(),
            batch_text(set.largest_batch).unwrap_or_default(),
        ]);
    }
    table.write(out)?;
    writeln!(out, "\n`what-if --apply` predicts each: {}", recipes(plan))
}

/// The changes of a plan, as `--apply` takes them.
fn recipes(plan: &PlanRecord) -> String {
    let recipes = plan.sets.iter().map(|set| set.lever.recipe.as_str());
    recipes.filter(|recipe| !recipe.is_empty()).collect::<Vec<_>>().join(" | ")
}

fn row(scenario: &ScenarioRecord) -> Vec<String> {
    if scenario.declined.is_some() {
        let empty = String::new;
        let (change, outcome) = (scenario.change.clone(), outcome_text(scenario));
        return vec![change, empty(), outcome, empty(), empty(), empty(), empty(), empty()];
    }
    vec![
        scenario.change.clone(),
        scenario.least_device_memory.map_or(String::new(), |b| b.to_string()),
        outcome_text(scenario),
        scenario.reserved_peak.to_string(),
        range_text(scenario),
        scenario.active_peak.to_string(),
        scenario.flushes.0.to_string(),
        basis_text(scenario),
    ]
}

fn pools(pools: &[PoolPartsRecord]) -> Table {
    let mut table = Table::new(
        &["pool", "stream", "in use", "rounding", "cached", "fragmented", "small"],
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
