//! The words of findings about memory that is returned and reserved again.

use super::allocator::{EXPANDABLE, at_site, can_expand, setting};
use super::{Words, counted, main_site, times};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use vramscope_inference::{Finding, SegmentChurn};

pub(super) fn churn(entry: &SnapshotEntry, finding: &Finding, churn: &SegmentChurn) -> Words {
    let at = at_site(&main_site(entry, finding));
    let calls_empty_cache = finding.stack().is_some_and(|stack| {
        let mut frames = entry.snapshot.stack(stack);
        frames.any(|frame| entry.snapshot.text(frame.name).contains("empty_cache"))
    });
    let (subject, verb, reason) = match (churn.by_allocator, calls_empty_cache) {
        (true, _) if threshold(entry).is_some() => (
            "The allocator",
            "made room",
            " when the driver refused more memory, or when use exceeded \
             garbage_collection_threshold",
        ),
        (true, _) => ("The allocator", "made room", " when the driver refused more memory"),
        (false, true) => ("The program", "called torch.cuda.empty_cache()", ""),
        (false, false) => {
            ("The program", "returned memory", " with empty_cache or by ending a pool")
        }
    };
    let times = times(churn.bursts);
    Words {
        title: Sentence::default()
            .event(churn.reserved_again, finding.events.first().copied())
            .text(" returned and reserved again"),
        text: format!(
            "{subject} {verb} {times}{at}{reason}. That returned {} ({}), and {} were reserved \
             again. Each return waits for the device: {}.",
            churn.returned,
            counted(churn.segments, "segment"),
            churn.reserved_again,
            counted(churn.bursts, "synchronization"),
        ),
        action: action(entry, churn, &at),
    }
}

/// `garbage_collection_threshold`, if it is set.
fn threshold(entry: &SnapshotEntry) -> Option<&str> {
    let value = setting(entry, "garbage_collection_threshold")?;
    value.parse().is_ok_and(|value: f64| value > 0.0).then_some(value)
}

fn action(entry: &SnapshotEntry, churn: &SegmentChurn, at: &str) -> String {
    if !churn.by_allocator {
        return format!("Remove the return{at} from the loop, or do it once after a phase.");
    }
    let mut steps = Vec::new();
    if let Some(value) = threshold(entry) {
        steps.push(format!("Raise or remove garbage_collection_threshold:{value}."));
    }
    let limit = setting(entry, "max_split_size").and_then(|value| value.parse::<i64>().ok());
    if limit.is_some_and(|limit| (0..1 << 62).contains(&limit)) {
        steps.push("Remove max_split_size_mb.".to_owned());
    }
    if can_expand(entry) && steps.is_empty() {
        steps.push(format!("Try {EXPANDABLE}."));
    }
    if steps.is_empty() {
        steps.push("Lower the peak, with a smaller batch for example.".to_owned());
    }
    steps.join(" ")
}
