//! The words of reserved memory that is not needed.

use super::{CostlySetting, Creep, OutOfReach, ReservedPeak};
use crate::claims::phrase::Sentence;
use crate::claims::predicted::Simulated;
use crate::claims::replays;
use crate::claims::scene::{Claim, Exhibit, Parts, Scene, Spot, SpotWhat, Words};
use crate::claims::words::{EXPANDABLE, at_site, counted, list, pool};
use crate::evidence::MemoryUse;
use vramscope_trace::Coverage;
use vramscope_units::{Bytes, grouped};

/// The maximum number of pools and streams in a sentence.
const MAX_NAMED: usize = 3;

/// Uses of fewer bytes are not worth a sentence.
const MIN_NAMED: Bytes = Bytes(1 << 20);

impl Claim for ReservedPeak {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let simulated = &scene.predicted.simulated[..];
        let memory = &self.memory;
        let coverage = scene.cx.trace.coverage;
        let at_peak = match self.event {
            _ if self.is_state_only => {
                format!("{} were reserved when the snapshot was taken.", self.reserved)
            }
            Some(event) => format!(
                "At most {} were reserved (at {event}), and at most {} were needed at once.",
                self.reserved, self.needed
            ),
            None => format!(
                "Before the window {} were reserved. At most {} were needed at once in it.",
                self.reserved, self.needed
            ),
        };
        let uses = format!("Of the reserved memory {}.", uses(memory));
        let settings = self.settings.iter().map(setting_text);
        let out_of_reach = self.out_of_reach.iter().map(|side| out_of_reach(scene, side));
        let creep = self.creep.as_ref().map(|creep| creeps(scene, creep));
        let by_kind = by_kind(scene, self).filter(|_| self.out_of_reach.is_empty());
        let predicted =
            Some(replays::reserved(simulated, self.reserved, coverage == Coverage::Whole))
                .filter(|text| !text.is_empty());
        let sentences: Vec<String> = [at_peak, uses]
            .into_iter()
            .chain(creep)
            .chain(out_of_reach)
            .chain(by_kind)
            .chain(predicted)
            .chain(settings)
            .collect();
        Words {
            title: title(scene, self),
            text: sentences.join(" "),
            action: action(scene, self, simulated),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        let memory = &self.memory;
        let mut parts = Vec::new();
        for (bytes, what) in [
            (memory.idle, format!("cached in {}", counted(memory.idle_segments, "free segment"))),
            (
                memory.stuck,
                format!("fragmented in {} in use", counted(memory.stuck_segments, "segment")),
            ),
            (memory.rounding, "lost to rounding".to_owned()),
            (memory.small, "free in the small pool".to_owned()),
        ] {
            if bytes.0 > self.reserved.0 / 20 {
                parts.push(format!("{bytes} {what}"));
            }
        }
        let mut lines = Vec::new();
        if !parts.is_empty() {
            lines.push(parts.join(", "));
        }
        if let Some(creep) = &self.creep {
            let steps = grouped(creep.steps as u64);
            lines.push(format!("{} more are reserved a step, in {steps} steps", creep.per_step));
        }
        lines.join("; ")
    }

    /// The line at which most was reserved. A setting or a stream has no line.
    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        if !self.settings.is_empty() || self.creep.is_none() && !self.out_of_reach.is_empty() {
            return None;
        }
        let frame = match &self.creep {
            Some(creep) => scene.frame_of(creep.stack),
            None => {
                let stack = self.event.map(|event| scene.cx.stack_of_event(event))?;
                scene.cx.program_frame(stack).map(|frame| scene.cx.snapshot.frame(frame))
            }
        };
        Some(Spot { frame: frame?, note: String::new(), what: SpotWhat::Text(String::new()) })
    }

    fn saving(&self, scene: &Scene<'_>) -> Option<Bytes> {
        Some(replays::saved(&scene.predicted.simulated, self.reserved))
    }

    fn exhibit(&self, _scene: &Scene<'_>) -> Exhibit {
        let MemoryUse { in_use, rounding, idle, stuck, small, graph_pools, .. } = self.memory;
        Exhibit::Parts(Parts {
            title: if self.is_state_only {
                "reserved memory"
            } else {
                "reserved memory at its peak"
            },
            parts: vec![
                ("in use", in_use, false),
                ("rounding", rounding, false),
                ("cached, free", idle, true),
                ("fragmented", stuck, true),
                ("small-block pool, free", small, true),
                ("CUDA graph pools, free", graph_pools, false),
            ],
            line: Some(("needed at most", self.needed)),
        })
    }
}

