//! `vramscope peak`.

use crate::Failure;
use crate::arguments::{By, Format, Peak as Arguments};
use crate::output::{self, STRONG, Table, percent, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::Category;
use vramscope_report::peak::{Peak, peak};
use vramscope_units::{Bytes, grouped};

const TOP: usize = 15;

/// Who holds memory at a band's peak.
///
/// # Errors
/// When the file cannot be read, has no such device, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::device(&arguments.one, |target| {
        let format = arguments.one.common.format;
        let band = super::band(arguments.band);
        let top = arguments.top.or((format == Format::Text).then_some(TOP));
        let by = arguments.by;
        // Which frames are left out of the text is decided there.
        let told = if format == Format::Text && by == By::Frame { None } else { top };
        output::print(&peak(target, band, told), format, |out, peak| {
            text(out, peak, by, top.unwrap_or(usize::MAX))
        })
    })
}

fn text(out: &mut dyn Write, peak: &Peak<'_>, by: By, top: usize) -> io::Result<()> {
    let what = if peak.band == "reserved_bytes" { "segments" } else { "blocks" };
    writeln!(out, "{}  device {}", styled(STRONG, peak.path), peak.device)?;
    writeln!(
        out,
        "{} peaks at {} ({}), {}, in {} {what}{}\n",
        peak.band,
        styled(STRONG, Bytes(peak.total)),
        Bytes(peak.total).exact(),
        output::event(peak.event),
        grouped(peak.blocks.into()),
        if peak.exactness == "exact" { "" } else { " (estimate)" },
    )?;
    match by {
        By::Stack => stacks(out, peak, what)?,
        By::Frame => frames(out, peak, top)?,
    }
    if !peak.categories.is_empty() {
        writeln!(out)?;
        super::categories(out, &peak.categories)?;
    }
    if peak.peaks.len() > 1 {
        writeln!(out)?;
        let mut table =
            Table::new(&["separate peaks", "bytes", "stands out by"], &[false, true, true]);
        for p in &peak.peaks {
            table.row(vec![
                output::event(p.event),
                Bytes(p.bytes).to_string(),
                Bytes(p.prominence).to_string(),
            ]);
        }
        table.write(out)?;
    }
    Ok(())
}

fn stacks(out: &mut dyn Write, peak: &Peak<'_>, what: &str) -> io::Result<()> {
    let mut table = Table::new(
        &["bytes", "share", what, "category", "call site"],
        &[true, true, true, false, false],
    );
    let named: Vec<_> =
        peak.stacks.iter().map(|s| (s.site.as_str(), s.frames.as_slice(), s.of_free)).collect();
    for (stack, site) in peak.stacks.iter().zip(output::sites(&named)) {
        table.row(vec![
            Bytes(stack.bytes).to_string(),
            percent(stack.bytes.into(), peak.total.into()),
            grouped(stack.blocks.into()),
            stack.category.map_or("", Category::name).to_owned(),
            site,
        ]);
    }
    table.write(out)?;
    if peak.stacks_left_out > 0 {
        let shown: u64 = peak.stacks.iter().map(|s| s.bytes).sum();
        writeln!(
            out,
            "  and {} more call stacks with {} (--top)",
            grouped(peak.stacks_left_out as u64),
            Bytes(peak.total - shown)
        )?;
    }
    Ok(())
}

/// The user's own frames: those of PyTorch and of the allocator are in every stack, and say
/// nothing.
fn frames(out: &mut dyn Write, peak: &Peak<'_>, top: usize) -> io::Result<()> {
    let mut table =
        Table::new(&["inclusive", "share", "exclusive", "frame"], &[true, true, true, false]);
    let own: Vec<_> = peak.frames.iter().filter(|f| !f.frame.is_framework()).collect();
    for f in own.iter().take(top) {
        table.row(vec![
            Bytes(f.inclusive).to_string(),
            percent(f.inclusive.into(), peak.total.into()),
            Bytes(f.exclusive).to_string(),
            f.frame.label(),
        ]);
    }
    table.write(out)?;
    if own.len() > top {
        writeln!(out, "  and {} more frames (--top)", grouped((own.len() - top) as u64))?;
    }
    Ok(())
}
