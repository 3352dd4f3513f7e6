//! Why a block has no call stack.

use crate::blocks::{Block, Origin};
use crate::trace::Trace;
use vramscope_snapshot::StackId;

/// Why a block has no call stack.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoStack {
    /// The block was allocated before the recording began.
    BeforeRecording,
    /// A thread without Python frames allocated the block. Backward runs on such threads, and only
    /// a recording with C++ stacks shows what they do.
    Backward,
    /// The window was recorded without stacks, or the alloc was lost.
    NotRecorded,
}

/// Which blocks of a window have call stacks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StackCoverage {
    /// Whether any alloc of the window has a stack.
    allocs: bool,
    /// Whether any block has the stack of its alloc.
    blocks: bool,
}

impl StackCoverage {
    pub(crate) fn of(blocks: &[Block]) -> Self {
        let has_own = |b: &&Block| b.stack != StackId::EMPTY && !b.has_stack_of_free();
        let mut coverage = Self::default();
        for block in blocks.iter().filter(has_own) {
            coverage.blocks = true;
            coverage.allocs |= block.origin() == Origin::Alloc;
            if coverage.allocs {
                break;
            }
        }
        coverage
    }
}

impl Trace {
    /// Whether any alloc of the window has a stack.
    pub fn allocs_have_stacks(&self) -> bool {
        self.stack_coverage.allocs
    }

    /// Why a block has no call stack. `None` for a block with a stack, even if it is that of the
    /// free.
    pub fn no_stack(&self, block: &Block) -> Option<NoStack> {
        (block.stack == StackId::EMPTY).then(|| match block.origin() {
            Origin::Alloc if self.stack_coverage.allocs => NoStack::Backward,
            Origin::PreexistingLive | Origin::PreexistingFreed | Origin::Workspace
                if self.stack_coverage.blocks =>
            {
                NoStack::BeforeRecording
            }
            _ => NoStack::NotRecorded,
        })
    }

    /// Why a segment that appears in a slot has no call stack.
    pub fn no_stack_of_segment(&self, stack: StackId, enters: u32) -> Option<NoStack> {
        (stack == StackId::EMPTY).then_some(match enters {
            0 if self.stack_coverage.blocks => NoStack::BeforeRecording,
            1.. if self.stack_coverage.allocs => NoStack::Backward,
            _ => NoStack::NotRecorded,
        })
    }
}
