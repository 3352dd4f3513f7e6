//! The columns of each table.

use super::Kind::{Bool, Float32, Int32, Int32List, Int64, Int64List, Name, Text, UInt64};
use super::{Column, TableSchema};

const FILE: Column = Column::new(
    "file",
    Name,
    "Path below the run's folder; `#name` follows if the file has several snapshots",
);
const RANK: Column = Column::new("rank", Int32, "Rank in the path").nullable();

/// The device of a row.
const KEY: &[Column] =
    &[FILE, RANK, Column::new("device", Int32, "Device; 128 is pinned host memory")];

/// The device of a row of `ranks`.
const RANK_KEY: &[Column] = &[
    FILE,
    RANK,
    Column::new("device", Int32, "Device; 128 is pinned host memory; null if the file has none")
        .nullable(),
];

const STACK_ID: Column =
    Column::new("stack_id", Name, "Call stack, as in `stacks`; null if there is none").nullable();
const SITE: Column = Column::new(
    "site",
    Name,
    "Call site with its line: the innermost frame in the user's own code",
);

/// `ranks`.
pub static RANKS: TableSchema = TableSchema {
    name: "ranks",
    row: "a device of a file, or a file that could not be read",
    key: RANK_KEY,
    columns: &[
        Column::new("path", Text, "Path of the file"),
        Column::bytes("file_bytes", "Size of the file"),
        Column::time("modified_us", "When the file was last written").nullable(),
        Column::new("error", Text, "Why the file could not be read").nullable(),
        Column::new("error_kind", Name, "`damaged`, `no_snapshot` or `unreadable`").nullable(),
        Column::new("kind", Name, "`gpu` or `host`").nullable(),
        Column::new("host", Name, "Where the process ran, from the file beside the snapshot")
            .nullable(),
        Column::new("world_size", Int32, "Processes of the job, from the file beside the snapshot")
            .nullable(),
        Column::new("torch", Name, "PyTorch's version, from the file beside the snapshot")
            .nullable(),
        Column::new("settings", Text, "The allocator's settings as JSON").nullable(),
        Column::new("events", Int64, "Events of the trace").nullable(),
        Column::time("start_us", "Time of the first event").nullable(),
        Column::time("end_us", "Time of the last event").nullable(),
        Column::new(
            "coverage",
            Name,
            "How much of the history the window has: `whole`, `partial` or `none`",
        )
        .nullable(),
        Column::new("steps_by", Name, "Evidence for steps").nullable(),
        Column::new("steps", Int32, "Whole steps in the window").nullable(),
        Column::new("allocations", Int64, "Allocations in the window").nullable(),
        Column::new(
            "preexisting_freed",
            Int64,
            "Blocks from before the window that are freed in it",
        )
        .nullable(),
        Column::new(
            "preexisting_live",
            Int64,
            "Blocks from before the window that are live at its end",
        )
        .nullable(),
        Column::new("end_live_blocks", Int64, "Live blocks at the end").nullable(),
        Column::new("segments", Int64, "Segments at the end").nullable(),
        Column::bytes("requested_bytes_start", "`requested_bytes` before the window").nullable(),
        Column::bytes("requested_bytes_peak", "Largest `requested_bytes`").nullable(),
        Column::event("requested_bytes_peak_event", "First event with it").nullable(),
        Column::bytes("requested_bytes_end", "`requested_bytes` after the last event").nullable(),
        Column::new("requested_bytes_exactness", Name, "`exact` or `estimate`").nullable(),
        Column::bytes("active_bytes_start", "`active_bytes` before the window").nullable(),
        Column::bytes("active_bytes_peak", "Largest `active_bytes`").nullable(),
        Column::event("active_bytes_peak_event", "First event with it").nullable(),
        Column::bytes("active_bytes_end", "`active_bytes` after the last event").nullable(),
        Column::new("active_bytes_exactness", Name, "`exact` or `estimate`").nullable(),
        Column::bytes("allocated_bytes_start", "`allocated_bytes` before the window").nullable(),
        Column::bytes(
            "allocated_bytes_peak",
            "Largest `allocated_bytes`: `max_memory_allocated()`",
        )
        .nullable(),
        Column::event("allocated_bytes_peak_event", "First event with it").nullable(),
        Column::bytes("allocated_bytes_end", "`allocated_bytes` after the last event").nullable(),
        Column::new("allocated_bytes_exactness", Name, "`exact` or `estimate`").nullable(),
        Column::bytes("reserved_bytes_start", "`reserved_bytes` before the window").nullable(),
        Column::bytes("reserved_bytes_peak", "Largest `reserved_bytes`").nullable(),
        Column::event("reserved_bytes_peak_event", "First event with it").nullable(),
        Column::bytes("reserved_bytes_end", "`reserved_bytes` after the last event").nullable(),
        Column::new("reserved_bytes_exactness", Name, "`exact` or `estimate`").nullable(),
        Column::bytes("capacity_bytes", "What PyTorch could have on the device").nullable(),
        Column::new("ooms", Int64, "Failed allocations").nullable(),
        Column::new("findings", Int64, "Findings").nullable(),
        Column::new("warnings", Text, "Warnings about the file and the device, a line each")
            .nullable(),
        Column::new("card", Text, "Card of the device in an index, as JSON").nullable(),
    ],
};

