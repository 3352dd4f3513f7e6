//! Reserved memory that grows from step to step while the memory in use does not.

use crate::claims::found::parts;
use crate::evidence::Evidence;
use crate::evidence::Materiality;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use vramscope_snapshot::{StackId, StreamId};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality::percent(10);

/// Steps that fill the cache.
const WARM_UP: usize = 2;

/// The fewest steps after them.
const MIN_STEPS: usize = 4;

/// The part of the growth by which the memory in use may grow.
const FLAT_DIVISOR: u64 = 4;

/// Reserved memory that grows with the steps. The memory in use does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creep {
    /// The steps after warm-up.
    pub steps: usize,
    /// Those of them at whose end more was reserved than before.
    pub rises: usize,
    /// The growth in all.
    pub total: Bytes,
    /// The median of the rises.
    pub per_step: Bytes,
    /// Streams that these steps use first.
    pub new_streams: usize,
    /// The call stack that reserved most of it.
    pub stack: StackId,
}

impl Creep {
    pub(super) async fn find(cx: Evidence<'_>, budget: &mut Budget) -> Option<Self> {
        let begins = &cx.steps?.begins;
        let steady = begins.get(WARM_UP..)?;
        let steps = steady.len().checked_sub(1).filter(|&steps| steps >= MIN_STEPS)?;
        let reserved = cx.trace.reserved(cx.snapshot, budget).await;
        let at: Vec<u64> = steady.iter().map(|&slot| reserved.at(slot)).collect();
        let total = at[steps].checked_sub(at[0])?;
        let peak = u64::try_from(cx.trace.reserved_band.peak).unwrap_or(0);
        let mut rises: Vec<u64> =
            at.windows(2).filter_map(|pair| pair[1].checked_sub(pair[0])).collect();
        rises.retain(|&rise| rise > 0);
        rises.sort_unstable();
        let is_steady = rises.len() * 5 >= steps * 4 && at[steps - 1] < at[steps];
        if !is_steady || !MATTERS.is_met(total, peak) {
            return None;
        }
        // Memory in use, at its highest in each step and at its end.
        let mut highest = Vec::with_capacity(steps);
        for pair in steady.windows(2) {
            let most = cx.carving.active.largest_sliced(pair[0] + 1..pair[1] + 1, budget).await;
            highest.push(most.map_or(0, |most| most.1));
        }
        let ends: Vec<u64> = steady.iter().map(|&slot| cx.carving.active.at(slot)).collect();
        if [&highest, &ends].iter().any(|values| rise(values) > total / FLAT_DIVISOR) {
            return None;
        }
        let spans = &cx.carving.segments.spans;
        budget.charge(2 * spans.len() as u64).await;
        let mut first_use: FxHashMap<StreamId, u32> = FxHashMap::default();
        for span in spans {
            let first = first_use.entry(span.stream).or_insert(span.enters);
            *first = span.enters.min(*first);
        }
        let (from, to) = (steady[0], steady[steps]);
        let grown = || spans.iter().filter(|span| from < span.enters && span.is_reserved_at(to));
        let new: BTreeSet<StreamId> =
            grown().map(|span| span.stream).filter(|stream| first_use[stream] > from).collect();
        Some(Self {
            steps,
            rises: rises.len(),
            total: Bytes(total),
            per_step: Bytes(rises[rises.len() / 2]),
            new_streams: new.len(),
            stack: parts(grown().map(|span| (span.stack, span.size.0))).first()?.stack,
        })
    }
}

/// By how much the second half of the values exceeds the first at most.
fn rise(values: &[u64]) -> u64 {
    let (first, second) = values.split_at(values.len() / 2);
    let most = |values: &[u64]| values.iter().copied().max().unwrap_or(0);
    most(second).saturating_sub(most(first))
}
