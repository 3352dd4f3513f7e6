//! The flags of an engine that give its KV cache a size.

use super::ServingRecord;
use crate::sidecar::launch::{Engine, Flag, Launch};
use crate::target::Target;
use serde::Serialize;
use vramscope_inference::Serving;

/// Digits of a part of the GPU. It is rounded down.
const DIGITS: f64 = 1000.0;

/// Flags of an engine, as they are pasted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineFlag {
    /// The engine.
    pub engine: Engine,
    /// The flags: `--kv-cache-memory-bytes 65712160768 --max-num-seqs 98`.
    pub text: String,
    /// What takes them: `vLLM 0.11 and later`, `vLLM, in place of 0.9`.
    pub of: String,
}

/// The flags for a cache of the record's size: those of the engine of the recording, or of all.
pub(super) fn of(
    target: Target<'_>,
    serving: &Serving,
    launch: &Launch,
    record: &ServingRecord,
) -> Vec<EngineFlag> {
    let engines = Engine::ALL.into_iter();
    let engines = engines.filter(|engine| record.engine.is_none_or(|known| known == *engine));
    engines.flat_map(|engine| of_engine(engine, target, serving, launch, record)).collect()
}

fn of_engine(
    engine: Engine,
    target: Target<'_>,
    serving: &Serving,
    launch: &Launch,
    record: &ServingRecord,
) -> Vec<EngineFlag> {
    let (length, most) = match engine {
        Engine::Vllm => (Flag::MaxModelLen, Flag::MaxNumSeqs),
        Engine::Sglang => (Flag::ContextLength, Flag::MaxRunningRequests),
    };
    // Activations of more sequences at once than in the recording are not known.
    let recorded = launch.count(&[most]).unwrap_or(u64::MAX);
    let sequences = record.sequences.filter(|&count| count > 0).map(|count| count.min(recorded));
    let beside = [(most, sequences), (length, record.length)];
    let beside: String = beside
        .into_iter()
        .filter_map(|(flag, value)| Some(format!(" {} {}", flag.name(), value?)))
        .collect();
    let flag = |flag: Flag, value: String, of: String| EngineFlag {
        engine,
        text: format!("{} {value}{beside}", flag.name()),
        of: format!("{}{of}", engine.title()),
    };
    let mut flags = Vec::new();
    if engine == Engine::Vllm {
        let value = record.kv_cache.0.to_string();
        flags.push(flag(Flag::CacheBytes, value, " 0.11 and later".to_owned()));
    }
    let part = match engine {
        Engine::Vllm => utilization(target, launch, record),
        Engine::Sglang => static_fraction(serving, record),
    };
    if let Some((name, part, of)) = part.filter(|of| of.1 > 0.0 && of.1 < 1.0) {
        flags.push(flag(name, ((part * DIGITS).floor() / DIGITS).to_string(), of));
    }
    flags
}

/// The part of the GPU by vLLM's own account. What a release counts differs, so it is the recorded
/// part with the difference of the caches: what lies beside them counts as it did.
fn utilization(
    target: Target<'_>,
    launch: &Launch,
    record: &ServingRecord,
) -> Option<(Flag, f64, String)> {
    record.recorded_flag.as_ref()?;
    let recorded = launch.value(Flag::Utilization)?;
    let total = target.entry.device_memory(target.index)?.total_bytes as f64;
    let beside = recorded * total - record.recorded_kv_cache.0 as f64;
    let part = (beside + record.kv_cache.0 as f64) / record.device_memory.0 as f64;
    // vLLM does not start if less than this is free.
    let part = part.min(record.free_at_start() as f64 / record.device_memory.0 as f64);
    Some((Flag::Utilization, part, format!(", in place of {recorded}")))
}

/// The part of the memory that is free at the start which weights and cache take.
fn static_fraction(serving: &Serving, record: &ServingRecord) -> Option<(Flag, f64, String)> {
    let free = record.free_at_start();
    let part = (serving.sum.weights.0 + record.kv_cache.0) as f64 / free as f64;
    (free > 0).then_some((Flag::StaticFraction, part, String::new()))
}
