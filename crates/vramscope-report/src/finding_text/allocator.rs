//! Words that findings about the allocator share.

use crate::loaded_file::SnapshotEntry;
use crate::text;
use vramscope_inference::Category;
use vramscope_snapshot::{PoolId, PoolIndex, StreamId};
use vramscope_trace::FreeKind;

/// A setting that lets free pieces of one segment grow together. Shown where it is off.
pub(super) const EXPANDABLE: &str = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

/// A setting's JSON text.
pub(super) fn setting<'a>(entry: &'a SnapshotEntry, key: &str) -> Option<&'a str> {
    entry.snapshot.settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// Whether the file says that expandable segments are off.
pub(crate) fn can_expand(entry: &SnapshotEntry) -> bool {
    setting(entry, "expandable_segments") == Some("false")
}

/// `the default pool`, or `pool (0, 1)`.
pub(super) fn pool(pool: Option<PoolId>) -> String {
    match pool {
        None | Some(PoolId::DEFAULT) => "the default pool".to_owned(),
        Some(pool) => format!("pool {pool}"),
    }
}

/// `stream 0x7f00`, or `the default stream`.
pub(super) fn stream(entry: &SnapshotEntry, stream: StreamId) -> String {
    match entry.snapshot.stream(stream) {
        0 => "the default stream".to_owned(),
        handle => format!("stream {handle:#x}"),
    }
}

/// Where free memory is, as far as it differs from `than`: `pool (0, 1)`.
pub(super) fn kind(entry: &SnapshotEntry, kind: FreeKind, than: FreeKind) -> String {
    let mut words = Vec::new();
    if kind.is_small != than.is_small {
        words.push(if kind.is_small { "small segments" } else { "large segments" }.to_owned());
    }
    if kind.pool != than.pool {
        let id = entry.snapshot.pool(kind.pool).filter(|_| kind.pool != PoolIndex::UNKNOWN);
        words.push(pool(id));
    }
    if kind.stream != than.stream {
        words.push(stream(entry, kind.stream));
    }
    words.join(" of ")
}

/// A category in a sentence: `optimizer state`.
pub(super) fn category(category: Category) -> String {
    category.name().replace('_', " ")
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The call site of a stack as a place: ` at model.py:3 f`; empty without a call stack.
pub(super) fn at_site(site: &str) -> String {
    if site == text::NO_STACK { String::new() } else { format!(" at {site}") }
}
