//! Curves of other ranks on the axis of the rank in the center.
//!
//! The rank in the center says where the columns of its axis are in time, in steps and in events.
//! Another rank places them in its own trace: by the clock, by step if the clocks do not overlap,
//! or else by event. So one axis serves all of them, also where it is uneven.

use crate::messages::AxisKind;
use crate::messages::views::{Moments, PINNED_HEIGHT, PinnedLine};
use std::ops::Range;
use vramscope_layout::Axis;
use vramscope_report::{Quantity, Target, slot_after};
use vramscope_trace::Trace;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;
use vramscope_units::svg::area;

/// The most columns. Screens show no more.
const MAX_COLUMNS: u32 = 8192;

/// Where the edges of columns between two slots are.
pub(super) fn moments(
    at: Target<'_>,
    kind: AxisKind,
    [x0, x1]: [f64; 2],
    columns: u32,
    event: Option<i64>,
) -> Moments {
    let trace = at.trace();
    let columns = columns.clamp(1, MAX_COLUMNS);
    let Some(axis) = Axis::new(trace, kind).filter(|_| x0 < x1) else {
        return Moments::default();
    };
    let mut moments = Moments { x0, x1, columns, window: window(trace), ..Moments::default() };
    let step_edges = StepEdges::of(at);
    let width = (x1 - x0) / f64::from(columns);
    let mut place = |x: f64| {
        let state = state_at(axis, kind, x);
        moments.states.push(state);
        moments.times.extend(time_at(axis, kind, x));
        moments.steps.extend(step_edges.as_ref().map(|steps| steps.number(state)));
    };
    for column in 0..=columns {
        place(x0 + width * f64::from(column));
    }
    if let Some(event) = event {
        // The time cursor is where the state after its event begins.
        place(axis.slot_of(slot_after(trace, event)) as f64);
    }
    moments
}

/// The curve at the moments of another rank.
pub(super) async fn line(
    at: Target<'_>,
    moments: &Moments,
    top: f64,
    budget: &mut Budget,
) -> PinnedLine {
    let trace = at.trace();
    let places = Places::of(at, moments);
    let columns = places.columns;
    let states = places.edges.windows(2).take(columns);
    let states = states.map(|of| places.states(trace, of[0], of[1]).unwrap_or_default());
    let tops = trace.requested.tops(states, budget).await;
    let cursor = places.edges.get(columns + 1);
    let state = cursor.and_then(|&at| places.states(trace, at, at));
    let held = state.map(|states| Quantity::bytes(Bytes(trace.requested.at(states.start))));
    let top = Bytes((top as u64).max(1));
    PinnedLine {
        path: if tops.is_empty() {
            String::new()
        } else {
            area(&tops, [columns as u32, PINNED_HEIGHT], top.0)
        },
        top: Quantity::bytes(top),
        peak: Quantity::signed_bytes(trace.requested_band.peak),
        held,
        aligned: places.by.to_owned(),
    }
}

/// The slots at the first and the last edge of another rank's moments, by step. `None` unless both
/// ranks have steps.
pub(super) fn step_range(at: Target<'_>, moments: &Moments, kind: AxisKind) -> Option<[f64; 2]> {
    let steps = StepEdges::of(at)?;
    let axis = Axis::new(at.trace(), kind)?;
    let ends = [*moments.steps.first()?, *moments.steps.get(moments.columns as usize)?];
    Some(ends.map(|number| {
        let state = steps.state(number).clamp(0.0, f64::from(at.trace().slots()));
        match kind {
            AxisKind::Time => axis.slot_of(state as u32) as f64,
            AxisKind::Event | AxisKind::Weight => state,
        }
    }))
}

/// The times of the first and of the last event in microseconds since the epoch.
fn window(trace: &Trace) -> Option<[f64; 2]> {
    let clock = trace.clock.as_ref()?;
    let start = clock.start.0 as f64;
    Some([start, start + clock.span() as f64])
}

/// The state at a position, with the part of it that has passed on the event axis.
fn state_at(axis: Axis<'_>, kind: AxisKind, x: f64) -> f64 {
    if kind == AxisKind::Event || x < 0.0 { x } else { f64::from(axis.state_at(x as u64)) }
}

/// The time at a position in microseconds since the epoch. On the event axis, time passes evenly
/// between two events.
fn time_at(axis: Axis<'_>, kind: AxisKind, x: f64) -> Option<f64> {
    let trace = axis.trace();
    let clock = trace.clock.as_ref()?;
    let span = clock.span() as f64;
    let offset = if kind == AxisKind::Event {
        let last = f64::from(clock.count().saturating_sub(1));
        let event = (x - axis.origin() as f64).clamp(0.0, last);
        let of = |event: f64| clock.offset(event.min(last) as u32) as f64;
        let (from, to) = (of(event), of(event + 1.0));
        from + (to - from) * event.fract()
    } else {
        let position = x - axis.origin() as f64;
        let end = trace.time_scale.position(clock.span()) as f64;
        if position <= 0.0 {
            position
        } else if position >= end {
            span + (position - end)
        } else {
            let of = |position: f64| trace.time_scale.offset(position as u64) as f64;
            let (from, to) = (of(position), of(position + 1.0));
            from + (to - from) * position.fract()
        }
    };
    Some(clock.start.0 as f64 + offset)
}

