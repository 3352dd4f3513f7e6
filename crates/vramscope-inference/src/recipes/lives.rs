//! The blocks of a run as a list that a recipe can edit: when each is born and dies, and its size.
//!
//! Times are events of the recording with fractions, so that a recipe can put a block between two
//! events. A block from before the window is born at -1. One that lives on dies at infinity.

use super::settle::{settle, time_key};
use crate::category::Category;
use crate::evidence::Evidence;
pub(crate) use crate::evidence::failure::{Failure, failure as failed};
use crate::evidence::marks::Mark;
pub(crate) use crate::evidence::passes::Span;
use crate::evidence::passes::{Blocks, Made, outlives_steps};
use crate::evidence::stacks::Stacks;
use crate::step_phases::StepPhase;
use std::ops::Range;
use std::sync::Arc;
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, strides};

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
    /// How many times as large the block is by the other reading of the file; 1 for a block that
    /// has one reading.
    pub(crate) other: f32,
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

    /// Whether the category is one of things that outlive a step.
    pub(crate) fn is_of_model(&self) -> bool {
        outlives_steps(self.category)
    }
}

/// A call that returns cached memory to the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Return {
    Everything,
    Pool(u32),
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
        pools: impl Fn(u32) -> u32 + Sync,
        elements: impl Fn(u32) -> u8 + Sync,
        returns: Vec<(f64, Return)>,
        failure: Option<Failure>,
        budget: &mut Budget,
    ) -> Self {
        let mut lives = Self {
            stacks,
            all: Vec::with_capacity(cx.trace.blocks.len()),
            spans: cx.passes.spans.clone(),
            returns,
            failure,
        };
        // It is gone before the event that makes the first state without it.
        let dead = |block: u32| {
            let slot = cx.uses.and_then(|uses| uses.dead_from(block));
            slot.map_or(f64::INFINITY, |slot| f64::from(slot) - 1.5)
        };
        let visit = |index, block: &Block| {
            let begin = f64::from(block.enters) - 1.0;
            let freed = block.leaves < cx.trace.slots();
            let end = if freed { f64::from(block.leaves) - 1.0 } else { f64::INFINITY };
            let (phase, step) = lives.at(begin);
            lives.all.push(Life {
                begin,
                end,
                bytes: block.bytes.0,
                stream: u32::from(block.stream.0),
                pool: pools(index),
                category: cx.categories.get(index).category,
                phase,
                step,
                dies_in: freed.then(|| lives.at(end)),
                stack: Some(block.stack),
                element: elements(index),
                dead: dead(index),
                is_new: false,
                is_weight_copy: false,
                other: 1.0,
            });
        };
        cx.trace.each_block(8, budget, visit).await;
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

    /// Whether no block has two readings.
    pub(crate) async fn is_sure(&self, budget: &mut Budget) -> bool {
        budget.charge(self.all.len() as u64 / 8).await;
        self.all.iter().all(|life| life.other == 1.0)
    }

    /// What the call stack of a block is.
    pub(crate) fn mark(&self, life: &Life) -> Mark {
        life.stack.map_or(Mark::default(), |stack| self.stacks.marks.of(stack))
    }

    /// Whether one of the innermost frames of a block in Python has a mark.
    pub(crate) fn is_made_by(&self, life: &Life, mark: Mark, frames: usize) -> bool {
        let all = self.frames(life);
        self.stacks.any(&all[..frames.min(all.len())], mark)
    }

    /// The frames of a block in Python, innermost first.
    pub(crate) fn frames(&self, life: &Life) -> &[FrameId] {
        life.stack.map_or(&[], |stack| self.stacks.of(stack))
    }
}

impl Blocks for Lives {
    fn count(&self) -> usize {
        self.all.len()
    }

    fn made(&self, index: usize) -> Made {
        let Life { begin, end, bytes, stack, category, .. } = self.all[index];
        Made { begin, end, bytes, stack, category }
    }
}

/// The allocation that failed and ended the run.
pub(crate) fn failure(cx: Evidence<'_>) -> Option<Failure> {
    failed(cx.snapshot, cx.trace)
}
