//! The limit of a device that another rank of the run shows.

use crate::rank_of::{rank_of, run_of};
use crate::target::{Target, slot_of};
use serde::{Deserialize, Serialize};
use vramscope_snapshot::DeviceKind;
use vramscope_trace::Exactness;
use vramscope_trace::slicing::now;

/// What PyTorch can have on the device of a rank, from an allocation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLimit {
    /// The folder of the run.
    folder: String,
    /// The rank.
    pub rank: u32,
    /// Bytes.
    pub bytes: u64,
}

impl RankLimit {
    /// The limit that a rank's recording shows. `None` without a rank in the path, without a failed
    /// allocation, and if two failures contradict each other.
    pub fn of(target: Target<'_>) -> Option<Self> {
        let trace = target.trace();
        let (folder, _) = run_of(target.path)?;
        let kind = trace.device.kind;
        // PyTorch for Intel corrects the free memory by a share of the device's (`XPUDevice`).
        let is_known = !kind.is_host()
            && kind != DeviceKind::Xpu
            && trace.reserved_exactness() == Exactness::Exact;
        if !is_known || trace.ooms.is_empty() {
            return None;
        }
        let reserved = now(async |budget| trace.reserved(target.snapshot(), budget).await);
        let mut limits = trace.ooms.iter().filter_map(|oom| {
            // With as much memory free as it takes, the program's own limit was in the way.
            let free = oom.device_free.filter(|free| free.0 < oom.requested.0)?;
            Some(reserved.at(slot_of(Some(oom.event.0))).saturating_add(free.0))
        });
        let bytes = limits.next()?;
        limits.all(|other| other == bytes).then(|| Self {
            folder: folder.to_owned(),
            rank: rank_of(target.path).unwrap_or(0),
            bytes,
        })
    }

    /// The limit for a recording of the same run: the lowest that is not below what the recording
    /// reserved. The ranks of a run usually have equal devices, but their libraries need more or
    /// less memory.
    pub fn for_rank(target: Target<'_>, shown: &[Self]) -> Option<(u32, u64)> {
        let trace = target.trace();
        let (folder, _) = run_of(target.path)?;
        let peak = u64::try_from(trace.reserved_band.peak).unwrap_or(0);
        let of_run = shown.iter().filter(|limit| {
            limit.folder == folder && limit.bytes >= peak && !trace.device.kind.is_host()
        });
        let lowest = of_run.min_by_key(|limit| (limit.bytes, limit.rank))?;
        Some((lowest.rank, lowest.bytes))
    }
}
