//! Why a finding is so, in one line that follows its title: a measured cause, without the figures
//! of the title.

use super::allocator::{at_site, list, stream};
use super::program::outlook;
use super::{counted, percent};
use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use crate::simulated::Predicted;
use crate::text;
use vramscope_inference::{
    Aftermath, Category, Facts, Finding, GradientsHeld, Growth, GrowthKind, HeldTooLong, OomStory,
    PeakCause, RankSkew, ReservedPeak, SkewCause, Verdict,
};
use vramscope_units::{Bytes, grouped};

/// The line about a finding on one device; empty where the title says all.
pub(crate) fn why(entry: &SnapshotEntry, finding: &Finding, predicted: &Predicted) -> String {
    match &finding.facts {
        Facts::Oom(story) => oom(entry, finding.device, story),
        Facts::Growth(facts) => growth(facts, predicted),
        Facts::Cycle(_) => {
            "they were freed at once in the middle of a pass: only Python's garbage \
                            collector does that"
                .to_owned()
        }
        Facts::GradientsHeld(held) => gradients(held, finding.phase.is_some()),
        Facts::HeldTooLong(held) => held_too_long(held),
        Facts::NoGrad(_) if !predicted.fixes.is_empty() => {
            "an output keeps the graph of its pass until the program drops it".to_owned()
        }
        Facts::NoGrad(facts) => {
            format!("under torch.no_grad() the peak is about {}", facts.peak_without)
        }
        Facts::PeakCause(cause) => peak_cause(cause),
        Facts::Reserved(peak) => reserved(peak),
        Facts::StrandedPool(side) => format!(
            "requests outside of it reserved {} more, as they may not use it",
            side.reserved_elsewhere
        ),
        Facts::GraphPools(pools) if pools.growth.is_some() => {
            "it never shrinks, and serves no other request".to_owned()
        }
        Facts::GraphPools(_) => "each graph has a pool of its own, idle between replays".to_owned(),
        Facts::PendingFree(waits) => {
            let streams = waits.streams.iter().map(|&id| stream(entry, id));
            format!(
                "blocks were freed, and waited until {} had caught up (record_stream)",
                list(&streams.collect::<Vec<_>>())
            )
        }
        Facts::Churn(churn) => match &churn.search {
            Some(_) => "cuDNN tries workspaces for each convolution (cudnn.benchmark)".to_owned(),
            None => format!(
                "each return waits for the device: {}",
                counted(churn.bursts, "synchronization")
            ),
        },
        Facts::DeadAtPeak(facts) => super::dead::why(facts),
        Facts::Pinned(facts) => super::pinned::why(facts),
        Facts::Dominant(facts) => format!("without it the next lower peak is {}", facts.next),
    }
}

/// The line about a finding across ranks.
pub(crate) fn rank_why(skew: &RankSkew) -> String {
    match &skew.cause {
        SkewCause::Batch { .. } => format!(
            "one ratio at {} means a larger batch or longer sequences",
            counted(skew.sites.len(), "call stack")
        ),
        SkewCause::Held if skew.usual.0 == 0 => {
            format!("{} hold nothing there", super::ranks::others(skew))
        }
        SkewCause::Held => {
            format!("{} usually hold {} there", super::ranks::others(skew), skew.usual)
        }
        SkewCause::Sharding => format!("usual are {}", skew.usual),
        SkewCause::Reserved => "the peaks of requested memory hardly differ".to_owned(),
    }
}

fn oom(entry: &SnapshotEntry, device: u32, story: &OomStory) -> String {
    let larger = story.larger.map(|larger| {
        let what = if larger.category == Category::Input { "inputs" } else { "activations" };
        format!(
            "the {what} of this step ({}) are {} x those of step {}, the largest before",
            larger.bytes,
            super::oom::ratio(larger.bytes, larger.before),
            larger.step,
        )
    });
    let climb = story.climb.map(|climb| {
        let times = super::times(climb.times as usize);
        format!("each request of this line is larger than the one before, {times} in a row")
    });
    let copies = story.copies.map(|(bytes, _)| {
        format!("this line made copies of parameters or optimizer state, {bytes} on the device")
    });
    let program = larger.or(climb).or(copies);
    let allocator = match story.verdict {
        Verdict::Demand => Some(format!(
            "{} are in use: no layout of the memory has room for the request",
            story.active
        )),
        Verdict::OtherMemory => Some(format!(
            "PyTorch could have {} more earlier: other memory on the device has grown",
            story.shrunk
        )),
        Verdict::Fragmentation => Some(format!(
            "{} are free, but in pieces of at most {}",
            story.usable, story.largest_usable
        )),
        Verdict::StrandedPool => Some(
            "free memory belongs to another pool or stream, which this request may not use".into(),
        ),
        Verdict::Pending => {
            Some("a free piece fits, but waited for another stream (record_stream)".to_owned())
        }
        Verdict::Limit => Some(match super::oom::limit_of(entry, device) {
            Some(limit) => format!(
                "set_per_process_memory_fraction allows {limit}, and {} are reserved; the device \
                 has {} free",
                story.reserved,
                story.device_free.unwrap_or_default()
            ),
            None => format!(
                "it allows at least {} and less than {} (set_per_process_memory_fraction, or a \
                 like limit)",
                super::oom::allowed(entry, device, story),
                super::oom::refused(story)
            ),
        }),
        Verdict::Unknown => None,
    };
    let cause = program.or(allocator);
    let went_on = match story.aftermath {
        Aftermath::Ended => None,
        Aftermath::Handled => Some("the code that asked took another way at once".to_owned()),
        Aftermath::WentOn { steps: 0 } => Some("the program caught the error".to_owned()),
        Aftermath::WentOn { steps } => Some(format!(
            "the program caught the error, and {} ended after it",
            counted(steps as usize, "step")
        )),
    };
    cause.into_iter().chain(went_on).collect::<Vec<_>>().join("; ")
}

