//! The details of a segment: its data, its occupancy and what it holds.

use super::block_detail as detail;
use super::segments::{extent, released_by, spans};
use super::state_at::{live_blocks, stack_rows};
use crate::messages::DetailRow;
use crate::messages::views::DetailCard;
use vramscope_layout::RowOrder;
use vramscope_report::text::segment_type;
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, slot_after};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Span, Trace};
use vramscope_units::{Bytes, EventIndex};

/// Call stacks in the list.
const MAX_STACKS: usize = 12;

/// The details of the segment that is reserved after an event, among those that share the row of
/// `segment`; `None` for an unknown segment.
pub(crate) async fn segment(
    at: Target<'_>,
    segment: u32,
    event: i64,
    budget: &mut Budget,
) -> Option<DetailCard> {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let slot = slot_after(trace, event);
    let sharing = RowOrder::row_with(spans(at), segment)?;
    // If none is reserved, the one before; before the first, the first.
    let turn = sharing.partition_point(|&s| spans(at)[s as usize].enters <= slot).saturating_sub(1);
    let span = &spans(at)[sharing[turn] as usize];
    let mut rows: Vec<DetailRow> = Vec::new();
    let mut row = |key: &str, label: &str, text: String, raw: Option<String>| {
        rows.push(DetailRow::new(key, label, text, raw));
    };
    row("address", "address", span.address.to_string(), None);
    row("segment_type", "type", type_text(span), None);
    row("pool", "pool", text::pool_name(snapshot, span.pool), None);
    row(
        "stream",
        "stream",
        text::stream_name(snapshot, span.stream),
        Some(snapshot.stream(span.stream).to_string()),
    );
    if sharing.len() > 1 {
        row(
            "turn",
            "position in row",
            format!("{} of {}", turn + 1, sharing.len()),
            Some((turn + 1).to_string()),
        );
    }
    row(
        "created",
        "reserved",
        created(trace, span),
        Some(span.event.map_or(-1, |e| i64::from(e.0)).to_string()),
    );
    match released_by(trace, span) {
        Some(event) => {
            row("freed", "released", text::event(trace, event), Some(event.0.to_string()));
        }
        None => row("freed", "released", "not released".to_owned(), None),
    }
    let inside = if span.is_reserved_at(slot) {
        blocks_in_span(at, span, slot, budget).await
    } else {
        Vec::new()
    };
    if span.is_reserved_at(slot) {
        let occupancy = Occupancy::new(at, span, slot, &inside);
        let mut bytes = |key: &str, label: &str, bytes: u64| {
            row(key, label, Bytes(bytes).to_string(), Some(bytes.to_string()));
        };
        bytes("allocated_bytes", "allocated", occupancy.allocated);
        bytes("active_bytes", "active", occupancy.active);
        bytes("requested_bytes", "requested", occupancy.requested);
        bytes("free", "free", occupancy.free);
        bytes("largest_free", "largest free piece", occupancy.largest_free);
        let blocks = Quantity::count(inside.len() as u64, "block", "blocks");
        row("blocks", "blocks", blocks.text, Some(blocks.value.to_string()));
    } else {
        let text = if slot < span.enters { "not reserved yet" } else { "already released" };
        row("now", "at the cursor", text.to_owned(), None);
    }
    // A block that starts in the preceding mapped range counts there.
    let own: Vec<u32> = inside.iter().filter(|i| i.starts_here).map(|i| i.block).collect();
    let stacks = stack_rows(at, &own, MAX_STACKS, budget).await;
    let stack = (span.stack != StackId::EMPTY).then(|| detail::stack(at.entry, span.stack, None));
    let title = Quantity::bytes(span.size);
    let none = detail::stack(at.entry, StackId::EMPTY, None);
    let mut copy = detail::copy(&title.exact, "Segment", &rows, stack.as_ref().unwrap_or(&none));
    let heading = if stacks.is_empty() { "" } else { "Blocks in it at the cursor, by call stack" };
    let lines =
        stacks.iter().map(|row| format!("  {}  {}  {}\n", row.bytes.text, row.site, row.note));
    copy.extend((!stacks.is_empty()).then(|| format!("{heading}:\n")).into_iter().chain(lines));
    Some(DetailCard {
        kind: "Segment".to_owned(),
        title,
        rows,
        heading: heading.to_owned(),
        stacks,
        stack,
        copy,
    })
}

/// The segment that contains a block when it is allocated.
pub(crate) fn segment_of(at: Target<'_>, block: u32) -> Option<u32> {
    let block = at.trace().blocks.get(block as usize)?;
    let holds = |s: &Span| {
        s.address <= block.address && block.address.0 < s.end() && s.is_reserved_at(block.enters)
    };
    spans(at).iter().position(holds).map(|i| i as u32)
}

/// The part of a block within a span.
pub(super) struct BlockPart {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) block: u32,
    /// Whether the block starts in the span. In expandable segments a block can extend over several
    /// mapped ranges.
    pub(super) starts_here: bool,
}

/// The blocks within a span in a slot, by address.
async fn blocks_in_span(
    at: Target<'_>,
    span: &Span,
    slot: u32,
    budget: &mut Budget,
) -> Vec<BlockPart> {
    let (low, high) = (span.address.0, span.end());
    let part = |block: u32| {
        let (from, to) = extent(at, block);
        let starts_here = low <= from && from < high;
        let is_in = starts_here || from < high && low < to;
        is_in.then(|| BlockPart { from: from.max(low), to: to.min(high), block, starts_here })
    };
    let live = live_blocks(at.trace(), slot, budget).await;
    budget.charge(4 * live.len() as u64).await;
    let mut inside: Vec<BlockPart> = live.into_iter().filter_map(part).collect();
    inside.sort_by_key(|i| (i.from, i.block));
    inside
}

/// The occupancy of a segment in a slot, in bytes.
#[derive(Default)]
pub(super) struct Occupancy {
    allocated: u64,
    pub(super) active: u64,
    requested: u64,
    pub(super) free: u64,
    pub(super) largest_free: u64,
}

impl Occupancy {
    pub(super) fn new(at: Target<'_>, span: &Span, slot: u32, inside: &[BlockPart]) -> Self {
        let (trace, carving) = (at.trace(), at.entry.carving(at.index));
        let mut sums = Self::default();
        let mut end = span.address.0;
        for part in inside {
            sums.add_free(end, part.from);
            end = end.max(part.to);
            let bytes = part.to - part.from;
            sums.active += bytes;
            sums.allocated += if carving.is_allocated(trace, part.block, slot) { bytes } else { 0 };
            sums.requested +=
                if part.starts_here { trace.blocks[part.block as usize].bytes.0 } else { 0 };
        }
        sums.add_free(end, span.end());
        sums
    }

    fn add_free(&mut self, from: u64, to: u64) {
        let free = to.saturating_sub(from);
        self.free += free;
        self.largest_free = self.largest_free.max(free);
    }
}

fn type_text(span: &Span) -> String {
    let kind = segment_type(span.segment_type);
    if span.is_expandable {
        format!("mapped range of an expandable segment ({kind})")
    } else {
        kind.to_owned()
    }
}

/// The event that reserved a span. The rest of a partly unmapped range keeps the range's event.
fn created(trace: &Trace, span: &Span) -> String {
    let made = match span.event {
        Some(event) => text::event(trace, event),
        None => "before the window".to_owned(),
    };
    let enters = span.enters.checked_sub(1).map(EventIndex);
    if enters == span.event {
        made
    } else {
        let since = enters.map(|event| event.to_string()).unwrap_or_default();
        format!("{made}, split at {since} when the rest was released")
    }
}
