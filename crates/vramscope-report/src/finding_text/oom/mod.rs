//! The words of findings about failed allocations.

mod action;
mod driver;

use super::allocator::{category, kind, list, pool, stream};
use super::reserved::setting_text;
use super::simulated::shortfall;
use super::{Words, counted, times};
use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use crate::simulated::{Predicted, Simulated};
use vramscope_inference::{Aftermath, Category, Context, Finding, OomStory, Verdict};
use vramscope_snapshot::{DeviceKind, StackId};
use vramscope_trace::FreeShare;
use vramscope_units::{Bytes, grouped};

/// The maximum number of categories, call sites or pools in a sentence.
const MAX_NAMED: usize = 3;

/// Free memory of fewer bytes is not worth a sentence.
const MIN_NAMED: Bytes = Bytes(16 << 20);

pub(super) fn oom(
    entry: &SnapshotEntry,
    finding: &Finding,
    story: &OomStory,
    predicted: &Predicted,
) -> Words {
    let request = request_line(entry, story);
    let place = super::headline::place(finding).plain();
    let sentences = [
        format!(
            "Allocating {} failed at {}{place}{}.",
            story.requested,
            story.event,
            request.map(|request| format!(", at {request}")).unwrap_or_default()
        ),
        twins(entry, story),
        room(entry, finding, story),
        outside(entry, finding, story),
        cause(entry, finding, story),
        driver::driver(entry, finding, story),
        climb(entry, story),
        copies(entry, story),
        shortfall(predicted),
        story.settings.iter().map(setting_text).collect::<Vec<_>>().join(" "),
        flush(story),
        holders(entry, finding, story),
        larger(story),
        more_failures(story),
        aftermath(story),
        kept(story),
    ];
    let sentences: Vec<String> = sentences.into_iter().filter(|s| !s.is_empty()).collect();
    Words {
        title: title(entry, finding, story, predicted),
        text: sentences.join(" "),
        action: action::action(entry, finding, story, predicted),
    }
}

/// What failed when, what was asked for, and by how much it was short.
fn title(
    entry: &SnapshotEntry,
    finding: &Finding,
    story: &OomStory,
    predicted: &Predicted,
) -> Sentence {
    let own = predicted.simulated.first().and_then(Simulated::short);
    let short = match (own, story.verdict) {
        (Some(own), _) => format!(", {own} short"),
        (None, Verdict::Demand) => {
            format!(", at least {} short", story.excess().unwrap_or_default())
        }
        (None, Verdict::OtherMemory) => {
            format!(", after memory outside of PyTorch grew by {}", story.shrunk)
        }
        (None, Verdict::Fragmentation) => {
            format!(", {} free in pieces of at most {}", story.usable, story.largest_usable)
        }
        (None, Verdict::StrandedPool) => {
            let free = story.unusable.iter().map(|share| share.free.0).sum();
            format!(", {} free where it may not be used", Bytes(free))
        }
        (None, Verdict::Pending) => {
            format!(", {} free that waited for another stream", story.largest_usable)
        }
        (None, Verdict::Limit) => match limit_of(entry, finding.device) {
            Some(limit) => {
                let over = refused(story).0.saturating_sub(limit.0);
                format!(", {} over the limit of the process", Bytes(over))
            }
            None => format!(
                ", {} free on the device: a limit of the process refused it",
                story.device_free.unwrap_or_default()
            ),
        },
        (None, Verdict::Unknown) => String::new(),
    };
    let began = match story.aftermath {
        Aftermath::Handled => "A request failed, and the run went on,",
        _ => "Out of memory",
    };
    Sentence::new(began)
        .and(super::headline::place(finding))
        .text(": ")
        .event(story.requested, Some(story.event.0))
        .text(format_args!(" asked{short}"))
}

/// The line of a request: its call site, and for a request of backward the forward line, as in
/// `LogSoftmaxBackward0 (backward of gpt.py:44 forward)`.
fn request_line(entry: &SnapshotEntry, story: &OomStory) -> Option<String> {
    let own = (story.stack != StackId::EMPTY).then(|| site(entry, story.stack));
    let forward = super::place::likely_forward(story).map(|stack| site(entry, stack));
    match (own, forward) {
        (Some(own), Some(forward)) => Some(format!("{own} (backward of {forward})")),
        (None, Some(forward)) => Some(format!("the backward of {forward}")),
        (own, None) => own,
    }
}