/// `blocks`.
pub static BLOCKS: TableSchema = TableSchema {
    name: "blocks",
    row: "a block of a device's window",
    key: KEY,
    columns: &[
        Column::new("address", UInt64, "Address").split(),
        Column::new("reuse", Int32, "Earlier blocks of the window at this address").split(),
        Column::bytes("bytes", "Requested bytes"),
        Column::bytes("block_bytes", "Bytes that the allocator carved out of a segment"),
        Column::new("category", Name, "What it holds"),
        Column::new("confidence", Float32, "Confidence in the category, from 0 to 1"),
        Column::event("alloc_event", "Event that allocated it; null if it was before the window")
            .nullable(),
        Column::event("free_requested_event", "Event that requested the free").split().nullable(),
        Column::event("free_completed_event", "Event that completed the free").split().nullable(),
        Column::time("alloc_us", "Time of `alloc_event`").nullable(),
        Column::time("lifetime_us", "Life within the window").split().nullable(),
        Column::new("step", Int32, "Step that allocated it, from 0").nullable(),
        Column::new("phase", Name, "Phase that allocated it").nullable(),
        Column::new("preexisting", Bool, "Whether it was live before the window"),
        Column::new("live_at_end", Bool, "Whether it is live at the end of the window"),
        Column::new("stream", Int64, "Stream; 0 is the default stream"),
        Column::new("pool", Name, "Memory pool; `(0, 0)` is the default pool").nullable(),
        Column::new("segment_type", Name, "`small` or `large`"),
        STACK_ID,
        Column::new("of_free", Bool, "Whether the stack is that of the free"),
        SITE,
        Column::new("user_metadata", Name, "Text of `_set_memory_metadata` at the allocation")
            .nullable(),
        Column::new("annotations", Name, "Texts of `_annotate_tensor`").nullable(),
        Column::new(
            "tensor_kind",
            Name,
            "Kind of the tensor in it, from the file beside the snapshot",
        )
        .nullable(),
        Column::new("tensor_name", Name, "Name of that tensor").nullable(),
        Column::new("tensor_shape", Name, "Shape of that tensor").nullable(),
        Column::new("tensor_dtype", Name, "Type of that tensor's elements").nullable(),
    ],
};

/// `stacks`.
pub static STACKS: TableSchema = TableSchema {
    name: "stacks",
    row: "a call stack of the part; several parts may have it",
    key: &[],
    columns: &[
        Column::new(
            "stack_id",
            Text,
            "128-bit hash of the frames' files and functions, without lines",
        ),
        Column::new("site", Name, "Call site without its line"),
        Column::new("frame_ids", Int64List, "Frames, innermost first"),
        Column::new(
            "lines",
            Int32List,
            "Lines of the frames of the first such stack; 0 if unknown",
        ),
    ],
};

/// `frames`.
pub static FRAMES: TableSchema = TableSchema {
    name: "frames",
    row: "a frame of the part's stacks; several parts may have it",
    key: &[],
    columns: &[
        Column::new("frame_id", Int64, "64-bit hash of file and function"),
        Column::new("name", Text, "Function"),
        Column::new("file", Name, "File: its path within a package, else its name"),
    ],
};

/// `peak`.
pub static PEAK: TableSchema = TableSchema {
    name: "peak",
    row: "a category and call stack at the peak of a band; the bytes add up to the peak",
    key: KEY,
    columns: &[
        Column::new(
            "band",
            Name,
            "`requested_bytes`, `active_bytes`, `allocated_bytes` or `reserved_bytes`",
        ),
        Column::event("peak_event", "First event after which the band is largest"),
        Column::new("category", Name, "What the blocks hold; null for bytes outside of blocks")
            .nullable(),
        STACK_ID,
        Column::new(
            "site",
            Name,
            "Call site with its line; `cached free` for reserved bytes outside of blocks",
        ),
        Column::bytes("bytes", "Bytes"),
        Column::new("blocks", Int32, "Blocks"),
    ],
};

/// `curve`.
pub static CURVE: TableSchema = TableSchema {
    name: "curve",
    row: "one of at most 2,048 equal parts of a device's window; the bytes are the largest in it",
    key: KEY,
    columns: &[
        Column::new("bucket", Int32, "Number of the part, from 0").delta(),
        Column::event("begin_event", "First event"),
        Column::event("end_event", "Event after the last"),
        Column::time("begin_us", "Time of the first event").nullable(),
        Column::bytes("requested_bytes", "Largest `requested_bytes`").split(),
        Column::bytes("active_bytes", "Largest `active_bytes`").split(),
        Column::bytes("allocated_bytes", "Largest `allocated_bytes`").split(),
        Column::bytes("reserved_bytes", "Largest `reserved_bytes`").delta(),
        Column::bytes("largest_free_bytes", "Largest free piece of any segment").delta(),
    ],
};

