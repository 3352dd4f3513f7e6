//! What is said of a message: its headline, its figures, what may help and what cannot be told.

use super::answer::name;
use super::causes::{About, Sums};
use super::figures::Size;
use super::record::{
    Advice, Backend, Cause, CauseKind, CauseVerdict, CountName, Counted, Figure, FigureName, Kind,
    Message,
};
use super::scan::Found;
use vramscope_units::{Bytes, Count, grouped};

mod bar;
mod cache;

/// Memory outside of PyTorch above which a note says what it is. A CUDA context takes less.
const MUCH_OUTSIDE: u64 = 1 << 30;

/// What the answer says of one message.
pub(super) fn message(found: &Found) -> Message {
    let sums = Sums::new(&found.figures);
    let is_allocator = matches!(found.kind, Kind::Allocator | Kind::MallocAsync | Kind::Mps);
    let causes = if found.kind == Kind::Allocator { sums.causes() } else { Vec::new() };
    let mut said = Message {
        kind: found.kind,
        backend: found.backend,
        headline: String::new(),
        line: found.line,
        count: Count(1),
        ranks: found.rank.into_iter().collect(),
        gpus: found.figures.gpu.into_iter().collect(),
        text: found.words.clone(),
        figures: figures(&sums, found),
        missing: missing(found),
        counts: counts(found),
        processes: sums.processes.clone(),
        bar: if is_allocator { bar::bar(&sums) } else { None },
        cause: if found.kind == Kind::Allocator { sums.main() } else { None },
        causes,
        fixes: Vec::new(),
        no: Vec::new(),
        help: Vec::new(),
        notes: Vec::new(),
    };
    match found.kind {
        Kind::Allocator => allocator(&mut said, &sums, found),
        Kind::MallocAsync => malloc_async(&mut said, &sums),
        Kind::Mps => mps(&mut said, &sums, found),
        Kind::Invalid => said.notes.push(
            "No memory is missing: a size above 1 EiB comes from a negative or overflowed number \
             of elements. The traceback has the line."
                .to_owned(),
        ),
        Kind::Driver | Kind::Library | Kind::Nccl => foreign(&mut said),
        Kind::Host => said.notes.push(
            "This is the host's memory, not the GPU's: a snapshot of GPU memory does not show it."
                .to_owned(),
        ),
        Kind::Bare => {
            said.notes.push("The message has no figures: no cause can be told.".to_owned());
        }
        _ => cache::say(&mut said, found),
    }
    said.headline = headline(&said, &sums, found);
    said
}

/// The headline of messages that are alike.
pub(super) fn headline(said: &Message, sums: &Sums, found: &Found) -> String {
    let device = match said.gpus.as_slice() {
        [] => "the device".to_owned(),
        [one] => format!("GPU {one}"),
        many => format!("{} GPUs", many.len()),
    };
    let asked = sums.asked.map(About::bytes);
    match found.kind {
        Kind::Allocator | Kind::MallocAsync | Kind::Mps => {
            let limit = sums.limit.filter(|_| sums.is_limited() && sums.is_free_enough());
            let limit = limit.or(sums.limit.filter(|_| sums.free.is_none()));
            let free = match (limit, sums.capacity, sums.free) {
                (Some(limit), ..) => Some(format!("{} allowed for this process", limit.bytes())),
                (None, Some(capacity), Some(free)) => {
                    Some(format!("{} free of {}", free.bytes(), capacity.bytes()))
                }
                (None, None, Some(free)) => Some(format!("{} free", free.bytes())),
                (None, ..) => None,
            };
            match (asked, free, sums.capacity) {
                (Some(asked), Some(free), _) => format!("{device}: {asked} asked, {free}"),
                (Some(asked), None, Some(of)) => {
                    format!("{device}: {asked} asked of {}", of.bytes())
                }
                (Some(asked), None, None) => format!("{device}: {asked} asked"),
                (None, Some(free), _) => format!("{device}: out of memory, {free}"),
                (None, None, Some(of)) => format!("{device}: out of memory of {}", of.bytes()),
                (None, None, None) => format!("{device}: out of memory"),
            }
        }
        Kind::Invalid => "more than 1 EiB asked: the size is wrong".to_owned(),
        Kind::Driver => "the driver is out of device memory, the message has no figures".to_owned(),
        Kind::Library => {
            format!("{} got no memory for itself", found.library.unwrap_or("a library"))
        }
        Kind::Nccl => match asked {
            Some(asked) => format!("NCCL got no {asked} for its buffers"),
            None => "NCCL got no memory for its buffers".to_owned(),
        },
        Kind::Host => match asked {
            Some(asked) => format!("the host, not the GPU, has no {asked}"),
            None => "the host, not the GPU, is out of memory".to_owned(),
        },
        Kind::Bare => "out of memory, the message has no figures".to_owned(),
        _ => cache::headline(found),
    }
}

