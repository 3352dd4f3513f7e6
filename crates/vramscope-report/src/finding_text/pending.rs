//! The words of findings about delayed frees.

use super::allocator::{at_site, list, stream};
use super::{Words, counted, main_site};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use vramscope_inference::{Finding, PendingFrees};
use vramscope_units::Bytes;

pub(super) fn pending(entry: &SnapshotEntry, finding: &Finding, waits: &PendingFrees) -> Words {
    let cost = Bytes(finding.bytes);
    let site = main_site(entry, finding);
    let at = at_site(&site);
    let streams: Vec<String> = waits.streams.iter().map(|&id| stream(entry, id)).collect();
    let time = waits.longest_time.map(|time| format!(", the longest in time {time}"));
    Words {
        title: Sentence::new("Frees that wait for another stream cost ")
            .event(cost, finding.events.first().copied())
            .text(" at the peak"),
        text: format!(
            "At the peak of {}, {} ({}) of {} were already freed{at}, but waited until another \
             stream had caught up (record_stream). With immediate frees the peak is {cost} lower: \
             {}. In all, {} waited. The longest wait is {} from {}{}.",
            waits.peak,
            counted(finding.blocks as usize, "block"),
            waits.waiting,
            list(&streams),
            waits.peak_without,
            counted(waits.frees, "free"),
            counted(waits.longest_events as usize, "event"),
            waits.longest_from,
            time.unwrap_or_default(),
        ),
        action: format!(
            "Wait for the other stream before the free{at} (wait_stream), instead of record_stream."
        ),
    }
}
