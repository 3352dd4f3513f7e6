//! Parts of the peak with a known cure. They are no faults: a healthy program has them.
//!
//! The cure of each is a change of the program. Where the run cannot be replayed with it, the peak
//! without the part says what the change saves at most.

use super::changes::Recipe;
use crate::category::{Category, Phase};
use crate::evidence::marks::{Mark, Marks};
use crate::evidence::{Cut, Evidence, Materiality, saving};
use rustc_hash::{FxHashMap, FxHashSet};
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
    /// A value for each pair of the elements of a vector: `prediction - target` of `[n, 1]` and
    /// `[n]`.
    Pairs,
}

impl Cause {
    const ALL: [Self; 5] = [Self::Foreach, Self::Autocast, Self::Logits, Self::Scores, Self::Pairs];

    /// What its blocks are.
    fn noun(self) -> &'static str {
        match self {
            Self::Foreach => "temporaries of a foreach optimizer",
            Self::Autocast => "weights cast by autocast",
            Self::Logits => "copies of the logits",
            Self::Scores => "attention scores",
            Self::Pairs => "[n, n] values, as of broadcast vectors",
        }
    }

    /// The change that makes do without it; `None` if the program may need it.
    fn cure(self) -> Option<Recipe> {
        match self {
            Self::Foreach => Some(Recipe::foreach_off()),
            Self::Autocast => Some(Recipe::autocast_cache_off()),
            Self::Logits => Some(Recipe::chunked_loss(LOSS_PARTS)),
            Self::Scores => Some(Recipe::attention_flash()),
            Self::Pairs => None,
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

/// The blocks of a cause.
struct Blocks<'a> {
    cx: Evidence<'a>,
    marks: &'a Marks,
    cause: Cause,
    /// The sizes of its blocks, if they tell them.
    sizes: Vec<u64>,
    /// Call stacks that make blocks of these sizes for something else.
    others: FxHashSet<StackId>,
}

impl<'a> Blocks<'a> {
    /// Those of a cause, if the blocks that are live at a moment show it.
    fn of(cx: Evidence<'a>, marks: &'a Marks, cause: Cause, live: &[u32]) -> Option<Self> {
        let sizes = match cause {
            Cause::Logits => logits(cx, marks, live)?,
            Cause::Scores => scores(cx, marks, live)?,
            Cause::Pairs => pairs(cx, live)?,
            Cause::Foreach | Cause::Autocast => Vec::new(),
        };
        let others = match cause {
            Cause::Logits => not_logits(cx, marks, live, &sizes),
            _ => FxHashSet::default(),
        };
        Some(Self { cx, marks, cause, sizes, others })
    }

    fn has(&self, index: u32) -> bool {
        let Self { cx, marks, cause, sizes, others } = self;
        let block = &cx.trace.blocks[index as usize];
        let is_size = || {
            sizes.contains(&block.bytes.0) && cx.is_result(index) && !others.contains(&block.stack)
        };
        match cause {
            Cause::Foreach => is_foreach(*cx, marks, index),
            Cause::Autocast => is_cached_cast(*cx, marks, block),
            Cause::Logits | Cause::Pairs => is_size(),
            Cause::Scores => is_size() && block.stack != StackId::EMPTY,
        }
    }
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
        for cause in Cause::ALL {
            budget.charge(8 * live.len() as u64).await;
            let Some(cure) = cause.cure() else { continue };
            let Some(blocks) = Blocks::of(cx, &marks, cause, &live) else { continue };
            let block = |i: u32| &cx.trace.blocks[i as usize];
            let at_peak = live.iter().copied().filter(|&i| blocks.has(i));
            let size = |&i: &u32| (block(i).stack != StackId::EMPTY, block(i).bytes);
            let Some(largest) = at_peak.max_by_key(size) else { continue };
            let mut cuts = Vec::new();
            let visit = |i, block: &Block| {
                if blocks.has(i) {
                    cuts.push(Cut { from: block.enters, to: block.leaves, bytes: block.bytes.0 });
                }
            };
            cx.trace.each_block(4, budget, visit).await;
            let saving = saving(cx, &cuts, budget).await;
            if MATTERS.is_met(saving.bytes, cx.peak()) {
                found.push(PeakPart {
                    cure,
                    site: cx.program_frame(block(largest).stack),
                    saving: saving.bytes,
                    without: saving.peak,
                });
            }
        }
        found.sort_by_key(|part| std::cmp::Reverse(part.saving));
        found
    })
}

