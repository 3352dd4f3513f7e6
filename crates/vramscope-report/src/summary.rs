//! `vramscope summary`: the key figures of each file, with a documented JSON form.

use crate::band::BandKind;
use crate::target::{Target, event_of, slot_of, time_of};
use crate::{LoadedFile, SnapshotEntry, rank_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vramscope_trace::{Coverage, Exactness, Trace};
use vramscope_units::{Bytes, EventIndex, Micros, PeakEvent, SignedBytes};

/// `vramscope.summary/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The schema's name and version.
    pub schema: &'static str,
    /// One summary per snapshot. Most files contain one snapshot.
    pub files: Vec<FileSummary>,
    /// Files of searched folders that are no snapshots.
    pub skipped_files: usize,
}

impl Summary {
    /// Collects the summaries of files.
    pub fn new(files: Vec<FileSummary>, skipped_files: usize) -> Self {
        Self { schema: "vramscope.summary/1", files, skipped_files }
    }
}

/// The summary of one snapshot.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSummary {
    /// The path as given, followed by `#name` if the file contains several snapshots.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// Stored size of the file in bytes.
    pub bytes: u64,
    /// Why the file could not be read; null if it was read.
    pub error: Option<ErrorSummary>,
    /// Warnings about the file and its devices.
    pub warnings: Vec<WarningSummary>,
    /// The number of starts and ends of annotated ranges.
    pub annotations: usize,
    /// Distinct frames in use.
    pub frames: u32,
    /// Distinct call stacks in use, without the empty one.
    pub stacks: u32,
    /// Devices with events or segments.
    pub devices: Vec<DeviceSummary>,
}

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorSummary {
    /// What failed, where, and what was expected.
    pub message: String,
    /// A remedy; null if there is none.
    pub hint: Option<String>,
    /// What the file is.
    pub kind: ErrorKind,
    /// Where the error is, in bytes of the unpacked file; null if that is not known.
    pub byte_offset: Option<u64>,
}

/// What an unreadable file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum ErrorKind {
    /// Something else than a snapshot. In a folder such a file is skipped.
    NoSnapshot,
    /// A snapshot that is damaged or incomplete, or too little is readable to rule that out.
    Damaged,
    /// The file cannot be opened or read.
    Unreadable,
}

/// A warning about a file or a device.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WarningSummary {
    /// The stable name of the kind.
    pub code: &'static str,
    /// The warning in words, with the place of its first occurrence.
    pub message: String,
    /// The device whose trace it is about; null if it is about the file.
    pub device: Option<u32>,
    /// Byte offset in the pickle of the first occurrence; null if unknown.
    pub byte_offset: Option<u64>,
    /// The number of occurrences.
    pub count: u32,
}

/// The summary of one device.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceSummary {
    /// The device's ordinal; 128 for pinned host memory.
    pub device: u32,
    /// `gpu`, or `host` for pinned host memory.
    pub kind: &'static str,
    /// `rocm`, `xpu`, `npu` or `mtia`, where the file or the file beside it tells; absent for CUDA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<&'static str>,
    /// The number of trace events.
    pub events: usize,
    /// The number of trace events by action.
    pub actions: BTreeMap<String, u32>,
    /// Times of the first and the last event in microseconds since the Unix epoch, as running
    /// maxima of `time_us`; null without a clock.
    pub window_us: Option<[i64; 2]>,
    /// The number of segments at the end.
    pub segments: usize,
    /// `whole`, `partial` or `none`.
    pub coverage: &'static str,
    /// The number of `alloc` events.
    pub allocations_in_window: u32,
    /// Blocks from before the window that are freed in it.
    pub preexisting_freed: u32,
    /// Blocks from before the window that are live at the end.
    pub preexisting_live: u32,
    /// Active blocks of the final segments.
    pub end_live_blocks: u32,
    /// Bytes requested by the program.
    pub requested_bytes: BandSummary,
    /// Block sizes of blocks that are not yet free.
    pub active_bytes: BandSummary,
    /// Block sizes of blocks whose free was not yet requested. The peak is
    /// `torch.cuda.max_memory_allocated()`.
    pub allocated_bytes: BandSummary,
    /// Bytes that the allocator reserved from the driver.
    pub reserved_bytes: BandSummary,
    /// Out-of-memory events.
    pub ooms: Vec<OomSummary>,
}

/// The figures of one band, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct BandSummary {
    /// Before the first event.
    pub start: SignedBytes,
    /// The largest value.
    pub peak: SignedBytes,
    /// The first event after which the peak is reached, from 0; -1 is the state before the window.
    pub peak_event: PeakEvent,
    /// The time of `peak_event`; null without a clock, and before the window.
    pub peak_us: Option<Micros>,
    /// After the last event.
    pub end: SignedBytes,
    /// `exact` or `estimate`.
    pub exactness: Exactness,
}

/// An out-of-memory event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct OomSummary {
    /// The event's index in the trace.
    pub event: EventIndex,
    /// Requested bytes.
    pub requested: Bytes,
    /// Free bytes reported by the driver; null if not recorded.
    pub device_free: Option<Bytes>,
}

