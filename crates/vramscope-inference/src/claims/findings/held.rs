//! Memory that is live at the peak although nothing needs it any more, or that exists twice.

mod words;

use crate::category::{Category, Phase};
use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::severity::Severity;
use crate::evidence::{Cut, Saving, saving};
use crate::evidence::{Evidence, Materiality};
use crate::steps::Steps;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::{Frame, FrameId, StackId};
use vramscope_trace::group_by_key;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, Origin};
use vramscope_units::{Bytes, EventIndex};

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality::percent(2);

/// The same for two equal blocks, which may be meant to be two.
const COPIES_MATTER: Materiality = Materiality::percent(10);

/// The fewest call stacks of a pass that is held for several steps.
const MIN_PASS_STACKS: usize = 4;

/// Memory that is held at the peak of `requested_bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldTooLong {
    /// Results of an earlier step are live at the peak.
    LastStep {
        /// The step that made them, if it is not the last one before the peak.
        of_step: Option<u32>,
        /// The event that requests the free of the largest block; `None` if it stays.
        until: Option<EventIndex>,
        /// The frame of that free, if it has a call stack of its own.
        freed_at: Option<Frame>,
        /// The peak of `requested_bytes` is lower by this without them.
        saving: Bytes,
    },
    /// A variable holds its old value until a new one is computed and assigned.
    Variable {
        /// Results that are live at the peak, the newest included.
        results: usize,
        /// The event that requests the free of the oldest.
        until: EventIndex,
        /// The line itself computes the result, maybe from the old one. No module does.
        is_direct: bool,
        /// The peak of `requested_bytes` is lower by this without the old ones.
        saving: Bytes,
    },
    /// Blocks of equal size from different lines of one function.
    Copies {
        /// The size of each block.
        each: Bytes,
        /// The lines.
        lines: usize,
    },
}

/// A block that is live at the peak.
#[derive(Clone, Copy)]
struct Live<'a> {
    index: u32,
    block: &'a Block,
}

/// Blocks that are held too long at the peak of `requested_bytes`. Other findings name the blocks
/// of the call stacks `taken`.
pub(super) async fn held_too_long(
    cx: Evidence<'_>,
    taken: &[StackId],
    budget: &mut Budget,
) -> Vec<Found<HeldTooLong>> {
    let live = cx.trace.live_at(cx.peak_slot(), budget).await.into_iter();
    let own = live.filter(|(_, b)| b.origin() == Origin::Alloc && !taken.contains(&b.stack));
    let mut live: Vec<Live<'_>> = own.map(|(index, block)| Live { index, block }).collect();
    budget.charge(4 * live.len() as u64).await;
    let mut found: Vec<Found<HeldTooLong>> = Vec::new();
    if let Some(steps) = cx.steps.filter(|steps| steps.are_training()) {
        let outputs = kept_outputs(cx, &live, budget).await;
        found.extend(last_step(cx, steps, &live, &outputs, budget).await);
        forget(&mut live, &found);
        found.extend(kept_pass(cx, steps, &live, budget).await);
        forget(&mut live, &found);
    }
    found.extend(variables(cx, &live, budget).await);
    found.extend(copies(cx, &live));
    found
}

/// Whether the peak is hardly lower without the blocks of a finding.
fn is_nothing(cx: Evidence<'_>, saving: u64) -> bool {
    saving.saturating_mul(1000) < cx.peak()
}

/// Leaves out the blocks of findings.
fn forget(live: &mut Vec<Live<'_>>, found: &[Found<HeldTooLong>]) {
    let named: FxHashSet<StackId> =
        found.iter().flat_map(|f| f.parts.iter().map(|part| part.stack)).collect();
    live.retain(|l| !named.contains(&l.block.stack));
}

/// Whether a block is a result of a forward pass, and neither a part of the model nor kept for it.
fn is_result(cx: Evidence<'_>, index: u32) -> bool {
    matches!(
        cx.categories.get(index).category,
        Category::Activation | Category::Temporary | Category::Unknown
    )
}

