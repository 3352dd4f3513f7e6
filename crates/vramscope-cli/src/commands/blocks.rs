//! `vramscope blocks`.

use super::segments::pool;
use crate::Failure;
use crate::arguments::{Blocks as Arguments, Format, SortBy};
use crate::output::{self, STRONG, Table, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::blocks::{BlockRecord, BlockSort, Blocks, Lifetime, blocks};
use vramscope_report::shapes::BlockShape;
use vramscope_report::{BlockReference, Entry, device_name};
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
    write_rows(out, report.device, &report.blocks, report.shapes.all())?;
    output::write_omitted(out, report.omitted, "blocks")
}

/// Writes a table of blocks.
pub(super) fn write_rows(
    out: &mut dyn Write,
    device: u32,
    blocks: &[BlockRecord<'_>],
    shapes: &[BlockShape],
) -> io::Result<()> {
    let head =
        ["id", "bytes", "block", "category", "freed at", "lifetime", "pool", "call site", "shape"];
    let right = &[false, true, true, false, true, true, false, false, false];
    let mut table = Table::new(&head, right);
    table.whole([0, 3]);
    // The pool, the block, the lifetime and the shape.
    table.optional([6, 2, 5, 8]);
    for b in blocks {
        let lifetime = match b.lifetime {
            Lifetime::Time(time) => time.to_string(),
            Lifetime::Events(EventSpan(events)) => format!("{} events", grouped(events)),
        };
        table.row(vec![
            id(device, b),
            b.bytes.to_string(),
            b.block_bytes.to_string(),
            b.category.name().to_owned(),
            b.free_completed_event.map_or_else(|| "-".to_owned(), |e| e.to_string()),
            lifetime,
            pool(b.pool, b.segment_type),
            output::site_label(&b.site, b.of_free),
            shape(shapes, b),
        ]);
    }
    table.write(out)
}

/// The id of a block, as `show` takes it: `0:0x7f3a5c000000@12`.
fn id(device: u32, block: &BlockRecord<'_>) -> String {
    let entry = match block.alloc_event {
        Some(event) => Entry::Alloc(event),
        None if block.preexisting => Entry::Before,
        // The events before it are lost. A search for its address finds it, too.
        None => return block.address.plain(),
    };
    BlockReference { device, address: block.address, entry }.to_string()
}

/// The tensor or its shape.
fn shape(shapes: &[BlockShape], block: &BlockRecord<'_>) -> String {
    let shape = block.shape.map(|shape| &shapes[shape as usize]);
    match (&block.tensor, shape) {
        (Some(tensor), _) => tensor.text(),
        (None, Some(shape)) => shape.words(),
        (None, None) => String::new(),
    }
}
