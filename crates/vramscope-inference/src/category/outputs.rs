//! What forward passes put out, and what the program makes of it: losses, logits in another
//! precision.

use super::Phase;
use super::groups::Group;
use super::phases::Phases;
use super::window::Window;
use rustc_hash::FxHashMap;
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;

/// Smaller blocks have the size of another one by chance. Half or double of it changes no peak of
/// 508 recordings.
const MIN_BYTES: u64 = 1 << 16;

/// The last tensor of a forward pass is at most this many events older than what the program makes
/// of it. Double of it changes the peak of one of 18 recordings, half of it of none.
const MAX_EVENTS: u32 = 32;

/// Number of blocks of a size to look at, which bounds the search.
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
    pub(super) async fn new(window: Window<'_>, budget: &mut Budget) -> Self {
        let mut outputs = Self { by_size: FxHashMap::default(), largest: 0, batches: Vec::new() };
        let first_forward = window.phases.next_after(Phase::Forward, 0).unwrap_or(0);
        let mut leads = vec![false; window.stacks.len()];
        let visit = |_, block: &Block, alloc| match window.phase(block) {
            Some(Phase::Forward) => {
                outputs.largest = block.bytes.0.max(outputs.largest);
                if block.bytes.0 >= MIN_BYTES / 2 {
                    let free = window.free(block).unwrap_or(u32::MAX);
                    outputs.by_size.entry(block.bytes.0).or_default().push((alloc, free));
                }
            }
            Some(Phase::Other) => {
                let leads = &mut leads[block.stack.0 as usize];
                *leads |= alloc < first_forward;
                let feeds = window.phases.next_after(Phase::Forward, alloc);
                if *leads && feeds.is_some_and(|feeds| window.outlives(block, feeds)) {
                    outputs.batches.push(alloc);
                }
            }
            _ => {}
        };
        window.each_alloc(COST_PER_BLOCK, budget, visit).await;
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
        group: &Group,
        block: &Block,
        alloc: u32,
        phases: &Phases,
    ) -> bool {
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