fn is_of_forward(cx: Evidence<'_>, block: &Block) -> bool {
    let from = block.alloc_event().map_or(0, |event| event.0);
    matches!(cx.phase_at(from), Some(Phase::Forward | Phase::Evaluation))
}

/// Results of earlier steps that are live at the peak and leave in its step or the next.
async fn last_step(
    cx: Evidence<'_>,
    steps: &Steps,
    live: &[Live<'_>],
    outputs: &FxHashSet<u32>,
    budget: &mut Budget,
) -> Option<Found<HeldTooLong>> {
    let step = steps.before(cx.peak_slot());
    let is_old = |l: &&Live<'_>| {
        // Blocks that stay longer are kept on purpose, grow, or are of a pass that is kept once.
        let left = steps.before(l.block.leaves);
        let is_of_last = steps.before(l.block.enters) < step;
        (step..=step + 1).contains(&left)
            && l.block.leaves < cx.trace.slots()
            && (is_result(cx, l.index) && is_of_last && is_of_forward(cx, l.block)
                || outputs.contains(&l.index))
    };
    let old: Vec<Live<'_>> = live.iter().filter(is_old).copied().collect();
    of_earlier_step(cx, steps, None, old, budget).await
}

/// The results of one forward pass that are live in later steps, at the peak among them. Blocks of
/// the same call stacks leave within their own step in every other step.
async fn kept_pass(
    cx: Evidence<'_>,
    steps: &Steps,
    live: &[Live<'_>],
    budget: &mut Budget,
) -> Option<Found<HeldTooLong>> {
    let step = steps.before(cx.peak_slot());
    let is_old = |l: &&Live<'_>| {
        let (from, left) = (steps.before(l.block.enters), steps.before(l.block.leaves));
        let event = l.block.alloc_event().map_or(0, |event| event.0);
        // The loss, too, which the program computes itself.
        let is_made = (is_result(cx, l.index) || is_input(cx, l))
            && !matches!(cx.phase_at(event), Some(Phase::Backward | Phase::Optimizer));
        from < step && left > step && is_made
    };
    let mut old: Vec<Live<'_>> = live.iter().filter(is_old).copied().collect();
    // For each call stack, blocks that outlive their step, by step, and blocks that do not.
    let mut usual: FxHashMap<StackId, (FxHashSet<usize>, usize)> =
        old.iter().map(|l| (l.block.stack, (FxHashSet::default(), 0))).collect();
    if usual.len() < MIN_PASS_STACKS {
        return None;
    }
    let visit = |_, block: &Block| {
        let Some((kept, brief)) = usual.get_mut(&block.stack) else { return };
        let from = steps.before(block.enters);
        if steps.before(block.leaves) > from {
            kept.insert(from);
        } else {
            *brief += 1;
        }
    };
    cx.trace.each_block(2, budget, visit).await;
    old.retain(|l| matches!(&usual[&l.block.stack], (kept, 2..) if kept.len() == 1));
    let of_steps = group_by_key(old.iter().map(|l| (steps.before(l.block.enters), *l)).collect());
    let sum = |all: &[Live<'_>]| all.iter().map(|l| l.block.bytes.0).sum::<u64>();
    let (from, old) = of_steps.into_iter().max_by_key(|(_, all)| sum(all))?;
    // The finding about a failed allocation tells what its exception keeps.
    if cx.trace.ooms.iter().any(|oom| steps.before(oom.event.0 + 1) == from) {
        return None;
    }
    let stacks: FxHashSet<StackId> = old.iter().map(|l| l.block.stack).collect();
    if stacks.len() < MIN_PASS_STACKS {
        return None;
    }
    of_earlier_step(cx, steps, Some(from.saturating_sub(1) as u32), old, budget).await
}

/// The finding about results of an earlier step.
async fn of_earlier_step(
    cx: Evidence<'_>,
    steps: &Steps,
    of_step: Option<u32>,
    mut old: Vec<Live<'_>>,
    budget: &mut Budget,
) -> Option<Found<HeldTooLong>> {
    let bytes: u64 = old.iter().map(|l| l.block.bytes.0).sum();
    if !MATTERS.is_met(bytes, cx.peak()) {
        return None;
    }
    old.sort_by_key(|l| std::cmp::Reverse(l.block.bytes));
    // Every step holds them: without them, each step is lower.
    let stacks: FxHashSet<StackId> = old.iter().map(|l| l.block.stack).collect();
    let mut cuts = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let blocks = cx.trace.blocks[part].iter();
        for block in blocks.filter(|b| b.origin() == Origin::Alloc && stacks.contains(&b.stack)) {
            let end = steps.begins.get(steps.before(block.enters)).copied();
            // A copy of the output is made after the step.
            let is_copy = of_step.is_none() && !is_of_forward(cx, block);
            let from = end.filter(|_| !is_copy).map_or(block.enters, |end| end + 1);
            if end.is_some() && from < block.leaves {
                cuts.push(Cut { from, to: block.leaves, bytes: block.bytes.0 });
            }
        }
    }
    let Saving { bytes: cost, .. } = saving(cx, &cuts, budget).await;
    if is_nothing(cx, cost) {
        return None;
    }
    let largest = old.first()?.block;
    let until = largest.free_requested();
    let facts = HeldTooLong::LastStep {
        of_step,
        until,
        freed_at: until.and_then(|event| cx.own_free_frame(largest, event)),
        saving: Bytes(cost),
    };
    let events = old.iter().filter_map(|l| l.block.alloc_event()).map(|e| e.0).collect();
    let event = cx.peak_slot().checked_sub(1)?;
    Some(
        Common {
            step: cx.step_at(event),
            phase: cx.phase_at(event),
            basis: Basis::Exact,
            blocks: old.len() as u32,
            parts: parts(old.iter().map(|l| (l.block.stack, l.block.bytes.0))),
            ..cx.found(FindingKind::HeldTooLong, cx.hash(largest.stack), bytes, cost, events)
        }
        .with(facts),
    )
}

