//! What the driver's free memory means on devices other than CUDA's.

use crate::loaded_file::SnapshotEntry;
use crate::target::slot_of;
use vramscope_inference::{Finding, OomStory};
use vramscope_snapshot::DeviceKind;
use vramscope_trace::Trace;
use vramscope_trace::slicing::now;
use vramscope_units::{Bytes, EventIndex};

/// Less memory that the driver may have kept is not worth a sentence: it uses some itself.
const MIN_KEPT: Bytes = Bytes(16 << 20);

/// A sentence about the free memory that the driver reports; empty for CUDA.
pub(super) fn driver(entry: &SnapshotEntry, finding: &Finding, story: &OomStory) -> String {
    let Some(trace) = entry.traces.iter().find(|trace| trace.device.device == finding.device)
    else {
        return String::new();
    };
    match trace.device.kind {
        DeviceKind::Rocm => kept(entry, trace).unwrap_or_default(),
        // `getMemoryInfo` of PyTorch for Intel subtracts it on newer compilers and devices.
        DeviceKind::Xpu if story.device_free.is_some() => {
            "On Intel GPUs the free memory is an estimate: PyTorch corrects it by up to 5 % of the \
             device's memory."
                .to_owned()
        }
        _ => String::new(),
    }
}

/// A moment at which the driver's free memory is known. In bytes.
struct Moment {
    event: Option<EventIndex>,
    reserved: u64,
    free: u64,
}

/// Says that PyTorch returned memory, and the driver had no more of it later. `ROCm` 7.2 kept
/// unmapped memory (vllm#37533).
fn kept(entry: &SnapshotEntry, trace: &Trace) -> Option<String> {
    let reserved = now(async |budget| trace.reserved(&entry.snapshot, budget).await);
    let failures = trace.ooms.iter().filter_map(|oom| {
        let reserved = reserved.at(slot_of(Some(oom.event.0)));
        Some(Moment { event: Some(oom.event), reserved, free: oom.device_free?.0 })
    });
    let beside = entry.sidecar().and_then(|sidecar| sidecar.device(trace.device.device));
    let dump = beside.map(|device| Moment {
        event: None,
        reserved: device.reserved_bytes,
        free: device.free_bytes,
    });
    let moments: Vec<Moment> = failures.chain(dump).collect();
    let pairs = moments.iter().zip(moments.get(1..)?);
    let (before, after) = pairs
        .filter(|(before, after)| returned(before, after) >= MIN_KEPT && after.free <= before.free)
        .max_by_key(|(before, after)| returned(before, after))?;
    let failed = before.event?;
    let later = match after.event {
        Some(event) => format!("that at {event}"),
        None => "the dump".to_owned(),
    };
    Some(format!(
        "PyTorch returned {} between the failure at {failed} and {later}, and the driver had no \
         more free memory then: other memory has grown, or ROCm has kept what was returned.",
        returned(before, after),
    ))
}

/// The bytes by which PyTorch reserves less at the later moment.
fn returned(before: &Moment, after: &Moment) -> Bytes {
    Bytes(before.reserved.saturating_sub(after.reserved))
}
