//! `vramscope state`.

use super::segments::write_free;
use crate::Failure;
use crate::arguments::State as Arguments;
use crate::output::{self, STRONG, Table, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::device_name;
use vramscope_report::state::{At, State, state};
use vramscope_units::{Bytes, grouped};

/// Rows in text when `--top` is absent.
const DEFAULT_TOP: usize = 20;

/// Prints live blocks and segments after an event.
///
/// # Errors
/// The file cannot be read, the device or event does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let slot = super::slot(target, &arguments.moment, At::End)?;
        let top = arguments.top.unwrap_or(DEFAULT_TOP);
        output::print(&state(target, slot), arguments.input.common.format, |out, state| {
            text(out, state, top)
        })
    })
}

fn text(out: &mut dyn Write, state: &State<'_>, top: usize) -> io::Result<()> {
    let place = output::after_event(state.event);
    writeln!(out, "{}  {}, {place}\n", styled(STRONG, state.path), device_name(state.device))?;
    for (band, bytes) in [
        ("requested_bytes", state.requested_bytes),
        ("active_bytes", state.active_bytes),
        ("allocated_bytes", state.allocated_bytes),
        ("reserved_bytes", state.reserved_bytes),
    ] {
        writeln!(
            out,
            "  {band:<16} {:>11}  {:>26}",
            Bytes(bytes).to_string(),
            Bytes(bytes).exact()
        )?;
    }
    writeln!(out)?;
    super::write_categories(out, &state.categories)?;
    writeln!(out)?;
    let mut blocks: Vec<_> = state.blocks.iter().collect();
    blocks.sort_by_key(|b| std::cmp::Reverse(b.bytes));
    let head = ["address", "bytes", "block", "category", "allocated at", "call site"];
    let mut table = Table::new(&head, &[false, true, true, false, true, false]);
    for block in blocks.iter().take(top) {
        table.row(vec![
            block.address.clone(),
            Bytes(block.bytes).to_string(),
            Bytes(block.block_bytes).to_string(),
            block.category.name().to_owned(),
            output::event(block.alloc_event.map_or(-1, i64::from)),
            output::site_label(&block.site, block.of_free),
        ]);
    }
    table.write(out)?;
    if blocks.len() > top {
        writeln!(
            out,
            "  and {} more blocks (--top N or --format json shows more)",
            grouped((blocks.len() - top) as u64)
        )?;
    }
    writeln!(out)?;
    write_free(out, &state.free)
}
