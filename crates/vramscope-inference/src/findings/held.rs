//! Memory that is live at the peak although nothing needs it any more, or that exists twice.

use super::{Basis, Evidence, Facts, Finding, Severity, parts};
use crate::category::{Category, Phase};
use vramscope_snapshot::{Frame, FrameId, StackId};
use vramscope_trace::group_by_key;
use vramscope_trace::is_python;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, Origin};
use vramscope_units::{Bytes, EventIndex};

/// The fewest bytes to report.
const MIN_BYTES: u64 = 16 << 20;

/// The smallest share of the peak of `requested_bytes` to report, in percent.
const MIN_PERCENT: u64 = 2;

/// The smallest share of the peak in percent from which two equal blocks are reported.
const MIN_COPY_PERCENT: u64 = 10;

/// Memory that is held at the peak of `requested_bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldTooLong {
    /// Results of the last step are live while the next one peaks.
    LastStep {
        /// The event that requests the free of the largest block; `None` if it stays.
        until: Option<EventIndex>,
        /// The frame of that free, if it has a call stack of its own.
        freed_at: Option<Frame>,
    },
    /// A variable holds its old value until a new one is computed and assigned.
    Variable {
        /// Results that are live at the peak, the newest included.
        results: usize,
        /// The event that requests the free of the oldest.
        until: EventIndex,
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

/// What is held at the peak of `requested_bytes`. `growing` are call stacks that grow: another
/// finding names them.
pub(super) async fn held_too_long(
    cx: Evidence<'_>,
    growing: &[StackId],
    budget: &mut Budget,
) -> Vec<Finding> {
    let peak = cx.peak_slot();
    let mut live: Vec<Live<'_>> = Vec::new();
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        let blocks = (part.start as u32..).zip(&cx.trace.blocks[part]);
        live.extend(
            blocks
                .filter(|(_, b)| b.is_live_at(peak) && b.origin() == Origin::Alloc)
                .filter(|(_, b)| !growing.contains(&b.stack))
                .map(|(index, block)| Live { index, block }),
        );
    }
    budget.charge(4 * live.len() as u64).await;
    let mut found: Vec<Finding> = last_step(cx, &live).into_iter().collect();
    let told: Vec<StackId> =
        found.iter().flat_map(|f| f.parts.iter().map(|part| part.stack)).collect();
    live.retain(|l| !told.contains(&l.block.stack));
    found.extend(variables(cx, &live));
    found.extend(copies(cx, &live));
    found
}

fn is_large(cx: Evidence<'_>, bytes: u64, percent: u64) -> bool {
    let peak = cx.trace.requested_band.peak.max(0) as u64;
    bytes >= MIN_BYTES && bytes.saturating_mul(100) >= peak.saturating_mul(percent)
}

/// Whether a block is a result of a forward pass, and neither a part of the model nor kept for it.
fn is_result(cx: Evidence<'_>, live: &Live<'_>) -> bool {
    matches!(
        cx.categories.get(live.index).category,
        Category::Activation | Category::Temporary | Category::Unknown
    )
}

/// Results of earlier steps that are live at the peak.
fn last_step(cx: Evidence<'_>, live: &[Live<'_>]) -> Option<Finding> {
    let steps = cx.steps.filter(|steps| steps.are_training())?;
    let peak = cx.peak_slot();
    let step = steps.before(peak);
    let phase = cx.phase_at(peak.checked_sub(1)?)?;
    let is_old = |l: &&Live<'_>| {
        let from = l.block.alloc_event().map_or(0, |event| event.0);
        // It leaves in this step or the next one. What stays longer is kept on purpose or grows.
        let left = steps.before(l.block.leaves);
        is_result(cx, l)
            && steps.before(l.block.enters) < step
            && (step..=step + 1).contains(&left)
            && l.block.leaves < cx.trace.slots()
            && matches!(cx.phase_at(from), Some(Phase::Forward | Phase::Evaluation))
    };
    let mut old: Vec<&Live<'_>> = live.iter().filter(is_old).collect();
    let bytes: u64 = old.iter().map(|l| l.block.bytes.0).sum();
    if !is_large(cx, bytes, MIN_PERCENT) {
        return None;
    }
    old.sort_by_key(|l| std::cmp::Reverse(l.block.bytes));
    let largest = old.first()?.block;
    let until = largest.free_requested();
    let facts = HeldTooLong::LastStep {
        until,
        freed_at: until.and_then(|event| own_free_frame(cx, largest, event)),
    };
    let events = old.iter().filter_map(|l| l.block.alloc_event()).map(|e| e.0).collect();
    Some(Finding {
        step: cx.step_at(peak - 1),
        phase: Some(phase),
        basis: Basis::Exact,
        blocks: old.len() as u32,
        parts: parts(old.iter().map(|l| (l.block.stack, l.block.bytes.0))),
        ..cx.finding(cx.hash(largest.stack), bytes, bytes, events, Facts::HeldTooLong(facts))
    })
}

