//! `vramscope peak --by pool`: the captures of CUDA graphs, and what an inference engine holds.

use crate::commands::segments::pool_id;
use crate::commands::serving;
use crate::output::{self, Table, percent};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::ledger::{LedgerRecord, SumRecord};
use vramscope_report::shapes::BlockShape;
use vramscope_units::grouped;

/// Writes the ledger below the pools.
pub(super) fn write(out: &mut dyn Write, ledger: &LedgerRecord) -> io::Result<()> {
    writeln!(out)?;
    ledger.text.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
    if let Some(serving) = &ledger.serving {
        serving::write(out, serving)?;
    }
    if !ledger.captures.is_empty() {
        writeln!(out)?;
        write_captures(out, ledger)?;
    }
    writeln!(out)?;
    write_sums(out, &ledger.sums)?;
    if ledger.caches.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table =
        Table::new(&["KV cache", "blocks", "each", "call site"], &[true, true, true, false]);
    for of in &ledger.caches {
        let each = if of.smallest == of.largest { of.largest.to_string() } else { String::new() };
        table.row(vec![of.bytes.to_string(), grouped(of.blocks.into()), each, of.site.clone()]);
    }
    table.write(out)
}

fn write_captures(out: &mut dyn Write, ledger: &LedgerRecord) -> io::Result<()> {
    let mut table = Table::new(
        &[
            "capture",
            "pool",
            "added",
            "used",
            "reused",
            "kept",
            "shape",
            "reserved",
            "live",
            "call site",
        ],
        &[false, false, true, true, true, true, false, true, true, false],
    );
    table.optional([6, 3, 8]);
    table.whole([0, 1]);
    for of in &ledger.captures {
        let warm_up = if of.kind == "warm_up" { " warm-up" } else { "" };
        table.row(vec![
            format!("{}{warm_up}", output::event(of.begin)),
            pool_id(of.pool),
            of.added.to_string(),
            of.used.to_string(),
            of.reused.to_string(),
            of.kept.to_string(),
            of.shape.as_ref().map(BlockShape::words).unwrap_or_default(),
            of.reserved.to_string(),
            of.live.to_string(),
            of.site.clone().unwrap_or_default(),
        ]);
    }
    table.write(out)?;
    output::write_omitted(out, ledger.captures_omitted, "captures")
}

fn write_sums(out: &mut dyn Write, sums: &[SumRecord]) -> io::Result<()> {
    let mut head = vec!["reserved_bytes".to_owned()];
    for sum in sums {
        head.extend([format!("{}, {}", sum.at, output::event(sum.event)), "share".to_owned()]);
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let right: Vec<bool> = (0..head.len()).map(|column| column > 0).collect();
    let mut table = Table::new(&head, &right);
    let Some(first) = sums.first() else { return Ok(()) };
    for (row, (name, _)) in first.rows().into_iter().enumerate() {
        if sums.iter().all(|sum| sum.rows()[row].1.0 == 0) {
            continue;
        }
        let mut cells = vec![name.to_owned()];
        for sum in sums {
            let bytes = sum.rows()[row].1;
            cells.extend([bytes.to_string(), percent(bytes.0.into(), sum.reserved.0.into())]);
        }
        table.row(cells);
    }
    table.write(out)
}
