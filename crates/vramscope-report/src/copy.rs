//! A copy of a snapshot to pass on: what was read of it, without lines of source.

use crate::loaded_file::SnapshotEntry;
use crate::redact::Redaction;
use vramscope_snapshot::{AsRecorded, Snapshot, write_pickle};

/// Writes the snapshot as a pickle, in pieces. Lines of source are left out.
pub fn pickle(entry: &SnapshotEntry, redaction: Option<&Redaction>, put: &mut dyn FnMut(&[u8])) {
    match redaction {
        Some(redaction) => write_pickle(&entry.snapshot, redaction, put),
        None => write_pickle(&entry.snapshot, &AsRecorded, put),
    }
}

/// Writes a snapshot as a pickle.
pub fn snapshot(snapshot: &Snapshot, put: &mut dyn FnMut(&[u8])) {
    write_pickle(snapshot, &AsRecorded, put);
}

/// The file beside the snapshot as JSON, without lines of source. `None` if there is none, or if it
/// cannot be used.
pub fn sidecar(entry: &SnapshotEntry, redaction: Option<&Redaction>) -> Option<String> {
    let mut copy = entry.sidecar()?.clone();
    copy.sources.clear();
    if let Some(redaction) = redaction {
        copy = redaction.sidecar(&copy);
    }
    serde_json::to_string(&copy).ok()
}

/// Why a copy would not have the numbers of the file; `None` if it has them.
pub fn loss(entry: &SnapshotEntry) -> Option<&'static str> {
    let snapshot = &entry.snapshot;
    if snapshot.devices.iter().any(|device| device.excerpt.is_some()) {
        return Some("only a part of its events was read");
    }
    let is_changed = snapshot.report.warnings().iter().any(|w| w.kind.changes_values());
    is_changed.then_some("values that cannot be read were dropped")
}