/// The frame of the program that frees a block, if the free has a call stack of its own.
fn own_free_frame(cx: Evidence<'_>, block: &Block, free: EventIndex) -> Option<Frame> {
    let stack = cx.snapshot.events.stack(cx.trace.device.events.start + free.0);
    if stack == block.stack {
        return None;
    }
    program_frame(cx, stack).map(|frame| cx.snapshot.frame(frame))
}

/// The innermost frame outside of PyTorch.
fn program_frame(cx: Evidence<'_>, stack: StackId) -> Option<FrameId> {
    cx.snapshot.stacks.frames(stack).iter().copied().find(|&f| cx.is_program(f))
}

/// The innermost frame of Python code.
fn innermost_python(cx: Evidence<'_>, stack: StackId) -> Option<FrameId> {
    let file = |f: FrameId| cx.snapshot.text(cx.snapshot.frame(f).file);
    let is_code = |f: &FrameId| is_python(&file(*f)) || file(*f).starts_with('<');
    cx.snapshot.stacks.frames(stack).iter().copied().find(is_code)
}

/// The frame of the program that calls the outermost module. The program's innermost frame if no
/// module is called.
fn calling_frame(cx: Evidence<'_>, stack: StackId) -> Option<FrameId> {
    let frames = cx.snapshot.stacks.frames(stack);
    let name = |f: FrameId| cx.snapshot.text(cx.snapshot.frame(f).name);
    let outermost = frames.iter().rposition(|&f| name(f) == "_call_impl");
    let from = outermost.map_or(0, |at| at + 1);
    frames[from..].iter().copied().find(|&f| cx.is_program(f))
}

/// A variable of the program that holds an old result until the line that computes the new one
/// assigns it. The free then has the frame of that line.
fn variables(cx: Evidence<'_>, live: &[Live<'_>]) -> Vec<Finding> {
    let is_asked = |l: &&Live<'_>| {
        (is_result(cx, l) || is_input(cx, l))
            && l.block.bytes.0 >= MIN_BYTES
            && l.block.stack != StackId::EMPTY
    };
    let by_stack: Vec<(StackId, &Live<'_>)> =
        live.iter().filter(is_asked).map(|l| (l.block.stack, l)).collect();
    let mut found: Vec<Finding> = Vec::new();
    for (stack, mut results) in group_by_key(by_stack) {
        results.sort_by_key(|l| l.block.enters);
        let Some(line) = calling_frame(cx, stack) else { continue };
        let mut old: Vec<(&Block, EventIndex)> = Vec::new();
        for pair in results.windows(2) {
            let (block, new) = (pair[0].block, pair[1].block);
            let free = block.free_requested().filter(|free| free.0 >= new.enters);
            let is_held = |free: &EventIndex| {
                is_assigned(cx, pair, *free, line) && has_inputs_between(cx, block, new, line)
            };
            old.extend(free.filter(is_held).map(|free| (block, free)));
        }
        let bytes: u64 = old.iter().map(|(block, _)| block.bytes.0).sum();
        let (Some(&(_, until)), true) = (old.first(), is_large(cx, bytes, MIN_PERCENT)) else {
            continue;
        };
        let facts = HeldTooLong::Variable { results: old.len() + 1, until };
        let peak_event = cx.peak_slot().saturating_sub(1);
        let events = old.iter().filter_map(|(b, _)| b.alloc_event()).map(|e| e.0).collect();
        found.push(Finding {
            step: cx.step_at(peak_event),
            phase: cx.phase_at(peak_event),
            basis: Basis::Exact,
            blocks: old.len() as u32,
            parts: parts(old.iter().map(|(block, _)| (block.stack, block.bytes.0))),
            ..cx.finding(cx.hash(stack), bytes, bytes, events, Facts::HeldTooLong(facts))
        });
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.bytes));
    found
}

