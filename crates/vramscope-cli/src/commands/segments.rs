//! `vramscope segments`.

use crate::Failure;
use crate::arguments::{Format, Segments as Arguments, When};
use crate::output::{self, STRONG, Table, percent, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::device_name;
use vramscope_report::now;
use vramscope_report::segments::{Curve, FreeRecord, PinRecord, Segments, curve, segments};
use vramscope_report::state::At;
use vramscope_units::{Bytes, grouped, sparkline};

/// Prints reserved memory after an event.
///
/// # Errors
/// The file cannot be read, the device or event does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let slot = super::slot(target, arguments.moment.at.unwrap_or(When::At(At::End)))?;
        let format = arguments.input.common.format;
        let limit = output::limit(arguments.limit, format == Format::Text);
        let mut report = now(async |budget| segments(target, slot, limit, budget).await);
        report.curve = arguments.curve.map(|parts| curve(target, parts));
        output::print(&report, format, text)
    })
}

fn text(out: &mut dyn Write, report: &Segments<'_>) -> io::Result<()> {
    writeln!(
        out,
        "{}  {}, {}\n",
        styled(STRONG, report.path),
        device_name(report.device),
        output::after_event(report.event)
    )?;
    let mut rows: Vec<_> = report.segments.iter().collect();
    rows.sort_by_key(|s| std::cmp::Reverse(s.total_size));
    let head = ["address", "size", "in use", "free", "largest", "pool", "stream", "created by"];
    let mut table = Table::new(&head, &[false, true, true, true, true, false, true, false]);
    table.whole([0]);
    table.optional([6, 4]);
    for s in rows {
        table.row(vec![
            s.address.to_string(),
            s.total_size.to_string(),
            percent(s.active.0.into(), s.total_size.0.into()),
            s.free.to_string(),
            s.largest_free.to_string(),
            pool(s.pool, s.segment_type),
            format!("{:#x}", s.stream),
            output::site_label(&s.site, false),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, report.omitted, "segments")?;
    writeln!(out)?;
    write_free(out, &report.free)?;
    write_pins(out, &report.pins)?;
    if let Some(curve) = &report.curve {
        write_curve(out, curve)?;
    }
    let f = &report.fragmentation;
    writeln!(
        out,
        "\n  fragmentation {:.2} (1 - largest free / free); most free memory: {} {}",
        f.ratio,
        Bytes(f.max_free),
        output::after_event(f.max_free_event)
    )?;
    let c = &report.churn;
    for (action, count, bytes) in [
        ("segment_alloc", c.segment_allocs, c.segment_alloc_bytes),
        ("segment_free", c.segment_frees, c.segment_free_bytes),
        ("segment_map", c.segment_maps, c.segment_map_bytes),
        ("segment_unmap", c.segment_unmaps, c.segment_unmap_bytes),
    ] {
        if count > 0 {
            writeln!(out, "  {:>8} {action}, {} in total", grouped(count.into()), Bytes(bytes))?;
        }
    }
    Ok(())
}

/// Writes free memory by pool, stream and size class. Blocks never move between these.
pub(super) fn write_free(out: &mut dyn Write, free: &[FreeRecord]) -> io::Result<()> {
    let head = ["pool", "stream", "reserved", "active", "free", "largest free"];
    let mut table = Table::new(&head, &[false, true, true, true, true, true]);
    for row in free {
        table.row(vec![
            pool(row.pool, row.segment_type),
            format!("{:#x}", row.stream),
            Bytes(row.reserved).to_string(),
            Bytes(row.active).to_string(),
            Bytes(row.free).to_string(),
            Bytes(row.largest_free).to_string(),
        ]);
    }
    table.write(out)
}

/// Writes the segments that few blocks keep from being returned; nothing without any.
fn write_pins(out: &mut dyn Write, pins: &[PinRecord]) -> io::Result<()> {
    if pins.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  Segments that few blocks keep from being returned to the driver")?;
    let head = ["kept", "in use", "blocks", "segment", "largest block", "allocated by"];
    let mut table = Table::new(&head, &[true, true, true, false, false, false]);
    table.whole([3, 4]);
    for pin in pins.iter().take(TEXT_PINS) {
        table.row(vec![
            Bytes(pin.kept).to_string(),
            Bytes(pin.active).to_string(),
            grouped(pin.blocks.into()),
            pin.segment.clone(),
            pin.largest_block.clone(),
            output::site_label(&pin.site, false),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, pins.len().saturating_sub(TEXT_PINS), "segments")
}

/// Writes the largest free piece over time: the most, and a line of bars up to it.
fn write_curve(out: &mut dyn Write, curve: &Curve) -> io::Result<()> {
    writeln!(out, "\n  Largest free piece over time")?;
    let head = ["pool", "stream", "most", "after", "over time, up to the most"];
    let mut table = Table::new(&head, &[false, true, true, true, false]);
    for row in &curve.largest_free {
        table.row(vec![
            pool(row.pool, row.segment_type),
            format!("{:#x}", row.stream),
            Bytes(row.most).to_string(),
            output::after_event(row.most_event),
            sparkline(&row.bytes),
        ]);
    }
    table.write(out)
}

/// Pinned segments that text shows.
const TEXT_PINS: usize = 5;

/// A pool's id: `(0, 0)` is the default pool. Empty if the file does not record pools.
pub(crate) fn pool_id(pool: Option<[u64; 2]>) -> String {
    pool.map_or_else(String::new, |[a, b]| format!("({a}, {b})"))
}

/// The segment type, followed by the pool unless it is the default pool or unknown.
pub(super) fn pool(pool: Option<[u64; 2]>, segment_type: &str) -> String {
    match pool {
        None | Some([0, 0]) => segment_type.to_owned(),
        Some([a, b]) => format!("{segment_type} of pool ({a}, {b})"),
    }
}
