//! What a block's own life says: when it was made, and which phases it outlived.

use super::phases::Phases;
use super::stacks::{Phase, Says};
use super::{Category, Guess};
use crate::blocks::{Block, Origin};
use crate::slicing::{Budget, STRIDE};
use crate::trace::Trace;
use rustc_hash::FxHashSet;
use vramscope_snapshot::{Events, Snapshot, StackId};

/// A first judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It stands.
    Is(Guess),
    /// A module's `__init__` made it: a parameter or a buffer.
    Either,
    /// The program made it before the first backward pass, and never freed it: data, or a parameter
    /// without a module.
    Program,
    /// Made by backward and alive when its allocations are over, but gone before anything shows the
    /// next phase: the last temporaries, and gradients that were reset where frees have no stacks.
    /// `true` if it lived long.
    Late(bool),
    /// From before the window, with nothing to tell when it was made.
    Before,
}

/// How many events a temporary inside one operation may live.
const SHORT: u32 = 16;

/// cuBLAS workspaces by default: `:4096:2:16:8`, and 32 MiB since compute capability 9; cuBLASLt's
/// by default (`CublasHandlePool.cpp`, `CUDABlas.cpp`).
pub(super) const WORKSPACES: [u64; 3] = [8_519_680, 33_554_432, 1 << 20];

/// More never-freed blocks of such a size than handles and streams explain are no workspaces.
pub(super) const MANY_WORKSPACES: u32 = 4;

/// What it costs to look at a block's life, as [`Budget`] counts it.
const JUDGED: u64 = 12;

struct Judge<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    says: &'a [Says],
    phases: &'a Phases,
    /// By size in [`WORKSPACES`]: whether a block of that size can be one.
    workspace: [bool; 3],
    /// By stack: blocks that were freed in the run that made them, and blocks that never were.
    brief: Vec<bool>,
    kept: Vec<bool>,
}

/// The event at which the program gave a block back.
fn died(block: &Block, slots: u32) -> Option<u32> {
    let free = block.free_requested().or(block.free_completed()).map(|event| event.0);
    free.or((block.leaves < slots).then(|| block.leaves - 1))
}

fn is(category: Category, confidence: f32) -> Verdict {
    Verdict::Is(Guess { category, confidence })
}

/// A first judgement of every block.
pub(super) async fn verdicts(
    snapshot: &Snapshot,
    trace: &Trace,
    says: &[Says],
    phases: &Phases,
    budget: &mut Budget,
) -> Vec<Verdict> {
    let slots = trace.slots();
    let mut judge = Judge {
        snapshot,
        trace,
        says,
        phases,
        workspace: [true; 3],
        brief: vec![false; says.len()],
        kept: vec![false; says.len()],
    };
    let mut counts = [0; 3];
    let mut model: FxHashSet<u64> = FxHashSet::default();
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64 * JUDGED).await;
        for block in blocks {
            let stack = block.stack.0 as usize;
            let hint = says[stack].hint.map(|h| h.category);
            if matches!(hint, Some(Category::Parameter | Category::OptimizerState)) {
                model.insert(block.bytes.0);
            }
            let Some(born) = block.alloc_event() else { continue };
            match died(block, slots) {
                None => {
                    judge.kept[stack] = true;
                    if let Some(i) = WORKSPACES.iter().position(|&w| w == block.bytes.0) {
                        counts[i] += 1;
                    }
                }
                Some(died) => {
                    judge.brief[stack] |= phases.ends(born.0).is_none_or(|end| died < end)
                }
            }
        }
    }
    for (i, size) in WORKSPACES.iter().enumerate() {
        judge.workspace[i] = counts[i] <= MANY_WORKSPACES && !model.contains(size);
    }
    let mut verdicts = Vec::with_capacity(trace.blocks.len());
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64 * JUDGED).await;
        verdicts.extend(blocks.iter().map(|block| judge.block(block)));
    }
    verdicts
}