fn is_input(cx: Evidence<'_>, live: &Live<'_>) -> bool {
    cx.categories.get(live.index).category == Category::Input
}

/// Whether the line that computes the new result frees the old one: the free has the frame of that
/// line. Where frees have no call stacks of their own, no other line allocates in between.
fn is_assigned(cx: Evidence<'_>, pair: &[&Live<'_>], free: EventIndex, line: FrameId) -> bool {
    let (old, new) = (pair[0].block, pair[1].block);
    let of_free = cx.snapshot.events.stack(cx.trace.device.events.start + free.0);
    if of_free != old.stack && of_free != StackId::EMPTY {
        return program_frame(cx, of_free) == Some(line);
    }
    let changes = cx.trace.changes_in(new.enters + 1..free.0 + 1);
    changes.iter().filter(|change| change.enters()).all(|change| {
        calling_frame(cx, cx.trace.blocks[change.block() as usize].stack) == Some(line)
    })
}

/// Whether the program itself, outside of the line that computes the results, allocates a block
/// between two of them. Otherwise the old result may be the input of the new one.
fn has_inputs_between(cx: Evidence<'_>, old: &Block, new: &Block, line: FrameId) -> bool {
    let changes = cx.trace.changes_in(old.enters + 1..new.enters);
    changes.iter().filter(|c| c.enters()).any(|change| {
        let stack = cx.trace.blocks[change.block() as usize].stack;
        let caller = calling_frame(cx, stack);
        caller.is_some() && caller != Some(line) && innermost_python(cx, stack) == caller
    })
}

/// Blocks of equal size that different lines of one function allocate themselves, all live at the
/// peak.
fn copies(cx: Evidence<'_>, live: &[Live<'_>]) -> Vec<Finding> {
    // Function (name and file) and size.
    let mut copies: Vec<((u32, u32, u64), &Live<'_>)> = Vec::new();
    for l in live.iter().filter(|l| is_result(cx, l) || is_input(cx, l)) {
        if !is_large(cx, l.block.bytes.0, MIN_COPY_PERCENT) {
            continue;
        }
        let Some(inner) = innermost_python(cx, l.block.stack) else { continue };
        // Within a module's forward, equal sizes are the rule.
        if calling_frame(cx, l.block.stack) == Some(inner) {
            let frame = cx.snapshot.frame(inner);
            copies.push(((frame.name.0, frame.file.0, l.block.bytes.0), l));
        }
    }
    let mut found: Vec<Finding> = Vec::new();
    for ((_, _, each), mut group) in group_by_key(copies) {
        group.sort_by_key(|l| l.block.enters);
        let mut lines: Vec<FrameId> =
            group.iter().filter_map(|l| program_frame(cx, l.block.stack)).collect();
        lines.sort_by_key(|f| f.0);
        lines.dedup();
        if lines.len() < 2 {
            continue;
        }
        let bytes: u64 = group.iter().map(|l| l.block.bytes.0).sum();
        let facts = HeldTooLong::Copies { each: Bytes(each), lines: lines.len() };
        let events = group.iter().filter_map(|l| l.block.alloc_event()).map(|e| e.0).collect();
        let peak_event = cx.peak_slot().saturating_sub(1);
        found.push(Finding {
            // Equal sizes do not prove equal contents.
            severity: Severity::Low,
            step: cx.step_at(peak_event),
            phase: cx.phase_at(peak_event),
            basis: Basis::Estimate,
            blocks: group.len() as u32,
            parts: parts(group.iter().map(|l| (l.block.stack, l.block.bytes.0))),
            ..cx.finding(cx.hash(group[0].block.stack), bytes, 0, events, Facts::HeldTooLong(facts))
        });
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.bytes));
    found
}
