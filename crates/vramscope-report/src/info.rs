//! `vramscope info`: how a snapshot was recorded: settings, pools, streams, steps, provenance.

use crate::SnapshotEntry;
use crate::Target;
use crate::derived::Derived;
use crate::dry::DryRun;
use crate::optimizations::{OptimizationRecord, optimizations};
use crate::sidecar::{DeviceMemory, Sidecar};
use crate::summary::WarningSummary;
use serde::Serialize;
use std::collections::BTreeMap;
use vramscope_snapshot::{DeviceKind, Stage};
use vramscope_trace::Coverage;
use vramscope_trace::slicing::Budget;
use vramscope_units::grouped;

/// `vramscope.info/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Info {
    /// The schema's name and version.
    pub schema: &'static str,
    /// One record per snapshot.
    pub files: Vec<FileInfo>,
    /// Files of searched folders that are no snapshots.
    pub skipped_files: usize,
}

impl Info {
    /// Collects the records of files.
    pub fn new(files: Vec<FileInfo>, skipped_files: usize) -> Self {
        Self { schema: "vramscope.info/1", files, skipped_files }
    }
}

/// The recording of one snapshot.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileInfo {
    /// The file's path.
    pub path: String,
    /// Size of the decompressed pickle or JSON in bytes.
    pub bytes: u64,
    /// Distinct call stacks in use.
    pub stacks: u32,
    /// Distinct frames in use.
    pub frames: u32,
    /// `allocator_settings` as dotted keys, with their values as JSON text. Empty before PyTorch
    /// 2.3.
    pub settings: Vec<(String, String)>,
    /// Stream handles; 0 is the default stream.
    pub streams: Vec<i64>,
    /// Memory pools; `[0, 0]` is the default pool.
    pub pools: Vec<[u64; 2]>,
    /// Annotated ranges by name, with the number of times each was started.
    pub annotations: BTreeMap<String, u32>,
    /// Warnings about the file and its devices.
    pub warnings: Vec<WarningSummary>,
    /// Devices with events or segments.
    pub devices: Vec<DeviceInfo>,
    /// What the file beside the snapshot says; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessInfo>,
}

/// The process that was recorded, from the file beside the snapshot. Fields that it lacks are null.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessInfo {
    /// Why the snapshot was written.
    pub reason: Option<String>,
    /// The dry run that it is of; absent for a run on a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry: Option<DryRun>,
    /// The rank.
    pub rank: Option<u32>,
    /// The number of processes of the job.
    pub world_size: Option<u32>,
    /// Where the process ran.
    pub host: Option<String>,
    /// The version of PyTorch.
    pub torch: Option<String>,
    /// The version of CUDA that PyTorch was built with.
    pub cuda: Option<String>,
    /// The newest version of CUDA that the driver supports.
    pub driver: Option<String>,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub alloc_conf: Option<String>,
    /// The last step that ended, as the program counts.
    pub last_step: Option<u64>,
    /// The devices that the process used.
    pub devices: Vec<DeviceMemory>,
    /// The walk through the references that hold blocks; null if none was recorded.
    pub holders: Option<HoldersInfo>,
}

/// The walk through the references that hold blocks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldersInfo {
    /// False where time or size has cut it.
    pub complete: bool,
    /// False where autograd graphs and gradients were not read.
    pub graph: bool,
    /// Blocks whose holders it looked for.
    pub blocks: usize,
    /// Objects that it visited.
    pub objects: u64,
    /// How long the program waited.
    pub seconds: f64,
}

impl ProcessInfo {
    fn of(sidecar: &Sidecar) -> Self {
        Self {
            reason: sidecar.reason.clone(),
            dry: sidecar.dry.as_deref().cloned(),
            rank: sidecar.rank,
            world_size: sidecar.world_size,
            host: sidecar.host.clone(),
            torch: sidecar.torch.clone(),
            cuda: sidecar.cuda.clone(),
            driver: sidecar.driver.clone(),
            alloc_conf: sidecar.alloc_conf.clone(),
            last_step: sidecar.steps.last().map(|end| end.step),
            devices: sidecar.devices.clone(),
            holders: sidecar.holders.as_ref().map(|of| HoldersInfo {
                complete: of.complete,
                graph: of.graph,
                blocks: of.blocks.len(),
                objects: of.objects,
                seconds: of.seconds,
            }),
        }
    }
}

/// The recording of one device.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceInfo {
    /// The device's ordinal; 128 for pinned host memory.
    pub device: u32,
    /// `gpu`, or `host` for pinned host memory.
    pub kind: &'static str,
    /// `rocm`, `xpu`, `npu` or `mtia`, where the file or the file beside it tells; absent for CUDA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<&'static str>,
    /// The number of trace events.
    pub events: usize,
    /// True if events have times (PyTorch 2.2 and later).
    pub has_clock: bool,
    /// Microseconds from the first event to the last; null without a clock.
    pub window_us: Option<u64>,
    /// `whole`, `partial` or `none`.
    pub coverage: &'static str,
    /// The coverage in words.
    pub provenance: String,
    /// The evidence for steps: `profiler_step`, `optimizer_step`, `optimizer_update`
    /// or `rhythm`; `repetition` where nothing shows a backward pass; null if no steps were found.
    pub steps_by: Option<&'static str>,
    /// The number of whole steps or repetitions in the window.
    pub steps: usize,
    /// Memory optimizations that the recording tells about, those that are on first.
    pub optimizations: Vec<OptimizationRecord>,
    /// Pinned host memory at the end; null for other devices.
    pub pinned: Option<PinnedInfo>,
}

