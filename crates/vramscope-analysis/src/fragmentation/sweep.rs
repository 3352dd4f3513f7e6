//! What is free in every slot, by a sweep over the window: with several threads, each takes a part
//! of the addresses.
//!
//! Parts meet where a segment of its own begins, and free memory never merges across that. Whether
//! it is so in this trace is seen on the way; where it is not, all addresses are one part.

use super::gaps::Gaps;
use crate::carving::Carving;
use crate::parallel;
use crate::segments::segment_event;
use crate::series::Series;
use crate::slicing::Budget;
use crate::trace::Trace;
use std::ops::Range;
use vramscope_snapshot::Snapshot;

/// Parts are added up every so many slots, so that little is kept of each; and what a slot costs.
const WINDOW: u32 = 1 << 13;
const COST: u64 = 24;

/// Of so many blocks at most it is looked at where they lie, to make parts of about the same work.
const SAMPLE: usize = 1 << 12;

/// Free bytes and the largest free range, in each of the first `slots` slots.
pub(super) async fn series(
    snapshot: &Snapshot,
    trace: &Trace,
    carving: &Carving,
    slots: u32,
    parts: usize,
    budget: &mut Budget,
) -> (Series, Series) {
    let cuts = cuts(trace, carving, parts);
    if let Some(in_parts) = sweep(snapshot, trace, carving, slots, &cuts, budget).await {
        return in_parts;
    }
    // Without cuts there is nothing to cross.
    sweep(snapshot, trace, carving, slots, &[], budget).await.unwrap_or_default()
}

/// Addresses at which the work may be parted: no segment of the window reaches across.
fn cuts(trace: &Trace, carving: &Carving, parts: usize) -> Vec<u64> {
    if parts < 2 {
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
    let step = trace.blocks.len() / SAMPLE + 1;
    let mut sample: Vec<u64> = trace.blocks.iter().step_by(step).map(|b| b.address.0).collect();
    sample.sort_unstable();
    let mut cuts: Vec<u64> = (1..parts)
        .filter_map(|part| {
            let wanted = *sample.get(sample.len() * part / parts)?;
            let below = starts.partition_point(|&start| start <= wanted).checked_sub(1)?;
            Some(starts[below])
        })
        .collect();
    cuts.dedup();
    cuts
}

/// The series, the addresses parted at these; `None` when something crosses a cut.
async fn sweep(
    snapshot: &Snapshot,
    trace: &Trace,
    carving: &Carving,
    slots: u32,
    cuts: &[u64],
    budget: &mut Budget,
) -> Option<(Series, Series)> {
    let edges: Vec<u64> = [&[0], cuts, &[u64::MAX]].concat();
    let mut parts: Vec<Part<'_>> = edges
        .windows(2)
        .map(|edge| Part::new(snapshot, trace, carving, edge[0]..edge[1]))
        .collect();
    let (mut free, mut largest) =
        (Series::with_capacity(slots as usize), Series::with_capacity(slots as usize));
    for start in (0..slots).step_by(WINDOW as usize) {
        let end = slots.min(start + WINDOW);
        let count = (end - start) as usize;
        parallel::each_mut(&mut parts, |part| part.run(start..end));
        budget.charge(COST * count as u64).await;
        if parts.iter().any(|part| part.is_crossed) {
            return None;
        }
        for i in 0..count {
            free.push(parts.iter().fold(0, |sum: u64, part| sum.wrapping_add(part.window[i].0)));
            largest.push(parts.iter().map(|part| part.window[i].1).max().unwrap_or(0));
        }
    }
    Some((free, largest))
}

/// Some of the addresses, and what is free there.
struct Part<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    carving: &'a Carving,
    addresses: Range<u64>,
    gaps: Gaps,
    /// Something reaches into the next part, or free memory would merge with that of the part
    /// before.
    is_crossed: bool,
    /// What is free and the largest of it, in the slots that it went through last.
    window: Vec<(u64, u64)>,
}

