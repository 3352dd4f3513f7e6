//! The words of findings about the allocator.

use super::{Words, counted, main_site};
use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use crate::text::NO_STACK;
use vramscope_analysis::{Facts, Finding, PendingFrees};
use vramscope_snapshot::StackId;
use vramscope_units::grouped;

pub(super) fn pending(entry: &SnapshotEntry, finding: &Finding, waits: &PendingFrees) -> Words {
    let site = main_site(entry, finding);
    let place = if site == NO_STACK { format!("with {site}") } else { format!("at {site}") };
    let time = waits.longest_time.map(|time| format!(", the longest in time {time}"));
    Words {
        title: format!("{} {place} wait for another stream", counted(waits.frees, "free")),
        text: format!(
            "{} ({} in total) {place} on stream {:#x} were delayed by another stream, up to {} at \
             once. The longest wait is {} from {}{}. record_stream delays the reuse of memory \
             until the other stream has caught up.",
            counted(waits.frees, "free"),
            waits.total,
            entry.snapshot.stream(waits.stream),
            waits.most_at_once,
            counted(waits.longest_events as usize, "event"),
            waits.longest_from,
            time.unwrap_or_default(),
        ),
        action: "Wait for that stream before the free.".to_owned(),
    }
}

pub(super) fn churn(entry: &SnapshotEntry, finding: &Finding) -> Words {
    let Facts::Churn { by_allocator, returned, segments, bursts, reserved_again } = &finding.facts
    else {
        return Words::default();
    };
    let (subject, cause) = if *by_allocator {
        ("The allocator", "to make room for other sizes")
    } else {
        ("The program", "with empty_cache or by ending a pool")
    };
    let _ = entry;
    Words {
        title: format!("{subject} released {returned} and reserved {reserved_again} again"),
        text: format!(
            "{subject} released {} ({returned}) in {} {cause}, and reserved {reserved_again} \
             again. Each cycle synchronizes with the GPU.",
            counted(*segments, "segment"),
            counted(*bursts, "burst"),
        ),
        action: "Call empty_cache less often, or keep the pool.".to_owned(),
    }
}

pub(super) fn oom(entry: &SnapshotEntry, finding: &Finding) -> Words {
    let Facts::Oom { event, requested, device_free, reserved, in_use, holders, other_sites } =
        &finding.facts
    else {
        return Words::default();
    };
    let stack = finding.stack();
    let place = stack.map(|stack| format!(" in {}", site(entry, stack))).unwrap_or_default();
    let mut sentences = vec![format!("Allocating {requested} failed at {event}{place}.")];
    sentences.extend(device_free.map(|free| format!("GPU: {free} free.")));
    sentences.push(format!("PyTorch: {reserved} reserved, {in_use} of it in use."));
    let named: Vec<String> = holders
        .iter()
        .map(|&(stack, bytes)| format!("{} ({bytes})", holder(entry, stack)))
        .collect();
    if !named.is_empty() {
        let others = match other_sites {
            0 => String::new(),
            count => format!(" (+{} more)", grouped(*count as u64)),
        };
        sentences.push(format!("Largest holders: {}{others}.", named.join(", ")));
    }
    Words {
        title: format!("Out of memory: {requested}{place}"),
        text: sentences.join(" "),
        action: String::new(),
    }
}

fn holder(entry: &SnapshotEntry, stack: StackId) -> String {
    match stack {
        StackId::EMPTY => format!("blocks with {NO_STACK}"),
        stack => site(entry, stack),
    }
}
