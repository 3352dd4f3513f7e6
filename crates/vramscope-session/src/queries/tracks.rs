//! Tracks: annotated ranges in view.

use crate::messages::AxisKind;
use crate::messages::views::{TrackItem, Tracks};
use vramscope_layout::{Axis, Color, name_color};
use vramscope_report::Quantity;
use vramscope_report::Target;
use vramscope_snapshot::Snapshot;
use vramscope_trace::{Clock, NamedRange, named_ranges};
use vramscope_units::Micros;

/// The columns that a name needs. Narrower ranges are merged.
const NAME_COLUMNS: f64 = 4.0;
/// The columns in which narrow ranges are merged: enough for their number in words.
const MERGED_COLUMNS: f64 = 16.0;

/// A range, or several narrow ranges that start near each other.
struct Item {
    lane: u32,
    x0: f64,
    x1: f64,
    /// Whether the first range is too narrow for a name. Only such ranges are merged.
    is_narrow: bool,
    /// The slots that its ranges cover.
    covered: f64,
    /// Whether all ranges have one name.
    is_one_name: bool,
    /// The longest of the merged ranges.
    longest: NamedRange,
    count: u64,
}

/// The ranges between two slots. Without a clock their positions are unknown, and there are none.
pub(crate) fn tracks(at: Target<'_>, kind: AxisKind, x0: f64, x1: f64, columns: u32) -> Tracks {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let (Some(clock), Some(axis)) = (&trace.clock, Axis::new(trace, kind)) else {
        return Tracks { lanes: 0, x0, x1, columns, items: Vec::new() };
    };
    let ranges = named_ranges(snapshot);
    let (lanes, count) = lanes(&ranges);
    let column = (x1 - x0) / f64::from(columns.max(1));
    let mut items: Vec<Item> = Vec::new();
    // The last item of each lane: the next range merges into it when both start in one column.
    let mut last: Vec<Option<usize>> = vec![None; count as usize];
    for (&range, &lane) in ranges.iter().zip(&lanes) {
        let Some((a, b)) = extent(clock, axis, kind, &range) else { continue };
        let in_view = a <= x1 && b >= x0 && column > 0.0;
        if !in_view {
            continue;
        }
        let bucket_of = |x: f64| ((x - x0) / (MERGED_COLUMNS * column)).floor();
        let is_narrow = b - a < NAME_COLUMNS * column;
        let before = last[lane as usize].map(|i| &mut items[i]);
        if let Some(item) =
            before.filter(|item| is_narrow && item.is_narrow && bucket_of(item.x0) == bucket_of(a))
        {
            item.x1 = item.x1.max(b);
            item.count += 1;
            item.covered += b - a;
            item.is_one_name &= range.name == item.longest.name;
            if length(&range) > length(&item.longest) {
                item.longest = range;
            }
        } else {
            last[lane as usize] = Some(items.len());
            items.push(Item {
                lane,
                x0: a,
                x1: b,
                is_narrow,
                covered: b - a,
                is_one_name: true,
                longest: range,
                count: 1,
            });
        }
    }
    items.sort_by(|a, b| a.lane.cmp(&b.lane).then_with(|| a.x0.total_cmp(&b.x0)));
    Tracks {
        lanes: count,
        x0,
        x1,
        columns,
        items: items.iter().map(|item| track_item(snapshot, item)).collect(),
    }
}

fn length(range: &NamedRange) -> i64 {
    range.end.0.saturating_sub(range.start.0)
}

fn track_item(snapshot: &Snapshot, item: &Item) -> TrackItem {
    let name = snapshot.text(item.longest.name);
    let title = format!("{name}, {}", Micros(length(&item.longest)));
    let (text, title) = match item.count {
        1 => (short_name(&name).to_owned(), title),
        count => {
            let ranges = Quantity::count(count, "range", "ranges").exact;
            (ranges.clone(), format!("{ranges}, longest: {title}"))
        }
    };
    TrackItem {
        lane: item.lane,
        x0: item.x0,
        x1: item.x1,
        text,
        title,
        color: if item.is_one_name { name_color(&name) } else { Color::OTHER }.word(),
        density: if item.count > 1 && item.x1 > item.x0 {
            (item.covered / (item.x1 - item.x0)).min(1.0)
        } else {
            1.0
        },
    }
}

/// A name without the `#` signs around it. PyTorch's examples have names such as
/// `record_function("## forward ##")`, which do not fit into short items.
fn short_name(name: &str) -> &str {
    match name.trim_matches(|c: char| c == '#' || c.is_whitespace()) {
        "" => name,
        short => short,
    }
}

/// The lane of every range, and the number of lanes.
///
/// Nested ranges share a lane in the analysis. Here every nesting level has its own lane, so that
/// inner ranges do not cover the names of outer ones.
fn lanes(ranges: &[NamedRange]) -> (Vec<u32>, u32) {
    let mut open: Vec<Vec<Micros>> = Vec::new();
    let mut levels: Vec<usize> = Vec::new();
    let level = |range: &NamedRange| {
        let lane = range.lane as usize;
        if open.len() <= lane {
            open.resize(lane + 1, Vec::new());
            levels.resize(lane + 1, 0);
        }
        open[lane].retain(|&end| end > range.start);
        open[lane].push(range.end);
        levels[lane] = levels[lane].max(open[lane].len());
        open[lane].len() - 1
    };
    let depths: Vec<usize> = ranges.iter().map(level).collect();
    let mut total = 0;
    let mut first = Vec::with_capacity(levels.len());
    for levels in levels {
        first.push(total);
        total += levels;
    }
    let lane = |(range, depth): (&NamedRange, usize)| (first[range.lane as usize] + depth) as u32;
    (ranges.iter().zip(depths).map(lane).collect(), total as u32)
}

/// The part of a range within the window, on an axis; `None` if it is outside.
fn extent(clock: &Clock, axis: Axis<'_>, kind: AxisKind, range: &NamedRange) -> Option<(f64, f64)> {
    let offset = |time: Micros| time.0.saturating_sub(clock.start.0);
    let (from, to) = (offset(range.start).max(0) as u64, u64::try_from(offset(range.end)).ok()?);
    let span = clock.span();
    if from > span {
        return None;
    }
    let slots = match kind {
        AxisKind::Weight => return None,
        AxisKind::Time => (axis.slot_of_offset(from), axis.slot_of_offset(to.min(span))),
        // From its first event to the first event after it.
        AxisKind::Event if to >= span => {
            (axis.origin() + u64::from(clock.events_before(from)), axis.extent())
        }
        AxisKind::Event => {
            let slot = |offset: u64| axis.origin() + u64::from(clock.events_before(offset));
            (slot(from), slot(to))
        }
    };
    Some((slots.0 as f64, slots.1 as f64))
}