impl<'a> Part<'a> {
    fn new(
        snapshot: &'a Snapshot,
        trace: &'a Trace,
        carving: &'a Carving,
        addresses: Range<u64>,
    ) -> Self {
        let (gaps, window) = (Gaps::default(), Vec::new());
        let mut part =
            Self { snapshot, trace, carving, addresses, gaps, is_crossed: false, window };
        for span in carving.segments.spans.iter().take_while(|s| s.enters == 0) {
            part.apply(span.address.0, span.end(), |gaps, from, to| {
                gaps.reserve(from, to, span.is_expandable)
            });
        }
        part
    }

    /// Goes through these slots.
    fn run(&mut self, slots: Range<u32>) {
        let (trace, carving, events) = (self.trace, self.carving, &self.snapshot.events);
        let extent = |block: u32| {
            let (address, size) =
                (trace.blocks[block as usize].address.0, carving.sizes[block as usize].0);
            (address, address.saturating_add(size))
        };
        self.window.clear();
        for slot in slots {
            for change in trace.changes_at(slot).iter().filter(|c| !c.enters()) {
                let (from, to) = extent(change.block());
                self.apply(from, to, Gaps::add);
            }
            // Slot 0 has no event: it is the state before the window.
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
                        gaps.forget(from);
                    }
                });
            }
            for change in trace.changes_at(slot).iter().filter(|c| c.enters()) {
                let (from, to) = extent(change.block());
                self.apply(from, to, Gaps::remove);
            }
            self.window.push((self.gaps.total, self.gaps.largest()));
        }
    }

    /// Changes what is free, if it is in this part.
    fn apply(&mut self, from: u64, to: u64, change: impl FnOnce(&mut Gaps, u64, u64)) {
        let Range { start, end } = self.addresses;
        if from < start || from >= end && end != u64::MAX {
            return;
        }
        change(&mut self.gaps, from, to);
        self.is_crossed |= to > end || (from == start && start > 0 && self.gaps.is_open_at(start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slicing::run_to_completion;
    use vramscope_snapshot::Reader;

    /// How many parts there are, what free memory they add up to, and what one part for all
    /// addresses gives: which is what comes out in any case.
    fn swept(json: &str, parts: usize) -> (usize, Option<Series>, Series) {
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("JSON");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let trace = Trace::all(&snapshot).remove(0);
        let carving = Carving::new(&snapshot, &trace);
        let cuts = cuts(&trace, &carving, parts);
        let (slots, budget) = (trace.slots(), &mut Budget::unlimited());
        let whole = run_to_completion(sweep(&snapshot, &trace, &carving, slots, &[], budget))
            .expect("nothing to cross");
        for until in 0..=slots {
            let (free, largest) =
                run_to_completion(series(&snapshot, &trace, &carving, until, parts, budget));
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
            run_to_completion(sweep(&snapshot, &trace, &carving, slots, &cuts, budget))
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

    /// Two neighboring segments of 2 MiB, the second of which is given back, and a block of 1 MiB
    /// in each.
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
    fn parts_add_up_to_the_whole() {
        let (parts, found, whole) = swept(&json(&neighbors()), 2);
        assert_eq!(parts, 2);
        assert_eq!(found, Some(whole.clone()));
        assert_eq!(in_mib(&whole), [0, 2, 1, 3, 2, 2, 3, 3, 4, 2]);
    }

    #[test]
    fn what_reaches_across_is_swept_as_a_whole() {
        // A block that lies in both segments: no allocator makes such a one.
        let mut events = neighbors();
        events.extend([event("alloc", 5 * MIB, MIB), event("alloc", 3 * MIB, 2 * MIB)]);
        let (parts, found, _) = swept(&json(&events), 2);
        assert_eq!((parts, found), (2, None));
        // The second begins no segment of its own when it is freed again: it may merge.
        let mut events = neighbors();
        events.extend([event("alloc", 4 * MIB, MIB), event("free_completed", 4 * MIB, MIB)]);
        let (parts, found, _) = swept(&json(&events), 2);
        assert_eq!((parts, found), (2, None));
    }
}
