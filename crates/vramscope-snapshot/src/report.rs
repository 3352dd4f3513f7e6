//! Warnings about defects of a file, and errors that make it unreadable.

use vramscope_pickle::PickleError;

/// The kinds of [`Warning`]. The first kinds concern the file, those from `Part` on its traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// Bytes follow the end of the pickle.
    TrailingBytes,
    /// An object that only Python code could build was kept closed.
    OpaqueObject,
    /// An integer of more than 128 bits was dropped.
    HugeInteger,
    /// Items for something other than a list, dict or set were dropped.
    StrayItems,
    /// A size or address is missing, negative or not a number.
    NotANumber,
    /// A list of events, blocks, segments or annotations holds something else.
    StrayItem,
    /// A call stack holds something other than a frame.
    NotAFrame,
    /// PyTorch does not define the action.
    UnknownAction,
    /// PyTorch does not define the block state.
    UnknownState,
    /// The file has more streams than a [`StreamId`](crate::StreamId) can number.
    TooManyStreams,
    /// The file has more memory pools than a [`PoolIndex`](crate::PoolIndex) can number.
    TooManyPools,
    /// The blocks of a segment do not add up to its size.
    SegmentSum,
    /// Two final segments overlap.
    SegmentsOverlap,
    /// The sizes add up to more than 2^62 bytes.
    SizesTooLarge,
    /// Final segments follow the traces, so some blocks in an event range may begin too early.
    PartSegments,
    /// Only a range of the events was read.
    Part,
    /// A live block was allocated again: the free is missing from the trace.
    LostFree,
    /// A block is freed, or live at the end, without an alloc since the last free at its address.
    LostAlloc,
    /// A free has another size than its alloc.
    FreeSize,
    /// Requested bytes after the last event differ from those of the final blocks.
    EndsRequested,
    /// The trace reserves more than the final segments hold.
    ReservedBelowZero,
    /// A segment event is missing from the trace.
    SegmentLost,
    /// The trace reserves memory twice, or gives back memory that is still in use.
    SegmentOverlap,
    /// The replay found no free memory that fits a block, or another size than expected.
    Carving,
    /// The replay does not end with the final blocks.
    CarvingEnd,
    /// The trace of pinned host memory has rounded sizes instead of requests.
    HostRequests,
}

/// The curve that a warning turns into an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AffectedCurve {
    /// Requested bytes by event.
    RequestedBytes,
    /// Reserved bytes by event.
    ReservedBytes,
}

