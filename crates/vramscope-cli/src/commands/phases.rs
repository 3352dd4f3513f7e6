//! `vramscope phases`.

use crate::Failure;
use crate::arguments::{Format, Phases as Arguments};
use crate::output::{self, STRONG, Table, signed_bytes, styled};
use crate::printable::printable;
use crate::read;
use std::io::{self, Write};
use vramscope_report::now;
use vramscope_report::phases::{PhaseRecord, Phases, SumRecord, phases};
use vramscope_units::{Bytes, EventIndex, grouped};

/// Steps in text when `--limit` is absent.
const DEFAULT_LIMIT: usize = 5;

/// Prints the peak of each phase of each step.
///
/// # Errors
/// The file cannot be read, the device does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let format = arguments.input.common.format;
        let limit = arguments.limit.or((format == Format::Text).then_some(DEFAULT_LIMIT));
        output::print(&now(async |budget| phases(target, limit, budget).await), format, text)
    })
}

fn text(out: &mut dyn Write, report: &Phases<'_>) -> io::Result<()> {
    let steps = report.steps.len() + report.omitted;
    write!(
        out,
        "{}  {}",
        styled(STRONG, report.path),
        vramscope_report::device_name(report.device)
    )?;
    match report.steps_by {
        Some(by) => writeln!(out, ", {} by {by}", counted(steps, report.step_word))?,
        None => writeln!(out, ", no steps")?,
    }
    if report.sum.is_empty() {
        return writeln!(out, "Nothing in this window shows steps or phases.");
    }
    writeln!(out)?;
    write_steps(out, report)?;
    writeln!(out)?;
    write_sum(out, &report.sum)?;
    writeln!(out)?;
    report.text.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))
}

/// `1 step`, `12 steps`. `word` is the step's name.
fn counted(steps: usize, word: &str) -> String {
    format!("{} {word}{}", grouped(steps as u64), if steps == 1 { "" } else { "s" })
}

fn write_steps(out: &mut dyn Write, report: &Phases<'_>) -> io::Result<()> {
    let mut table = Table::new(
        &[report.step_word, "phase", "first", "last", "peak", "at", "reserved", "peak set by"],
        &[true, false, true, true, true, true, true, false],
    );
    // The phases before the first step come first, those after the last step come last.
    let first = report.steps.first().map_or(u32::MAX, |step| step.begin);
    let (before, after): (Vec<&PhaseRecord>, Vec<&PhaseRecord>) =
        report.outside.iter().partition(|phase| phase.begin < first);
    for phase in before {
        table.row(row(String::new(), phase));
    }
    for step in &report.steps {
        let name = if step.whole { step.step.to_string() } else { format!("{} (cut)", step.step) };
        let names = std::iter::once(name).chain(std::iter::repeat(String::new()));
        for (name, phase) in names.zip(&step.phases) {
            table.row(row(name, phase));
        }
    }
    for phase in after.into_iter().filter(|_| report.omitted == 0) {
        table.row(row(String::new(), phase));
    }
    table.write(out)?;
    if report.omitted > 0 {
        writeln!(
            out,
            "  {} omitted (--limit N shows more)",
            counted(report.omitted, report.step_word)
        )?;
    }
    Ok(())
}

fn row(step: String, phase: &PhaseRecord) -> Vec<String> {
    let sign = if phase.reserved_growth > 0 { "+" } else { "" };
    vec![
        step,
        phase.phase.to_owned(),
        EventIndex(phase.begin).to_string(),
        EventIndex(phase.end - 1).to_string(),
        Bytes(phase.peak_bytes).to_string(),
        output::event(phase.peak_event),
        format!("{sign}{}", signed_bytes(phase.reserved_growth)),
        phase.site.clone().unwrap_or_default(),
    ]
}

fn write_sum(out: &mut dyn Write, sum: &[SumRecord]) -> io::Result<()> {
    let mut table = Table::new(
        &[
            "highest peak",
            "step",
            "bytes",
            "parameter",
            "optimizer",
            "gradient",
            "activation",
            "temporary",
            "other",
        ],
        &[false, true, true, true, true, true, true, true, true],
    );
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
