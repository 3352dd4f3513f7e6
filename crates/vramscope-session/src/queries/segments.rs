//! The rows of the segments view, in their order.

use super::events::MAX_PAGE_ROWS;
use super::lru_cache::LruCache;
use super::state_at::live_blocks;
use super::subject::Subject;
use crate::messages::DeviceRef;
use crate::messages::views::{
    GROWN, ROW_UNITS, SegmentGroup, SegmentRow, SegmentSort, SegmentSpec, SegmentsInfo,
};
use crate::scheduler::SLICE;
use std::ops::Range;
use vramscope_layout::{ROW_QUARTERS, RowOrder, SegmentRows};
use vramscope_report::text::segment_type;
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, slot_after};
use vramscope_snapshot::PoolId;
use vramscope_trace::slicing::{Budget, STRIDE, strides};
use vramscope_trace::{Span, Trace, sort};
use vramscope_units::{Bytes, EventIndex};

/// Cached orders: that of the view, and the one before it.
const MAX_ORDERS: usize = 2;

/// The most recently used orders of rows. The enlarged row is not part of their key.
pub(crate) struct Orders(LruCache<(DeviceRef, SegmentSpec), Order>);

impl Default for Orders {
    fn default() -> Self {
        Self(LruCache::new(MAX_ORDERS))
    }
}

impl Orders {
    /// The order of a spec. Runs a slice of computing it; `None` until it is complete.
    pub(crate) fn poll(&mut self, on: &Subject, spec: &SegmentSpec) -> Option<&Order> {
        let order = self.0.poll((on.device, order_key(spec)), |key| order(on.clone(), key));
        order.map(|order| &*order)
    }
}

async fn order(on: Subject, (_, spec): (DeviceRef, SegmentSpec)) -> Order {
    Order::new(on.at(), &spec, &mut Budget::of(SLICE)).await
}

/// The fields of a spec that decide the order: the cursor matters only for occupancy.
fn order_key(spec: &SegmentSpec) -> SegmentSpec {
    let event = if spec.sort == SegmentSort::Occupancy { spec.event } else { -1 };
    SegmentSpec { event, grown: None, ..spec.clone() }
}

/// The order of rows: all segments of the window, and all mapped ranges of expandable segments.
pub(crate) struct Order {
    rows: RowOrder,
    /// The first row of each pool and stream; empty unless sorted by pool.
    groups: Vec<u32>,
    /// The counts and the peak of reserved bytes.
    text: String,
}

impl Order {
    /// Sorts the rows of a device.
    pub(super) async fn new(at: Target<'_>, spec: &SegmentSpec, budget: &mut Budget) -> Self {
        let expandable = spans(at).iter().filter(|s| s.is_expandable).count();
        let segments =
            Quantity::count((spans(at).len() - expandable) as u64, "segment", "segments").exact;
        let ranges = Quantity::count(expandable as u64, "mapped range", "mapped ranges").exact;
        let what = match (spans(at).len() - expandable, expandable) {
            (_, 0) => segments,
            (0, _) => ranges,
            _ => format!("{segments} and {ranges}"),
        };
        let peak = Quantity::signed_bytes(at.trace().reserved_band.peak).text;
        let (rows, groups) = sorted_rows(at, spec, budget).await;
        let shared = if rows.len() == rows.spans() {
            String::new()
        } else {
            format!(" in {}", Quantity::count(rows.len() as u64, "row", "rows").exact)
        };
        Self { rows, groups, text: format!("{what}{shared} · peak reserved {peak}") }
    }

