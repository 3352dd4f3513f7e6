//! Memory optimizations that a run has already, with proof.
//!
//! Call stacks prove most of them, sizes and lives of blocks the rest. Where a recording does not
//! tell, nothing is said. [`Features::changes_to`] compares two runs.

mod attention;
mod checkpoint;
mod compare;
mod marks;
mod optimizer;
mod passes;
mod precision;
mod traits;

use super::arena::Order;
use super::elements_of;
use super::facts::{Facts, Pass};
use super::lives::{self, Life, Lives};
use super::replay::at_peak;
use super::stacks::{Kind, Stacks};
use crate::findings::Evidence;
use crate::shapes::Dims;
use crate::step_phases::CategoryBytes;
pub use compare::Changes;
use marks::{Mark, Marks};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use traits::Traits;
use vramscope_snapshot::FrameId;
use vramscope_trace::slicing::Budget;

/// A way to save memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OptimizationKind {
    /// Forward is computed again in backward.
    Checkpoint,
    /// Activations wait for backward in host memory.
    OffloadActivations,
    /// Logits and loss in parts.
    ChunkedLoss,
    /// No copy of the logits in 32 bits.
    UpcastOff,
    /// Attention without maps.
    FlashAttention,
    /// Several backward passes before a step of the optimizer.
    Accumulate,
    /// Forward under autocast.
    Autocast,
    /// Autocast keeps no casts.
    AutocastCacheOff,
    /// Parameters in 16 bits.
    ParametersBf16,
    /// The optimizer updates one parameter after the other.
    ForeachOff,
    /// The optimizer needs no temporaries.
    FusedOptimizer,
    /// The optimizer's states have one byte an element.
    EightBitOptimizer,
    /// The optimizer keeps no states.
    NoStates,
    /// Each gradient is used and freed as soon as it is there.
    OptimizerInBackward,
    /// Gradients are freed before the next forward pass.
    ZeroGradEarly,
    /// Evaluation keeps no graph.
    EvaluationNoGrad,
    /// Parameters are spread over ranks.
    Shard,
}

impl OptimizationKind {
    /// The name: that of the recipe that makes the change.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::OffloadActivations => "offload_activations",
            Self::ChunkedLoss => "chunked_loss",
            Self::UpcastOff => "upcast:off",
            Self::FlashAttention => "attention:flash",
            Self::Accumulate => "accumulate",
            Self::Autocast => "autocast:bf16",
            Self::AutocastCacheOff => "autocast_cache:off",
            Self::ParametersBf16 => "params:bf16",
            Self::ForeachOff => "foreach:off",
            Self::FusedOptimizer => "optimizer:fused",
            Self::EightBitOptimizer => "optimizer:8bit",
            Self::NoStates => "optimizer:sgd",
            Self::OptimizerInBackward => "optimizer_in_backward",
            Self::ZeroGradEarly => "zero_grad:early",
            Self::EvaluationNoGrad => "eval:no_grad",
            Self::Shard => "shard",
        }
    }
}

/// Whether a run has an optimization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Enabled {
    /// It has.
    On,
    /// It has not.
    Off,
    /// A part of it has.
    Partly,
}

/// What proves that a run has an optimization, or has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The line of the program or of a package that shows it.
    pub site: Option<FrameId>,
    /// The function of PyTorch, or of a package, that does it.
    pub by: Option<FrameId>,
    /// The line that does without it.
    pub other: Option<FrameId>,
    /// How often it was seen.
    pub count: u32,
    /// Of how many.
    pub of: u32,
    /// Bytes that show it.
    pub bytes: u64,
}

/// An optimization of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optimization {
    /// Which.
    pub kind: OptimizationKind,
    /// Whether the run has it.
    pub state: Enabled,
    /// What proves that.
    pub proof: Proof,
}

impl Optimization {
    fn new(kind: OptimizationKind, state: Enabled, proof: Proof) -> Self {
        Self { kind, state, proof }
    }
}

/// How a run was made: its memory optimizations, and sizes to compare with another run.
#[derive(Clone, Debug)]
pub struct Features {
    /// The optimizations that the recording tells about.
    pub optimizations: Vec<Optimization>,
    /// The optimizer's classes, as PyTorch names the ranges of their steps.
    pub optimizers: Vec<String>,
    /// Requested bytes by category where they are most.
    pub at_peak: CategoryBytes,
    /// Lines of PyTorch's call of a module: they differ between releases.
    pub torch_lines: Vec<u32>,
    traits: Traits,
}

impl Features {
    /// The features of a device's run. `dims` are those of its peak. `None` for host memory.
    pub async fn find(cx: Evidence<'_>, dims: Option<&Dims>, budget: &mut Budget) -> Option<Self> {
        let total = cx.trace.blocks.iter().fold(0, |sum: u64, of| sum.saturating_add(of.bytes.0));
        if cx.trace.device.kind.is_host() || !(1..MAX_BYTES).contains(&total) {
            return None;
        }
        let stacks = Arc::new(Stacks::new(cx.snapshot, budget).await);
        let marks = Marks::new(cx.snapshot, budget).await;
        let elements = elements_of(cx, dims);
        let failure = lives::failure(cx);
        let returns = Vec::new();
        let mut lives = Lives::new(cx, stacks, |_| 0, elements, returns, failure, budget).await;
        let facts = Facts::new(&mut lives, dims, budget).await;
        budget.charge(16 * lives.all.len() as u64).await;
        let run = Run { cx, lives, facts, marks, dims };
        let optimizers = optimizer::names(&run);
        let mut optimizations = checkpoint::find(&run);
        optimizations.extend(passes::find(&run));
        optimizations.extend(attention::find(&run));
        optimizations.extend(precision::find(&run));
        optimizations.extend(optimizer::find(&run, &optimizers));
        optimizations.sort_by_key(|of| of.kind);
        optimizations.dedup_by_key(|of| of.kind);
        let traits = Traits::new(&run);
        let order = Order::new(&run.lives.all, budget).await;
        let at_peak = at_peak(&run.lives.all, &order, budget).await;
        Some(Self { optimizations, optimizers, at_peak, torch_lines: run.torch_lines(), traits })
    }

