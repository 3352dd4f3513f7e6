//! The legend of the plots' colors, and what PyTorch could have on the device.

use super::minimap::marked;
use super::shares::category_label;
use crate::loaded::is_apart;
use crate::messages::AxisKind;
use crate::messages::views::{ColorBy, FailedRequest, Legend, LegendEntry, Limit, Query, Ramp};
use std::cmp::Reverse;
use vramscope_inference::Category;
use vramscope_layout::{Axis, Color, LargestSites, segment_color, stream_color};
use vramscope_report::capacity::{Capacity, capacity};
use vramscope_report::{Quantity, Target, slot_after, text};
use vramscope_snapshot::StreamId;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, Trace, lifetime};
use vramscope_units::{Bytes, EventIndex, Micros};

/// Segments in the list.
const MAX_SEGMENTS: usize = 8;

/// The colors of blocks in view, with their bytes after an event.
pub(super) async fn legend(
    at: Target<'_>,
    query: &Query,
    sites: &LargestSites,
    budget: &mut Budget,
) -> Legend {
    let trace = at.trace();
    let Query::Legend { color, event, axis, x0, x1 } = query else { return list(String::new()) };
    let peak = slot_after(trace, trace.requested_band.peak_event.map_or(-1, i64::from));
    let slot = event.map_or(peak, |event| slot_after(trace, event));
    let view = Axis::new(trace, *axis).map_or(0..0, |axis| states(axis, [*x0, *x1]));
    let mut legend = list(when(slot, event.is_none()));
    match color {
        ColorBy::Category => {
            let categories = at.entry.categories(at.index);
            let key = |i: u32, _: &Block| categories.get(i).category as usize;
            let count = Category::ALL.len();
            let sums = sums(trace, view, [slot, peak], count, key, budget).await;
            legend.entries = rows(&sums, |index| {
                let category = Category::ALL[index];
                let name = category.name();
                Row {
                    label: category_label(category).to_owned(),
                    color: Color::category(index as u8),
                    of: String::new(),
                    term: format!("category:{name}"),
                }
            });
        }
        ColorBy::Stack => {
            let of = &at.entry.sites;
            let others = sites.sites.len();
            let key = |_, block: &Block| sites.index(of, block.stack).unwrap_or(others);
            let sums = sums(trace, view, [slot, peak], others + 1, key, budget).await;
            legend.entries = rows(&sums, |index| match sites.sites.get(index) {
                Some(&(_, stack, color)) => {
                    let frame = of.get(stack).frame;
                    let label = frame.map(|frame| text::label_of(at.snapshot(), frame));
                    let place = frame.and_then(|frame| text::place_of(at.snapshot(), frame));
                    let of = label.unwrap_or_default();
                    let term = format!("site:{of}");
                    Row { label: place.unwrap_or_else(|| of.clone()), color, of, term }
                }
                None => Row {
                    label: "other call sites".to_owned(),
                    color: Color::OTHER,
                    of: String::new(),
                    term: String::new(),
                },
            });
            // The rest is last, however large it is.
            if let Some(rest) = legend.entries.iter().position(|e| e.color == Color::OTHER.word()) {
                let rest = legend.entries.remove(rest);
                legend.entries.push(rest);
            }
        }
        ColorBy::Stream => {
            let count = trace.blocks.iter().map(|b| u32::from(b.stream.0) + 1).max().unwrap_or(0);
            let key = |_, block: &Block| block.stream.0 as usize;
            let sums = sums(trace, view, [slot, peak], count as usize, key, budget).await;
            legend.entries = rows(&sums, |index| {
                let stream = StreamId(index as _);
                Row {
                    label: text::stream_name(at.snapshot(), stream),
                    color: stream_color(at.snapshot(), stream),
                    of: String::new(),
                    term: String::new(),
                }
            });
        }
        ColorBy::Segment => legend.entries = segments(at, slot),
        ColorBy::Size => {
            let largest = most(trace, |block| block.bytes.0, budget).await;
            legend.ramp = Some(ramp(Bytes(512).to_string(), Bytes(largest.max(512)).to_string()));
        }
        ColorBy::Age => {
            let longest = most(trace, |block| lifetime(trace, block), budget).await;
            let high = match trace.clock {
                Some(_) => Micros(longest as i64).to_string(),
                None => Quantity::count(longest, "event", "events").exact,
            };
            legend.ramp = Some(ramp("freed at once".to_owned(), format!("live for {high}")));
        }
    }
    legend
}

fn list(at: String) -> Legend {
    Legend { at, entries: Vec::new(), ramp: None }
}

fn ramp(low: String, high: String) -> Ramp {
    let colors = (0..Color::RAMP as u8).map(|step| Color::ramp(step).word()).collect();
    Ramp { colors, low, high }
}

/// `at the peak, #7,382`, or `at #7,000`.
fn when(slot: u32, is_peak: bool) -> String {
    let place = match slot.checked_sub(1) {
        Some(event) => format!("at {}", EventIndex(event)),
        None => "before the window".to_owned(),
    };
    if is_peak { format!("peak, {place}") } else { place }
}