/// The places of the columns in a trace, in one of three units.
struct Places<'a> {
    by: &'static str,
    columns: usize,
    edges: &'a [f64],
    steps: Option<StepEdges>,
}

impl<'a> Places<'a> {
    fn of(at: Target<'_>, moments: &'a Moments) -> Self {
        let Moments { window: other, times, steps, states, .. } = moments;
        let overlaps = window(at.trace())
            .zip(*other)
            .is_some_and(|([first, last], [from, to])| from <= last && first <= to);
        let own_steps = StepEdges::of(at).filter(|_| !steps.is_empty());
        let (by, edges) = if overlaps && !times.is_empty() {
            ("clock", times)
        } else if own_steps.is_some() {
            ("step", steps)
        } else {
            ("event", states)
        };
        Self {
            by,
            columns: moments.columns.min(MAX_COLUMNS) as usize,
            edges,
            steps: own_steps.filter(|_| by == "step"),
        }
    }

    /// The states in a column; `None` where the recording has no data.
    fn states(&self, trace: &Trace, from: f64, to: f64) -> Option<Range<u32>> {
        let last = trace.slots().checked_sub(1)?;
        if self.by == "clock" {
            let clock = trace.clock.as_ref()?;
            let start = clock.start.0 as f64;
            let (from, to) = (from - start, to - start);
            if to < 0.0 || from > clock.span() as f64 {
                return None;
            }
            let first = if from < 0.0 { 0 } else { clock.events_before(from as u64 + 1) };
            let end = clock.events_before(to.ceil() as u64);
            return Some(first..end.max(first).min(last) + 1);
        }
        let place = |of: f64| self.steps.as_ref().map_or(of, |steps| steps.state(of));
        let (from, to) = (place(from), place(to));
        if to < 0.0 || from > f64::from(last) + 1.0 {
            return None;
        }
        let first = (from.max(0.0) as u32).min(last);
        // The state at the right edge belongs to the next column.
        let end = if to > from { (to.ceil() as u32).saturating_sub(1) } else { first };
        Some(first..end.max(first).min(last) + 1)
    }
}

/// The states between which training steps are. The parts before the first and after the last step
/// count as one step each.
struct StepEdges {
    /// The number of the first part: -1 if it is before the first step.
    from: f64,
    edges: Vec<u32>,
}

impl StepEdges {
    /// `None` without training steps.
    fn of(at: Target<'_>) -> Option<Self> {
        let steps = at.entry.steps(at.index).filter(|steps| steps.are_training())?;
        let (first, last) = (*steps.begins.first()?, *steps.begins.last()?);
        let end = at.trace().slots();
        let mut edges = Vec::with_capacity(steps.begins.len() + 2);
        edges.extend((first > 0).then_some(0));
        edges.extend_from_slice(&steps.begins);
        edges.extend((last + 1 < end).then_some(end.saturating_sub(1)));
        Some(Self { from: if first > 0 { -1.0 } else { 0.0 }, edges })
    }

    /// The step of a state, with the part of it that has passed.
    fn number(&self, state: f64) -> f64 {
        let next = self.edges.partition_point(|&edge| f64::from(edge) <= state);
        let part = next.saturating_sub(1).min(self.edges.len().saturating_sub(2));
        let (low, high) = self.part(part);
        self.from + part as f64 + (state - low) / (high - low).max(1.0)
    }

    /// The state at a step.
    fn state(&self, number: f64) -> f64 {
        let place = number - self.from;
        let part = (place.max(0.0) as usize).min(self.edges.len().saturating_sub(2));
        let (low, high) = self.part(part);
        low + (high - low) * (place - part as f64)
    }

    fn part(&self, part: usize) -> (f64, f64) {
        let edge = |at: usize| self.edges.get(at).map_or(0.0, |&edge| f64::from(edge));
        (edge(part), edge(part + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbers_of_states_and_back() {
        let steps = StepEdges { from: -1.0, edges: vec![0, 10, 30, 40, 41] };
        for (state, number) in [(0.0, -1.0), (5.0, -0.5), (10.0, 0.0), (20.0, 0.5), (40.0, 2.0)] {
            assert_eq!(steps.number(state), number);
            assert_eq!(steps.state(number), state);
        }
        // Beyond both ends.
        assert_eq!((steps.number(-10.0), steps.number(43.0)), (-2.0, 5.0));
        assert_eq!((steps.state(-2.0), steps.state(4.0)), (-10.0, 42.0));
    }
}
