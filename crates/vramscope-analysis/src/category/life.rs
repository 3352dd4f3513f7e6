//! Evidence from a block's life: the phase that allocated it, and the phases that it outlived.

use super::phases::Phases;
use super::stacks::StackHints;
use super::{Category, Guess, Phase};
use crate::blocks::{Block, Origin};
use crate::slicing::{Budget, STRIDE};
use crate::trace::Trace;
use rustc_hash::FxHashSet;
use vramscope_snapshot::{Events, Snapshot, StackId};

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
    /// From before the window, and without evidence of its allocation.
    Preexisting,
}

/// Upper bound for the life of a temporary inside one operation, in events.
const MAX_OPERATION_EVENTS: u32 = 16;

/// Default workspace sizes in bytes: cuBLAS (`:4096:2:16:8`), cuBLAS from compute capability 9
/// (32 MiB), and cuBLASLt (`CublasHandlePool.cpp`, `CUDABlas.cpp`).
pub(super) const WORKSPACE_BYTES: [u64; 3] = [8_519_680, 33_554_432, 1 << 20];

/// Upper bound for the number of workspaces of one size. Handles and streams do not explain more
/// never-freed blocks.
pub(super) const MAX_WORKSPACES: u32 = 4;

/// Cost of judging a block by its life, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 12;

struct Judge<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    hints: &'a [StackHints],
    phases: &'a Phases,
    /// Whether blocks of each size in [`WORKSPACE_BYTES`] can be workspaces.
    can_be_workspace: [bool; 3],
    /// By stack: whether some of its blocks were freed in the period that allocated them.
    has_brief_blocks: Vec<bool>,
    /// By stack: whether some of its blocks were never freed.
    has_kept_blocks: Vec<bool>,
}

/// The event at which the program freed a block. `None` if the block is live at the end.
fn free_event(block: &Block, slots: u32) -> Option<u32> {
    let free = block.free_requested().or(block.free_completed()).map(|event| event.0);
    free.or((block.leaves < slots).then(|| block.leaves - 1))
}

fn verdict(category: Category, confidence: f32) -> Verdict {
    Verdict::Final(Guess { category, confidence })
}

/// Judges every block by its own stack and life.
pub(super) async fn verdicts(
    snapshot: &Snapshot,
    trace: &Trace,
    hints: &[StackHints],
    phases: &Phases,
    budget: &mut Budget,
) -> Vec<Verdict> {
    let slots = trace.slots();
    let mut judge = Judge {
        snapshot,
        trace,
        hints,
        phases,
        can_be_workspace: [true; 3],
        has_brief_blocks: vec![false; hints.len()],
        has_kept_blocks: vec![false; hints.len()],
    };
    // Number of never-freed blocks of each workspace size, and all sizes of model tensors.
    let mut counts = [0; 3];
    let mut model_sizes: FxHashSet<u64> = FxHashSet::default();
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64 * COST_PER_BLOCK).await;
        for block in blocks {
            let stack = block.stack.0 as usize;
            let category = hints[stack].built_in_rule.map(|guess| guess.category);
            if matches!(category, Some(Category::Parameter | Category::OptimizerState)) {
                model_sizes.insert(block.bytes.0);
            }
            let Some(alloc) = block.alloc_event() else { continue };
            match free_event(block, slots) {
                None => {
                    judge.has_kept_blocks[stack] = true;
                    if let Some(i) = WORKSPACE_BYTES.iter().position(|&w| w == block.bytes.0) {
                        counts[i] += 1;
                    }
                }
                Some(free) => {
                    let period_end = phases.period_end(alloc.0);
                    judge.has_brief_blocks[stack] |= period_end.is_none_or(|end| free < end);
                }
            }
        }
    }
    for (i, size) in WORKSPACE_BYTES.iter().enumerate() {
        judge.can_be_workspace[i] = counts[i] <= MAX_WORKSPACES && !model_sizes.contains(size);
    }
    let mut verdicts = Vec::with_capacity(trace.blocks.len());
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64 * COST_PER_BLOCK).await;
        verdicts.extend(blocks.iter().map(|block| judge.block(block)));
    }
    verdicts
}

