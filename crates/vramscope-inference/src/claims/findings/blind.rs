//! Blind spots: findings that a recording cannot show, and why.

use super::growth::{self, Few, MIN_GROWING_STEPS, MIN_STEPS};
use crate::category::Category;
use crate::claims::words::counted;
use crate::evidence::Evidence;
use crate::steps::Steps;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use vramscope_snapshot::{Action, DeviceKind, StackId};
use vramscope_trace::Coverage;
use vramscope_trace::Origin;
use vramscope_trace::named_ranges;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::{Bytes, grouped};

/// A gap in a recording that hides findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlindSpot {
    /// PyTorch refused a request early (`throw_on_cudamalloc_oom`): the history has no event of it.
    /// Only the file beside the snapshot shows it.
    RefusedEarly,
    /// The file has no events of the device.
    NoHistory {
        /// The device is an Ascend NPU.
        is_npu: bool,
    },
    /// The file has one event: `_record_memory_history(enabled="state")`.
    StateOnly,
    /// The ring buffer (`max_entries`) has overwritten events.
    RingOverrun(Overrun),
    /// Recording began when memory was already in use.
    LateStart,
    /// Fewer whole training steps than growth needs.
    FewSteps {
        /// Whole training steps.
        whole: usize,
        /// The fewest that growth needs.
        needed: usize,
    },
    /// Memory grew from evaluation to evaluation, too few times to tell growth from chance.
    FewGrowths {
        /// How often it grew.
        seen: usize,
        /// The fewest that growth needs.
        needed: usize,
        /// Bytes that stayed.
        bytes: u64,
    },
    /// No backward pass: what grows can be a cache.
    NoBackward,
    /// Allocations have no call stacks.
    NoStacks,
    /// Frees have no call stacks of their own.
    NoFreeStacks,
    /// Events have no times.
    NoClock {
        /// The device is an Ascend NPU: `torch_npu` records none.
        is_npu: bool,
    },
    /// Nothing tells what most of the memory at the peak is for.
    NoCategories {
        /// The share of the peak of unknown category, in percent.
        percent: u64,
    },
}

/// The evidence that events were overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// Named ranges begin before the first event.
    Ranges {
        /// The share of the recorded time without events, in percent.
        percent: u64,
    },
    /// The file says so.
    Recorded,
    /// Blocks from before the window have call stacks, which only a recording gives.
    Stacks {
        /// Those blocks.
        blocks: u32,
    },
    /// The number of events is round, as `max_entries` usually is.
    RoundNumber {
        /// Events.
        events: usize,
    },
}

/// The share of the peak of unknown category, in percent, from which categories tell nothing.
const MIN_UNKNOWN_PERCENT: u64 = 90;

/// The blind spots of one device.
pub async fn blind_spots(cx: Evidence<'_>, budget: &mut Budget) -> Vec<BlindSpot> {
    let is_npu = cx.trace.device.kind == DeviceKind::Npu;
    match cx.trace.device.events.len() {
        0 => return vec![BlindSpot::NoHistory { is_npu }],
        1 => return vec![BlindSpot::StateOnly],
        _ => {}
    }
    let mut found = Vec::new();
    if cx.trace.coverage == Coverage::Partial {
        let overrun = overrun(cx, budget).await;
        found.push(overrun.map_or(BlindSpot::LateStart, BlindSpot::RingOverrun));
    }
    found.extend(steps(cx));
    if let Some(Few { seen, bytes }) = growth::few(cx, budget).await {
        found.push(BlindSpot::FewGrowths { seen, needed: MIN_GROWING_STEPS, bytes });
    }
    found.extend(stacks(cx, budget).await);
    if cx.trace.clock.is_none() {
        found.push(BlindSpot::NoClock { is_npu });
    }
    found.extend(categories(cx, budget).await);
    found
}

/// Whether events were overwritten. Without a sign, memory was in use before recording began.
async fn overrun(cx: Evidence<'_>, budget: &mut Budget) -> Option<Overrun> {
    let recorded = cx.snapshot.settings.iter().find(|s| s.0.ends_with("trace_alloc_overflowed"));
    let recorded = recorded.map(|setting| setting.1 == "true");
    if recorded == Some(false) {
        return None;
    }
    budget.charge(8 * cx.snapshot.annotations.len() as u64).await;
    if let Some(percent) = missing_percent(cx) {
        return Some(Overrun::Ranges { percent });
    }
    if recorded == Some(true) {
        return Some(Overrun::Recorded);
    }
    let mut blocks = 0;
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        let live = cx.trace.blocks[part].iter().filter(|b| b.origin() == Origin::PreexistingLive);
        blocks += live.filter(|b| b.stack != StackId::EMPTY).count() as u32;
    }
    if blocks > 0 {
        return Some(Overrun::Stacks { blocks });
    }
    let events = cx.trace.device.events.len();
    events.is_multiple_of(1000).then_some(Overrun::RoundNumber { events })
}

