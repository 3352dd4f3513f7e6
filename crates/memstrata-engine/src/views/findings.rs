//! What is wrong, for people.

use crate::detail;
use crate::protocol::views::FindingRow;
use crate::report::Target;
use crate::report::anomalies::{AnomalyRow, of_device};
use crate::text;
use memstrata_analysis::Block;
use memstrata_analysis::pace::{Pace, strides};
use memstrata_snapshot::StackId;
use memstrata_units::{Bytes, EventIndex};
use std::cmp::Reverse;

/// What is found on a device, the most severe first.
pub(crate) async fn findings(at: Target<'_>, pace: &mut Pace) -> Vec<FindingRow> {
    rows(at, of_device(at), pace).await
}

/// Findings of a device for people, the most severe first.
pub(super) async fn rows(at: Target<'_>, found: Vec<AnomalyRow>, pace: &mut Pace) -> Vec<FindingRow> {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let row = |finding: AnomalyRow, reference: Option<String>| {
        let (first, last) = (finding.events.iter().min().copied(), finding.events.iter().max().copied());
        let note = match finding.kind {
            "pending_free" => Some("This is the stack of the frees."),
            _ => None,
        };
        FindingRow {
            spans: match (first, last) {
                // From the state after the first event to past that after the last.
                (Some(first), Some(last)) => detail::spans(trace, first + 1, (last + 2).min(trace.slots())),
                _ => Vec::new(),
            },
            reference,
            stack: detail::stack(snapshot, finding.stack.unwrap_or(StackId::EMPTY), note),
            ..plain(finding, trace.reserved_band.peak)
        }
    };
    let mut rows: Vec<FindingRow> = Vec::with_capacity(found.len());
    for finding in found {
        let reference = reference(at, &finding, pace).await;
        rows.push(row(finding, reference));
    }
    sort(&mut rows);
    rows
}

/// A finding without what only its file's tables tell.
pub(super) fn plain(finding: AnomalyRow, reserved_peak: i64) -> FindingRow {
    FindingRow {
        severity: severity(finding.kind, finding.bytes, reserved_peak).to_owned(),
        id: finding.id,
        kind: finding.kind.to_owned(),
        label: label(finding.kind).to_owned(),
        path: finding.path,
        device: finding.device,
        bytes: text::bytes(Bytes(finding.bytes)),
        text: finding.text,
        event: finding.events.iter().min().copied(),
        at: finding.events.iter().min().map(|&event| EventIndex(event).to_string()).unwrap_or_default(),
        spans: Vec::new(),
        reference: None,
        stack: crate::protocol::StackDetail { frames: Vec::new(), note: None },
    }
}

const SEVERITIES: [&str; 3] = ["high", "medium", "low"];

/// The most severe first, then the one about most bytes.
pub(super) fn sort(rows: &mut [FindingRow]) {
    let key = |row: &FindingRow| {
        let bytes: u64 = row.bytes.raw.parse().unwrap_or(0);
        (SEVERITIES.iter().position(|s| *s == row.severity), Reverse(bytes))
    };
    rows.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| (&a.path, &a.id).cmp(&(&b.path, &b.id))));
}

/// What ends a run is high; what is about hardly any memory is one step lower than its kind.
fn severity(kind: &str, bytes: u64, reserved_peak: i64) -> &'static str {
    let step = match kind {
        "oom" => return SEVERITIES[0],
        "growth" => 0,
        "fragmentation" | "settings" => 2,
        _ => 1,
    };
    let is_small = u128::from(bytes) * 100 < reserved_peak.max(0) as u128;
    SEVERITIES[(step + usize::from(is_small)).min(2)]
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

/// A block that shows it: of those of its stack that are live at the end the largest, and for frees that wait the first
/// that does where none is.
async fn reference(at: Target<'_>, finding: &AnomalyRow, pace: &mut Pace) -> Option<String> {
    if !matches!(finding.kind, "growth" | "never_freed" | "pending_free") {
        return None;
    }
    let trace = at.trace();
    let first = finding.events.first().copied().filter(|_| finding.kind == "pending_free").map(EventIndex);
    let (mut largest, mut waits): (Option<&Block>, Option<&Block>) = (None, None);
    for part in strides(trace.blocks.len()) {
        pace.spend(part.len() as u64).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_memory_is_less_severe() {
        assert_eq!(severity("growth", 10, 1000), "high");
        assert_eq!(severity("growth", 9, 1000), "medium");
        assert_eq!(severity("retry", 9, 1000), "low");
        assert_eq!(severity("settings", 0, 1000), "low");
        assert_eq!(severity("oom", 0, 1000), "high");
        assert_eq!(severity("outlier", 5, -3), "medium");
    }
}
