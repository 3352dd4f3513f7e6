//! One cause that alone sets the peak of `requested_bytes`: a step, the making of the model, or an
//! evaluation that keeps its results.
//!
//! Without it the peak would be much lower, though nothing may be wrong.

mod evaluation;
mod per_pass;
mod words;

pub(super) use evaluation::evaluation;
pub(super) use per_pass::per_pass;

use crate::category::{Category, Phase};
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::severity::Severity;
use crate::evidence::{Evidence, Materiality};
use crate::step_floors::{StepFloor, slope, step_floors};
use crate::steps::Steps;
use rustc_hash::FxHashMap;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, Origin};
use vramscope_units::Bytes;

/// A peak is one of a kind from this many percent of the next lower one.
const MIN_PERCENT: u64 = 125;

/// A step has larger inputs from this many percent of those of the others.
const LARGER_PERCENT: u64 = 125;

/// The fewest whole steps to compare.
const MIN_STEPS: usize = 4;

/// A block is scratch memory if it lives for at most this many events.
const MAX_SCRATCH_EVENTS: u32 = 16;

/// The one cause of the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeakCause {
    /// A step with larger inputs than all others.
    LargerStep {
        /// The step.
        step: u32,
        /// The category that is larger: inputs, or activations.
        category: Category,
        /// Its bytes in the step.
        bytes: Bytes,
        /// The most bytes of the category in another step.
        before: Bytes,
        /// The largest peak of another step.
        others: Bytes,
    },
    /// Step 0, with memory that no later step needs.
    FirstStep {
        /// The largest peak of a later step.
        others: Bytes,
        /// Scratch memory at the peak that is larger than any of its call stack later.
        scratch: Bytes,
        /// Whether a convolution allocates it: cuDNN tries algorithms.
        is_convolution: bool,
    },
    /// The making of the model, before the first forward pass.
    Building {
        /// The largest peak after it.
        others: Bytes,
        /// Bytes that are live at the peak and not at the first forward pass.
        dropped: Bytes,
        /// Whether the dropped weights are replaced by ones of half the size.
        is_halved: bool,
    },
    /// An evaluation that keeps its results on the device.
    Evaluation {
        /// Bytes of results at the peak.
        kept: Bytes,
        /// The largest peak outside of evaluations.
        others: Bytes,
    },
    /// Results that a loop keeps of each forward pass.
    PerPass {
        /// Blocks at the peak.
        blocks: u32,
        /// The size of each.
        each: Bytes,
    },
}

/// Whether a peak is one of a kind beside the next lower one.
fn is_alone(peak: u64, others: u64) -> bool {
    let is_higher = u128::from(peak) * 100 >= u128::from(others) * u128::from(MIN_PERCENT);
    others > 0 && is_higher && Materiality::NOISE.is_met(peak - others, peak)
}

fn found(
    cx: Evidence<'_>,
    what: &str,
    bytes: u64,
    blocks: &[&Block],
    facts: PeakCause,
) -> Found<PeakCause> {
    let peak = cx.peak_slot();
    let events = blocks.iter().filter_map(|b| b.alloc_event()).map(|event| event.0).collect();
    let common = cx.found(FindingKind::PeakCause, what, bytes, bytes, events);
    // A program chooses what its loop keeps. The other causes can be intended.
    let severity = match facts {
        PeakCause::PerPass { .. } => common.severity,
        _ => Severity::Low,
    };
    Common {
        severity,
        step: peak.checked_sub(1).and_then(|event| cx.step_at(event)),
        phase: peak.checked_sub(1).and_then(|event| cx.phase_at(event)),
        basis: Basis::Exact,
        blocks: blocks.len() as u32,
        parts: parts(blocks.iter().map(|block| (block.stack, block.bytes.0))),
        ..common
    }
    .with(facts)
}

/// The blocks that are live at the peak and that the window allocated, with their indices.
async fn live_at_peak<'a>(cx: Evidence<'a>, budget: &mut Budget) -> Vec<(u32, &'a Block)> {
    let mut live = cx.trace.live_at(cx.peak_slot(), budget).await;
    live.retain(|(_, block)| block.origin() == Origin::Alloc);
    live
}

