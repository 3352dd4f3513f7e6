//! Sweeps over the window and measures free memory in every slot. With several threads, each sweeps
//! one partition of the addresses.
//!
//! Partitions meet at the starts of ordinary segments, and free memory never merges across these.
//! The sweep checks that nothing in the trace crosses from one partition to another. If something
//! does, the sweep starts again with a single partition.

use super::gaps::Gaps;
use crate::carving::Carving;
use crate::parallel;
use crate::segments::segment_event;
use crate::series::Series;
use crate::slicing::Budget;
use crate::trace::Trace;
use std::ops::Range;
use vramscope_snapshot::Snapshot;

/// Partitions are summed up every `BATCH_SLOTS` slots. That bounds the memory for their results.
const BATCH_SLOTS: u32 = 1 << 13;

/// Cost of sweeping a slot, in units of [`Budget`].
const COST_PER_SLOT: u64 = 24;

/// Upper bound for the number of block addresses that are sampled to balance the partitions.
const MAX_SAMPLED_BLOCKS: usize = 1 << 12;

/// The free bytes and the largest free range in each of the first `slots` slots.
pub(super) async fn series(
    snapshot: &Snapshot,
    trace: &Trace,
    carving: &Carving,
    slots: u32,
    partitions: usize,
    budget: &mut Budget,
) -> (Series, Series) {
    let cuts = cuts(trace, carving, partitions);
    if let Some(series) = sweep(snapshot, trace, carving, slots, &cuts, budget).await {
        return series;
    }
    // Without cuts nothing can cross, so this sweep succeeds.
    sweep(snapshot, trace, carving, slots, &[], budget).await.unwrap_or_default()
}

/// Addresses that split the work into at most `partitions` similar partitions. No segment of the
/// window crosses them.
fn cuts(trace: &Trace, carving: &Carving, partitions: usize) -> Vec<u64> {
    if partitions < 2 {
        return Vec::new();
    }
    let mut spans: Vec<(u64, u64, bool)> =
        carving.segments.spans.iter().map(|s| (s.address.0, s.end(), s.is_expandable)).collect();
    spans.sort_unstable();
    let mut end = 0;
    let mut starts = Vec::new();
    for (from, to, is_expandable) in spans {
        if from >= end && !is_expandable {
            starts.push(from);
        }
        end = end.max(to);
    }
    let step = trace.blocks.len() / MAX_SAMPLED_BLOCKS + 1;
    let mut sample: Vec<u64> = trace.blocks.iter().step_by(step).map(|b| b.address.0).collect();
    sample.sort_unstable();
    let mut cuts: Vec<u64> = (1..partitions)
        .filter_map(|i| {
            let wanted = *sample.get(sample.len() * i / partitions)?;
            let below = starts.partition_point(|&start| start <= wanted).checked_sub(1)?;
            Some(starts[below])
        })
        .collect();
    cuts.dedup();
    cuts
}

/// Sweeps with the addresses partitioned at `cuts`. `None` when something crosses a cut.
async fn sweep(
    snapshot: &Snapshot,
    trace: &Trace,
    carving: &Carving,
    slots: u32,
    cuts: &[u64],
    budget: &mut Budget,
) -> Option<(Series, Series)> {
    let edges: Vec<u64> = [&[0], cuts, &[u64::MAX]].concat();
    let mut partitions: Vec<Partition<'_>> = edges
        .windows(2)
        .map(|edge| Partition::new(snapshot, trace, carving, edge[0]..edge[1]))
        .collect();
    let (mut free, mut largest) =
        (Series::with_capacity(slots as usize), Series::with_capacity(slots as usize));
    for start in (0..slots).step_by(BATCH_SLOTS as usize) {
        let end = slots.min(start + BATCH_SLOTS);
        let count = (end - start) as usize;
        parallel::each_mut(&mut partitions, |partition| partition.sweep(start..end));
        budget.charge(COST_PER_SLOT * count as u64).await;
        if partitions.iter().any(|partition| partition.is_crossed) {
            return None;
        }
        for i in 0..count {
            free.push(partitions.iter().fold(0, |sum: u64, p| sum.wrapping_add(p.batch[i].0)));
            largest.push(partitions.iter().map(|p| p.batch[i].1).max().unwrap_or(0));
        }
    }
    Some((free, largest))
}

/// A range of addresses, and the free memory in it.
struct Partition<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    carving: &'a Carving,
    addresses: Range<u64>,
    gaps: Gaps,
    /// Whether something reaches into the next partition, or free memory would merge with that of
    /// the partition below.
    is_crossed: bool,
    /// Free bytes and largest free range in each slot of the last batch.
    batch: Vec<(u64, u64)>,
}

impl<'a> Partition<'a> {
    fn new(
        snapshot: &'a Snapshot,
        trace: &'a Trace,
        carving: &'a Carving,
        addresses: Range<u64>,
    ) -> Self {
        let (gaps, batch) = (Gaps::default(), Vec::new());
        let mut partition =
            Self { snapshot, trace, carving, addresses, gaps, is_crossed: false, batch };
        for span in carving.segments.spans.iter().take_while(|s| s.enters == 0) {
            partition.apply(span.address.0, span.end(), |gaps, from, to| {
                gaps.reserve(from, to, span.is_expandable);
            });
        }
        partition
    }

