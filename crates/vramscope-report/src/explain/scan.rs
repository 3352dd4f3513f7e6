//! Finds the messages in a log.

use super::figures::{Figures, Size, closed_number, size, sizes};
use super::flat::Flat;
use super::pieces::Piece;
use super::record::{Backend, Kind};

/// A message's figures begin at most this many characters after its first words.
const MAX_LENGTH: usize = 8000;

/// The maximum number of messages that are read from a log.
const MAX_MESSAGES: usize = 100_000;

/// The figures of a serving engine's message about its cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cache {
    pub(super) tokens: Option<u64>,
    pub(super) stored_tokens: Option<u64>,
    pub(super) needed: Option<Size>,
    pub(super) available: Option<Size>,
    pub(super) estimated_tokens: Option<u64>,
    pub(super) free: Option<Size>,
    pub(super) capacity: Option<Size>,
    pub(super) desired: Option<Size>,
    pub(super) requests: Option<u64>,
}

/// A message of a log.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) backend: Option<Backend>,
    pub(super) figures: Figures,
    pub(super) cache: Cache,
    /// The library that failed: `cuBLAS`.
    pub(super) library: Option<&'static str>,
    pub(super) rank: Option<u32>,
    pub(super) line: u32,
    /// The row where it begins, among those of its piece.
    row: usize,
    pub(super) words: String,
    /// Whether PyTorch wrote its old form, `(GPU 0; ...`.
    pub(super) is_old: bool,
    /// The words that the message was found by, in lower case and without white space.
    pub(super) text: String,
}

/// The first words of each message, in lower case and without white space.
const FIRST_WORDS: &[(&str, Kind)] = &[
    ("triedtoallocate", Kind::Allocator),
    // c10/cuda/CUDAMallocAsyncAllocator.cpp
    ("wouldexceedallowedmemory.(outofmemory)", Kind::MallocAsync),
    // aten/src/ATen/mps/MPSAllocator.mm
    ("mpsbackendoutofmemory", Kind::Mps),
    // c10/cuda/CUDAException.cpp, with the driver's own text
    ("cudaerror:outofmemory", Kind::Driver),
    ("hiperror:outofmemory", Kind::Driver),
    ("cudaruntimeerror(2):outofmemory", Kind::Driver),
    ("cudaruntimeerr(2):outofmemory", Kind::Driver),
    ("cudaerrormemoryallocation", Kind::Driver),
    ("cuda_error_out_of_memory", Kind::Driver),
    ("_status_alloc_failed", Kind::Library),
    ("cufft_alloc_failed", Kind::Library),
    ("failedtocudacalloc", Kind::Nccl),
    ("cudafailure'outofmemory'", Kind::Nccl),
    ("cudafailure2'outofmemory'", Kind::Nccl),
    // vllm/v1/core/kv_cache_utils.py and vllm/worker/worker.py
    ("noavailablememoryforthecacheblocks", Kind::CacheEmpty),
    ("notenoughmemory.pleasetrytoincrease--mem-fraction-static", Kind::CacheEmpty),
    ("thanthemaximumnumberoftokensthatcanbestoredinkvcache", Kind::CacheLength),
    ("kvcacheisneeded,whichislargerthantheavailable", Kind::CacheLength),
    ("freememoryondevice", Kind::CacheStart),
    ("outofmemoryoccurredwhenwarmingup", Kind::CacheWarmUp),
    ("can'tallocatememory:youtriedtoallocate", Kind::Host),
    ("notenoughmemory:youtriedtoallocate", Kind::Host),
    ("taskwaskilledduetothenoderunninglowonmemory", Kind::Host),
    ("out-of-memory:killedprocess", Kind::Host),
    ("outofmemory:killedprocess", Kind::Host),
];

/// First words without figures. They count only where no other message is.
const BARE: &[&str] = &["cudaoutofmemory", "hipoutofmemory", "xpuoutofmemory", "outofmemoryerror"];

/// Words beside a figure of PyTorch's allocator, which a message without its first words is found
/// by: whether the figure comes after the words.
const BESIDE: &[(&str, bool)] = &[
    ("totalcapacityof", true),
    ("totalcapactyof", true),
    ("thisprocesshas", true),
    ("oftheallocatedmemory", true),
    ("totalcapacity;", false),
    ("alreadyallocated;", false),
    ("isallocatedbypytorch", false),
    ("isreservedbypytorchbutunallocated", false),
    ("reservedintotalbypytorch", false),
];