/// Pinned host memory after the last event, in bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PinnedInfo {
    /// Bytes requested by the program, as far as the file tells.
    pub requested_bytes: i64,
    /// Bytes that PyTorch keeps pinned, in use or not.
    pub pinned_bytes: i64,
}

/// How a snapshot was recorded.
pub async fn info(path: &str, entry: &SnapshotEntry, budget: &mut Budget) -> FileInfo {
    let snapshot = &entry.snapshot;
    let mut annotations = BTreeMap::new();
    for annotation in snapshot.annotations.iter().filter(|a| a.stage == Stage::Start) {
        *annotations.entry(snapshot.text(annotation.name).into_owned()).or_insert(0) += 1;
    }
    let mut devices = Vec::with_capacity(entry.traces.len());
    for index in 0..entry.traces.len() {
        devices.push(device(Target { path, entry, index }, budget).await);
    }
    FileInfo {
        path: path.to_owned(),
        bytes: snapshot.bytes,
        stacks: snapshot.used.stacks,
        frames: snapshot.used.frames,
        settings: snapshot.settings.clone(),
        streams: snapshot.streams.clone(),
        pools: snapshot.pools.iter().map(|p| [p.0, p.1]).collect(),
        annotations,
        warnings: super::summary::warnings(entry, true),
        devices,
        process: entry.sidecar().map(ProcessInfo::of),
    }
}

/// Adds the memory optimizations of each device. They take as long as a finding.
pub async fn add_optimizations(info: &mut FileInfo, entry: &SnapshotEntry, budget: &mut Budget) {
    for (index, device) in info.devices.iter_mut().enumerate() {
        device.optimizations =
            optimizations(Target { path: &info.path, entry, index }, budget).await;
    }
}

async fn device(target: Target<'_>, budget: &mut Budget) -> DeviceInfo {
    let trace = target.trace();
    target.entry.derive(Derived::Categories, target.index, budget).await;
    target.entry.derive(Derived::Steps, target.index, budget).await;
    let steps = target.entry.steps(target.index);
    DeviceInfo {
        device: target.device(),
        kind: trace.device.kind.name(),
        backend: trace.device.kind.backend(),
        events: trace.device.events.len(),
        has_clock: trace.clock.is_some(),
        window_us: trace.clock.as_ref().map(vramscope_trace::Clock::span),
        coverage: super::summary::coverage(trace.coverage),
        provenance: provenance(target),
        steps_by: steps.map(|steps| steps.source.name()),
        steps: steps.map_or(0, vramscope_inference::Steps::whole),
        optimizations: Vec::new(),
        pinned: (trace.device.kind.is_host()).then_some(PinnedInfo {
            requested_bytes: trace.requested_band.end,
            pinned_bytes: trace.reserved_band.end,
        }),
    }
}

/// Whether the ring buffer (`max_entries`) has overwritten events; `None` if not recorded.
///
/// The setting `trace_alloc_overflowed` is proposed for PyTorch (docs/record.md).
pub fn has_overflowed(settings: &[(String, String)]) -> Option<bool> {
    let (_, value) = settings.iter().find(|(key, _)| key.ends_with("trace_alloc_overflowed"))?;
    value.parse().ok()
}

const NO_HISTORY: &str = "No history was recorded: this is the state when the snapshot was taken.";
const ONE_EVENT: &str = "Only one event was recorded (enabled=\"state\"): this is the state when \
                         the snapshot was taken.";
const COMPLETE: &str = "Recording started with no memory in use, so it is complete.";
const STARTED_LATE: &str = "Recording started when memory was already in use.";
const OVERWRITTEN: &str =
    "The ring buffer (max_entries) was full according to the file, so earlier events are lost.";
const RECONSTRUCTED: &str = "Blocks from before the window are reconstructed from their frees and \
                             from the final state.";

/// Said once for each device of `torch_npu`.
const NOT_CHECKED: &str = "This is an Ascend NPU: sizes and states follow the sources of torch_npu \
                           2.14, and are not checked on a device.";

/// The coverage of a trace in words, with its cause, and what is said about the kind of device.
fn provenance(target: Target<'_>) -> String {
    let covered = covered(target);
    match target.trace().device.kind {
        DeviceKind::Npu => format!("{covered} {NOT_CHECKED}"),
        _ => covered,
    }
}

fn covered(target: Target<'_>) -> String {
    let trace = target.trace();
    let events = trace.device.events.len();
    let overflowed = has_overflowed(&target.snapshot().settings);
    match trace.coverage {
        Coverage::None => NO_HISTORY.to_owned(),
        Coverage::Whole => COMPLETE.to_owned(),
        Coverage::Partial if events == 1 => ONE_EVENT.to_owned(),
        Coverage::Partial if overflowed == Some(true) => format!("{OVERWRITTEN} {RECONSTRUCTED}"),
        // `max_entries` is usually a round number.
        Coverage::Partial if overflowed.is_none() && events.is_multiple_of(1000) => format!(
            "The window has {} events, a round number. The ring buffer (max_entries) was probably \
             full, so earlier events are lost. {RECONSTRUCTED}",
            grouped(events as u64)
        ),
        Coverage::Partial => format!("{STARTED_LATE} {RECONSTRUCTED}"),
    }
}
