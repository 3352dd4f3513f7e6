//! The words of findings about reserved memory: what is not needed, and what is stranded.

use super::allocator::{EXPANDABLE, at_site, can_expand, list, pool, stream};
use super::{Words, counted, simulated};
use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use crate::simulated::Simulated;
use crate::text::label_of;
use vramscope_inference::{
    CostlySetting, Creep, Finding, GraphPools, MemoryUse, OutOfReach, ReservedPeak, StrandedPool,
};
use vramscope_snapshot::PoolId;
use vramscope_trace::Coverage;
use vramscope_units::{Bytes, grouped};

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
    let of_device = entry.traces.iter().find(|trace| trace.device.device == finding.device);
    let coverage = of_device.map(|trace| trace.coverage);
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
    let out_of_reach = peak.out_of_reach.iter().map(|side| out_of_reach(entry, side));
    let creep = peak.creep.as_ref().map(|creep| creeps(entry, creep));
    let by_kind = by_kind(entry, peak).filter(|_| peak.out_of_reach.is_empty());
    let predicted =
        Some(simulated::reserved(simulated, peak.reserved, coverage == Some(Coverage::Whole)))
            .filter(|text| !text.is_empty());
    let sentences: Vec<String> = [at_peak, uses]
        .into_iter()
        .chain(creep)
        .chain(out_of_reach)
        .chain(by_kind)
        .chain(predicted)
        .chain(settings)
        .collect();
    // A state tells nothing of what is needed later, and a part nothing of what was needed before.
    let verb = match coverage {
        _ if peak.is_state_only => "were free when the snapshot was taken",
        Some(Coverage::Whole) => "were not needed",
        _ => "were not needed in the recorded part",
    };
    Words {
        title: Sentence::new(format_args!("{unneeded} of the "))
            .event(peak.reserved, peak.event.map(|event| event.0))
            .text(format_args!(" reserved {verb}")),
        text: sentences.join(" "),
        action: action(entry, finding, peak, simulated),
    }
}

