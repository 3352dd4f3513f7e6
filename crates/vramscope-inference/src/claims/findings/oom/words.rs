//! The words of failed allocations.

use super::action::{MAX_NAMED, action, largest_sites};
use super::driver::driver;
use super::{Aftermath, Context, Grows, LargerPass, OomStory, Repeated, Verdict};
use crate::backward_site::{BackwardBasis, BackwardSite};
use crate::category::Category;
use crate::claims::findings::reserved::setting_text;
use crate::claims::phrase::Sentence;
use crate::claims::predicted::Simulated;
use crate::claims::replays;
use crate::claims::scene::{Claim, Exhibit, Scene, Spot, SpotWhat, Words};
use crate::claims::words::{capitalized, category, counted, list, pool, ratio, times};
use vramscope_snapshot::{DeviceKind, StackId};
use vramscope_trace::{FreeShare, NO_STACK};
use vramscope_units::{Bytes, grouped};

/// Free memory of fewer bytes is not worth a sentence.
const MIN_NAMED: Bytes = Bytes(16 << 20);

impl Claim for OomStory {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let request = request_line(scene, self);
        let place = scene.place().plain();
        let sentences = [
            format!(
                "Allocating {} failed at {}{place}{}.",
                self.requested,
                self.event,
                request.map(|request| format!(", at {request}")).unwrap_or_default()
            ),
            twins(scene, self),
            room(scene, self),
            outside(scene, self),
            cause(scene, self),
            driver(scene, self),
            climb(scene, self),
            copies(scene, self),
            replays::shortfall(scene.predicted),
            self.settings.iter().map(setting_text).collect::<Vec<_>>().join(" "),
            flush(self),
            holders(scene, self),
            self.larger.map_or_else(String::new, |of| format!("{}.", capitalized(&larger(of)))),
            self.repeated.map_or_else(String::new, |of| format!("{}.", repeated(scene, of))),
            more_failures(self),
            aftermath(self),
            kept(self),
        ];
        let sentences: Vec<String> = sentences.into_iter().filter(|s| !s.is_empty()).collect();
        Words { title: title(scene, self), text: sentences.join(" "), action: action(scene, self) }
    }

    fn why(&self, scene: &Scene<'_>) -> String {
        let larger = self.larger.map(larger);
        let climb = self.climb.map(|climb| {
            let times = times(climb.times as usize);
            format!("each request of this line is larger than the one before, {times} in a row")
        });
        let copies = self.copies.map(|(bytes, _)| {
            format!("this line made copies of parameters or optimizer state, {bytes} on the device")
        });
        let repeated = self.repeated.map(|of| repeated(scene, of));
        let program = repeated.or(larger).or(climb).or(copies);
        let has_replay = scene.predicted.simulated.first().and_then(Simulated::short).is_some();
        let allocator = match self.verdict {
            Verdict::Demand => Some(format!(
                "{} are in use: no layout of the memory has room for the request",
                self.active
            )),
            Verdict::OtherMemory => {
                Some("PyTorch could have that much more earlier in this recording".to_owned())
            }
            // Without a replay the title has the figures. Where nothing is free, or what steps
            // leave fills the memory, pieces are not the cause.
            Verdict::Fragmentation
                if !has_replay || self.usable == Bytes(0) || self.grows.is_some() =>
            {
                None
            }
            Verdict::Fragmentation => Some(format!(
                "{} are free, but in pieces of at most {}",
                self.usable, self.largest_usable
            )),
            Verdict::StrandedPool => Some(
                "free memory belongs to another pool or stream, which this request may not use"
                    .into(),
            ),
            Verdict::Pending => {
                Some("a free piece fits, but waited for another stream (record_stream)".to_owned())
            }
            Verdict::Limit => Some(match limit_of(scene) {
                Some(limit) => format!(
                    "set_per_process_memory_fraction allows {limit}, and {} are reserved",
                    self.reserved,
                ),
                None => format!(
                    "it allows at least {} and less than {} (set_per_process_memory_fraction, or a \
                     like limit)",
                    allowed(scene, self),
                    refused(self)
                ),
            }),
            Verdict::Unknown => None,
        };
        let cause = program.or(allocator);
        let went_on = match self.aftermath {
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

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        let forward = likely_forward(self).and_then(|stack| scene.frame_of(stack));
        let own = scene.finding.stack().and_then(|stack| scene.frame_of(stack));
        let note = match (forward, own) {
            (Some(_), _) => in_backward(scene, self),
            (None, Some(frame)) => scene.inside(frame),
            (None, None) => String::new(),
        };
        let what = SpotWhat::SameSize { requested: self.requested, slot: self.event.0 + 1 };
        Some(Spot { frame: forward.or(own)?, note, what })
    }

    fn exhibit(&self, _scene: &Scene<'_>) -> Exhibit {
        Exhibit::Failure
    }
}