fn twins(entry: &SnapshotEntry, story: &OomStory) -> String {
    if story.twins.is_empty() {
        return String::new();
    }
    let sites: Vec<String> = story.twins.iter().map(|&stack| site(entry, stack)).collect();
    format!("It has the size of the tensors of {}.", list(&sites))
}

fn room(entry: &SnapshotEntry, finding: &Finding, story: &OomStory) -> String {
    let rounding = if story.rounding >= MIN_NAMED {
        format!(", {} of them by rounding", story.rounding)
    } else {
        String::new()
    };
    let in_use = format!("{} are in use{rounding}.", story.active);
    let limit =
        limit_of(entry, finding.device).filter(|&limit| story.room.is_some_and(|r| limit < r));
    if let Some(limit) = limit.filter(|_| story.verdict != Verdict::Limit) {
        return format!(
            "PyTorch can have {limit} in this process, by set_per_process_memory_fraction: {} are \
             reserved. {in_use}",
            story.reserved,
        );
    }
    match (story.room, story.device_free, story.verdict) {
        (Some(room), Some(free), verdict) if verdict != Verdict::Limit => format!(
            "PyTorch can have {room} on this device: {} are reserved, and the driver has {free} \
             free. {in_use}",
            story.reserved,
        ),
        _ => format!("PyTorch has {} reserved. {in_use}", story.reserved),
    }
}

/// What of the device PyTorch cannot have in this process, where the file beside the snapshot says
/// how much the device has.
fn outside(entry: &SnapshotEntry, finding: &Finding, story: &OomStory) -> String {
    let device = entry.sidecar().and_then(|sidecar| sidecar.device(finding.device));
    let Some((device, room)) = device.zip(story.room) else { return String::new() };
    match device.total_bytes.checked_sub(room.0) {
        Some(bytes) if bytes >= MIN_NAMED.0 && story.verdict != Verdict::Limit => format!(
            "The device has {}: {} are outside of PyTorch, in {}, libraries or other processes.",
            Bytes(device.total_bytes),
            Bytes(bytes),
            match entry.device_kind(finding.device) {
                DeviceKind::Cuda => "the CUDA context",
                _ => "the driver's context",
            }
        ),
        _ => String::new(),
    }
}

/// Why it failed, by the numbers of the free memory.
fn cause(entry: &SnapshotEntry, finding: &Finding, story: &OomStory) -> String {
    let pieces = if story.usable.0 == 0 {
        "None of the reserved memory that the request may use is free".to_owned()
    } else {
        format!(
            "{} that the request may use are free, in pieces of at most {}",
            story.usable, story.largest_usable
        )
    };
    let elsewhere = elsewhere(entry, story);
    let excess = story.excess().unwrap_or_default();
    match story.verdict {
        Verdict::Demand => {
            let shrunk =
                if story.shrunk.0 > 0 { format!(" {}", shrunk(story)) } else { String::new() };
            format!(
                "What is in use and the request exceed this by {excess}, however the memory is \
                 laid out.{shrunk}"
            )
        }
        Verdict::OtherMemory if excess.0 > 0 => {
            format!("What is in use and the request exceed this by {excess}. {}", shrunk(story))
        }
        Verdict::OtherMemory => {
            let lacks = story.segment_lacks().unwrap_or_default();
            format!("The driver lacks {lacks} for a new segment. {}", shrunk(story))
        }
        Verdict::Fragmentation => {
            let lacks = story
                .segment_lacks()
                .map(|lacks| format!(", and the driver lacks {lacks} for a new segment"));
            format!("{pieces}{}. {elsewhere}", lacks.unwrap_or_default()).trim_end().to_owned()
        }
        Verdict::StrandedPool => {
            let own = match story.context {
                Context::Capture => "the pool of a CUDA graph that is captured".to_owned(),
                _ => format!(
                    "{} on {}",
                    pool(entry.snapshot.pool(story.kind.pool)),
                    stream(entry, story.kind.stream)
                ),
            };
            let assumed = if story.is_pool_assumed {
                " The file does not name the pool of the request: the default pool is assumed."
            } else {
                ""
            };
            format!("The request is for {own}. {pieces}. {elsewhere}{assumed}")
        }
        Verdict::Pending => format!(
            "A free piece of {} fits. It waited for another stream when the allocator looked, and \
             the allocator does not look again.",
            story.largest_usable
        ),
        Verdict::Limit => format!(
            "The driver had {} free, enough for the request. So a limit of this process refused \
             it, such as set_per_process_memory_fraction{}, or other memory was freed at that \
             moment.",
            story.device_free.unwrap_or_default(),
            limit(entry, finding, story),
        ),
        Verdict::Unknown => {
            format!("{pieces}. The file does not say how much the driver had free. {elsewhere}")
                .trim_end()
                .to_owned()
        }
    }
}

