//! Evidence from the stacks of blocks that the window did not allocate.

use super::Phase;
use super::groups::MIN_POOL_BYTES;
use super::stacks::StackHints;
use super::window::{Window, are_most};
use super::workspace::{MAX_PER_STREAM, WORKSPACE_BYTES};
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;

/// A pool of keys and values has at least this many blocks of one line and size. Half or double of
/// it changes neither of the two recordings that read it.
const MIN_POOL_BLOCKS: u32 = 8;

/// Keys come from one line, values from the same or another one. Half or double of it changes no
/// peak of 225 recordings.
const MAX_POOL_STACKS: usize = 2;

/// A stack and a size in bytes.
type Key = (StackId, u64);

/// What the blocks from before the window show together.
#[derive(Default)]
pub(super) struct Before {
    /// Whether the window, or the stack of a block, shows a backward pass or an optimizer.
    pub(super) is_training: bool,
    /// Stacks and sizes of pools of keys and values.
    pools: FxHashSet<Key>,
    /// Number of blocks with the size of a workspace.
    workspace_sizes: FxHashMap<Key, u32>,
}

impl Before {
    pub(super) async fn new(window: Window<'_>, budget: &mut Budget) -> Self {
        let phases = window.phases;
        let mut before = Self {
            is_training: phases.occurs(Phase::Backward) || phases.occurs(Phase::Optimizer),
            ..Self::default()
        };
        // Blocks that forward passes left.
        let mut left: FxHashMap<Key, u32> = FxHashMap::default();
        let visit = |_, block: &Block| {
            if block.alloc_event().is_some() || block.has_stack_of_free() {
                return;
            }
            let hints = window.stack(block);
            match hints.phase() {
                Some(Phase::Backward | Phase::Optimizer) => before.is_training = true,
                Some(Phase::Forward) => {
                    let key = (block.stack, block.bytes.0);
                    *left.entry(key).or_default() += 1;
                    if WORKSPACE_BYTES.contains(&key.1) {
                        *before.workspace_sizes.entry(key).or_default() += 1;
                    }
                }
                _ => before.is_training |= hints.is_gradient_buffer,
            }
        };
        window.trace.each_block(1, budget, visit).await;
        let sum = |left: &FxHashMap<Key, u32>| -> u64 {
            let bytes = |((_, size), count): (&Key, &u32)| size.saturating_mul(u64::from(*count));
            left.iter().map(bytes).fold(0, u64::saturating_add)
        };
        let all = sum(&left);
        left.retain(|(_, size), count| *count >= MIN_POOL_BLOCKS && *size >= MIN_POOL_BYTES);
        // A pass that keeps its graph leaves blocks of many lines.
        let are_most = are_most(sum(&left).into(), all.into());
        if !before.is_training && left.len() <= MAX_POOL_STACKS && are_most {
            before.pools = left.into_keys().collect();
        }
        before
    }

    /// Whether blocks of a forward pass with this stack and size are keys and values.
    pub(super) fn is_cache(&self, key: Key, hints: StackHints) -> bool {
        !self.is_training && (hints.is_cache || self.pools.contains(&key))
    }

    /// Whether blocks with this stack and size are workspaces. A thread has one on each stream.
    pub(super) fn is_workspace(&self, key: Key) -> bool {
        self.workspace_sizes.get(&key).is_some_and(|count| *count <= MAX_PER_STREAM)
    }
}
