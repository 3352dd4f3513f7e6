//! What the driver's free memory means on devices other than CUDA's.

use super::OomStory;
use crate::claims::scene::Scene;
use vramscope_snapshot::DeviceKind;
use vramscope_trace::slicing::now;
use vramscope_units::{Bytes, EventIndex};

/// Less memory that the driver may have kept is not worth a sentence: it uses some itself.
const MIN_KEPT: Bytes = Bytes(16 << 20);

/// A sentence about the free memory that the driver reports; empty for CUDA.
pub(super) fn driver(scene: &Scene<'_>, story: &OomStory) -> String {
    match scene.device_kind() {
        DeviceKind::Rocm => kept(scene).unwrap_or_default(),
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
fn kept(scene: &Scene<'_>) -> Option<String> {
    let trace = scene.cx.trace;
    let reserved = now(async |budget| trace.reserved(scene.cx.snapshot, budget).await);
    let failures = trace.ooms.iter().filter_map(|oom| {
        let reserved = reserved.at(oom.event.0 + 1);
        Some(Moment { event: Some(oom.event), reserved, free: oom.device_free?.0 })
    });
    let dump = scene.memory.map(|device| Moment {
        event: None,
        reserved: device.reserved,
        free: device.free,
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
