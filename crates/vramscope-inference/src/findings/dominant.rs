//! What alone makes the peak, where a cure is known. It is no fault.

use super::saving::{Cut, saving};
use super::{Basis, Evidence, Facts, Finding, Severity, parts};
use crate::category::{Category, Phase};
use crate::evidence::marks::{Mark, Marks};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, Origin};
use vramscope_units::Bytes;

/// The fewest bytes that the peak loses to report a cause.
const MIN_BYTES: u64 = 16 << 20;

/// The smallest share of the peak that it loses to report a cause, in percent.
const MIN_PERCENT: u64 = 15;

/// The smallest share of the peak of one request that is reported, in percent.
const MIN_REQUEST_PERCENT: u64 = 25;

/// The fewest blocks of the size of the logits.
const MIN_LOGITS: usize = 3;

/// A block of autocast's cache lives longer than one operation, in events.
const MIN_CACHE_EVENTS: u32 = 16;

/// What makes the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DominantCause {
    /// Temporaries of an optimizer that updates all parameters in one operation.
    Foreach,
    /// Copies of weights in another precision that autocast keeps until it ends.
    Autocast,
    /// Logits, their conversion and what cross entropy makes of them: blocks of one or two sizes.
    Logits,
    /// Scores of attention, of each pair of positions.
    Scores,
    /// One request.
    Request,
}

/// Memory that sets the peak, and the peak without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dominant {
    /// The cause.
    pub cause: DominantCause,
    /// Bytes of it at the peak.
    pub at_peak: Bytes,
    /// The peak of `requested_bytes` without it: the next lower one.
    pub next: Bytes,
    /// Whether the window trains.
    pub trains: bool,
}

/// Blocks of one cause that are live at the peak, and all of them in the window.
struct Group {
    cause: DominantCause,
    at_peak: Vec<u32>,
    cuts: Vec<Cut>,
}

/// What makes the peak: the known causes, else one large request.
pub(super) async fn dominant(
    cx: Evidence<'_>,
    marks: &Marks,
    told: &[StackId],
    budget: &mut Budget,
) -> Vec<Finding> {
    // The finding about a failed allocation tells what holds memory.
    if !cx.trace.ooms.is_empty() {
        return Vec::new();
    }
    let peak = cx.peak_slot();
    let mut live: Vec<u32> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        let blocks = (part.start as u32..).zip(&cx.trace.blocks[part]);
        live.extend(blocks.filter(|(_, b)| b.is_live_at(peak)).map(|(i, _)| i));
    }
    let mut found = Vec::new();
    for cause in [
        DominantCause::Foreach,
        DominantCause::Autocast,
        DominantCause::Logits,
        DominantCause::Scores,
        DominantCause::Request,
    ] {
        if cause == DominantCause::Request && !found.is_empty() {
            break;
        }
        budget.charge(8 * live.len() as u64).await;
        let Some(group) = group(cx, marks, cause, &live, told, budget).await else { continue };
        found.extend(finding(cx, group, budget).await);
    }
    found.sort_by_key(|finding: &Finding| std::cmp::Reverse(finding.bytes));
    found
}

async fn finding(cx: Evidence<'_>, group: Group, budget: &mut Budget) -> Option<Finding> {
    let peak = cx.trace.requested_band.peak.max(0) as u64;
    let saving = saving(cx, &group.cuts, budget).await;
    let is_large = saving.bytes >= MIN_BYTES
        && saving.bytes.saturating_mul(100) >= peak.saturating_mul(MIN_PERCENT);
    if !is_large {
        return None;
    }
    let block = |i: &u32| &cx.trace.blocks[*i as usize];
    let bytes: u64 = group.at_peak.iter().map(|i| block(i).bytes.0).sum();
    let parts = parts(group.at_peak.iter().map(|i| (block(i).stack, block(i).bytes.0)));
    let facts = Dominant {
        cause: group.cause,
        at_peak: Bytes(bytes),
        next: Bytes(saving.peak),
        trains: cx.categories.phases().iter().any(|span| span.phase == Phase::Backward),
    };
    let events = group.at_peak.iter().filter_map(|i| block(i).alloc_event()).map(|e| e.0);
    let event = cx.peak_slot().checked_sub(1);
    let hash = cx.hash(parts.first()?.stack);
    Some(Finding {
        severity: Severity::Low,
        step: event.and_then(|event| cx.step_at(event)),
        phase: event.and_then(|event| cx.phase_at(event)),
        basis: Basis::Exact,
        blocks: group.at_peak.len() as u32,
        parts,
        ..cx.finding(hash, bytes, 0, events.collect(), Facts::Dominant(facts))
    })
}

