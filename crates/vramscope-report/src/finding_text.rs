//! The text of each kind of finding: the subject, its numbers, the cause and a remedy.

use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use crate::text::NO_STACK;
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
    let site = || site(entry, stack.unwrap_or(StackId::EMPTY));
    match facts {
        Facts::Growth(growth) => growth_text(growth, &site()),
        Facts::NeverFreed { first, blocks, freed, longest_life } => format!(
            "{} allocated {} that stayed live, the first at {first}. {} of the same call stack \
             were freed within {}. Check what keeps a reference to this memory.",
            subject(&site()),
            counted(*blocks, "block"),
            counted(*freed as usize, "other block"),
            counted(*longest_life as usize, "event"),
        ),
        Facts::PendingFree(waits) => pending_text(entry, waits, &site()),
        Facts::Oom { .. } => oom_text(entry, facts, stack),
        Facts::Fragmentation { event, reserved_peak, unused, largest_free, requested_peak } => {
            let bound = if largest_free.is_some() { "" } else { "up to " };
            let largest = largest_free
                .map(|largest| format!(" Largest free block: {largest}."))
                .unwrap_or_default();
            format!(
                "At the peak of reserved memory ({reserved_peak}, after {event}), \
                 {bound}{unused} ({} %) was cached but unused.{largest} Peak of requested memory: \
                 {requested_peak}.{}",
                percent(*unused, *reserved_peak),
                expandable_segments_advice(entry),
            )
        }
        Facts::Retry { by_allocator, returned, segments, bursts, reserved_again } => {
            let (subject, cause) = if *by_allocator {
                ("The allocator", "to make room for other sizes")
            } else {
                ("The program", "with empty_cache or by ending a pool")
            };
            let remedy = if *by_allocator {
                expandable_segments_advice(entry)
            } else {
                " Call empty_cache less often, or keep the pool."
            };
            format!(
                "{subject} released {} ({returned}) in {} {cause}, and reserved {reserved_again} \
                 again. Each cycle synchronizes with the GPU.{remedy}",
                counted(*segments, "segment"),
                counted(*bursts, "burst"),
            )
        }
        Facts::Settings(cost) => setting_text(cost),
        Facts::Outlier { .. } => outlier_text(facts),
    }
}

fn growth_text(growth: &Growth, site: &str) -> String {
    let subject = subject(site);
    match growth {
        Growth::Kept { per_step, every, steps, at_end } => format!(
            "{subject} grows by {} {} ({} times). None of it is freed: {at_end} at the end. Check \
             what keeps references to these tensors, such as a list of losses or outputs.",
            range(*per_step),
            interval(*every),
            grouped(*steps as u64),
        ),
        Growth::Replaced { per_step, every, steps, in_all } => format!(
            "{subject} grows by {} {} ({} times), {in_all} in total. Its blocks are replaced by \
             larger ones. Check for a tensor that is extended in every step.",
            range(*per_step),
            interval(*every),
            grouped(*steps as u64),
        ),
    }
}

fn pending_text(entry: &SnapshotEntry, waits: &PendingFrees, site: &str) -> String {
    let place = if site == NO_STACK { format!("with {site}") } else { format!("at {site}") };
    let time = waits.longest_time.map(|time| format!(", the longest in time {time}"));
    format!(
        "{} ({} in total) {place} on stream {:#x} were delayed by another stream, up to {} at \
         once. The longest wait is {} from {}{}. record_stream delays the reuse of memory until \
         the other stream has caught up. To avoid it, wait for that stream before the free.",
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
    let place = stack.map(|stack| format!(" in {}", site(entry, stack))).unwrap_or_default();
    let mut sentences = vec![format!("Allocating {requested} failed at {event}{place}.")];
    sentences.extend(device_free.map(|free| format!("GPU: {free} free.")));
    sentences.push(format!("PyTorch: {reserved} reserved, {in_use} of it in use."));
    sentences.extend(largest_free.map(|largest| format!("Largest free block: {largest}.")));
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
    sentences.join(" ")
}

fn holder(entry: &SnapshotEntry, stack: StackId) -> String {
    match stack {
        StackId::EMPTY => format!("blocks with {NO_STACK}"),
        stack => site(entry, stack),
    }
}

fn setting_text(cost: &SettingCost) -> String {
    let were = |segments: usize| {
        format!("{} {}", counted(segments, "segment"), if segments == 1 { "was" } else { "were" })
    };
    let advice = "expandable_segments:True lets one segment grow instead.";
    match cost {
        SettingCost::GarbageCollectionThreshold { threshold, segments, reserved_again } => format!(
            "garbage_collection_threshold is {threshold}. {} released, and {reserved_again} was \
             reserved again. A higher threshold keeps more memory cached.",
            were(*segments),
        ),
        SettingCost::ExpandableSegments(FixedSegments::FailedBesideFree { unused }) => format!(
            "expandable_segments is off. An allocation failed while up to {unused} of reserved \
             memory was not in use. {advice}",
        ),
        SettingCost::ExpandableSegments(FixedSegments::Returned { segments, reserved_again }) => {
            format!(
                "expandable_segments is off. {} released to make room for other sizes, and \
                 {reserved_again} was reserved again. {advice}",
                were(*segments),
            )
        }
        SettingCost::MaxSplitSize { limit, segments, allocations, unused, reserved_peak } => {
            format!(
                "max_split_size is {limit}. {} larger and could not be split, so they served only \
                 {} in total. Up to {unused} of {reserved_peak} reserved was not in use. A higher \
                 limit lets larger segments be split.",
                were(*segments),
                counted(*allocations as usize, "allocation"),
            )
        }
        SettingCost::RoundupPower2Divisions { added, requested } => format!(
            "roundup_power2_divisions adds {added} to the {requested} requested at the peak ({} \
             %). More divisions add less.",
            percent(*added, *requested),
        ),
    }
}

/// The text of an outlier. It needs no tables of its file.
pub fn outlier_text(facts: &Facts) -> String {
    let Facts::Outlier { rank, item, bytes, usual, ranks } = facts else { return String::new() };
    let (subject, verb) = match item {
        OutlierItem::Stack { site, .. } => (subject(site), "holds"),
        OutlierItem::Category(category) => (format!("Category {}", category.name()), "holds"),
        OutlierItem::Band(name) => ((*name).to_owned(), "peaks at"),
    };
    format!("{subject} {verb} {bytes} on {rank}. The median of {ranks} similar ranks is {usual}.")
}

/// A call site as the subject of a sentence.
fn subject(site: &str) -> String {
    if site == NO_STACK { format!("Memory with {NO_STACK}") } else { site.to_owned() }
}

/// Advice to set `expandable_segments`, if the recording says that it is off.
fn expandable_segments_advice(entry: &SnapshotEntry) -> &'static str {
    let setting = entry.snapshot.settings.iter().find(|(key, _)| key == "expandable_segments");
    match setting {
        Some((_, value)) if value == "false" => " Try expandable_segments:True.",
        _ => "",
    }
}

/// `8.00 MiB`, or `8.00 MiB to 11.0 MiB`.
fn range((min, max): (Bytes, Bytes)) -> String {
    if min == max { min.to_string() } else { format!("{min} to {max}") }
}

/// `every step`, or `every 3 steps`.
fn interval(every: usize) -> String {
    if every == 1 { "every step".to_owned() } else { format!("every {every} steps") }
}

fn percent(part: Bytes, whole: Bytes) -> u64 {
    part.0.saturating_mul(100) / whole.0.max(1)
}

/// `1 block`, `12 blocks`.
fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}
