//! Evidence from a block's life: the phase that allocated it, and the phases that it outlived.
//!
//! Long because each phase has its own judgment, and all of them share the facts of the window.

use super::before::Before;
use super::groups::{self, Group};
use super::outputs::Outputs;
use super::stacks::{Fact, StackHints};
use super::updates::Updates;
use super::window::{MIN_BYTES, Window};
use super::workspace::Workspaces;
use super::{Category, Guess, Phase};
use vramscope_snapshot::{Events, FrameId};
use vramscope_trace::slicing::{Budget, strides};
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
    GradientCopy(Category),
    /// From before the window, and without evidence of its allocation.
    Preexisting,
}

impl From<Category> for Verdict {
    fn from(category: Category) -> Self {
        Self::Final(Guess::new(category))
    }
}

impl Verdict {
    /// Equal evidence for two categories.
    fn either(first: Category, second: Category) -> Self {
        Self::Final(Guess::either(first, second))
    }
}

/// A sum of many forward passes lives through at least this many: two are a batch and the next one.
/// Half or double of it changes neither of the two recordings that read it.
const MIN_PASSES: usize = 3;

/// A batch is among this many blocks before it, which bounds the search.
const MAX_BESIDE: usize = 32;

/// Cost of judging a block by its life, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 12;

struct Judge<'a> {
    window: Window<'a>,
    /// By stack.
    groups: Vec<Group>,
    workspaces: Workspaces,
    /// The states of optimizers.
    updates: Updates,
    /// The line of the last request that failed.
    failed_at: Option<FrameId>,
    /// What forward passes put out.
    outputs: Outputs,
    before: Before,
}

/// A block that the window allocated, with its allocation and free.
#[derive(Clone, Copy)]
struct Life<'a> {
    block: &'a Block,
    alloc: u32,
    /// `None` if the block is live at the end.
    free: Option<u32>,
    /// Whether it is a temporary of one operation.
    is_brief: bool,
    hints: StackHints,
}

impl Life<'_> {
    /// Whether the block is live when an event happens, or that event frees it.
    fn reaches(&self, event: u32) -> bool {
        self.free.is_none_or(|free| free >= event)
    }
}

/// Judges every block by its own stack and life.
pub(super) async fn verdicts(window: Window<'_>, budget: &mut Budget) -> Vec<Verdict> {
    let mut judge = Judge {
        window,
        groups: groups::groups(window, budget).await,
        workspaces: Workspaces::new(window, budget).await,
        updates: Updates::new(window, budget).await,
        failed_at: window.trace.ooms.last().and_then(|oom| window.site_of_event(oom.event.0)),
        outputs: Outputs::new(window, budget).await,
        before: Before::new(window, budget).await,
    };
    let mut verdicts = Vec::with_capacity(window.trace.blocks.len());
    for part in strides(window.trace.blocks.len()) {
        budget.charge(part.len() as u64 * COST_PER_BLOCK).await;
        verdicts.extend(part.map(|i| judge.block(i as u32)));
    }
    verdicts
}