/// The share of the recorded time before the first event, in percent.
///
/// A range without events, such as a wait for data, can come first. So a range must end before the
/// first event, and a range of the same name must contain events.
fn missing_percent(cx: Evidence<'_>) -> Option<u64> {
    let clock = cx.trace.clock.as_ref()?;
    let ranges = named_ranges(cx.snapshot);
    let start = clock.start.0;
    let slot = |time: i64| clock.events_before(time.saturating_sub(start).max(0) as u64);
    let has_events = |from: i64, to: i64| slot(from) < slot(to);
    let active: FxHashSet<_> =
        ranges.iter().filter(|r| has_events(r.start.0, r.end.0)).map(|r| r.name).collect();
    let is_lost = ranges.iter().any(|r| r.end.0 < start && active.contains(&r.name));
    if !is_lost {
        return None;
    }
    let first = ranges.iter().map(|range| range.start.0).min()?;
    let before = u128::from(start.abs_diff(first));
    Some((before * 100 / (before + u128::from(clock.span())).max(1)) as u64)
}

fn steps(cx: Evidence<'_>) -> Option<BlindSpot> {
    let has_backward = cx.trains();
    let training = cx.steps.filter(|steps| steps.are_training());
    // Growth from request to request was looked for.
    let are_enough = |steps: &Steps| steps.whole() >= MIN_STEPS;
    if cx.steps.is_some_and(|steps| steps.show_growth() && are_enough(steps))
        || cx.passes.in_a_row().as_ref().is_some_and(are_enough)
    {
        return None;
    }
    if training.is_none() && !has_backward {
        return Some(BlindSpot::NoBackward);
    }
    let whole = training.map_or(0, Steps::whole);
    (whole < MIN_STEPS).then_some(BlindSpot::FewSteps { whole, needed: MIN_STEPS })
}

async fn stacks(cx: Evidence<'_>, budget: &mut Budget) -> Option<BlindSpot> {
    let (events, rows) = (&cx.snapshot.events, &cx.trace.device.events);
    let (mut allocs, mut frees) = (0, 0);
    let mut has_stacks = false;
    for part in strides(rows.len()) {
        budget.charge(part.len() as u64).await;
        for row in part.map(|i| rows.start + i as u32) {
            if events.action(row) == Action::ALLOC {
                allocs += 1;
                has_stacks |= events.stack(row) != StackId::EMPTY;
            }
        }
        if has_stacks {
            break;
        }
    }
    if !has_stacks {
        return (allocs > 0).then_some(BlindSpot::NoStacks);
    }
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for block in cx.trace.blocks[part].iter().filter(|b| b.origin() == Origin::Alloc) {
            let Some(free) = block.free_requested() else { continue };
            frees += 1;
            let stack = events.stack(rows.start + free.0);
            // With context="alloc" a free repeats the stack of its allocation.
            if stack != StackId::EMPTY && stack != block.stack {
                return None;
            }
        }
    }
    (frees > 0).then_some(BlindSpot::NoFreeStacks)
}

async fn categories(cx: Evidence<'_>, budget: &mut Budget) -> Option<BlindSpot> {
    let (mut all, mut unknown) = (0u64, 0u64);
    for (index, block) in cx.trace.live_at(cx.peak_slot(), budget).await {
        all = all.saturating_add(block.bytes.0);
        if cx.categories.get(index).category == Category::Unknown {
            unknown = unknown.saturating_add(block.bytes.0);
        }
    }
    let percent = unknown.saturating_mul(100).checked_div(all)?;
    (percent >= MIN_UNKNOWN_PERCENT).then_some(BlindSpot::NoCategories { percent })
}

impl BlindSpot {
    /// One of each kind, with no numbers.
    pub const ALL: [Self; 12] = [
        Self::RefusedEarly,
        Self::NoHistory { is_npu: false },
        Self::StateOnly,
        Self::RingOverrun(Overrun::Recorded),
        Self::LateStart,
        Self::FewSteps { whole: 0, needed: 0 },
        Self::FewGrowths { seen: 0, needed: 0, bytes: 0 },
        Self::NoBackward,
        Self::NoStacks,
        Self::NoFreeStacks,
        Self::NoClock { is_npu: false },
        Self::NoCategories { percent: 0 },
    ];