/// How large a limit is: as measured, else by what it let through and what it refused.
fn limit(entry: &SnapshotEntry, finding: &Finding, story: &OomStory) -> String {
    if let Some(bytes) = limit_of(entry, finding.device) {
        return format!(" of {bytes}");
    }
    let least = allowed(entry, finding.device, story);
    format!(" of at least {least} and less than {}", refused(story))
}

/// The least size of the process's limit: the peak of `reserved_bytes`. A peak above the refused
/// size shows that the limit has changed; then it is what was reserved at the failure.
pub(super) fn allowed(entry: &SnapshotEntry, device: u32, story: &OomStory) -> Bytes {
    let trace = entry.traces.iter().find(|trace| trace.device.device == device);
    let peak = trace.map(|trace| Bytes(trace.reserved_band.peak.max(0) as u64));
    peak.filter(|&peak| peak < refused(story)).unwrap_or_default().max(story.reserved)
}

/// What the request would have reserved of the device.
fn segment(story: &OomStory) -> Bytes {
    story.new_segment.unwrap_or(story.requested)
}

/// Reserved memory with the request: more than the limit.
pub(super) fn refused(story: &OomStory) -> Bytes {
    Bytes(story.reserved.0.saturating_add(segment(story).0))
}

/// The limit of the process on a device, as the file beside the snapshot says.
pub(crate) fn limit_of(entry: &SnapshotEntry, device: u32) -> Option<Bytes> {
    entry.sidecar()?.device(device)?.limit_bytes.map(Bytes)
}

fn shrunk(story: &OomStory) -> String {
    format!(
        "Earlier PyTorch could have at least {} more: memory outside of its allocator has grown.",
        story.shrunk
    )
}

/// Free memory that cannot serve the request: `8.79 GiB are free in pool (0, 1) only, which cannot
/// serve it.`
fn elsewhere(entry: &SnapshotEntry, story: &OomStory) -> String {
    let named: Vec<_> =
        story.unusable.iter().filter(|share| share.free >= MIN_NAMED).take(MAX_NAMED).collect();
    let place = |share: &FreeShare| kind(entry, share.kind, story.kind);
    if let [share] = named.as_slice() {
        let only = if story.usable.0 == 0 { " only" } else { "" };
        return format!(
            "{} are free in {}{only}, which cannot serve the request.",
            share.free,
            place(share)
        );
    }
    let named: Vec<String> =
        named.into_iter().map(|share| format!("{} in {}", share.free, place(share))).collect();
    if named.is_empty() {
        return String::new();
    }
    format!("{} are free, and cannot serve the request.", list(&named))
}

fn flush(story: &OomStory) -> String {
    let flush = story.flush.map(|flush| {
        format!(
            "Before it failed, the allocator returned {} ({}) to the driver.",
            counted(flush.segments, "free segment"),
            flush.bytes
        )
    });
    let retries = (story.retries > 0)
        .then(|| format!("It had made room {} earlier in this step.", times(story.retries)));
    flush.into_iter().chain(retries).collect::<Vec<_>>().join(" ")
}

