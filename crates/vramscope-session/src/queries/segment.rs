//! A segment in words.

use super::block_detail as detail;
use super::segments::{extent, freed_by, is_there, pool_text, spans};
use super::state_at::{live, stack_rows};
use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{Span, Trace};
use vramscope_layout::RowOrder;
use vramscope_protocol::DetailRow;
use vramscope_protocol::views::DetailCard;
use vramscope_report::text::segment_type;
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, slot_after};
use vramscope_snapshot::StackId;
use vramscope_units::{Bytes, EventIndex};

/// How many call stacks of a segment are listed.
const STACKS: usize = 12;

/// One segment at a moment, of those that share a row with this one: what is known of it, how full
/// it is, and what holds it.
pub(crate) async fn segment(
    at: Target<'_>,
    segment: u32,
    event: i64,
    budget: &mut Budget,
) -> Option<DetailCard> {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let slot = slot_after(trace, event);
    let sharing = RowOrder::row_with(spans(at), segment)?;
    // The one that is there; where none is, the one before, and before the first the first.
    let turn = sharing.partition_point(|&s| spans(at)[s as usize].enters <= slot).saturating_sub(1);
    let span = &spans(at)[sharing[turn] as usize];
    let mut rows: Vec<DetailRow> = Vec::new();
    let mut row = |key: &str, label: &str, text: String, raw: Option<String>| {
        rows.push(DetailRow { key: key.to_owned(), label: label.to_owned(), text, raw });
    };
    row("address", "address", span.address.to_string(), None);
    row("segment_type", "type", type_text(span), None);
    row("pool", "pool", pool_text(snapshot, span.pool), None);
    row(
        "stream",
        "stream",
        text::stream(snapshot, span.stream),
        Some(snapshot.stream(span.stream).to_string()),
    );
    if sharing.len() > 1 {
        row(
            "turn",
            "in its row",
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
    match freed_by(trace, span) {
        Some(event) => {
            row("freed", "given back", text::event(trace, event), Some(event.0.to_string()))
        }
        None => row("freed", "given back", "there at the end".to_owned(), None),
    }
    let inside =
        if is_there(span, slot) { inside(at, span, slot, budget).await } else { Vec::new() };
    if is_there(span, slot) {
        let fill = Fill::new(at, span, slot, &inside);
        let mut bytes = |key: &str, label: &str, bytes: u64| {
            row(key, label, Bytes(bytes).to_string(), Some(bytes.to_string()));
        };
        bytes("allocated_bytes", "allocated", fill.allocated);
        bytes("active_bytes", "active", fill.active);
        bytes("requested_bytes", "requested", fill.requested);
        bytes("free", "free", fill.free);
        bytes("largest_free", "largest free piece", fill.largest_free);
        let blocks = Quantity::count(inside.len() as u64, "block", "blocks");
        row("blocks", "blocks", blocks.text, Some(blocks.value.to_string()));
    } else {
        let text = if slot < span.enters { "not reserved yet" } else { "given back already" };
        row("now", "at the cursor", text.to_owned(), None);
    }
    // A block that begins in the range before is counted there.
    let own: Vec<u32> = inside.iter().filter(|i| i.is_own).map(|i| i.block).collect();
    let stacks = stack_rows(at, &own, STACKS, budget).await;
    let stack = (span.stack != StackId::EMPTY).then(|| detail::stack(snapshot, span.stack, None));
    let title = Quantity::bytes(span.size);
    let none = detail::stack(snapshot, StackId::EMPTY, None);
    let mut copy = detail::copy(&title.exact, "Segment", &rows, stack.as_ref().unwrap_or(&none));
    let heading = if stacks.is_empty() { "" } else { "Holds it at the cursor" };
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

/// The segment that holds a block when it enters.
pub(crate) fn segment_of(at: Target<'_>, block: u32) -> Option<u32> {
    let block = at.trace().blocks.get(block as usize)?;
    let holds = |s: &Span| {
        s.address <= block.address && block.address.0 < s.end() && is_there(s, block.enters)
    };
    spans(at).iter().position(holds).map(|i| i as u32)
}

/// What of a block lies in a span.
struct Inside {
    from: u64,
    to: u64,
    block: u32,
    /// Whether it begins there: in expandable segments a block can lie over several mapped ranges.
    is_own: bool,
}

/// What lies in a span in a slot, by address.
async fn inside(at: Target<'_>, span: &Span, slot: u32, budget: &mut Budget) -> Vec<Inside> {
    let (low, high) = (span.address.0, span.end());
    let part = |block: u32| {
        let (from, to) = extent(at, block);
        let is_own = low <= from && from < high;
        let is_in = is_own || from < high && low < to;
        is_in.then(|| Inside { from: from.max(low), to: to.min(high), block, is_own })
    };
    let live = live(at.trace(), slot, budget).await;
    budget.charge(4 * live.len() as u64).await;
    let mut inside: Vec<Inside> = live.into_iter().filter_map(part).collect();
    inside.sort_unstable_by_key(|i| (i.from, i.block));
    inside
}

/// How full a segment is.
#[derive(Default)]
struct Fill {
    allocated: u64,
    active: u64,
    requested: u64,
    free: u64,
    largest_free: u64,
}

impl Fill {
    fn new(at: Target<'_>, span: &Span, slot: u32, inside: &[Inside]) -> Self {
        let (trace, carving) = (at.trace(), at.entry.carving(at.index));
        let mut fill = Self::default();
        let mut end = span.address.0;
        for part in inside {
            fill.gap(end, part.from);
            end = end.max(part.to);
            let bytes = part.to - part.from;
            fill.active += bytes;
            fill.allocated += if carving.is_allocated(trace, part.block, slot) { bytes } else { 0 };
            fill.requested +=
                if part.is_own { trace.blocks[part.block as usize].bytes.0 } else { 0 };
        }
        fill.gap(end, span.end());
        fill
    }

    fn gap(&mut self, from: u64, to: u64) {
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

/// When it was reserved. What an unmap left over of a larger range is as old as that.
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
        format!("{made}; left over at {since}, where the rest was given back")
    }
}
