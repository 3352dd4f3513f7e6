//! Parts of the peak with a known cure. They are no faults: a healthy program has them.
//!
//! The cure of each is a change of the program. Where the run cannot be replayed with it, the peak
//! without the part says what the change saves at most.

use super::changes::Recipe;
use crate::category::{Category, Phase};
use crate::evidence::marks::{Mark, Marks};
use crate::evidence::{Cut, Evidence, Materiality, saving};
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::slicing::{Boxed, Budget};
use vramscope_trace::{Block, Origin};

/// The least saving of a part, of the peak.
const MATTERS: Materiality = Materiality::percent(15);

/// The fewest blocks of the size of the logits.
const MIN_LOGITS: usize = 3;

/// A block of autocast's cache lives longer than one operation, in events.
const MIN_CACHE_EVENTS: u32 = 16;

/// The parts of a loss that its cure computes one after the other.
const LOSS_PARTS: u32 = 8;

/// The cause of a part of the peak.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Temporaries of an optimizer that updates all parameters in one operation.
    Foreach,
    /// Copies of weights in another precision that autocast keeps until it ends.
    Autocast,
    /// Logits, their conversion and what cross entropy makes of them: blocks of one or two sizes.
    Logits,
    /// Scores of attention, of each pair of positions.
    Scores,
}

impl Cause {
    /// The change that makes do without it.
    fn cure(self) -> Recipe {
        match self {
            Self::Foreach => Recipe::foreach_off(),
            Self::Autocast => Recipe::autocast_cache_off(),
            Self::Logits => Recipe::chunked_loss(LOSS_PARTS),
            Self::Scores => Recipe::attention_flash(),
        }
    }
}

/// A part of the peak of `requested_bytes`.
#[derive(Clone, Debug, PartialEq)]
pub struct PeakPart {
    /// The change that makes do without it.
    pub cure: Recipe,
    /// The line of the program that makes most of it.
    pub site: Option<FrameId>,
    /// The peak is lower by this without the part, in bytes.
    pub saving: u64,
    /// The peak without it, in bytes.
    pub without: u64,
}

/// The blocks of one cause.
struct Group {
    site: Option<FrameId>,
    cuts: Vec<Cut>,
}

/// The parts of the peak with a known cure, largest saving first. Empty after a failed allocation:
/// its finding tells what holds memory.
#[inline(never)]
pub fn peak_parts<'a>(cx: Evidence<'a>, budget: &'a mut Budget) -> Boxed<'a, Vec<PeakPart>> {
    Box::pin(async move {
        let mut found = Vec::new();
        if !cx.trace.ooms.is_empty() {
            return found;
        }
        let marks = Marks::new(cx.snapshot, budget).await;
        let live = cx.trace.live_at(cx.peak_slot(), budget).await;
        let live: Vec<u32> = live.iter().map(|&(index, _)| index).collect();
        for cause in [Cause::Foreach, Cause::Autocast, Cause::Logits, Cause::Scores] {
            budget.charge(8 * live.len() as u64).await;
            let Some(group) = group(cx, &marks, cause, &live, budget).await else { continue };
            let saving = saving(cx, &group.cuts, budget).await;
            if MATTERS.is_met(saving.bytes, cx.peak()) {
                found.push(PeakPart {
                    cure: cause.cure(),
                    site: group.site,
                    saving: saving.bytes,
                    without: saving.peak,
                });
            }
        }
        found.sort_by_key(|part| std::cmp::Reverse(part.saving));
        found
    })
}

/// The blocks of a cause, if some are live at the peak.
async fn group(
    cx: Evidence<'_>,
    marks: &Marks,
    cause: Cause,
    live: &[u32],
    budget: &mut Budget,
) -> Option<Group> {
    let block = |i: u32| &cx.trace.blocks[i as usize];
    let sizes = match cause {
        Cause::Logits => logits(cx, marks, live)?,
        Cause::Scores => scores(cx, marks, live)?,
        Cause::Foreach | Cause::Autocast => Vec::new(),
    };
    let is_size = |i: u32| sizes.contains(&block(i).bytes.0) && cx.is_result(i);
    let belongs = |i: u32| match cause {
        Cause::Foreach => is_foreach(cx, marks, i),
        Cause::Autocast => is_cached_cast(cx, marks, block(i)),
        Cause::Logits => is_size(i),
        Cause::Scores => is_size(i) && block(i).stack != StackId::EMPTY,
    };
    let at_peak = live.iter().copied().filter(|&i| belongs(i));
    let largest = at_peak.max_by_key(|&i| (block(i).stack != StackId::EMPTY, block(i).bytes))?;
    let mut cuts = Vec::new();
    let visit = |i, b: &Block| {
        if belongs(i) {
            cuts.push(Cut { from: b.enters, to: b.leaves, bytes: b.bytes.0 });
        }
    };
    cx.trace.each_block(4, budget, visit).await;
    Some(Group { site: cx.program_frame(block(largest).stack), cuts })
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
        .filter(|&i| marks.of(block(i).stack).has(Mark::CROSS_ENTROPY) && cx.is_result(i));
    let size = of_loss.map(|i| block(i).bytes.0).max()?;
    let mut sizes = vec![size];
    sizes.extend(size.is_multiple_of(2).then_some(size / 2));
    let count = live.iter().filter(|&&i| sizes.contains(&block(i).bytes.0) && cx.is_result(i));
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