    /// When a recording has it.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NoHistory { .. } => "The file has no events.",
            Self::StateOnly => "The file has one event (`enabled=\"state\"`).",
            Self::RingOverrun(_) => {
                "Memory was in use before the first event, and events were overwritten: a named \
                 range ends before the first event, the file says so (`trace_alloc_overflowed`), \
                 blocks from before the window have a call stack, which only a recording gives, \
                 or, probably, the number of events is a multiple of 1,000. Record with a larger \
                 `max_entries`."
            }
            Self::LateStart => {
                "Memory was in use before the first event, without a sign of overwritten events."
            }
            Self::RefusedEarly => {
                "The file beside the snapshot says that memory ran out, and no device has an event \
                 of it: PyTorch records none where it refuses a request early \
                 (`throw_on_cudamalloc_oom`). The error message has the size of the request."
            }
            Self::FewSteps { .. } => "Fewer than five whole training steps: growth needs five.",
            Self::FewGrowths { .. } => {
                "Memory grew at even distances three times, as at evaluations: growth needs four."
            }
            Self::NoBackward => {
                "No backward pass, and fewer than five requests: growth cannot be told from a \
                 cache."
            }
            Self::NoStacks => "No allocation has a call stack.",
            Self::NoFreeStacks => "No free has a call stack of its own (`context=\"alloc\"`).",
            Self::NoClock { .. } => "Events have no times.",
            Self::NoCategories { .. } => "90 % or more of the peak are of unknown category.",
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoHistory { .. } => "no_history",
            Self::StateOnly => "state_only",
            Self::RingOverrun(_) => "ring_overrun",
            Self::LateStart => "late_start",
            Self::RefusedEarly => "refused_early",
            Self::FewSteps { .. } => "few_steps",
            Self::FewGrowths { .. } => "few_growths",
            Self::NoBackward => "no_backward",
            Self::NoStacks => "no_stacks",
            Self::NoFreeStacks => "no_free_stacks",
            Self::NoClock { .. } => "no_clock",
            Self::NoCategories { .. } => "no_categories",
        }
    }

    /// The memory or cause that stays unknown, why, and how to record it.
    pub fn text(self) -> String {
        match self {
            Self::NoHistory { is_npu } => format!(
                "Only the end is known: no history was recorded. Call \
                 {}.memory._record_memory_history() first",
                if is_npu { DeviceKind::Npu } else { DeviceKind::Cuda }.module()
            ),
            Self::StateOnly => {
                "Only the end is known: it was recorded with enabled=\"state\", not \
                                     enabled=\"all\""
                    .to_owned()
            }
            Self::RingOverrun(overrun) => ring(overrun),
            Self::LateStart => "What was allocated before recording is not known. Record before \
                                     the model is built"
                .to_owned(),
            Self::RefusedEarly => "Memory ran out, and the history has no event of it: PyTorch \
                                   refused a request early (throw_on_cudamalloc_oom). The error \
                                   message has its size"
                .to_owned(),
            Self::FewSteps { whole, needed } => format!(
                "Growth was not looked for: {}, {needed} are needed",
                match whole {
                    0 => "no whole step".to_owned(),
                    _ => counted(whole, "whole step"),
                }
            ),
            Self::FewGrowths { seen, needed, bytes } => format!(
                "Whether memory grows is not known: {} more stay after {}, {needed} are needed. \
                 Record more evaluations",
                Bytes(bytes),
                counted(seen, "evaluation")
            ),
            Self::NoBackward => "Growth was not looked for: neither training steps nor like \
                                      requests in a row were seen"
                .to_owned(),
            Self::NoStacks => "The lines that allocate are not known: no call stacks were \
                                    recorded. Record with context=\"all\""
                .to_owned(),
            Self::NoFreeStacks => "The lines that free are not known: frees have no call stacks. \
                                        Record with context=\"all\""
                .to_owned(),
            Self::NoClock { is_npu } => format!(
                "Durations and named ranges are not known: {}",
                if is_npu {
                    "torch_npu records no times"
                } else {
                    "events have no times. Record with PyTorch 2.2 or later"
                }
            ),
            Self::NoCategories { percent } => format!(
                "What {percent} % of the peak is for is not known. Record whole training steps \
                 with context=\"all\""
            ),
        }
    }
}

fn ring(overrun: Overrun) -> String {
    let why = match overrun {
        Overrun::Ranges { percent } => format!(
            "the ring buffer overwrote the first {} of the recorded time",
            if percent == 0 { "part".to_owned() } else { format!("{percent} %") }
        ),
        Overrun::Recorded => "the ring buffer overwrote events".to_owned(),
        Overrun::Stacks { blocks } => format!(
            "the ring buffer overwrote events, as {} with a call stack {} live before the first",
            counted(blocks as usize, "block"),
            if blocks == 1 { "was" } else { "were" },
        ),
        Overrun::RoundNumber { events } => format!(
            "the ring buffer probably overwrote events, as {} is a round number",
            grouped(events as u64)
        ),
    };
    format!("What happened earlier is not known: {why}. Record with a larger max_entries")
}