/// `Reserved 3.42 GiB for at most 2.24 GiB in use: max_split_size_mb:128 keeps 6 segments whole`.
fn title(scene: &Scene<'_>, peak: &ReservedPeak) -> Sentence {
    let at_end = if peak.is_state_only { " at the end" } else { "" };
    let most = if peak.is_state_only { "" } else { "at most " };
    let title = Sentence::new("Reserved ")
        .event(peak.reserved.brief(), peak.event.map(|event| event.0))
        .and(scene.at(peak.spot(scene).as_ref()))
        .text(format_args!(" for {most}{} in use{at_end}: ", peak.needed.brief()));
    if let Some(setting) = peak.settings.first() {
        return title.text(match setting {
            CostlySetting::MaxSplitSize { limit, pieces, .. } if *pieces > 0 => format!(
                "max_split_size_mb:{} keeps {} from smaller requests",
                limit.0 >> 20,
                counted(*pieces, "free piece")
            ),
            CostlySetting::MaxSplitSize { limit, segments, .. } => format!(
                "max_split_size_mb:{} keeps {} whole",
                limit.0 >> 20,
                counted(*segments, "large segment")
            ),
            CostlySetting::RoundupPower2Divisions { .. } => {
                "roundup_power2_divisions rounds requests up".to_owned()
            }
        });
    }
    if let Some(creep) = &peak.creep {
        let step = format!("+{} per step", creep.per_step.brief());
        return title.text(step);
    }
    if let Some(side) = peak.out_of_reach.first() {
        let (free, stream) = (side.free.brief(), scene.stream(side.stream));
        return title.text(format_args!("{free} free for {stream} only"));
    }
    let MemoryUse { rounding, idle, stuck, small, graph_pools, .. } = peak.memory;
    let uses = [
        (idle, "most of the rest is cached"),
        (stuck, "most of the rest is fragmented"),
        (rounding, "most of the rest is rounding"),
        (small, "most of the rest is in the pool of small blocks"),
        (graph_pools, "most of the rest is in pools of CUDA graphs"),
    ];
    let most = uses.into_iter().max_by_key(|(bytes, _)| *bytes);
    title.text(most.map_or("", |(_, words)| words))
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

pub(in crate::claims::findings) fn setting_text(setting: &CostlySetting) -> String {
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
fn by_kind(scene: &Scene<'_>, peak: &ReservedPeak) -> Option<String> {
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
            let id = scene.cx.snapshot.pool(share.kind.pool);
            format!("{} in {} on {}", share.free, pool(id), scene.stream(share.kind.stream))
        })
        .collect();
    Some(format!("Free are {}.", list(&named)))
}

/// `4.69 GiB are free on stream 0x15 at #1,075. No other stream may use them: ...`.
fn out_of_reach(scene: &Scene<'_>, side: &OutOfReach) -> String {
    let at = side.at.map_or_else(String::new, |event| format!(" at {event}"));
    format!(
        "{} are free on {}{at}. No other stream may use them: requests elsewhere reserved {} while \
         as much as they asked for was free here, at most {} at once{} on {}.",
        side.free,
        scene.stream(side.stream),
        side.elsewhere,
        side.request,
        at_site(&scene.site(side.request_at)),
        scene.stream(side.request_stream),
    )
}

/// `It grows by 22.0 MiB a step (in 11 of 11 steps), 242.0 MiB in all, ...`.
fn creeps(scene: &Scene<'_>, creep: &Creep) -> String {
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
        at_site(&scene.site(creep.stack)),
    )
}

/// The remedy for a setting.
pub(in crate::claims::findings) fn setting_action(setting: &CostlySetting) -> String {
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
    let saved = replays::saved(simulated, peak.reserved);
    peak.out_of_reach.first().filter(|side| side.bytes() > saved)
}

fn action(scene: &Scene<'_>, peak: &ReservedPeak, simulated: &[Simulated]) -> String {
    let module = scene.device_kind().module();
    let memory = &peak.memory;
    let is_idle = memory.idle > Bytes(memory.stuck.0 + memory.small.0);
    // The run as recorded comes first. What follows it are replays with other settings.
    let is_simulated = simulated.len() > 1;
    if let Some(creep) = new_streams(peak) {
        return format!(
            "Make the streams once, before the loop, and use them in each step{}. What a stream \
             has cached serves no other stream.",
            at_site(&scene.site(creep.stack)),
        );
    }
    if let Some(side) = side_stream(peak, simulated) {
        let stream = scene.stream(side.stream);
        return format!(
            "Call {module}.empty_cache() after the work on {stream}, or do all of it on one \
             stream. What {stream} has cached serves no other stream."
        );
    }
    if let Some(saving) = replays::saving(simulated, peak.reserved) {
        return saving;
    }
    if simulated.is_empty() && scene.has_replays {
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
            at_site(&scene.site(creep.stack)),
        );
    }
    let expandable = (scene.can_expand() && !is_simulated).then(|| format!("try {EXPANDABLE}"));
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