/// What blocks with a known cure are, among those that are live after a slot: `copies of the
/// logits`.
pub async fn known_parts(
    cx: Evidence<'_>,
    slot: u32,
    budget: &mut Budget,
) -> FxHashMap<u32, &'static str> {
    let marks = Marks::new(cx.snapshot, budget).await;
    let live = cx.trace.live_at(slot, budget).await;
    let live: Vec<u32> = live.iter().map(|&(index, _)| index).collect();
    let mut nouns = FxHashMap::default();
    for cause in Cause::ALL {
        budget.charge(8 * live.len() as u64).await;
        let Some(blocks) = Blocks::of(cx, &marks, cause, &live) else { continue };
        let of_cause = live.iter().filter(|&&index| blocks.has(index));
        nouns.extend(of_cause.map(|&index| (index, cause.noun())));
    }
    nouns
}

/// Whether a noun is one of [`known_parts`].
pub fn is_known_part(noun: &str) -> bool {
    Cause::ALL.iter().any(|cause| cause.noun() == noun)
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

/// The most blocks between the logits and what cross entropy makes of them.
const MAX_BETWEEN: u32 = 6;

/// The call stacks of blocks with the size of the logits that are made long before the loss.
fn not_logits(cx: Evidence<'_>, marks: &Marks, live: &[u32], sizes: &[u64]) -> FxHashSet<StackId> {
    let stack = |i: u32| cx.trace.blocks[i as usize].stack;
    let is_loss = |&i: &u32| marks.of(stack(i)).has(Mark::CROSS_ENTROPY);
    let is_size = |&i: &u32| sizes.contains(&cx.trace.blocks[i as usize].bytes.0);
    let all = live.iter().copied().filter(is_size);
    let Some(first) = all.clone().filter(is_loss).min() else { return FxHashSet::default() };
    let mut before: Vec<u32> = all.filter(|&i| i < first).collect();
    before.sort_unstable_by_key(|&i| std::cmp::Reverse(i));
    let mut near = first;
    let is_far = |&i: &u32| {
        let is_far = near - i > MAX_BETWEEN;
        near = if is_far { near } else { i };
        is_far
    };
    before.into_iter().filter(is_far).map(stack).collect()
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

/// The most blocks between a vector and the values of its pairs.
const MAX_APART: u32 = 16;

/// The fewest elements of a vector whose pairs matter.
const MIN_ELEMENTS: u64 = 256;

/// The size of the largest result that the program's own line makes, if it is `[n, n]` and a vector
/// of n elements of the same type is there.
fn pairs(cx: Evidence<'_>, live: &[u32]) -> Option<Vec<u64>> {
    let block = |i: u32| &cx.trace.blocks[i as usize];
    let is_own = |&i: &u32| {
        let stack = block(i).stack;
        stack != StackId::EMPTY && cx.is_result(i) && !cx.runs_module(stack)
    };
    let largest = live.iter().copied().filter(is_own).max_by_key(|&i| block(i).bytes)?;
    let (size, enters) = (block(largest).bytes.0, block(largest).enters);
    let vectors: Vec<u64> = [2, 4, 8]
        .into_iter()
        .filter_map(|element| {
            let count = (size / element).isqrt();
            let is_square = count * count * element == size && count >= MIN_ELEMENTS;
            is_square.then_some(count * element)
        })
        .collect();
    let before = cx.trace.blocks.partition_point(|block| block.enters < enters) as u32;
    let is_vector = |index: u32| {
        let block = block(index);
        block.leaves >= enters && vectors.contains(&block.bytes.0) && cx.is_result(index)
    };
    // A bias has the elements of a vector, too.
    (before.saturating_sub(MAX_APART)..before).any(is_vector).then(|| vec![size])
}

/// The program's function, by name and file, that makes an allocation.
fn function_of(cx: Evidence<'_>, stack: StackId) -> Option<(u32, u32)> {
    let frame = cx.snapshot.frame(cx.program_frame(stack)?);
    Some((frame.name.0, frame.file.0))
}