fn growth(growth: &Growth, predicted: &Predicted) -> String {
    let cause = match growth.activations {
        _ if growth.kind == GrowthKind::Replaced => "each step makes a larger tensor".to_owned(),
        Some((kept, all)) => format!(
            "something holds the loss or an output with its graph: {} % of a step's activations",
            percent(kept, all)
        ),
        None if growth.is_cache => "the keys and values of earlier requests stay".to_owned(),
        None if growth.is_model_state => {
            "it is more than one set of gradients or optimizer state of this model".to_owned()
        }
        None if growth.is_queue => "more comes than goes, as in a queue without a bound".to_owned(),
        None if growth.sites > 1 => {
            format!("{} grow in the same steps", counted(growth.sites, "call site"))
        }
        None => "none of it is freed".to_owned(),
    };
    let outlook = outlook(growth, predicted);
    format!("{cause}; {}", outlook.trim_end_matches('.'))
}

fn gradients(held: &GradientsHeld, is_at_peak: bool) -> String {
    let peak = if is_at_peak {
        format!("without them the peak is {} lower", held.saving)
    } else {
        "the peak is as high without them".to_owned()
    };
    if held.is_frozen { format!("no optimizer has these parameters; {peak}") } else { peak }
}

fn held_too_long(held: &HeldTooLong) -> String {
    let less = |saving: Bytes| match saving.0 {
        0 => "the peak is as high without them".to_owned(),
        _ => format!("without them the peak is {saving} lower"),
    };
    match held {
        HeldTooLong::LastStep { until, saving, .. } => match until {
            Some(event) => format!("they live until {event}; {}", less(*saving)),
            None => less(*saving),
        },
        HeldTooLong::Variable { saving, .. } => less(*saving),
        HeldTooLong::Copies { each, .. } => format!("all have {each}"),
    }
}

fn peak_cause(cause: &PeakCause) -> String {
    match cause {
        PeakCause::LargerStep { others, .. } => {
            format!("without this step the peak would be {others}")
        }
        PeakCause::FirstStep { is_convolution: true, .. } => {
            "cuDNN tries algorithms of convolutions (cudnn.benchmark)".to_owned()
        }
        PeakCause::FirstStep { .. } => "no later step allocates as much there".to_owned(),
        PeakCause::Building { dropped, is_halved, .. } => format!(
            "{dropped} of it are freed before the first forward pass{}",
            if *is_halved { ": weights are converted to half the size on the device" } else { "" }
        ),
        PeakCause::Evaluation { others, .. } => {
            format!("outside of evaluations at most {others} are needed")
        }
        PeakCause::PerPass { .. } => "they stay until the loop is over".to_owned(),
    }
}

/// The largest uses of what was not needed.
fn reserved(peak: &ReservedPeak) -> String {
    let memory = &peak.memory;
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
        if bytes.0 > peak.reserved.0 / 20 {
            parts.push(format!("{bytes} {what}"));
        }
    }
    let mut lines = Vec::new();
    if !parts.is_empty() {
        lines.push(parts.join(", "));
    }
    if let Some(creep) = &peak.creep {
        let steps = grouped(creep.steps as u64);
        lines.push(format!("{} more are reserved a step, in {steps} steps", creep.per_step));
    }
    lines.join("; ")
}

/// What the peak of a device loses without the memory of a finding; `None` where that is not
/// measured.
pub(crate) fn saving(finding: &Finding, predicted: &Predicted) -> Option<Bytes> {
    let saving = match &finding.facts {
        Facts::Growth(_) | Facts::DeadAtPeak(_) => predicted.fixes.first()?.saving_bytes,
        Facts::GradientsHeld(held) if finding.phase.is_some() => held.saving,
        Facts::HeldTooLong(
            HeldTooLong::LastStep { saving, .. } | HeldTooLong::Variable { saving, .. },
        ) => *saving,
        Facts::PendingFree(waits) => Bytes(waits.peak.0.saturating_sub(waits.peak_without.0)),
        Facts::Reserved(peak) => super::simulated::saved(&predicted.simulated, peak.reserved),
        _ => return None,
    };
    Some(saving).filter(|saving| saving.0 > 0)
}

/// `in its backward (LogSoftmaxBackward0)`: how the place of a request follows from its call stack.
pub(super) fn in_backward(entry: &SnapshotEntry, story: &OomStory) -> String {
    let own = site(entry, story.stack);
    if own == text::NO_STACK {
        "in its backward".to_owned()
    } else {
        format!("in its backward ({own})")
    }
}

/// ` at model.py:3 f`, for a caller.
pub(super) fn called_from(site: &str) -> String {
    at_site(site).replacen(" at ", "called from ", 1)
}
