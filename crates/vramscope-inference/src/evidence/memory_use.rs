//! The uses of the reserved memory of one state.

use super::Evidence;
use crate::step_phases::CategoryBytes;
use vramscope_snapshot::{Action, PoolId, PoolIndex, SegmentType, Snapshot, StreamId};
use vramscope_trace::slicing::{Boxed, Budget, strides};
use vramscope_trace::{Content, LiveSet, SegmentState, reserve_change};
use vramscope_units::Bytes;

/// Pages of the large pool of an expandable segment (`kLargeBuffer`).
const LARGE_PAGE: u64 = 20 << 20;

/// Pages of the small pool of an expandable segment (`kSmallBuffer`).
const SMALL_PAGE: u64 = 2 << 20;

/// Reserved bytes by their use. They add up to all reserved bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Requested bytes of live blocks, and of blocks that wait for another stream.
    pub in_use: Bytes,
    /// Bytes that rounding adds to these blocks.
    pub rounding: Bytes,
    /// Free segments, and free pages of expandable segments. The allocator returns them to the
    /// driver when memory is short.
    pub idle: Bytes,
    /// Free parts of large segments that are in use.
    pub stuck: Bytes,
    /// Free parts of small segments that are in use.
    pub small: Bytes,
    /// Free memory in the pools of CUDA graphs. Replays of the graphs use it.
    pub graph_pools: Bytes,
    /// The number of segments with a part in `idle`.
    pub idle_segments: usize,
    /// The number of segments with a part in `stuck`.
    pub stuck_segments: usize,
    /// The largest piece in `stuck`.
    pub largest_stuck: Bytes,
}

impl MemoryUse {
    pub(crate) fn of(snapshot: &Snapshot, segments: &[SegmentState]) -> Self {
        let mut sum = Self::default();
        for segment in segments {
            sum.in_use.0 += segment.requested.0;
            sum.rounding.0 += segment.active.0.saturating_sub(segment.requested.0);
            if is_graph_pool(snapshot, segment.pool, segment.stream) {
                sum.graph_pools.0 += segment.free.0;
                continue;
            }
            let idle = idle_bytes(segment);
            let rest = segment.free.0 - idle;
            sum.idle.0 += idle;
            sum.idle_segments += usize::from(idle > 0);
            if segment.segment_type == SegmentType::Small {
                sum.small.0 += rest;
            } else if rest > 0 {
                sum.stuck.0 += rest;
                sum.stuck_segments += 1;
                sum.largest_stuck = sum.largest_stuck.max(segment.largest_free);
            }
        }
        sum
    }

    /// The use of the memory of a slot, and the requested bytes of its live blocks by category.
    /// These add up to `in_use`.
    #[inline(never)]
    pub fn at<'a>(
        cx: Evidence<'a>,
        slot: u32,
        budget: &'a mut Budget,
    ) -> Boxed<'a, (Self, CategoryBytes)> {
        Box::pin(async move {
            let live = LiveSet::new(cx.trace, slot, budget).await;
            let segments = segments_of(cx, &live, budget).await;
            // Damaged files have blocks outside of all segments, which `of` does not see.
            let mut memory =
                Self { in_use: Bytes(0), rounding: Bytes(0), ..Self::of(cx.snapshot, &segments) };
            let mut categories = CategoryBytes::default();
            for part in strides(live.blocks().len()) {
                budget.charge(part.len() as u64).await;
                for &index in &live.blocks()[part] {
                    let bytes = cx.trace.blocks[index as usize].bytes.0;
                    categories[cx.categories.get(index).category as usize] += bytes;
                    memory.in_use.0 += bytes;
                    let size = cx.carving.sizes[index as usize].0;
                    memory.rounding.0 += size.saturating_sub(bytes);
                }
            }
            (memory, categories)
        })
    }

    /// All reserved bytes.
    pub fn reserved(&self) -> Bytes {
        Bytes(self.in_use.0 + self.rounding.0 + self.free().0 + self.graph_pools.0)
    }

    /// Free bytes outside of the pools of CUDA graphs.
    pub fn free(&self) -> Bytes {
        Bytes(self.idle.0 + self.stuck.0 + self.small.0)
    }
}

