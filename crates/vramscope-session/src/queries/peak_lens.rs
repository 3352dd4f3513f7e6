//! The peak lens: what happens around a separate peak, and a treemap of the live set at it.

use super::shares::{category_label, fraction};
use crate::messages::views::{LensEvent, LensPeak, PeakLens, TreemapCell};
use std::fmt::Write;
use vramscope_inference::Category;
use vramscope_layout::{Color, Rect, squarify};
use vramscope_report::lens::{AroundRecord, LiveSite, around, live_sites, peaks, place_words};
use vramscope_report::peak::BandKind;
use vramscope_report::{Quantity, Target, event_of};
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, EventIndex, grouped};

/// Height of a category's heading, in pixels.
const HEADING: f64 = 17.0;

/// The least height and width of a category with a heading.
const LEAST_HEADED: [f64; 2] = [30.0, 44.0];

/// The gap between categories, and between call sites.
const GAPS: [f64; 2] = [3.0, 1.0];

/// Call sites with a smaller area share a cell.
const LEAST_AREA: f64 = 40.0;

/// Blocks are drawn if each side has this many pixels.
const LEAST_SIDE: f64 = 4.0;

/// Blocks of a call site that are drawn.
const MAX_BLOCKS: usize = 120;

/// The largest treemap, in pixels.
const MAX_SIZE: f64 = 8192.0;

/// The separate peak with this index, or the last one, and a treemap of this size.
pub(super) async fn lens(
    at: Target<'_>,
    index: u32,
    size: [f64; 2],
    budget: &mut Budget,
) -> PeakLens {
    let trace = at.trace();
    let peaks = peaks(at, BandKind::Requested, budget).await;
    let shown = (index as usize).min(peaks.len().saturating_sub(1));
    let slot = peaks.get(shown).map_or(0, |of| of.peak.slot);
    let around = around(at, slot, budget).await;
    let sites = live_sites(at, slot, budget).await;
    let events = trace.device.events.len() as u64;
    let count = |count: u64, which: &str| {
        format!("{} {which} {}", grouped(count), if count == 1 { "event" } else { "events" })
    };
    let first = around.first().map_or(0, |of| u64::from(of.event));
    let last = around.last().map_or(events, |of| u64::from(of.event) + 1);
    let edges = edges(&around);
    let total: u64 = sites.iter().map(|site| site.bytes).sum();
    PeakLens {
        peaks: peaks
            .into_iter()
            .map(|of| LensPeak {
                event: event_of(of.peak.slot),
                label: match of.peak.slot.checked_sub(1) {
                    Some(event) => EventIndex(event).to_string(),
                    None => "before the window".to_owned(),
                },
                bytes: Quantity::bytes(Bytes(of.peak.value)),
                place: place_words(&of.place),
                lower: of.next_lower.map(Quantity::bytes),
                text: of.text,
            })
            .collect(),
        shown: shown as u32,
        events: around.into_iter().map(|of| event(of, slot, edges)).collect(),
        earlier: count(first, "earlier"),
        later: count(events.saturating_sub(last), "later"),
        edges: [edges[1], edges[0]].map(|bytes| Quantity::bytes(Bytes(bytes))).to_vec(),
        total: Quantity::bytes(Bytes(total)),
        cells: cells(
            at,
            &sites,
            total,
            size.map(|side| if side.is_nan() { 0.0 } else { side.clamp(0.0, MAX_SIZE) }),
        ),
    }
}

/// The least and the most bytes before and after the events.
fn edges(around: &[AroundRecord]) -> [u64; 2] {
    let totals = around.iter().flat_map(|of| {
        let before = (of.requested_bytes.cast_signed() - of.bytes).max(0).cast_unsigned();
        [before, of.requested_bytes]
    });
    let (mut least, mut most) = (u64::MAX, 0);
    for total in totals {
        (least, most) = (least.min(total), most.max(total));
    }
    [least.min(most), most]
}

fn event(of: AroundRecord, slot: u32, [low, high]: [u64; 2]) -> LensEvent {
    let before = (of.requested_bytes.cast_signed() - of.bytes).max(0).cast_unsigned();
    let y = |total: u64| fraction(total.saturating_sub(low), high - low);
    let (a, b) = (y(before), y(of.requested_bytes));
    LensEvent {
        event: of.event,
        label: EventIndex(of.event).to_string(),
        bytes: Quantity::change_of_bytes(of.bytes),
        total: Quantity::bytes(Bytes(of.requested_bytes)),
        category: category_label(of.category).to_owned(),
        color: Color::category(of.category as u8).word(),
        site: of.site,
        block: of.block,
        y: (a.min(b), a.max(b)),
        is_peak: of.event + 1 == slot && of.bytes > 0,
    }
}

