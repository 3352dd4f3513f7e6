//! How much of the rows of the segments view is in use after an event.

use super::segment::{BlockPart, Occupancy};
use super::segments::{Order, extent, spans};
use super::state_at::live_blocks;
use crate::messages::views::{SegmentSpec, SegmentUse, SegmentUses};
use vramscope_report::Quantity;
use vramscope_report::{Target, slot_after};
use vramscope_trace::slicing::now;
use vramscope_units::{Bytes, EventIndex};

/// The use of the rows between two heights, and of all pools that have a header.
pub(super) fn uses(
    at: Target<'_>,
    order: &Order,
    spec: &SegmentSpec,
    [y0, y1]: [f64; 2],
    event: i64,
) -> SegmentUses {
    let slot = slot_after(at.trace(), event);
    let live = Live::new(at, slot);
    let quantity = |bytes: u64| Quantity::bytes(Bytes(bytes));
    let row = |row: usize| {
        let of = live.row(at, order.spans_of(row))?;
        Some(SegmentUse {
            segment: order.spans_of(row)[0],
            used: quantity(of.active),
            free: quantity(of.free),
            hole: quantity(of.largest_free),
        })
    };
    let group = |rows: std::ops::Range<usize>| {
        let segment = order.spans_of(rows.start)[0];
        let mut sum = Occupancy::default();
        for of in rows.filter_map(|row| live.row(at, order.spans_of(row))) {
            sum.active = sum.active.saturating_add(of.active);
            sum.free = sum.free.saturating_add(of.free);
            sum.largest_free = sum.largest_free.max(of.largest_free);
        }
        SegmentUse {
            segment,
            used: quantity(sum.active),
            free: quantity(sum.free),
            hole: quantity(sum.largest_free),
        }
    };
    SegmentUses {
        when: match u32::try_from(event) {
            Ok(event) => EventIndex(event).to_string(),
            Err(_) => "before the window".to_owned(),
        },
        rows: order.rows_between(spec, y0, y1).filter_map(row).collect(),
        groups: order.groups().map(group).collect(),
    }
}

/// The live blocks of a slot, by address.
struct Live {
    slot: u32,
    /// First address, address behind the last byte, and block.
    blocks: Vec<(u64, u64, u32)>,
}

impl Live {
    fn new(at: Target<'_>, slot: u32) -> Self {
        let live = now(async |budget| live_blocks(at.trace(), slot, budget).await);
        let mut blocks: Vec<(u64, u64, u32)> = live
            .into_iter()
            .map(|block| {
                let (from, to) = extent(at, block);
                (from, to, block)
            })
            .collect();
        blocks.sort_unstable();
        Self { slot, blocks }
    }

    /// The occupancy of the segment of a row that is reserved; `None` if none is.
    fn row(&self, at: Target<'_>, row: &[u32]) -> Option<Occupancy> {
        let all = spans(at);
        let turn = row.partition_point(|&span| all[span as usize].leaves <= self.slot);
        let span = &all[*row.get(turn)? as usize];
        if !span.is_reserved_at(self.slot) {
            return None;
        }
        let (low, high) = (span.address.0, span.end());
        // Live blocks do not overlap, so their ends are sorted too. In a damaged file they may
        // overlap, and a block that begins before the segment may be missed.
        let first = self.blocks.partition_point(|&(_, to, _)| to <= low);
        let inside: Vec<BlockPart> = self.blocks[first..]
            .iter()
            .take_while(|&&(from, ..)| from < high)
            .map(|&(from, to, block)| BlockPart {
                from: from.max(low),
                to: to.min(high),
                block,
                starts_here: low <= from,
            })
            .filter(|part| part.from < part.to)
            .collect();
        Some(Occupancy::new(at, span, self.slot, &inside))
    }
}