/// A step that alone sets the peak.
pub(super) async fn of_step(cx: Evidence<'_>, budget: &mut Budget) -> Option<Found<PeakCause>> {
    let steps = cx.steps.filter(|steps| steps.are_training() && steps.whole() >= MIN_STEPS)?;
    let floors = step_floors(cx.trace, steps, budget).await;
    let peak = cx.peak_slot();
    let phase = cx.phase_at(peak.checked_sub(1)?)?;
    let at = floors.iter().find(|step| step.begin < peak && peak <= step.end)?;
    // The window's last step may be cut off.
    let end = floors.last()?.end;
    let tail = cx.trace.requested.largest_sliced(end..cx.trace.slots(), budget).await;
    let tail = tail.map_or(0, |(_, bytes)| bytes);
    let is_other = |step: &&StepFloor| step.step != at.step && (at.step == 0 || step.step > 0);
    let others = floors.iter().filter(is_other).map(|step| step.peak.0).max()?.max(tail);
    if !matches!(phase, Phase::Forward | Phase::Backward)
        || !is_alone(at.peak.0, others)
        || slope(&floors).is_some()
    {
        return None;
    }
    if at.step == 0 {
        return first_step(cx, Bytes(others), steps, budget).await;
    }
    let sums = allocated(cx, steps, budget).await;
    let of = |kind: usize| {
        let bytes = sums.get(at.step as usize)?[kind];
        let rest = sums.iter().enumerate().filter(|(step, _)| *step != at.step as usize);
        let before = rest.map(|(_, sum)| sum[kind]).max()?;
        let is_larger = u128::from(bytes) * 100 >= u128::from(before) * u128::from(LARGER_PERCENT);
        (before > 0 && is_larger).then_some((bytes, before))
    };
    let category = [Category::Input, Category::Activation];
    let (kind, (bytes, before)) = (0..2).find_map(|kind| Some((kind, of(kind)?)))?;
    let live = live_at_peak(cx, budget).await;
    let own: Vec<&Block> =
        live.iter().filter(|(_, b)| b.enters > at.begin).map(|(_, block)| *block).collect();
    let facts = PeakCause::LargerStep {
        step: at.step,
        category: category[kind],
        bytes: Bytes(bytes),
        before: Bytes(before),
        others: Bytes(others),
    };
    Some(found(cx, "step", at.peak.0 - others, &own, facts))
}

/// Bytes of inputs and of activations that each whole step allocates.
async fn allocated(cx: Evidence<'_>, steps: &Steps, budget: &mut Budget) -> Vec<[u64; 2]> {
    let mut sums = vec![[0; 2]; steps.whole()];
    let mut near = 0;
    let visit = |index, block: &Block| {
        near = steps.before_near(block.enters, near);
        let kind = match cx.categories.get(index).category {
            Category::Input => 0,
            Category::Activation => 1,
            _ => return,
        };
        if let Some(sum) = near.checked_sub(1).and_then(|step| sums.get_mut(step)) {
            sum[kind] += block.bytes.0;
        }
    };
    cx.trace.each_block(2, budget, visit).await;
    sums
}

