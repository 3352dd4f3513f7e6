//! The blocks of a run as a list that a recipe can edit: when each is born and dies, and its size.
//!
//! Times are events of the recording with fractions, so that a recipe can put a block between two
//! events. A block from before the window is born at -1. One that lives on dies at infinity.

use super::order::{settle, time_key};
use super::stacks::Stacks;
use crate::category::Category;
use crate::findings::Evidence;
use crate::step_phases::{StepPart, StepPhase, StepPhases};
use std::ops::Range;
use std::sync::Arc;
use vramscope_snapshot::{Action, FrameId, StackId};
use vramscope_trace::slicing::{Budget, strides};

/// A part of the run in one phase of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) begin: f64,
    pub(crate) end: f64,
    pub(crate) phase: StepPhase,
    pub(crate) step: i32,
}

/// A block of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// When it is allocated.
    pub(crate) begin: f64,
    /// When its memory is free.
    pub(crate) end: f64,
    /// Requested bytes.
    pub(crate) bytes: u64,
    pub(crate) stream: u32,
    /// 0 is the default pool.
    pub(crate) pool: u32,
    pub(crate) category: Category,
    /// Where it is allocated.
    pub(crate) phase: StepPhase,
    pub(crate) step: i32,
    /// Where it dies; `None` if it lives on.
    pub(crate) dies_in: Option<(StepPhase, i32)>,
    /// The call stack; `None` for a block that a recipe makes.
    pub(crate) stack: Option<StackId>,
    /// Bytes of an element, where its shape is certain; else 0.
    pub(crate) element: u8,
    /// When its last use has ended, where a traced step shows that it has one; else infinity.
    pub(crate) dead: f64,
    /// A recipe made it.
    pub(crate) is_new: bool,
    /// A copy of a weight in 16 bits, which does not grow with tokens.
    pub(crate) is_weight_copy: bool,
}

impl Life {
    /// Leaves the block out.
    pub(crate) fn drop(&mut self) {
        self.end = self.begin;
    }

    /// Whether the block is alive at some time.
    pub(crate) fn is_real(&self) -> bool {
        self.bytes > 0 && self.end > self.begin
    }

    /// Whether it is freed.
    pub(crate) fn dies(&self) -> bool {
        self.is_real() && !self.stays()
    }

    /// Whether it lives to the end of the run.
    pub(crate) fn stays(&self) -> bool {
        self.end == f64::INFINITY
    }

    /// Whether the category is one of things that outlive a step: weights, states, workspaces.
    pub(crate) fn is_of_model(&self) -> bool {
        matches!(
            self.category,
            Category::Parameter
                | Category::OptimizerState
                | Category::Buffer
                | Category::Workspace
                | Category::Cache
        )
    }
}

/// A call that returns cached memory to the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Return {
    Everything,
    Pool(u32),
}

/// An allocation that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) at: f64,
    pub(crate) bytes: u64,
    pub(crate) stream: u32,
}

/// The blocks of a run, by birth.
#[derive(Debug)]
pub(crate) struct Lives {
    pub(crate) stacks: Arc<Stacks>,
    pub(crate) all: Vec<Life>,
    /// The parts of the run, by time.
    pub(crate) spans: Vec<Span>,
    /// Returns of memory that the program asks for, by time.
    pub(crate) returns: Vec<(f64, Return)>,
    /// The failure that ended the run.
    pub(crate) failure: Option<Failure>,
}

impl Lives {
    /// The lives of a device's blocks. `pools` has the private pool of each block, and
    /// `elements` the bytes of its elements, where they are certain.
    pub(crate) async fn new(
        cx: Evidence<'_>,
        stacks: Arc<Stacks>,
        pools: impl Fn(u32) -> u32,
        elements: impl Fn(u32) -> u8,
        returns: Vec<(f64, Return)>,
        failure: Option<Failure>,
        budget: &mut Budget,
    ) -> Self {
        let parts = StepPhases::parts(cx.trace, cx.categories, cx.steps, budget).await;
        let spans = spans(&parts, cx, failure, budget).await;
        let mut lives = Self {
            stacks,
            all: Vec::with_capacity(cx.trace.blocks.len()),
            spans,
            returns,
            failure,
        };
        // It is gone before the event that makes the first state without it.
        let dead = |block: u32| {
            let slot = cx.uses.and_then(|uses| uses.dead_from(block));
            slot.map_or(f64::INFINITY, |slot| f64::from(slot) - 1.5)
        };
        for part in strides(cx.trace.blocks.len()) {
            budget.charge(8 * part.len() as u64).await;
            for index in part {
                let block = &cx.trace.blocks[index];
                let begin = f64::from(block.enters) - 1.0;
                let freed = block.leaves < cx.trace.slots();
                let end = if freed { f64::from(block.leaves) - 1.0 } else { f64::INFINITY };
                let (phase, step) = lives.at(begin);
                lives.all.push(Life {
                    begin,
                    end,
                    bytes: block.bytes.0,
                    stream: u32::from(block.stream.0),
                    pool: pools(index as u32),
                    category: cx.categories.get(index as u32).category,
                    phase,
                    step,
                    dies_in: freed.then(|| lives.at(end)),
                    stack: Some(block.stack),
                    element: elements(index as u32),
                    dead: dead(index as u32),
                    is_new: false,
                    is_weight_copy: false,
                });
            }
        }
        lives.sort(budget).await;
        lives
    }

