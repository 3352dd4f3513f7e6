//! The text of each kind of finding.

use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use vramscope_analysis::{
    Facts, FindingKind, FixedSegments, Growth, OutlierItem, PendingFrees, SettingCost,
};
use vramscope_snapshot::StackId;
use vramscope_units::{Bytes, grouped};

/// The name of a kind on the page.
pub fn label(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Growth => "Growth",
        FindingKind::NeverFreed => "Never freed",
        FindingKind::PendingFree => "Pending free",
        FindingKind::Oom => "Out of memory",
        FindingKind::Fragmentation => "Fragmentation",
        FindingKind::Retry => "Retries",
        FindingKind::Settings => "Settings",
        FindingKind::Outlier => "Outlier",
    }
}

/// The text of a finding on one device. `stack` is the finding's call stack.
pub fn text(entry: &SnapshotEntry, facts: &Facts, stack: Option<StackId>) -> String {
    let at = || site(entry, stack.unwrap_or(StackId::EMPTY));
    match facts {
        Facts::Growth(growth) => growth_text(growth, &at()),
        Facts::NeverFreed { first, blocks, freed, longest_life } => {
            let bytes = |blocks| counted(blocks, "block");
            format!(
                "{} made {} at {first} that stayed live, while {} of the same call stack were \
                 freed within {}",
                at(),
                bytes(*blocks),
                counted(*freed as usize, "other block"),
                counted(*longest_life as usize, "event"),
            )
        }
        Facts::PendingFree(waits) => pending_text(entry, waits, &at()),
        Facts::Oom { .. } => oom_text(entry, facts, stack),
        Facts::Fragmentation { event, reserved_peak, unused, largest_free, requested_peak } => {
            let bound = if largest_free.is_some() { "" } else { "up to " };
            let largest = largest_free
                .map(|largest| format!("; the largest free block was {largest}"))
                .unwrap_or_default();
            format!(
                "At the peak of reserved memory ({reserved_peak}, after {event}), {bound}{unused} \
                 of it ({} %) was not in use{largest}; the program never had more than \
                 {requested_peak} in use",
                percent(*unused, *reserved_peak),
            )
        }
        Facts::Retry { by_allocator, returned, segments, bursts, reserved_again } => {
            let (subject, cause) = if *by_allocator {
                ("The allocator", "to make room for other sizes")
            } else {
                ("The program", "with empty_cache or by ending a pool")
            };
            format!(
                "{subject} returned {returned} to the driver in {} of {} {cause}, and reserved \
                 {reserved_again} of it again; each cycle synchronizes with the device",
                counted(*bursts, "burst"),
                counted(*segments, "segment"),
            )
        }
        Facts::Settings(cost) => setting_text(cost),
        Facts::Outlier { .. } => outlier_text(facts),
    }
}

fn growth_text(growth: &Growth, site: &str) -> String {
    match growth {
        Growth::Kept { per_step, every, steps, at_end } => format!(
            "{site} keeps {} more {} ({} steps): {at_end} at the end, and nothing of it is freed",
            between(*per_step),
            often(*every),
            grouped(*steps as u64),
        ),
        Growth::Replaced { per_step, every, steps, in_all } => format!(
            "{site} holds {} more {} ({} steps), in blocks that are replaced by larger ones: \
             {in_all} more in all",
            between(*per_step),
            often(*every),
            grouped(*steps as u64),
        ),
    }
}

fn pending_text(entry: &SnapshotEntry, waits: &PendingFrees, site: &str) -> String {
    let time = waits.longest_time.map(|time| format!(", the longest in time {time}"));
    format!(
        "{} of {} in all at {site} (stream {:#x}) waited for another stream, up to {} at once; the \
         longest wait is {} from {}{}: record_stream delays the reuse of memory until that stream \
         has caught up",
        counted(waits.frees, "free"),
        waits.total,
        entry.snapshot.stream(waits.stream),
        waits.most_at_once,
        counted(waits.longest_events as usize, "event"),
        waits.longest_from,
        time.unwrap_or_default(),
    )
}