/// Scratch memory of step 0: the largest block at the peak that lives for a few events, if no later
/// step allocates as much from its call stack.
async fn first_step(
    cx: Evidence<'_>,
    others: Bytes,
    steps: &Steps,
    budget: &mut Budget,
) -> Option<Found<PeakCause>> {
    let second = *steps.begins.get(1)?;
    let is_scratch = |block: &Block| block.leaves - block.enters <= MAX_SCRATCH_EVENTS;
    let live = live_at_peak(cx, budget).await;
    let largest = live.iter().map(|(_, b)| *b).filter(|b| is_scratch(b)).max_by_key(|b| b.bytes)?;
    // By call stack: the largest scratch block of step 0, and the most bytes later.
    let mut scratch: FxHashMap<StackId, (u64, u64)> = FxHashMap::default();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let blocks = cx.trace.blocks[part]
            .iter()
            .filter(|b| Materiality::NOISE.is_met(b.bytes.0, cx.peak()));
        for block in blocks.filter(|b| b.origin() == Origin::Alloc && is_scratch(b)) {
            let most = scratch.entry(block.stack).or_default();
            let most = if block.enters > second { &mut most.1 } else { &mut most.0 };
            *most = block.bytes.0.max(*most);
        }
    }
    let peak = cx.peak();
    let excess = peak.saturating_sub(others.0);
    let later = scratch.get(&largest.stack).map_or(0, |most| most.1);
    if largest.bytes.0 <= later.max(excess / 2) {
        return None;
    }
    // Backward has no call stack, but forward passes search for algorithms likewise.
    let is_convolution = scratch.iter().any(|(&stack, &(first, later))| {
        first > 2 * later
            && cx.snapshot.stack(stack).any(|frame| {
                let (file, name) = (cx.snapshot.text(frame.file), cx.snapshot.text(frame.name));
                file.ends_with("conv.py") || name.contains("cudnn") || name.contains("onvolution")
            })
    });
    let facts = PeakCause::FirstStep { others, scratch: largest.bytes, is_convolution };
    Some(found(cx, "first_step", excess, &[largest], facts))
}

/// The making of a model that alone sets the peak.
pub(super) async fn building(cx: Evidence<'_>, budget: &mut Budget) -> Option<Found<PeakCause>> {
    let spans = cx.categories.phases();
    let begin = spans.iter().find(|span| span.phase == Phase::Forward)?.begin;
    let peak = cx.peak_slot();
    if peak > begin {
        return None;
    }
    let rest = cx.trace.requested.largest_sliced(begin + 1..cx.trace.slots(), budget).await;
    let others = rest.map_or(0, |(_, bytes)| bytes);
    let live = live_at_peak(cx, budget).await;
    let of = |block: &Block| block.bytes.0;
    let all: u64 = live.iter().map(|(_, block)| of(block)).sum();
    let total = cx.peak();
    if !is_alone(total, others) || all * 2 < total {
        return None;
    }
    let is_dropped = |block: &&Block| block.leaves <= begin;
    let dropped: Vec<&Block> = live.iter().map(|(_, b)| *b).filter(is_dropped).collect();
    let bytes: u64 = dropped.iter().map(|block| of(block)).sum();
    if !Materiality::NOISE.is_met(bytes, total) {
        return None;
    }
    let is_halved = halved(cx, begin, budget).await >= bytes / 2;
    let facts = PeakCause::Building { others: Bytes(others), dropped: Bytes(bytes), is_halved };
    Some(found(cx, "building", total - others, &dropped, facts))
}

/// Bytes of the blocks that are allocated and freed before the first forward pass, and of which a
/// block of half the size stays.
async fn halved(cx: Evidence<'_>, begin: u32, budget: &mut Budget) -> u64 {
    let mut stays: FxHashMap<u64, usize> = FxHashMap::default();
    let mut gone = 0;
    for pass in 0..2 {
        let visit = |_, block: &Block| {
            if block.origin() == Origin::Alloc {
                if pass == 0 && block.is_live_at(begin) {
                    *stays.entry(block.bytes.0 * 2).or_default() += 1;
                } else if pass == 1
                    && block.leaves <= begin
                    && let Some(left) = stays.get_mut(&block.bytes.0).filter(|left| **left > 0)
                {
                    *left -= 1;
                    gone += block.bytes.0;
                }
            }
        };
        cx.trace.each_block(1, budget, visit).await;
    }
    gone
}

#[cfg(test)]
crate::claims::cases::cases! {
    PeakCause,
    fires: [
        "findings/non_eval.pickle.gz",
        "findings/varlen_tight_roundup.pickle.gz",
        "findings/real_cudnn_benchmark.pickle.gz"
    ],
    silent: ["findings/non_ema.pickle.gz", "findings/leak_every.pickle.gz"]
}