/// Bytes of a segment that the allocator can return to the driver.
fn idle_bytes(segment: &SegmentState) -> u64 {
    if segment.active.0 == 0 {
        return segment.free.0;
    }
    if !segment.is_expandable {
        return 0;
    }
    let page = if segment.segment_type == SegmentType::Small { SMALL_PAGE } else { LARGE_PAGE };
    let free = segment.pieces.iter().filter(|piece| piece.content == Content::Free);
    let whole_pages = free.map(|piece| {
        let from = (piece.address.0 - segment.address.0).div_ceil(page) * page;
        let to = (piece.address.0 - segment.address.0 + piece.size.0) / page * page;
        to.saturating_sub(from)
    });
    whole_pages.sum()
}

/// Whether segments of a pool and a stream belong to CUDA graphs.
///
/// Captures make pools with the id (n, 0). A pool with the id (0, n) was made by `MemPool` or by
/// `graph_pool_handle`. The latter serves captures, which never run on the default stream.
pub(crate) fn is_graph_pool(snapshot: &Snapshot, pool: PoolIndex, stream: StreamId) -> bool {
    match snapshot.pool(pool) {
        None | Some(PoolId::DEFAULT) => false,
        Some(PoolId(0, _)) => snapshot.stream(stream) != 0,
        Some(_) => true,
    }
}

/// Of the slots with the peak of `reserved_bytes`, the first with most active memory.
///
/// PyTorch records a reservation and the allocation that needs it one after the other, so right
/// after a reservation its slot is followed by that of the block.
pub async fn slot_of_reserved_peak(cx: Evidence<'_>, budget: &mut Budget) -> u32 {
    let rows = &cx.trace.device.events;
    let band = cx.trace.reserved_band;
    let mut best: Option<(u32, u64)> = None;
    let (mut reserved, mut from) = (band.start, (band.start == band.peak).then_some(0));
    for part in strides(rows.len() + 1) {
        budget.charge(2 * part.len() as u64).await;
        for event in part {
            let is_end = event == rows.len();
            let change =
                if is_end { 0 } else { reserve_change(cx.snapshot, rows.start + event as u32) };
            if change == 0 && !is_end {
                continue;
            }
            // The slots up to the event have what was reserved before it.
            let next = event as u32 + 1;
            if let Some(from) = from.take() {
                let most = cx.carving.active.largest_sliced(from..next, budget).await;
                let is_more = |most: &(u32, u64)| best.is_none_or(|best| best.1 < most.1);
                best = most.filter(is_more).or(best);
            }
            reserved += change;
            from = (reserved == band.peak && !is_end).then_some(next);
        }
    }
    let Some((slot, _)) = best else { return 0 };
    let is_reservation = slot > 0 && reserve_change(cx.snapshot, rows.start + slot - 1) > 0;
    let row = rows.start + slot;
    let serves = row < rows.end && cx.snapshot.events.action(row) == Action::ALLOC;
    slot + u32::from(is_reservation && serves)
}

/// The slot in which `reserved_bytes` first reaches its peak, with the block that the reservation
/// was for.
pub(crate) fn slot_of_last_rise(cx: Evidence<'_>) -> u32 {
    let Some(event) = cx.trace.reserved_band.peak_event else { return 0 };
    let row = cx.trace.device.events.start + event + 1;
    let serves =
        row < cx.trace.device.events.end && cx.snapshot.events.action(row) == Action::ALLOC;
    event + 1 + u32::from(serves)
}

/// The segments of a slot. No pool of them is unknown.
pub(crate) async fn segments_at(
    cx: Evidence<'_>,
    slot: u32,
    budget: &mut Budget,
) -> Vec<SegmentState> {
    let live = LiveSet::new(cx.trace, slot, budget).await;
    segments_of(cx, &live, budget).await
}

async fn segments_of(
    cx: Evidence<'_>,
    live: &LiveSet<'_>,
    budget: &mut Budget,
) -> Vec<SegmentState> {
    budget.charge(4 * (live.blocks().len() + cx.carving.segments.spans.len()) as u64).await;
    let mut segments = live.segments(cx.carving);
    for segment in &mut segments {
        segment.pool = pool_or_default(segment.pool);
    }
    segments
}

/// The default pool in [`Snapshot::pools`].
pub(crate) const DEFAULT_POOL: PoolIndex = PoolIndex(0);

/// The default pool in place of an unknown one. Before PyTorch 2.12 only the final segments name
/// their pool.
pub(crate) fn pool_or_default(pool: PoolIndex) -> PoolIndex {
    if pool == PoolIndex::UNKNOWN { DEFAULT_POOL } else { pool }
}