/// Each figure with its meaning.
fn figures(sums: &Sums, found: &Found) -> Vec<Figure> {
    let (read, cache) = (&found.figures, &found.cache);
    let about = |size: Option<Size>| size.map(About::from);
    let asked = match found.kind {
        Kind::Nccl => "NCCL asked the driver for it",
        Kind::Host => "the program asked the host for it",
        _ => "PyTorch asked the driver for it: the tensor's size rounded up to a whole segment",
    };
    let free = "free on the device when the request had failed, for any process";
    let all = [
        (FigureName::Asked, sums.asked, false, asked),
        (
            FigureName::Capacity,
            sums.capacity.or(about(cache.capacity)),
            false,
            "the device's memory",
        ),
        (FigureName::Free, sums.free.or(about(cache.free)), false, free),
        (
            FigureName::Allocated,
            sums.allocated,
            false,
            "blocks of live tensors, as torch.cuda.memory_allocated() counts them",
        ),
        (
            FigureName::Unallocated,
            sums.unallocated,
            read.unallocated.is_none(),
            "PyTorch holds it for tensors to come. It lies in segments with live tensors, or in \
             private pools: PyTorch has returned the rest",
        ),
        (
            FigureName::Reserved,
            sums.reserved,
            read.reserved.is_none(),
            "all that PyTorch's allocator holds: torch.cuda.memory_reserved()",
        ),
        (
            FigureName::PrivatePools,
            about(read.private_pools),
            false,
            "the part of the allocated memory in private pools, as CUDA graphs have",
        ),
        (
            FigureName::Limit,
            sums.limit,
            false,
            "what this process may reserve: torch.cuda.set_per_process_memory_fraction",
        ),
        (
            FigureName::ThisProcess,
            sums.process,
            read.process.is_none(),
            "all memory of this process: of PyTorch, the CUDA context, NCCL and other libraries",
        ),
        (
            FigureName::OutsidePytorch,
            sums.outside.or(about(read.outside)),
            read.outside.is_none(),
            "this process's memory that is not PyTorch's: CUDA context, NCCL, other libraries",
        ),
        (
            FigureName::OtherProcesses,
            sums.listed_others.filter(|_| !sums.processes.is_empty()),
            true,
            "the listed processes without this one",
        ),
        (
            FigureName::NotPytorch,
            sums.not_pytorch.filter(|_| sums.process.is_none()),
            true,
            "neither free nor PyTorch's: this process's CUDA context and libraries, and other \
             processes",
        ),
        (
            FigureName::CacheNeeded,
            about(cache.needed),
            false,
            "the KV cache of one longest request",
        ),
        (
            FigureName::CacheAvailable,
            about(cache.available),
            false,
            "what is left for the KV cache",
        ),
        (FigureName::Desired, about(cache.desired), false, "what the engine was told to take"),
    ];
    let figure = |(name, value, derived, meaning): (FigureName, Option<About>, bool, &str)| {
        let value = value?;
        Some(Figure {
            name,
            bytes: value.bytes(),
            rounding: value.rounding(),
            derived,
            meaning: meaning.to_owned(),
        })
    };
    all.into_iter().filter_map(figure).collect()
}