/// The messages of a log that is read in pieces.
#[derive(Default)]
pub(super) struct Search {
    found: Vec<Found>,
    /// The first words without figures.
    bare: Option<Found>,
}

impl Search {
    /// Takes the messages that begin in a piece.
    pub(super) fn take(&mut self, piece: &Piece<'_>) {
        let flat = Flat::new(&piece.rows);
        let text = flat.text.as_str();
        let mut starts: Vec<(usize, &str, Start)> = all_words()
            .flat_map(|(words, start)| text.match_indices(words).map(move |(at, w)| (at, w, start)))
            .collect();
        starts.sort_unstable_by_key(|(at, words, _)| (*at, usize::MAX - words.len()));
        let mut end = 0;
        for (at, words, start) in starts {
            if at < end {
                continue;
            }
            let read = match start {
                Start::First(kind) => read(&flat, at, words, kind),
                Start::Beside(is_before) => headless(&flat, end, at, words, is_before),
            };
            if let Some((message, after)) = read {
                end = after;
                let is_own = (piece.first..piece.end).contains(&message.row);
                if is_own && self.found.len() < MAX_MESSAGES {
                    self.found.push(message);
                }
            }
        }
        if self.found.is_empty() && self.bare.is_none() {
            let first =
                BARE.iter().filter_map(|words| Some((text.find(words)?, words.len()))).min();
            self.bare = first.map(|(at, length)| {
                let end = at + length;
                let backend = backend(&text[..end]);
                Found { backend, ..new(&flat, Kind::Bare, at, end) }
            });
        }
    }

    /// All messages, in the order of the log.
    pub(super) fn end(self) -> Vec<Found> {
        if self.found.is_empty() { self.bare.into_iter().collect() } else { self.found }
    }
}

/// How a message is found.
#[derive(Clone, Copy)]
enum Start {
    /// By its first words.
    First(Kind),
    /// By words beside a figure; whether the figure comes after them.
    Beside(bool),
}

/// All words that messages are found by.
fn all_words() -> impl Iterator<Item = (&'static str, Start)> {
    let first = FIRST_WORDS.iter().map(|(words, kind)| (*words, Start::First(*kind)));
    first.chain(BESIDE.iter().map(|(words, is_before)| (*words, Start::Beside(*is_before))))
}

/// A message of PyTorch's allocator that has lost its begin. The words at `at` are beside a figure,
/// and the message before ends at `free`.
fn headless(
    flat: &Flat<'_>,
    free: usize,
    at: usize,
    words: &str,
    is_before: bool,
) -> Option<(Found, usize)> {
    let text = flat.text.as_str();
    let from = boundary(text, at.saturating_sub(160)).max(free);
    let from = text[from..at].rfind('\u{1}').map_or(from, |gap| from + gap + 1);
    let after = at + words.len();
    let is_beside = if is_before {
        size(&text[after..]).is_some()
    } else {
        sizes(&text[from..at]).any(|(.., end)| from + end == at)
    };
    if !is_beside {
        return None;
    }
    let until = boundary(text, (at + MAX_LENGTH).min(text.len()));
    let window = text[from..until].split('\u{1}').next().unwrap_or_default();
    let (figures, length) = Figures::read(window);
    let begin = from + sizes(window).next().map_or(0, |(_, before, ..)| before.len());
    let begin = begin.min(at);
    let end = (from + length).max(after);
    let is_old = figures.reserved.is_some() || words.ends_with(';');
    Some((Found { figures, is_old, ..new(flat, Kind::Allocator, begin, end) }, end))
}

/// A message without figures.
fn new(flat: &Flat<'_>, kind: Kind, begin: usize, end: usize) -> Found {
    // To the end of the sentence, if it is near.
    let rest = &flat.text[end..boundary(&flat.text, (end + 80).min(flat.text.len()))];
    let more = rest.find(['.', ')', '\u{1}']).map_or(0, |at| at + 1);
    Found {
        kind,
        backend: None,
        figures: Figures::default(),
        cache: Cache::default(),
        library: None,
        rank: flat.rank(begin),
        line: flat.line(begin),
        row: flat.index(begin),
        words: shortened(&flat.words(begin, end + more)),
        is_old: false,
        text: flat.text[begin..end].to_owned(),
    }
}

