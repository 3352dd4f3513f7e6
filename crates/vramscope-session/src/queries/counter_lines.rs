//! Bytes along a part of an axis as lines: reserved bytes, dead bytes, and the largest free pieces.

use crate::messages::AxisKind;
use crate::messages::views::{COUNTER_HEIGHT, CounterLine};
use std::ops::Range;
use vramscope_layout::Axis;
use vramscope_report::segments::by_most;
use vramscope_report::{Quantity, Target, event_of, slot_after, text};
use vramscope_trace::slicing::Budget;
use vramscope_units::svg::outline;
use vramscope_units::{Bytes, EventIndex};

/// The most columns of a line.
const MAX_COLUMNS: u32 = 16_384;

/// The most lines of free memory.
const MAX_FREE_LINES: usize = 4;

/// Reserved bytes between two slots.
pub(super) async fn reserved(
    at: Target<'_>,
    axis: AxisKind,
    between: [f64; 2],
    columns: u32,
    budget: &mut Budget,
) -> CounterLine {
    let trace = at.trace();
    let series = trace.reserved(at.snapshot(), budget).await;
    let peak = Bytes(trace.reserved_band.peak.max(0) as u64);
    let most = |states: Range<u32>| series.largest(states).map(|(_, bytes)| bytes);
    let mut line = line(at, axis, between, columns, (peak, &most), budget).await;
    "reserved".clone_into(&mut line.name);
    line.title = format!("reserved_bytes, peak {}", line.top.exact);
    line
}

/// Bytes that no operation of the traced step uses again, between two slots. `None` without a
/// traced step, and where nothing is dead.
pub(super) async fn dead(
    at: Target<'_>,
    axis: AxisKind,
    between: [f64; 2],
    columns: u32,
    budget: &mut Budget,
) -> Option<CounterLine> {
    let (trace, uses) = (at.trace(), at.entry.uses(at.index).ok()?);
    let first = uses.slots.start;
    budget.charge(u64::from(uses.slots.end - first)).await;
    let dead = uses.dead_bytes(trace);
    let top = dead.iter().copied().max().filter(|&bytes| bytes > 0)?;
    let most = |states: Range<u32>| {
        let place = |slot: u32| (slot.saturating_sub(first) as usize).min(dead.len());
        Some(dead[place(states.start)..place(states.end)].iter().copied().max().unwrap_or(0))
    };
    let mut line = line(at, axis, between, columns, (Bytes(top), &most), budget).await;
    "never read again".clone_into(&mut line.name);
    let step =
        uses.step.map_or_else(|| "the traced step".to_owned(), |step| format!("step {step}"));
    line.title =
        format!("Bytes that no operation of {step} uses again, at most {}", line.top.exact);
    Some(line)
}

/// The largest free piece of each pool, stream and size class between two slots, and after an
/// event.
pub(super) async fn free(
    at: Target<'_>,
    axis: AxisKind,
    between: [f64; 2],
    columns: u32,
    event: i64,
    budget: &mut Budget,
) -> Vec<CounterLine> {
    let (trace, all) = (at.trace(), at.entry.largest_free(at.index));
    let mut lines = Vec::new();
    for (of, (slot, peak)) in by_most(all, trace.slots()).into_iter().take(MAX_FREE_LINES) {
        let most = |states: Range<u32>| of.most_in(states).map(|(_, bytes)| bytes.0);
        let mut line = line(at, axis, between, columns, (peak, &most), budget).await;
        line.at = Some(Quantity::bytes(of.at(slot_after(trace, event))));
        line.name = text::free_kind(at.snapshot(), of.kind);
        let when = match u32::try_from(event_of(slot)) {
            Ok(event) => format!("after {}", EventIndex(event)),
            Err(_) => "before the window".to_owned(),
        };
        let most = &line.top.exact;
        line.title = format!("Largest free piece of {}: at most {most}, {when}", line.name);
        lines.push(line);
    }
    lines
}

/// The maxima of columns as a line. `most` is the maximum over the window, and that of states.
async fn line(
    at: Target<'_>,
    axis: AxisKind,
    [x0, x1]: [f64; 2],
    columns: u32,
    (top, most): (Bytes, &(dyn Fn(Range<u32>) -> Option<u64> + Sync)),
    budget: &mut Budget,
) -> CounterLine {
    let columns = columns.clamp(1, MAX_COLUMNS);
    let mut line = CounterLine {
        x0,
        x1,
        columns,
        path: String::new(),
        top: Quantity::bytes(top),
        at: None,
        name: String::new(),
        title: String::new(),
    };
    let width = (x1 - x0) / f64::from(columns);
    let Some(axis) = Axis::new(at.trace(), axis).filter(|_| width > 0.0) else { return line };
    let extent = axis.extent() as f64;
    let (mut first, mut tops) = (None, Vec::new());
    for column in 0..columns {
        let edge = |column: u32| x0 + width * f64::from(column);
        let (from, to) = (edge(column).max(0.0).floor(), edge(column + 1).ceil().min(extent));
        if to <= from {
            continue;
        }
        let states = axis.states_in(from as u64..to as u64);
        budget.charge(1 + states.len() as u64).await;
        let Some(value) = most(states) else { continue };
        first.get_or_insert(column);
        tops.push(value);
    }
    if let Some(first) = first {
        let between = [first * 10, (first + tops.len() as u32) * 10];
        line.path = outline(&tops, between, COUNTER_HEIGHT, top.0);
    }
    line
}
