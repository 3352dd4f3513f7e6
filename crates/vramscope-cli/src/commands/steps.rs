//! `vramscope steps`.

use crate::Failure;
use crate::arguments::{Format, Phases as Arguments};
use crate::output::{self, STRONG, Table, signed_bytes, styled};
use crate::printable::printable;
use crate::read;
use std::io::{self, Write};
use vramscope_report::now;
use vramscope_report::steps::{FloorRecord, StepsReport, steps};
use vramscope_units::{Bytes, EventIndex};

/// Steps in text when `--limit` is absent.
const DEFAULT_LIMIT: usize = 20;

/// Prints what stays after each step.
///
/// # Errors
/// The file cannot be read, the device does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let format = arguments.input.common.format;
        let limit = arguments.limit.or((format == Format::Text).then_some(DEFAULT_LIMIT));
        output::print(&now(async |budget| steps(target, limit, budget).await), format, text)
    })
}

fn text(out: &mut dyn Write, report: &StepsReport<'_>) -> io::Result<()> {
    let device = vramscope_report::device_name(report.device);
    writeln!(out, "{}  {device}", styled(STRONG, report.path))?;
    report.text.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
    if report.steps.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(
        &[report.step_word, "first", "last", "peak", "at", "after it", "change"],
        &[true, true, true, true, true, true, true],
    );
    for step in &report.steps {
        table.row(row(step));
    }
    table.write(out)?;
    output::write_omitted(out, report.omitted, &format!("earlier {}s", report.step_word))
}

fn row(step: &FloorRecord) -> Vec<String> {
    let event = |event: i64| {
        u32::try_from(event).map_or_else(|_| String::new(), |event| EventIndex(event).to_string())
    };
    let change = step.change.map(|change| {
        let sign = if change > 0 { "+" } else { "" };
        format!("{sign}{}", signed_bytes(change))
    });
    vec![
        step.step.to_string(),
        event(step.begin),
        event(step.end - 1),
        Bytes(step.peak_bytes).to_string(),
        event(step.peak_event),
        Bytes(step.floor_bytes).to_string(),
        change.unwrap_or_default(),
    ]
}
