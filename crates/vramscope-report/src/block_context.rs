//! What a block belongs to: the blocks of its call site, and its step and phase.

use crate::Target;
use crate::target::slot_of;
use rustc_hash::FxHashMap;
use vramscope_inference::StepPart;
use vramscope_snapshot::Frame;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, NoStack};

/// The blocks of one call site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteSum {
    /// The number of blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of blocks that are live at the peak of `requested_bytes`.
    pub peak_blocks: u64,
    /// Their bytes.
    pub peak_bytes: u64,
}

/// A call site, or why there is none.
type SiteKey = (Option<Frame>, Option<NoStack>);

/// What the blocks of a trace belong to.
#[derive(Debug)]
pub struct BlockContext {
    sites: FxHashMap<SiteKey, SiteSum>,
    parts: Vec<StepPart>,
}

fn key(target: Target<'_>, block: &Block) -> SiteKey {
    let no_stack = target.trace().no_stack(block);
    let frame = target.entry.sites.get(block.stack).frame;
    (frame.filter(|_| no_stack.is_none()), no_stack)
}

impl BlockContext {
    /// Sums the blocks of each call site, and finds steps and phases.
    pub(crate) async fn new(target: Target<'_>, budget: &mut Budget) -> Self {
        let (entry, trace) = (target.entry, target.trace());
        let slot = slot_of(trace.requested_band.peak_event);
        let mut sites: FxHashMap<SiteKey, SiteSum> = FxHashMap::default();
        let visit = |_, block: &Block| {
            let sum = sites.entry(key(target, block)).or_default();
            sum.blocks += 1;
            sum.bytes = sum.bytes.saturating_add(block.bytes.0);
            if block.is_live_at(slot) {
                sum.peak_blocks += 1;
                sum.peak_bytes = sum.peak_bytes.saturating_add(block.bytes.0);
            }
        };
        trace.each_block(4, budget, visit).await;
        Self { sites, parts: entry.passes(target.index).parts.clone() }
    }

    /// The blocks of a block's call site.
    pub fn site(&self, target: Target<'_>, block: &Block) -> SiteSum {
        self.sites.get(&key(target, block)).copied().unwrap_or_default()
    }

    /// The step and phase that allocated a block; `None` for a block from before the window, and
    /// where nothing shows them.
    pub fn part(&self, block: &Block) -> Option<&StepPart> {
        let event = block.alloc_event()?.0;
        self.parts.get(self.parts.partition_point(|part| part.end <= event))
    }
}