    /// The positions of the rows.
    pub(crate) fn places(&self, spec: &SegmentSpec) -> SegmentRows<'_> {
        SegmentRows::new(&self.rows, f64::from(ROW_UNITS), spec.grown.map(|span| (span, GROWN)))
    }

    /// The text, the height of all rows, and the headers of the pools.
    pub(crate) fn info(&self, at: Target<'_>, spec: &SegmentSpec) -> SegmentsInfo {
        let places = self.places(spec);
        let grown = places.grown().map(|[low, high]| (low, high));
        let group = |rows: Range<usize>| {
            let [_, y0] = places.edges(rows.start);
            let count: usize = rows.clone().map(|row| self.rows.row(row).len()).sum();
            let span = &spans(at)[self.rows.row(rows.start)[0] as usize];
            let last = *self.rows.row(rows.start).last().expect("a row has a span");
            let pool = text::pool_name(at.snapshot(), spans(at)[last as usize].pool);
            let count = Quantity::count(count as u64, "segment", "segments").exact;
            let stream = text::stream_name(at.snapshot(), span.stream);
            let text = format!("{pool}, {stream}, {count}");
            let last = &spans(at)[last as usize];
            let title = text::handles(at.snapshot(), last.pool, span.stream);
            SegmentGroup { y0, y1: y0 + places.height(), text, title }
        };
        let groups = self.groups().map(group).collect();
        SegmentsInfo { units: places.units(), text: self.text.clone(), grown, groups }
    }

    /// The spans of a row.
    pub(super) fn spans_of(&self, row: usize) -> &[u32] {
        self.rows.row(row)
    }

    /// The rows between two heights, at most [`MAX_PAGE_ROWS`].
    pub(super) fn rows_between(&self, spec: &SegmentSpec, y0: f64, y1: f64) -> Range<usize> {
        let Range { start, end } = self.places(spec).between(y0, y1);
        start..end.min(start + MAX_PAGE_ROWS as usize)
    }

    /// The rows of each pool and stream.
    pub(super) fn groups(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let ends = self.groups.iter().skip(1).map(|&row| row as usize).chain([self.rows.len()]);
        self.groups.iter().map(|&row| row as usize).zip(ends).map(|(from, to)| from..to)
    }

    /// The rows between two heights, from the top, at most [`MAX_PAGE_ROWS`].
    pub(crate) fn rows(
        &self,
        at: Target<'_>,
        spec: &SegmentSpec,
        y0: f64,
        y1: f64,
    ) -> Vec<SegmentRow> {
        let places = self.places(spec);
        let row = |row: usize| {
            let sharing = self.rows.row(row);
            let span = &spans(at)[sharing[0] as usize];
            let [y0, y1] = places.edges(row);
            SegmentRow {
                segment: sharing[0],
                y0,
                y1,
                label: label(span).to_owned(),
                size: Quantity::bytes(span.size),
                address: span.address.to_string(),
                title: title(at, sharing),
            }
        };
        self.rows_between(spec, y0, y1).map(row).collect()
    }
}

/// The rows, sorted.
async fn sorted_rows(
    at: Target<'_>,
    spec: &SegmentSpec,
    budget: &mut Budget,
) -> (RowOrder, Vec<u32>) {
    let (snapshot, spans) = (at.snapshot(), spans(at));
    let slot = slot_after(at.trace(), spec.event);
    let active = if spec.sort == SegmentSort::Occupancy {
        active_bytes(at, slot, budget).await
    } else {
        Vec::new()
    };
    let rows = RowOrder::shared(spans, budget).await;
    // All orders share one key type. The complement of a size sorts the largest first.
    let key = |row: &[u32]| -> [u64; 6] {
        let span = &spans[row[0] as usize];
        let (largest, address, enters) = (!span.size.0, span.address.0, u64::from(span.enters));
        match spec.sort {
            SegmentSort::Size => [largest, address, enters, 0, 0, 0],
            SegmentSort::Address => [address, enters, 0, 0, 0, 0],
            SegmentSort::Pool => {
                // Files with final segments know the pool of the row's last segment.
                let pool = row.last().and_then(|&last| snapshot.pool(spans[last as usize].pool));
                let PoolId(a, b) = pool.unwrap_or(PoolId::DEFAULT);
                [
                    u64::from(pool.is_none()),
                    a,
                    b,
                    snapshot.stream(span.stream) as u64,
                    largest,
                    address,
                ]
            }
            SegmentSort::Occupancy => {
                let next = row.get(row.partition_point(|&s| spans[s as usize].leaves <= slot));
                let reserved = next.filter(|&&s| spans[s as usize].is_reserved_at(slot));
                let active = reserved.map_or(0, |&s| active[s as usize]);
                let occupancy = (u128::from(active) << 32) / u128::from(span.size.0.max(1));
                [u64::from(reserved.is_none()), occupancy as u64, largest, address, enters, 0]
            }
        }
    };
    let mut keys: Vec<([u64; 6], u32)> = Vec::with_capacity(rows.len());
    for part in strides(rows.len()) {
        budget.charge(4 * part.len() as u64).await;
        keys.extend(part.map(|row| (key(rows.row(row)), row as u32)));
    }
    sort(&mut keys, budget).await;
    let (mut order, mut groups) = (RowOrder::default(), Vec::new());
    let mut group = None;
    for part in strides(keys.len()) {
        budget.charge(4 * part.len() as u64).await;
        for &(key, row) in &keys[part] {
            let row = rows.row(row as usize);
            let of = [key[0], key[1], key[2], key[3]];
            let is_first = spec.sort == SegmentSort::Pool && group != Some(of);
            if is_first {
                group = Some(of);
                groups.push(order.len() as u32);
            }
            let gap = if is_first { ROW_QUARTERS } else { 0 };
            order.push_sized(row, row_height(spans[row[0] as usize].size), gap);
        }
    }
    (order, groups)
}