/// At most 600 characters of a message.
fn shortened(words: &str) -> String {
    match words.char_indices().nth(600) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words.trim_end_matches(['\u{1}', '"', '\'', '`']).to_owned(),
    }
}

/// The device that the last words name.
fn backend(before: &str) -> Option<Backend> {
    let names = [
        ("cuda", Backend::Cuda),
        ("hip", Backend::Hip),
        ("xpu", Backend::Xpu),
        ("mps", Backend::Mps),
        ("npu", Backend::Other),
        ("mlu", Backend::Other),
        ("musa", Backend::Other),
    ];
    let words =
        before.strip_suffix("outofmemory").or_else(|| before.strip_suffix("outofmemory."))?;
    names.into_iter().find(|(name, _)| words.ends_with(name)).map(|(_, backend)| backend)
}

/// Reads the message whose first words are at `at`. Returns its end, too.
fn read(flat: &Flat<'_>, at: usize, words: &str, kind: Kind) -> Option<(Found, usize)> {
    let text = flat.text.as_str();
    let after = at + words.len();
    let until = boundary(text, (at + MAX_LENGTH).min(text.len()));
    let window = text[at..until].split('\u{1}').next().unwrap_or_default();
    let from = boundary(text, at.saturating_sub(400));
    let before = text[from..at].rsplit('\u{1}').next().unwrap_or_default();
    match kind {
        Kind::Allocator => allocator(flat, at, before, window),
        Kind::MallocAsync | Kind::Mps => {
            let device = before.rfind("ondevice").filter(|at| before.len() - at < 14);
            let begin = at - device.map_or(0, |at| before.len() - at);
            let (figures, end) = Figures::read(text.get(begin..at + window.len())?);
            let backend = if kind == Kind::Mps { Backend::Mps } else { Backend::Cuda };
            let end = (begin + end).max(after);
            let found = Found { figures, backend: Some(backend), ..new(flat, kind, begin, end) };
            Some((found, end))
        }
        Kind::Driver => {
            let backend = if words.starts_with("hip") { Backend::Hip } else { Backend::Cuda };
            Some((Found { backend: Some(backend), ..new(flat, kind, at, after) }, after))
        }
        Kind::Library => {
            let (library, begin) = library(before, at, words)?;
            let found = Found { library: Some(library), ..new(flat, kind, begin, after) };
            Some((found, after))
        }
        Kind::Nccl => {
            let begin = at - before.rfind("nccl").map_or(0, |at| before.len() - at);
            let mut found = new(flat, kind, begin, after);
            let asked = window.strip_prefix("failedtocudacalloc").and_then(size);
            found.figures.asked = asked.map(|(size, _)| size);
            let end = after + asked.map_or(0, |(_, length)| length);
            // NCCL names the failed call in the line after the driver's error.
            let call = window.find("failedtocudacalloc").filter(|call| (1..300).contains(call));
            if let Some(call) = call {
                let (named, end) = read(flat, at + call, "failedtocudacalloc", kind)?;
                return Some((Found { rank: found.rank.or(named.rank), ..named }, end));
            }
            found.words = shortened(&flat.words(begin, end));
            Some((found, end))
        }
        Kind::CacheEmpty => Some((new(flat, kind, at, after), after)),
        Kind::CacheLength | Kind::CacheStart | Kind::CacheWarmUp => cache(flat, at, words, kind),
        Kind::Host => {
            let mut found = new(flat, kind, at, after);
            let asked = window.strip_prefix(words).and_then(size);
            found.figures.asked = asked.map(|(size, _)| size);
            Some((found, after + asked.map_or(0, |(_, length)| length)))
        }
        Kind::Bare | Kind::Invalid => None,
    }
}

