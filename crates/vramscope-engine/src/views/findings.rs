//! What is wrong, for people.

use crate::detail;
use crate::protocol::views::FindingRow;
use crate::report::Target;
use crate::report::anomalies::{AnomalyRow, of_device};
use crate::text;
use std::cmp::Reverse;
use vramscope_analysis::slicing::{Budget, strides};
use vramscope_analysis::{Block, Severity};
use vramscope_snapshot::StackId;
use vramscope_units::{Bytes, EventIndex};

/// What is found on a device, the most severe first.
pub(crate) async fn findings(at: Target<'_>, budget: &mut Budget) -> Vec<FindingRow> {
    rows(at, of_device(at), budget).await
}

/// Findings of a device for people, the most severe first.
pub(super) async fn rows(
    at: Target<'_>,
    found: Vec<AnomalyRow>,
    budget: &mut Budget,
) -> Vec<FindingRow> {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let row = |finding: AnomalyRow, reference: Option<String>| {
        let (first, last) =
            (finding.events.iter().min().copied(), finding.events.iter().max().copied());
        let note = match finding.kind {
            "pending_free" => Some("This is the stack of the frees."),
            _ => None,
        };
        FindingRow {
            spans: match (first, last) {
                // From the state after the first event to past that after the last.
                (Some(first), Some(last)) => {
                    detail::spans(trace, first + 1, (last + 2).min(trace.slots()))
                }
                _ => Vec::new(),
            },
            reference,
            stack: detail::stack(snapshot, finding.stack.unwrap_or(StackId::EMPTY), note),
            ..plain(finding)
        }
    };
    let mut rows: Vec<FindingRow> = Vec::with_capacity(found.len());
    for finding in found {
        let reference = reference(at, &finding, budget).await;
        rows.push(row(finding, reference));
    }
    rows
}

/// A finding without what only its file's tables tell.
pub(super) fn plain(finding: AnomalyRow) -> FindingRow {
    FindingRow {
        severity: finding.severity.name().to_owned(),
        id: finding.id,
        kind: finding.kind.to_owned(),
        label: label(finding.kind).to_owned(),
        path: finding.path,
        device: finding.device,
        bytes: text::bytes(Bytes(finding.bytes)),
        text: finding.text,
        event: finding.events.iter().min().copied(),
        at: finding
            .events
            .iter()
            .min()
            .map(|&event| EventIndex(event).to_string())
            .unwrap_or_default(),
        spans: Vec::new(),
        reference: None,
        stack: crate::protocol::StackDetail { frames: Vec::new(), note: None },
    }
}

/// Of several ranks: the most severe first, then the one about most bytes.
pub(super) fn sort(rows: &mut [FindingRow]) {
    let key = |row: &FindingRow| {
        let bytes: u64 = row.bytes.raw.parse().unwrap_or(0);
        (Severity::ALL.iter().position(|s| s.name() == row.severity), Reverse(bytes))
    };
    rows.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| (&a.path, &a.id).cmp(&(&b.path, &b.id))));
}

/// A kind in words.
pub(super) fn label(kind: &str) -> &'static str {
    match kind {
        "growth" => "Growth",
        "never_freed" => "Never freed",
        "pending_free" => "Pending free",
        "oom" => "Out of memory",
        "fragmentation" => "Fragmentation",
        "retry" => "Retries",
        "settings" => "Settings",
        _ => "Outlier",
    }
}

/// A block that shows it: of those of its stack that are live at the end the largest, and for frees
/// that wait the first that does where none is.
async fn reference(at: Target<'_>, finding: &AnomalyRow, budget: &mut Budget) -> Option<String> {
    if !matches!(finding.kind, "growth" | "never_freed" | "pending_free") {
        return None;
    }
    let trace = at.trace();
    let first =
        finding.events.first().copied().filter(|_| finding.kind == "pending_free").map(EventIndex);
    let (mut largest, mut waits): (Option<&Block>, Option<&Block>) = (None, None);
    for part in strides(trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        for block in &trace.blocks[part] {
            let stays = block.leaves == trace.slots() && Some(block.stack) == finding.stack;
            // Of equals the oldest.
            if stays && largest.is_none_or(|largest| largest.bytes < block.bytes) {
                largest = Some(block);
            }
            if waits.is_none() && first.is_some() && block.free_requested() == first {
                waits = Some(block);
            }
        }
    }
    largest.or(waits).map(|block| detail::reference(trace, block))
}
