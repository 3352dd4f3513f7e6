//! The largest free range of each pool, stream and size class in every slot.

use super::FreeKind;
use super::gaps::Gaps;
use crate::carving::Carving;
use crate::segments::{Span, segment_event};
use crate::slicing::{Budget, strides};
use crate::trace::Trace;
use std::collections::BTreeMap;
use std::ops::Range;
use vramscope_snapshot::{PoolIndex, SegmentType, Snapshot};
use vramscope_units::Bytes;

/// The default pool is the first of [`Snapshot::pools`].
const DEFAULT_POOL: PoolIndex = PoolIndex(0);

/// Cost of sweeping a slot, in units of [`Budget`].
const COST_PER_SLOT: u64 = 32;

/// The largest free range of one kind over the window. A request of this kind that is larger needs
/// new memory from the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargestFree {
    /// Pool, stream and size class.
    pub kind: FreeKind,
    /// The slots in which the size changes, with the new size, by slot. The size is 0 before.
    changes: Vec<(u32, u64)>,
}

impl LargestFree {
    /// The size in a slot.
    pub fn at(&self, slot: u32) -> Bytes {
        let after = self.changes.partition_point(|change| change.0 <= slot);
        Bytes(after.checked_sub(1).map_or(0, |last| self.changes[last].1))
    }

    /// The largest size in a range of slots, and the first slot with it. `None` for no slots.
    pub fn most_in(&self, slots: Range<u32>) -> Option<(u32, Bytes)> {
        if slots.is_empty() {
            return None;
        }
        let after = self.changes.partition_point(|change| change.0 <= slots.start);
        let mut most = (slots.start, self.at(slots.start));
        for &(slot, size) in self.changes[after..].iter().take_while(|c| c.0 < slots.end) {
            if size > most.1.0 {
                most = (slot, Bytes(size));
            }
        }
        Some(most)
    }

    /// The slots in which the size changes, with the new size, by slot. The size is 0 before.
    pub fn changes(&self) -> &[(u32, u64)] {
        &self.changes
    }
}

/// The largest free range of every kind of segment of a device's window, by kind.
///
/// Segments without a pool in the file count toward the default pool. Before PyTorch 2.12 these are
/// the segments that are released before the end.
pub async fn largest_free(
    snapshot: &Snapshot,
    trace: &Trace,
    carving: &Carving,
    budget: &mut Budget,
) -> Vec<LargestFree> {
    let spans = &carving.segments.spans;
    let mut kinds: Vec<FreeKind> = spans.iter().map(kind_of).collect();
    kinds.sort();
    kinds.dedup();
    let mut sweep = Sweep {
        spans,
        next: 0,
        leaving: (0u32..).zip(spans).map(|(index, span)| (span.leaves, index)).collect(),
        next_leaving: 0,
        open: BTreeMap::new(),
        free: kinds.iter().map(|_| Gaps::default()).collect(),
        changed: Vec::new(),
        kinds,
    };
    sweep.leaving.sort_unstable();
    let mut found: Vec<LargestFree> =
        sweep.kinds.iter().map(|&kind| LargestFree { kind, changes: Vec::new() }).collect();
    for part in strides(trace.slots() as usize) {
        budget.charge(part.len() as u64 * COST_PER_SLOT).await;
        for slot in part.start as u32..part.end as u32 {
            sweep.slot(snapshot, trace, carving, slot);
            for kind in sweep.changed.drain(..) {
                let largest = sweep.free[kind].largest();
                let changes = &mut found[kind].changes;
                // Several changes in one slot are one: the states between them never existed.
                if changes.last().is_some_and(|last| last.0 == slot) {
                    changes.pop();
                }
                if changes.last().map_or(0, |last| last.1) != largest {
                    changes.push((slot, largest));
                }
            }
        }
    }
    found
}

fn kind_of(span: &Span) -> FreeKind {
    let is_small = span.segment_type == SegmentType::Small;
    let pool = if span.pool == PoolIndex::UNKNOWN { DEFAULT_POOL } else { span.pool };
    FreeKind { pool, stream: span.stream, is_small }
}

struct Sweep<'a> {
    /// In the order in which they enter.
    spans: &'a [Span],
    /// The first span that has not entered yet.
    next: u32,
    /// The slots in which spans leave, with the span, by slot.
    leaving: Vec<(u32, u32)>,
    next_leaving: usize,
    /// Reserved spans by address.
    open: BTreeMap<u64, u32>,
    kinds: Vec<FreeKind>,
    /// The free memory of each kind.
    free: Vec<Gaps>,
    /// The kinds whose free memory changed in the current slot.
    changed: Vec<usize>,
}

impl Sweep<'_> {
    /// Applies the changes of a slot: what is freed, the segment event, and what is allocated.
    fn slot(&mut self, snapshot: &Snapshot, trace: &Trace, carving: &Carving, slot: u32) {
        let extent = |block: u32| {
            let from = trace.blocks[block as usize].address.0;
            (from, from.saturating_add(carving.sizes[block as usize].0))
        };
        let changes = trace.changes_at(slot);
        for (from, to) in changes.iter().filter(|c| !c.enters()).map(|c| extent(c.block())) {
            self.change(from, |gaps| gaps.add(from, to));
        }
        self.segment_events(snapshot, trace, slot);
        for (from, to) in changes.iter().filter(|c| c.enters()).map(|c| extent(c.block())) {
            self.change(from, |gaps| gaps.remove(from, to));
        }
    }

    /// Reserves and releases memory.
    fn segment_events(&mut self, snapshot: &Snapshot, trace: &Trace, slot: u32) {
        let events = &snapshot.events;
        // Slot 0 is the state before the window and has no event.
        let row = (trace.device.events.start + slot).checked_sub(1).filter(|_| slot > 0);
        let event = row.and_then(|row| Some((row, segment_event(events.action(row))?)));
        if let Some((row, (false, _))) = event {
            let from = events.addr(row).0;
            let to = from.saturating_add(events.size(row).0);
            self.change(from, |gaps| {
                gaps.remove(from, to);
                gaps.remove_wall(from);
            });
        }
        while let Some(&(_, span)) = self.leaving.get(self.next_leaving).filter(|l| l.0 <= slot) {
            self.next_leaving += 1;
            self.open.remove(&self.spans[span as usize].address.0);
        }
        while let Some(span) = self.spans.get(self.next as usize).filter(|span| span.enters <= slot)
        {
            let (from, to) = (span.address.0, span.end());
            self.open.insert(from, self.next);
            self.next += 1;
            // An unmap in the middle of a range splits it into new spans, and reserves nothing.
            if slot == 0 || matches!(event, Some((_, (true, _)))) {
                self.change(from, |gaps| gaps.reserve(from, to, span.is_expandable));
            }
        }
    }

    /// Changes the free memory of the kind of an address. Nothing happens where nothing is
    /// reserved, as damaged files have it.
    fn change(&mut self, address: u64, change: impl FnOnce(&mut Gaps)) {
        let Some((_, &span)) = self.open.range(..=address).next_back() else { return };
        let span = &self.spans[span as usize];
        if address < span.end()
            && let Ok(kind) = self.kinds.binary_search(&kind_of(span))
        {
            change(&mut self.free[kind]);
            self.changed.push(kind);
        }
    }
}