/// The forward line of a request of backward, where it is likely.
fn likely_forward(story: &OomStory) -> Option<StackId> {
    // Without a node, order alone does not tell lines with blocks of one size apart.
    let is_likely = |backward: &&BackwardSite| match backward.basis {
        Some(BackwardBasis::EqualBytes) => true,
        Some(BackwardBasis::GraphOrder) => backward.node.is_some(),
        Some(BackwardBasis::NearestSize) | None => false,
    };
    story.backward.as_ref().filter(is_likely)?.forward
}

/// `in its backward (LogSoftmaxBackward0)`: how the place of a request follows from its call stack.
fn in_backward(scene: &Scene<'_>, story: &OomStory) -> String {
    let own = scene.site(story.stack);
    if own == NO_STACK { "in its backward".to_owned() } else { format!("in its backward ({own})") }
}

/// The title of a failure: its step, its line, and the missing bytes.
fn title(scene: &Scene<'_>, story: &OomStory) -> Sentence {
    let spot = story.spot(scene);
    let place = scene.place().and(match (&spot, &story.twins[..]) {
        (None, [twin, ..]) => match scene.frame_of(*twin) {
            Some(frame) => Sentence::new(", size as at ").and(scene.frame_noun(frame)),
            None => Sentence::default(),
        },
        _ => scene.at(spot.as_ref()),
    });
    let asked = |cause: &str| {
        let title = Sentence::new(cause).and(place.clone()).text(": ");
        title.event(story.requested.brief(), Some(story.event.0))
    };
    let short = |cause: &str, least: &str, bytes: Bytes| {
        let title = Sentence::new(cause).and(place.clone()).text(": ").text(least);
        title.event(format_args!("{} short", bytes.brief()), Some(story.event.0))
    };
    let survived = story.aftermath == Aftermath::Handled;
    let cause = if survived { "Request failed, and the run went on," } else { "Out of memory" };
    let own = scene.predicted.simulated.first().and_then(Simulated::short);
    let title = match (own, story.verdict) {
        (Some(own), _) => short(cause, "", own),
        (None, Verdict::Demand) => short(cause, "at least ", story.excess().unwrap_or_default()),
        (None, Verdict::OtherMemory) => Sentence::new("Memory outside of PyTorch: ")
            .event(format_args!("{} more", story.shrunk.brief()), Some(story.event.0))
            .text(", out of memory")
            .and(place.clone()),
        (None, Verdict::Fragmentation) => asked(cause).text(format_args!(
            " asked, {} free in pieces of at most {}",
            story.usable.brief(),
            story.largest_usable.brief()
        )),
        (None, Verdict::StrandedPool) => {
            let free = story.unusable.iter().map(|share| share.free.0).sum();
            asked(cause).text(format_args!(
                " asked, {} free in other pools or streams",
                Bytes(free).brief()
            ))
        }
        (None, Verdict::Pending) => asked(cause).text(format_args!(
            " asked, {} free but waiting for another stream",
            story.largest_usable.brief()
        )),
        (None, Verdict::Limit) => asked("Limit of this process").text(format_args!(
            " refused with {} free on the GPU",
            story.device_free.unwrap_or_default().brief()
        )),
        (None, Verdict::Unknown) => asked(cause).text(" asked"),
    };
    let grows = story.grows.filter(|_| story.verdict != Verdict::OtherMemory);
    match grows {
        Some(Grows { per_step, steps, words, .. }) => title.text(format_args!(
            "; each {} leaves {} more, {steps} in a row",
            words[0],
            per_step.brief()
        )),
        None => title,
    }
}

/// The line of a request: its call site, and for a request of backward the forward line, as in
/// `LogSoftmaxBackward0 (backward of gpt.py:44 forward)`.
fn request_line(scene: &Scene<'_>, story: &OomStory) -> Option<String> {
    let own = (story.stack != StackId::EMPTY).then(|| scene.site(story.stack));
    let forward = likely_forward(story).map(|stack| scene.site(stack));
    match (own, forward) {
        (Some(own), Some(forward)) => Some(format!("{own} (backward of {forward})")),
        (None, Some(forward)) => Some(format!("the backward of {forward}")),
        (own, None) => own,
    }
}

fn twins(scene: &Scene<'_>, story: &OomStory) -> String {
    if story.twins.is_empty() {
        return String::new();
    }
    let sites: Vec<String> = story.twins.iter().map(|&stack| scene.site(stack)).collect();
    format!("It has the size of the tensors of {}.", list(&sites))
}