/// The blocks of a cause, if some are live at the peak.
async fn group(
    cx: Evidence<'_>,
    marks: &Marks,
    cause: DominantCause,
    live: &[u32],
    told: &[StackId],
    budget: &mut Budget,
) -> Option<Group> {
    let block = |i: u32| &cx.trace.blocks[i as usize];
    let sizes = match cause {
        DominantCause::Logits => logits(cx, marks, live)?,
        DominantCause::Scores => scores(cx, marks, live)?,
        DominantCause::Request => {
            let largest = live.iter().copied().max_by_key(|&i| block(i).bytes)?;
            let peak = cx.trace.requested_band.peak.max(0) as u64;
            let bytes = block(largest).bytes.0;
            let is_large = bytes.saturating_mul(100) >= peak.saturating_mul(MIN_REQUEST_PERCENT);
            let is_told = told.contains(&block(largest).stack);
            if !is_large || is_told || !is_result(cx, largest) {
                return None;
            }
            vec![bytes]
        }
        DominantCause::Foreach | DominantCause::Autocast => Vec::new(),
    };
    let main = live.iter().copied().max_by_key(|&i| block(i).bytes)?;
    let belongs = |i: u32| {
        let b = block(i);
        // Blocks of another finding, such as a leak, are not counted twice.
        !told.contains(&b.stack)
            && match cause {
                DominantCause::Foreach => is_foreach(cx, marks, i),
                DominantCause::Autocast => is_cached_cast(cx, marks, b),
                DominantCause::Logits => sizes.contains(&b.bytes.0) && is_result(cx, i),
                DominantCause::Scores => {
                    sizes.contains(&b.bytes.0) && is_result(cx, i) && b.stack != StackId::EMPTY
                }
                DominantCause::Request => {
                    sizes.contains(&b.bytes.0) && b.stack == block(main).stack
                }
            }
    };
    let at_peak: Vec<u32> = live.iter().copied().filter(|&i| belongs(i)).collect();
    if at_peak.is_empty() {
        return None;
    }
    let mut cuts = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for (i, b) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            if belongs(i) {
                cuts.push(Cut { from: b.enters, to: b.leaves, bytes: b.bytes.0 });
            }
        }
    }
    Some(Group { cause, at_peak, cuts })
}

/// Whether a block is neither a part of the model nor kept for it.
fn is_result(cx: Evidence<'_>, block: u32) -> bool {
    matches!(
        cx.categories.get(block).category,
        Category::Activation | Category::Temporary | Category::Unknown | Category::Input
    )
}

/// Whether an optimizer makes a block for all parameters at once, and drops it.
fn is_foreach(cx: Evidence<'_>, marks: &Marks, index: u32) -> bool {
    let block = &cx.trace.blocks[index as usize];
    let mark = marks.of(block.stack);
    mark.has(Mark::FOREACH)
        && mark.has(Mark::OPTIMIZER)
        && cx.categories.get(index).category == Category::Temporary
        && block.alloc_event().is_some_and(|e| cx.phase_at(e.0) == Some(Phase::Optimizer))
}

/// Whether autocast keeps a block: its conversion made it, and it outlives the operation. Without
/// frames of C++, the end of autocast frees it.
fn is_cached_cast(cx: Evidence<'_>, marks: &Marks, block: &Block) -> bool {
    if block.origin() != Origin::Alloc {
        return false;
    }
    let free = block.free_requested().map(|event| event.0);
    let events = free.unwrap_or(u32::MAX).saturating_sub(block.enters);
    if events < MIN_CACHE_EVENTS {
        return false;
    }
    if marks.of(block.stack).has(Mark::CACHED_CAST) {
        return true;
    }
    let rows = cx.trace.device.events.start;
    free.is_some_and(|event| {
        marks.of(cx.snapshot.events.stack(rows + event)).has(Mark::AUTOCAST_EXIT)
    })
}

/// The sizes of logits and of their copies in another precision, if cross entropy makes one of the
/// largest blocks and several have its size.
fn logits(cx: Evidence<'_>, marks: &Marks, live: &[u32]) -> Option<Vec<u64>> {
    let block = |i: u32| &cx.trace.blocks[i as usize];
    let of_loss = live
        .iter()
        .copied()
        .filter(|&i| marks.of(block(i).stack).has(Mark::CROSS_ENTROPY) && is_result(cx, i));
    let size = of_loss.map(|i| block(i).bytes.0).max()?;
    let mut sizes = vec![size];
    sizes.extend(size.is_multiple_of(2).then_some(size / 2));
    let count = live.iter().filter(|&&i| sizes.contains(&block(i).bytes.0) && is_result(cx, i));
    (count.count() >= MIN_LOGITS).then_some(sizes)
}

/// The size of attention's scores, if a softmax makes the largest of them, and a matrix product of
/// its function another one.
fn scores(cx: Evidence<'_>, marks: &Marks, live: &[u32]) -> Option<Vec<u64>> {
    let block = |i: u32| &cx.trace.blocks[i as usize];
    let is_softmax = |i: u32| {
        let mark = marks.of(block(i).stack);
        mark.has(Mark::SOFTMAX) && mark.has(Mark::MODULE) && !mark.has(Mark::CROSS_ENTROPY)
    };
    let largest =
        live.iter().copied().filter(|&i| is_softmax(i)).max_by_key(|&i| block(i).bytes)?;
    let (size, function) = (block(largest).bytes.0, function_of(cx, block(largest).stack)?);
    let beside = live.iter().any(|&i| {
        block(i).bytes.0 == size
            && !is_softmax(i)
            && function_of(cx, block(i).stack) == Some(function)
    });
    beside.then(|| vec![size])
}

/// The program's function, by name and file, that makes an allocation.
fn function_of(cx: Evidence<'_>, stack: StackId) -> Option<(u32, u32)> {
    let frame = cx.snapshot.frame(cx.program_frame(stack)?);
    Some((frame.name.0, frame.file.0))
}
