//! Evidence from a block's life: the phase that allocated it, and the phases that it outlived.
//!
//! Long because each phase has its own judgment, and all of them share the facts of the window.

use super::before::Before;
use super::groups::{self, Group};
use super::outputs::Outputs;
use super::phases::Phases;
use super::stacks::StackHints;
use super::workspace::Workspaces;
use super::{Category, Guess, Phase};
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Events, Snapshot, StackId};
use vramscope_trace::Trace;
use vramscope_trace::slicing::{Budget, STRIDE, strides};
use vramscope_trace::{Block, Origin};

/// The result of judging a block by its own stack and life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// A final guess.
    Final(Guess),
    /// Allocated by a module's `__init__`: a parameter or a buffer.
    ModuleTensor,
    /// Allocated by the program before the first backward pass, and never freed: data, or a
    /// parameter without a module.
    ProgramTensor,
    /// Allocated by backward, live at the last allocation of backward, but freed before any event
    /// shows the next phase. Either one of the last temporaries, or a gradient that was reset where
    /// frees have no stacks.
    BackwardTail {
        /// Whether it lived longer than a temporary of one operation.
        is_long: bool,
    },
    /// Allocated by `DistributedDataParallel` for the gradients that it reduces at once. The
    /// gradients can be views of it.
    Bucket,
    /// Allocated by the program between backward and the optimizer, and live until the optimizer:
    /// a gradient in another precision, if a gradient or a state has the size. Else as guessed.
    GradientCopy(Guess),
    /// From before the window, and without evidence of its allocation.
    Preexisting,
}

/// Upper bound for the life of a temporary inside one operation, in events.
pub(super) const MAX_OPERATION_EVENTS: u32 = 16;

/// A sum of many forward passes lives through at least this many.
const MIN_PASSES: usize = 3;

/// A batch is among this many blocks before it.
const MAX_BESIDE: usize = 32;

/// Smaller blocks are numbers of tokens and labels.
const MIN_BESIDE_BYTES: u64 = 1 << 10;

/// Cost of judging a block by its life, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 12;

struct Judge<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    hints: &'a [StackHints],
    phases: &'a Phases,
    /// By stack.
    groups: Vec<Group>,
    workspaces: Workspaces,
    /// Blocks that an optimizer allocates and keeps, by span and size.
    replacements: FxHashMap<(usize, u64), u32>,
    /// The most blocks of a stack and size that a whole update kept, and that the last one keeps.
    kept_by_updates: FxHashMap<(StackId, u64), [u32; 2]>,
    /// What forward passes put out.
    outputs: Outputs,
    before: Before,
}

/// The event at which the program freed a block. `None` if the block is live at the end.
pub(super) fn free_event(block: &Block, slots: u32) -> Option<u32> {
    let free = block.free_requested().or(block.free_completed()).map(|event| event.0);
    free.or((block.leaves < slots).then(|| block.leaves - 1))
}

fn verdict(category: Category) -> Verdict {
    Verdict::Final(Guess::new(category))
}

/// Judges every block by its own stack and life.
pub(super) async fn verdicts(
    snapshot: &Snapshot,
    trace: &Trace,
    hints: &[StackHints],
    phases: &Phases,
    budget: &mut Budget,
) -> Vec<Verdict> {
    let mut judge = Judge {
        snapshot,
        trace,
        hints,
        phases,
        groups: groups::groups(trace, hints, phases, budget).await,
        workspaces: Workspaces::new(trace, hints, phases, budget).await,
        replacements: FxHashMap::default(),
        kept_by_updates: FxHashMap::default(),
        outputs: Outputs::new(trace, hints, phases, budget).await,
        before: Before::new(trace, hints, phases, budget).await,
    };
    judge.find_replacements(budget).await;
    let mut verdicts = Vec::with_capacity(trace.blocks.len());
    for part in strides(trace.blocks.len()) {
        budget.charge(part.len() as u64 * COST_PER_BLOCK).await;
        verdicts.extend(part.map(|i| judge.block(i as u32)));
    }
    verdicts
}