/// The part of a rectangle inside of a gap to its neighbors.
fn within([left, top, width, height]: Rect, gap: f64) -> Rect {
    let (across, down) = (gap.min(width), gap.min(height));
    [left + across / 2.0, top + down / 2.0, width - across, height - down]
}

fn cells(at: Target<'_>, sites: &[LiveSite], total: u64, size: [f64; 2]) -> Vec<TreemapCell> {
    let sum = |of: Category, value: fn(&LiveSite) -> u64| -> u64 {
        sites.iter().filter(|site| site.category == of).map(value).sum()
    };
    let mut categories: Vec<(Category, u64)> =
        Category::ALL.iter().map(|&of| (of, sum(of, |site| site.bytes))).collect();
    categories.retain(|&(_, bytes)| bytes > 0);
    categories.sort_by_key(|&(of, bytes)| (std::cmp::Reverse(bytes), of as usize));
    let values: Vec<f64> = categories.iter().map(|&(_, bytes)| bytes as f64).collect();
    let places = squarify(&values, [0.0, 0.0, size[0], size[1]]);
    let cell = |depth, label: String, bytes: u64, blocks: u64, of: Category, place: Rect| {
        let [left, top, width, height] = place;
        TreemapCell {
            depth,
            label,
            bytes: Quantity::bytes(Bytes(bytes)),
            blocks: Quantity::count(blocks, "block", "blocks"),
            percent: format!("{:.1} %", 100.0 * fraction(bytes, total)),
            color: Color::category(of as u8).word(),
            terms: Vec::new(),
            x: (left, left + width),
            y: (top, top + height),
            edges: String::new(),
        }
    };
    let mut cells = Vec::new();
    for (&(of, bytes), place) in categories.iter().zip(places) {
        let term = format!("category:{}", of.name());
        let place = within(place, GAPS[0]);
        let blocks = sum(of, |site| site.blocks.into());
        let mut head = cell(0, category_label(of).to_owned(), bytes, blocks, of, place);
        head.terms.push(term.clone());
        cells.push(head);
        let [left, top, width, height] = place;
        let is_headed = height >= LEAST_HEADED[0] && width >= LEAST_HEADED[1];
        let heading = if is_headed { HEADING } else { 0.0 };
        let inside = [left, top + heading, width, height - heading];
        let own: Vec<&LiveSite> = sites.iter().filter(|site| site.category == of).collect();
        let area = |bytes: u64| fraction(bytes, total) * size[0] * size[1];
        // Sites are sorted: the small ones are the last.
        let large = own.partition_point(|site| area(site.bytes) >= LEAST_AREA);
        let small = &own[large..];
        let small_sum = |value: fn(&LiveSite) -> u64| small.iter().map(|site| value(site)).sum();
        let mut values: Vec<f64> = own[..large].iter().map(|site| site.bytes as f64).collect();
        let small_bytes: u64 = small_sum(|site| site.bytes);
        // The cell of the small ones can be larger than the last others.
        let shared = values.partition_point(|&value| value >= small_bytes as f64);
        if small_bytes > 0 {
            values.insert(shared, small_bytes as f64);
        }
        let mut next = own[..large].iter();
        for (index, place) in squarify(&values, inside).into_iter().enumerate() {
            let place = within(place, GAPS[1]);
            if small_bytes > 0 && index == shared {
                let blocks = small_sum(|site| site.blocks.into());
                let label = match small {
                    [only] => only.site.clone(),
                    _ => format!("{} small call sites", grouped(small.len() as u64)),
                };
                cells.push(cell(1, label, small_bytes, blocks, of, place));
            } else if let Some(site) = next.next() {
                let blocks = site.blocks.into();
                let mut own = cell(1, site.site.clone(), site.bytes, blocks, of, place);
                own.terms = vec![term.clone(), format!("site:{}", site.site)];
                own.edges = block_edges(at, site, [place[2], place[3]]);
                cells.push(own);
            }
        }
    }
    cells
}

/// The edges of the blocks in a call site's cell of this size.
fn block_edges(at: Target<'_>, site: &LiveSite, [width, height]: [f64; 2]) -> String {
    let mut path = String::new();
    let sizes = site.members.iter().map(|&i| at.trace().blocks[i as usize].bytes.0 as f64);
    let sizes: Vec<f64> = sizes.collect();
    if sizes.len() < 2 {
        return path;
    }
    for [left, top, w, h] in
        squarify(&sizes, [0.0, 0.0, width, height]).into_iter().take(MAX_BLOCKS)
    {
        if w >= LEAST_SIDE && h >= LEAST_SIDE {
            // Writing to a String never fails.
            let _: std::fmt::Result = write!(path, "M{left:.1} {top:.1}v{h:.1}h{w:.1}");
        }
    }
    path
}