impl Judge<'_> {
    fn block(&self, block: &Block) -> Verdict {
        let has_alloc_stack = !block.has_stack_of_free() || self.phases.frees_repeat_stacks;
        let hints = if has_alloc_stack {
            self.hints[block.stack.0 as usize]
        } else {
            StackHints::default()
        };
        if let Some(guess) = hints.user_rule {
            return Verdict::Final(guess);
        }
        match block.alloc_event() {
            Some(event) => {
                self.profiled(event.0).unwrap_or_else(|| self.allocated(block, event.0, hints))
            }
            None if block.origin() == Origin::LostAlloc && !hints.has_frames => {
                verdict(Category::Unknown, 0.0)
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
        Some(verdict(category, 0.99))
    }

    /// Whether a block has the size of a workspace, and can be one. Libraries allocate a workspace
    /// when a thread first needs it, and keep it. 1 MiB is a common size of other tensors too, so
    /// such a workspace must be allocated before the first step ends.
    fn is_workspace(&self, block: &Block) -> bool {
        let update = block
            .alloc_event()
            .and_then(|alloc| self.phases.last_before(Phase::Optimizer, alloc.0));
        let mut sizes = WORKSPACE_BYTES.iter().zip(self.can_be_workspace);
        sizes.any(|(&size, is_possible)| {
            is_possible && size == block.bytes.0 && (size > 1 << 20 || update.is_none())
        })
    }

    /// Judges a block that was allocated in the window.
    fn allocated(&self, block: &Block, alloc: u32, hints: StackHints) -> Verdict {
        let free = free_event(block, self.trace.slots());
        let phase = self.phases.of_alloc(alloc, hints);
        if let Some(Guess { category, confidence }) = hints.built_in_rule {
            match category {
                Category::Workspace | Category::Input => return verdict(category, confidence),
                Category::Communication => {
                    return self.communication(alloc, free, hints, confidence);
                }
                Category::OptimizerState => {
                    let end = self.phases.period_end(alloc).unwrap_or(u32::MAX);
                    let is_brief = free.is_some_and(|free| free < end);
                    return if is_brief {
                        verdict(Category::Temporary, 0.8)
                    } else {
                        verdict(category, confidence)
                    };
                }
                Category::Parameter | Category::Buffer => {
                    return self.model(block, alloc, free, hints);
                }
                _ => {}
            }
        }
        match phase {
            Some(Phase::Forward) => self.forward(block, alloc, free),
            // Activation checkpointing recomputes activations in backward.
            Some(Phase::Backward)
                if hints.built_in_rule.is_some_and(|g| g.category == Category::Activation) =>
            {
                let is_short = free.is_some_and(|free| free - alloc <= MAX_OPERATION_EVENTS);
                if is_short {
                    verdict(Category::Temporary, 0.6)
                } else {
                    verdict(Category::Activation, 0.6)
                }
            }
            Some(Phase::Backward) => self.backward(block, alloc, free, hints),
            Some(Phase::Optimizer) => self.update(block.stack, alloc, free),
            Some(Phase::Other) => self.program(alloc, free),
            // Without any stacks, allocations outside of named ranges count as the program's.
            None if !self.phases.allocs_have_stacks => self.program(alloc, free),
            None => verdict(Category::Unknown, 0.0),
        }
    }

    /// Judges a block that a forward pass allocated.
    fn forward(&self, block: &Block, alloc: u32, free: Option<u32>) -> Verdict {
        if free.is_none() && self.is_workspace(block) {
            return verdict(Category::Workspace, 0.6);
        }
        let backward = self.phases.next_after(Phase::Backward, alloc);
        match (backward, free) {
            (Some(backward), Some(free)) if free < backward => verdict(Category::Temporary, 0.8),
            (Some(backward), None) => {
                // A cache outlives two more backward passes, and its call site allocates nothing
                // that is freed.
                let forward = self.phases.next_after(Phase::Forward, backward);
                let second =
                    forward.and_then(|forward| self.phases.next_after(Phase::Backward, forward));
                let stack = block.stack.0 as usize;
                if second.is_some()
                    && self.has_kept_blocks[stack]
                    && !self.has_brief_blocks[stack]
                    && self.phases.last_before(Phase::Backward, alloc).is_none()
                {
                    verdict(Category::Buffer, 0.5)
                } else {
                    verdict(Category::Activation, if second.is_some() { 0.5 } else { 0.9 })
                }
            }
            (Some(_), Some(_)) => verdict(Category::Activation, 0.9),
            (None, Some(free)) if free - alloc <= MAX_OPERATION_EVENTS => {
                verdict(Category::Temporary, 0.6)
            }
            (None, _) => verdict(Category::Activation, 0.7),
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
                    verdict(Category::Temporary, 0.85)
                }
            }
            None if self.is_workspace(block) => verdict(Category::Workspace, 0.6),
            // The gradient of the loss itself. It is allocated where the program calls backward.
            _ if hints.has_frames && !hints.is_engine && block.bytes.0 <= 8 => {
                verdict(Category::Temporary, 0.5)
            }
            _ => verdict(Category::Gradient, 0.8),
        }
    }

    /// Judges a block that an optimizer allocated.
    fn update(&self, stack: StackId, alloc: u32, free: Option<u32>) -> Verdict {
        let end = self.phases.period_end(alloc);
        match free {
            Some(free) if end.is_none_or(|end| free < end) => verdict(Category::Temporary, 0.85),
            Some(free) => match self.phases.next_after(Phase::Backward, alloc) {
                Some(backward) if backward < free => verdict(Category::OptimizerState, 0.6),
                _ => verdict(Category::Temporary, 0.6),
            },
            // The recording ends within the step. Other blocks of the call site show whether it
            // keeps its blocks.
            None if self.has_brief_blocks[stack.0 as usize] && end.is_none() => {
                verdict(Category::Temporary, 0.7)
            }
            None => verdict(Category::OptimizerState, if end.is_some() { 0.85 } else { 0.6 }),
        }
    }

    /// Judges a block that the program itself allocated, outside of all phases.
    fn program(&self, alloc: u32, free: Option<u32>) -> Verdict {
        let phases = self.phases;
        if !phases.occurs(Phase::Forward) && !phases.occurs(Phase::Backward) {
            return verdict(Category::Unknown, 0.0);
        }
        let forward = phases.next_after(Phase::Forward, alloc);
        let backward = phases.next_after(Phase::Backward, alloc);
        let lives_until = |event: u32| free.is_none_or(|free| free >= event);
        let boundary = phases
            .last_before(Phase::Backward, alloc)
            .max(phases.last_before(Phase::Optimizer, alloc));
        let before_forward = phases
            .last_before(Phase::Forward, alloc)
            .is_none_or(|f| boundary.is_some_and(|b| b > f));
        if free.is_none()
            && backward.is_some()
            && phases.last_before(Phase::Backward, alloc).is_none()
            && before_forward
        {
            return Verdict::ProgramTensor;
        }
        if self.outlives_steps(alloc, free) {
            // No batch is kept that long. The program accumulates outputs of the model.
            return verdict(Category::Activation, 0.3);
        }
        // A block feeds the next forward pass if it is allocated between two forward passes,
        // without a backward pass in between.
        let feeds = before_forward
            || forward.is_some() && backward.is_none_or(|b| forward.is_some_and(|f| f < b));
        match (forward, backward) {
            (Some(forward), _) if feeds && lives_until(forward) => verdict(Category::Input, 0.8),
            (None, _) if feeds && free.is_none() => verdict(Category::Input, 0.6),
            // A training loop without modules: its forward pass is the program's own code.
            (None, Some(backward)) if !phases.occurs(Phase::Forward) && lives_until(backward) => {
                verdict(Category::Activation, 0.4)
            }
            (_, Some(backward)) if !feeds && lives_until(backward) => {
                verdict(Category::Activation, 0.7)
            }
            (_, None) if !feeds && free.is_none() => verdict(Category::Activation, 0.5),
            _ => verdict(Category::Temporary, 0.5),
        }
    }

    /// Whether a block that was allocated between steps is still live after three more steps.
    fn outlives_steps(&self, alloc: u32, free: Option<u32>) -> bool {
        let step = |event| {
            self.phases.next_after(Phase::Backward, self.phases.next_after(Phase::Forward, event)?)
        };
        let third = step(alloc).and_then(step).and_then(step);
        self.phases.last_before(Phase::Backward, alloc).is_some()
            && third.is_some_and(|third| free.is_none_or(|free| free > third))
    }

    /// Judges a block that code for building or loading a model allocated.
    fn model(&self, block: &Block, alloc: u32, free: Option<u32>, hints: StackHints) -> Verdict {
        let guess = hints.built_in_rule.unwrap_or_default();
        if hints.is_module_init && self.phases.last_before(Phase::Forward, alloc).is_some() {
            // Any object can have an `__init__`. An object built during training is no model.
            return self.program(alloc, free);
        }
        let Some(free) = free else {
            return if hints.is_module_init {
                Verdict::ModuleTensor
            } else {
                Verdict::Final(guess)
            };
        };
        let is_used =
            self.phases.next_after(Phase::Forward, alloc).is_some_and(|forward| forward <= free);
        match (is_used, free - alloc <= MAX_OPERATION_EVENTS) {
            (true, _) if hints.is_module_init => Verdict::ModuleTensor,
            (true, _) => Verdict::Final(guess),
            (false, true) => verdict(Category::Temporary, 0.7),
            // The model was converted, sharded or dropped before it ran.
            (false, false) => {
                verdict(if block.bytes.0 == 0 { Category::Unknown } else { guess.category }, 0.5)
            }
        }
    }

    /// Judges a block that a collective allocated.
    fn communication(
        &self,
        alloc: u32,
        free: Option<u32>,
        hints: StackHints,
        confidence: f32,
    ) -> Verdict {
        let is_backward = hints.is_engine || self.phases.current(alloc) == Some(Phase::Backward);
        let update = self.phases.next_after(Phase::Optimizer, alloc);
        // FSDP reduces gradients into a separate buffer, which then becomes the gradient.
        if is_backward && update.is_some_and(|update| free.is_none_or(|free| free >= update))
            || is_backward && hints.is_engine && update.is_none() && free.is_none()
        {
            return verdict(Category::Gradient, 0.75);
        }
        verdict(Category::Communication, confidence)
    }

    /// Judges a block from before the window whose stack the allocator recorded.
    fn preexisting_with_stack(&self, block: &Block, hints: StackHints) -> Verdict {
        let Some(Guess { category, confidence }) = hints.built_in_rule else {
            return verdict(Category::Input, 0.3);
        };
        match category {
            Category::Parameter if hints.is_module_init => Verdict::ModuleTensor,
            // A block of an optimizer's step that is live at the start of the recording is
            // optimizer state.
            Category::Temporary => verdict(Category::OptimizerState, 0.6),
            Category::Activation if self.is_workspace(block) => verdict(Category::Workspace, 0.5),
            Category::Activation => verdict(category, 0.5),
            _ => verdict(category, confidence * 0.9),
        }
    }

    /// Judges a block from before the window without a stack of its own. The only evidence is the
    /// phase of its free.
    fn preexisting(&self, block: &Block) -> Verdict {
        let Some(free) = free_event(block, self.trace.slots()) else {
            return Verdict::Preexisting;
        };
        let hints = self.hints[block.stack.0 as usize];
        let phase = if hints.has_frames { hints.phase() } else { self.phases.current(free) };
        match phase {
            Some(Phase::Backward | Phase::Forward) => verdict(Category::Activation, 0.5),
            Some(Phase::Optimizer) => verdict(Category::Gradient, 0.5),
            _ => Verdict::Preexisting,
        }
    }
}