impl WarningKind {
    /// The stable name for programs, as in the JSON reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::TrailingBytes => "trailing_bytes",
            Self::OpaqueObject => "opaque_object",
            Self::HugeInteger => "huge_integer",
            Self::StrayItems => "stray_items",
            Self::NotANumber => "not_a_number",
            Self::StrayItem => "stray_item",
            Self::NotAFrame => "not_a_frame",
            Self::UnknownAction => "unknown_action",
            Self::UnknownState => "unknown_state",
            Self::TooManyStreams => "too_many_streams",
            Self::TooManyPools => "too_many_pools",
            Self::SegmentSum => "segment_sum",
            Self::SegmentsOverlap => "segments_overlap",
            Self::SizesTooLarge => "sizes_too_large",
            Self::PartSegments => "part_segments",
            Self::Part => "part",
            Self::LostFree => "lost_free",
            Self::LostAlloc => "lost_alloc",
            Self::FreeSize => "free_size",
            Self::EndsRequested => "ends_requested",
            Self::ReservedBelowZero => "reserved_below_zero",
            Self::SegmentLost => "segment_lost",
            Self::SegmentOverlap => "segment_overlap",
            Self::Carving => "carving",
            Self::CarvingEnd => "carving_end",
            Self::HostRequests => "host_requests",
        }
    }

    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::TrailingBytes,
        Self::OpaqueObject,
        Self::HugeInteger,
        Self::StrayItems,
        Self::NotANumber,
        Self::StrayItem,
        Self::NotAFrame,
        Self::UnknownAction,
        Self::UnknownState,
        Self::TooManyStreams,
        Self::TooManyPools,
        Self::SegmentSum,
        Self::SegmentsOverlap,
        Self::SizesTooLarge,
        Self::PartSegments,
        Self::Part,
        Self::LostFree,
        Self::LostAlloc,
        Self::FreeSize,
        Self::EndsRequested,
        Self::ReservedBelowZero,
        Self::SegmentLost,
        Self::SegmentOverlap,
        Self::Carving,
        Self::CarvingEnd,
        Self::HostRequests,
    ];

    /// The defect, and its effect on what is read.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::TrailingBytes => {
                "Bytes after the end of the pickle. Pages of `trace_plot` always have one to \
                 three. Effect: ignored."
            }
            Self::OpaqueObject => {
                "An object of a class, a set, a call. Effect: not resolved; its place holds \
                 nothing."
            }
            Self::HugeInteger => "A whole number of more than 128 bits. Effect: dropped.",
            Self::StrayItems => {
                "Items added to a value that is neither list nor dict. Effect: dropped."
            }
            Self::NotANumber => {
                "A size or address that is not a number, a negative size, a block at the last \
                 address, or blocks without addresses that two segments share. Effect: 0, or the \
                 address in the first segment."
            }
            Self::StrayItem => {
                "A list of events, blocks, segments, annotations or former uses holds something \
                 else. Effect: an event without a meaning; skipped in the other lists."
            }
            Self::NotAFrame => {
                "A stack holds something else, or is something else. Effect: skipped; a stack that \
                 does not begin with a frame is left out."
            }
            Self::UnknownAction => {
                "An action that PyTorch does not define. Effect: the event is listed only."
            }
            Self::UnknownState => "A block state that no release has. Effect: inactive.",
            Self::TooManyStreams => {
                "More than 65,534 streams. Effect: further ones count as the default stream."
            }
            Self::TooManyPools => {
                "More than 65,534 memory pools. Effect: further ones are unknown."
            }
            Self::SegmentSum => {
                "Blocks that do not add up to their segment's `total_size`. Effect: kept as \
                 written."
            }
            Self::SegmentsOverlap => "Two segments on the same addresses. Effect: kept as written.",
            Self::SizesTooLarge => {
                "Sizes that add up to more than 2^62 bytes. Effect: the largest count as less."
            }
            Self::PartSegments => {
                "Final segments that follow the traces, where only a range of events was read. \
                 Effect: some blocks in the range may begin too early."
            }
            Self::Part => {
                "Only a range of the events was read (`--window`, or a part chosen on the page). \
                 Effect: event numbers count the kept events; block sizes are estimates."
            }
            Self::LostFree => {
                "An allocation on an address that is live. Effect: the old block ends there."
            }
            Self::LostAlloc => {
                "A second completion of an address, or a live final block whose address was \
                 completed. Effect: the block counts from right after that completion."
            }
            Self::FreeSize => {
                "A free of another size than its allocation. Effect: the allocation's size counts."
            }
            Self::EndsRequested => {
                "Requested bytes after the last event are not those of the final blocks. Effect: \
                 reported, with the difference."
            }
            Self::ReservedBelowZero => {
                "The trace reserves more than the final segments explain. Effect: `reserved_bytes` \
                 is too low."
            }
            Self::SegmentLost => {
                "A segment that was reserved and never appears again, or was released and never \
                 existed. Effect: used as far as known."
            }
            Self::SegmentOverlap => {
                "Memory that is reserved twice, or released and still present. Effect: the newer \
                 one counts."
            }
            Self::Carving => {
                "A block that does not fit the free memory at its address, or has another size \
                 than the rules give. Effect: the final size, or the rounded request."
            }
            Self::CarvingEnd => {
                "The replay does not end with the final blocks. Effect: block sizes are estimates."
            }
            Self::HostRequests => {
                "Pinned host memory: a block whose size is a power of two, and whose request is \
                 not in the file. Effect: counts with its size."
            }
        }
    }

    /// Whether reading dropped or changed a value, so that no number of the file is exact.
    pub fn changes_values(self) -> bool {
        matches!(
            self,
            Self::OpaqueObject
                | Self::HugeInteger
                | Self::StrayItems
                | Self::NotANumber
                | Self::StrayItem
                | Self::SizesTooLarge
        )
    }

    /// The curve that is no longer exact after a warning of this kind about a trace.
    pub fn affects(self) -> Option<AffectedCurve> {
        match self {
            Self::LostFree | Self::LostAlloc | Self::EndsRequested | Self::HostRequests => {
                Some(AffectedCurve::RequestedBytes)
            }
            Self::ReservedBelowZero => Some(AffectedCurve::ReservedBytes),
            Self::TrailingBytes
            | Self::OpaqueObject
            | Self::HugeInteger
            | Self::StrayItems
            | Self::NotANumber
            | Self::StrayItem
            | Self::NotAFrame
            | Self::UnknownAction
            | Self::UnknownState
            | Self::TooManyStreams
            | Self::TooManyPools
            | Self::SegmentSum
            | Self::SegmentsOverlap
            | Self::SizesTooLarge
            | Self::PartSegments
            | Self::Part
            | Self::FreeSize
            | Self::SegmentLost
            | Self::SegmentOverlap
            | Self::Carving
            | Self::CarvingEnd => None,
        }
    }
}

