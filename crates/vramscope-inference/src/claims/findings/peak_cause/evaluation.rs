//! An evaluation that keeps its results on the device, and alone sets the peak.

use super::{PeakCause, found, is_alone, live_at_peak};
use crate::category::Phase;
use crate::claims::found::Found;
use crate::claims::severity::Severity;
use crate::evidence::Evidence;
use crate::evidence::Materiality;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality::percent(20);

/// The fewest times that an evaluation keeps a result, or replaces it by a larger one.
const MIN_TIMES: usize = 4;

/// The results that an evaluation keeps where it alone sets the peak.
pub(in crate::claims::findings) async fn evaluation(
    cx: Evidence<'_>,
    budget: &mut Budget,
) -> Option<Found<PeakCause>> {
    let peak = cx.peak_slot();
    let spans = cx.categories.phases();
    let contains = |span: &&crate::PhaseSpan| span.begin < peak && peak <= span.end;
    let span = spans.iter().find(contains).filter(|span| span.phase == Phase::Evaluation)?;
    let mut others = 0;
    for span in spans.iter().filter(|span| span.phase != Phase::Evaluation) {
        let largest = cx.trace.requested.largest_sliced(span.begin + 1..span.end + 1, budget).await;
        others = largest.map_or(0, |(_, bytes)| bytes).max(others);
    }
    let total = cx.peak();
    if !is_alone(total, others) {
        return None;
    }
    // The most that each call stack had before, and how often it grew.
    let mut grew: FxHashMap<StackId, (u64, usize)> = FxHashMap::default();
    let changes = cx.trace.changes_in(span.begin + 1..peak + 1);
    budget.charge(4 * changes.len() as u64).await;
    let mut live: FxHashMap<StackId, u64> = FxHashMap::default();
    for change in changes {
        let block = &cx.trace.blocks[change.block() as usize];
        if block.enters <= span.begin {
            continue;
        }
        let bytes = live.entry(block.stack).or_default();
        if change.enters() {
            *bytes += block.bytes.0;
            let most = grew.entry(block.stack).or_default();
            if *bytes > most.0 {
                *most = (*bytes, most.1 + 1);
            }
        } else {
            *bytes = bytes.saturating_sub(block.bytes.0);
        }
    }
    let live = live_at_peak(cx, budget).await;
    let mut kept: Vec<&Block> =
        live.into_iter().map(|(_, block)| block).filter(|b| b.enters > span.begin).collect();
    // A layer's result lives for a small part of its batch.
    let whole = u64::from(span.end - span.begin);
    let is_kept = |block: &&&Block| {
        let times = grew.get(&block.stack).map_or(0, |most| most.1);
        let lives = u64::from(block.leaves - block.enters);
        times >= MIN_TIMES && lives * 2 * times as u64 >= whole
    };
    let stacks: FxHashSet<StackId> = kept.iter().filter(is_kept).map(|b| b.stack).collect();
    kept.retain(|block| stacks.contains(&block.stack));
    let bytes: u64 = kept.iter().map(|block| block.bytes.0).sum();
    if !MATTERS.is_met(bytes, total) {
        return None;
    }
    let facts = PeakCause::Evaluation { kept: Bytes(bytes), others: Bytes(others) };
    // Less than half of the peak may well be intended.
    let is_most = bytes * 2 > total && is_alone(total, others * 2);
    let severity = if is_most { Severity::Medium } else { Severity::Low };
    let mut finding = found(cx, "evaluation", bytes, &kept, facts);
    finding.common.severity = severity;
    Some(finding)
}
