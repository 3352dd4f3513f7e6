//! Blocks that take the place of older ones: `p.data = new`, `state[p] = new`.

use super::phases::Phases;
use super::window::Window;
use super::{Basis, Category, Guess, Phase};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use vramscope_snapshot::FrameId;
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, strides};

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 4;

/// A cast to another precision changes the size of a tensor by one of these factors, up or down.
const CASTS: [u64; 3] = [1, 2, 4];

/// Which block takes the place of which.
///
/// A line that allocates a tensor and then drops an older one of equal size, or of the size of
/// another precision, assigns the new one to the name of the old one.
#[derive(Default)]
pub(super) struct Lineage {
    /// Old block and new block, in the order of the frees.
    pairs: Vec<(u32, u32)>,
    /// The new block by the old one.
    after: FxHashMap<u32, u32>,
}

/// Blocks by the line and the size, in the order of their allocation.
type Waiting = FxHashMap<(FrameId, u64), VecDeque<(u32, u32)>>;

/// Finds which block of the program's own code or of an optimizer takes the place of which.
pub(super) async fn lineage(window: Window<'_>, budget: &mut Budget) -> Lineage {
    let Window { trace, phases, .. } = window;
    if !phases.frees_have_own_stacks {
        return Lineage::default();
    }
    // A temporary of an operation, or of an optimizer's step.
    let is_brief = |block: &Block| {
        let in_step = |alloc: u32, free: u32| {
            phases.current(alloc) == Some(Phase::Optimizer)
                && phases.period(alloc) == phases.period(free)
        };
        let life = block.alloc_event().zip(window.free(block));
        window.is_brief(block) || life.is_some_and(|(alloc, free)| in_step(alloc.0, free))
    };
    // Allocation, index and line of the new blocks.
    let mut new: Vec<(u32, u32, FrameId)> = Vec::new();
    let mut sites: FxHashSet<FrameId> = FxHashSet::default();
    let visit = |i, block: &Block, alloc| {
        if matches!(window.phase(block), Some(Phase::Optimizer | Phase::Other))
            && let Some(site) = window.stack(block).site
            && !is_brief(block)
        {
            new.push((alloc, i, site));
            sites.insert(site);
        }
    };
    window.each_alloc(COST_PER_BLOCK, budget, visit).await;
    let mut old: Vec<(u32, u32, FrameId)> = Vec::new();
    let visit = |i, block: &Block| {
        let Some(free) = window.free(block) else { return };
        if let Some(site) = window.site_of_event(free).filter(|site| sites.contains(site))
            && !is_brief(block)
        {
            old.push((free, i, site));
        }
    };
    window.trace.each_block(COST_PER_BLOCK, budget, visit).await;
    new.sort_unstable();
    old.sort_unstable();
    let mut lineage = Lineage::default();
    let mut waiting = Waiting::default();
    let mut new = new.into_iter().peekable();
    for part in strides(old.len()) {
        budget.charge(part.len() as u64 * COST_PER_BLOCK).await;
        for &(free, index, site) in &old[part] {
            while let Some((alloc, index, site)) = new.next_if(|new| new.0 < free) {
                let key = (site, trace.blocks[index as usize].bytes.0);
                waiting.entry(key).or_default().push_back((alloc, index));
            }
            let block = &trace.blocks[index as usize];
            if let Some(newer) = replacement(&mut waiting, phases, block, free, site)
                && newer != index
            {
                lineage.pairs.push((index, newer));
                lineage.after.insert(index, newer);
            }
        }
    }
    lineage
}

/// Takes the block that a line allocated in the period of a free, and before it, for the freed
/// block.
fn replacement(
    waiting: &mut Waiting,
    phases: &Phases,
    block: &Block,
    free: u32,
    site: FrameId,
) -> Option<u32> {
    let period = phases.period(free);
    let size = block.bytes.0;
    for factor in CASTS {
        for size in [size.checked_mul(factor)?, size / factor] {
            let Some(queue) = waiting.get_mut(&(site, size)) else { continue };
            while queue.front().is_some_and(|(alloc, _)| phases.period(*alloc) < period) {
                queue.pop_front();
            }
            let oldest = block.alloc_event().map_or(0, |alloc| alloc.0 + 1);
            if queue.front().is_some_and(|(alloc, _)| *alloc >= oldest) {
                return queue.pop_front().map(|(_, index)| index);
            }
        }
    }
    None
}

impl Lineage {
    /// The block that takes the place of another.
    pub(super) fn after(&self, block: u32) -> Option<u32> {
        self.after.get(&block).copied()
    }

    /// The youngest of the blocks that take the place of each other.
    pub(super) fn youngest(&self, block: u32) -> u32 {
        let mut youngest = block;
        while let Some(after) = self.after(youngest) {
            youngest = after;
        }
        youngest
    }

    /// Gives blocks that take the place of a parameter or of an optimizer's state its category.
    pub(super) async fn pass_on(&self, guesses: &mut [Guess], budget: &mut Budget) {
        for part in strides(self.pairs.len()) {
            budget.charge(part.len() as u64).await;
            for &(old, new) in &self.pairs[part] {
                let category = guesses[old as usize].category;
                let guess = &mut guesses[new as usize];
                if matches!(category, Category::Parameter | Category::OptimizerState)
                    && guess.category != category
                    && guess.basis < Basis::Stated
                {
                    *guess = Guess::new(category);
                }
            }
        }
    }
}