    /// The state of an optimization; `None` if the recording does not tell.
    pub fn of(&self, kind: OptimizationKind) -> Option<&Optimization> {
        self.optimizations.iter().find(|of| of.kind == kind)
    }

    fn is(&self, kind: OptimizationKind, state: Enabled) -> bool {
        self.of(kind).is_some_and(|of| of.state == state)
    }
}

/// All blocks of a run together have fewer bytes: no sum of them overflows, nor its percents.
const MAX_BYTES: u64 = 1 << 56;

/// A run to search.
struct Run<'a> {
    cx: Evidence<'a>,
    lives: Lives,
    facts: Facts,
    marks: Marks,
    dims: Option<&'a Dims>,
}

impl Run<'_> {
    /// The passes with a backward pass.
    fn training(&self) -> impl Iterator<Item = &Pass> {
        self.facts.passes.iter().filter(|pass| pass.backward.is_some())
    }

    /// A typical pass with a backward pass; without one the last pass of a run that failed.
    fn typical(&self) -> Option<&Pass> {
        let count = self.training().count();
        let last = self.facts.passes.last().filter(|_| self.lives.failure.is_some());
        self.training().nth(count / 2).or(last)
    }

    /// The blocks that a pass makes in forward, with a call stack.
    fn made_in(&self, pass: &Pass) -> impl Iterator<Item = (usize, &Life)> {
        let range = self.lives.born(pass.begin, pass.end);
        let all = range.map(|index| (index, &self.lives.all[index]));
        all.filter(|(_, life)| !self.lives.frames(life).is_empty())
    }

    fn mark(&self, life: &Life) -> Mark {
        life.stack.map_or(Mark::default(), |stack| self.marks.of_stack(stack))
    }

    /// The innermost frame of a block with a mark.
    fn marked_frame(&self, life: &Life, mark: Mark) -> Option<FrameId> {
        let frames = self.cx.snapshot.stacks.frames(life.stack?);
        frames.iter().copied().find(|&frame| self.marks.of_frame(frame).has(mark))
    }

    /// The outermost frame of a block with a mark.
    fn outermost(&self, life: &Life, mark: Mark) -> Option<FrameId> {
        let frames = self.cx.snapshot.stacks.frames(life.stack?);
        frames.iter().rev().copied().find(|&frame| self.marks.of_frame(frame).has(mark))
    }

    /// The innermost frame of a block outside of PyTorch: of the program, else of a package.
    fn site(&self, life: &Life) -> Option<FrameId> {
        let frames = self.lives.frames(life);
        let own = self.lives.stacks.own(frames).next();
        own.or_else(|| self.outside_of_torch(frames))
    }

    fn torch_lines(&self) -> Vec<u32> {
        let frames = (0..self.cx.snapshot.frames.len()).map(|id| FrameId(id as u32));
        let calls = frames.filter(|&frame| self.lives.stacks.kind(frame).has(Kind::MODULE_CALL));
        let mut lines: Vec<u32> = calls
            .map(|frame| self.cx.snapshot.frame(frame))
            .filter(|frame| self.cx.snapshot.text(frame.name) == "_call_impl")
            .map(|frame| frame.line)
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    fn outside_of_torch(&self, frames: &[FrameId]) -> Option<FrameId> {
        frames.iter().copied().find(|&frame| !self.lives.stacks.kind(frame).has(Kind::TORCH))
    }

    /// Whether modules ran without a compiler, and their frames were recorded.
    fn is_eager(&self, pass: &Pass) -> bool {
        let (mut eager, mut compiled, mut all) = (0_u64, 0_u64, 0_u64);
        for life in &self.lives.all[self.lives.born(pass.begin, pass.end)] {
            let frames = self.lives.frames(life);
            let has_module =
                frames.iter().any(|&frame| self.lives.stacks.kind(frame).has(Kind::MODULE_CALL));
            let is_compiled = self.mark(life).has(Mark::COMPILED);
            all += life.bytes;
            compiled += if is_compiled { life.bytes } else { 0 };
            eager += if has_module && !is_compiled { life.bytes } else { 0 };
        }
        all > 0 && eager * 100 >= all * MIN_EAGER && compiled * 100 <= all * MAX_COMPILED
    }

    /// Whether parameters are spread over ranks.
    fn is_sharded(&self) -> bool {
        self.lives.all.iter().any(|life| self.mark(life).has(Mark::GATHER))
    }
}

/// A pass is eager if at least this share of its bytes is made by modules, in percent. Functions
/// make the rest: attention, losses.
const MIN_EAGER: u64 = 30;

/// And at most this share by code that a compiler made.
const MAX_COMPILED: u64 = 10;
