//! What an inference engine can give its KV cache on a GPU, and the flags that say so.
//!
//! The run is replayed with a cache that takes all the rest. What the allocator cannot use then is
//! a part of the sum. CUDA graphs are counted once: as their pools.

mod flags;
mod share;
mod text;

pub use flags::EngineFlag;
pub use share::CacheShare;
pub(crate) use share::share;

use crate::derived::Derived;
use crate::sidecar::launch::{Engine, Flag, Launch};
use crate::target::Target;
use crate::what_if::{CONTEXT, Options};
use serde::Serialize;
use vramscope_inference::{Serving, WhatIf};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The part of the memory that moves, in percent, that stays free: the least error that a replay is
/// held to where more than settings changed. Weights and cache do not move. Activations, graphs,
/// workspaces and what lies outside of PyTorch depend on requests that the run did not see.
const MOVES_PERCENT: u64 = 3;

/// The sizes in which PyTorch reserves memory for small blocks, and for a large one alone.
const STEP: u64 = 2 << 20;

/// `what-if` and `peak --by pool`: the KV cache that an engine can have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServingRecord {
    /// Why there is no answer; null if there is one.
    pub declined: Option<&'static str>,
    /// The engine whose flags the recorded command has; null if nothing shows it.
    pub engine: Option<Engine>,
    /// The memory of the GPU.
    pub device_memory: Bytes,
    /// What takes it beside the KV cache. With the cache, these add up to the GPU's memory.
    pub parts: Vec<ServingPart>,
    /// What is left for the KV cache.
    pub kv_cache: Bytes,
    /// The KV cache of the recording.
    pub recorded_kv_cache: Bytes,
    /// The flag of the recording that decided about the cache; null if none is known to.
    pub recorded_flag: Option<String>,
    /// The tokens of the recorded cache; null if neither the command nor the user says it.
    pub recorded_tokens: Option<u64>,
    /// Bytes of the cache for each token, rounded up; null without these.
    pub bytes_per_token: Option<Bytes>,
    /// The length of each sequence, in tokens; null if it is not known.
    pub length: Option<u64>,
    /// The most sequences of this length; null without bytes for each token.
    pub sequences: Option<u64>,
    /// Flags to paste, the most direct first.
    pub flags: Vec<EngineFlag>,
    /// The sum, and what it rests on, in sentences.
    pub text: Vec<String>,
}

/// A part of the memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServingPart {
    /// `weights`, `activations`, `CUDA graphs`, `workspaces`, `other blocks`, `fragments` (what the
    /// allocator cannot use for the cache), `outside PyTorch` or `margin`.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The name of the part that PyTorch cannot have.
const OUTSIDE: &str = "outside PyTorch";

/// The GPU of the question.
#[derive(Clone, Copy)]
struct Gpu {
    total: u64,
    /// What PyTorch can have.
    available: u64,
}

/// The answer for a device of a recording; `None` if no engine with a KV cache runs on it, or
/// nothing says on which GPU.
pub async fn record(
    target: Target<'_>,
    options: &Options,
    budget: &mut Budget,
) -> Option<ServingRecord> {
    let entry = target.entry;
    let gpu = Gpu::of(target, options)?;
    for derived in [Derived::Carving, Derived::Categories, Derived::Steps] {
        entry.derive(derived, target.index, budget).await;
    }
    let serving = Serving::of(entry.evidence(target.index), budget).await?;
    entry.derive(Derived::WhatIf, target.index, budget).await;
    let launch = entry.sidecar().map(|sidecar| sidecar.launch.clone()).unwrap_or_default();
    let model = entry.what_if(target.index);
    let answer = match model.filter(|model| model.calibration.is_equal()) {
        _ if !target.trace().ooms.is_empty() => Err(FAILED),
        Some(model) => sum(&serving, model, gpu, budget).await,
        None => Err(NOT_REPLAYED),
    };
    let declined = answer.as_ref().err().copied();
    let (parts, kv_cache) = answer.unwrap_or_default();
    let mut record = ServingRecord {
        declined,
        engine: launch.engine().or_else(|| engine_of(target, &serving)),
        device_memory: Bytes(gpu.total),
        parts,
        kv_cache,
        recorded_kv_cache: serving.cache,
        recorded_flag: share::cause(target, &serving, &launch),
        recorded_tokens: tokens(&launch, options),
        bytes_per_token: None,
        length: options.length.or_else(|| launch.count(&[Flag::MaxModelLen, Flag::ContextLength])),
        sequences: None,
        flags: Vec::new(),
        text: Vec::new(),
    };
    if declined.is_none() {
        record.count_sequences(&launch);
        record.flags = flags::of(target, &serving, &launch, &record);
    }
    record.text = text::sentences(&record, &serving, &launch);
    Some(record)
}

const FAILED: &str = "an allocation failed. Record a run with a smaller cache, which shows what \
                      requests need";
const NOT_REPLAYED: &str = "the recording begins after its allocation, or the model of the \
                            allocator does not meet it. Record from before the weights are loaded";
const NOTHING_LEFT: &str = "weights and activations leave nothing for a KV cache on this GPU";