/// The figures that a message of PyTorch's allocator has after its last one: it is cut before them.
fn missing(found: &Found) -> Vec<FigureName> {
    use FigureName::{Allocated, Asked, Capacity, Free, Reserved, Unallocated};
    let read = &found.figures;
    let old = [
        (Asked, read.asked),
        (Capacity, read.capacity),
        (Allocated, read.allocated),
        (Free, read.free),
        (Reserved, read.reserved.or(read.unallocated)),
    ];
    let new = [
        (Asked, read.asked),
        (Capacity, read.capacity),
        (Free, read.free),
        (Allocated, read.allocated),
        (Unallocated, read.unallocated),
    ];
    let all = match (found.kind, found.is_old) {
        (Kind::Allocator, true) => &old,
        (Kind::Allocator, false) => &new,
        _ => return Vec::new(),
    };
    // Messages of Intel's GPUs may end with the free memory.
    let end = if found.backend == Some(Backend::Xpu) && !found.is_old { 3 } else { all.len() };
    let known = all[..end].iter().rposition(|(_, figure)| figure.is_some()).map_or(0, |at| at + 1);
    all[known..end].iter().map(|(name, _)| *name).collect()
}

/// What the message is cut before or after, in words.
fn cuts(said: &Message, found: &Found) -> Option<String> {
    let names: Vec<&str> = said.missing.iter().map(|figure| name(*figure)).collect();
    match (found.figures.asked, names.as_slice()) {
        (Some(_), []) => None,
        (None, []) => Some("The message begins after the request. Paste all of it.".to_owned()),
        (_, names) => {
            let figures = if names.len() == 1 { "the figure" } else { "the figures" };
            let names = names.join(", ");
            Some(format!("The message ends before {figures}: {names}. Paste all of it."))
        }
    }
}

fn counts(found: &Found) -> Vec<Counted> {
    let cache = &found.cache;
    let all = [
        (CountName::MaxTokens, cache.tokens),
        (CountName::StoredTokens, cache.stored_tokens),
        (CountName::EstimatedTokens, cache.estimated_tokens),
        (CountName::Requests, cache.requests),
    ];
    let counted = |(name, count): (CountName, Option<u64>)| {
        Some(Counted { name, count: Count(i64::try_from(count?).ok()?) })
    };
    all.into_iter().filter_map(counted).collect()
}

fn advice(change: impl Into<String>, effect: impl Into<String>) -> Advice {
    Advice { change: change.into(), effect: effect.into() }
}

/// The lines that record a run.
fn recording(said: &mut Message) {
    said.help.push("vramscope record -o runs/oom train.py ARGS".to_owned());
    said.help
        .push("with vramscope.record(\"runs/oom\"):   # in code, around what fails".to_owned());
}

/// The variable of PyTorch's settings, as the message names it.
fn variable(found: &Found) -> &'static str {
    let names = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];
    let named = names.into_iter().find(|name| found.text.contains(&name.to_ascii_lowercase()));
    named.unwrap_or("PYTORCH_CUDA_ALLOC_CONF")
}

