//! What came, went and stayed between two states.

use super::range::slot_label;
use super::shares::category_label;
use crate::messages::DetailRow;
use crate::messages::views::{ChangeRow, StateChanges};
use vramscope_layout::{CAME, Color, MAPPED, RELEASED, STAYED, WENT};
use vramscope_report::changes::{self, ChangeSums};
use vramscope_report::{Quantity, Target, slot_after};
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, grouped};

/// Call sites in the table.
const MAX_SITES: usize = 200;

/// The changes from the state after one event to that after another.
pub(super) async fn changes(at: Target<'_>, events: [i64; 2], budget: &mut Budget) -> StateChanges {
    let trace = at.trace();
    let slots = events.map(|event| slot_after(trace, event));
    let found = changes::changes(at, slots, budget).await;
    let of_category = |category| Color::category(category as u8).word();
    let categories = found.categories.iter().map(|row| {
        let label = category_label(row.category).to_owned();
        let terms = vec![format!("category:{}", row.category.name())];
        (label, String::new(), of_category(row.category), terms, row.sums)
    });
    let sites = found.sites.iter().take(MAX_SITES).map(|row| {
        let category = category_label(row.category);
        let note = if row.of_free { ", stack of the free" } else { "" };
        let terms = vec![format!("site:{}", row.site)];
        let note = format!("{category}{note}");
        (row.site.clone(), note, of_category(row.category), terms, row.sums)
    });
    let all = found.all;
    let block_counts = [all.came, all.went, all.stayed]
        .map(|sum| Quantity::count(sum.blocks.into(), "block", "blocks"));
    let reserved = |key: &str, bytes: u64| {
        DetailRow::new(key, key, Bytes(bytes).to_string(), Some(bytes.to_string()))
    };
    StateChanges {
        moments: slots.map(|slot| slot_label(trace, slot)).to_vec(),
        all: rows(std::iter::once((String::new(), String::new(), 0, Vec::new(), all))).remove(0),
        blocks: block_counts.to_vec(),
        reserved: vec![
            reserved("mapped", found.mapped_bytes),
            reserved("released", found.released_bytes),
        ],
        colors: [CAME, WENT.hatched(), STAYED, MAPPED, RELEASED].map(Color::word).to_vec(),
        categories: rows(categories),
        sites: rows(sites),
        more: match found.sites.len().saturating_sub(MAX_SITES) {
            0 => String::new(),
            1 => "and 1 more call site".to_owned(),
            more => format!("and {} more call sites", grouped(more as u64)),
        },
    }
}

type Given = (String, String, u32, Vec<String>, ChangeSums);

fn rows(given: impl Iterator<Item = Given>) -> Vec<ChangeRow> {
    let given: Vec<Given> = given.collect();
    // The first row has the largest net change.
    let most = given.first().map_or(0, |row| row.4.net_bytes.unsigned_abs()).max(1);
    let row = |(label, note, color, terms, sums): Given| {
        let bytes = |bytes: u64| Quantity::bytes(Bytes(bytes));
        let counts = [sums.came.blocks, sums.went.blocks, sums.stayed.blocks];
        let [came, went, stayed] = counts.map(|count| grouped(count.into()));
        let noun = if sums.came.blocks == 1 { "block" } else { "blocks" };
        ChangeRow {
            label,
            note,
            color,
            terms,
            title: format!("{came} {noun} came, {went} went, {stayed} stayed"),
            came: bytes(sums.came.bytes),
            went: bytes(sums.went.bytes),
            stayed: bytes(sums.stayed.bytes),
            net: Quantity::change_of_bytes(sums.net_bytes),
            bar: sums.net_bytes as f64 / most as f64,
        }
    };
    given.into_iter().map(row).collect()
}