/// A message of a caching allocator: `CUDA out of memory. Tried to allocate ...`.
fn allocator(flat: &Flat<'_>, at: usize, before: &str, window: &str) -> Option<(Found, usize)> {
    let words = "triedtoallocate";
    let after = &window[words.len()..];
    let said = before.rfind("outofmemory").filter(|at| before.len() - at <= 24);
    let begin = match said {
        Some(said) => {
            let named = &before[..said];
            let start = named.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            // Without white space the words run together: only a device's name is wanted.
            let name =
                backend(&before[..said + "outofmemory".len()]).map_or(0, |of| of.word().len());
            at - (before.len() - said) - name.min(named.len() - start.len())
        }
        None => at,
    };
    if after.starts_with("morethan1eb") {
        let end = at + words.len() + "morethan1eb".len();
        let backend = Some(Backend::Cuda);
        return Some((Found { backend, ..new(flat, Kind::Invalid, begin, end) }, end));
    }
    size(after)?;
    let (figures, length) = Figures::read(window);
    let is_device = figures.gpu.is_some() || figures.capacity.is_some();
    if said.is_none() && !is_device {
        // Other programs try to allocate memory, too.
        return None;
    }
    let end = at + length;
    let is_old = after.find('(').is_some_and(|open| open < 16);
    let named = said.and_then(|said| backend(&before[..said + "outofmemory".len()]));
    // What the message advises comes after its figures.
    let until = boundary(&flat.text, (end + 200).min(at + window.len()));
    let mut found =
        Found { figures, is_old, backend: named, ..new(flat, Kind::Allocator, begin, end) };
    flat.text[begin..until].clone_into(&mut found.text);
    Some((found, end))
}

/// The library that could not allocate, and where its name begins.
fn library(before: &str, at: usize, words: &str) -> Option<(&'static str, usize)> {
    let names = [
        ("cublas", "cuBLAS"),
        ("cudnn", "cuDNN"),
        ("cusparse", "cuSPARSE"),
        ("cusolver", "cuSOLVER"),
        ("hipblas", "hipBLAS"),
        ("rocblas", "rocBLAS"),
        ("miopen", "MIOpen"),
    ];
    if words.starts_with("cufft") {
        return Some(("cuFFT", at));
    }
    let of = names.into_iter().find(|(name, _)| before.ends_with(name))?;
    Some((of.1, at - of.0.len()))
}

/// The figures of a serving engine that sizes its cache.
fn cache(flat: &Flat<'_>, at: usize, words: &str, kind: Kind) -> Option<(Found, usize)> {
    let text = flat.text.as_str();
    let from = boundary(text, at.saturating_sub(160));
    let until = boundary(text, (at + 320).min(text.len()));
    let (before, after) = (&text[from..at], &text[at + words.len()..until.max(at + words.len())]);
    let behind = |text: &str, words: &str| -> Option<u64> {
        closed_number(text.split_once(words)?.1.trim_start_matches('('))
    };
    let sized = |text: &str, words: &str| Some(size(text.split_once(words)?.1)?.0);
    let mut cache = Cache::default();
    let mut begin = at;
    let mut end = at + words.len();
    match kind {
        Kind::CacheLength => {
            begin = at - before.rfind("maxseqlen").map_or(0, |at| before.len() - at);
            cache.tokens = behind(before, "maxseqlen(");
            cache.stored_tokens =
                closed_number(after.trim_start_matches('(')).filter(|_| words.ends_with("kvcache"));
            cache.needed = before.rfind('(').and_then(|open| Some(size(&before[open + 1..])?.0));
            cache.available = sized(after, "kvcachememory(");
            cache.estimated_tokens = behind(after, "estimatedmaximummodellengthis");
            cache.tokens.or(cache.stored_tokens)?;
            end += after.find(')').map_or(0, |at| at + 1);
            if let Some(estimate) = after.find("estimatedmaximummodellengthis") {
                let digits = after[estimate..].find('.').unwrap_or(0);
                end = end.max(at + words.len() + estimate + digits);
            }
        }
        Kind::CacheStart => {
            // `Free memory on device cuda:0 (31.44/47.38 GiB) on startup is less than desired GPU
            // memory utilization (0.95, 45.01 GiB)`: the unit of the first number is the second's.
            let (free, rest) = after.split_once('(')?.1.split_once('/')?;
            let (capacity, length) = size(rest)?;
            let unit = rest[..length].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            cache.free = Some(size(&format!("{free}{unit}"))?.0);
            cache.capacity = Some(capacity);
            end += after.len() - rest.len() + length;
            if let Some((_, desired)) = rest.split_once("utilization(") {
                cache.desired = desired.split_once(',').and_then(|of| Some(size(of.1)?.0));
                let length = desired.find(')').map_or(0, |at| at + 1);
                end = at + words.len() + after.len() - desired.len() + length;
            }
        }
        _ => {
            cache.requests = behind(after, "with");
            end += after.find("requests").map_or(0, |at| at + "requests".len());
        }
    }
    Some((Found { cache, ..new(flat, kind, begin, end) }, end))
}

/// The nearest character boundary at or below a byte.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