fn room(scene: &Scene<'_>, story: &OomStory) -> String {
    let rounding = if story.rounding >= MIN_NAMED {
        format!(", {} of them by rounding", story.rounding)
    } else {
        String::new()
    };
    let in_use = format!("{} are in use{rounding}.", story.active);
    let limit = limit_of(scene).filter(|&limit| story.room.is_some_and(|r| limit < r));
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
fn outside(scene: &Scene<'_>, story: &OomStory) -> String {
    let Some((device, room)) = scene.memory.zip(story.room) else { return String::new() };
    match device.total.checked_sub(room.0) {
        Some(bytes) if bytes >= MIN_NAMED.0 && story.verdict != Verdict::Limit => format!(
            "The device has {}: {} are outside of PyTorch, in {}, libraries or other processes.",
            Bytes(device.total),
            Bytes(bytes),
            match scene.device_kind() {
                DeviceKind::Cuda => "the CUDA context",
                _ => "the driver's context",
            }
        ),
        _ => String::new(),
    }
}

/// Why it failed, by the numbers of the free memory.
fn cause(scene: &Scene<'_>, story: &OomStory) -> String {
    let pieces = if story.usable.0 == 0 {
        "None of the reserved memory that the request may use is free".to_owned()
    } else {
        format!(
            "{} that the request may use are free, in pieces of at most {}",
            story.usable, story.largest_usable
        )
    };
    let elsewhere = elsewhere(scene, story);
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
                    pool(scene.cx.snapshot.pool(story.kind.pool)),
                    scene.stream(story.kind.stream)
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
            limit(scene, story),
        ),
        Verdict::Unknown => {
            format!("{pieces}. The file does not say how much the driver had free. {elsewhere}")
                .trim_end()
                .to_owned()
        }
    }
}

/// How large a limit is: as measured, else by what it let through and what it refused.
fn limit(scene: &Scene<'_>, story: &OomStory) -> String {
    if let Some(bytes) = limit_of(scene) {
        return format!(" of {bytes}");
    }
    let least = allowed(scene, story);
    format!(" of at least {least} and less than {}", refused(story))
}

/// The least size of the process's limit: the peak of `reserved_bytes`. A peak above the refused
/// size shows that the limit has changed; then it is what was reserved at the failure.
pub(super) fn allowed(scene: &Scene<'_>, story: &OomStory) -> Bytes {
    let peak = Bytes(scene.cx.trace.reserved_band.peak.max(0) as u64);
    if peak < refused(story) { peak.max(story.reserved) } else { story.reserved }
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
pub(crate) fn limit_of(scene: &Scene<'_>) -> Option<Bytes> {
    scene.memory?.limit.map(Bytes)
}

fn shrunk(story: &OomStory) -> String {
    format!(
        "Earlier PyTorch could have at least {} more: memory outside of its allocator has grown.",
        story.shrunk
    )
}

/// Free memory that cannot serve the request: `8.79 GiB are free in pool (0, 1) only, which cannot
/// serve it.`
fn elsewhere(scene: &Scene<'_>, story: &OomStory) -> String {
    let named: Vec<_> =
        story.unusable.iter().filter(|share| share.free >= MIN_NAMED).take(MAX_NAMED).collect();
    let place = |share: &FreeShare| scene.free_kind(share.kind, story.kind);
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

fn holders(scene: &Scene<'_>, story: &OomStory) -> String {
    let known = story.categories.iter().filter(|held| held.0 != Category::Unknown);
    let held: Vec<String> =
        known.take(MAX_NAMED).map(|&(of, bytes)| format!("{} {bytes}", category(of))).collect();
    let sites: Vec<String> = largest_sites(scene, story)
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

fn larger(larger: LargerPass) -> String {
    let what = if larger.category == Category::Input { "inputs" } else { "activations" };
    let (bytes, ratio) = (larger.bytes, ratio(larger.bytes, larger.before));
    match larger.step {
        Some(step) => format!(
            "the {what} of this step ({bytes}) are {ratio} x those of step {step}, the largest \
             before"
        ),
        None => format!("the {what} of this pass ({bytes}) are {ratio} x those of any before"),
    }
}

/// Results that wait for a backward pass.
fn repeated(scene: &Scene<'_>, Repeated { line, count, before }: Repeated) -> String {
    format!(
        "{} of {} wait since the last backward(), at most {} in each pass before",
        counted(count as usize, "result"),
        scene.label(line),
        grouped(u64::from(before))
    )
}

/// `Each request of gen.py:40 collect is larger than the one before, 13 times in a row: this one by
/// 393.0 MiB.`
fn climb(scene: &Scene<'_>, story: &OomStory) -> String {
    let Some(climb) = story.climb else { return String::new() };
    format!(
        "Each request of {} is larger than the one before, {} in a row: this one by {}.",
        scene.site(story.stack),
        times(climb.times as usize),
        climb.step
    )
}

/// `train.py:52 save made 40 copies of parameters or optimizer state, 107.2 MiB on the device.`
fn copies(scene: &Scene<'_>, story: &OomStory) -> String {
    let Some((bytes, blocks)) = story.copies else { return String::new() };
    format!(
        "{} made {} of parameters or optimizer state, {bytes} on the device.",
        scene.site(story.stack),
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