impl Judge<'_> {
    /// Finds the blocks that an optimizer allocates and keeps.
    async fn find_replacements(&mut self, budget: &mut Budget) {
        // The span of the last block of a stack and size.
        let mut last_span: FxHashMap<(StackId, u64), usize> = FxHashMap::default();
        for blocks in self.trace.blocks.chunks(STRIDE) {
            budget.charge(blocks.len() as u64 * COST_PER_BLOCK).await;
            for block in blocks {
                let Some(alloc) = block.alloc_event() else { continue };
                let hints = self.hints[block.stack.0 as usize];
                if self.phases.of_alloc(alloc.0, hints) != Some(Phase::Optimizer) {
                    continue;
                }
                let Some(span) = self.phases.span(alloc.0) else { continue };
                let end = self.phases.spans[span].end;
                if free_event(block, self.trace.slots()).is_none_or(|free| free >= end) {
                    *self.replacements.entry((span, block.bytes.0)).or_default() += 1;
                    let key = (block.stack, block.bytes.0);
                    let [most, last] = self.kept_by_updates.entry(key).or_default();
                    if last_span.insert(key, span).is_some_and(|before| before != span) {
                        *most = (*last).max(*most);
                        *last = 0;
                    }
                    *last += 1;
                }
            }
        }
    }

    fn block(&mut self, index: u32) -> Verdict {
        let block = &self.trace.blocks[index as usize];
        let has_alloc_stack = !block.has_stack_of_free() || self.phases.frees_repeat_stacks;
        let hints = if has_alloc_stack {
            self.hints[block.stack.0 as usize]
        } else {
            StackHints::default()
        };
        if let Some(category) = hints.user_rule {
            return Verdict::Final(Guess::stated(category));
        }
        match block.alloc_event() {
            Some(event) => {
                self.profiled(event.0).unwrap_or_else(|| self.allocated(index, event.0, hints))
            }
            None if block.origin() == Origin::Workspace => {
                Verdict::Final(Guess::stated(Category::Workspace))
            }
            // An autograd graph held it, and allocates nothing when it drops its tensors.
            None if self.hints[block.stack.0 as usize].releases_graph => {
                verdict(Category::Activation)
            }
            None if block.origin() == Origin::LostAlloc && !hints.has_frames => {
                verdict(Category::Unknown)
            }
            None if hints.has_frames => self.preexisting_with_stack(block, hints),
            None => self.preexisting(block),
        }
    }

    /// The category that the file records for an alloc. Snapshots made from a profile have one
    /// (`torch.profiler._memory_profiler.Category`).
    fn profiled(&self, event: u32) -> Option<Verdict> {
        let row = self.trace.device.events.start + event;
        let name = Events::sparse(&self.snapshot.events.category, row)?;
        let category = match &*self.snapshot.text(name).to_ascii_lowercase() {
            "autograd_detail" => Category::Temporary,
            name => Category::parse(name).filter(|&c| c != Category::Unknown)?,
        };
        Some(Verdict::Final(Guess::stated(category)))
    }

    /// Judges a block that was allocated in the window.
    fn allocated(&self, index: u32, alloc: u32, hints: StackHints) -> Verdict {
        let block = &self.trace.blocks[index as usize];
        let free = free_event(block, self.trace.slots());
        let phase = self.phases.of_alloc(alloc, hints);
        if let Some(category) = hints.built_in_rule {
            match category {
                Category::Workspace | Category::Input => return verdict(category),
                Category::Cache => {
                    return match free {
                        // Training keeps the keys and values of its batch for backward.
                        _ if self.reaches_backward(alloc, free) => self.forward(block, alloc, free),
                        Some(free) if free - alloc <= MAX_OPERATION_EVENTS => {
                            verdict(Category::Temporary)
                        }
                        _ => verdict(category),
                    };
                }
                _ if hints.is_gradient_buffer => return verdict(Category::Gradient),
                Category::Communication if hints.is_bucket => return Verdict::Bucket,
                Category::Communication => return self.communication(alloc, free, hints),
                Category::OptimizerState => {
                    let end = self.phases.period_end(alloc).unwrap_or(u32::MAX);
                    let is_brief = free.is_some_and(|free| free < end);
                    return if is_brief { verdict(Category::Temporary) } else { verdict(category) };
                }
                Category::Parameter | Category::Buffer => {
                    return self.model(block, alloc, free, hints);
                }
                _ => {}
            }
        }
        if self.workspaces.contains(index) {
            return verdict(Category::Workspace);
        }
        if self.is_cache(block, alloc, free, phase, hints) {
            return verdict(Category::Cache);
        }
        match phase {
            Some(Phase::Forward | Phase::Evaluation) => self.forward(block, alloc, free),
            // Activation checkpointing recomputes activations in backward.
            Some(Phase::Backward)
                if hints.runs_module && hints.built_in_rule == Some(Category::Activation) =>
            {
                let is_short = free.is_some_and(|free| free - alloc <= MAX_OPERATION_EVENTS);
                if is_short { verdict(Category::Temporary) } else { verdict(Category::Activation) }
            }
            Some(Phase::Backward) => self.backward(block, alloc, free, hints),
            Some(Phase::Optimizer) => self.update(block, alloc, free),
            Some(Phase::Other) => self.program(block, alloc, free),
            // Without any stacks, allocations outside of named ranges count as the program's.
            None if !self.phases.allocs_have_stacks => self.program(block, alloc, free),
            None => verdict(Category::Unknown),
        }
    }

    /// Judges a block that a forward pass allocated.
    fn forward(&self, block: &Block, alloc: u32, free: Option<u32>) -> Verdict {
        let backward = self.phases.next_after(Phase::Backward, alloc);
        match (backward, free) {
            (Some(backward), Some(free)) if free < backward => verdict(Category::Temporary),
            (Some(backward), None) => {
                // A cache outlives two more backward passes, and its call site allocates nothing
                // that is freed.
                let forward = self.phases.next_after(Phase::Forward, backward);
                let second =
                    forward.and_then(|forward| self.phases.next_after(Phase::Backward, forward));
                let group = &self.groups[block.stack.0 as usize];
                if second.is_some()
                    && !group.has_brief
                    && !group.keeps_later
                    && self.phases.last_before(Phase::Backward, alloc).is_none()
                {
                    verdict(Category::Buffer)
                } else {
                    verdict(Category::Activation)
                }
            }
            (Some(_), Some(_)) => verdict(Category::Activation),
            (None, Some(free)) if free - alloc <= MAX_OPERATION_EVENTS => {
                verdict(Category::Temporary)
            }
            (None, _) => verdict(Category::Activation),
        }
    }

    /// Judges a block that a backward pass allocated.
    fn backward(&self, block: &Block, alloc: u32, free: Option<u32>, hints: StackHints) -> Verdict {
        let end = self.phases.period_end(alloc);
        match free {
            Some(free) if end.is_none_or(|end| free < end) => {
                let last_alloc = self.phases.last_before(Phase::Backward, end.unwrap_or(u32::MAX));
                let outlives_backward = last_alloc.is_some_and(|last| last < free);
                if outlives_backward && !self.phases.frees_have_own_stacks {
                    Verdict::BackwardTail { is_long: free - alloc > MAX_OPERATION_EVENTS }
                } else {
                    verdict(Category::Temporary)
                }
            }
            // The gradient of the loss itself. It is allocated where the program calls backward.
            _ if hints.has_frames && !hints.is_engine && block.bytes.0 <= 8 => {
                verdict(Category::Temporary)
            }
            _ => verdict(Category::Gradient),
        }
    }

    /// Judges a block that an optimizer allocated.
    fn update(&self, block: &Block, alloc: u32, free: Option<u32>) -> Verdict {
        let end = self.phases.period_end(alloc);
        match free {
            Some(free) if end.is_none_or(|end| free < end) => verdict(Category::Temporary),
            Some(free) => match self.phases.next_after(Phase::Backward, alloc) {
                Some(backward) if backward < free => verdict(Category::OptimizerState),
                _ => verdict(Category::Temporary),
            },
            // The recording ends within the step. Other blocks of the call site show whether it
            // keeps its blocks.
            None if self.groups[block.stack.0 as usize].has_brief && end.is_none() => {
                let key = (block.stack, block.bytes.0);
                let [most, last] = self.kept_by_updates.get(&key).copied().unwrap_or_default();
                // It keeps as many as in each step before: state that is replaced.
                if (1..=most).contains(&last) {
                    verdict(Category::OptimizerState)
                } else {
                    verdict(Category::Temporary)
                }
            }
            None => verdict(Category::OptimizerState),
        }
    }

    /// Judges a block that the program itself allocated, outside of all phases.
    fn program(&self, block: &Block, alloc: u32, free: Option<u32>) -> Verdict {
        let phases = self.phases;
        if !phases.occurs(Phase::Forward) && !phases.occurs(Phase::Backward) {
            return verdict(Category::Unknown);
        }
        let forward = phases.next_after(Phase::Forward, alloc);
        let backward = phases.next_after(Phase::Backward, alloc);
        let boundary = phases
            .last_before(Phase::Backward, alloc)
            .max(phases.last_before(Phase::Optimizer, alloc));
        let before_forward = phases
            .last_before(Phase::Forward, alloc)
            .is_none_or(|f| boundary.is_some_and(|b| b > f));
        let group = &self.groups[block.stack.0 as usize];
        let hints = self.hints[block.stack.0 as usize];
        let is_brief = free.is_some_and(|free| free - alloc <= MAX_OPERATION_EVENTS);
        // A thread beside the one that trains prepares batches.
        if hints.is_worker_thread && phases.allocs_have_stacks && !is_brief {
            return verdict(Category::Input);
        }
        // A block feeds the next forward pass if it is allocated between two forward passes,
        // without a backward pass in between.
        let feeds = before_forward
            || forward.is_some() && backward.is_none_or(|b| forward.is_some_and(|f| f < b));
        if group.accumulates || group.grows && group.has_batch_beside {
            if group.is_queue && group.leads && feeds && !group.has_batch_beside {
                // The oldest goes first: a queue of batches.
                return verdict(Category::Input);
            }
            // No batch is kept that long. Where a batch comes beside, the program keeps outputs.
            return if !feeds || group.has_batch_beside {
                verdict(Category::Activation)
            } else {
                Verdict::Final(Guess::either(Category::Activation, Category::Input))
            };
        }
        if self.is_gradient_copy(alloc, free) {
            return Verdict::GradientCopy(self.between_phases(feeds, alloc, free));
        }
        if free.is_none()
            && (backward.is_some() || forward.is_some() && !phases.occurs(Phase::Backward))
            && boundary.is_none()
            && before_forward
        {
            return Verdict::ProgramTensor;
        }
        let guess = self.between_phases(feeds, alloc, free);
        let is_output = || self.outputs.is_output(&self.groups, block, alloc, phases);
        Verdict::Final(match guess.category {
            Category::Input if !is_brief && is_output() => Guess::new(Category::Activation),
            // Nothing of this line ever entered a forward pass.
            Category::Input if forward.is_none() && !group.feeds && phases.allocs_have_stacks => {
                Guess::either(Category::Activation, Category::Input)
            }
            // No batch is larger than all that a forward pass makes of it, unless each step starts
            // with one.
            Category::Input
                if !group.leads
                    && phases.allocs_have_stacks
                    && block.bytes.0 > self.outputs.largest() =>
            {
                Guess::either(Category::Activation, Category::Input)
            }
            // A sum of many passes is made before the first of them.
            Category::Input
                if block.bytes.0 > self.outputs.largest()
                    && self.outlives_passes(alloc, free)
                    && self.has_smaller_input_beside(block, alloc) =>
            {
                Guess::new(Category::Activation)
            }
            _ => guess,
        })
    }

    /// Whether a block lives through several forward passes without a backward pass.
    fn outlives_passes(&self, alloc: u32, free: Option<u32>) -> bool {
        let end = free.unwrap_or(self.trace.slots());
        let is_inference =
            self.phases.next_after(Phase::Backward, alloc).is_none_or(|backward| backward > end);
        is_inference && self.phases.forward_periods(alloc, end) >= MIN_PASSES
    }

    /// Whether the program allocated a smaller block just before, which lives through the next
    /// forward pass as well.
    fn has_smaller_input_beside(&self, block: &Block, alloc: u32) -> bool {
        let Some(forward) = self.phases.next_after(Phase::Forward, alloc) else { return false };
        let next = self.trace.blocks.partition_point(|block| block.enters <= alloc);
        let before = self.trace.blocks[..next].iter().rev().take(MAX_BESIDE);
        before.into_iter().any(|other| {
            other.bytes < block.bytes
                && other.bytes.0 >= MIN_BESIDE_BYTES
                && other.alloc_event().is_some_and(|event| {
                    let hints = self.hints[other.stack.0 as usize];
                    self.phases.of_alloc(event.0, hints) == Some(Phase::Other)
                        && self.phases.last_before(Phase::Forward, event.0)
                            == self.phases.last_before(Phase::Forward, alloc)
                })
                && free_event(other, self.trace.slots()).is_none_or(|free| free > forward)
        })
    }

    /// Judges a block of the program by the phase that follows.
    fn between_phases(&self, feeds: bool, alloc: u32, free: Option<u32>) -> Guess {
        let phases = self.phases;
        let forward = phases.next_after(Phase::Forward, alloc);
        let backward = phases.next_after(Phase::Backward, alloc);
        let lives_until = |event: u32| free.is_none_or(|free| free >= event);
        if self.is_saved_in_forward(alloc, free) {
            return Guess::new(Category::Activation);
        }
        match (forward, backward) {
            (Some(forward), _) if feeds && lives_until(forward) => Guess::new(Category::Input),
            (None, _) if feeds && free.is_none() => Guess::new(Category::Input),
            // A training loop without modules: its forward pass is the program's own code.
            (None, Some(backward)) if !phases.occurs(Phase::Forward) && lives_until(backward) => {
                Guess::new(Category::Activation)
            }
            (_, Some(backward)) if !feeds && lives_until(backward) => {
                Guess::new(Category::Activation)
            }
            (_, None) if !feeds && free.is_none() => Guess::new(Category::Activation),
            _ => Guess::new(Category::Temporary),
        }
    }

    /// Whether inference keeps the block between forward passes: it replaces smaller blocks, its
    /// code calls it a cache, or it is a pool of blocks from before the first forward pass.
    fn is_cache(
        &self,
        block: &Block,
        alloc: u32,
        free: Option<u32>,
        phase: Option<Phase>,
        hints: StackHints,
    ) -> bool {
        let phases = self.phases;
        let is_brief = free.is_some_and(|free| free - alloc <= MAX_OPERATION_EVENTS);
        if is_brief || self.reaches_backward(alloc, free) || !phases.occurs(Phase::Forward) {
            return false;
        }
        let group = &self.groups[block.stack.0 as usize];
        let is_training = phases.occurs(Phase::Backward) || phases.occurs(Phase::Optimizer);
        match phase {
            Some(Phase::Forward | Phase::Other) if group.grows_in_pairs => true,
            Some(Phase::Forward) if group.grows_in_turn => true,
            Some(Phase::Forward | Phase::Other) if hints.is_cache && !is_training => true,
            Some(Phase::Other) => {
                group.is_pool
                    && !is_training
                    && phases.last_before(Phase::Forward, alloc).is_none()
                    && phases.next_after(Phase::Forward, alloc).is_some()
            }
            _ => false,
        }
    }

    /// Whether a backward pass starts while a block lives.
    fn reaches_backward(&self, alloc: u32, free: Option<u32>) -> bool {
        let backward = self.phases.next_after(Phase::Backward, alloc);
        backward.is_some_and(|backward| free.is_none_or(|free| free > backward))
    }

    /// Whether a block is allocated after a backward pass and lives until the optimizer.
    fn is_gradient_copy(&self, alloc: u32, free: Option<u32>) -> bool {
        let phases = self.phases;
        let after_backward = phases.last_before(Phase::Backward, alloc).is_some_and(|backward| {
            phases.last_before(Phase::Forward, alloc).is_none_or(|f| f < backward)
        });
        let forward = phases.next_after(Phase::Forward, alloc).unwrap_or(u32::MAX);
        after_backward
            && phases
                .next_after(Phase::Optimizer, alloc)
                .is_some_and(|o| o < forward && free.is_none_or(|free| free >= o))
    }

    /// Whether code inside a forward pass saves the block for backward, which frees it.
    fn is_saved_in_forward(&self, alloc: u32, free: Option<u32>) -> bool {
        let (Some(span), Some(free)) = (self.phases.span(alloc), free) else { return false };
        let spans = &self.phases.spans[span..];
        // `zero_grad` can stand between the two passes.
        let skipped = usize::from(spans.get(1).is_some_and(|s| s.phase == Phase::Optimizer));
        let backward = spans.get(1 + skipped);
        spans[0].phase == Phase::Forward
            && backward.is_some_and(|span| {
                span.phase == Phase::Backward && (span.begin..span.end).contains(&free)
            })
    }

    /// Judges a block that code for building or loading a model allocated.
    fn model(&self, block: &Block, alloc: u32, free: Option<u32>, hints: StackHints) -> Verdict {
        let category = hints.built_in_rule.unwrap_or_default();
        if hints.is_module_init && self.phases.last_before(Phase::Forward, alloc).is_some() {
            // Any object can have an `__init__`. An object built during training is no model.
            return self.program(block, alloc, free);
        }
        let Some(free) = free else {
            return if hints.is_module_init { Verdict::ModuleTensor } else { verdict(category) };
        };
        let is_used =
            self.phases.next_after(Phase::Forward, alloc).is_some_and(|forward| forward <= free);
        match (is_used, free - alloc <= MAX_OPERATION_EVENTS) {
            (true, _) if hints.is_module_init => Verdict::ModuleTensor,
            (true, _) => verdict(category),
            (false, true) => verdict(Category::Temporary),
            // The model was converted, sharded or dropped before it ran.
            (false, false) => {
                verdict(if block.bytes.0 == 0 { Category::Unknown } else { category })
            }
        }
    }

    /// Judges a block that a collective allocated.
    fn communication(&self, alloc: u32, free: Option<u32>, hints: StackHints) -> Verdict {
        let is_backward = hints.is_engine || self.phases.current(alloc) == Some(Phase::Backward);
        let update = self.phases.next_after(Phase::Optimizer, alloc);
        // FSDP reduces gradients into a separate buffer, which then becomes the gradient.
        if is_backward && update.is_some_and(|update| free.is_none_or(|free| free >= update))
            || is_backward && hints.is_engine && update.is_none() && free.is_none()
        {
            return verdict(Category::Gradient);
        }
        verdict(Category::Communication)
    }

    /// Judges a block from before the window whose stack the allocator recorded.
    fn preexisting_with_stack(&self, block: &Block, hints: StackHints) -> Verdict {
        let free = free_event(block, self.trace.slots());
        let Some(category) = hints.built_in_rule else {
            return match free {
                None if hints.is_cache && !self.before.is_training => verdict(Category::Cache),
                Some(_) => verdict(Category::Input),
                None => Verdict::ProgramTensor,
            };
        };
        let key = (block.stack, block.bytes.0);
        match category {
            _ if hints.is_gradient_buffer => verdict(Category::Gradient),
            Category::Communication if hints.is_bucket => Verdict::Bucket,
            Category::Parameter if hints.is_module_init => Verdict::ModuleTensor,
            Category::Temporary if free.is_some_and(|free| self.is_first_update(free)) => {
                verdict(Category::Temporary)
            }
            // A block of an optimizer's step that is live at the start of the recording is
            // optimizer state.
            Category::Temporary => verdict(Category::OptimizerState),
            Category::Activation if self.before.is_cache(key, hints) => verdict(Category::Cache),
            Category::Activation if free.is_none() && self.before.is_workspace(key) => {
                verdict(Category::Workspace)
            }
            Category::Activation => verdict(category),
            _ => verdict(category),
        }
    }

    /// Judges a block from before the window without a stack of its own. The only evidence is the
    /// phase of its free.
    fn preexisting(&mut self, block: &Block) -> Verdict {
        let Some(free) = free_event(block, self.trace.slots()) else {
            return Verdict::Preexisting;
        };
        let hints = self.hints[block.stack.0 as usize];
        let phase = if hints.has_frames { hints.phase() } else { self.phases.current(free) };
        match phase {
            Some(Phase::Backward | Phase::Forward) => verdict(Category::Activation),
            // The window starts within an optimizer's step, which frees what it allocated.
            Some(Phase::Optimizer) if !hints.zeroes_gradients && self.is_first_update(free) => {
                if hints.has_frames {
                    verdict(Category::Temporary)
                } else {
                    Verdict::Final(Guess::either(Category::Gradient, Category::Temporary))
                }
            }
            Some(Phase::Optimizer) => {
                // An optimizer that replaces its state allocates a block of that size and keeps it.
                let span = self.phases.span(free).unwrap_or_default();
                match self.replacements.get_mut(&(span, block.bytes.0)) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        verdict(Category::OptimizerState)
                    }
                    _ => verdict(Category::Gradient),
                }
            }
            _ => Verdict::Preexisting,
        }
    }

    /// Whether an event is within an optimizer's step that began before the window.
    fn is_first_update(&self, event: u32) -> bool {
        [Phase::Forward, Phase::Backward]
            .into_iter()
            .all(|phase| self.phases.last_before(phase, event).is_none())
    }
}
