//! `vramscope source`.

use crate::Failure;
use crate::arguments::{Format, Source as Arguments};
use crate::output::{self, FAINT, STRONG, Table, WARNING, styled};
use crate::printable::printable;
use crate::read;
use crate::sources::Sources;
use std::io::{self, Write};
use vramscope_report::annotate::{
    Annotated, LineRecord, LineState, Options, PlaceNumbers, annotate,
};
use vramscope_report::device_name;
use vramscope_units::{Bytes, grouped};

/// Files and functions in text when `--limit` is absent.
const DEFAULT_LIMIT: usize = 8;

/// Lines before and after a line with blocks.
const AROUND: u32 = 2;

/// Prints a source file with the memory of each line.
///
/// # Errors
/// The snapshot or a folder cannot be read, the device, event, file or function does not exist, or
/// the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let sources = Sources::new(&arguments.code)?;
    read::with_device(&arguments.input, |target| {
        let format = arguments.input.common.format;
        let is_text = format == Format::Text;
        let event = arguments.at.map(|at| super::slot(target, at)).transpose()?;
        let options = Options {
            event,
            file: arguments.file.as_deref(),
            function: arguments.function.as_deref(),
            // Text shows the lines around those with blocks.
            all: arguments.all || is_text,
            framework: arguments.framework,
            limit: arguments.limit.or(is_text.then_some(DEFAULT_LIMIT)),
        };
        let find = |recorded: &str| sources.read(recorded);
        let report = annotate(target, options, &find).map_err(Failure::Usage)?;
        output::print(&report, format, |out, report| text(out, report, arguments))
    })
}

fn text(out: &mut dyn Write, report: &Annotated<'_>, arguments: &Arguments) -> io::Result<()> {
    writeln!(out, "{}  {}", styled(STRONG, report.path), device_name(report.device))?;
    writeln!(
        out,
        "requested_bytes peaks at {} ({}), {}",
        styled(STRONG, Bytes(report.peak_bytes)),
        Bytes(report.peak_bytes).exact(),
        output::after_event(report.peak_event),
    )?;
    if let Some(file) = &report.file {
        let from = match (&file.found, file.basis) {
            (Some(found), _) => format!("  source: {found}"),
            (None, Some("snapshot")) => "  source: the snapshot".to_owned(),
            (None, Some(_)) => "  source: the file beside the snapshot".to_owned(),
            (None, None) => String::new(),
        };
        writeln!(out, "{}{}", styled(STRONG, &file.file), printable(&from))?;
    }
    for sentence in &report.text {
        writeln!(out, "{}", printable(sentence))?;
    }
    if report.file.is_none() {
        return writeln!(out, "No call stack has a line of source.");
    }
    writeln!(out)?;
    let columns = Columns { event: report.event, has_steps: report.steps_by.is_some() };
    lines(out, report, arguments.all, columns)?;
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    writeln!(out)?;
    let mut table = columns.table("function");
    for function in report.functions.iter().take(limit) {
        let name = format!("{:>5}  {}", function.line, function.function);
        table.row(columns.row(Some(&function.numbers), name));
    }
    table.write(out)?;
    output::write_omitted(out, report.functions.len().saturating_sub(limit), "functions")?;
    writeln!(out)?;
    let mut table = columns.table("file");
    for file in &report.files {
        table.row(columns.row(Some(&file.numbers), file.file.clone().into_owned()));
    }
    table.write(out)?;
    output::write_omitted(out, report.omitted, "files")
}

/// The columns of numbers.
#[derive(Clone, Copy)]
struct Columns {
    event: Option<i64>,
    has_steps: bool,
}

impl Columns {
    fn table(self, last: &str) -> Table {
        let mut names = vec!["own at peak".to_owned(), "with calls".to_owned()];
        names.extend(self.event.map(|event| format!("own at {}", output::event(event))));
        names.extend(self.has_steps.then(|| "own per step".to_owned()));
        names.extend(["blocks".to_owned(), last.to_owned()]);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut right_aligned = vec![true; names.len()];
        right_aligned[names.len() - 1] = false;
        Table::new(&names, &right_aligned)
    }

    /// A row of a place; without numbers, a line without blocks.
    fn row(self, numbers: Option<&PlaceNumbers>, last: String) -> Vec<String> {
        let mut row = match numbers {
            Some(numbers) => {
                let mut row = vec![bytes(numbers.own_bytes), bytes(numbers.bytes)];
                row.extend(numbers.own_event_bytes.map(bytes));
                let growth = numbers.own_bytes_per_step.unwrap_or(0);
                row.extend(self.has_steps.then(|| change(growth)));
                row.push(grouped(numbers.blocks));
                row
            }
            None => {
                vec![
                    String::new();
                    3 + usize::from(self.event.is_some()) + usize::from(self.has_steps)
                ]
            }
        };
        row.push(last);
        row
    }
}

/// Bytes, or nothing for none: most lines hold nothing at a moment.
fn bytes(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { Bytes(bytes).to_string() }
}

fn change(bytes: i64) -> String {
    match bytes {
        0 => String::new(),
        1.. => format!("+{}", Bytes(bytes.unsigned_abs())),
        _ => format!("-{}", Bytes(bytes.unsigned_abs())),
    }
}

/// The lines with blocks, and those around them or all of the file.
fn lines(
    out: &mut dyn Write,
    report: &Annotated<'_>,
    all: bool,
    columns: Columns,
) -> io::Result<()> {
    let with_blocks: Vec<u32> =
        report.lines.iter().filter(|line| line.numbers.is_some()).map(|line| line.line).collect();
    let is_near = |line: u32| {
        let next = with_blocks.partition_point(|&one| one < line.saturating_sub(AROUND));
        with_blocks.get(next).is_some_and(|&one| one <= line.saturating_add(AROUND))
    };
    // Without the whole text, every line that is known is shown.
    let has_gaps = report.file.as_ref().is_some_and(|file| file.lines.is_some());
    let mut table = columns.table(" line  source");
    let mut last = None;
    for line in report.lines.iter().filter(|line| all || is_near(line.line)) {
        if has_gaps && last.is_some_and(|last| u32::saturating_add(last, 1) < line.line) {
            table.row(columns.row(None, "  ...".to_owned()));
        }
        last = Some(line.line);
        table.row(columns.row(line.numbers.as_ref(), words(line)));
    }
    table.write(out)?;
    let marked = |state: LineState| report.lines.iter().any(|line| line.state == state);
    if marked(LineState::Differs) || marked(LineState::Missing) {
        writeln!(out, "  {} the file has another line here", styled(WARNING, "!"))?;
    }
    if marked(LineState::Unsure) {
        let why = "? the file may have been changed after the recording";
        writeln!(out, "  {}", styled(FAINT, why))?;
    }
    Ok(())
}

/// The number, mark and text of a line.
fn words(line: &LineRecord<'_>) -> String {
    let mark = match line.state {
        LineState::Differs | LineState::Missing => '!',
        LineState::Unsure if line.numbers.is_some() => '?',
        _ => ' ',
    };
    // Without source, the function tells more than the number.
    let text = line.text.clone().unwrap_or_else(|| format!("in {}", line.functions.join(", ")));
    format!("{:>5}{mark} {text}", line.line)
}
