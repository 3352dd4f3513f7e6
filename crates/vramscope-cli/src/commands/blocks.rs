//! `vramscope blocks`.

use super::segments::pool;
use crate::Failure;
use crate::arguments::{Blocks as Arguments, Format, SortBy};
use crate::output::{self, STRONG, Table, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::blocks::{BlockRecord, BlockSort, Blocks, Lifetime, blocks};
use vramscope_report::device_name;
use vramscope_report::shapes::BlockShape;
use vramscope_units::{EventSpan, grouped};

/// Prints the window's blocks, sorted.
///
/// # Errors
/// The file cannot be read, the device does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_model(&arguments.input, &arguments.model, |target| {
        let format = arguments.input.common.format;
        let sort = match arguments.sort {
            SortBy::Size => BlockSort::Size,
            SortBy::Lifetime => BlockSort::Lifetime,
            SortBy::ByteSeconds => BlockSort::ByteSeconds,
        };
        let limit = output::limit(arguments.limit, format == Format::Text);
        output::print(&blocks(target, sort, limit), format, text)
    })
}

fn text(out: &mut dyn Write, report: &Blocks<'_>) -> io::Result<()> {
    writeln!(
        out,
        "{}  {}, {} blocks\n",
        styled(STRONG, report.path),
        device_name(report.device),
        grouped(report.total as u64)
    )?;
    write_rows(out, &report.blocks, report.shapes.all())?;
    output::write_omitted(out, report.omitted, "blocks")
}

/// Writes a table of blocks.
pub(super) fn write_rows(
    out: &mut dyn Write,
    blocks: &[BlockRecord<'_>],
    shapes: &[BlockShape],
) -> io::Result<()> {
    let head = [
        "address",
        "bytes",
        "block",
        "category",
        "allocated at",
        "freed at",
        "lifetime",
        "pool",
        "call site",
    ];
    let right = &[false, true, true, false, true, true, true, false, false];
    let mut table = Table::new(&head, right);
    for b in blocks {
        let lifetime = match b.lifetime {
            Lifetime::Time(time) => time.to_string(),
            Lifetime::Events(EventSpan(events)) => format!("{} events", grouped(events)),
        };
        let reuse = if b.reuse == 0 { String::new() } else { format!("_{}", b.reuse) };
        table.row(vec![
            format!("{}{reuse}", b.address),
            b.bytes.to_string(),
            b.block_bytes.to_string(),
            b.category.name().to_owned(),
            if b.alloc_event.is_none() && !b.preexisting {
                "not recorded".to_owned()
            } else {
                output::event(b.alloc_event.map_or(-1, |event| event.0.into()))
            },
            b.free_completed_event.map_or_else(|| "-".to_owned(), |e| e.to_string()),
            lifetime,
            pool(b.pool, b.segment_type),
            label(shapes, b),
        ]);
    }
    table.write(out)
}

/// The call site, and the tensor or its shape.
fn label(shapes: &[BlockShape], block: &BlockRecord<'_>) -> String {
    let site = output::site_label(&block.site, block.of_free);
    let shape = block.shape.map(|shape| &shapes[shape as usize]);
    match (&block.tensor, shape) {
        (Some(tensor), _) => format!("{site}: {}", tensor.text()),
        (None, Some(shape)) => format!("{site}  {}", shape.words()),
        (None, None) => site,
    }
}
