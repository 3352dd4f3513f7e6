//! `vramscope state`.

use super::segments::write_free;
use crate::Failure;
use crate::arguments::{DeviceInput, Format, State as Arguments, When};
use crate::output::{self, STRONG, Table, percent, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::changes::{BlockShares, ChangeSums, StateChanges, Totals, state_changes};
use vramscope_report::device_name;
use vramscope_report::state::{At, State, state};
use vramscope_report::{Quantity, Target};
use vramscope_units::{Bytes, grouped};

/// Prints live blocks and segments after an event, or what changed between two events.
///
/// # Errors
/// The file cannot be read, the device or event does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let format = arguments.input.common.format;
        let limit = output::limit(arguments.limit, format == Format::Text);
        if arguments.from.is_none() && arguments.to.is_none() {
            let at = arguments.moment.at.unwrap_or(When::At(At::End));
            return output::print(&state(target, super::slot(target, at)?, limit), format, text);
        }
        changes(target, [arguments.from, arguments.to], limit, format)
    })
}

/// Prints what changed between two moments of a file, for `diff`.
///
/// # Errors
/// As [`run`].
pub(super) fn run_changes(
    input: &DeviceInput,
    moments: [Option<When>; 2],
    limit: Option<usize>,
) -> Result<(), Failure> {
    let format = input.common.format;
    let limit = output::limit(limit, format == Format::Text);
    read::with_device(input, |target| changes(target, moments, limit, format))
}

fn changes(
    target: Target<'_>,
    [from, to]: [Option<When>; 2],
    limit: Option<usize>,
    format: Format,
) -> Result<(), Failure> {
    let from = super::slot(target, from.unwrap_or(When::At(At::Start)))?;
    let to = super::slot(target, to.unwrap_or(When::At(At::End)))?;
    output::print(&state_changes(target, from, to, limit), format, changes_text)
}

fn text(out: &mut dyn Write, state: &State<'_>) -> io::Result<()> {
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
    table.whole([0, 3]);
    table.optional([2]);
    for block in blocks {
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
    output::write_omitted(out, state.omitted, "blocks")?;
    writeln!(out)?;
    write_free(out, &state.free)
}

fn changes_text(out: &mut dyn Write, report: &StateChanges<'_>) -> io::Result<()> {
    let (from, to) = (output::after_event(report.from.event), output::after_event(report.to.event));
    writeln!(
        out,
        "{}  {}, from {from} to {to}\n",
        styled(STRONG, report.path),
        device_name(report.device)
    )?;
    if report.from.event > report.to.event {
        writeln!(out, "A is after B: what came is live at B and not at A.\n")?;
    }
    let mut table = Table::new(&["", "from", "to", "change"], &[false, true, true, true]);
    let totals = |of: fn(&Totals) -> u64| (of(&report.from), of(&report.to));
    for (band, (before, after)) in [
        ("requested_bytes", totals(|t| t.requested_bytes)),
        ("active_bytes", totals(|t| t.active_bytes)),
        ("allocated_bytes", totals(|t| t.allocated_bytes)),
        ("reserved_bytes", totals(|t| t.reserved_bytes)),
    ] {
        let change = after.cast_signed().wrapping_sub(before.cast_signed());
        table.row(vec![
            band.to_owned(),
            Bytes(before).to_string(),
            Bytes(after).to_string(),
            Quantity::change_of_bytes(change).text,
        ]);
    }
    table.write(out)?;
    let (mapped, released) = (Bytes(report.mapped_bytes), Bytes(report.released_bytes));
    writeln!(out, "  reserved memory: {mapped} mapped, {released} released\n")?;
    let cells = |sums: &ChangeSums| {
        let bytes = [sums.came.bytes, sums.went.bytes, sums.stayed.bytes];
        let mut cells = bytes.map(|bytes| Bytes(bytes).to_string()).to_vec();
        cells.push(Quantity::change_of_bytes(sums.net_bytes).text);
        cells
    };
    let number = &[true, true, true, true, false];
    let mut table = Table::new(&["came", "went", "stayed", "net", "category"], number);
    for row in &report.by_category {
        table.row([cells(&row.sums), vec![row.category.name().to_owned()]].concat());
    }
    table.write(out)?;
    writeln!(out)?;
    let mut table = Table::new(&["came", "went", "stayed", "net", "call site"], number);
    for row in &report.by_site {
        let site = output::site_label(&row.site, row.of_free);
        table.row([cells(&row.sums), vec![site]].concat());
    }
    table.write(out)?;
    output::write_omitted(out, report.by_site_omitted, "call sites")?;
    for (name, shares) in
        [("came", &report.came), ("went", &report.went), ("stayed", &report.stayed)]
    {
        writeln!(
            out,
            "\n{} {} in {} blocks",
            styled(STRONG, name),
            Bytes(shares.bytes),
            grouped(shares.blocks.into())
        )?;
        if shares.blocks > 0 {
            write_shares(out, report, shares)?;
        }
    }
    Ok(())
}

fn write_shares(
    out: &mut dyn Write,
    report: &StateChanges<'_>,
    shares: &BlockShares,
) -> io::Result<()> {
    super::write_categories(out, &shares.categories)?;
    writeln!(out)?;
    let head = ["bytes", "share", "blocks", "category", "call site"];
    let mut table = Table::new(&head, &[true, true, true, false, false]);
    let named: Vec<_> = shares
        .sites
        .iter()
        .map(|s| (s.site.as_str(), report.stacks.frames(s.stack), s.of_free))
        .collect();
    for (row, site) in shares.sites.iter().zip(output::site_labels(&named)) {
        table.row(vec![
            Bytes(row.bytes).to_string(),
            percent(row.bytes.into(), shares.bytes.into()),
            grouped(row.blocks.into()),
            row.category.name().to_owned(),
            site,
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, shares.omitted, "call sites")
}