    /// Sweeps the next slots, and replaces `batch` by their results.
    fn sweep(&mut self, slots: Range<u32>) {
        let (trace, carving, events) = (self.trace, self.carving, &self.snapshot.events);
        let extent = |block: u32| {
            let (address, size) =
                (trace.blocks[block as usize].address.0, carving.sizes[block as usize].0);
            (address, address.saturating_add(size))
        };
        self.batch.clear();
        for slot in slots {
            for change in trace.changes_at(slot).iter().filter(|c| !c.enters()) {
                let (from, to) = extent(change.block());
                self.apply(from, to, Gaps::add);
            }
            // Slot 0 is the state before the window and has no event.
            let row = (trace.device.events.start + slot).checked_sub(1).filter(|_| slot > 0);
            if let Some(row) = row
                && let Some((reserves, is_expandable)) = segment_event(events.action(row))
            {
                let from = events.addr(row).0;
                let to = from.saturating_add(events.size(row).0);
                self.apply(from, to, |gaps, from, to| {
                    if reserves {
                        gaps.reserve(from, to, is_expandable);
                    } else {
                        gaps.remove(from, to);
                        gaps.remove_wall(from);
                    }
                });
            }
            for change in trace.changes_at(slot).iter().filter(|c| c.enters()) {
                let (from, to) = extent(change.block());
                self.apply(from, to, Gaps::remove);
            }
            self.batch.push((self.gaps.total, self.gaps.largest()));
        }
    }

    /// Applies a change to `gaps` if the range starts in this partition.
    fn apply(&mut self, from: u64, to: u64, change: impl FnOnce(&mut Gaps, u64, u64)) {
        let Range { start, end } = self.addresses;
        if from < start || from >= end && end != u64::MAX {
            return;
        }
        change(&mut self.gaps, from, to);
        self.is_crossed |=
            to > end || (from == start && start > 0 && self.gaps.can_merge_below(start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slicing::now;
    use vramscope_snapshot::Reader;

    /// The number of partitions, the free bytes that they add up to, and the free bytes of a sweep
    /// with one partition. Checks that `series` always equals the sweep with one partition.
    fn swept(json: &str, partitions: usize) -> (usize, Option<Series>, Series) {
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("JSON");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let trace = Trace::all(&snapshot).remove(0);
        let carving = now(async |budget| Carving::new(&snapshot, &trace, budget).await);
        let cuts = cuts(&trace, &carving, partitions);
        let slots = trace.slots();
        let whole =
            now(async |budget| sweep(&snapshot, &trace, &carving, slots, &[], budget).await)
                .expect("without cuts nothing can cross");
        for until in 0..=slots {
            let (free, largest) = now(async |budget| {
                series(&snapshot, &trace, &carving, until, partitions, budget).await
            });
            assert!(
                free.values(0..until).eq(whole.0.values(0..until)) && free.len() as u32 == until
            );
            assert!(
                largest.values(0..until).eq(whole.1.values(0..until))
                    && largest.len() as u32 == until
            );
        }
        (
            cuts.len() + 1,
            now(async |budget| sweep(&snapshot, &trace, &carving, slots, &cuts, budget).await)
                .map(|s| s.0),
            whole.0,
        )
    }

    const MIB: u64 = 1 << 20;

    fn event(action: &str, addr: u64, size: u64) -> String {
        format!(r#"{{"action": "{action}", "addr": {addr}, "size": {size}}}"#)
    }

    fn json(events: &[String]) -> String {
        format!(r#"{{"device_traces": [[{}]], "segments": []}}"#, events.join(", "))
    }

    fn in_mib(series: &Series) -> Vec<u64> {
        series.to_vec().into_iter().map(|bytes| bytes / MIB).collect()
    }

    /// Two neighboring segments of 2 MiB with a block of 1 MiB each. The second segment is
    /// released.
    fn neighbors() -> Vec<String> {
        let free =
            |addr| ["free_requested", "free_completed"].map(|action| event(action, addr, MIB));
        let mut events =
            vec![event("segment_alloc", 2 * MIB, 2 * MIB), event("alloc", 2 * MIB, MIB)];
        events.extend([event("segment_alloc", 4 * MIB, 2 * MIB), event("alloc", 4 * MIB, MIB)]);
        events.extend(free(2 * MIB).into_iter().chain(free(4 * MIB)));
        events.push(event("segment_free", 4 * MIB, 2 * MIB));
        events
    }

    #[test]
    fn partitions_add_up_to_a_single_sweep() {
        let (partitions, found, whole) = swept(&json(&neighbors()), 2);
        assert_eq!(partitions, 2);
        assert_eq!(found, Some(whole.clone()));
        assert_eq!(in_mib(&whole), [0, 2, 1, 3, 2, 2, 3, 3, 4, 2]);
    }

    #[test]
    fn sweep_detects_ranges_that_cross_a_cut() {
        // A block that overlaps both segments, which no real allocator creates.
        let mut events = neighbors();
        events.extend([event("alloc", 5 * MIB, MIB), event("alloc", 3 * MIB, 2 * MIB)]);
        let (partitions, found, _) = swept(&json(&events), 2);
        assert_eq!((partitions, found), (2, None));
        // The second segment is released before the last free. No segment starts at 4 MiB then, so
        // the free range there could merge with the one below.
        let mut events = neighbors();
        events.extend([event("alloc", 4 * MIB, MIB), event("free_completed", 4 * MIB, MIB)]);
        let (partitions, found, _) = swept(&json(&events), 2);
        assert_eq!((partitions, found), (2, None));
    }
}
