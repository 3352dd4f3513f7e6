//! The rows of the segments view, and a segment in words.

use super::events::PAGE;
use super::find;
use super::kept::Kept;
use super::moment::{live, slot_after, stack_rows};
use crate::detail;
use crate::engine::SLICE;
use crate::file::File;
use crate::protocol::views::{DetailCard, GROWN, ROW_UNITS, SegmentRow, SegmentSort, SegmentSpec, SegmentsInfo};
use crate::protocol::{DetailRow, DeviceRef};
use crate::report::{Target, segment_type};
use crate::text;
use memstrata_analysis::pace::{Pace, STRIDE, at_once, strides};
use memstrata_analysis::{Span, Trace, sort};
use memstrata_layout::SegmentRows;
use memstrata_snapshot::{PoolId, PoolIndex, Snapshot, StackId};
use memstrata_units::{Bytes, EventIndex};
use std::sync::Arc;

/// How many call stacks of a segment are listed.
const STACKS: usize = 12;

/// How many orders are kept: those of the view and of what was there before.
const ORDERS: usize = 2;

/// The orders of rows that were asked for last. Which row is higher does not change them.
pub(crate) struct Orders(Kept<(DeviceRef, SegmentSpec), Order>);

impl Default for Orders {
    fn default() -> Self {
        Self(Kept::new(ORDERS))
    }
}

impl Orders {
    /// Whether an order is there; if not, makes a slice of it.
    pub(crate) fn is_ready(&mut self, file: &Arc<File>, target: DeviceRef, spec: &SegmentSpec) -> bool {
        let wanted = (target, order_of(spec));
        self.0.is_ready(&wanted, || made(file.clone(), wanted.clone()))
    }

    /// An order; made in one go if it is not there.
    pub(crate) fn get(&mut self, at: Target<'_>, target: DeviceRef, spec: &SegmentSpec) -> &Order {
        let wanted = (target, order_of(spec));
        self.0.get(&wanted, || at_once(Order::paced(at, spec, &mut Pace::endless())))
    }
}

async fn made(file: Arc<File>, (target, spec): (DeviceRef, SegmentSpec)) -> Option<Order> {
    Some(Order::paced(find(&file, target)?, &spec, &mut Pace::of(SLICE)).await)
}

/// What decides the order: no row's height, and of the cursor only what it looks at.
fn order_of(spec: &SegmentSpec) -> SegmentSpec {
    let event = if spec.sort == SegmentSort::Occupancy { spec.event } else { -1 };
    SegmentSpec { event, grown: None, ..spec.clone() }
}

/// Every segment of the window, and every mapped range of an expandable one, in the order of the rows.
pub(crate) struct Order {
    /// From the top, by index into `Carving::segments.spans`.
    spans: Vec<u32>,
    text: String,
}

impl Order {
    pub(super) async fn paced(at: Target<'_>, spec: &SegmentSpec, pace: &mut Pace) -> Self {
        let expandable = spans(at).iter().filter(|s| s.is_expandable).count();
        let segments = text::count((spans(at).len() - expandable) as u64, "segment", "segments").exact;
        let ranges = text::count(expandable as u64, "mapped range", "mapped ranges").exact;
        let what = match (spans(at).len() - expandable, expandable) {
            (_, 0) => segments,
            (0, _) => ranges,
            _ => format!("{segments} and {ranges}"),
        };
        let most = text::signed_bytes(at.trace().reserved_band.peak).text;
        Self { spans: order(at, spec, pace).await, text: format!("{what}, {most} reserved at most") }
    }

    /// Where the rows are.
    pub(crate) fn places(&self, spec: &SegmentSpec) -> SegmentRows<'_> {
        SegmentRows::new(&self.spans, f64::from(ROW_UNITS), spec.grown.map(|span| (span, GROWN)))
    }

    pub(crate) fn info(&self, spec: &SegmentSpec) -> SegmentsInfo {
        let places = self.places(spec);
        let grown = places.grown().map(|[low, high]| (low, high));
        SegmentsInfo { units: places.units(), text: self.text.clone(), grown }
    }

    /// Those between two heights, from the top.
    pub(crate) fn rows(&self, at: Target<'_>, spec: &SegmentSpec, y0: f64, y1: f64) -> Vec<SegmentRow> {
        let (places, spans) = (self.places(spec), spans(at));
        let row = |row: usize| {
            let segment = places.order()[row];
            let span = &spans[segment as usize];
            let [y0, y1] = places.edges(row);
            SegmentRow {
                segment,
                y0,
                y1,
                label: label(span).to_owned(),
                size: text::bytes(span.size),
                address: span.address.to_string(),
                title: title(at, span),
            }
        };
        places.between(y0, y1).take(PAGE as usize).map(row).collect()
    }
}

