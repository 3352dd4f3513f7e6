//! `vramscope peak`.

mod holder;
mod ledger;
mod module;
mod shape;
mod tree;
mod uses;

use super::segments::pool;
use crate::Failure;
use crate::arguments::{Format, Peak as Arguments, PeakRows, When};
use crate::output::{self, STRONG, Table, percent, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::Quantity;
use vramscope_report::peak::{BandKind, Peak, nth_peak, peak, peak_at};
use vramscope_report::shapes::BlockShape;
use vramscope_report::state::At;
use vramscope_report::{Target, device_name};
use vramscope_units::{Bytes, grouped};

/// Prints what holds memory at a band's peak, or at another moment.
///
/// # Errors
/// The file cannot be read, the device or the moment does not exist, or the output cannot be
/// written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_model(&arguments.input, &arguments.model, |target| {
        if arguments.tree {
            return tree::run(target, arguments);
        }
        let rows = arguments.by.unwrap_or(PeakRows::Stack);
        let format = arguments.input.common.format;
        let is_list = matches!(rows, PeakRows::Stack | PeakRows::Site | PeakRows::Line);
        let few = (is_list && format == Format::Text).then_some(TEXT_ROWS);
        let limit = output::limit(arguments.limit.or(few), format == Format::Text);
        // The text table of lines hides frames of PyTorch before it applies the limit.
        let text_limits = format == Format::Text && rows == PeakRows::Line;
        let top = if text_limits { None } else { limit };
        match rows {
            PeakRows::Module => return module::run(target, arguments),
            PeakRows::Shape => return shape::run(target, arguments),
            PeakRows::Holder => return holder::run(target, arguments),
            PeakRows::Use => return uses::run(target, arguments),
            _ => {}
        }
        let mut report = report(target, arguments, top)?;
        if rows == PeakRows::Pool {
            report.ledger = vramscope_report::ledger::ledger(target, limit);
        }
        let text_rows = Rows {
            by: rows,
            limit: limit.unwrap_or(usize::MAX),
            all_frames: arguments.all_frames,
            at: arguments.at,
        };
        output::print(&report, format, |out, peak| text(out, peak, &text_rows))
    })
}

/// The peak, the Nth peak or another moment.
fn report<'a>(
    target: Target<'a>,
    arguments: &Arguments,
    top: Option<usize>,
) -> Result<Peak<'a>, Failure> {
    let band = super::band(arguments.band);
    let is_peak = |at: &When| *at == When::At(At::Peak) && band != BandKind::Requested;
    match (arguments.at.filter(|at| !is_peak(at)), arguments.number) {
        (Some(at), _) => Ok(peak_at(target, band, super::slot(target, at)?, top)),
        (None, 1) => Ok(peak(target, band, top)),
        (None, number) => nth_peak(target, band, number, top).ok_or_else(|| {
            Failure::Usage(format!("{} has no separate peak {number}", target.path))
        }),
    }
}

/// Rows of text beside what they add up to: together they fit a small terminal.
const TEXT_ROWS: usize = 8;

/// How text shows a peak.
struct Rows {
    by: PeakRows,
    limit: usize,
    all_frames: bool,
    at: Option<When>,
}

