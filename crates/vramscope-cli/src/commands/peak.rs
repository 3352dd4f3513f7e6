//! `vramscope peak`.

use crate::Failure;
use crate::arguments::{Format, Peak as Arguments, PeakRows};
use crate::output::{self, STRONG, Table, percent, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::Quantity;
use vramscope_report::device_name;
use vramscope_report::peak::{Peak, nth_peak, peak};
use vramscope_report::shapes::BlockShape;
use vramscope_units::{Bytes, grouped};

/// Prints the call stacks that hold memory at a band's peak.
///
/// # Errors
/// The file cannot be read, the device does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_model(&arguments.input, &arguments.model, |target| {
        let format = arguments.input.common.format;
        let band = super::band(arguments.band);
        let limit = output::limit(arguments.limit, format == Format::Text);
        let rows = arguments.by;
        // The text table of frames hides framework frames before it applies the limit.
        let text_limits = format == Format::Text && rows == PeakRows::Frame;
        let top = if text_limits { None } else { limit };
        let report = match arguments.number {
            1 => peak(target, band, top),
            number => nth_peak(target, band, number, top).ok_or_else(|| {
                Failure::Usage(format!("{} has no separate peak {number}", target.path))
            })?,
        };
        output::print(&report, format, |out, peak| {
            text(out, peak, rows, limit.unwrap_or(usize::MAX))
        })
    })
}

fn text(out: &mut dyn Write, peak: &Peak<'_>, rows: PeakRows, limit: usize) -> io::Result<()> {
    let unit = if peak.band == "reserved_bytes" { "segments" } else { "blocks" };
    writeln!(out, "{}  {}", styled(STRONG, peak.path), device_name(peak.device))?;
    writeln!(
        out,
        "{} peaks at {} ({}), {}{}, in {} {unit}{}\n",
        peak.band,
        styled(STRONG, Bytes(peak.total)),
        Bytes(peak.total).exact(),
        output::event(peak.event),
        place(peak),
        grouped(peak.blocks.into()),
        output::estimate_note(peak.exactness),
    )?;
    match rows {
        PeakRows::Stack => write_stacks(out, peak, unit)?,
        PeakRows::Frame => write_frames(out, peak, limit)?,
    }
    if !peak.categories.is_empty() {
        writeln!(out)?;
        super::write_categories(out, &peak.categories)?;
    }
    if peak.peaks.len() > 1 {
        writeln!(out)?;
        let mut table =
            Table::new(&["separate peaks", "bytes", "prominence"], &[false, true, true]);
        for p in &peak.peaks {
            table.row(vec![
                output::event(p.event),
                Bytes(p.bytes).to_string(),
                Bytes(p.prominence).to_string(),
            ]);
        }
        table.write(out)?;
    }
    if let Some(shown) = peak.peaks.iter().find(|of| of.event == peak.event) {
        writeln!(out, "\n{}", shown.text.join(" "))?;
    }
    write_around(out, peak)
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
    names.push("call site");
    let mut table = Table::new(&names, &[true, true, true, false, false, false][..names.len()]);
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

/// Writes the user's own frames. Frames of PyTorch and the allocator are in every stack, so they
/// are left out.
fn write_frames(out: &mut dyn Write, peak: &Peak<'_>, limit: usize) -> io::Result<()> {
    let mut table =
        Table::new(&["inclusive", "share", "exclusive", "frame"], &[true, true, true, false]);
    let own: Vec<_> = peak.frames.iter().filter(|f| !f.frame.is_framework()).collect();
    for f in own.iter().take(limit) {
        table.row(vec![
            Bytes(f.inclusive).to_string(),
            percent(f.inclusive.into(), peak.total.into()),
            Bytes(f.exclusive).to_string(),
            f.frame.label(),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, own.len().saturating_sub(limit), "frames")
}