/// `segments`.
pub static SEGMENTS: TableSchema = TableSchema {
    name: "segments",
    row: "a segment after the last event",
    key: KEY,
    columns: &[
        Column::new("address", UInt64, "Address"),
        Column::bytes("total_bytes", "Bytes reserved"),
        Column::new("segment_type", Name, "`small` or `large`"),
        Column::new("stream", Int64, "Stream; 0 is the default stream"),
        Column::new("pool", Name, "Memory pool; `(0, 0)` is the default pool").nullable(),
        Column::new("is_expandable", Bool, "Whether it is a mapped range of an expandable segment"),
        Column::bytes("allocated_bytes", "Sizes of allocated blocks"),
        Column::bytes(
            "active_bytes",
            "Sizes of allocated blocks and of blocks whose free is pending",
        ),
        Column::bytes("requested_bytes", "Requested bytes of active blocks"),
        Column::bytes("free_bytes", "Free bytes"),
        Column::bytes("largest_free_bytes", "Largest free piece"),
        STACK_ID,
        SITE,
    ],
};

/// `ooms`.
pub static OOMS: TableSchema = TableSchema {
    name: "ooms",
    row: "a failed allocation",
    key: KEY,
    columns: &[
        Column::event("event", "Event"),
        Column::time("us", "Time of the event").nullable(),
        Column::bytes("requested_bytes", "Bytes requested"),
        Column::bytes("device_free_bytes", "Free bytes that the driver reported").nullable(),
    ],
};

/// `findings`.
pub static FINDINGS: TableSchema = TableSchema {
    name: "findings",
    row: "a finding about a device, without what the model of the allocator says",
    key: KEY,
    columns: &[
        Column::new("id", Text, "Id: a file gives the same on every machine"),
        Column::new("kind", Name, "Kind"),
        Column::new("severity", Name, "`high`, `medium` or `low`"),
        Column::bytes("bytes", "Bytes that it is about"),
        Column::new("blocks", Int32, "Blocks that it is about"),
        Column::new("step", Int32, "Step, from 0; null if it is about several or none").nullable(),
        Column::new("phase", Name, "Phase; null if it is about several or none").nullable(),
        Column::event("first_event", "First event of its evidence").nullable(),
        Column::event("last_event", "Last event of its evidence").nullable(),
        Column::new("site", Name, "Call site with most of the bytes").nullable(),
        STACK_ID,
        Column::new("title", Text, "The finding in a few words"),
        Column::new("text", Text, "Subject, numbers and cause"),
        Column::new("action", Text, "What to do"),
    ],
};

/// `phases`.
pub static PHASES: TableSchema = TableSchema {
    name: "phases",
    row: "a phase of a step",
    key: KEY,
    columns: &[
        Column::new("step", Int32, "Step, from 0; null before the first and after the last")
            .nullable(),
        Column::new("is_whole", Bool, "Whether the window has the whole step"),
        Column::new("phase", Name, "`forward`, `backward`, `optimizer`, `generation` or `other`"),
        Column::event("begin_event", "First event"),
        Column::event("end_event", "Event after the last"),
        Column::bytes("peak_bytes", "Largest `requested_bytes` in the phase"),
        Column::event("peak_event", "First event with it"),
        Column::new("blocks", Int32, "Live blocks at that event"),
        Column::bytes("reserved_growth_bytes", "What `reserved_bytes` grew by"),
        Column::new("site", Name, "Call site of the last allocation up to `peak_event`").nullable(),
        Column::bytes("parameter_bytes", "Parameters at that event"),
        Column::bytes("gradient_bytes", "Gradients"),
        Column::bytes("optimizer_state_bytes", "Optimizer state"),
        Column::bytes("buffer_bytes", "Buffers"),
        Column::bytes("input_bytes", "Inputs"),
        Column::bytes("activation_bytes", "Activations"),
        Column::bytes("temporary_bytes", "Temporaries"),
        Column::bytes("workspace_bytes", "Workspaces"),
        Column::bytes("communication_bytes", "Communication buffers"),
        Column::bytes("cache_bytes", "Caches"),
        Column::bytes("unknown_bytes", "Bytes of unknown category"),
    ],
};

/// `annotations`.
pub static ANNOTATIONS: TableSchema = TableSchema {
    name: "annotations",
    row: "a range of time that the program named, with `record_function` for example",
    key: KEY,
    columns: &[
        Column::new("name", Name, "Name"),
        Column::time("start_us", "Start"),
        Column::time("end_us", "End; the last time in the file if it was not recorded"),
        Column::new("lane", Int32, "Ranges of a lane nest or do not overlap"),
    ],
};
