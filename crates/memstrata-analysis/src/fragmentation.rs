//! Cached memory over time: how much is free inside of segments, how large its largest piece is, and what segments cost.

use crate::carving::Carving;
use crate::segments::segment_event;
use crate::trace::Trace;
use memstrata_snapshot::{PoolIndex, SegmentType, Snapshot, StreamId};
use memstrata_units::Bytes;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

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
    pub free: Vec<u64>,
    /// The largest piece of them.
    pub largest: Vec<u64>,
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
        let mut churn = Self::default();
        for row in trace.device.events.clone() {
            let (count, bytes) = match segment_event(snapshot.events.action(row)) {
                Some((true, false)) => (&mut churn.allocs, &mut churn.alloc_bytes),
                Some((false, false)) => (&mut churn.frees, &mut churn.free_bytes),
                Some((true, true)) => (&mut churn.maps, &mut churn.map_bytes),
                Some((false, true)) => (&mut churn.unmaps, &mut churn.unmap_bytes),
                None => continue,
            };
            *count += 1;
            bytes.0 = bytes.0.saturating_add(snapshot.events.size(row).0);
        }
        churn
    }
}

impl Fragmentation {
    /// Sweep a device's window.
    pub fn new(snapshot: &Snapshot, trace: &Trace, carving: &Carving) -> Self {
        let events = &snapshot.events;
        let mut gaps = Gaps::default();
        for span in carving.segments.spans.iter().take_while(|s| s.enters == 0) {
            gaps.reserve(span.address.0, span.end(), span.is_expandable);
        }
        let mut out = Self { churn: Churn::new(snapshot, trace), ..Self::default() };
        for slot in 0..trace.slots() {
            let extent = |block: u32| {
                let (address, size) = (trace.blocks[block as usize].address.0, carving.sizes[block as usize].0);
                (address, address.saturating_add(size))
            };
            for change in trace.changes_at(slot).iter().filter(|c| !c.enters()) {
                let (from, to) = extent(change.block());
                gaps.add(from, to);
            }
            // Slot 0 has no event: it is the state before the window.
            let row = (trace.device.events.start + slot).checked_sub(1).filter(|_| slot > 0);
            if let Some(row) = row
                && let Some((reserves, is_expandable)) = segment_event(events.action(row))
            {
                let from = events.addr(row).0;
                let to = from.saturating_add(events.size(row).0);
                if reserves {
                    gaps.reserve(from, to, is_expandable);
                } else {
                    gaps.remove(from, to);
                    gaps.walls.remove(&from);
                }
            }
            for change in trace.changes_at(slot).iter().filter(|c| c.enters()) {
                let (from, to) = extent(change.block());
                gaps.remove(from, to);
            }
            out.free.push(gaps.total);
            out.largest.push(gaps.sizes.last_key_value().map_or(0, |(&size, _)| size));
        }
        out
    }

    /// 1 - largest / free: 0 when all free memory is one piece, near 1 when it is in crumbs.
    pub fn ratio(&self, slot: u32) -> f64 {
        let (free, largest) = (self.free[slot as usize], self.largest[slot as usize]);
        if free == 0 { 0.0 } else { 1.0 - largest as f64 / free as f64 }
    }
}

/// Free ranges of addresses, and how many there are of each size.
#[derive(Default)]
struct Gaps {
    ranges: BTreeMap<u64, u64>,
    sizes: BTreeMap<u64, u32>,
    /// Starts of segments of their own: nothing merges across.
    walls: FxHashSet<u64>,
    total: u64,
}

impl Gaps {
    fn reserve(&mut self, from: u64, to: u64, is_expandable: bool) {
        if !is_expandable {
            self.walls.insert(from);
        }
        self.add(from, to);
    }

    fn put(&mut self, from: u64, to: u64) {
        if from < to {
            self.ranges.insert(from, to);
            *self.sizes.entry(to - from).or_default() += 1;
            self.total += to - from;
        }
    }

    fn take(&mut self, from: u64) -> Option<u64> {
        let to = self.ranges.remove(&from)?;
        self.total -= to - from;
        if let Some(count) = self.sizes.get_mut(&(to - from)) {
            *count -= 1;
            if *count == 0 {
                self.sizes.remove(&(to - from));
            }
        }
        Some(to)
    }

    fn add(&mut self, mut from: u64, mut to: u64) {
        // In an untidy trace it may be there already.
        self.remove(from, to);
        if !self.walls.contains(&to)
            && let Some(end) = self.take(to)
        {
            to = end;
        }
        let before = self.ranges.range(..from).next_back().map(|(&start, &end)| (start, end));
        if let Some((start, end)) = before
            && end == from
            && !self.walls.contains(&from)
        {
            self.take(start);
            from = start;
        }
        self.put(from, to);
    }

    fn remove(&mut self, from: u64, to: u64) {
        let first = self.ranges.range(..from).next_back().filter(|&(_, &end)| end > from).map(|(&start, _)| start);
        let starts: Vec<u64> =
            first.into_iter().chain(self.ranges.range(from..to.max(from)).map(|(&s, _)| s)).collect();
        for start in starts {
            let Some(end) = self.take(start) else { continue };
            self.put(start, from.min(end));
            self.put(to.max(start), end);
        }
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

/// Free memory by pool, stream and size class, of the segments at one moment; most free bytes first.
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