fn oom_text(entry: &SnapshotEntry, facts: &Facts, stack: Option<StackId>) -> String {
    let Facts::Oom {
        event,
        requested,
        device_free,
        reserved,
        in_use,
        largest_free,
        holders,
        other_sites,
    } = facts
    else {
        return String::new();
    };
    let mut text = format!("{requested} failed at {event}");
    if let Some(stack) = stack {
        text += &format!(" in {}", site(entry, stack));
    }
    if let Some(free) = device_free {
        text += &format!(": the device had {free} free");
    }
    text += &format!("; {reserved} were reserved, {in_use} of them in use");
    if let Some(largest) = largest_free {
        text += &format!(", and the largest free block was {largest}");
    }
    let named: Vec<String> = holders
        .iter()
        .map(|&(stack, bytes)| format!("{} ({bytes})", holder(entry, stack)))
        .collect();
    if !named.is_empty() {
        text += &format!(". Most was held by {}", named.join(", "));
    }
    if *other_sites > 0 {
        text += &format!(" and {} other sites", grouped(*other_sites as u64));
    }
    text
}

fn holder(entry: &SnapshotEntry, stack: StackId) -> String {
    match stack {
        StackId::EMPTY => "blocks whose own call stack was not recorded".to_owned(),
        stack => site(entry, stack),
    }
}

fn setting_text(cost: &SettingCost) -> String {
    let were = |segments: usize| {
        format!("{} {}", counted(segments, "segment"), if segments == 1 { "was" } else { "were" })
    };
    let advice = "expandable_segments:True lets one segment grow instead";
    match cost {
        SettingCost::GarbageCollectionThreshold { threshold, segments, reserved_again } => format!(
            "garbage_collection_threshold is {threshold}: {} returned to the driver, and \
             {reserved_again} reserved again",
            were(*segments),
        ),
        SettingCost::ExpandableSegments(FixedSegments::FailedBesideFree { unused }) => format!(
            "expandable_segments is off, and an allocation failed while up to {unused} of reserved \
             memory were not in use: {advice}",
        ),
        SettingCost::ExpandableSegments(FixedSegments::Returned { segments, reserved_again }) => {
            format!(
                "expandable_segments is off, and {} returned to make room for other sizes, \
                 {reserved_again} reserved again: {advice}",
                were(*segments),
            )
        }
        SettingCost::MaxSplitSize { limit, segments, allocations, unused, reserved_peak } => {
            format!(
                "max_split_size is {limit}: {} are larger and cannot be split, and {} were made in \
                 them in all; up to {unused} of {reserved_peak} reserved were not in use",
                counted(*segments, "segment"),
                counted(*allocations as usize, "allocation"),
            )
        }
        SettingCost::RoundupPower2Divisions { added, requested } => format!(
            "roundup_power2_divisions adds {added} to the {requested} in use at their peak ({} %)",
            percent(*added, *requested),
        ),
    }
}

/// The text of an outlier, which needs no tables of its file.
pub fn outlier_text(facts: &Facts) -> String {
    let Facts::Outlier { rank, item, bytes, usual, ranks } = facts else { return String::new() };
    let what = match item {
        OutlierItem::Stack { site, .. } => format!("at {site}"),
        OutlierItem::Category(category) => format!("of category {}", category.name()),
        OutlierItem::Band(name) => format!("of {name} at its peak"),
    };
    format!("{rank} holds {bytes} {what}, where {usual} is usual among {ranks} similar ranks")
}

fn between((least, most): (Bytes, Bytes)) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

fn often(every: usize) -> String {
    if every == 1 { "every step".to_owned() } else { format!("every {every} steps") }
}

fn percent(part: Bytes, whole: Bytes) -> u64 {
    part.0.saturating_mul(100) / whole.0.max(1)
}

/// `1 block`, `12 blocks`.
fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}