fn allocator(said: &mut Message, sums: &Sums, found: &Found) {
    let verdict = |kind: CauseKind| -> Option<&Cause> {
        said.causes.iter().find(|cause| cause.cause == kind)
    };
    let is = |kind, wanted| verdict(kind).is_some_and(|cause| cause.verdict == wanted);
    let (mut fixes, mut no, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let is_cuda = matches!(found.backend, None | Some(Backend::Cuda | Backend::Hip));
    if is(CauseKind::Limit, CauseVerdict::Shown) {
        fixes.extend(more_allowed(sums));
    }
    if is(CauseKind::OtherProcesses, CauseVerdict::Shown) {
        let others = said.processes.iter().filter(|process| process.is_this == Some(false));
        let named: Vec<String> =
            others.clone().take(3).map(|process| process.pid.to_string()).collect();
        let more = match others.count().saturating_sub(3) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        fixes.push(advice(
            format!("end or move the other processes: {}{more}", named.join(", ")),
            "this request fits",
        ));
        said.help
            .push("nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv".to_owned());
    }
    let settings = "expandable_segments:True, max_split_size_mb";
    if is(CauseKind::Fragmentation, CauseVerdict::Possible) && is_cuda {
        let names_split = found.text.contains("max_split_size_mb");
        let setting = match (found.is_old, names_split) {
            (false, _) => Some("expandable_segments:True"),
            (true, true) => Some("max_split_size_mb:128"),
            // A version before these settings.
            (true, false) => None,
        };
        let unused = sums.unallocated.unwrap_or_default();
        let effect = match sums.asked {
            Some(asked) if unused.reaches(asked) => "may serve this request",
            _ => "at best just serves this request",
        };
        fixes.extend(
            setting.map(|setting| advice(format!("{}={setting}", variable(found)), effect)),
        );
        notes.push(
            "Whether the unused memory is in pieces, of another stream or in a private pool cannot \
             be told: a recording shows it."
                .to_owned(),
        );
    } else if let Some(missing) = sums.missing().filter(|_| is_cuda)
        && missing.surely_above(About::default())
    {
        let effect = format!("{} short, even without any hole", missing.words());
        no.push(advice(settings, effect));
    }
    if is_cuda {
        no.push(advice("torch.cuda.empty_cache()", "PyTorch does so before this error"));
    }
    notes.extend(cuts(said, found));
    notes.extend(cannot_be_told(said, sums));
    notes.extend(facts(said, sums, found));
    said.fixes = fixes;
    said.no = no;
    said.notes = notes;
    if is_cuda {
        recording(said);
        if let Some(held) = sums.allocated.filter(|held| held.surely_above(About::default())) {
            said.notes.push(format!(
                "What holds the {} cannot be told from a message: a recording shows each line.",
                held.bytes()
            ));
        }
    }
}

/// The fraction that the request needs, if the device has as much.
fn more_allowed(sums: &Sums) -> Option<Advice> {
    let (limit, capacity) = (sums.limit?.bytes(), sums.capacity?.bytes());
    let needed = sums.reserved.or(sums.allocated)?.plus(sums.asked?);
    let hundredths = |bytes: u64| (u128::from(bytes) * 100).checked_div(u128::from(capacity.0));
    let most = needed.bytes().0.saturating_add(needed.rounding().0);
    let least = hundredths(most)? + 1;
    let now = (u128::from(limit.0) * 100 + u128::from(capacity.0) / 2) / u128::from(capacity.0);
    let is_there = !sums.asked?.surely_above(sums.free?);
    (least <= 100 && is_there).then(|| {
        advice(
            format!(
                "torch.cuda.set_per_process_memory_fraction(0.{least:02}) or more, 0.{now:02} now"
            )
            .replace("0.100", "1.0"),
            "this request fits",
        )
    })
}

/// What the figures leave open.
fn cannot_be_told(said: &Message, sums: &Sums) -> Vec<String> {
    let mut notes = Vec::new();
    let open = |kind: CauseKind| {
        said.causes
            .iter()
            .find(|cause| cause.cause == kind && cause.verdict == CauseVerdict::CannotBeTold)
    };
    let is_possible = said
        .causes
        .iter()
        .any(|cause| cause.cause == CauseKind::Limit && cause.verdict != CauseVerdict::Excluded);
    if let Some(cause) = open(CauseKind::Fragmentation) {
        notes.push(format!("Fragmentation cannot be told: {}.", cause.text));
    }
    if sums.is_free_enough() && !is_possible {
        let limit = match sums.limit {
            Some(_) => "",
            None => " Some versions do not print the limit of set_per_process_memory_fraction.",
        };
        notes.push(format!(
            "Why it failed cannot be told: {} were free, enough for the request. The figure is \
             read after the failure.{limit}",
            sums.free.unwrap_or_default().bytes()
        ));
    }
    if let Some(cause) = open(CauseKind::OtherProcesses) {
        notes.push(format!("Other processes cannot be told: {}.", cause.text));
    }
    if said.cause.is_none() && notes.is_empty() {
        notes.push("The figures do not show the cause.".to_owned());
    }
    notes
}

/// Facts about the figures that many misread.
fn facts(said: &Message, sums: &Sums, found: &Found) -> Vec<String> {
    let mut notes = Vec::new();
    let asked = sums.asked.map_or(0, |asked| asked.bytes().0);
    let is_segment = matches!(found.backend, Some(Backend::Cuda | Backend::Hip | Backend::Xpu));
    match asked >> 20 {
        2 if is_segment && asked == 2 << 20 => notes.push(
            "2.00 MiB is a segment: PyTorch asks for it for any tensor of at most 1 MiB."
                .to_owned(),
        ),
        20 if is_segment && asked == 20 << 20 => notes.push(
            "20.00 MiB is a segment: PyTorch asks for it for any tensor of 1 to 10 MiB.".to_owned(),
        ),
        _ => {}
    }
    if sums.is_beyond_device {
        notes.push(
            "PyTorch holds more than the device has: the driver keeps a part in the host's memory \
             (Windows, WSL), or an allocator maps more than it backs (vLLM's sleep mode)."
                .to_owned(),
        );
    }
    if let Some(pools) = found.figures.private_pools {
        notes.push(format!(
            "{} are in private pools (CUDA graphs): memory that is unused there serves only them.",
            Bytes(pools.bytes)
        ));
    }
    if let Some(outside) = sums.outside.filter(|outside| outside.bytes().0 >= MUCH_OUTSIDE) {
        notes.push(format!(
            "This process holds {} outside of PyTorch (CUDA context, NCCL, other libraries): no \
             snapshot shows them.",
            outside.words()
        ));
    }
    notes.extend(contexts(said));
    notes
}

/// Other processes that are as large as CUDA contexts and alike.
fn contexts(said: &Message) -> Option<String> {
    let others: Vec<u64> = said
        .processes
        .iter()
        .filter(|process| process.is_this == Some(false))
        .map(|process| process.bytes.0)
        .filter(|bytes| (200 << 20..800 << 20).contains(bytes))
        .collect();
    let (least, most) = (others.iter().min()?, others.iter().max()?);
    (others.len() > 1 && most - least <= most / 10).then(|| {
        format!(
            "{} processes hold {} each, as a CUDA context does. If they are ranks of this job, \
             call torch.cuda.set_device(local_rank) before all other CUDA calls.",
            grouped(others.len() as u64),
            Bytes(*most)
        )
    })
}

fn malloc_async(said: &mut Message, sums: &Sums) {
    said.causes = sums.causes();
    said.causes.retain(|cause| cause.verdict == CauseVerdict::Shown);
    said.cause = said.causes.first().map(|cause| cause.cause);
    recording(said);
    said.notes.extend(cannot_be_told(said, sums));
    said.notes.push(
        "The allocator backend:cudaMallocAsync records no history: record without this setting."
            .to_owned(),
    );
}

fn mps(said: &mut Message, sums: &Sums, found: &Found) {
    // MPS writes a limit only where it and the request are more than that
    // (aten/src/ATen/mps/MPSAllocator.mm).
    let held = sums.allocated.unwrap_or_default();
    let outside = found.figures.outside.map_or(About::default(), About::from);
    if let Some(limit) = sums.limit {
        let request =
            sums.asked.map_or("the request".to_owned(), |of| format!("{} asked", of.bytes()));
        said.cause = Some(CauseKind::Limit);
        said.causes.push(Cause {
            cause: CauseKind::Limit,
            verdict: CauseVerdict::Shown,
            bytes: sums.asked.map(|asked| held.plus(outside).plus(asked).minus(limit).bytes()),
            text: format!(
                "{} of MPS, {} of others and {request} are more than the {} allowed",
                held.bytes(),
                outside.bytes(),
                limit.bytes()
            ),
        });
    }
    said.notes.push("PyTorch records no memory history of MPS.".to_owned());
}

/// Requests that PyTorch's allocator did not make.
fn foreign(said: &mut Message) {
    let whose = match said.kind {
        Kind::Driver => {
            "The request is not of PyTorch's allocator: the CUDA context, a kernel, a CUDA graph, \
             pinned memory or a library asked. The traceback names the call."
        }
        Kind::Nccl => {
            "NCCL's buffers lie outside of PyTorch's memory: they need what PyTorch leaves free."
        }
        _ => "A library's memory lies outside of PyTorch's: it needs what PyTorch leaves free.",
    };
    said.notes.push(whose.to_owned());
    if said.kind != Kind::Driver || said.backend == Some(Backend::Cuda) {
        said.notes.push(
            "PyTorch empties its cache for its own requests only: torch.cuda.empty_cache() before \
             this call helps if memory_reserved() is well above memory_allocated()."
                .to_owned(),
        );
    }
    if said.kind == Kind::Library {
        said.notes.push(
            "A kernel that failed before can end in this error: CUDA_LAUNCH_BLOCKING=1 shows it."
                .to_owned(),
        );
    }
    said.notes
        .push("Which process holds the memory cannot be told: nvidia-smi lists them.".to_owned());
    said.help.push("nvidia-smi".to_owned());
    recording(said);
}