/// Blocks of the program at the peak that are copies of the model's output, and no inputs.
///
/// A line makes one outside of all phases, and never before the first backward pass: what feeds the
/// first step is there by then. At that time a result of a module of equal size is live.
async fn kept_outputs(cx: Evidence<'_>, live: &[Live<'_>], budget: &mut Budget) -> FxHashSet<u32> {
    let phases = cx.categories.phases();
    let first = phases.iter().find(|span| span.phase == Phase::Backward);
    let Some(backward) = first.map(|span| span.begin) else { return FxHashSet::default() };
    let mut outputs: Vec<Live<'_>> = live
        .iter()
        .filter(|l| {
            let from = l.block.alloc_event().map_or(0, |event| event.0);
            Materiality::NOISE.is_met(l.block.bytes.0, cx.peak())
                && l.block.stack != StackId::EMPTY
                && (is_result(cx, l.index) || is_input(cx, l))
                && from > backward
                && !matches!(cx.phase_at(from), Some(Phase::Forward | Phase::Backward))
                && cx.innermost_python(l.block.stack) == cx.calling_frame(l.block.stack)
        })
        .copied()
        .collect();
    let mut has_source: FxHashSet<u32> = FxHashSet::default();
    for part in strides(cx.trace.blocks.len()) {
        if outputs.is_empty() {
            break;
        }
        budget.charge(part.len() as u64 * outputs.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&cx.trace.blocks[part]) {
            // A line that runs before the first backward pass makes inputs.
            if block.enters <= backward {
                let site = cx.sites.get(block.stack).site_hash;
                outputs.retain(|l| cx.sites.get(l.block.stack).site_hash != site);
            }
            let is_output = is_of_forward(cx, block) && is_result(cx, i);
            for l in outputs.iter().filter(|_| is_output) {
                if block.bytes == l.block.bytes && block.is_live_at(l.block.enters) {
                    has_source.insert(l.index);
                }
            }
        }
    }
    outputs.iter().map(|l| l.index).filter(|index| has_source.contains(index)).collect()
}

