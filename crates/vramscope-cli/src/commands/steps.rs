//! `vramscope steps`.

use crate::Failure;
use crate::arguments::{Format, Steps as Arguments};
use crate::output::{self, STRONG, Table, signed_bytes, styled};
use crate::printable::printable;
use crate::read;
use std::io::{self, Write};
use vramscope_report::phases::{PhaseRecord, SumRecord};
use vramscope_report::steps::{StepRow, StepTable, step_table};
use vramscope_report::{device_name, now};
use vramscope_units::{Bytes, grouped};

/// Phases in the order of a training step. Each has a column if a step has it.
const PHASES: [&str; 6] = ["evaluation", "generation", "forward", "backward", "optimizer", "other"];

/// Prints the steps with the peaks of their phases, and what stays after each.
///
/// # Errors
/// The file cannot be read, the device does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let format = arguments.input.common.format;
        let limit = output::limit(arguments.limit, format == Format::Text);
        output::print(&now(async |budget| step_table(target, limit, budget).await), format, text)
    })
}

fn text(out: &mut dyn Write, report: &StepTable<'_>) -> io::Result<()> {
    let steps = report.steps.len() + report.omitted;
    let device = device_name(report.device);
    let counted =
        format!("{} {}", grouped(steps as u64), report.step_words[usize::from(steps != 1)]);
    let steps = match report.steps_by {
        Some(by) => format!("{counted} by {}", by.replace('_', " ")),
        None => "no steps".to_owned(),
    };
    writeln!(out, "{}  {device}, {steps}", styled(STRONG, report.path))?;
    if report.sum.is_empty() {
        return writeln!(out, "Nothing in this window shows steps or phases.");
    }
    let growth = report.growth_text.iter().filter(|_| !report.steps.is_empty());
    let mut sentences = growth.chain(&report.text);
    sentences.try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
    if !report.steps.is_empty() {
        writeln!(out)?;
        write_steps(out, report)?;
    }
    writeln!(out)?;
    write_sum(out, &report.sum)
}

/// A row for each step: the peak of each phase, and what stays.
fn write_steps(out: &mut dyn Write, report: &StepTable<'_>) -> io::Result<()> {
    let of_steps = |phase: &str| {
        report.steps.iter().any(|row| row.step.phases.iter().any(|of| of.phase == phase))
    };
    let phases: Vec<&str> = PHASES.into_iter().filter(|phase| of_steps(phase)).collect();
    let mut names = vec![report.step_words[0], "events"];
    names.extend(&phases);
    names.extend(["peak at", "after it", "change", "peak set by"]);
    let mut right = vec![true; names.len()];
    right[names.len() - 1] = false;
    let mut table = Table::new(&names, &right);
    // The events, then `other`, where the terminal is narrow.
    let other = phases.iter().position(|&phase| phase == "other").map(|at| at + 2);
    table.optional([names.len() - 1, 1].into_iter().chain(other));
    for row in &report.steps {
        table.row(cells(row, &phases));
    }
    table.write(out)?;
    output::write_omitted(out, report.omitted, report.step_words[1])
}

fn cells(row: &StepRow, phases: &[&str]) -> Vec<String> {
    let step = &row.step;
    let cut = if step.whole { "" } else { " (cut)" };
    let begin = output::event(step.begin.into());
    let mut cells = vec![
        format!("{}{cut}", grouped(step.step.into())),
        format!("{begin} to {}", output::event(i64::from(step.end) - 1)),
    ];
    for phase in phases {
        let highest = step.phases.iter().filter(|of| of.phase == *phase);
        let highest = highest.map(|of| of.peak_bytes).max();
        cells.push(highest.map_or_else(String::new, |bytes| Bytes(bytes).to_string()));
    }
    let change = row.change.map(|change| {
        let sign = if change > 0 { "+" } else { "" };
        format!("{sign}{}", signed_bytes(change))
    });
    let is_highest = |phase: &&PhaseRecord| phase.peak_event == row.peak_event;
    let site = step.phases.iter().find(is_highest).and_then(|phase| phase.site.clone());
    cells.extend([
        output::event(row.peak_event),
        row.floor_bytes.map_or_else(String::new, |bytes| Bytes(bytes).to_string()),
        change.unwrap_or_default(),
        site.unwrap_or_default(),
    ]);
    cells
}

/// The highest peak of each phase as a sum of categories.
fn write_sum(out: &mut dyn Write, sum: &[SumRecord]) -> io::Result<()> {
    let head = [
        "highest peak",
        "step",
        "bytes",
        "parameter",
        "optimizer",
        "gradient",
        "activation",
        "temporary",
        "other",
    ];
    let mut right = [true; 9];
    right[0] = false;
    let mut table = Table::new(&head, &right);
    table.optional([1, 8, 7]);
    for row in sum {
        let parts = [
            row.peak_bytes,
            row.parameter,
            row.optimizer_state,
            row.gradient,
            row.activation,
            row.temporary,
            row.other,
        ];
        let step = row.step.map_or(String::new(), |step| step.to_string());
        let cells = [row.phase.to_owned(), step].into_iter();
        table.row(cells.chain(parts.iter().map(|&bytes| Bytes(bytes).to_string())).collect());
    }
    table.write(out)
}
