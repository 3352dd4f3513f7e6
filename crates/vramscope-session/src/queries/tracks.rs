//! Annotated ranges in view.

use super::tiles::layout_axis;
use vramscope_analysis::{Clock, NamedRange, named_ranges};
use vramscope_layout::{Axis, name_color};
use vramscope_protocol::AxisKind;
use vramscope_protocol::views::{TrackItem, Tracks};
use vramscope_report::Quantity;
use vramscope_report::Target;
use vramscope_snapshot::Snapshot;
use vramscope_units::Micros;

/// A range, or several that begin in one column.
struct Item {
    lane: u32,
    x0: f64,
    x1: f64,
    /// Whether what began it is narrower than a column: only such are put together.
    is_narrow: bool,
    /// The one that lasts longest.
    longest: NamedRange,
    count: u64,
}

/// The ranges between two slots. Without a clock it is not known where they lie, and there are
/// none.
pub(crate) fn tracks(at: Target<'_>, kind: AxisKind, x0: f64, x1: f64, columns: u32) -> Tracks {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let (Some(clock), Some(axis)) = (&trace.clock, layout_axis(trace, kind)) else {
        return Tracks { lanes: 0, x0, x1, columns, items: Vec::new() };
    };
    let ranges = named_ranges(snapshot);
    let (lanes, count) = lanes(&ranges);
    let column = (x1 - x0) / f64::from(columns.max(1));
    let mut items: Vec<Item> = Vec::new();
    // The last item of each lane, in whose column others may begin.
    let mut last: Vec<Option<usize>> = vec![None; count as usize];
    for (&range, &lane) in ranges.iter().zip(&lanes) {
        let Some((a, b)) = place(clock, axis, kind, &range) else { continue };
        let in_view = a <= x1 && b >= x0 && column > 0.0;
        if !in_view {
            continue;
        }
        let of = |x: f64| ((x - x0) / column).floor();
        let is_narrow = b - a < column;
        let before = last[lane as usize].map(|i| &mut items[i]);
        if let Some(item) =
            before.filter(|item| is_narrow && item.is_narrow && of(item.x0) == of(a))
        {
            item.x1 = item.x1.max(b);
            item.count += 1;
            if length(&range) > length(&item.longest) {
                item.longest = range;
            }
        } else {
            last[lane as usize] = Some(items.len());
            items.push(Item { lane, x0: a, x1: b, is_narrow, longest: range, count: 1 });
        }
    }
    items.sort_by(|a, b| a.lane.cmp(&b.lane).then_with(|| a.x0.total_cmp(&b.x0)));
    Tracks {
        lanes: count,
        x0,
        x1,
        columns,
        items: items.iter().map(|item| words(snapshot, item)).collect(),
    }
}

fn length(range: &NamedRange) -> i64 {
    range.end.0.saturating_sub(range.start.0)
}

fn words(snapshot: &Snapshot, item: &Item) -> TrackItem {
    let name = snapshot.text(item.longest.name);
    let title = format!("{name}, {}", Micros(length(&item.longest)));
    let (text, title) = match item.count {
        1 => (plain(&name).to_owned(), title),
        several => {
            let several = Quantity::count(several, "range", "ranges").exact;
            (several.clone(), format!("{several}, the longest {title}"))
        }
    };
    TrackItem {
        lane: item.lane,
        x0: item.x0,
        x1: item.x1,
        text,
        title,
        color: name_color(&name).word(),
    }
}

/// A name without what is around it in PyTorch's examples, `record_function("## forward ##")`:
/// little of it would be seen.
fn plain(name: &str) -> &str {
    match name.trim_matches(|c: char| c == '#' || c.is_whitespace()) {
        "" => name,
        plain => plain,
    }
}

/// A lane for every range in which it lies alone, and how many lanes there are. What nests in one
/// lane of the analysis gets one a level: drawn over each other, the outer ones would lose their
/// names.
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

/// Where a range lies on an axis: what of it is in the window, if anything.
fn place(clock: &Clock, axis: Axis<'_>, kind: AxisKind, range: &NamedRange) -> Option<(f64, f64)> {
    let offset = |time: Micros| time.0.saturating_sub(clock.start.0);
    let (from, to) = (offset(range.start).max(0) as u64, u64::try_from(offset(range.end)).ok()?);
    let span = clock.span();
    if from > span {
        return None;
    }
    let slots = match kind {
        AxisKind::Weight => return None,
        AxisKind::Time => (axis.origin() + from, axis.origin() + to.min(span)),
        // From its first event to the first one behind it.
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
