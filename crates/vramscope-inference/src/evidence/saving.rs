//! The peak of a run without some of its memory.

use super::Evidence;
use vramscope_trace::slicing::Budget;

/// Cost of the most in a range of slots, in units of [`Budget`].
const COST_PER_RANGE: u64 = 64;

/// Memory that is taken away for a part of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The first slot without it.
    pub(crate) from: u32,
    /// The first slot after the cut.
    pub(crate) to: u32,
    /// Bytes.
    pub(crate) bytes: u64,
}

/// A peak of `requested_bytes`, and the same without some memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saving {
    /// The peak without the memory.
    pub(crate) peak: u64,
    /// The peak is lower by this, in bytes.
    pub(crate) bytes: u64,
}

/// The peak of `requested_bytes` without `cuts`. A request that failed counts as if it had been
/// served: memory that is gone by then does not help it.
pub(crate) async fn saving(cx: Evidence<'_>, cuts: &[Cut], budget: &mut Budget) -> Saving {
    let trace = cx.trace;
    let mut changes: Vec<(u32, i64)> = Vec::with_capacity(2 * cuts.len());
    for cut in cuts.iter().filter(|cut| cut.from < cut.to) {
        changes.push((cut.from, cut.bytes as i64));
        changes.push((cut.to, -(cut.bytes as i64)));
    }
    vramscope_trace::sort(&mut changes, budget).await;
    let failed = || trace.ooms.iter().map(|oom| (oom.event.0 + 1, oom.requested.0));
    let mut with = trace.requested_band.peak.max(0) as u64;
    let mut without = 0;
    let (mut from, mut taken, mut next) = (0, 0i64, 0);
    while from < trace.slots() {
        while let Some(&(_, bytes)) = changes.get(next).filter(|change| change.0 <= from) {
            taken += bytes;
            next += 1;
        }
        let to = changes.get(next).map_or(trace.slots(), |change| change.0.min(trace.slots()));
        budget.charge(COST_PER_RANGE).await;
        let largest = trace.requested.largest_sliced(from..to, budget).await;
        let less = |bytes: u64| bytes.saturating_sub(taken.max(0) as u64);
        without = without.max(less(largest.map_or(0, |most| most.1)));
        for (slot, bytes) in failed().filter(|(slot, _)| (from..to).contains(slot)) {
            let level = trace.requested.at(slot).saturating_add(bytes);
            with = with.max(level);
            without = without.max(less(level));
        }
        from = to;
    }
    Saving { peak: without, bytes: with.saturating_sub(without) }
}