fn text(out: &mut dyn Write, peak: &Peak<'_>, rows: &Rows) -> io::Result<()> {
    let unit = if peak.band == "reserved_bytes" { "segments" } else { "blocks" };
    writeln!(out, "{}  {}", styled(STRONG, peak.path), device_name(peak.device))?;
    let is_peak = rows.at.is_none_or(|at| at == When::At(At::Peak));
    writeln!(
        out,
        "{} {} {} ({}), {}{}, in {} {unit}{}\n",
        peak.band,
        if is_peak { "peaks at" } else { "is" },
        styled(STRONG, Bytes(peak.total)),
        Bytes(peak.total).exact(),
        output::event(peak.event),
        place(peak),
        grouped(peak.blocks.into()),
        output::estimate_note(peak.exactness),
    )?;
    match rows.by {
        PeakRows::Line => write_lines(out, peak, rows)?,
        PeakRows::Site => write_sites(out, peak)?,
        PeakRows::Category => return super::write_categories(out, &peak.categories),
        PeakRows::Stream => return write_streams(out, peak),
        PeakRows::Pool => return write_pools(out, peak),
        PeakRows::Stack | PeakRows::Module | PeakRows::Shape | PeakRows::Holder | PeakRows::Use => {
            write_stacks(out, peak, unit)?;
        }
    }
    write_sums(out, peak)?;
    if !is_peak {
        return write_around(out, peak);
    }
    if peak.peaks.len() > 1 {
        let peaks = peak.peaks.iter().take(FEW);
        let peaks = peaks.map(|of| format!("{} at {}", Bytes(of.bytes), output::event(of.event)));
        write_list(out, "separate peaks", peaks.collect(), peak.peaks.len())?;
    }
    if let Some(shown) = peak.peaks.iter().find(|of| of.event == peak.event) {
        writeln!(out, "{}", shown.text.join(" "))?;
    }
    // Events around the moment are shown only if `--at` names one.
    rows.at.map_or(Ok(()), |_| write_around(out, peak))
}

/// The most sums in one line.
const FEW: usize = 5;

/// The bytes by category in one line.
fn write_sums(out: &mut dyn Write, peak: &Peak<'_>) -> io::Result<()> {
    if peak.categories.is_empty() {
        return Ok(());
    }
    let sums = peak.categories.iter().take(FEW).map(|share| {
        let part = percent(share.bytes.0.into(), peak.total.into());
        format!("{} {} ({part})", share.category.name(), share.bytes)
    });
    writeln!(out)?;
    write_list(out, "categories", sums.collect(), peak.categories.len())
}

/// `categories: activation 4.04 GiB, temporary 1.19 GiB, 3 more`, in lines of the terminal.
fn write_list(
    out: &mut dyn Write,
    label: &str,
    mut shown: Vec<String>,
    all: usize,
) -> io::Result<()> {
    if all > shown.len() {
        shown.push(format!("{} more", grouped((all - shown.len()) as u64)));
    }
    writeln!(out, "{label}: {}", shown.join(", "))
}

