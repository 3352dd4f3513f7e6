//! The times of forward, backward and optimizer phases, as shown by stacks, frees and named ranges.

use super::Phase;
use super::evaluation;
use super::event_set::EventSet;
use super::graph;
use super::spans::{self, PhaseSpan, Run};
use super::stacks::StackHints;
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Action, Snapshot, StackId, Stage, StrId};
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, STRIDE, strides};

/// The phases of one device's window.
pub(super) struct Phases {
    /// A period is a maximal sequence of events that show one phase.
    periods: Vec<Run>,
    /// The periods without short interruptions.
    pub(super) spans: Vec<PhaseSpan>,
    /// Events that show a phase, by [`Phase`] (forward, backward, optimizer).
    events: [EventSet; 3],
    /// Events at which the innermost named phase changes, with the new phase.
    named: Vec<(u32, Option<Phase>)>,
    /// Whether allocs in this window have stacks. Then an alloc without a stack is from a thread
    /// without Python, which is backward.
    pub(super) allocs_have_stacks: bool,
    /// Whether frees repeat the stack of their alloc (`context="alloc"`).
    pub(super) frees_repeat_stacks: bool,
    /// Whether some frees have a stack of their own. Then the program's frees in `zero_grad` are
    /// visible.
    pub(super) frees_have_own_stacks: bool,
}

impl Phases {
    pub(super) async fn new(
        snapshot: &Snapshot,
        trace: &Trace,
        hints: &[StackHints],
        budget: &mut Budget,
    ) -> Self {
        let rows = trace.device.events.clone();
        let events = &snapshot.events;
        let mut allocs_have_stacks = false;
        for part in strides(rows.len()) {
            budget.charge(part.len() as u64).await;
            let mut rows = part.map(|event| rows.start + event as u32);
            allocs_have_stacks = rows.any(|row| {
                events.action(row) == Action::ALLOC && events.stack(row) != StackId::EMPTY
            });
            if allocs_have_stacks {
                break;
            }
        }
        let (mut frees_repeat_stacks, mut frees_have_own_stacks) = (false, false);
        for blocks in trace.blocks.chunks(STRIDE) {
            budget.charge(blocks.len() as u64).await;
            for block in blocks.iter().filter(|b| b.alloc_event().is_some()) {
                let Some(request) = block.free_requested() else { continue };
                let free = events.stack(rows.start + request.0);
                frees_repeat_stacks |= free == block.stack && free != StackId::EMPTY;
                frees_have_own_stacks |= free != block.stack && free != StackId::EMPTY;
            }
        }
        frees_repeat_stacks &= !frees_have_own_stacks;
        let ends = range_ends(snapshot, trace, budget).await;
        let mut phases = Self {
            periods: Vec::new(),
            spans: Vec::new(),
            events: Default::default(),
            named: named_phases(&ends),
            allocs_have_stacks,
            frees_repeat_stacks,
            frees_have_own_stacks,
        };
        let updates = update_starts(&ends);
        let mut updates = updates.iter().copied().peekable();
        for part in strides(rows.len()) {
            budget.charge(part.len() as u64 * COST_PER_EVENT).await;
            for event in part.start as u32..part.end as u32 {
                while updates.next_if(|&at| at <= event).is_some() {
                    phases.record(event, Phase::Optimizer);
                }
                let row = rows.start + event;
                phases.observe(event, events.action(row), hints[events.stack(row).0 as usize]);
            }
        }
        budget.charge(rows.len() as u64 / 16).await;
        phases.events.iter_mut().for_each(EventSet::finish);
        budget.charge(phases.periods.len() as u64 * spans::COST_PER_RUN).await;
        let mut runs = phases.periods.clone();
        evaluation::mark(snapshot, trace, &mut runs, budget).await;
        graph::extend_forward(trace, &mut runs, budget).await;
        phases.spans = spans::merged(runs, rows.len() as u32);
        phases
    }

    /// Records the phase that an event shows, if any.
    fn observe(&mut self, event: u32, action: Action, hints: StackHints) {
        match action {
            Action::ALLOC => {
                if let Some(phase) = self.of_alloc(event, hints) {
                    self.record(event, phase);
                }
            }
            // An empty stack proves nothing here: frees on the main thread may have no stack.
            Action::FREE_REQUESTED | Action::FREE
                if !self.frees_repeat_stacks && hints.has_frames =>
            {
                if let Some(phase @ (Phase::Optimizer | Phase::Other)) = hints.phase() {
                    self.record(event, phase);
                }
            }
            _ => {}
        }
    }

    fn record(&mut self, event: u32, phase: Phase) {
        match self.periods.last_mut() {
            Some(period) if period.phase == phase => period.shown += 1,
            _ => self.periods.push(Run { begin: event, phase, shown: 1 }),
        }
        if phase != Phase::Other {
            self.events[phase as usize].push(event);
        }
    }

    /// The phase of an alloc.
    pub(super) fn of_alloc(&self, event: u32, hints: StackHints) -> Option<Phase> {
        let named =
            || self.named[..self.named.partition_point(|n| n.0 <= event)].last().and_then(|n| n.1);
        match hints.phase() {
            // The program's own code in a range that it named forward is part of forward.
            Some(Phase::Other) if named() == Some(Phase::Forward) => Some(Phase::Forward),
            None if self.allocs_have_stacks && !hints.has_frames => Some(Phase::Backward),
            None if !hints.has_frames => named(),
            phase => phase,
        }
    }

