//! When forward, backward and the optimizer ran, as far as stacks, frees and named ranges tell.

use super::stacks::{Phase, Says};
use crate::slicing::{Budget, STRIDE, strides};
use crate::trace::Trace;
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Action, Snapshot, StackId, Stage, StrId};

/// The phases of one device's window.
pub(super) struct Phases {
    /// Starts of runs of one phase, by event.
    runs: Vec<(u32, Phase)>,
    /// Events that show a phase, by [`Phase`] (forward, backward, update).
    at: [Vec<u32>; 3],
    /// Where the innermost named phase changes: first event, and phase.
    named: Vec<(u32, Option<Phase>)>,
    /// Allocs in this window have stacks, so one without is of a thread without Python: of
    /// backward.
    pub(super) framed: bool,
    /// The stack of a free is that of its alloc (`context="alloc"`).
    pub(super) frees_repeat: bool,
    /// Some frees have a stack of their own, so the program's frees in `zero_grad` show.
    pub(super) frees_tell: bool,
}

impl Phases {
    pub(super) async fn new(
        snapshot: &Snapshot,
        trace: &Trace,
        says: &[Says],
        budget: &mut Budget,
    ) -> Self {
        let rows = trace.device.events.clone();
        let events = &snapshot.events;
        let mut framed = false;
        for part in strides(rows.len()) {
            budget.charge(part.len() as u64).await;
            let mut rows = part.map(|event| rows.start + event as u32);
            framed = rows.any(|row| {
                events.action(row) == Action::ALLOC && events.stack(row) != StackId::EMPTY
            });
            if framed {
                break;
            }
        }
        let (mut frees_repeat, mut frees_tell) = (false, false);
        for blocks in trace.blocks.chunks(STRIDE) {
            budget.charge(blocks.len() as u64).await;
            for block in blocks.iter().filter(|b| b.alloc_event().is_some()) {
                let Some(request) = block.free_requested() else { continue };
                let free = events.stack(rows.start + request.0);
                frees_repeat |= free == block.stack && free != StackId::EMPTY;
                frees_tell |= free != block.stack && free != StackId::EMPTY;
            }
        }
        frees_repeat &= !frees_tell;
        let ends = ends(snapshot, trace, budget).await;
        let mut phases = Self {
            runs: Vec::new(),
            at: [const { Vec::new() }; 3],
            named: named(&ends),
            framed,
            frees_repeat,
            frees_tell,
        };
        let updates = updates(&ends);
        let mut updates = updates.iter().copied().peekable();
        for part in strides(rows.len()) {
            budget.charge(part.len() as u64 * SHOWN).await;
            for event in part.start as u32..part.end as u32 {
                while updates.next_if(|&at| at <= event).is_some() {
                    phases.mark(event, Phase::Update);
                }
                let row = rows.start + event;
                phases.show(event, events.action(row), says[events.stack(row).0 as usize]);
            }
        }
        phases
    }

    /// Notes the phase that an event shows.
    fn show(&mut self, event: u32, action: Action, says: Says) {
        match action {
            Action::ALLOC => {
                if let Some(phase) = self.of(event, says) {
                    self.mark(event, phase);
                }
            }
            // An empty stack says too little here: frees on the main thread may come without one.
            Action::FREE_REQUESTED | Action::FREE if !self.frees_repeat && says.frames => {
                if let Some(phase @ (Phase::Update | Phase::User)) = says.phase() {
                    self.mark(event, phase);
                }
            }
            _ => {}
        }
    }

    fn mark(&mut self, event: u32, phase: Phase) {
        if self.runs.last().is_none_or(|run| run.1 != phase) {
            self.runs.push((event, phase));
        }
        if phase != Phase::User {
            self.at[phase as usize].push(event);
        }
    }

    /// The phase of an alloc.
    pub(super) fn of(&self, event: u32, says: Says) -> Option<Phase> {
        let named =
            self.named[..self.named.partition_point(|n| n.0 <= event)].last().and_then(|n| n.1);
        match says.phase() {
            // The program's code within a range that it calls forward is part of forward.
            Some(Phase::User) if named == Some(Phase::Forward) => named,
            None if self.framed && !says.frames => Some(Phase::Backward),
            None if !says.frames => named,
            phase => phase,
        }
    }

    /// The first event after this one that shows another phase than the one that runs here.
    pub(super) fn ends(&self, event: u32) -> Option<u32> {
        let run = self.runs.partition_point(|run| run.0 <= event);
        self.runs.get(run).map(|run| run.0)
    }

    /// The last event of a phase before this one.
    pub(super) fn last(&self, phase: Phase, event: u32) -> Option<u32> {
        let at = &self.at[phase as usize];
        at[..at.partition_point(|&e| e < event)].last().copied()
    }

    /// The first event of a phase after this one.
    pub(super) fn next(&self, phase: Phase, event: u32) -> Option<u32> {
        let at = &self.at[phase as usize];
        at.get(at.partition_point(|&e| e <= event)).copied()
    }

    /// Whether the phase occurs at all.
    pub(super) fn any(&self, phase: Phase) -> bool {
        !self.at[phase as usize].is_empty()
    }

    /// The phase that runs at an event: that of the last one that shows any.
    pub(super) fn running(&self, event: u32) -> Option<Phase> {
        self.runs[..self.runs.partition_point(|run| run.0 <= event)].last().map(|run| run.1)
    }

    /// A number for the run that an event lies in.
    pub(super) fn run(&self, event: u32) -> u32 {
        self.runs.partition_point(|run| run.0 <= event) as u32
    }
}

/// What a named range is about. `Optimizer.step#AdamW.step` is PyTorch's own name.
fn phase_of_name(name: &str) -> Option<Phase> {
    let name = name.to_ascii_lowercase();
    let has = |part| name.contains(part);
    if has("optimizer") || has("zero_grad") {
        Some(Phase::Update)
    } else if has("backward") {
        Some(Phase::Backward)
    } else if has("forward") {
        Some(Phase::Forward)
    } else {
        None
    }
}

/// What it costs to look at what an event shows, as [`Budget`] counts it.
const SHOWN: u64 = 4;

/// What it costs to find the event of a range's end.
const FOUND: u64 = 64;

/// An end of a named range: the first event at or after it, which end, and the phase.
type End = (u32, Stage, Phase);

/// Ends of named ranges, in order.
async fn ends(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Vec<End> {
    let Some(clock) = &trace.clock else { return Vec::new() };
    // Thousands of ranges have a handful of names.
    let mut phases: FxHashMap<StrId, Option<Phase>> = FxHashMap::default();
    let mut ends: Vec<End> = Vec::new();
    for annotations in snapshot.annotations.chunks(STRIDE) {
        budget.charge(annotations.len() as u64 * FOUND).await;
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

/// Where the innermost phase changes.
fn named(ends: &[End]) -> Vec<(u32, Option<Phase>)> {
    let mut open: Vec<Phase> = Vec::new();
    let mut changes = Vec::with_capacity(ends.len());
    for &(event, stage, phase) in ends {
        match stage {
            Stage::Start => open.push(phase),
            // Ends pair as a stack: a lost start leaves nothing to close, a lost end closes with
            // the range around it.
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

/// Where `Optimizer.step` and `Optimizer.zero_grad` start: nothing else may show them, when they
/// allocate nothing.
fn updates(ends: &[End]) -> Vec<u32> {
    let starts = ends.iter().filter(|end| end.1 == Stage::Start && end.2 == Phase::Update);
    starts.map(|end| end.0).collect()
}
