//! The failed request that ended a run.

use vramscope_snapshot::{Action, Snapshot};
use vramscope_trace::Trace;

/// An allocation that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) at: f64,
    pub(crate) bytes: u64,
    pub(crate) stream: u32,
}

/// The allocation that failed and ended the run: the last one, after which nothing is allocated
/// but what a handler of the exception needs.
pub(crate) fn failure(snapshot: &Snapshot, trace: &Trace) -> Option<Failure> {
    let oom = trace.ooms.last()?;
    let rows = trace.device.events.clone();
    let events = &snapshot.events;
    let first = rows.start + oom.event.0 + 1;
    let allocated = (first..rows.end).filter(|&row| events.action(row) == Action::ALLOC).count();
    let row = rows.start + oom.event.0;
    (allocated <= MAX_AFTER).then(|| Failure {
        at: f64::from(oom.event.0),
        bytes: events.size(row).0,
        stream: u32::from(events.stream(row).0),
    })
}

/// A run that allocates more often after a failure has survived it.
const MAX_AFTER: usize = 16;