    /// The end of the period that contains an event: the first event of the next period.
    pub(super) fn period_end(&self, event: u32) -> Option<u32> {
        self.periods.get(self.period(event) as usize).map(|period| period.begin)
    }

    /// The last event before `event` that shows a phase.
    pub(super) fn last_before(&self, phase: Phase, event: u32) -> Option<u32> {
        self.events[phase as usize].last_before(event)
    }

    /// The first event after `event` that shows a phase.
    pub(super) fn next_after(&self, phase: Phase, event: u32) -> Option<u32> {
        self.events[phase as usize].next_after(event)
    }

    /// The number of forward periods that begin between two events.
    pub(super) fn forward_periods(&self, from: u32, to: u32) -> usize {
        let periods = &self.periods[self.period(from) as usize..self.period(to) as usize];
        periods.iter().filter(|period| period.phase == Phase::Forward).count()
    }

    /// Whether the window holds a forward pass, its backward pass and the update that follows.
    pub(super) fn has_whole_backward(&self) -> bool {
        let forward = self.events[Phase::Forward as usize].first();
        let backward = forward.and_then(|event| self.next_after(Phase::Backward, event));
        backward.is_some_and(|event| self.next_after(Phase::Optimizer, event).is_some())
    }

    /// Whether the phase occurs at all.
    pub(super) fn occurs(&self, phase: Phase) -> bool {
        self.events[phase as usize].first().is_some()
    }

    /// The phase of the period that contains an event.
    pub(super) fn current(&self, event: u32) -> Option<Phase> {
        self.periods[..self.period(event) as usize].last().map(|period| period.phase)
    }

    /// The span that contains an event, as an index of `spans`.
    pub(super) fn span(&self, event: u32) -> Option<usize> {
        self.spans.partition_point(|span| span.begin <= event).checked_sub(1)
    }

    /// A number that identifies the period that contains an event.
    pub(super) fn period(&self, event: u32) -> u32 {
        self.periods.partition_point(|period| period.begin <= event) as u32
    }
}

/// The phase of a named range. `Optimizer.step#AdamW.step` is PyTorch's own name.
fn phase_of_name(name: &str) -> Option<Phase> {
    let name = name.to_ascii_lowercase();
    let has = |part| name.contains(part);
    if has("optimizer") || has("zero_grad") {
        Some(Phase::Optimizer)
    } else if has("backward") {
        Some(Phase::Backward)
    } else if has("forward") {
        Some(Phase::Forward)
    } else {
        None
    }
}

/// Cost of observing an event, in units of [`Budget`].
const COST_PER_EVENT: u64 = 4;

/// Cost of finding the event of an annotation, in units of [`Budget`].
const COST_PER_ANNOTATION: u64 = 64;

/// The start or end of a named range: the first event at or after it, which of the two, and the
/// phase.
type RangeEnd = (u32, Stage, Phase);

/// Starts and ends of named ranges, by event.
async fn range_ends(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Vec<RangeEnd> {
    let Some(clock) = &trace.clock else { return Vec::new() };
    // Thousands of ranges share a few names, so the phase of a name is cached.
    let mut phases: FxHashMap<StrId, Option<Phase>> = FxHashMap::default();
    let mut ends: Vec<RangeEnd> = Vec::new();
    for annotations in snapshot.annotations.chunks(STRIDE) {
        budget.charge(annotations.len() as u64 * COST_PER_ANNOTATION).await;
        ends.extend(annotations.iter().filter_map(|a| {
            let phase =
                (*phases.entry(a.name).or_insert_with(|| phase_of_name(&snapshot.text(a.name))))?;
            let offset = a.time?.0.saturating_sub(clock.start.0).max(0) as u64;
            Some((clock.events_before(offset), a.stage, phase))
        }));
    }
    ends.sort_by_key(|e| e.0);
    ends
}

/// Events at which the innermost named phase changes, with the new phase.
fn named_phases(ends: &[RangeEnd]) -> Vec<(u32, Option<Phase>)> {
    let mut open: Vec<Phase> = Vec::new();
    let mut changes = Vec::with_capacity(ends.len());
    for &(event, stage, phase) in ends {
        match stage {
            Stage::Start => open.push(phase),
            // Starts and ends pair like brackets. An end without a start is ignored. A start
            // without an end closes together with the range around it.
            Stage::End => {
                if let Some(at) = open.iter().rposition(|&p| p == phase) {
                    open.truncate(at);
                }
            }
        }
        changes.push((event, open.last().copied()));
    }
    changes
}

/// Starts of `Optimizer.step` and `Optimizer.zero_grad` ranges. They may be the only evidence of an
/// update that allocates nothing.
fn update_starts(ends: &[RangeEnd]) -> Vec<u32> {
    let starts = ends.iter().filter(|end| end.1 == Stage::Start && end.2 == Phase::Optimizer);
    starts.map(|end| end.0).collect()
}
