//! Findings as rows of the page.

use super::block_detail as detail;
use crate::messages::FrameRow;
use crate::messages::views::{FindingRow, FindingView};
use std::cmp::Reverse;
use vramscope_inference::{About, FindingKind, Phase};

use vramscope_report::diagnostic::LeverRow;
use vramscope_report::findings::{FindingEntry, FindingRecord, of_device, step_and_phase};
use vramscope_report::phases::step_words;
use vramscope_report::{FrameRecord, Target, text};
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, strides};

/// The findings of a device, by severity, then bytes.
pub(super) async fn findings(at: Target<'_>, budget: &mut Budget) -> Vec<FindingRow> {
    rows(at, of_device(at), budget).await
}

/// Rows of these findings, with an example block for each.
pub(super) async fn rows(
    at: Target<'_>,
    findings: Vec<FindingEntry>,
    budget: &mut Budget,
) -> Vec<FindingRow> {
    let trace = at.trace();
    let mut rows: Vec<FindingRow> = Vec::with_capacity(findings.len());
    for finding in findings {
        let reference = reference(at, &finding, budget).await;
        let mut row = without_tables(finding);
        let FindingRow { record, view } = &mut row;
        view.reference = reference;
        view.place = place(at, record.step, record.phase.map(Phase::name));
        if let Some((from, to)) = slots(at, record) {
            view.spans = detail::spans(trace, from, to);
        }
        for frame in &mut view.frames {
            frame.source = detail::source(at.entry, &frame.file, frame.line);
        }
        rows.push(row);
    }
    rows
}

/// A finding with fewer events than this part of the window is shown with its surroundings.
const MIN_SHOWN_DIVISOR: u32 = 20;

/// The slots that show a finding: from the state after its first event to the state after its last.
/// A failed allocation is shown with its step, and few events with what is around them.
fn slots(at: Target<'_>, finding: &FindingRecord) -> Option<(u32, u32)> {
    let (first, last) = (finding.events.first()?.0, finding.events.last()?.0);
    let end = at.trace().slots();
    let (mut from, mut to) = (first + 1, (last + 2).min(end));
    let least = end / MIN_SHOWN_DIVISOR;
    if finding.kind == FindingKind::Oom {
        let steps = at.entry.steps(at.index).filter(|_| finding.step.is_some());
        let begin = steps
            .and_then(|steps| steps.begins.iter().rev().copied().find(|&begin| begin <= first));
        from = begin.unwrap_or(from.saturating_sub(2 * least)).min(from);
        // Room behind the failure, so that it is not at the edge.
        to = to.saturating_add((to - from) / 20 + 1).min(end);
    } else if to - from < least {
        let room = (least - (to - from)) / 2;
        (from, to) = (from.saturating_sub(room), to.saturating_add(room).min(end));
    }
    Some((from, to))
}

/// The parts of a row that need no tables of the file.
pub(super) fn without_tables(finding: FindingEntry) -> FindingRow {
    let FindingEntry { mut record, title: headline, frames, .. } = finding;
    // The page draws none of it.
    record.proof = None;
    let view = FindingView {
        label: record.kind.label().to_owned(),
        headline,
        terms: record.filters(),
        fixes: fixes(&record),
        frames: frame_rows(&frames),
        ..FindingView::default()
    };
    FindingRow { record, view }
}

/// The changes that help, in words.
fn fixes(record: &FindingRecord) -> Vec<String> {
    let helps = record.fixes.iter().filter(|lever| !lever.is_short()).enumerate();
    let row = |(at, lever)| {
        let row = LeverRow::new(lever, format!("fix {}", at + 1), record.step.is_some());
        let parts = [row.text, row.needs, row.verdict, row.cost, row.basis];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}: {}", row.label, parts.join(", "))
    };
    helps.map(row).collect()
}

/// The maximum number of frames of a finding. Its blocks have the whole call stack.
const MAX_FRAMES: usize = 8;

/// The program's innermost frames of the call stack.
fn frame_rows(frames: &[FrameRecord<'_>]) -> Vec<FrameRow> {
    let own = frames.iter().filter(|frame| !frame.is_framework());
    own.take(MAX_FRAMES).map(|frame| FrameRow::new(frame, "")).collect()
}

/// `step 3, backward`; empty if neither is known.
pub(super) fn place(at: Target<'_>, step: Option<u32>, phase: Option<&str>) -> String {
    step_and_phase(step_words(at)[0], step, phase)
}

/// Sorts findings of several ranks by severity, then bytes.
pub(super) fn sort(rows: &mut [FindingRow]) {
    rows.sort_by(|FindingRow { record: a, .. }, FindingRow { record: b, .. }| {
        let key = |record: &FindingRecord| (record.severity, Reverse(record.bytes));
        key(a).cmp(&key(b)).then_with(|| (&a.path, &a.id).cmp(&(&b.path, &b.id)))
    });
}

/// The reference of an example block: the largest block of the finding's call stack that is live at
/// the end. For pending frees without such a block, the block of the first free.
async fn reference(
    at: Target<'_>,
    FindingEntry { record, stack, .. }: &FindingEntry,
    budget: &mut Budget,
) -> Option<String> {
    if record.kind.about() != About::Blocks && record.kind != FindingKind::PendingFree {
        return None;
    }
    let trace = at.trace();
    let first_free =
        record.events.first().copied().filter(|_| record.kind == FindingKind::PendingFree);
    let (mut largest, mut pending): (Option<&Block>, Option<&Block>) = (None, None);
    for part in strides(trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        for block in &trace.blocks[part] {
            let is_live_at_end = block.leaves == trace.slots() && Some(block.stack) == *stack;
            // Of equals the oldest.
            if is_live_at_end && largest.is_none_or(|largest| largest.bytes < block.bytes) {
                largest = Some(block);
            }
            if pending.is_none() && first_free.is_some() && block.free_requested() == first_free {
                pending = Some(block);
            }
        }
    }
    largest.or(pending).map(|block| text::block_reference(trace, block))
}
