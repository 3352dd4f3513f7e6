//! The keys of a snapshot's dicts. Each has the same string id in every load.

#![expect(dead_code, reason = "some names only reserve an id")]

use vramscope_pickle::StrId;

macro_rules! keys {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// The initial string table. A key's id is its index.
        pub(crate) const KNOWN: &[&str] = &[$($text),*];
        keys!(@ids 0u32; $($name,)*);
    };
    (@ids $n:expr; $name:ident, $($rest:ident,)*) => {
        pub(crate) const $name: u32 = $n;
        keys!(@ids $n + 1; $($rest,)*);
    };
    (@ids $n:expr;) => {};
}

keys! {
    ACTION = "action", ADDR = "addr", SIZE = "size", STREAM = "stream", TIME_US = "time_us",
    FRAMES = "frames",
    DEVICE_FREE = "device_free", COMPILE_CONTEXT = "compile_context",
    USER_METADATA = "user_metadata", FORWARD_FRAMES = "forward_frames", POOL_ID = "pool_id",
    SEGMENT_POOL_ID = "segment_pool_id", INTERNAL_METADATA = "internal_metadata",
    CATEGORY = "category",
    DEVICE = "device", ADDRESS = "address", TOTAL_SIZE = "total_size",
    ALLOCATED_SIZE = "allocated_size", ACTIVE_SIZE = "active_size",
    REQUESTED_SIZE = "requested_size", SEGMENT_TYPE = "segment_type",
    IS_EXPANDABLE = "is_expandable", BLOCKS = "blocks",
    STATE = "state", HISTORY = "history", REAL_SIZE = "real_size",
    NAME = "name", FILENAME = "filename", LINE = "line", STAGE = "stage",
    FX_NODE_OP = "fx_node_op", FX_NODE_NAME = "fx_node_name", FX_NODE_TARGET = "fx_node_target",
    FX_ORIGINAL_TRACE = "fx_original_trace",
    SEGMENTS = "segments", DEVICE_TRACES = "device_traces",
    ALLOCATOR_SETTINGS = "allocator_settings", EXTERNAL_ANNOTATIONS = "external_annotations",
    HOST_SEGMENTS = "host_segments", HOST_TRACES = "host_traces",
    EMPTY = "", NOT_APPLICABLE = "N/A", START = "START", END = "END", SMALL = "small",
    LARGE = "large",
    ACTIVE_ALLOCATED = "active_allocated", ACTIVE_PENDING_FREE = "active_pending_free",
    ACTIVE_AWAITING_FREE = "active_awaiting_free", INACTIVE = "inactive",
    ALLOC = "alloc", FREE_REQUESTED = "free_requested", FREE_COMPLETED = "free_completed",
    SEGMENT_ALLOC = "segment_alloc", SEGMENT_FREE = "segment_free", SEGMENT_MAP = "segment_map",
    SEGMENT_UNMAP = "segment_unmap", OOM = "oom", SNAPSHOT = "snapshot", ANNOTATE = "annotate",
    FREE = "free", SOURCE_CODE = "source_code", SHAPE_DATA = "shape_data",
    WORKSPACE_SNAPSHOT = "workspace_snapshot",
}

/// The keys of a dict as bits, without ids from 64 on.
pub(crate) fn mask(keys: impl Iterator<Item = StrId>) -> u64 {
    keys.filter(|k| k.0 < 64).fold(0, |mask, key| mask | bit(key.0))
}

pub(crate) const fn bit(key: u32) -> u64 {
    1 << key
}