/// The states between two slots.
fn states(axis: Axis<'_>, [x0, x1]: [f64; 2]) -> std::ops::Range<u32> {
    let from = (x0.max(0.0) as u64).min(axis.extent().saturating_sub(1));
    axis.states_in(from..(x1.max(0.0).ceil() as u64).clamp(from + 1, axis.extent().max(from + 1)))
}

/// What a key of blocks holds.
#[derive(Clone, Copy, Default)]
struct Sum {
    is_in_view: bool,
    blocks: u64,
    bytes: u64,
    at_peak: u64,
}

/// Sums by key: live bytes in a slot and at the peak.
async fn sums(
    trace: &Trace,
    view: std::ops::Range<u32>,
    [slot, peak]: [u32; 2],
    count: usize,
    key: impl Fn(u32, &Block) -> usize,
    budget: &mut Budget,
) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); count];
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            let is_in_view = block.enters < view.end && block.leaves > view.start;
            let [is_live, is_at_peak] = [slot, peak].map(|slot| block.is_live_at(slot));
            if !(is_in_view || is_live || is_at_peak) {
                continue;
            }
            let Some(sum) = sums.get_mut(key(i, block)) else { continue };
            sum.is_in_view |= is_in_view && block.bytes.0 > 0;
            if is_live {
                sum.blocks += 1;
                sum.bytes += block.bytes.0;
            }
            if is_at_peak {
                sum.at_peak += block.bytes.0;
            }
        }
    }
    sums
}

/// The maximum of a value over all blocks.
async fn most(trace: &Trace, value: impl Fn(&Block) -> u64, budget: &mut Budget) -> u64 {
    let mut most = 0;
    for part in strides(trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        most = trace.blocks[part].iter().map(&value).fold(most, u64::max);
    }
    most
}

/// A color and what it stands for.
struct Row {
    label: String,
    color: Color,
    /// The first line of the tooltip; empty for the label.
    of: String,
    term: String,
}

/// The rows of keys in view, those with the most bytes at the peak first.
fn rows(sums: &[Sum], row: impl Fn(usize) -> Row) -> Vec<LegendEntry> {
    let mut order: Vec<usize> = (0..sums.len()).filter(|&i| sums[i].is_in_view).collect();
    order.sort_by_key(|&i| (Reverse(sums[i].at_peak), i));
    let entry = |index: usize| {
        let Row { label, color, of, term } = row(index);
        let bytes = Quantity::bytes(Bytes(sums[index].bytes));
        let blocks = Quantity::count(sums[index].blocks, "block", "blocks").exact;
        let name = if of.is_empty() { &label } else { &of };
        let title = format!("{name}: {} in {blocks}", bytes.exact);
        LegendEntry { color: color.word(), label, bytes, title, term }
    };
    order.into_iter().map(entry).collect()
}

/// The largest segments that are reserved in a slot.
fn segments(at: Target<'_>, slot: u32) -> Vec<LegendEntry> {
    let spans = &at.entry.carving(at.index).segments.spans;
    let is_reserved = |i: &usize| spans[*i].is_reserved_at(slot);
    let mut order: Vec<usize> = (0..spans.len()).filter(is_reserved).collect();
    order.sort_by_key(|&i| (Reverse(spans[i].size), i));
    order.truncate(MAX_SEGMENTS);
    let entry = |index: usize| {
        let span = &spans[index];
        let (label, bytes) = (span.address.to_string(), Quantity::bytes(span.size));
        let title = format!("segment {label}: {} reserved", bytes.exact);
        LegendEntry {
            label,
            color: segment_color(index as u32).word(),
            bytes,
            title,
            term: String::new(),
        }
    };
    order.into_iter().map(entry).collect()
}

/// What PyTorch could have on the device, and the allocations that failed.
pub(super) async fn limit(at: Target<'_>, axis: AxisKind, budget: &mut Budget) -> Limit {
    let trace = at.trace();
    let mut limit = Limit { capacity: None, text: String::new(), far: false, requests: Vec::new() };
    if let Some(Capacity { bytes, event }) = capacity(at, budget).await {
        limit.capacity = Some(Quantity::bytes(bytes));
        limit.far = is_apart(trace.requested_band.peak, bytes.0 as i64);
        limit.text = match event {
            Some(event) => format!("{bytes} available to PyTorch at {event}"),
            None => format!("{bytes} available to PyTorch when the snapshot was written"),
        };
    }
    let Some(axis) = Axis::new(trace, axis) else { return limit };
    for oom in marked(&trace.ooms) {
        let state = oom.event.0 + 1;
        let live = trace.requested.at(state);
        limit.requests.push(FailedRequest {
            event: oom.event.0,
            slot: axis.slot_of(state) as f64,
            low: live as f64,
            high: live.saturating_add(oom.requested.0) as f64,
            bytes: Quantity::bytes(oom.requested),
            text: format!("asked for {}", oom.requested),
        });
    }
    limit
}
