//! The KV cache that an inference engine reserves at its start, and what it needs beside it.

use super::captures::GraphMemory;
use super::sums::{self, LedgerSum, MostAtOnce};
use crate::category::Category;
use crate::evidence::Evidence;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, group_by_key};
use vramscope_units::Bytes;

/// The part of what a line allocates for caches, in percent, that is live at once. A line that
/// grows a cache by each token, or makes one for each request, allocates its memory many times
/// over; an engine allocates it once, after a small one of its profile run.
const MIN_PART_PERCENT: u128 = 90;

/// A KV cache that was allocated once and serves all requests, and the memory beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The blocks of the cache, ascending.
    pub blocks: Vec<u32>,
    /// Their requested bytes.
    pub cache: Bytes,
    /// Whether all of them have one size.
    pub has_equal_blocks: bool,
    /// The call stack that allocated most of them.
    pub stack: StackId,
    /// `reserved_bytes` by use in the slot in which most is reserved beside the whole cache.
    pub sum: LedgerSum,
    /// The most memory of activations at once before the cache: the profile run. `None` if the
    /// cache is older than the window.
    pub profile: Option<MostAtOnce>,
    /// The same after it.
    pub work: MostAtOnce,
}

impl Serving {
    /// The cache of a device's window. `None` where the program trains, has no cache, or allocates
    /// caches again and again.
    pub async fn of(cx: Evidence<'_>, budget: &mut Budget) -> Option<Self> {
        if cx.trains() {
            return None;
        }
        let blocks = store(cx, budget).await?;
        let block = |index: &u32| &cx.trace.blocks[*index as usize];
        let (from, until) = (
            blocks.iter().map(|index| block(index).enters).max()?,
            blocks.iter().map(|index| block(index).leaves).min()?,
        );
        let reserved = cx.trace.reserved(cx.snapshot, budget).await;
        let (slot, _) = reserved.largest_sliced(from..until.min(cx.trace.slots()), budget).await?;
        let memory = GraphMemory::of(cx, budget).await;
        let first = blocks.iter().map(|index| block(index).enters).min().filter(|&at| at > 0);
        let (profile, work) = sums::activations(cx, &memory, first, budget).await;
        let sizes = || blocks.iter().map(|index| block(index).bytes.0);
        let by_stack = blocks.iter().map(|index| (block(index).stack, block(index).bytes.0));
        let by_stack = group_by_key(by_stack.collect());
        let most = by_stack.iter().max_by_key(|(_, bytes)| sum(bytes.iter().copied()))?;
        Some(Self {
            cache: Bytes(sum(sizes())),
            has_equal_blocks: sizes().max() == sizes().min(),
            stack: most.0,
            sum: LedgerSum::at(cx, slot, budget).await,
            profile,
            work,
            blocks,
        })
    }

    /// The most memory of activations at once: of the profile run, or of later work.
    pub fn activations(&self) -> Bytes {
        self.profile.map_or(self.work.bytes, |profile| profile.bytes.max(self.work.bytes))
    }
}

/// The sum of sizes, which a damaged file may have of any amount.
fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// The blocks of caches that are live when their sum is highest, of the lines that allocate their
/// caches once.
async fn store(cx: Evidence<'_>, budget: &mut Budget) -> Option<Vec<u32>> {
    let mut all: Vec<(StackId, u32)> = Vec::new();
    let visit = |index, block: &Block| {
        if cx.categories.get(index).category == Category::Cache {
            all.push((cx.sites.same_line(block.stack), index));
        }
    };
    cx.trace.each_block(1, budget, visit).await;
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let mut changes: Vec<(u32, bool, u64)> = Vec::new();
    for &(_, index) in &all {
        let (block, bytes) = (block(index), block(index).bytes.0);
        // What leaves in a slot leaves first.
        changes.extend([(block.enters, true, bytes), (block.leaves, false, bytes)]);
    }
    budget.charge(8 * changes.len() as u64).await;
    changes.sort_unstable();
    let (mut now, mut most, mut at) = (0_u64, 0, 0);
    for (slot, enters, bytes) in changes {
        now = if enters { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        if now > most {
            (most, at) = (now, slot);
        }
    }
    let bytes_of = |blocks: &[u32]| u128::from(sum(blocks.iter().map(|&i| block(i).bytes.0)));
    let mut blocks: Vec<u32> = Vec::new();
    for (_, mut of_line) in group_by_key(all) {
        let allocated = bytes_of(&of_line);
        of_line.retain(|&index| block(index).is_live_at(at));
        if bytes_of(&of_line) * 100 >= allocated * MIN_PART_PERCENT {
            blocks.append(&mut of_line);
        }
    }
    blocks.sort_unstable();
    is_at_once(cx, &blocks, budget).await.then_some(blocks)
}

/// Whether little else is allocated between the first block and the last. A model that makes the
/// cache of each layer when it runs has the activations of its layers there.
async fn is_at_once(cx: Evidence<'_>, blocks: &[u32], budget: &mut Budget) -> bool {
    let enters = || blocks.iter().map(|&index| cx.trace.blocks[index as usize].enters);
    let (Some(first), Some(last)) = (enters().min(), enters().max()) else { return false };
    let mut others = 0;
    let visit = |_, block: &Block| {
        others += usize::from(first < block.enters && block.enters < last);
    };
    cx.trace.each_block(1, budget, visit).await;
    // All but two of the blocks are among these.
    others <= 2 * blocks.len()
}