impl Judge<'_> {
    fn block(&self, block: &Block) -> Verdict {
        let own_stack = !block.has_stack_of_free() || self.phases.frees_repeat;
        let says = if own_stack { self.says[block.stack.0 as usize] } else { Says::default() };
        if let Some(guess) = says.user {
            return Verdict::Is(guess);
        }
        match block.alloc_event() {
            Some(event) => {
                self.profiled(event.0).unwrap_or_else(|| self.born(block, event.0, says))
            }
            None if block.origin() == Origin::LostAlloc && !says.frames => {
                is(Category::Unknown, 0.0)
            }
            None if says.frames => self.stack_only(block, says),
            None => self.before(block),
        }
    }

    /// Snapshots made from a profile say it themselves
    /// (`torch.profiler._memory_profiler.Category`).
    fn profiled(&self, event: u32) -> Option<Verdict> {
        let row = self.trace.device.events.start + event;
        let name = Events::sparse(&self.snapshot.events.category, row)?;
        let category = match &*self.snapshot.text(name).to_ascii_lowercase() {
            "autograd_detail" => Category::Temporary,
            name => Category::parse(name).filter(|&c| c != Category::Unknown)?,
        };
        Some(is(category, 0.99))
    }

    /// Libraries take their workspaces when a thread first needs them, and keep them. 1 MiB is a
    /// common size for other things too, so those must come before the first step is over.
    fn is_workspace(&self, block: &Block) -> bool {
        let update = block.alloc_event().and_then(|born| self.phases.last(Phase::Update, born.0));
        let mut sizes = WORKSPACES.iter().zip(self.workspace);
        sizes.any(|(&size, can)| {
            can && size == block.bytes.0 && (size > 1 << 20 || update.is_none())
        })
    }

    fn born(&self, block: &Block, born: u32, says: Says) -> Verdict {
        let died = died(block, self.trace.slots());
        let phase = self.phases.of(born, says);
        if let Some(Guess { category, confidence }) = says.hint {
            match category {
                Category::Workspace | Category::Input => return is(category, confidence),
                Category::Communication => return self.communication(born, died, says, confidence),
                Category::OptimizerState => {
                    let end = self.phases.ends(born).unwrap_or(u32::MAX);
                    let gone = died.is_some_and(|died| died < end);
                    return if gone {
                        is(Category::Temporary, 0.8)
                    } else {
                        is(category, confidence)
                    };
                }
                Category::Parameter | Category::Buffer => {
                    return self.built(block, born, died, says);
                }
                _ => {}
            }
        }
        match phase {
            Some(Phase::Forward) => self.forward(block, born, died),
            // Recomputed for backward by activation checkpointing.
            Some(Phase::Backward)
                if says.hint.is_some_and(|h| h.category == Category::Activation) =>
            {
                let short = died.is_some_and(|died| died - born <= SHORT);
                if short { is(Category::Temporary, 0.6) } else { is(Category::Activation, 0.6) }
            }
            Some(Phase::Backward) => self.backward(block, born, died, says),
            Some(Phase::Update) => self.update(block.stack, born, died),
            Some(Phase::User) => self.program(born, died),
            // Without any stacks, what is outside of the named ranges is the program's.
            None if !self.phases.framed => self.program(born, died),
            None => is(Category::Unknown, 0.0),
        }
    }

    fn forward(&self, block: &Block, born: u32, died: Option<u32>) -> Verdict {
        if died.is_none() && self.is_workspace(block) {
            return is(Category::Workspace, 0.6);
        }
        let backward = self.phases.next(Phase::Backward, born);
        match (backward, died) {
            (Some(backward), Some(died)) if died < backward => is(Category::Temporary, 0.8),
            (Some(backward), None) => {
                // Over two more backward passes, and its call made nothing that was ever freed: a
                // cache.
                let forward = self.phases.next(Phase::Forward, backward);
                let again = forward.and_then(|forward| self.phases.next(Phase::Backward, forward));
                let stack = block.stack.0 as usize;
                if again.is_some()
                    && self.kept[stack]
                    && !self.brief[stack]
                    && self.phases.last(Phase::Backward, born).is_none()
                {
                    is(Category::Buffer, 0.5)
                } else {
                    is(Category::Activation, if again.is_some() { 0.5 } else { 0.9 })
                }
            }
            (Some(_), Some(_)) => is(Category::Activation, 0.9),
            (None, Some(died)) if died - born <= SHORT => is(Category::Temporary, 0.6),
            (None, _) => is(Category::Activation, 0.7),
        }
    }

    fn backward(&self, block: &Block, born: u32, died: Option<u32>, says: Says) -> Verdict {
        let end = self.phases.ends(born);
        match died {
            Some(died) if end.is_none_or(|end| died < end) => {
                let over = self
                    .phases
                    .last(Phase::Backward, end.unwrap_or(u32::MAX))
                    .is_some_and(|last| last < died);
                let late = over && !self.phases.frees_tell;
                if late {
                    Verdict::Late(died - born > SHORT)
                } else {
                    is(Category::Temporary, 0.85)
                }
            }
            None if self.is_workspace(block) => is(Category::Workspace, 0.6),
            // The gradient of the loss itself, made where the program calls backward.
            _ if says.frames && !says.engine && block.bytes.0 <= 8 => is(Category::Temporary, 0.5),
            _ => is(Category::Gradient, 0.8),
        }
    }

    fn update(&self, stack: StackId, born: u32, died: Option<u32>) -> Verdict {
        let end = self.phases.ends(born);
        match died {
            Some(died) if end.is_none_or(|end| died < end) => is(Category::Temporary, 0.85),
            Some(died) => match self.phases.next(Phase::Backward, born) {
                Some(backward) if backward < died => is(Category::OptimizerState, 0.6),
                _ => is(Category::Temporary, 0.6),
            },
            // The recording ends within the step: others of that call tell whether it keeps what it
            // makes.
            None if self.brief[stack.0 as usize] && end.is_none() => is(Category::Temporary, 0.7),
            None => is(Category::OptimizerState, if end.is_some() { 0.85 } else { 0.6 }),
        }
    }

    /// Made by the program itself, outside of all phases.
    fn program(&self, born: u32, died: Option<u32>) -> Verdict {
        let phases = self.phases;
        if !phases.any(Phase::Forward) && !phases.any(Phase::Backward) {
            return is(Category::Unknown, 0.0);
        }
        let forward = phases.next(Phase::Forward, born);
        let backward = phases.next(Phase::Backward, born);
        let lives_until = |event: u32| died.is_none_or(|died| died >= event);
        let boundary = phases.last(Phase::Backward, born).max(phases.last(Phase::Update, born));
        let before_forward =
            phases.last(Phase::Forward, born).is_none_or(|f| boundary.is_some_and(|b| b > f));
        if died.is_none()
            && backward.is_some()
            && phases.last(Phase::Backward, born).is_none()
            && before_forward
        {
            return Verdict::Program;
        }
        if self.outlives_steps(born, died) {
            // No batch is kept that long: what the program piles up came out of the model.
            return is(Category::Activation, 0.3);
        }
        // What is made between forward passes without a backward pass in between feeds the next
        // one.
        let feeds = before_forward
            || forward.is_some() && backward.is_none_or(|b| forward.is_some_and(|f| f < b));
        match (forward, backward) {
            (Some(forward), _) if feeds && lives_until(forward) => is(Category::Input, 0.8),
            (None, _) if feeds && died.is_none() => is(Category::Input, 0.6),
            // A loop without modules: its forward pass is the program's own code.
            (None, Some(backward)) if !phases.any(Phase::Forward) && lives_until(backward) => {
                is(Category::Activation, 0.4)
            }
            (_, Some(backward)) if !feeds && lives_until(backward) => is(Category::Activation, 0.7),
            (_, None) if !feeds && died.is_none() => is(Category::Activation, 0.5),
            _ => is(Category::Temporary, 0.5),
        }
    }

    /// Whether a block that was made between steps lives on after three more.
    fn outlives_steps(&self, born: u32, died: Option<u32>) -> bool {
        let step =
            |event| self.phases.next(Phase::Backward, self.phases.next(Phase::Forward, event)?);
        let third = step(born).and_then(step).and_then(step);
        self.phases.last(Phase::Backward, born).is_some()
            && third.is_some_and(|third| died.is_none_or(|died| died > third))
    }

    fn built(&self, block: &Block, born: u32, died: Option<u32>, says: Says) -> Verdict {
        let guess = says.hint.unwrap_or_default();
        if says.either && self.phases.last(Phase::Forward, born).is_some() {
            // Objects of all kinds have an `__init__`; those built while training runs are no
            // models.
            return self.program(born, died);
        }
        let Some(died) = died else {
            return if says.either { Verdict::Either } else { Verdict::Is(guess) };
        };
        let used = self.phases.next(Phase::Forward, born).is_some_and(|forward| forward <= died);
        match (used, died - born <= SHORT) {
            (true, _) if says.either => Verdict::Either,
            (true, _) => Verdict::Is(guess),
            (false, true) => is(Category::Temporary, 0.7),
            // A model that was converted, sharded or dropped before it ran.
            (false, false) => {
                is(if block.bytes.0 == 0 { Category::Unknown } else { guess.category }, 0.5)
            }
        }
    }

    fn communication(&self, born: u32, died: Option<u32>, says: Says, confidence: f32) -> Verdict {
        let backward = says.engine || self.phases.running(born) == Some(Phase::Backward);
        let update = self.phases.next(Phase::Update, born);
        // FSDP reduces gradients into a buffer of their own, which stays as the gradient.
        if backward && update.is_some_and(|update| died.is_none_or(|died| died >= update))
            || backward && says.engine && update.is_none() && died.is_none()
        {
            return is(Category::Gradient, 0.75);
        }
        is(Category::Communication, confidence)
    }

    /// From before the window, but the allocator kept its stack.
    fn stack_only(&self, block: &Block, says: Says) -> Verdict {
        let Some(Guess { category, confidence }) = says.hint else {
            return is(Category::Input, 0.3);
        };
        match category {
            Category::Parameter if says.either => Verdict::Either,
            // What an optimizer's step made and has not freed when the recording starts is its
            // state.
            Category::Temporary => is(Category::OptimizerState, 0.6),
            Category::Activation if self.is_workspace(block) => is(Category::Workspace, 0.5),
            Category::Activation => is(category, 0.5),
            _ => is(category, confidence * 0.9),
        }
    }

    /// From before the window, and without a stack of its own: how it ends is all there is.
    fn before(&self, block: &Block) -> Verdict {
        let Some(died) = died(block, self.trace.slots()) else { return Verdict::Before };
        let free = self.says[block.stack.0 as usize];
        let phase = if free.frames { free.phase() } else { self.phases.running(died) };
        match phase {
            Some(Phase::Backward | Phase::Forward) => is(Category::Activation, 0.5),
            Some(Phase::Update) => is(Category::Gradient, 0.5),
            _ => Verdict::Before,
        }
    }
}