/// A defect that reading worked around. The message names the value used instead, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The kind of defect.
    pub kind: WarningKind,
    /// An English sentence about the first occurrence.
    pub message: String,
    /// The first occurrence's offset in the pickle, if it has one.
    pub byte_offset: Option<u64>,
    /// The number of occurrences.
    pub count: u32,
}

/// Collects warnings: one per kind, with the first message and a count.
#[derive(Clone, Debug, Default)]
pub struct Report {
    warnings: Vec<Warning>,
}

impl Report {
    /// Counts one occurrence of `kind`. Only the first occurrence calls `message`.
    pub fn warn(
        &mut self,
        kind: WarningKind,
        byte_offset: Option<u64>,
        message: impl FnOnce() -> String,
    ) {
        self.warn_many(kind, byte_offset, 1, message);
    }

    /// [`Report::warn`] for `count` occurrences.
    pub fn warn_many(
        &mut self,
        kind: WarningKind,
        byte_offset: Option<u64>,
        count: u32,
        message: impl FnOnce() -> String,
    ) {
        match self.warnings.iter_mut().find(|w| w.kind == kind) {
            Some(warning) => warning.count = warning.count.saturating_add(count),
            None => self.warnings.push(Warning { kind, message: message(), byte_offset, count }),
        }
    }

    /// All warnings, in the order of their first occurrence.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether reading dropped or changed a value, so that no number of the file is exact.
    pub fn changes_values(&self) -> bool {
        self.warnings.iter().any(|w| w.kind.changes_values())
    }

    /// Whether some warning makes `curve` an estimate.
    pub fn affects(&self, curve: AffectedCurve) -> bool {
        self.warnings.iter().any(|w| w.kind.affects() == Some(curve))
    }
}

/// What an unreadable file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// The file is something else, such as a checkpoint or a configuration.
    NoSnapshot,
    /// The file is a snapshot that is damaged or incomplete, or too little of it can be read to
    /// rule that out.
    Damaged,
}

