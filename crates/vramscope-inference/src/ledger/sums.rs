//! Reserved memory by its use, KV caches, workspaces, and the most memory of activations.

use super::captures::GraphMemory;
use crate::category::Category;
use crate::evidence::{Evidence, is_graph_pool, segments_at};
use std::cmp::Reverse;
use vramscope_snapshot::{StackId, StreamId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, Content, group_by_key};
use vramscope_units::{Bytes, EventIndex};

/// `reserved_bytes` of one slot by use. The parts add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerSum {
    /// The slot.
    pub slot: u32,
    /// All reserved bytes.
    pub reserved: Bytes,
    /// Blocks of parameters and buffers.
    pub weights: Bytes,
    /// Blocks of caches of keys and values, and of similar stores.
    pub caches: Bytes,
    /// Pools of CUDA graphs, live or not, without workspaces in them.
    pub graphs: Bytes,
    /// Workspaces of libraries, in any pool.
    pub workspaces: Bytes,
    /// Blocks of activations, temporaries and inputs outside of pools of graphs.
    pub activations: Bytes,
    /// All other blocks outside of pools of graphs.
    pub other: Bytes,
    /// Free memory outside of pools of graphs: what earlier work has left cached.
    pub free: Bytes,
}

impl LedgerSum {
    pub(super) async fn at(cx: Evidence<'_>, slot: u32, budget: &mut Budget) -> Self {
        let mut sum = Self { slot, ..Self::default() };
        for segment in segments_at(cx, slot, budget).await {
            budget.charge(segment.pieces.len() as u64).await;
            sum.reserved.0 += segment.size.0;
            let is_graph = is_graph_pool(cx.snapshot, segment.pool, segment.stream);
            for piece in &segment.pieces {
                let part = match piece.content {
                    Content::Free if is_graph => &mut sum.graphs,
                    Content::Free => &mut sum.free,
                    Content::Block { block, .. } => match cx.categories.get(block).category {
                        Category::Workspace => &mut sum.workspaces,
                        _ if is_graph => &mut sum.graphs,
                        Category::Parameter | Category::Buffer => &mut sum.weights,
                        Category::Cache => &mut sum.caches,
                        Category::Activation | Category::Temporary | Category::Input => {
                            &mut sum.activations
                        }
                        Category::Gradient
                        | Category::OptimizerState
                        | Category::Communication
                        | Category::Unknown => &mut sum.other,
                    },
                };
                part.0 += piece.size.0;
            }
        }
        sum
    }
}

/// Blocks of a cache that one call stack allocated, and that are live at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGroup {
    /// The call stack.
    pub stack: StackId,
    /// The number of blocks.
    pub blocks: u32,
    /// Their bytes, with rounding.
    pub bytes: Bytes,
    /// The size of the smallest block and of the largest.
    pub range: (Bytes, Bytes),
    /// The event that allocated the first; `None` if that was before the window.
    pub first: Option<EventIndex>,
    /// The event that allocated the last; `None` if that was before the window.
    pub last: Option<EventIndex>,
}

/// The caches of a slot, outside of pools of graphs.
pub(super) async fn caches(cx: Evidence<'_>, slot: u32, budget: &mut Budget) -> Vec<CacheGroup> {
    let live = cx.trace.live_at(slot, budget).await.into_iter();
    let caches = live.filter(|of| cx.categories.get(of.0).category == Category::Cache);
    let live = caches.map(|(i, block)| (cx.sites.same_line(block.stack), i)).collect();
    let group = |(stack, blocks): (StackId, Vec<u32>)| {
        let sizes = || blocks.iter().map(|&index| cx.carving.sizes[index as usize]);
        let enters = || blocks.iter().map(|&index| cx.trace.blocks[index as usize].enters);
        let event = |slot: Option<u32>| slot.and_then(|slot| slot.checked_sub(1)).map(EventIndex);
        CacheGroup {
            stack,
            blocks: blocks.len() as u32,
            bytes: Bytes(sizes().map(|size| size.0).sum()),
            range: (sizes().min().unwrap_or_default(), sizes().max().unwrap_or_default()),
            first: event(enters().min()),
            last: event(enters().max()),
        }
    };
    let mut groups: Vec<CacheGroup> = group_by_key(live).into_iter().map(group).collect();
    groups.sort_by_key(|group| (Reverse(group.bytes), group.stack));
    groups
}

/// Workspaces of libraries on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceOfStream {
    /// The stream.
    pub stream: StreamId,
    /// The number of blocks.
    pub blocks: u32,
    /// Their bytes.
    pub bytes: Bytes,
    /// Those of them in pools of graphs.
    pub in_graphs: Bytes,
}

/// The workspaces of a slot, most bytes first.
pub(crate) async fn workspaces(
    cx: Evidence<'_>,
    memory: &GraphMemory<'_>,
    slot: u32,
    budget: &mut Budget,
) -> Vec<WorkspaceOfStream> {
    let live = cx.trace.live_at(slot, budget).await.into_iter();
    let workspaces = live.filter(|of| cx.categories.get(of.0).category == Category::Workspace);
    let sizes = &cx.carving.sizes;
    let live = workspaces
        .map(|(i, block)| (block.stream, (sizes[i as usize].0, memory.contains(i))))
        .collect();
    let of_stream = |(stream, blocks): (StreamId, Vec<(u64, bool)>)| WorkspaceOfStream {
        stream,
        blocks: blocks.len() as u32,
        bytes: Bytes(blocks.iter().map(|of| of.0).sum()),
        in_graphs: Bytes(blocks.iter().filter(|of| of.1).map(|of| of.0).sum()),
    };
    let mut streams: Vec<WorkspaceOfStream> =
        group_by_key(live).into_iter().map(of_stream).collect();
    streams.sort_by_key(|of| (Reverse(of.bytes), of.stream));
    streams
}

/// The most bytes of blocks at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MostAtOnce {
    /// Bytes, with rounding.
    pub bytes: Bytes,
    /// The first event after which they are live; `None` if that was before the window.
    pub event: Option<EventIndex>,
}

/// The most bytes of activations, temporaries and inputs outside of pools of graphs: before the
/// slot of the first block of the caches, and after it.
pub(super) async fn activations(
    cx: Evidence<'_>,
    memory: &GraphMemory<'_>,
    first_cache: Option<u32>,
    budget: &mut Budget,
) -> (Option<MostAtOnce>, MostAtOnce) {
    let mut changes: Vec<(u32, bool, u64)> = Vec::new();
    let visit = |index, block: &Block| {
        let is_work = matches!(
            cx.categories.get(index).category,
            Category::Activation | Category::Temporary | Category::Input
        );
        if is_work && !memory.contains(index) {
            let size = cx.carving.sizes[index as usize].0;
            // What leaves in a slot leaves first.
            changes.extend([(block.enters, true, size), (block.leaves, false, size)]);
        }
    };
    cx.trace.each_block(4, budget, visit).await;
    changes.sort_unstable();
    let (mut before, mut after) = (MostAtOnce::default(), MostAtOnce::default());
    let mut now = 0u64;
    for (slot, enters, size) in changes {
        now = if enters { now.saturating_add(size) } else { now.saturating_sub(size) };
        let is_before = first_cache.is_some_and(|first| slot < first);
        let most = if is_before { &mut before } else { &mut after };
        if now > most.bytes.0 {
            *most = MostAtOnce { bytes: Bytes(now), event: slot.checked_sub(1).map(EventIndex) };
        }
    }
    ((before.bytes.0 > 0).then_some(before), after)
}
