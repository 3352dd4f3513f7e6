//! Which changes a run has already, with proof.
//!
//! Call stacks prove most of them, sizes and lives of blocks the rest. Where a recording does not
//! tell, nothing is said. [`Features::changes_to`] compares two runs.

use super::{CHANGES, Change};
use crate::evidence::Evidence;
use crate::evidence::marks::Mark;
use crate::evidence::stacks::Stacks;
use crate::evidence::traits::Traits;
use crate::evidence::{Run, optimizer};
use crate::recipes::arena::Order;
use crate::recipes::elements_of;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{self, Lives};
use crate::recipes::replay::at_peak;
use crate::shapes::Dims;
use crate::step_phases::CategoryBytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use vramscope_snapshot::FrameId;
use vramscope_trace::slicing::Budget;

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

/// Proof that a run has an optimization, or lacks it.
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
    /// Blocks of the model that one checkpointed piece computes again at once; else 0.
    pub at_once: u32,
}

/// A change that a run has, or has not.
#[derive(Clone, Copy, Debug)]
pub struct Optimization {
    /// Which.
    pub change: &'static Change,
    /// Whether the run has it.
    pub state: Enabled,
    /// The proof of the state.
    pub proof: Proof,
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
    pub(super) traits: Traits,
}

impl Features {
    /// The features of a device's run. `dims` are those of its peak. `None` for host memory.
    pub async fn find(cx: Evidence<'_>, dims: Option<&Dims>, budget: &mut Budget) -> Option<Self> {
        let total = cx.trace.blocks.iter().fold(0, |sum: u64, of| sum.saturating_add(of.bytes.0));
        if cx.trace.device.kind.is_host() || !(1..MAX_BYTES).contains(&total) {
            return None;
        }
        let stacks = Arc::new(Stacks::new(cx.snapshot, budget).await);
        let elements = elements_of(cx, dims);
        let failure = lives::failure(cx);
        let returns = Vec::new();
        let mut lives = Lives::new(cx, stacks, |_| 0, elements, returns, failure, budget).await;
        let facts = Facts::new(&mut lives, dims, budget).await;
        budget.charge(16 * lives.all.len() as u64).await;
        let run = Run { cx, lives: &lives, facts: &facts };
        let found = |change: &'static Change| {
            let (state, proof) = change.is_on?(run)?;
            Some(Optimization { change, state, proof })
        };
        let order = Order::new(&lives.all, budget).await;
        Some(Self {
            optimizations: CHANGES.iter().filter_map(|change| found(change)).collect(),
            optimizers: optimizer::names(run),
            at_peak: at_peak(&lives.all, &order, budget).await,
            torch_lines: torch_lines(run),
            traits: Traits::new(run),
        })
    }

    /// The state of a change; `None` if the recording does not tell.
    pub fn of(&self, change: &Change) -> Option<&Optimization> {
        self.optimizations.iter().find(|of| of.change == change)
    }

    pub(super) fn state(&self, change: &Change) -> Option<Enabled> {
        self.of(change).map(|of| of.state)
    }

    pub(super) fn is(&self, change: &Change, state: Enabled) -> bool {
        self.state(change) == Some(state)
    }
}

/// All blocks of a run together have fewer bytes: no sum of them overflows, nor its percents.
const MAX_BYTES: u64 = 1 << 56;

/// Lines of PyTorch's call of a module.
fn torch_lines(run: Run<'_>) -> Vec<u32> {
    let frames = (0..run.cx.snapshot.frames.len()).map(|id| FrameId(id as u32));
    let calls = frames.filter(|&frame| run.lives.stacks.mark(frame).has(Mark::MODULE_CALL));
    let mut lines: Vec<u32> = calls
        .map(|frame| run.cx.snapshot.frame(frame))
        .filter(|frame| run.cx.snapshot.text(frame.name) == "_call_impl")
        .map(|frame| frame.line)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
