//! What PyTorch could have on a device.

use crate::Target;
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, EventIndex};

/// What PyTorch could have on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The bytes.
    pub bytes: Bytes,
    /// The failed allocation that shows them; `None` if they were measured when the snapshot was
    /// written.
    pub event: Option<EventIndex>,
}

/// The capacity as the first failed allocation shows it, else as it was measured beside the
/// snapshot. `None` if neither is there.
pub async fn capacity(target: Target<'_>, budget: &mut Budget) -> Option<Capacity> {
    let trace = target.trace();
    let failed = trace.ooms.iter().find_map(|oom| {
        // With as much memory free as it takes, the program's own limit was in the way.
        let free = oom.device_free.filter(|free| free.0 < oom.requested.0)?;
        Some((oom.event, free))
    });
    let measured = target.entry.device_memory(target.index);
    if let Some((event, free)) = failed {
        let reserved = trace.reserved(target.snapshot(), budget).await;
        let bytes = Bytes(reserved.at(event.0 + 1).saturating_add(free.0));
        // The driver had more than the process may have.
        let limit = measured.and_then(|device| device.limit_bytes).map(Bytes);
        return Some(match limit.filter(|&limit| limit < bytes) {
            Some(bytes) => Capacity { bytes, event: None },
            None => Capacity { bytes, event: Some(event) },
        });
    }
    Some(Capacity { bytes: Bytes(measured?.measured().available()), event: None })
}
