//! What forward passes put out, and what the program makes of it: losses, logits in another
//! precision.

use super::Phase;
use super::groups::Group;
use super::life::free_event;
use super::phases::Phases;
use super::stacks::StackHints;
use rustc_hash::FxHashMap;
use vramscope_trace::slicing::{Budget, STRIDE};
use vramscope_trace::{Block, Trace};

/// Smaller blocks have the size of another one by chance.
const MIN_BYTES: u64 = 1 << 16;

/// The last tensor of a forward pass is at most this many events older than what the program makes
/// of it.
const MAX_EVENTS: u32 = 32;

/// Number of blocks of a size to look at.
const MAX_LOOKED_AT: usize = 64;

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 3;

/// The blocks of forward passes.
pub(super) struct Outputs {
    /// Allocations and frees, by size, in the order of allocation.
    by_size: FxHashMap<u64, Vec<(u32, u32)>>,
    largest: u64,
    /// Events before the window's forward passes at which the program allocated a batch. Only of
    /// lines that did so before the first pass.
    batches: Vec<u32>,
}

impl Outputs {
    pub(super) async fn new(
        trace: &Trace,
        hints: &[StackHints],
        phases: &Phases,
        budget: &mut Budget,
    ) -> Self {
        let mut outputs = Self { by_size: FxHashMap::default(), largest: 0, batches: Vec::new() };
        let first_forward = phases.next_after(Phase::Forward, 0).unwrap_or(0);
        let mut leads = vec![false; hints.len()];
        for blocks in trace.blocks.chunks(STRIDE) {
            budget.charge(blocks.len() as u64 * COST_PER_BLOCK).await;
            for block in blocks {
                let Some(alloc) = block.alloc_event() else { continue };
                let stack = block.stack.0 as usize;
                let free = free_event(block, trace.slots()).unwrap_or(u32::MAX);
                match phases.of_alloc(alloc.0, hints[stack]) {
                    Some(Phase::Forward) => {
                        outputs.largest = block.bytes.0.max(outputs.largest);
                        if block.bytes.0 >= MIN_BYTES / 2 {
                            let of_size = outputs.by_size.entry(block.bytes.0).or_default();
                            of_size.push((alloc.0, free));
                        }
                    }
                    Some(Phase::Other) => {
                        leads[stack] |= alloc.0 < first_forward;
                        let feeds = phases.next_after(Phase::Forward, alloc.0);
                        if leads[stack] && feeds.is_some_and(|feeds| feeds < free) {
                            outputs.batches.push(alloc.0);
                        }
                    }
                    _ => {}
                }
            }
        }
        outputs
    }

    /// The largest block that a forward pass allocated, in bytes.
    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    /// Whether the program made a block of what a forward pass put out.
    ///
    /// The block has the size of a live block of the pass before, in its precision or another. Its
    /// line never allocates before the first pass, as the line of a batch does. And it never begins
    /// a step, or a batch comes beside in each round.
    pub(super) fn is_output(
        &self,
        groups: &[Group],
        block: &Block,
        alloc: u32,
        phases: &Phases,
    ) -> bool {
        let group = &groups[block.stack.0 as usize];
        let bytes = block.bytes.0;
        if group.leads || bytes < MIN_BYTES || !phases.allocs_have_stacks {
            return false;
        }
        let forward = phases.last_before(Phase::Forward, alloc);
        let is_beside = || {
            let next = phases.next_after(Phase::Forward, alloc).unwrap_or(u32::MAX);
            let at = self.batches.partition_point(|batch| Some(*batch) <= forward);
            // The last round of a window may end before its batch.
            next == u32::MAX || self.batches.get(at).is_some_and(|batch| *batch < next)
        };
        if group.starts_steps && (self.batches.is_empty() || !is_beside()) {
            return false;
        }
        [bytes, bytes / 2, bytes.saturating_mul(2)].into_iter().any(|size| {
            let Some(of_size) = self.by_size.get(&size) else { return false };
            let before = of_size.partition_point(|of| of.0 < alloc);
            of_size[..before].iter().rev().take(MAX_LOOKED_AT).any(|&(made, free)| {
                // It is the last one of its pass, or outlived the backward pass.
                free > alloc
                    && (forward.is_some_and(|forward| forward - made <= MAX_EVENTS)
                        || phases.last_before(Phase::Backward, alloc) > Some(made))
            })
        })
    }
}
