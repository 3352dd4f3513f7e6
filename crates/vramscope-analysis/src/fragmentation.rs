//! Cached memory over time: how much is free inside of segments, how large its largest piece is,
//! and what segments cost.

mod gaps;
mod sweep;

use crate::carving::Carving;
use crate::parallel;
use crate::segments::segment_event;
use crate::series::Series;
use crate::slicing::{Budget, run_to_completion, strides};
use crate::trace::Trace;
use std::collections::BTreeMap;
use std::ops::Range;
use vramscope_snapshot::{PoolIndex, SegmentType, Snapshot, StreamId};
use vramscope_units::Bytes;

/// Free memory of one kind is of no use to another: blocks never move between these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FreeKind {
    /// The memory pool.
    pub pool: PoolIndex,
    /// The stream.
    pub stream: StreamId,
    /// Whether it serves small requests.
    pub is_small: bool,
}

/// Free memory in every slot.
#[derive(Clone, Debug, Default)]
pub struct Fragmentation {
    /// Cached-free bytes: reserved - active.
    pub free: Series,
    /// The largest piece of them.
    pub largest: Series,
    /// Segment events of the window.
    pub churn: Churn,
}

/// How often memory was taken from the device and given back, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Churn {
    /// `segment_alloc` events (cudaMalloc).
    pub allocs: u32,
    /// Their bytes.
    pub alloc_bytes: Bytes,
    /// `segment_free` events (cudaFree).
    pub frees: u32,
    /// Their bytes.
    pub free_bytes: Bytes,
    /// `segment_map` events.
    pub maps: u32,
    /// Their bytes.
    pub map_bytes: Bytes,
    /// `segment_unmap` events.
    pub unmaps: u32,
    /// Their bytes.
    pub unmap_bytes: Bytes,
}

impl Churn {
    /// Count a device's segment events.
    pub fn new(snapshot: &Snapshot, trace: &Trace) -> Self {
        run_to_completion(Self::sliced(snapshot, trace, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced(snapshot: &Snapshot, trace: &Trace, budget: &mut Budget) -> Self {
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
    /// Sweep a device's window.
    pub fn new(snapshot: &Snapshot, trace: &Trace, carving: &Carving) -> Self {
        run_to_completion(Self::sliced(snapshot, trace, carving, &mut Budget::unlimited()))
    }

    /// The same in slices.
    pub async fn sliced(
        snapshot: &Snapshot,
        trace: &Trace,
        carving: &Carving,
        budget: &mut Budget,
    ) -> Self {
        let mut made = Self::until(snapshot, trace, carving, trace.slots(), budget).await;
        made.churn = Churn::sliced(snapshot, trace, budget).await;
        made
    }

    /// The first slots alone, without what segments cost.
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

    /// 1 - largest / free: 0 when all free memory is one piece, near 1 when it is in crumbs.
    pub fn ratio(&self, slot: u32) -> f64 {
        let (free, largest) = (self.free.at(slot), self.largest.at(slot));
        if free == 0 { 0.0 } else { 1.0 - largest as f64 / free as f64 }
    }
}

/// What is free of one kind at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeShare {
    /// Which kind.
    pub kind: FreeKind,
    /// Bytes reserved for it.
    pub reserved: Bytes,
    /// Bytes of blocks that are not yet free.
    pub active: Bytes,
    /// Cached-free bytes.
    pub free: Bytes,
    /// The largest free piece.
    pub largest: Bytes,
}

/// Free memory by pool, stream and size class, of the segments at one moment; most free bytes
/// first.
pub fn free_shares(segments: &[crate::state::SegmentState]) -> Vec<FreeShare> {
    let mut by_kind: BTreeMap<FreeKind, FreeShare> = BTreeMap::new();
    for segment in segments {
        let kind = FreeKind {
            pool: segment.pool,
            stream: segment.stream,
            is_small: segment.segment_type == SegmentType::Small,
        };
        let zero = Bytes(0);
        let empty = FreeShare { kind, reserved: zero, active: zero, free: zero, largest: zero };
        let row = by_kind.entry(kind).or_insert(empty);
        row.reserved.0 += segment.size.0;
        row.active.0 += segment.active.0;
        row.free.0 += segment.free.0;
        row.largest = row.largest.max(segment.largest_free);
    }
    let mut rows: Vec<FreeShare> = by_kind.into_values().collect();
    rows.sort_unstable_by_key(|r| (std::cmp::Reverse(r.free), r.kind));
    rows
}