/// The summaries of a file: one per snapshot, or one with the error.
pub fn summarize(
    path: &str,
    bytes: u64,
    result: &Result<LoadedFile, ErrorSummary>,
) -> Vec<FileSummary> {
    match result {
        Ok(file) => file.entries.iter().map(|e| of_entry(file, e)).collect(),
        Err(error) => vec![FileSummary {
            path: path.to_owned(),
            rank: rank_of(path),
            bytes,
            error: Some(error.clone()),
            ..FileSummary::default()
        }],
    }
}

/// The summary of one snapshot of a file.
pub fn of_entry(file: &LoadedFile, entry: &SnapshotEntry) -> FileSummary {
    let snapshot = &entry.snapshot;
    FileSummary {
        path: entry.path.clone(),
        rank: rank_of(&file.path),
        bytes: file.bytes,
        error: None,
        warnings: warnings(entry, true),
        annotations: snapshot.annotations.len(),
        frames: snapshot.used.frames,
        stacks: snapshot.used.stacks,
        devices: (0..entry.traces.len()).map(|i| device(entry, i)).collect(),
    }
}

/// The code of the warning that the file beside a snapshot is not used.
const SIDECAR_FAULT: &str = "sidecar";
/// The code of the warning that the given dimensions of the model are not used.
const DIMS_FAULT: &str = "dims";

/// The warnings of a snapshot: first about the file, then about each device. Those of block sizes
/// only if `is_carved`, which computes the sizes.
pub fn warnings(entry: &SnapshotEntry, is_carved: bool) -> Vec<WarningSummary> {
    let warning = |device: Option<u32>, w: &vramscope_snapshot::Warning| WarningSummary {
        code: w.kind.name(),
        message: w.message.clone(),
        device,
        byte_offset: w.byte_offset,
        count: w.count,
    };
    let file_warnings = entry.snapshot.report.warnings().iter().map(|w| warning(None, w));
    let device_warnings = entry.traces.iter().enumerate().flat_map(|(i, t)| {
        let of_sizes = is_carved.then(|| &entry.carving(i).warnings);
        let all = t.warnings.iter().chain(of_sizes.into_iter().flatten());
        all.map(move |w| warning(Some(t.device.device), w))
    });
    let faults =
        [(SIDECAR_FAULT, entry.sidecar_fault()), (DIMS_FAULT, entry.widths_fault())].into_iter();
    let faults = faults.filter_map(|(code, message)| {
        Some(WarningSummary { code, message: message?, device: None, byte_offset: None, count: 1 })
    });
    file_warnings.chain(faults).chain(device_warnings).collect()
}

/// The name of a coverage in JSON.
pub fn coverage(of: Coverage) -> &'static str {
    match of {
        Coverage::Whole => "whole",
        Coverage::Partial => "partial",
        Coverage::None => "none",
    }
}

fn device(entry: &SnapshotEntry, index: usize) -> DeviceSummary {
    let target = Target { path: &entry.path, entry, index };
    let trace = target.trace();
    let band = |kind: BandKind| BandSummary::of(target, kind);
    // Made-up events have the names of others.
    let mut actions = BTreeMap::new();
    for &(action, count) in &trace.actions {
        *actions.entry(entry.snapshot.action_name(action).into_owned()).or_insert(0) += count;
    }
    DeviceSummary {
        device: trace.device.device,
        kind: trace.device.kind.name(),
        backend: trace.device.kind.backend(),
        events: trace.device.events.len(),
        actions,
        window_us: trace
            .clock
            .as_ref()
            .map(|clock| [clock.start.0, clock.start.0 + clock.span() as i64]),
        segments: trace.device.segments.len(),
        coverage: coverage(trace.coverage),
        allocations_in_window: trace.allocations_in_window,
        preexisting_freed: trace.preexisting_freed,
        preexisting_live: trace.preexisting_live,
        end_live_blocks: trace.end_live_blocks,
        requested_bytes: band(BandKind::Requested),
        active_bytes: band(BandKind::Active),
        allocated_bytes: band(BandKind::Allocated),
        reserved_bytes: band(BandKind::Reserved),
        ooms: ooms(trace),
    }
}

/// The out-of-memory events of a trace.
pub fn ooms(trace: &Trace) -> Vec<OomSummary> {
    let row = |o: &vramscope_trace::Oom| OomSummary {
        event: o.event,
        requested: o.requested,
        device_free: o.device_free,
    };
    trace.ooms.iter().map(row).collect()
}

impl BandSummary {
    /// The figures of a band on a device.
    pub fn of(target: Target<'_>, kind: BandKind) -> Self {
        let (band, exactness) = kind.of(target);
        let slot = slot_of(band.peak_event);
        Self {
            start: SignedBytes(band.start),
            peak: SignedBytes(band.peak),
            peak_event: PeakEvent(event_of(slot)),
            peak_us: time_of(target.trace(), slot).map(Micros),
            end: SignedBytes(band.end),
            exactness,
        }
    }
}
