//! Which changes a run has already, with proof.
//!
//! Call stacks prove most of them, sizes and lives of blocks the rest. Where a recording does not
//! tell, nothing is said. [`Features::changes_to`] compares two runs.

use super::CHANGES;
use super::change::{Change, Features, Optimization};
use super::words::ProofWords;
use crate::evidence::Evidence;
use crate::evidence::marks::Mark;
use crate::evidence::stacks::Stacks;
use crate::evidence::traits::Traits;
use crate::evidence::{Run, optimizer};
use crate::recipes::elements_of;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{self, Lives};
use crate::recipes::order::Order;
use crate::recipes::replay::at_peak;
use crate::shapes::Dims;
use std::sync::Arc;
use vramscope_snapshot::FrameId;
use vramscope_trace::slicing::Budget;

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
}

impl Optimization {
    /// The proof in a sentence.
    pub fn proof_text(&self, words: &ProofWords) -> String {
        let text = (self.change.proof)(self.state, words);
        let mut letters = text.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        format!("{}{}.", first.unwrap_or_default(), letters.as_str())
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
