//! `vramscope info`: what was recorded, and how: settings, pools, streams, steps, provenance.

use crate::SnapshotEntry;
use crate::Target;
use crate::summary::WarningSummary;
use serde::Serialize;
use std::collections::BTreeMap;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{Coverage, StepSource, Steps};
use vramscope_snapshot::Stage;

/// `vramscope.info/1`.
#[derive(Debug, Serialize)]
pub struct Info {
    /// The name and version of this form.
    pub schema: &'static str,
    /// One a snapshot.
    pub files: Vec<FileInfo>,
}

impl Info {
    /// Over these files.
    pub fn new(files: Vec<FileInfo>) -> Self {
        Self { schema: "vramscope.info/1", files }
    }
}

/// What was recorded in a file.
#[derive(Debug, Serialize)]
pub struct FileInfo {
    /// The file.
    pub path: String,
    /// Bytes of the pickle (or JSON), unpacked.
    pub bytes: u64,
    /// Distinct call stacks in use.
    pub stacks: u32,
    /// Distinct frames in use.
    pub frames: u32,
    /// `allocator_settings` as dotted keys, with their values as JSON text; empty before PyTorch
    /// 2.3.
    pub settings: Vec<(String, String)>,
    /// Stream handles; 0 is the default stream.
    pub streams: Vec<i64>,
    /// Memory pools; `[0, 0]` is the default pool.
    pub pools: Vec<[u64; 2]>,
    /// Annotated ranges by name, with how often each was begun.
    pub annotations: BTreeMap<String, u32>,
    /// What was odd about the file and its devices.
    pub warnings: Vec<WarningSummary>,
    /// Devices with events or segments.
    pub devices: Vec<DeviceInfo>,
}

/// What was recorded of one device.
#[derive(Debug, Serialize)]
pub struct DeviceInfo {
    /// The ordinal.
    pub device: u32,
    /// Trace entries.
    pub events: usize,
    /// Whether events have times (PyTorch 2.2 and later).
    pub has_clock: bool,
    /// Microseconds from the first event to the last; null without a clock.
    pub window_us: Option<u64>,
    /// `whole`, `partial` or `none`.
    pub coverage: &'static str,
    /// What that means, in words.
    pub provenance: String,
    /// How training steps can be told: `profiler_step`, `optimizer_step`, `periodicity`; null when
    /// they cannot.
    pub steps_by: Option<&'static str>,
    /// Whole steps in the window.
    pub steps: usize,
}

/// What is known of a file beside its numbers.
pub fn info(path: &str, entry: &SnapshotEntry) -> FileInfo {
    run_to_completion(info_sliced(path, entry, &mut Budget::unlimited()))
}

/// The same in slices.
pub async fn info_sliced(path: &str, entry: &SnapshotEntry, budget: &mut Budget) -> FileInfo {
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
        warnings: super::summary::warnings(entry),
        devices,
    }
}

async fn device(target: Target<'_>, budget: &mut Budget) -> DeviceInfo {
    let trace = target.trace();
    let steps = Steps::sliced(target.snapshot(), trace, budget).await;
    DeviceInfo {
        device: target.device(),
        events: trace.device.events.len(),
        has_clock: trace.clock.is_some(),
        window_us: trace.clock.as_ref().map(vramscope_analysis::Clock::span),
        coverage: super::summary::coverage(trace.coverage),
        provenance: provenance(target),
        steps_by: steps.as_ref().map(|s| match s.source {
            StepSource::ProfilerStep => "profiler_step",
            StepSource::OptimizerStep => "optimizer_step",
            StepSource::Periodicity => "periodicity",
        }),
        steps: steps.map_or(0, |s| s.whole()),
    }
}

/// Whether the ring buffer (`max_entries`) has lost events, where the file tells:
/// `trace_alloc_overflowed` among the allocator's settings is proposed for PyTorch
/// (docs/recording.md).
pub fn has_overflowed(settings: &[(String, String)]) -> Option<bool> {
    let (_, told) = settings.iter().find(|(key, _)| key.ends_with("trace_alloc_overflowed"))?;
    told.parse().ok()
}

fn provenance(target: Target<'_>) -> String {
    let trace = target.trace();
    let events = trace.device.events.len();
    let told = has_overflowed(&target.snapshot().settings);
    match trace.coverage {
        Coverage::None => "No history was recorded: this is the state when the snapshot was taken.".to_owned(),
        Coverage::Partial if events == 1 => {
            "A single event (enabled=\"state\"): this is the state when the snapshot was taken.".to_owned()
        }
        Coverage::Partial if told == Some(true) => {
            "The ring buffer (max_entries) was full, says the file, and what came before the window is lost. Blocks from before it are told by their frees and by the final state.".to_owned()
        }
        // A ring buffer holds a round number of entries; one that is full has lost what came
        // before.
        Coverage::Partial if told.is_none() && events.is_multiple_of(1000) => format!(
            "The window holds {events} events, a round number: the ring buffer (max_entries) was probably full, and what came before is lost. Blocks from before the window are told by their frees and by the final state."
        ),
        Coverage::Partial => "Recording began when memory was already in use. Blocks from before the window are told by their frees and by the final state.".to_owned(),
        Coverage::Whole => "Nothing was live before the window: recording covers all that is in it.".to_owned(),
    }
}