/// A variable of the program that holds an old result until the line that computes the new one
/// assigns it. The free then has the frame of that line.
async fn variables(
    cx: Evidence<'_>,
    live: &[Live<'_>],
    budget: &mut Budget,
) -> Vec<Found<HeldTooLong>> {
    let is_asked = |l: &&Live<'_>| {
        (is_result(cx, l.index) || is_input(cx, l))
            && Materiality::NOISE.is_met(l.block.bytes.0, cx.peak())
            && l.block.stack != StackId::EMPTY
    };
    let by_stack: Vec<(StackId, Live<'_>)> =
        live.iter().filter(is_asked).map(|l| (l.block.stack, *l)).collect();
    let mut found: Vec<Found<HeldTooLong>> = Vec::new();
    for (stack, mut results) in group_by_key(by_stack) {
        results.sort_by_key(|l| l.block.enters);
        let Some(line) = cx.calling_frame(stack) else { continue };
        let results: Vec<&Block> = results.iter().map(|l| l.block).collect();
        let old = replaced(cx, &results, line);
        let bytes: u64 = old.iter().map(|(block, ..)| block.bytes.0).sum();
        let (Some(&(_, _, until)), true) = (old.first(), MATTERS.is_met(bytes, cx.peak())) else {
            continue;
        };
        // Every time the line runs, and not only at the peak.
        let mut all: Vec<(u64, &Block)> = Vec::new();
        for part in strides(cx.trace.blocks.len()) {
            budget.charge(part.len() as u64).await;
            let blocks = cx.trace.blocks[part].iter();
            let same = blocks.filter(|b| b.stack == stack && b.origin() == Origin::Alloc);
            all.extend(
                same.filter(|b| Materiality::NOISE.is_met(b.bytes.0, cx.peak()))
                    .map(|b| (b.bytes.0, b)),
            );
        }
        all.sort_by_key(|(bytes, block)| (*bytes, block.enters));
        let mut cuts: Vec<Cut> = Vec::new();
        for of_size in all.chunk_by(|a, b| a.0 == b.0) {
            let blocks: Vec<&Block> = of_size.iter().map(|(_, block)| *block).collect();
            let old = replaced(cx, &blocks, line).into_iter();
            cuts.extend(old.map(|(block, new, _)| Cut {
                from: new,
                to: block.leaves,
                bytes: block.bytes.0,
            }));
        }
        let Saving { bytes: cost, .. } = saving(cx, &cuts, budget).await;
        if is_nothing(cx, cost) {
            continue;
        }
        let facts = HeldTooLong::Variable {
            results: old.len() + 1,
            until,
            is_direct: cx.innermost_python(stack) == Some(line),
            saving: Bytes(cost),
        };
        let peak_event = cx.peak_slot().saturating_sub(1);
        let events = old.iter().filter_map(|(b, ..)| b.alloc_event()).map(|e| e.0).collect();
        found.push(
            Common {
                step: cx.step_at(peak_event),
                phase: cx.phase_at(peak_event),
                basis: Basis::Exact,
                blocks: old.len() as u32,
                parts: parts(old.iter().map(|(block, ..)| (block.stack, block.bytes.0))),
                ..cx.found(FindingKind::HeldTooLong, cx.hash(stack), bytes, cost, events)
            }
            .with(facts),
        );
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.bytes));
    found
}

/// Results of one call stack, in order, that live until the next one is assigned: the block, the
/// slot at which the next one enters, and the free.
fn replaced<'a>(
    cx: Evidence<'_>,
    results: &[&'a Block],
    line: FrameId,
) -> Vec<(&'a Block, u32, EventIndex)> {
    let mut old = Vec::new();
    for pair in results.windows(2) {
        let (block, new) = (pair[0], pair[1]);
        let free = block.free_requested().filter(|free| free.0 >= new.enters);
        let is_held = |free: &EventIndex| {
            is_assigned(cx, block, new, *free, line) && has_inputs_between(cx, block, new, line)
        };
        old.extend(free.filter(is_held).map(|free| (block, new.enters, free)));
    }
    old
}

fn is_input(cx: Evidence<'_>, live: &Live<'_>) -> bool {
    cx.categories.get(live.index).category == Category::Input
}