fn holders(entry: &SnapshotEntry, finding: &Finding, story: &OomStory) -> String {
    let known = story.categories.iter().filter(|held| held.0 != Category::Unknown);
    let held: Vec<String> =
        known.take(MAX_NAMED).map(|&(of, bytes)| format!("{} {bytes}", category(of))).collect();
    let sites: Vec<String> = largest_sites(entry, finding, story)
        .into_iter()
        .map(|(name, bytes)| format!("{name} ({bytes})"))
        .collect();
    let graphs = match story.graph_pools {
        (bytes, pools) if bytes >= MIN_NAMED => format!(
            "{} of CUDA graphs {} {bytes} reserved.",
            counted(pools as usize, "pool"),
            if pools == 1 { "has" } else { "have" }
        ),
        _ => String::new(),
    };
    let graphs = Some(graphs).filter(|graphs| !graphs.is_empty());
    let held = (!held.is_empty()).then(|| format!("Most is held by {}.", list(&held)));
    let sites =
        (!sites.is_empty()).then(|| format!("The largest call sites are {}.", list(&sites)));
    held.into_iter().chain(sites).chain(graphs).collect::<Vec<_>>().join(" ")
}

/// The call sites with most live bytes. The first part of a finding with a call stack is the
/// request.
fn largest_sites(
    entry: &SnapshotEntry,
    finding: &Finding,
    story: &OomStory,
) -> Vec<(String, Bytes)> {
    let skip = usize::from(story.stack != StackId::EMPTY);
    let parts = finding.parts.iter().skip(skip).filter(|part| part.stack != StackId::EMPTY);
    parts.take(MAX_NAMED).map(|part| (site(entry, part.stack), part.bytes)).collect()
}

fn larger(story: &OomStory) -> String {
    let Some(larger) = story.larger else { return String::new() };
    let what = if larger.category == Category::Input { "inputs" } else { "activations" };
    format!(
        "The {what} of this step ({}) are {} x those of step {} ({}), the largest before.",
        larger.bytes,
        ratio(larger.bytes, larger.before),
        larger.step,
        larger.before,
    )
}

/// `2.0`.
pub(super) fn ratio(part: Bytes, whole: Bytes) -> String {
    let tenths = (u128::from(part.0) * 10 + u128::from(whole.0) / 2) / u128::from(whole.0.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// `Each request of gen.py:40 collect is larger than the one before, 13 times in a row: this one by
/// 393.0 MiB.`
fn climb(entry: &SnapshotEntry, story: &OomStory) -> String {
    let Some(climb) = story.climb else { return String::new() };
    format!(
        "Each request of {} is larger than the one before, {} in a row: this one by {}.",
        site(entry, story.stack),
        times(climb.times as usize),
        climb.step
    )
}

/// `train.py:52 save made 40 copies of parameters or optimizer state, 107.2 MiB on the device.`
fn copies(entry: &SnapshotEntry, story: &OomStory) -> String {
    let Some((bytes, blocks)) = story.copies else { return String::new() };
    format!(
        "{} made {} of parameters or optimizer state, {bytes} on the device.",
        site(entry, story.stack),
        if blocks == 1 {
            "1 copy".to_owned()
        } else {
            format!("{} copies", grouped(blocks.into()))
        }
    )
}

/// What the program did after it failed.
fn aftermath(story: &OomStory) -> String {
    match story.aftermath {
        Aftermath::Ended => String::new(),
        Aftermath::Handled => {
            "The run went on: the code that asked took another way at once.".to_owned()
        }
        Aftermath::WentOn { steps: 0 } => "The program caught the error, and went on.".to_owned(),
        Aftermath::WentOn { steps } => format!(
            "The program caught the error, and went on: {} ended after it.",
            counted(steps as usize, "step")
        ),
    }
}

fn more_failures(story: &OomStory) -> String {
    match story.failures - 1 {
        0 => String::new(),
        more if story.event == story.last => {
            format!(
                "{} failed before it in this step, and the run went on.",
                counted(more, "allocation")
            )
        }
        more => format!(
            "{} failed after it and before a step was complete, the last at {}.",
            counted(more, "more allocation"),
            story.last
        ),
    }
}

fn kept(story: &OomStory) -> String {
    let Some((bytes, blocks)) = story.kept else { return String::new() };
    format!(
        "{bytes} of the failed step ({}) are still live at the end, although a later step is \
         complete: the exception keeps the frames.",
        counted(blocks as usize, "block")
    )
}
