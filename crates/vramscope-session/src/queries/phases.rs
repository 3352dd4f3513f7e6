//! The lane of steps and their phases.

use super::range::peak_of;
use crate::messages::AxisKind;
use crate::messages::views::{PhaseItem, Phases, StepItem};
use vramscope_inference::{Phase, PhaseSpan, Steps};
use vramscope_layout::Axis;
use vramscope_report::Target;
use vramscope_report::phases::step_words;
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, EventIndex, grouped};

/// Cost of finding one part of the window: a few binary searches.
const COST_PER_PART: u64 = 8;

/// A part of the window in one step and one phase, or neighbors that are merged.
#[derive(Clone, Copy)]
struct Part {
    /// The state before its first event.
    begin: u32,
    /// The state after its last event.
    end: u32,
    /// `None` for several phases, and where only steps are known.
    phase: Option<Phase>,
    /// The first and the last step.
    steps: Option<(u32, u32)>,
    /// The step that begins with the part, or the last of several.
    begun: Option<u32>,
    /// The number of merged parts.
    count: u64,
}

/// The whole window, cut at the edges of steps and phases.
struct Parts<'a> {
    phases: &'a [PhaseSpan],
    /// The states at which steps begin.
    begins: &'a [u32],
    /// The state before the next part.
    next: u32,
    /// The last state.
    end: u32,
}

impl Iterator for Parts<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let begin = self.next;
        if begin >= self.end {
            return None;
        }
        let span = self.phases.get(self.phases.partition_point(|span| span.end <= begin));
        let step = self.begins.partition_point(|&first| first <= begin);
        let ends = [span.map(|span| span.end), self.begins.get(step).copied()];
        self.next = ends.into_iter().flatten().fold(self.end, u32::min);
        // Nothing is known of the part after the last whole step.
        let is_step = 0 < step && step < self.begins.len();
        let number = step.saturating_sub(1) as u32;
        Some(Part {
            begin,
            end: self.next,
            phase: span.map(|span| span.phase),
            steps: is_step.then_some((number, number)),
            begun: (is_step && self.begins[step - 1] == begin).then_some(number),
            count: 1,
        })
    }
}

/// The steps and phases between two slots. Empty where nothing shows any.
pub(crate) async fn phases(
    at: Target<'_>,
    kind: AxisKind,
    [x0, x1]: [f64; 2],
    columns: u32,
    budget: &mut Budget,
) -> Phases {
    let (steps, spans) = (at.entry.steps(at.index), at.entry.categories(at.index).phases());
    let label = if steps.is_some() { step_words(at)[1] } else { "phases" };
    let mut all =
        Phases { label: label.to_owned(), x0, x1, columns, items: Vec::new(), steps: Vec::new() };
    let shows_phases = spans.iter().any(|span| span.phase != spans[0].phase);
    let Some(axis) = Axis::new(at.trace(), kind) else { return all };
    let column = (x1 - x0) / f64::from(columns.max(1));
    if (steps.is_none() && !shows_phases) || column.is_nan() || column <= 0.0 {
        return all;
    }
    let end = at.trace().slots() - 1;
    let first = if x0 > 0.0 { axis.state_at(x0 as u64) } else { 0 };
    let begins = edges(steps, spans, end);
    let begins = begins.as_slice();
    let mut parts: Vec<Part> = Vec::new();
    // Parts that are merged begin in one column, and each is narrower than a column.
    let mut open: Option<f64> = None;
    // Starts at an edge, because items must not depend on the part of the window in view.
    let of_phase = spans.partition_point(|span| span.begin <= first).checked_sub(1);
    let of_step = begins.partition_point(|&begin| begin <= first).checked_sub(1);
    let next = of_phase.map(|i| spans[i].begin).max(of_step.map(|i| begins[i])).unwrap_or(0);
    for part in (Parts { phases: spans, begins, next, end }) {
        budget.charge(COST_PER_PART).await;
        let (from, to) = (slot(axis, part.begin, end), slot(axis, part.end, end));
        if from > x1 {
            break;
        }
        if part.phase.is_none() && part.steps.is_none() {
            open = None;
            continue;
        }
        let place = ((from - x0) / column).floor();
        let is_narrow = to - from < column;
        match parts.last_mut().filter(|_| is_narrow && open == Some(place)) {
            Some(last) => merge(last, &part),
            None => {
                open = is_narrow.then_some(place);
                parts.push(part);
            }
        }
    }
    let items = StepItems { axis, begins, first, end, column, right: x1 };
    all.steps = items.find(at, step_words(at), budget).await;
    for part in parts {
        let state = peak_of(at.trace(), (part.begin, part.end), budget).await;
        let peak = Bytes(at.trace().requested.at(state));
        all.items.push(PhaseItem {
            x0: slot(axis, part.begin, end),
            x1: slot(axis, part.end, end),
            phase: part.phase.map_or("", Phase::name).to_owned(),
            step: part.begun.map(|number| grouped(number.into())).unwrap_or_default(),
            title: format!("{}: {}, peak {peak}", name(&part, step_words(at)), events(&part)),
        });
    }
    all
}

