//! `vramscope peak --by module`.

use crate::Failure;
use crate::arguments::{Format, Peak as Arguments};
use crate::commands;
use crate::output::{self, STRONG, Table, percent, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::modules::{ModuleRecord, ModulesReport, modules};
use vramscope_report::{Target, device_name};
use vramscope_units::{Bytes, grouped};

/// Modules below one, in text, when `--limit` is absent.
const DEFAULT_LIMIT: usize = 6;

/// The most columns. Numbers are right-aligned, the last three columns are words.
const RIGHT_ALIGNED: [bool; 10] = [true, true, true, true, true, true, true, false, false, false];

/// Prints the memory of each module at the peak.
///
/// # Errors
/// The moment does not exist, or the output cannot be written.
pub(super) fn run(target: Target<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let format = arguments.input.common.format;
    let event = arguments.at.map(|at| commands::slot(target, at)).transpose()?;
    let (limit, depth) = (arguments.limit, arguments.depth);
    // Text counts what it leaves out.
    let report = modules(target, event, limit.filter(|_| format == Format::Json));
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    output::print(&report, format, |out, report| text(out, report, limit, depth))
}

fn text(
    out: &mut dyn Write,
    report: &ModulesReport<'_>,
    limit: usize,
    depth: usize,
) -> io::Result<()> {
    writeln!(out, "{}  {}", styled(STRONG, report.path), device_name(report.device))?;
    writeln!(
        out,
        "requested_bytes peaks at {} ({}), {}, in {} blocks",
        styled(STRONG, Bytes(report.root.bytes)),
        Bytes(report.root.bytes).exact(),
        output::event(report.peak_event),
        grouped(report.root.blocks.into()),
    )?;
    report.text.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
    writeln!(out)?;
    let mut names = vec!["at peak".to_owned(), "share".to_owned(), "blocks".to_owned()];
    names.extend(report.event.map(|event| format!("at {}", output::event(event))));
    let phases = report.phases.iter().map(|moment| moment.phase.to_owned());
    names.extend(phases);
    names.extend(["mostly", "module", "called at"].map(str::to_owned));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = Table::new(&names, &RIGHT_ALIGNED[RIGHT_ALIGNED.len() - names.len()..]);
    // Where the terminal is narrow: the blocks, then the phases, then the share.
    let phases = (3 + usize::from(report.event.is_some())..names.len() - 3).rev();
    table.optional(std::iter::once(2).chain(phases).chain([1]));
    table.whole([names.len() - 3]);
    let mut rows = Rows { table, report, limit, depth, omitted: 0 };
    rows.add(&report.root, 0);
    rows.table.write(out)?;
    output::write_omitted(out, rows.omitted, "modules")
}

/// The rows of the table.
struct Rows<'a> {
    table: Table,
    report: &'a ModulesReport<'a>,
    limit: usize,
    depth: usize,
    omitted: usize,
}

impl Rows<'_> {
    fn add(&mut self, record: &ModuleRecord, level: usize) {
        let root = &self.report.root;
        let mut row = vec![
            Bytes(record.bytes).to_string(),
            percent(record.bytes.into(), root.bytes.into()),
            grouped(record.blocks.into()),
        ];
        row.extend(record.event_bytes.map(|bytes| Bytes(bytes).to_string()));
        let of_phases = [record.forward_bytes, record.backward_bytes, record.optimizer_bytes];
        row.extend(of_phases.into_iter().flatten().map(|bytes| Bytes(bytes).to_string()));
        let largest = record.categories.largest();
        row.push(largest.map_or("", |category| category.name()).to_owned());
        row.push(format!("{}{}", "  ".repeat(level), label(record)));
        row.push(match (&record.called_at, &record.built_at) {
            (Some(called), _) => called.clone(),
            (None, Some(built)) => format!("built at {built}"),
            (None, None) => String::new(),
        });
        self.table.row(row);
        if level == self.depth {
            self.omitted += record.children.len();
            return;
        }
        // Layers are alike: the largest one shows what is in each.
        let is_layered = record.layers.is_some() && self.limit == DEFAULT_LIMIT;
        let limit = if is_layered { 1 } else { self.limit };
        let shown = record.children.len().min(limit);
        self.omitted += record.children.len() - shown;
        record.children[..shown].iter().for_each(|child| self.add(child, level + 1));
    }
}

/// The name of a module, and its layers.
fn label(record: &ModuleRecord) -> String {
    let layers = record.layers.map(|layers| format!(" x{}", grouped(layers.into())));
    format!("{}{}", record.name, layers.unwrap_or_default())
}
