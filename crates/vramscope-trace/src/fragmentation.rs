//! Cached memory over time: free bytes inside segments, the largest free range, and segment churn.

mod gaps;
mod largest_free;
mod sweep;

pub use largest_free::{LargestFree, largest_free};

use crate::carving::Carving;
use crate::group_by_key;
use crate::parallel;
use crate::segments::segment_event;
use crate::series::Series;
use crate::slicing::{Budget, strides};
use crate::state::SegmentState;
use crate::trace::Trace;
use std::ops::Range;
use vramscope_snapshot::{PoolIndex, SegmentType, Snapshot, StreamId};
use vramscope_units::Bytes;

/// The pool that a free range belongs to. The allocator never uses free memory of one kind for a
/// request of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FreeKind {
    /// Memory pool.
    pub pool: PoolIndex,
    /// Stream.
    pub stream: StreamId,
    /// Whether the memory serves small requests.
    pub is_small: bool,
}

/// Free memory in every slot.
#[derive(Clone, Debug, Default)]
pub struct Fragmentation {
    /// Cached free bytes: reserved - active.
    pub free: Series,
    /// Size of the largest free range, in bytes.
    pub largest: Series,
    /// Segment events of the window.
    pub churn: Churn,
}

/// Number of segment events of each kind, and the bytes that they reserved or released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Churn {
    /// Number of `segment_alloc` events (cudaMalloc).
    pub allocs: u32,
    /// Bytes of the `segment_alloc` events.
    pub alloc_bytes: Bytes,
    /// Number of `segment_free` events (cudaFree).
    pub frees: u32,
    /// Bytes of the `segment_free` events.
    pub free_bytes: Bytes,
    /// Number of `segment_map` events.
    pub maps: u32,
    /// Bytes of the `segment_map` events.
    pub map_bytes: Bytes,
    /// Number of `segment_unmap` events.
    pub unmaps: u32,
    /// Bytes of the `segment_unmap` events.
    pub unmap_bytes: Bytes,
}

impl Churn {
    /// Counts a device's segment events.
    pub async fn new(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Self {
        let mut churn = Self::default();
        for part in strides(trace.device.events.len()) {
            budget.charge(part.len() as u64).await;
            let start = trace.device.events.start;
            churn.add(snapshot, start + part.start as u32..start + part.end as u32);
        }
        churn
    }

    fn add(&mut self, snapshot: &Snapshot, rows: Range<u32>) {
        for row in rows {
            let (count, bytes) = match segment_event(snapshot.events.action(row)) {
                Some((true, false)) => (&mut self.allocs, &mut self.alloc_bytes),
                Some((false, false)) => (&mut self.frees, &mut self.free_bytes),
                Some((true, true)) => (&mut self.maps, &mut self.map_bytes),
                Some((false, true)) => (&mut self.unmaps, &mut self.unmap_bytes),
                None => continue,
            };
            *count += 1;
            bytes.0 = bytes.0.saturating_add(snapshot.events.size(row).0);
        }
    }
}

impl Fragmentation {
    /// Measures free memory in every slot of a device's window.
    pub async fn new(
        snapshot: &Snapshot,
        trace: &Trace,
        carving: &Carving,
        budget: &mut Budget,
    ) -> Self {
        let all_slots = Self::until(snapshot, trace, carving, trace.slots(), budget).await;
        Self { churn: Churn::new(snapshot, trace, budget).await, ..all_slots }
    }

    /// Measures the first `slots` slots only, and leaves `churn` at zero.
    pub async fn until(
        snapshot: &Snapshot,
        trace: &Trace,
        carving: &Carving,
        slots: u32,
        budget: &mut Budget,
    ) -> Self {
        let (free, largest) =
            sweep::series(snapshot, trace, carving, slots, parallel::threads(), budget).await;
        Self { free, largest, churn: Churn::default() }
    }

    /// `1 - largest / free`. 0 if all free memory is one range, near 1 if it is in many small ones.
    pub fn ratio(&self, slot: u32) -> f64 {
        let (free, largest) = (self.free.at(slot), self.largest.at(slot));
        if free == 0 { 0.0 } else { 1.0 - largest as f64 / free as f64 }
    }
}

/// Reserved, active and free bytes of one kind in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeShare {
    /// Pool, stream and size class.
    pub kind: FreeKind,
    /// Reserved bytes.
    pub reserved: Bytes,
    /// Bytes of active blocks.
    pub active: Bytes,
    /// Cached free bytes.
    pub free: Bytes,
    /// Size of the largest free range.
    pub largest: Bytes,
}

/// Sums up the segments of one slot by pool, stream and size class. Most free bytes come first.
pub fn free_shares(segments: &[SegmentState]) -> Vec<FreeShare> {
    let kind = |segment: &SegmentState| FreeKind {
        pool: segment.pool,
        stream: segment.stream,
        is_small: segment.segment_type == SegmentType::Small,
    };
    let row = |(kind, segments): (FreeKind, Vec<&SegmentState>)| {
        let zero = Bytes(0);
        let mut row = FreeShare { kind, reserved: zero, active: zero, free: zero, largest: zero };
        for segment in segments {
            row.reserved.0 += segment.size.0;
            row.active.0 += segment.active.0;
            row.free.0 += segment.free.0;
            row.largest = row.largest.max(segment.largest_free);
        }
        row
    };
    let by_kind = group_by_key(segments.iter().map(|segment| (kind(segment), segment)).collect());
    let mut rows: Vec<FreeShare> = by_kind.into_iter().map(row).collect();
    rows.sort_by_key(|r| (std::cmp::Reverse(r.free), r.kind));
    rows
}