/// The live bytes by category and call site.
fn write_sites(out: &mut dyn Write, peak: &Peak<'_>) -> io::Result<()> {
    let mut table = Table::new(
        &["bytes", "share", "blocks", "category", "call site"],
        &[true, true, true, false, false],
    );
    for site in &peak.sites {
        table.row(vec![
            Bytes(site.bytes).to_string(),
            percent(site.bytes.into(), peak.total.into()),
            grouped(site.blocks.into()),
            site.category.name().to_owned(),
            site.site.clone(),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, peak.sites_omitted, "call sites")
}

fn write_streams(out: &mut dyn Write, peak: &Peak<'_>) -> io::Result<()> {
    let mut table = Table::new(&["bytes", "share", "blocks", "stream"], &[true, true, true, false]);
    for of in &peak.streams {
        let default = if of.stream == 0 { " (default)" } else { "" };
        table.row(vec![
            Bytes(of.bytes).to_string(),
            percent(of.bytes.into(), peak.total.into()),
            grouped(of.blocks.into()),
            format!("{:#x}{default}", of.stream),
        ]);
    }
    table.write(out)
}

fn write_pools(out: &mut dyn Write, peak: &Peak<'_>) -> io::Result<()> {
    let mut table = Table::new(&["bytes", "share", "blocks", "pool"], &[true, true, true, false]);
    for of in &peak.pools {
        table.row(vec![
            Bytes(of.bytes).to_string(),
            percent(of.bytes.into(), peak.total.into()),
            grouped(of.blocks.into()),
            pool(of.pool, of.segment_type),
        ]);
    }
    table.write(out)?;
    peak.ledger.as_ref().map_or(Ok(()), |ledger| ledger::write(out, ledger))
}

/// Allocations and frees around the peak.
fn write_around(out: &mut dyn Write, peak: &Peak<'_>) -> io::Result<()> {
    let at = peak.around.iter().rposition(|of| i64::from(of.event) <= peak.event);
    let first = at.map_or(0, |at| at.saturating_sub(NEAR));
    let shown = peak.around.iter().skip(first).take(2 * NEAR + 1);
    let head = &["around the peak", "change", "total", "category", "call site"];
    let mut table = Table::new(head, &[false, true, true, false, false]);
    for of in shown {
        let mark = if i64::from(of.event) == peak.event { " peak" } else { "" };
        table.row(vec![
            format!("{}{mark}", output::event(of.event.into())),
            Quantity::change_of_bytes(of.bytes).text,
            Bytes(of.requested_bytes).to_string(),
            of.category.name().to_owned(),
            of.site.clone(),
        ]);
    }
    if peak.around.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    table.write(out)
}

/// Digits of the id of a stack in text.
const SHORT_ID: usize = 8;

/// Rows of text before and after the peak.
const NEAR: usize = 3;

/// `, in backward of step 2`; empty if nothing shows phases.
fn place(peak: &Peak<'_>) -> String {
    let Some(phase) = peak.phase else { return String::new() };
    let phase = if phase == "other" { "other code" } else { phase };
    let layer = peak.place.layer_text();
    match peak.place.step_text() {
        Some(step) => format!(", in {phase} of {step}{layer}"),
        None => format!(", in {phase}{layer}"),
    }
}

fn write_stacks(out: &mut dyn Write, peak: &Peak<'_>, unit: &str) -> io::Result<()> {
    let has_shapes = peak.stacks.iter().any(|stack| stack.shape.is_some());
    let mut names = vec!["bytes", "share", unit, "category"];
    names.extend(has_shapes.then_some("shape"));
    names.extend(["call site", "id"]);
    let mut table =
        Table::new(&names, &[true, true, true, false, false, false, false][..names.len()]);
    // The shape, then the share.
    table.optional(if has_shapes { vec![4, 1] } else { vec![1] });
    table.whole([names.len() - 1]);
    let named: Vec<_> =
        peak.stacks.iter().map(|s| (s.site.as_str(), s.frames.as_slice(), s.of_free)).collect();
    for (stack, site) in peak.stacks.iter().zip(output::site_labels(&named)) {
        let mut row = vec![
            Bytes(stack.bytes).to_string(),
            percent(stack.bytes.into(), peak.total.into()),
            grouped(stack.blocks.into()),
            stack.category.unwrap_or_default().to_owned(),
        ];
        let shape = stack.shape.as_ref().map(BlockShape::words);
        row.extend(has_shapes.then(|| shape.unwrap_or_default()));
        row.push(match stack.source {
            Some(source) => format!("{site}: {source}"),
            None => site,
        });
        // `show` takes the begin of an id. A reason for the lack of a stack is a search itself.
        let id = stack.id.strip_prefix("stack:").map(|hash| &hash[..hash.len().min(SHORT_ID)]);
        row.push(id.map_or_else(String::new, |id| format!("stack:{id}")));
        table.row(row);
    }
    table.write(out)?;
    if peak.omitted > 0 {
        let shown: u64 = peak.stacks.iter().map(|s| s.bytes).sum();
        writeln!(
            out,
            "  and {} more call stacks with {} (--limit N shows more)",
            grouped(peak.omitted as u64),
            Bytes(peak.total - shown)
        )?;
    }
    Ok(())
}

/// Writes the lines of the user's own frames. Frames of PyTorch and the allocator are in every
/// stack, so they are left out.
fn write_lines(out: &mut dyn Write, peak: &Peak<'_>, rows: &Rows) -> io::Result<()> {
    let mut table = Table::new(&["with calls", "share", "own", "line"], &[true, true, true, false]);
    let shown: Vec<_> =
        peak.frames.iter().filter(|f| rows.all_frames || !f.frame.is_framework()).collect();
    for f in shown.iter().take(rows.limit) {
        table.row(vec![
            Bytes(f.inclusive).to_string(),
            percent(f.inclusive.into(), peak.total.into()),
            Bytes(f.exclusive).to_string(),
            f.frame.label(),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, shown.len().saturating_sub(rows.limit), "lines")
}