impl Judge<'_> {
    fn block(&mut self, index: u32) -> Verdict {
        let window = self.window;
        let block = window.block(index);
        let has_alloc_stack = !block.has_stack_of_free() || window.phases.frees_repeat_stacks;
        let hints = if has_alloc_stack { window.stack(block) } else { StackHints::default() };
        if let Some(category) = hints.user_rule {
            return Verdict::Final(Guess::stated(category));
        }
        if let Some(event) = block.alloc_event() {
            let (alloc, free, is_brief) = (event.0, window.free(block), window.is_brief(block));
            let life = Life { block, alloc, free, is_brief, hints };
            return self.profiled(alloc).unwrap_or_else(|| self.allocated(index, life));
        }
        match block.origin() {
            Origin::Workspace => Verdict::Final(Guess::stated(Category::Workspace)),
            // An autograd graph held it, and allocates nothing when it drops its tensors.
            _ if window.stack(block).has(Fact::ReleasesGraph) => Category::Activation.into(),
            Origin::LostAlloc if !hints.has_frames => Category::Unknown.into(),
            _ if hints.has_frames => self.preexisting_with_stack(block, hints),
            _ => self.preexisting(block),
        }
    }

    /// The category that the file records for an alloc. Snapshots made from a profile have one
    /// (`torch.profiler._memory_profiler.Category`).
    fn profiled(&self, event: u32) -> Option<Verdict> {
        let Window { snapshot, trace, .. } = self.window;
        let row = trace.device.events.start + event;
        let name = Events::sparse(&snapshot.events.category, row)?;
        let category = match &*snapshot.text(name).to_ascii_lowercase() {
            "autograd_detail" => Category::Temporary,
            name => Category::parse(name).filter(|&c| c != Category::Unknown)?,
        };
        Some(Verdict::Final(Guess::stated(category)))
    }

    /// Judges a block that was allocated in the window.
    fn allocated(&self, index: u32, life: Life<'_>) -> Verdict {
        let Life { alloc, hints, .. } = life;
        let phases = self.window.phases;
        match hints.built_in_rule {
            Some(category @ (Category::Workspace | Category::Input)) => return category.into(),
            // Training keeps the keys and values of its batch for backward.
            Some(Category::Cache) if self.reaches_backward(life) => return self.forward(life),
            Some(Category::Cache) if life.is_brief => return Category::Temporary.into(),
            Some(Category::Cache) => return Category::Cache.into(),
            Some(_) if hints.is_gradient_buffer => return Category::Gradient.into(),
            Some(Category::Communication) if hints.is_bucket => return Verdict::Bucket,
            Some(Category::Communication) => return self.communication(life).into(),
            Some(Category::OptimizerState) => {
                let end = phases.period_end(alloc).unwrap_or(u32::MAX);
                let is_kept = life.reaches(end);
                return if is_kept { Category::OptimizerState } else { Category::Temporary }.into();
            }
            Some(category @ (Category::Parameter | Category::Buffer)) => {
                return self.model(life, category);
            }
            _ => {}
        }
        if self.workspaces.contains(index) {
            return Category::Workspace.into();
        }
        let phase = phases.of_alloc(alloc, hints);
        if self.is_cache(life, phase) {
            return Category::Cache.into();
        }
        match phase {
            Some(Phase::Forward | Phase::Evaluation) => self.forward(life),
            // Activation checkpointing recomputes activations in backward.
            Some(Phase::Backward)
                if hints.has(Fact::RunsModule)
                    && hints.built_in_rule == Some(Category::Activation) =>
            {
                if life.is_brief { Category::Temporary } else { Category::Activation }.into()
            }
            Some(Phase::Backward) => self.backward(life),
            Some(Phase::Optimizer) => self.update(life).into(),
            Some(Phase::Other) => self.program(life),
            // Without any stacks, allocations outside of named ranges count as the program's.
            None if !phases.allocs_have_stacks => self.program(life),
            None => Category::Unknown.into(),
        }
    }

    fn group(&self, block: &Block) -> &Group {
        &self.groups[block.stack.0 as usize]
    }

    /// Judges a block that a forward pass allocated.
    fn forward(&self, Life { block, alloc, free, is_brief, .. }: Life<'_>) -> Verdict {
        let phases = self.window.phases;
        let category = match (phases.next_after(Phase::Backward, alloc), free) {
            (Some(backward), Some(free)) if free < backward => Category::Temporary,
            (Some(backward), None) => {
                // A cache outlives two more backward passes, and its call site allocates nothing
                // that is freed.
                let forward = phases.next_after(Phase::Forward, backward);
                let second = forward.and_then(|f| phases.next_after(Phase::Backward, f));
                let group = self.group(block);
                let is_kept = second.is_some()
                    && !group.has_brief
                    && !group.keeps_later
                    && phases.last_before(Phase::Backward, alloc).is_none();
                if is_kept { Category::Buffer } else { Category::Activation }
            }
            (None, _) if is_brief => Category::Temporary,
            // No backward pass can need what the pass itself frees.
            (None, Some(free)) if self.frees_itself(alloc, free) => Category::Temporary,
            _ => Category::Activation,
        };
        category.into()
    }

    /// Whether a forward pass frees a block that it allocated. What an exception drops does not
    /// count: a graph may have held it.
    fn frees_itself(&self, alloc: u32, free: u32) -> bool {
        let Window { phases, trace, .. } = self.window;
        let next = trace.ooms.partition_point(|oom| oom.event.0 < alloc);
        let fails = trace.ooms.get(next).is_some_and(|oom| oom.event.0 < free);
        !fails && phases.period_end(alloc).is_none_or(|end| free < end)
    }

    /// Judges a block that a backward pass allocated.
    fn backward(&self, life: Life<'_>) -> Verdict {
        let phases = self.window.phases;
        let end = phases.period_end(life.alloc);
        match life.free {
            Some(free) if end.is_none_or(|end| free < end) => {
                let last_alloc = phases.last_before(Phase::Backward, end.unwrap_or(u32::MAX));
                let outlives_backward = last_alloc.is_some_and(|last| last < free);
                if outlives_backward && !phases.frees_have_own_stacks {
                    Verdict::BackwardTail { is_long: !life.is_brief }
                } else {
                    Category::Temporary.into()
                }
            }
            // The gradient of the loss itself. It is allocated where the program calls backward.
            _ if life.hints.has_frames && !life.hints.is_engine && life.block.bytes.0 <= 8 => {
                Category::Temporary.into()
            }
            _ => Category::Gradient.into(),
        }
    }

    /// Judges a block that an optimizer allocated.
    fn update(&self, Life { block, alloc, free, .. }: Life<'_>) -> Category {
        let phases = self.window.phases;
        let end = phases.period_end(alloc);
        let is_state = match free {
            Some(free) => {
                let backward = phases.next_after(Phase::Backward, alloc);
                end.is_some_and(|end| free >= end) && backward.is_some_and(|b| b < free)
            }
            // The recording ends within the step. Other blocks of the call site show whether it
            // keeps its blocks. So does a function of the optimizer that makes all its states.
            None if end.is_none()
                && (self.group(block).has_brief
                    || self.updates.makes_states_elsewhere(self.window, block, alloc)) =>
            {
                self.updates.are_replaced(block)
            }
            None => true,
        };
        if is_state { Category::OptimizerState } else { Category::Temporary }
    }

    /// Judges a block that the program itself allocated, outside of all phases.
    fn program(&self, life: Life<'_>) -> Verdict {
        let Life { block, alloc, free, is_brief, .. } = life;
        let phases = self.window.phases;
        if !phases.occurs(Phase::Forward) && !phases.occurs(Phase::Backward) {
            return Category::Unknown.into();
        }
        let forward = phases.next_after(Phase::Forward, alloc);
        let backward = phases.next_after(Phase::Backward, alloc);
        let boundary = phases
            .last_before(Phase::Backward, alloc)
            .max(phases.last_before(Phase::Optimizer, alloc));
        let before_forward = phases
            .last_before(Phase::Forward, alloc)
            .is_none_or(|f| boundary.is_some_and(|b| b > f));
        let group = self.group(block);
        // A thread beside the one that trains prepares batches.
        let is_worker = self.window.stack(block).is_worker_thread;
        if is_worker && phases.allocs_have_stacks && !is_brief {
            return Category::Input.into();
        }
        // A block feeds the next forward pass if it is allocated between two forward passes,
        // without a backward pass in between.
        let feeds = before_forward
            || forward.is_some() && backward.is_none_or(|b| forward.is_some_and(|f| f < b));
        if group.accumulates || group.grows && group.has_batch_beside {
            // Before the first pass there is no output. A queue drops the oldest batch first.
            if group.leads && feeds && (group.is_queue || group.has_batch_beside) {
                return Category::Input.into();
            }
            // No batch is kept that long. Where a batch comes beside, the program keeps outputs.
            return if !feeds || group.has_batch_beside {
                Category::Activation.into()
            } else {
                Verdict::either(Category::Activation, Category::Input)
            };
        }
        let category = self.between_phases(feeds, life);
        if self.is_gradient_copy(life) {
            return Verdict::GradientCopy(category);
        }
        if free.is_none()
            && (backward.is_some() || forward.is_some() && !phases.occurs(Phase::Backward))
            && boundary.is_none()
            && before_forward
        {
            return Verdict::ProgramTensor;
        }
        if category != Category::Input {
            return category.into();
        }
        if !is_brief && self.outputs.is_output(group, block, alloc, phases) {
            return Category::Activation.into();
        }
        let is_large = block.bytes.0 > self.outputs.largest();
        // Nothing of this line ever entered a forward pass.
        let never_feeds = forward.is_none() && !group.feeds;
        // No batch is larger than all that a forward pass makes of it, unless each step starts
        // with one.
        if phases.allocs_have_stacks && (never_feeds || !group.leads && is_large) {
            return Verdict::either(Category::Activation, Category::Input);
        }
        // A sum of many passes is made before the first of them.
        let is_sum =
            is_large && self.outlives_passes(life) && self.has_smaller_input_beside(block, alloc);
        if is_sum { Category::Activation } else { Category::Input }.into()
    }

    /// Whether a block lives through several forward passes without a backward pass.
    fn outlives_passes(&self, Life { alloc, free, .. }: Life<'_>) -> bool {
        let phases = self.window.phases;
        let end = free.unwrap_or(self.window.trace.slots());
        phases.next_after(Phase::Backward, alloc).is_none_or(|backward| backward > end)
            && phases.forward_periods(alloc, end) >= MIN_PASSES
    }

    /// Whether the program allocated a smaller block just before, which lives through the next
    /// forward pass as well.
    fn has_smaller_input_beside(&self, block: &Block, alloc: u32) -> bool {
        let Window { phases, trace, .. } = self.window;
        let Some(forward) = phases.next_after(Phase::Forward, alloc) else { return false };
        let next = trace.blocks.partition_point(|block| block.enters <= alloc);
        trace.blocks[..next].iter().rev().take(MAX_BESIDE).any(|other| {
            other.bytes < block.bytes
                && other.bytes.0 >= MIN_BYTES
                && self.window.phase(other) == Some(Phase::Other)
                && other.alloc_event().is_some_and(|event| {
                    phases.last_before(Phase::Forward, event.0)
                        == phases.last_before(Phase::Forward, alloc)
                })
                && self.window.outlives(other, forward)
        })
    }

    /// Judges a block of the program by the phase that follows.
    fn between_phases(&self, feeds: bool, life: Life<'_>) -> Category {
        let phases = self.window.phases;
        let forward = phases.next_after(Phase::Forward, life.alloc);
        let backward = phases.next_after(Phase::Backward, life.alloc);
        if self.is_saved_in_forward(life) {
            return Category::Activation;
        }
        match (forward, backward) {
            (Some(forward), _) if feeds && life.reaches(forward) => Category::Input,
            (None, _) if feeds && life.free.is_none() => Category::Input,
            // A training loop without modules: its forward pass is the program's own code.
            (_, Some(backward))
                if life.reaches(backward) && (!feeds || !phases.occurs(Phase::Forward)) =>
            {
                Category::Activation
            }
            // An operand of the request that failed: its line had no time to free it.
            (_, None) if !feeds && life.free.is_none() && life.hints.site != self.failed_at => {
                Category::Activation
            }
            _ => Category::Temporary,
        }
    }

    /// Whether inference keeps the block between forward passes: it replaces smaller blocks, its
    /// code calls it a cache, or it is a pool of blocks from before the first forward pass.
    fn is_cache(&self, life: Life<'_>, phase: Option<Phase>) -> bool {
        let phases = self.window.phases;
        if life.is_brief || self.reaches_backward(life) || !phases.occurs(Phase::Forward) {
            return false;
        }
        let group = self.group(life.block);
        let is_training = phases.occurs(Phase::Backward) || phases.occurs(Phase::Optimizer);
        match phase {
            Some(Phase::Forward | Phase::Other) if group.grows_in_pairs => true,
            Some(Phase::Forward) if group.grows_in_turn => true,
            Some(Phase::Forward | Phase::Other) if life.hints.is_cache && !is_training => {
                group.grows || group.is_of_layers || self.outlives_passes(life)
            }
            Some(Phase::Other) => {
                group.is_pool
                    && !is_training
                    && phases.last_before(Phase::Forward, life.alloc).is_none()
                    && phases.next_after(Phase::Forward, life.alloc).is_some()
            }
            _ => false,
        }
    }

    /// Whether a backward pass starts while a block lives.
    fn reaches_backward(&self, life: Life<'_>) -> bool {
        let backward = self.window.phases.next_after(Phase::Backward, life.alloc);
        backward.is_some_and(|backward| life.reaches(backward + 1))
    }

    /// Whether a block is allocated after a backward pass and lives until the optimizer.
    fn is_gradient_copy(&self, life: Life<'_>) -> bool {
        let phases = self.window.phases;
        let backward = phases.last_before(Phase::Backward, life.alloc);
        let forward = phases.next_after(Phase::Forward, life.alloc).unwrap_or(u32::MAX);
        let update = phases.next_after(Phase::Optimizer, life.alloc);
        backward > phases.last_before(Phase::Forward, life.alloc)
            && update.is_some_and(|update| update < forward && life.reaches(update))
    }

    /// Whether code inside a forward pass saves the block for backward, which frees it.
    fn is_saved_in_forward(&self, Life { alloc, free, .. }: Life<'_>) -> bool {
        let phases = self.window.phases;
        let (Some(span), Some(free)) = (phases.span(alloc), free) else { return false };
        let spans = &phases.spans[span..];
        // `zero_grad` can stand between the two passes.
        let skipped = usize::from(spans.get(1).is_some_and(|s| s.phase == Phase::Optimizer));
        let backward = spans.get(1 + skipped);
        spans[0].phase == Phase::Forward
            && backward.is_some_and(|span| {
                span.phase == Phase::Backward && (span.begin..span.end).contains(&free)
            })
    }

    /// Judges a block that code for building or loading a model allocated.
    fn model(&self, life: Life<'_>, category: Category) -> Verdict {
        let Life { block, alloc, free, is_brief, hints } = life;
        let phases = self.window.phases;
        if hints.is_module_init && phases.last_before(Phase::Forward, alloc).is_some() {
            // Any object can have an `__init__`. An object built during training is no model.
            return self.program(life);
        }
        let forward = phases.next_after(Phase::Forward, alloc);
        let is_used = free.is_none_or(|free| forward.is_some_and(|forward| forward <= free));
        match (is_used, is_brief) {
            (true, _) if hints.is_module_init => Verdict::ModuleTensor,
            (false, true) => Category::Temporary.into(),
            // The model was converted, sharded or dropped before it ran.
            (false, false) if block.bytes.0 == 0 => Category::Unknown.into(),
            _ => category.into(),
        }
    }

    /// Judges a block that a collective allocated.
    fn communication(&self, life: Life<'_>) -> Category {
        let phases = self.window.phases;
        let is_engine = life.hints.is_engine;
        let is_backward = is_engine || phases.current(life.alloc) == Some(Phase::Backward);
        // FSDP reduces gradients into a separate buffer, which then becomes the gradient.
        let becomes_gradient = match phases.next_after(Phase::Optimizer, life.alloc) {
            Some(update) => is_backward && life.reaches(update),
            None => is_engine && life.free.is_none(),
        };
        if becomes_gradient { Category::Gradient } else { Category::Communication }
    }

    /// Judges a block from before the window whose stack the allocator recorded.
    fn preexisting_with_stack(&self, block: &Block, hints: StackHints) -> Verdict {
        let free = self.window.free(block);
        let Some(category) = hints.built_in_rule else {
            return match free {
                None if hints.is_cache && !self.before.is_training => Category::Cache.into(),
                Some(_) => Category::Input.into(),
                None => Verdict::ProgramTensor,
            };
        };
        let key = (block.stack, block.bytes.0);
        let category = match category {
            _ if hints.is_gradient_buffer => Category::Gradient,
            Category::Communication if hints.is_bucket => return Verdict::Bucket,
            Category::Parameter if hints.is_module_init => return Verdict::ModuleTensor,
            Category::Temporary if free.is_some_and(|free| self.is_first_update(free)) => category,
            // A block of an optimizer's step that is live at the start of the recording is
            // optimizer state.
            Category::Temporary => Category::OptimizerState,
            Category::Activation if self.before.is_cache(key, hints) => Category::Cache,
            Category::Activation if free.is_none() && self.before.is_workspace(key) => {
                Category::Workspace
            }
            _ => category,
        };
        category.into()
    }

    /// Judges a block from before the window without a stack of its own. The only evidence is the
    /// phase of its free.
    fn preexisting(&mut self, block: &Block) -> Verdict {
        let Window { phases, .. } = self.window;
        let Some(free) = self.window.free(block) else { return Verdict::Preexisting };
        let hints = self.window.stack(block);
        let phase = if hints.has_frames { hints.phase() } else { phases.current(free) };
        match phase {
            Some(Phase::Backward | Phase::Forward) => Category::Activation.into(),
            // The window starts within an optimizer's step, which frees what it allocated.
            Some(Phase::Optimizer)
                if !hints.has(Fact::ZeroesGradients) && self.is_first_update(free) =>
            {
                if hints.has_frames {
                    Category::Temporary.into()
                } else {
                    Verdict::either(Category::Gradient, Category::Temporary)
                }
            }
            Some(Phase::Optimizer) => {
                // An optimizer that replaces its state allocates a block of that size and keeps it.
                let span = phases.span(free).unwrap_or_default();
                let is_replaced = self.updates.take_replacement(span, block.bytes.0);
                if is_replaced { Category::OptimizerState } else { Category::Gradient }.into()
            }
            _ => Verdict::Preexisting,
        }
    }

    /// Whether an event is within an optimizer's step that began before the window.
    fn is_first_update(&self, event: u32) -> bool {
        let never = |phase| self.window.phases.last_before(phase, event).is_none();
        never(Phase::Forward) && never(Phase::Backward)
    }
}
