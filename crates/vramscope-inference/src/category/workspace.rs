//! Scratch memory of libraries, told by more than its size.

use super::window::Window;
use super::{Category, Phase};
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::{StackId, StreamId};
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;

/// Default workspace sizes in bytes: cuBLAS (`:4096:2:16:8`), cuBLAS from compute capability 9
/// (32 MiB), and cuBLASLt (`CublasHandlePool.cpp`, `CUDABlas.cpp`).
pub(super) const WORKSPACE_BYTES: [u64; 3] = [CUBLAS_BYTES, 33_554_432, 1 << 20];

/// The size of a cuBLAS workspace that no other tensor is likely to have.
const CUBLAS_BYTES: u64 = 8_519_680;

/// Upper bound for the workspaces of one size on one stream. Each thread with a handle of its own
/// has one: the program's, and the one of backward. Half of it changes the peak of 7 of 484
/// recordings, double of it of none.
pub(super) const MAX_PER_STREAM: u32 = 3;

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 3;

/// The workspaces of a window.
///
/// A library allocates a workspace inside an operation, once for each thread and stream, and keeps
/// it. So the stack does not allocate the size again on that stream. And the block either follows
/// the output of the operation, which has the same call stack, or outlives a whole step.
#[derive(Default)]
pub(super) struct Workspaces {
    /// Indexes of the blocks.
    blocks: FxHashSet<u32>,
}

impl Workspaces {
    pub(super) async fn new<'a>(window: Window<'a>, budget: &mut Budget) -> Self {
        // Blocks of each size by stack and stream, and kept blocks of each size by stream.
        let mut by_stack: FxHashMap<(u64, StackId, StreamId), u32> = FxHashMap::default();
        let mut kept: FxHashMap<(u64, StreamId), u32> = FxHashMap::default();
        let mut model_sizes: FxHashSet<u64> = FxHashSet::default();
        let mut found: Vec<(u32, &'a Block)> = Vec::new();
        let phases = window.phases;
        let outlives_step = |alloc: u32| {
            let backward = phases.next_after(Phase::Backward, alloc);
            let forward = backward.and_then(|b| phases.next_after(Phase::Forward, b));
            forward.is_some_and(|forward| phases.next_after(Phase::Backward, forward).is_some())
        };
        // Workspaces of cuBLASLt that follow one of cuBLAS.
        let mut pairs: FxHashSet<u32> = FxHashSet::default();
        let mut previous = None;
        let visit = |i, block: &'a Block| {
            let hints = window.stack(block);
            let (size, place) = (block.bytes.0, (block.stack, block.stream));
            if matches!(hints.built_in_rule, Some(Category::Parameter | Category::OptimizerState)) {
                model_sizes.insert(size);
            }
            let Some(alloc) = block.alloc_event() else { return };
            let follows = previous.replace(place) == Some(place);
            if !WORKSPACE_BYTES.contains(&size) {
                return;
            }
            let is_kept = window.free(block).is_none();
            // Blocks of backward may have no stack, so their stack tells them not apart.
            if hints.has_frames || is_kept {
                *by_stack.entry((size, block.stack, block.stream)).or_default() += 1;
            }
            if !is_kept {
                return;
            }
            *kept.entry((size, block.stream)).or_default() += 1;
            if follows || size == CUBLAS_BYTES || outlives_step(alloc.0) {
                let follows_workspace = follows
                    && found.last().is_some_and(|&(last, before)| {
                        last + 1 == i && before.bytes != block.bytes
                    });
                if follows_workspace {
                    pairs.insert(i);
                }
                found.push((i, block));
            }
        };
        window.trace.each_block(COST_PER_BLOCK, budget, visit).await;
        let is_workspace = |i: u32, block: &Block| {
            let size = block.bytes.0;
            let of_stack = by_stack.get(&(size, block.stack, block.stream)).copied().unwrap_or(0);
            let on_stream = kept.get(&(size, block.stream)).copied().unwrap_or(0);
            !model_sizes.contains(&size)
                && (of_stack == 1 || pairs.contains(&i))
                // A stack that allocates no such block again, while others of this size come and
                // stay, still has a workspace. Without a stack, the number must be small.
                && (on_stream <= MAX_PER_STREAM || block.stack != StackId::EMPTY)
        };
        let blocks =
            found.iter().filter(|(i, block)| is_workspace(*i, block)).map(|f| f.0).collect();
        Self { blocks }
    }

    /// Whether a block that was allocated in the window is a workspace.
    pub(super) fn contains(&self, block: u32) -> bool {
        self.blocks.contains(&block)
    }
}
