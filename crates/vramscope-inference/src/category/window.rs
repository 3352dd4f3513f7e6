//! The blocks of a window, as all judgments read them.

use super::Phase;
use super::phases::Phases;
use super::stacks::StackHints;
use vramscope_snapshot::{FrameId, Snapshot, StrId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, Trace};

/// Upper bound for the life of a temporary inside one operation, in events. Half of it changes
/// the peak of 42 of 634 recordings, double of it of 39.
pub(super) const MAX_OPERATION_EVENTS: u32 = 16;

/// Smaller blocks are losses, labels and numbers of tokens, in bytes. In three of four
/// places half or double of it changes no peak, for growths half of it changes 2 of 87 recordings.
pub(super) const MIN_BYTES: u64 = 1 << 10;

/// Whether a part is 90 % of all or more: what else there is (buffers, sizes that occur by chance)
/// decides nothing.
pub(super) fn are_most(part: u128, all: u128) -> bool {
    10 * part >= 9 * all
}

/// A device's window with the evidence of its call stacks, and its phases.
#[derive(Clone, Copy)]
pub(super) struct Window<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) trace: &'a Trace,
    /// By stack.
    pub(super) stacks: &'a [StackHints],
    pub(super) phases: &'a Phases,
}

impl<'a> Window<'a> {
    /// Calls `visit` for each block that the window allocates, with its index and the event.
    pub(super) async fn each_alloc(
        self,
        cost: u64,
        budget: &mut Budget,
        mut visit: impl FnMut(u32, &'a Block, u32) + Send,
    ) {
        let visit = |index, block: &'a Block| {
            if let Some(alloc) = block.alloc_event() {
                visit(index, block, alloc.0);
            }
        };
        self.trace.each_block(cost, budget, visit).await;
    }

    pub(super) fn block(self, index: u32) -> &'a Block {
        &self.trace.blocks[index as usize]
    }

    /// The evidence from the stack of a block.
    pub(super) fn stack(self, block: &Block) -> StackHints {
        self.stacks[block.stack.0 as usize]
    }

    /// The file of the innermost Python frame of a block.
    pub(super) fn file(self, block: &Block) -> Option<StrId> {
        Some(self.snapshot.frame(self.stack(block).site?).file)
    }

    /// The innermost Python frame of an event.
    pub(super) fn site_of_event(self, event: u32) -> Option<FrameId> {
        let row = self.trace.device.events.start + event;
        self.stacks[self.snapshot.events.stack(row).0 as usize].site
    }

    /// The event at which the program freed a block. `None` if the block is live at the end.
    pub(super) fn free(self, block: &Block) -> Option<u32> {
        let free = block.free_requested().or(block.free_completed()).map(|event| event.0);
        free.or((!self.is_live_at_end(block)).then(|| block.leaves - 1))
    }

    pub(super) fn is_live_at_end(self, block: &Block) -> bool {
        block.leaves == self.trace.slots()
    }

    /// Whether a block is live after an event.
    pub(super) fn outlives(self, block: &Block, event: u32) -> bool {
        self.free(block).is_none_or(|free| free > event)
    }

    /// Whether a block that the window allocates is a temporary inside one operation.
    pub(super) fn is_brief(self, block: &Block) -> bool {
        block.alloc_event().is_some_and(|alloc| {
            self.free(block).is_some_and(|free| free - alloc.0 <= MAX_OPERATION_EVENTS)
        })
    }

    /// The phase that allocates a block. `None` if it could be any, or the window does not
    /// allocate it.
    pub(super) fn phase(self, block: &Block) -> Option<Phase> {
        self.phases.of_alloc(block.alloc_event()?.0, self.stack(block))
    }
}
