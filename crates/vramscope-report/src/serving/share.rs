//! The part of a GPU that a KV cache has, and the flag that asked for it.

use crate::sidecar::launch::{Flag, Launch};
use crate::target::Target;
use serde::{Deserialize, Serialize};
use vramscope_inference::Serving;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// How far a flag may be from what the recording shows, in parts of the GPU: an engine estimates
/// graphs, and rounds its cache to whole blocks.
const TOLERANCE: f64 = 0.02;

/// The GPU of a KV cache, and what asked for its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CacheShare {
    /// Requested bytes of the cache.
    pub bytes: Bytes,
    /// The memory of the GPU.
    pub device_memory: Bytes,
    /// The flag of the engine that asked for this, as it was written; null if none is known to.
    pub flag: Option<String>,
}

impl CacheShare {
    /// The part of the GPU, in percent.
    pub(crate) fn percent(&self) -> u128 {
        let whole = u128::from(self.device_memory.0.max(1));
        (u128::from(self.bytes.0) * 100 + whole / 2) / whole
    }

    /// What follows the words `KV cache`.
    pub(crate) fn words(&self) -> String {
        let flag = self.flag.as_ref().map(|flag| format!(", as `{flag}` asks"));
        format!(" has {} % of the GPU{}", self.percent(), flag.unwrap_or_default())
    }
}

/// The KV cache of an engine on the GPU that the file beside the snapshot names; `None` without
/// either.
pub(crate) async fn share(target: Target<'_>, budget: &mut Budget) -> Option<CacheShare> {
    let memory = target.entry.device_memory(target.index)?;
    let serving = Serving::of(target.entry.evidence(target.index), budget).await?;
    let launch = &target.entry.sidecar()?.launch;
    Some(CacheShare {
        bytes: serving.cache,
        device_memory: Bytes(memory.total_bytes),
        flag: cause(target, &serving, launch),
    })
}

/// The flag that decided about the cache of a recording, if the memory is what it asks for.
pub(super) fn cause(target: Target<'_>, serving: &Serving, launch: &Launch) -> Option<String> {
    if let Some(bytes) = launch.value(Flag::CacheBytes) {
        let is_met = is_within(serving.cache.0 as f64, bytes, bytes);
        return launch.text(Flag::CacheBytes).filter(|_| is_met);
    }
    let memory = target.entry.device_memory(target.index)?;
    let total = memory.total_bytes as f64;
    let outside = memory.other_bytes as f64;
    let fixed = serving.cache.0 as f64 + serving.sum.weights.0 as f64;
    if let Some(part) = launch.value(Flag::Utilization) {
        // Whether graphs, workspaces and the context count depends on the release.
        let least = fixed + serving.activations().0.min(serving.work.bytes.0) as f64;
        let sum = &serving.sum;
        let beside = [sum.graphs, sum.workspaces, sum.other, sum.free, serving.activations()];
        let beside: f64 = beside.iter().map(|bytes| bytes.0 as f64).sum();
        let most = fixed + beside + outside;
        let slack = total * TOLERANCE;
        let is_met = (least - slack..=most + slack).contains(&(part * total));
        return launch.text(Flag::Utilization).filter(|_| is_met);
    }
    let part = launch.value(Flag::StaticFraction)?;
    let is_met = is_within(fixed, part * (total - outside), total);
    launch.text(Flag::StaticFraction).filter(|_| is_met)
}

/// Whether two numbers are the same, as parts of a whole.
fn is_within(a: f64, b: f64, whole: f64) -> bool {
    (a - b).abs() <= whole * TOLERANCE
}