/// `1.85 GiB were in use, 394.9 MiB free inside of 17 segments in use, and ...`.
fn uses(memory: &MemoryUse) -> String {
    let mut parts = vec![format!("{} were in use", memory.in_use)];
    let idle = format!(
        "cached in {} (returned when memory is short)",
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
        CostlySetting::MaxSplitSize { limit, pieces, bytes, .. } if *pieces > 0 => format!(
            "max_split_size_mb:{} acts against expandable_segments: no smaller request may use a \
             free piece above this size. {} ({bytes}) are free.",
            limit.0 >> 20,
            counted(*pieces, "such piece"),
        ),
        CostlySetting::MaxSplitSize { limit, segments, bytes, .. } => format!(
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

/// `4.69 GiB are free on stream 0x15 at #1,075. No other stream may use them: ...`.
fn out_of_reach(entry: &SnapshotEntry, side: &OutOfReach) -> String {
    let at = side.at.map_or_else(String::new, |event| format!(" at {event}"));
    format!(
        "{} are free on {}{at}. No other stream may use them: requests elsewhere reserved {} while \
         as much as they asked for was free here, at most {} at once{} on {}.",
        side.free,
        stream(entry, side.stream),
        side.elsewhere,
        side.request,
        at_site(&site(entry, side.request_at)),
        stream(entry, side.request_stream),
    )
}

/// `It grows by 22.0 MiB a step (in 11 of 11 steps), 242.0 MiB in all, ...`.
fn creeps(entry: &SnapshotEntry, creep: &Creep) -> String {
    let streams = match creep.new_streams {
        0 => String::new(),
        count => format!(" These steps use {} for the first time.", counted(count, "stream")),
    };
    format!(
        "Reserved memory grows by {} a step (in {} of {} steps), {} in all, and the memory in use \
         does not. Most of it is reserved{}.{streams}",
        creep.per_step,
        grouped(creep.rises as u64),
        grouped(creep.steps as u64),
        creep.total,
        at_site(&site(entry, creep.stack)),
    )
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

/// Creep because each step uses a new stream.
fn new_streams(peak: &ReservedPeak) -> Option<&Creep> {
    peak.creep.as_ref().filter(|creep| creep.new_streams > 1)
}

/// The free memory of a side stream, if it is more than other settings save.
fn side_stream<'a>(peak: &'a ReservedPeak, simulated: &[Simulated]) -> Option<&'a OutOfReach> {
    let saved = simulated::saved(simulated, peak.reserved);
    peak.out_of_reach.first().filter(|side| side.bytes() > saved)
}

fn action(
    entry: &SnapshotEntry,
    finding: &Finding,
    peak: &ReservedPeak,
    simulated: &[Simulated],
) -> String {
    let module = entry.device_kind(finding.device).module();
    let memory = &peak.memory;
    let is_idle = memory.idle > Bytes(memory.stuck.0 + memory.small.0);
    // The run as recorded comes first. What follows it are replays with other settings.
    let is_simulated = simulated.len() > 1;
    if let Some(creep) = new_streams(peak) {
        return format!(
            "Make the streams once, before the loop, and use them in each step{}. What a stream \
             has cached serves no other stream.",
            at_site(&site(entry, creep.stack)),
        );
    }
    if let Some(side) = side_stream(peak, simulated) {
        let stream = stream(entry, side.stream);
        return format!(
            "Call {module}.empty_cache() after the work on {stream}, or do all of it on one \
             stream. What {stream} has cached serves no other stream."
        );
    }
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
    if let Some(creep) = &peak.creep {
        return format!(
            "Compare the sizes of the requests{} from step to step: pad them to a few sizes, or \
             call {module}.empty_cache() after a phase with many.",
            at_site(&site(entry, creep.stack)),
        );
    }
    let expandable = (can_expand(entry) && !is_simulated).then(|| format!("try {EXPANDABLE}"));
    if is_idle {
        let call = format!(
            "call {module}.empty_cache() once after this point, if something else needs the memory"
        );
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

pub(super) fn graph_pools(entry: &SnapshotEntry, finding: &Finding, pools: &GraphPools) -> Words {
    let at = pools.at.map(|frame| format!(" at {}", label_of(&entry.snapshot, frame)));
    let at = at.unwrap_or_default();
    let workspaces = match pools.workspace_streams {
        0 | 1 => String::new(),
        count => format!(
            " {} of workspaces are live on {}: libraries keep one for each stream.",
            pools.workspaces,
            counted(count, "stream")
        ),
    };
    if let Some(growth) = &pools.growth {
        let PoolId(a, b) = pools.pool;
        return Words {
            title: Sentence::new("A CUDA graph pool grows to ")
                .event(Bytes(finding.bytes), finding.events.first().copied())
                .text(format_args!(" in {}", counted(growth.captures, "capture"))),
            text: format!(
                "Pool ({a}, {b}) of CUDA graphs grows with each capture{at}: {} of {} captures \
                 reserve more, usually {}. It never shrinks, holds {} ({} live) of the {} reserved \
                 at most, and serves no other request.{workspaces}",
                grouped(growth.grew as u64),
                grouped(growth.captures as u64),
                growth.each,
                Bytes(finding.bytes),
                pools.live,
                pools.peak,
            ),
            action: "Capture fewer shapes: pad inputs to a few sizes, or leave graphs out for \
                     changing ones (torch._inductor.config.triton.cudagraph_skip_dynamic_graphs). \
                     Capture the largest shape first."
                .to_owned(),
        };
    }
    let (least, most) = pools.range;
    let is_exact = pools.one_pool.is_some_and(|one_pool| !one_pool.is_estimate);
    let shared = format!("{}{}", if is_exact { "" } else { "about " }, pools.shared);
    let replayed = pools.one_pool.map(|one_pool| match (one_pool.one, one_pool.largest_first) {
        (one, first) if first < one => format!(
            " That is with the largest captured first; in this order, one pool would hold {one} \
             (the requests were replayed)."
        ),
        _ => format!(
            " The requests were replayed in one pool: at most {} would be reserved in place of {}.",
            one_pool.peak_with_one, one_pool.peak
        ),
    });
    Words {
        title: Sentence::default().event(pools.reserved, finding.events.first().copied()).text(
            format_args!(
                " in {} of CUDA graphs; one shared pool would hold {shared}",
                counted(pools.pools, "pool"),
            ),
        ),
        text: format!(
            "CUDA graphs captured{at} have {} of their own: {least} to {most} each, {} in all, of \
             which {} are live. The rest is idle between replays, and serves no other \
             graph and no other request. One pool for all would hold {shared}.{}{workspaces}",
            counted(pools.pools, "pool"),
            pools.reserved,
            pools.live,
            replayed.unwrap_or_default(),
        ),
        action: "Capture all graphs into one pool, the largest first: \
                 torch.cuda.graph(graph, pool=first_graph.pool()). Graphs that share a pool must \
                 not replay at once, and each output must be read before the next replay."
            .to_owned(),
    }
}