/// Why a file cannot be read as a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is not a complete pickle.
    #[error(transparent)]
    Pickle(#[from] PickleError),
    /// The pickle is not a snapshot.
    #[error(
        "this is not a memory snapshot: its root is {found}, \
         expected a dict with `segments` and `device_traces`, or a list of segments"
    )]
    NotASnapshot {
        /// A description of the root.
        found: String,
    },
    /// The file starts like JSON, but is not valid JSON.
    #[error("cannot read this JSON at line {line}, column {column}: {reason}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The JSON parser's message.
        reason: String,
    },
    /// A gzip stream is incomplete or fails its checksum.
    #[error("the gzip stream is damaged after {at} decompressed bytes: {reason}")]
    Gzip {
        /// Decompressed bytes before the error.
        at: u64,
        /// The decompressor's message.
        reason: String,
    },
    /// A zip archive is incomplete or fails a checksum.
    #[error("the zip archive is damaged at byte {at}: {reason}")]
    Zip {
        /// Bytes of the archive before the error.
        at: u64,
        /// What is wrong.
        reason: String,
    },
    /// An HTML page without a snapshot.
    #[error(
        "this HTML page holds no snapshot: no base64 data of `trace_plot` or `segment_plot` \
         (PyTorch 2.1 or later) in {bytes} bytes"
    )]
    Html {
        /// The page's size in bytes.
        bytes: u64,
    },
    /// A page with a picture of memory over time.
    #[error(
        "this page is a picture of torch.profiler's export_memory_timeline; it holds no \
         allocations; record a snapshot"
    )]
    MemoryTimeline,
    /// An HTML page with invalid base64 data.
    #[error("the snapshot in this HTML page is not valid base64 at offset {at}")]
    Base64 {
        /// The offset in the page.
        at: u64,
    },
    /// A file of a known format that is not supported.
    #[error("{what}")]
    Refused {
        /// The format, and the remedy if any.
        what: &'static str,
    },
    /// More rows than the file's length explains, or than PyTorch can write.
    #[error("{found} {what} are more than a snapshot of this size can have: it is malicious")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// Their number.
        found: u64,
    },
    /// Containers inside each other: gzip in gzip, or a page in gzip.
    #[error("this file is packed more than {limit} times")]
    Nested {
        /// The limit.
        limit: u32,
    },
    /// The first bytes match no supported format.
    #[error(
        "this is not a snapshot: it starts with {found}, \
         expected a pickle, JSON or `trace_plot` HTML"
    )]
    Unknown {
        /// The first bytes.
        found: String,
    },
}

impl LoadError {
    /// What the file is. `may_be_snapshot` is [`Reader::may_be_snapshot`](crate::Reader) after the
    /// last byte that was read.
    pub fn fault(&self, may_be_snapshot: bool) -> FileFault {
        match self {
            Self::NotASnapshot { .. }
            | Self::Html { .. }
            | Self::MemoryTimeline
            | Self::Refused { .. }
            | Self::Nested { .. }
            | Self::Unknown { .. } => FileFault::NoSnapshot,
            // Only a page with a snapshot has base64 data under that key.
            Self::Base64 { .. } | Self::TooMany { .. } | Self::Pickle(PickleError::Empty) => {
                FileFault::Damaged
            }
            Self::Pickle(_) | Self::Json { .. } | Self::Gzip { .. } | Self::Zip { .. } => {
                if may_be_snapshot {
                    FileFault::Damaged
                } else {
                    FileFault::NoSnapshot
                }
            }
        }
    }

    /// Where in the unpacked file the error is, in bytes; `None` where that is not known.
    pub fn byte_offset(&self) -> Option<u64> {
        match self {
            Self::Pickle(error) => error.offset(),
            Self::Gzip { at, .. } | Self::Zip { at, .. } | Self::Base64 { at } => Some(*at),
            _ => None,
        }
    }

    /// A remedy for the error, if the message does not name one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Pickle(PickleError::Empty | PickleError::UnexpectedEnd { .. }) => Some(
                "The process may have ended while it wrote the file, or a copy was interrupted. \
                 Copy the file again or take a new snapshot.",
            ),
            Self::Pickle(PickleError::MaxMemory { .. }) => {
                Some("The option --max-memory of the program sets another limit.")
            }
            // A copy would be the same.
            Self::Pickle(PickleError::Memory { .. } | PickleError::LateItems { .. })
            | Self::Json { .. }
            | Self::Gzip { .. }
            | Self::Zip { .. }
            | Self::Html { .. }
            | Self::Base64 { .. }
            | Self::TooMany { .. }
            | Self::Nested { .. }
            | Self::Refused { .. } => None,
            Self::Pickle(_) => {
                Some("Copy the file again. If that does not help, take a new snapshot.")
            }
            Self::NotASnapshot { .. } | Self::MemoryTimeline | Self::Unknown { .. } => {
                Some("Write one with `vramscope record -o runs/42 train.py`.")
            }
        }
    }
}
