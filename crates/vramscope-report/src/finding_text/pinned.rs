//! The words of findings about pinned host memory.

use super::allocator::{at_site, setting};
use super::{Words, counted, main_site, percent, subject};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use vramscope_inference::{Finding, Pinned, PinnedCause};
use vramscope_units::{Bytes, grouped};

/// Returns what PyTorch caches of pinned memory.
const EMPTY_CACHE: &str = "torch._C._host_emptyCache()";

pub(super) fn pinned(entry: &SnapshotEntry, finding: &Finding, facts: &Pinned) -> Words {
    let bytes = Bytes(finding.bytes);
    let first = finding.events.first().copied();
    let reserved = facts.reserved;
    let share = percent(bytes, reserved);
    let blocks = counted(finding.blocks as usize, "block");
    let site = main_site(entry, finding);
    let (title, rest, text, action) = match facts.cause {
        PinnedCause::Rounding { requested, size, all_requested } => (
            "Rounding to powers of two pins ",
            " more than was requested",
            format!(
                "{all_requested} of the pinned host memory that is live at the end were requested, \
                 in {blocks} that take {bytes} more ({share} % of {reserved}). PyTorch rounds a \
                 request up to a power of two. The block that loses most was requested with \
                 {requested} and takes {size}{}.",
                at_site(&site)
            ),
            format!(
                "If these sizes repeat, {}. Else request sizes just below a power of two.",
                threshold(entry)
            ),
        ),
        PinnedCause::Sizes { sizes, smallest, largest, pinned, live } => (
            "Changing sizes leave ",
            " of pinned host memory behind",
            format!(
                "{} pinned {} sizes, from {smallest} to {largest}: {pinned} in all, though its \
                 blocks held at most {live} at once. {blocks} of earlier sizes ({bytes}, {share} % \
                 of {reserved}) were free when it pinned more, and are still pinned at the end. A \
                 freed block serves only requests that fit it and round to its power of two.",
                subject(&site),
                grouped(sizes as u64),
            ),
            format!(
                "Pin one buffer of the largest size{} and use parts of it. Or return freed blocks \
                 with {EMPTY_CACHE} when sizes change.",
                at_site(&site)
            ),
        ),
        PinnedCause::Unused { events } => (
            "Freed blocks keep ",
            " of host memory pinned",
            format!(
                "{blocks} ({bytes}, {share} % of {reserved}) are free and still pinned at the end. \
                 None was used in the last {} of pinned memory. PyTorch keeps freed blocks for \
                 requests of their size.",
                counted(events as usize, "event"),
            ),
            format!(
                "Call {EMPTY_CACHE} when the program no longer needs them. \
                 PYTORCH_ALLOC_CONF=pinned_max_cached_size_mb:N (PyTorch 2.13 or later) returns \
                 larger blocks at once."
            ),
        ),
    };
    Words { title: Sentence::new(title).event(bytes, first).text(rest), text, action }
}

/// The advice to round less. A file without the setting is from before PyTorch 2.13.
fn threshold(entry: &SnapshotEntry) -> String {
    let release = match setting(entry, "max_round_threshold") {
        Some(_) => "",
        None => " of PyTorch 2.13 or later",
    };
    format!("set PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:N{release} to a smaller size")
}

/// The line that follows the title.
pub(super) fn why(facts: &Pinned) -> String {
    match facts.cause {
        PinnedCause::Rounding { requested, size, .. } => {
            format!("one request of {requested} takes {size}")
        }
        PinnedCause::Sizes { sizes, live, .. } => {
            format!("one line pinned {sizes} sizes, and holds at most {live} at once")
        }
        PinnedCause::Unused { events } => {
            format!("nothing used them in the last {}", counted(events as usize, "event"))
        }
    }
}