    /// All but the blocks.
    pub(crate) fn without_blocks(&self) -> Self {
        Self {
            stacks: Arc::clone(&self.stacks),
            all: Vec::with_capacity(self.all.len()),
            spans: self.spans.clone(),
            returns: self.returns.clone(),
            failure: self.failure,
        }
    }

    /// The phase and step at a time.
    pub(crate) fn at(&self, time: f64) -> (StepPhase, i32) {
        let after = self.spans.partition_point(|span| span.begin <= time);
        after
            .checked_sub(1)
            .map_or((StepPhase::Other, 0), |at| (self.spans[at].phase, self.spans[at].step))
    }

    /// Reads phases and steps of all blocks from the spans again.
    pub(crate) async fn place_again(&mut self, budget: &mut Budget) {
        for part in strides(self.all.len()) {
            budget.charge(4 * part.len() as u64).await;
            for index in part {
                let life = self.all[index];
                // States that a recipe makes keep the optimizer's phase.
                let is_state = life.category == Category::OptimizerState;
                let placed = (!is_state).then(|| self.at(life.begin));
                let dies_in = (!life.stays()).then(|| self.at(life.end));
                let life = &mut self.all[index];
                if let Some((phase, step)) = placed {
                    (life.phase, life.step) = (phase, step);
                }
                life.dies_in = dies_in;
            }
        }
    }

    /// Sorts the blocks by birth.
    pub(crate) async fn sort(&mut self, budget: &mut Budget) {
        settle(&mut self.all, None, |life| time_key(life.begin), budget).await;
    }

    /// The blocks that are born from `begin` on and before `end`.
    pub(crate) fn born(&self, begin: f64, end: f64) -> Range<usize> {
        let from = self.all.partition_point(|life| life.begin < begin);
        let to = self.all.partition_point(|life| life.begin < end);
        from..to.max(from)
    }

    /// Begin and end of a phase of a step.
    pub(crate) fn span(&self, step: i32, phase: StepPhase) -> Option<(f64, f64)> {
        let mut of = self.spans.iter().filter(|s| s.step == step && s.phase == phase);
        let first = of.next()?;
        Some((first.begin, of.next_back().unwrap_or(first).end))
    }

    /// All steps, ascending.
    pub(crate) fn steps(&self) -> Vec<i32> {
        let mut steps: Vec<i32> = self.spans.iter().map(|span| span.step).collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// The frames of a block in Python, innermost first.
    pub(crate) fn frames(&self, life: &Life) -> &[FrameId] {
        life.stack.map_or(&[], |stack| self.stacks.of(stack))
    }
}

/// The parts in steps. What the optimizer does at the begin of a step belongs to the one before.
///
/// Without a step, what follows the first input is taken for a forward pass.
async fn spans(
    parts: &[StepPart],
    cx: Evidence<'_>,
    failure: Option<Failure>,
    budget: &mut Budget,
) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::with_capacity(parts.len());
    let mut last_step = None;
    for part in parts {
        let Some(step) = part.step else { continue };
        let is_first = last_step != Some(step);
        last_step = Some(step);
        let belongs_before = is_first && part.phase == StepPhase::Optimizer;
        spans.push(Span {
            begin: f64::from(part.begin),
            end: f64::from(part.end),
            phase: part.phase,
            step: step as i32 - i32::from(belongs_before),
        });
    }
    if !spans.is_empty() {
        return spans;
    }
    budget.charge(cx.trace.blocks.len() as u64).await;
    let blocks = (0..).zip(&cx.trace.blocks);
    let inputs = blocks
        .filter(|(index, _)| cx.categories.get(*index).category == Category::Input)
        .filter_map(|(_, block)| block.alloc_event());
    let events = cx.trace.device.events.len() as u32;
    let end = failure.map_or(f64::from(events) + 1.0, |failure| failure.at + 1.0);
    let first = inputs.map(|event| event.0).min().map_or(end, |event| f64::from(event) + 4.0);
    let span = |begin, end, phase| Span { begin, end, phase, step: 0 };
    vec![span(0.0, first, StepPhase::Other), span(first, end.max(first), StepPhase::Forward)]
}

/// The allocation that failed and ended the run: the last one, after which nothing is allocated
/// but what a handler of the exception needs.
pub(super) fn failure(cx: Evidence<'_>) -> Option<Failure> {
    let oom = cx.trace.ooms.last()?;
    let rows = cx.trace.device.events.clone();
    let events = &cx.snapshot.events;
    let first = rows.start + oom.event.0 + 1;
    let allocated = (first..rows.end).filter(|&row| events.action(row) == Action::ALLOC).count();
    let row = rows.start + oom.event.0;
    (allocated <= MAX_AFTER).then(|| Failure {
        at: f64::from(oom.event.0),
        bytes: events.size(row).0,
        stream: u32::from(events.stream(row).0),
    })
}

/// A run that allocates more often after a failure has survived it.
const MAX_AFTER: usize = 16;