/// Whether the line that computes the new result frees the old one: the free has the frame of that
/// line. Where frees have no call stacks of their own, no other line allocates in between.
fn is_assigned(
    cx: Evidence<'_>,
    old: &Block,
    new: &Block,
    free: EventIndex,
    line: FrameId,
) -> bool {
    let of_free = cx.stack_of_event(free);
    if of_free != old.stack && of_free != StackId::EMPTY {
        return cx.program_frame(of_free) == Some(line);
    }
    let changes = cx.trace.changes_in(new.enters + 1..free.0 + 1);
    changes.iter().filter(|change| change.enters()).all(|change| {
        cx.calling_frame(cx.trace.blocks[change.block() as usize].stack) == Some(line)
    })
}

/// Whether the program itself, outside of the line that computes the results, allocates a block
/// between two of them. Otherwise the old result may be the input of the new one.
fn has_inputs_between(cx: Evidence<'_>, old: &Block, new: &Block, line: FrameId) -> bool {
    let changes = cx.trace.changes_in(old.enters + 1..new.enters);
    changes.iter().filter(|c| c.enters()).any(|change| {
        let stack = cx.trace.blocks[change.block() as usize].stack;
        let caller = cx.calling_frame(stack);
        caller.is_some() && caller != Some(line) && cx.innermost_python(stack) == caller
    })
}

/// Blocks of equal size that different lines of one function allocate themselves, all live at the
/// peak.
fn copies(cx: Evidence<'_>, live: &[Live<'_>]) -> Vec<Found<HeldTooLong>> {
    // Function (name and file) and size.
    let mut copies: Vec<((u32, u32, u64), &Live<'_>)> = Vec::new();
    for l in live.iter().filter(|l| is_result(cx, l.index) || is_input(cx, l)) {
        if !COPIES_MATTER.is_met(l.block.bytes.0, cx.peak()) {
            continue;
        }
        let Some(inner) = cx.innermost_python(l.block.stack) else { continue };
        // Within a module's forward, equal sizes are the rule.
        if cx.calling_frame(l.block.stack) == Some(inner) {
            let frame = cx.snapshot.frame(inner);
            copies.push(((frame.name.0, frame.file.0, l.block.bytes.0), l));
        }
    }
    let mut found: Vec<Found<HeldTooLong>> = Vec::new();
    for ((_, _, each), mut group) in group_by_key(copies) {
        group.sort_by_key(|l| l.block.enters);
        let mut lines: Vec<FrameId> =
            group.iter().filter_map(|l| cx.program_frame(l.block.stack)).collect();
        lines.sort_by_key(|f| f.0);
        lines.dedup();
        // Temporaries of one formula have equal sizes, and are no copies.
        let is_temporary =
            |l: &&Live<'_>| cx.categories.get(l.index).category == Category::Temporary;
        if group.len() > 2 && group.iter().any(is_temporary) {
            continue;
        }
        if lines.len() < 2 {
            continue;
        }
        let bytes: u64 = group.iter().map(|l| l.block.bytes.0).sum();
        let facts = HeldTooLong::Copies { each: Bytes(each), lines: lines.len() };
        let events = group.iter().filter_map(|l| l.block.alloc_event()).map(|e| e.0).collect();
        let peak_event = cx.peak_slot().saturating_sub(1);
        found.push(
            Common {
                // Equal sizes do not prove equal contents.
                severity: Severity::Low,
                step: cx.step_at(peak_event),
                phase: cx.phase_at(peak_event),
                basis: Basis::Estimate,
                blocks: group.len() as u32,
                parts: parts(group.iter().map(|l| (l.block.stack, l.block.bytes.0))),
                ..cx.found(
                    FindingKind::HeldTooLong,
                    cx.hash(group[0].block.stack),
                    bytes,
                    0,
                    events,
                )
            }
            .with(facts),
        );
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.bytes));
    found
}

#[cfg(test)]
crate::claims::cases::cases! {
    HeldTooLong,
    fires: ["findings/s7_two_copies.pickle.gz", "recipes/mamba.pickle.gz"],
    silent: ["findings/non_ema.pickle.gz", "findings/non_unfreeze.pickle.gz"]
}