/// The states at which steps begin, and the end of the last one. A last step that is cut off, such
/// as by an allocation that failed, counts when it has a forward or a backward pass.
pub(super) fn edges(steps: Option<&Steps>, spans: &[PhaseSpan], end: u32) -> Vec<u32> {
    let mut edges = steps.map(|steps| steps.begins.clone()).unwrap_or_default();
    let Some(&last) = edges.last() else { return edges };
    let is_pass = |span: &PhaseSpan| matches!(span.phase, Phase::Forward | Phase::Backward);
    // What follows the last repetition is no repetition, unless the window ends within one.
    let ended = steps.and_then(|steps| steps.repetition).is_some_and(|found| !found.is_cut_off);
    if !ended && last < end && spans.iter().any(|span| span.begin >= last && is_pass(span)) {
        edges.push(end);
    }
    edges
}

/// The least mean width of an item of steps, in columns.
const STEP_COLUMNS: f64 = 5.0;

/// The steps between two slots.
struct StepItems<'a> {
    axis: Axis<'a>,
    begins: &'a [u32],
    /// The state at the left edge.
    first: u32,
    /// The last state.
    end: u32,
    /// The width of a column in slots.
    column: f64,
    /// The right edge.
    right: f64,
}

impl StepItems<'_> {
    async fn find(
        &self,
        at: Target<'_>,
        words: [&'static str; 2],
        budget: &mut Budget,
    ) -> Vec<StepItem> {
        let slot = |step: usize| slot(self.axis, self.begins[step], self.end);
        let whole = self.begins.len().saturating_sub(1);
        let from = self.begins.partition_point(|&begin| begin <= self.first).saturating_sub(1);
        let to = self
            .begins
            .partition_point(|&begin| self::slot(self.axis, begin, self.end) <= self.right);
        let to = to.min(whole);
        if from >= to {
            return Vec::new();
        }
        let mean = (slot(to) - slot(from)) / (to - from) as f64;
        let every = interval(STEP_COLUMNS * self.column / mean);
        let mut items = Vec::new();
        let mut step = from - from % every;
        while step < to {
            budget.charge(COST_PER_PART).await;
            let next = (step + every).min(whole);
            let numbers = (step as u32, next as u32 - 1);
            let part = Part {
                begin: self.begins[step],
                end: self.begins[next],
                phase: None,
                steps: Some(numbers),
                begun: None,
                count: 1,
            };
            let state = peak_of(at.trace(), (part.begin, part.end), budget).await;
            let peak = Bytes(at.trace().requested.at(state));
            let number = grouped(numbers.0.into());
            items.push(StepItem {
                x0: slot(step),
                x1: slot(next),
                name: format!("{} {number}", words[0]),
                number,
                shaded: (step / every) % 2 == 1,
                title: format!("{}: {}, peak {peak}", name(&part, words), events(&part)),
            });
            step = next;
        }
        items
    }
}

/// The least of 1, 2, 5, 10, 20 and so on that is not below a number.
fn interval(least: f64) -> usize {
    let mut power = 1;
    loop {
        for factor in [1, 2, 5] {
            if (factor * power) as f64 >= least || power >= 1_000_000_000 {
                return factor * power;
            }
        }
        power *= 10;
    }
}

fn merge(last: &mut Part, part: &Part) {
    last.end = part.end;
    last.phase = last.phase.filter(|_| last.phase == part.phase);
    last.steps = match (last.steps, part.steps) {
        (Some((first, _)), Some((_, end))) => Some((first, end)),
        (known, None) | (None, known) => known,
    };
    last.begun = part.begun.or(last.begun);
    last.count += 1;
}

/// The last slot of a state. `end` is the last state, which has no such slot: the first counts.
fn slot(axis: Axis<'_>, state: u32, end: u32) -> f64 {
    if state < end { axis.slot_of(state + 1) as f64 - 1.0 } else { axis.slot_of(end) as f64 }
}

/// `step 3, backward`, `steps 3 to 7` or `12 phases`.
fn name(part: &Part, [one, several]: [&str; 2]) -> String {
    let number = |step: u32| grouped(step.into());
    let steps = part.steps.map(|(first, last)| {
        if first == last {
            format!("{one} {}", number(first))
        } else {
            format!("{several} {} to {}", number(first), number(last))
        }
    });
    let phase = match part.phase {
        Some(phase) => Some(phase.name().to_owned()),
        None if part.count > 1 && part.steps.is_none_or(|(first, last)| first == last) => {
            Some(format!("{} phases", grouped(part.count)))
        }
        None => None,
    };
    steps.into_iter().chain(phase).collect::<Vec<_>>().join(", ")
}

/// `events #120 to #340`.
fn events(part: &Part) -> String {
    let (first, last) = (EventIndex(part.begin), EventIndex(part.end - 1));
    if first == last { format!("event {first}") } else { format!("events {first} to {last}") }
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn intervals_are_round() {
        let of = [0.0, 1.0, 1.1, 2.1, 5.0, 5.1, 11.0, 51.0].map(interval);
        assert_eq!(of, [1, 1, 2, 5, 5, 10, 20, 100]);
        assert!(interval(f64::INFINITY) >= 1_000_000_000 && interval(f64::NAN) >= 1);
    }
}