/// The height of a row by the size of its segment, in quarters of the usual height: a quarter more
/// for each factor of four over 2 MiB, up to two rows.
fn row_height(size: Bytes) -> u8 {
    let doublings = (size.0 / SMALL_SEGMENT).checked_ilog2().unwrap_or(0) as u8;
    (ROW_QUARTERS + doublings / 2).min(2 * ROW_QUARTERS)
}

/// The size of the segments of the small pool.
const SMALL_SEGMENT: u64 = 2 << 20;

/// The segments of a device, and the mapped ranges of its expandable segments.
pub(super) fn spans(at: Target<'_>) -> &[Span] {
    &at.entry.carving(at.index).segments.spans
}

/// The first address of a block, and the address after its last byte.
pub(super) fn extent(at: Target<'_>, block: u32) -> (u64, u64) {
    let address = at.trace().blocks[block as usize].address.0;
    (address, address.saturating_add(at.entry.carving(at.index).sizes[block as usize].0))
}

/// The bytes of active blocks in each span in a slot, by span.
async fn active_bytes(at: Target<'_>, slot: u32, budget: &mut Budget) -> Vec<u64> {
    let spans = spans(at);
    let mut active = vec![0; spans.len()];
    let mut reserved: Vec<u32> =
        (0..spans.len() as u32).filter(|&s| spans[s as usize].is_reserved_at(slot)).collect();
    reserved.sort_by_key(|&s| spans[s as usize].address);
    for part in live_blocks(at.trace(), slot, budget).await.chunks(STRIDE) {
        budget.charge(16 * part.len() as u64).await;
        for &block in part {
            let (from, to) = extent(at, block);
            let first = reserved.partition_point(|&s| spans[s as usize].end() <= from);
            for &s in &reserved[first..] {
                let span = &spans[s as usize];
                if span.address.0 >= to {
                    break;
                }
                // Spans of a damaged file can overlap. Then this span can end before the block.
                active[s as usize] += to.min(span.end()).saturating_sub(from.max(span.address.0));
            }
        }
    }
    active
}

/// The short kind of a span.
fn label(span: &Span) -> &'static str {
    if span.is_expandable { "expandable" } else { segment_type(span.segment_type) }
}

/// The event that releases a span; `None` if it is reserved at the end.
pub(super) fn released_by(trace: &Trace, span: &Span) -> Option<EventIndex> {
    (span.leaves < trace.slots()).then(|| EventIndex(span.leaves.saturating_sub(1)))
}

/// The tooltip of a row: `large segment at 0x76002a000000, default pool, default stream, from #12
/// to the end`, then the handles. A shared row starts with `12 large segments at 0x76002a000000 in
/// turn`.
fn title(at: Target<'_>, row: &[u32]) -> String {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let [first, last] =
        [row.first(), row.last()].map(|span| &spans(at)[*span.expect("a row has a span") as usize]);
    let kind = if first.is_expandable {
        "mapped range".to_owned()
    } else {
        format!("{} segment", segment_type(first.segment_type))
    };
    let place = match row.len() as u64 {
        1 => format!("{kind} at {}", first.address),
        count => {
            format!(
                "{} at {} in turn",
                Quantity::count(count, &kind, &format!("{kind}s")).exact,
                first.address
            )
        }
    };
    let from = match first.enters {
        0 => "before the window".to_owned(),
        slot => EventIndex(slot - 1).to_string(),
    };
    let to =
        released_by(trace, last).map_or_else(|| "the end".to_owned(), |event| event.to_string());
    let pool = text::pool_name(snapshot, last.pool);
    let stream = text::stream_name(snapshot, first.stream);
    let handles = text::handles(snapshot, last.pool, first.stream);
    format!("{place}, {pool}, {stream}, from {from} to {to}\n{handles}")
}