/// One segment at a moment: what is known of it, how full it is, and what holds it.
pub(crate) async fn segment(at: Target<'_>, segment: u32, event: i64, pace: &mut Pace) -> Option<DetailCard> {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let span = spans(at).get(segment as usize)?;
    let slot = slot_after(trace, event);
    let mut rows: Vec<DetailRow> = Vec::new();
    let mut row = |key: &str, label: &str, text: String, raw: Option<String>| {
        rows.push(DetailRow { key: key.to_owned(), label: label.to_owned(), text, raw });
    };
    row("address", "address", span.address.to_string(), None);
    row("segment_type", "type", type_text(span), None);
    row("pool", "pool", pool_text(snapshot, span.pool), None);
    row("stream", "stream", detail::stream(snapshot, span.stream), Some(snapshot.stream(span.stream).to_string()));
    row("created", "reserved", created(trace, span), Some(span.event.map_or(-1, |e| i64::from(e.0)).to_string()));
    match freed_by(trace, span) {
        Some(event) => row("freed", "given back", text::event(trace, event), Some(event.0.to_string())),
        None => row("freed", "given back", "there at the end".to_owned(), None),
    }
    let inside = if is_there(span, slot) { inside(at, span, slot, pace).await } else { Vec::new() };
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
        let blocks = text::count(inside.len() as u64, "block", "blocks");
        row("blocks", "blocks", blocks.text, Some(blocks.raw));
    } else {
        let text = if slot < span.enters { "not reserved yet" } else { "given back already" };
        row("now", "at the cursor", text.to_owned(), None);
    }
    // A block that begins in the range before is counted there.
    let own: Vec<u32> = inside.iter().filter(|i| i.is_own).map(|i| i.block).collect();
    let stacks = stack_rows(at, &own, STACKS, pace).await;
    let stack = (span.stack != StackId::EMPTY).then(|| detail::stack(snapshot, span.stack, None));
    let title = text::bytes(span.size);
    let none = detail::stack(snapshot, StackId::EMPTY, None);
    let mut copy = detail::copy(&title.exact, "Segment", &rows, stack.as_ref().unwrap_or(&none));
    let heading = if stacks.is_empty() { "" } else { "Holds it at the cursor" };
    let lines = stacks.iter().map(|row| format!("  {}  {}  {}\n", row.bytes.text, row.site, row.note));
    copy.extend((!stacks.is_empty()).then(|| format!("{heading}:\n")).into_iter().chain(lines));
    Some(DetailCard { kind: "Segment".to_owned(), title, rows, heading: heading.to_owned(), stacks, stack, copy })
}

/// The segment that holds a block when it enters.
pub(crate) fn segment_of(at: Target<'_>, block: u32) -> Option<u32> {
    let block = at.trace().blocks.get(block as usize)?;
    let holds = |s: &Span| s.address <= block.address && block.address.0 < s.end() && is_there(s, block.enters);
    spans(at).iter().position(holds).map(|i| i as u32)
}

/// The segments in the order of the rows, from the top, by index into `Carving::segments.spans`.
async fn order(at: Target<'_>, spec: &SegmentSpec, pace: &mut Pace) -> Vec<u32> {
    let (snapshot, spans) = (at.snapshot(), spans(at));
    let slot = slot_after(at.trace(), spec.event);
    let active = if spec.sort == SegmentSort::Occupancy { active(at, slot, pace).await } else { Vec::new() };
    // One kind of key for all orders; the largest first is the smallest complement first.
    let key = |index: u32| -> [u64; 6] {
        let span = &spans[index as usize];
        let (largest, address) = (!span.size.0, span.address.0);
        match spec.sort {
            SegmentSort::Size => [largest, address, u64::from(span.enters), 0, 0, 0],
            SegmentSort::Address => [address, u64::from(span.enters), 0, 0, 0, 0],
            SegmentSort::Pool => {
                let pool = snapshot.pool(span.pool);
                let PoolId(a, b) = pool.unwrap_or(PoolId::DEFAULT);
                [u64::from(pool.is_none()), a, b, snapshot.stream(span.stream) as u64, largest, address]
            }
            SegmentSort::Occupancy => {
                let parts = (u128::from(active[index as usize]) << 32) / u128::from(span.size.0.max(1));
                [u64::from(!is_there(span, slot)), parts as u64, largest, address, 0, 0]
            }
        }
    };
    let mut order: Vec<([u64; 6], u32)> = Vec::with_capacity(spans.len());
    for part in strides(spans.len()) {
        pace.spend(4 * part.len() as u64).await;
        order.extend(part.map(|i| (key(i as u32), i as u32)));
    }
    sort(&mut order, pace).await;
    order.into_iter().map(|(_, index)| index).collect()
}