/// What takes the GPU beside the cache, and what is left for that; else why there is no answer.
async fn sum(
    serving: &Serving,
    model: &WhatIf,
    gpu: Gpu,
    budget: &mut Budget,
) -> Result<(Vec<ServingPart>, Bytes), &'static str> {
    let own = [
        ("weights", serving.sum.weights.0),
        ("activations", serving.activations().0),
        ("CUDA graphs", serving.sum.graphs.0),
        ("workspaces", serving.sum.workspaces.0),
        ("other blocks", serving.sum.other.0),
    ];
    let needs = own.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let left = gpu.available.saturating_sub(needs);
    // Each block of the cache is a segment of its own. Multiples of a segment's unit leave nothing
    // to its rounding.
    let unit = STEP * serving.blocks.len() as u64;
    let tried = left / unit * unit;
    if tried == 0 {
        return Err(NOTHING_LEFT);
    }
    let sizes = (serving.cache, Bytes(tried));
    let least = model.least_with_cache(&serving.blocks, sizes, Bytes(gpu.available), budget);
    let least = least.await.ok_or(NOT_REPLAYED)?;
    // The replayed requests may need less than the profile run, whose activations count in full.
    let unneeded = serving.activations().0 - serving.work.bytes.0;
    let fragments = least.0.saturating_sub(tried + needs - unneeded);
    let outside = gpu.total - gpu.available;
    let moves = needs - serving.sum.weights.0 + outside;
    // Other requests may need one segment more of each kind, and move more.
    let mut margin = model.settings.large_segment_size + STEP + moves * MOVES_PERCENT / 100;
    if !serving.has_equal_blocks {
        margin += unit;
    }
    let cache = left.saturating_sub(fragments + margin) / unit * unit;
    if cache == 0 {
        return Err(NOTHING_LEFT);
    }
    // What multiples leave is free, too.
    let margin = left - fragments - cache;
    let rest = [("fragments", fragments), (OUTSIDE, outside), ("margin", margin)];
    let parts = own.into_iter().chain(rest).filter(|(_, bytes)| *bytes > 0);
    let parts = parts.map(|(name, bytes)| ServingPart { name, bytes: Bytes(bytes) });
    Ok((parts.collect(), Bytes(cache)))
}

impl Gpu {
    /// The GPU that was asked for, else that of the recording.
    fn of(target: Target<'_>, options: &Options) -> Option<Self> {
        let measured = target.entry.device_memory(target.index);
        let own = measured.map(|memory| Self {
            total: memory.total_bytes,
            available: memory.measured().available().min(memory.total_bytes),
        });
        // What lies outside of PyTorch goes with the process, not with the GPU.
        let outside = own.map_or(CONTEXT, |own| own.total - own.available);
        let asked =
            options.memory().map(|total| Self { total, available: total.saturating_sub(outside) });
        let gpu = asked.or(own);
        match (options.pytorch_memory, gpu) {
            (Some(available), Some(gpu)) => {
                Some(Self { available: available.min(gpu.total), ..gpu })
            }
            (Some(available), None) => Some(Self { total: available, available }),
            (None, gpu) => gpu,
        }
    }
}

/// The engine whose code allocated the cache: a program may start it without a command of its own.
fn engine_of(target: Target<'_>, serving: &Serving) -> Option<Engine> {
    let snapshot = target.snapshot();
    let mut files = snapshot.stack(serving.stack).map(|frame| snapshot.text(frame.file));
    files.find_map(|file| {
        Engine::ALL.into_iter().find(|engine| file.contains(&format!("/{}/", engine.name())))
    })
}

/// The tokens of the recorded cache, as the user or the command says it.
fn tokens(launch: &Launch, options: &Options) -> Option<u64> {
    let blocks =
        || launch.count(&[Flag::Blocks])?.checked_mul(block_tokens(launch, launch.engine()));
    options.cache_tokens.or_else(|| launch.count(&[Flag::TotalTokens])).or_else(blocks)
}

/// The tokens that a sequence takes at once: those of a block.
fn block_tokens(launch: &Launch, engine: Option<Engine>) -> u64 {
    let usual = if engine == Some(Engine::Sglang) { 1 } else { 16 };
    launch.count(&[Flag::BlockSize, Flag::PageSize]).unwrap_or(usual)
}

impl ServingRecord {
    /// What PyTorch can have, in bytes.
    fn free_at_start(&self) -> u64 {
        let outside = self.parts.iter().find(|part| part.name == OUTSIDE);
        self.device_memory.0.saturating_sub(outside.map_or(0, |part| part.bytes.0))
    }

    /// Fills in what the cache holds.
    fn count_sequences(&mut self, launch: &Launch) {
        let Some(tokens) = self.recorded_tokens else { return };
        let each = self.recorded_kv_cache.0.div_ceil(tokens);
        self.bytes_per_token = Some(Bytes(each));
        let Some(length) = self.length else { return };
        let block = block_tokens(launch, self.engine);
        let whole = length.div_ceil(block).saturating_mul(block);
        self.sequences =
            each.checked_mul(whole).filter(|&all| all > 0).map(|all| self.kv_cache.0 / all);
    }
}
