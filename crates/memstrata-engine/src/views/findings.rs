//! What is wrong, for people.

use crate::detail;
use crate::protocol::views::FindingRow;
use crate::report::Target;
use crate::report::anomalies::{AnomalyRow, of_device};
use crate::text;
use memstrata_snapshot::StackId;
use memstrata_units::{Bytes, EventIndex};
use std::cmp::Reverse;

/// What is found on a device, the most severe first.
pub(crate) fn findings(at: Target<'_>) -> Vec<FindingRow> {
    rows(at, of_device(at))
}

/// Findings of a device for people, the most severe first.
pub(super) fn rows(at: Target<'_>, found: Vec<AnomalyRow>) -> Vec<FindingRow> {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let row = |finding: AnomalyRow| {
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
            reference: reference(at, &finding),
            stack: detail::stack(snapshot, finding.stack.unwrap_or(StackId::EMPTY), note),
            ..plain(finding, trace.reserved_band.peak)
        }
    };
    let mut rows: Vec<FindingRow> = found.into_iter().map(row).collect();
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
fn reference(at: Target<'_>, finding: &AnomalyRow) -> Option<String> {
    if !matches!(finding.kind, "growth" | "never_freed" | "pending_free") {
        return None;
    }
    let trace = at.trace();
    let stays = trace.blocks.iter().filter(|b| b.leaves == trace.slots() && Some(b.stack) == finding.stack);
    // Of equals the oldest.
    let largest = stays.rev().max_by_key(|b| b.bytes);
    let waits = || {
        let first = finding.events.first().copied().filter(|_| finding.kind == "pending_free").map(EventIndex)?;
        trace.blocks.iter().find(|b| b.free_requested() == Some(first))
    };
    largest.or_else(waits).map(|block| detail::reference(trace, block))
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