fn spans(at: Target<'_>) -> &[Span] {
    &at.part.carving(at.index).segments.spans
}

fn is_there(span: &Span, slot: u32) -> bool {
    span.enters <= slot && slot < span.leaves
}

/// What of a block lies in a span.
struct Inside {
    from: u64,
    to: u64,
    block: u32,
    /// Whether it begins there: in expandable segments a block can lie over several mapped ranges.
    is_own: bool,
}

/// Where a block lies.
fn extent(at: Target<'_>, block: u32) -> (u64, u64) {
    let address = at.trace().blocks[block as usize].address.0;
    (address, address.saturating_add(at.part.carving(at.index).sizes[block as usize].0))
}

/// What lies in a span in a slot, by address.
async fn inside(at: Target<'_>, span: &Span, slot: u32, pace: &mut Pace) -> Vec<Inside> {
    let (low, high) = (span.address.0, span.end());
    let part = |block: u32| {
        let (from, to) = extent(at, block);
        let is_own = low <= from && from < high;
        let is_in = is_own || from < high && low < to;
        is_in.then(|| Inside { from: from.max(low), to: to.min(high), block, is_own })
    };
    let live = live(at.trace(), slot, pace).await;
    pace.spend(4 * live.len() as u64).await;
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
        let (trace, carving) = (at.trace(), at.part.carving(at.index));
        let mut fill = Self::default();
        let mut end = span.address.0;
        for part in inside {
            fill.gap(end, part.from);
            end = end.max(part.to);
            let bytes = part.to - part.from;
            fill.active += bytes;
            fill.allocated += if carving.is_allocated(trace, part.block, slot) { bytes } else { 0 };
            fill.requested += if part.is_own { trace.blocks[part.block as usize].bytes.0 } else { 0 };
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

/// Block bytes in each span in a slot, by the span's index.
async fn active(at: Target<'_>, slot: u32, pace: &mut Pace) -> Vec<u64> {
    let spans = spans(at);
    let mut active = vec![0; spans.len()];
    let mut there: Vec<u32> = (0..spans.len() as u32).filter(|&s| is_there(&spans[s as usize], slot)).collect();
    there.sort_unstable_by_key(|&s| spans[s as usize].address);
    for part in live(at.trace(), slot, pace).await.chunks(STRIDE) {
        pace.spend(16 * part.len() as u64).await;
        for &block in part {
            let (from, to) = extent(at, block);
            let first = there.partition_point(|&s| spans[s as usize].end() <= from);
            for &s in &there[first..] {
                let span = &spans[s as usize];
                if span.address.0 >= to {
                    break;
                }
                // Spans of a damaged file overlap: then one that ends before the block may stand among those that do not.
                active[s as usize] += to.min(span.end()).saturating_sub(from.max(span.address.0));
            }
        }
    }
    active
}

fn label(span: &Span) -> &'static str {
    if span.is_expandable { "expandable" } else { segment_type(span.segment_type) }
}

fn type_text(span: &Span) -> String {
    let kind = segment_type(span.segment_type);
    if span.is_expandable { format!("mapped range of an expandable segment ({kind})") } else { kind.to_owned() }
}

fn pool_text(snapshot: &Snapshot, pool: PoolIndex) -> String {
    snapshot.pool(pool).map_or_else(|| "unknown".to_owned(), |p| p.to_string())
}

/// The event that gave it back; `None` if it is there at the end.
fn freed_by(trace: &Trace, span: &Span) -> Option<EventIndex> {
    (span.leaves < trace.slots()).then(|| EventIndex(span.leaves.saturating_sub(1)))
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

/// `large segment at 0x7600_2a00_0000, pool default, stream 0 (default), from #12 to the end`.
fn title(at: Target<'_>, span: &Span) -> String {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let kind = if span.is_expandable {
        "mapped range".to_owned()
    } else {
        format!("{} segment", segment_type(span.segment_type))
    };
    let from = match span.enters {
        0 => "before the window".to_owned(),
        slot => EventIndex(slot - 1).to_string(),
    };
    let to = freed_by(trace, span).map_or_else(|| "the end".to_owned(), |event| event.to_string());
    format!(
        "{kind} at {}, pool {}, stream {}, from {from} to {to}",
        span.address,
        pool_text(snapshot, span.pool),
        detail::stream(snapshot, span.stream),
    )
}
