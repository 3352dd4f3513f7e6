//! The table of what holds the memory.

use super::shares::{category_label, fraction};
use crate::messages::views::{DropLine, HolderLine, HolderTable};
use vramscope_layout::Color;
use vramscope_report::holders::{DropRecord, HolderRow, report};
use vramscope_report::{Quantity, Target, slot_after, slot_of};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// What holds the memory at the peak, or at the cursor, and at the end.
pub(crate) async fn holders(
    at: Target<'_>,
    event: Option<i64>,
    budget: &mut Budget,
) -> HolderTable {
    let peak = slot_of(at.trace().requested_band.peak_event);
    let slot = event.map_or(peak, |event| slot_after(at.trace(), event));
    let found = report(at, slot, true, None, budget).await;
    let frees = if found.complete == Some(false) { "frees at most" } else { "frees" };
    let has_tree = found.has_tree();
    let rows = if found.complete.is_some() { found.rows } else { Vec::new() };
    let drops = if has_tree { found.drops } else { Vec::new() };
    HolderTable {
        text: found.text,
        moment: if event.is_some() { "at cursor" } else { "at peak" }.to_owned(),
        rows: (0..).zip(rows).map(|(row, of)| line(row, of, found.bytes)).collect(),
        frees: frees.to_owned(),
        drops: drops.into_iter().map(drop_line).collect(),
    }
}

fn line(row: u32, of: HolderRow, whole: u64) -> HolderLine {
    let bytes = |bytes: u64| Quantity::bytes(Bytes(bytes));
    let words = of
        .categories
        .iter()
        .map(|share| format!("{} {}", category_label(share.category), share.bytes));
    HolderLine {
        row,
        depth: of.depth,
        total: bytes(of.bytes),
        percent: format!("{:.1} %", 100.0 * fraction(of.bytes, whole)),
        end: bytes(of.end_bytes),
        frees: of.frees_bytes.map(bytes),
        blocks: Quantity::count(of.blocks.into(), "block", "blocks"),
        categories: words.collect::<Vec<_>>().join(", "),
        shares: of.categories.iter().map(|share| fraction(share.bytes.0, of.bytes)).collect(),
        colors: of
            .categories
            .iter()
            .map(|share| Color::category(share.category as u8).word())
            .collect(),
        terms: of.search.into_iter().collect(),
        label: of.holder,
    }
}

fn drop_line(of: DropRecord) -> DropLine {
    DropLine {
        label: of.text,
        depth: of.depth,
        bytes: Quantity::bytes(Bytes(of.bytes)),
        blocks: Quantity::count(of.blocks, "block", "blocks"),
    }
}
