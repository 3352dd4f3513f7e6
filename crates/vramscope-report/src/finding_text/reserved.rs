//! The words of findings about reserved memory: what is not needed, and what is stranded.

use super::allocator::{EXPANDABLE, can_expand, list, pool, stream};
use super::{Words, counted, percent, simulated};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use crate::simulated::Simulated;
use vramscope_inference::{CostlySetting, Finding, MemoryUse, ReservedPeak, StrandedPool};
use vramscope_units::Bytes;

/// The maximum number of pools and streams in a sentence.
const MAX_NAMED: usize = 3;

/// Uses of fewer bytes are not worth a sentence.
const MIN_NAMED: Bytes = Bytes(1 << 20);

pub(super) fn reserved(
    entry: &SnapshotEntry,
    finding: &Finding,
    peak: &ReservedPeak,
    simulated: &[Simulated],
) -> Words {
    let memory = &peak.memory;
    let unneeded = Bytes(finding.bytes);
    let at_peak = match peak.event {
        _ if peak.is_state_only => {
            format!("{} were reserved when the snapshot was taken.", peak.reserved)
        }
        Some(event) => format!(
            "At most {} were reserved (at {event}), and at most {} were needed at once.",
            peak.reserved, peak.needed
        ),
        None => format!(
            "Before the window {} were reserved. At most {} were needed at once in it.",
            peak.reserved, peak.needed
        ),
    };
    let uses = format!("Of the reserved memory {}.", uses(memory));
    let settings = peak.settings.iter().map(setting_text);
    let predicted =
        Some(simulated::reserved(simulated, peak.reserved)).filter(|text| !text.is_empty());
    let sentences: Vec<String> = [at_peak, uses]
        .into_iter()
        .chain(predicted)
        .chain(settings)
        .chain(by_kind(entry, peak))
        .collect();
    Words {
        title: Sentence::new(format_args!(
            "{unneeded} of the {} reserved were not needed ({} %)",
            peak.reserved,
            percent(unneeded, peak.reserved)
        )),
        text: sentences.join(" "),
        action: action(entry, finding, peak, simulated),
    }
}

/// `1.85 GiB were in use, 394.9 MiB free inside of 17 segments in use, and ...`.
fn uses(memory: &MemoryUse) -> String {
    let mut parts = vec![format!("{} were in use", memory.in_use)];
    let idle = format!(
        "idle in {} (returned when memory is short)",
        counted(memory.idle_segments, "free segment")
    );
    let stuck = format!(
        "free inside of {} in use (the largest piece is {})",
        counted(memory.stuck_segments, "segment"),
        memory.largest_stuck
    );
    for (bytes, what) in [
        (memory.rounding, "added by rounding"),
        (memory.idle, &idle),
        (memory.stuck, &stuck),
        (memory.small, "free in the small pool"),
        (memory.graph_pools, "free in pools of CUDA graphs, whose replays use them"),
    ] {
        if bytes >= MIN_NAMED {
            parts.push(format!("{bytes} {what}"));
        }
    }
    list(&parts)
}

pub(super) fn setting_text(setting: &CostlySetting) -> String {
    match setting {
        CostlySetting::MaxSplitSize { limit, segments, bytes } => format!(
            "max_split_size_mb:{} keeps {} above this size unsplit: {bytes} of them are free.",
            limit.0 >> 20,
            counted(*segments, "segment"),
        ),
        CostlySetting::RoundupPower2Divisions { bytes } => {
            format!("roundup_power2_divisions adds {bytes} to the blocks in use.")
        }
    }
}

/// The pools and streams of the free memory, if there are several.
fn by_kind(entry: &SnapshotEntry, peak: &ReservedPeak) -> Option<String> {
    let least = Bytes(peak.memory.free().0 / 10);
    let named: Vec<_> =
        peak.shares.iter().filter(|share| share.free >= least).take(MAX_NAMED).collect();
    let first = named.first()?.kind;
    if named.iter().all(|s| (s.kind.pool, s.kind.stream) == (first.pool, first.stream)) {
        return None;
    }
    let named: Vec<String> = named
        .iter()
        .map(|share| {
            let id = entry.snapshot.pool(share.kind.pool);
            format!("{} in {} on {}", share.free, pool(id), stream(entry, share.kind.stream))
        })
        .collect();
    Some(format!("Free are {}.", list(&named)))
}

/// What to do about a setting.
pub(super) fn setting_action(setting: &CostlySetting) -> String {
    match setting {
        CostlySetting::MaxSplitSize { limit, .. } => {
            format!("Remove max_split_size_mb:{} or raise it.", limit.0 >> 20)
        }
        CostlySetting::RoundupPower2Divisions { .. } => {
            "Remove roundup_power2_divisions or use more divisions.".to_owned()
        }
    }
}

fn action(
    entry: &SnapshotEntry,
    finding: &Finding,
    peak: &ReservedPeak,
    simulated: &[Simulated],
) -> String {
    let memory = &peak.memory;
    let is_idle = memory.idle > Bytes(memory.stuck.0 + memory.small.0);
    // The run as recorded comes first. What follows it are replays with other settings.
    let is_simulated = simulated.len() > 1;
    if let Some(saving) = simulated::saving(simulated, peak.reserved) {
        return saving;
    }
    if simulated.is_empty() && entry.has_simulated(finding.device) {
        return "See the out-of-memory finding: it says what settings change.".to_owned();
    }
    let settings: Vec<String> = peak.settings.iter().map(setting_action).collect();
    if !settings.is_empty() && !is_simulated {
        return settings.join(" ");
    }
    let expandable = (can_expand(entry) && !is_simulated).then(|| format!("try {EXPANDABLE}"));
    if is_idle {
        let call = "call torch.cuda.empty_cache() once after this point, if something else needs \
                    the memory";
        return match expandable {
            Some(expandable) if peak.was_short => format!("T{}, or {call}.", &expandable[1..]),
            _ => format!("C{}.", &call[1..]),
        };
    }
    match expandable {
        Some(expandable) => {
            format!("T{} and compare the peak of reserved memory.", &expandable[1..])
        }
        None => "Allocate what stays before what is freed, so that whole segments become free."
            .to_owned(),
    }
}

pub(super) fn stranded(entry: &SnapshotEntry, finding: &Finding, side: &StrandedPool) -> Words {
    let stream = stream(entry, side.stream);
    let name = match side.pool {
        Some(id) => pool(Some(id)),
        None => stream.clone(),
    };
    let since = match side.since {
        Some(event) => format!("since {event}"),
        None => "since before the window".to_owned(),
    };
    let action = match side.pool {
        Some(_) => format!(
            "Delete {name} once its tensors are moved out, or allocate in it only what stays. No \
             allocator setting gives its memory to another pool."
        ),
        None => format!(
            "Allocate these tensors on the stream of the other requests, and let {stream} wait for \
             it. No other stream may use free memory of {stream}."
        ),
    };
    Words {
        title: Sentence::default()
            .event(side.free, finding.events.first().copied())
            .text(format_args!(" free in {name}, out of reach")),
        text: format!(
            "{name} holds {} at the peak of reserved memory ({}). {} of it are free, in pieces of \
             at most {}. Requests outside of it reserved {} more while {} of it were free {since}.",
            side.reserved, side.peak, side.free, side.largest, side.reserved_elsewhere, side.unused,
        ),
        action,
    }
}
