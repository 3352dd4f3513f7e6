//! How a file was recorded: history, clock, ring buffer, coverage, steps.

use crate::messages::DetailRow;
use vramscope_inference::{StepSource, Steps};
use vramscope_report::info::{FileInfo, ProcessInfo, has_overflowed};
use vramscope_report::shapes::legend_texts;
use vramscope_report::{DeviceKind, device_name};
use vramscope_report::{Quantity, Target};
use vramscope_trace::{Coverage, Trace};
use vramscope_units::{Bytes, Micros, grouped};

/// Names of annotated ranges in the list.
const MAX_NAMES: usize = 6;

/// The rows about the recording.
pub(super) fn provenance(at: Target<'_>, info: &FileInfo) -> Vec<DetailRow> {
    let trace = at.trace();
    let mut rows = Vec::new();
    let mut row = |key: &str, label: &str, text: String, raw: Option<u64>| {
        rows.push(DetailRow::new(key, label, text, raw.map(|n| n.to_string())));
    };
    let number = |n: usize| Some(n as u64);
    if let Some(process) = &info.process {
        row("process", "process", process_text(process), None);
        let versions = [("PyTorch", &process.torch), ("driver for CUDA", &process.driver)];
        let known = versions.iter().filter_map(|(of, v)| Some(format!("{of} {}", (*v).as_ref()?)));
        row("versions", "versions", known.collect::<Vec<_>>().join(", "), None);
    }
    if let Some(memory) = at.entry.device_memory(at.index) {
        let (total, other) = (Bytes(memory.total_bytes), Bytes(memory.other_bytes));
        let text = format!("{}: {total}, {other} of it outside of PyTorch", memory.name);
        row("device_memory", "device", text, Some(memory.total_bytes));
    }
    let dims = legend_texts(at);
    if !dims.is_empty() {
        row("dims", "dimensions by size", dims.join(", "), None);
    }
    if let Some(device) = info.devices.get(at.index) {
        row("recorded", "recorded", device.provenance.clone(), None);
        row("events", "events", grouped(device.events as u64), number(device.events));
        let clock = match device.window_us {
            Some(us) => format!("{} from the first to the last event", Micros(us as i64)),
            None if device.events == 0 => "none: the trace has no events".to_owned(),
            None if trace.device.kind == DeviceKind::Npu => {
                "none: torch_npu records no times".to_owned()
            }
            None => "none: PyTorch records times since 2.2".to_owned(),
        };
        row("clock", "clock", clock, device.window_us);
        row("ring_buffer", "ring buffer", ring_buffer(trace, &info.settings), None);
        let coverage = match trace.coverage {
            Coverage::Whole => "complete: nothing was allocated before the window".to_owned(),
            Coverage::Partial => format!(
                "partial: {} allocated before the window",
                Quantity::count(
                    u64::from(trace.preexisting_freed) + u64::from(trace.preexisting_live),
                    "block was",
                    "blocks were"
                )
                .exact
            ),
            Coverage::None => "none: only the final state was recorded".to_owned(),
        };
        row("coverage", "coverage", coverage, None);
        let (label, steps) = match at.entry.steps(at.index) {
            Some(steps) => {
                let text =
                    format!("{}, inferred from {}", grouped(steps.whole() as u64), evidence(steps));
                (if steps.are_training() { "training steps" } else { steps.words()[1] }, text)
            }
            None => ("training steps", "none found".to_owned()),
        };
        row("steps", label, steps, number(device.steps));
    }
    let devices: Vec<String> =
        info.devices.iter().map(|d| device_name(d.device).into_owned()).collect();
    row("devices", "devices", devices.join(", "), number(devices.len()));
    row("stacks", "call stacks", grouped(u64::from(info.stacks)), Some(u64::from(info.stacks)));
    row("frames", "frames", grouped(u64::from(info.frames)), Some(u64::from(info.frames)));
    let ranges = info.annotations.values().map(|&n| u64::from(n)).sum();
    row("annotations", "annotated ranges", annotations(info, ranges), Some(ranges));
    let warnings: u64 = info.warnings.iter().map(|w| u64::from(w.count)).sum();
    row("warnings", "warnings", grouped(warnings), Some(warnings));
    rows
}

/// `rank 3 of 8 on node7`, or what is known of it.
fn process_text(process: &ProcessInfo) -> String {
    let rank = process.rank.map(|rank| format!("rank {rank}"));
    let size = process.world_size.map(|size| format!("of {size}"));
    let host = process.host.as_ref().map(|host| format!("on {host}"));
    let words: Vec<String> = [rank, size, host].into_iter().flatten().collect();
    if words.is_empty() { "unknown".to_owned() } else { words.join(" ") }
}

/// The evidence for steps in words.
fn evidence(steps: &Steps) -> &'static str {
    match steps.source {
        StepSource::ProfilerStep => "ProfilerStep ranges",
        StepSource::OptimizerStep => "Optimizer.step ranges",
        StepSource::OptimizerUpdate => "the optimizer's updates",
        StepSource::Rhythm => "forward passes that follow a backward pass",
        StepSource::Repetition => "call stacks that allocate again and again",
    }
}

/// The number of annotated ranges and their names: `12: forward (4), backward (4), optimizer (4)`.
fn annotations(info: &FileInfo, ranges: u64) -> String {
    if ranges == 0 {
        return "none".to_owned();
    }
    let names: Vec<String> =
        info.annotations.iter().take(MAX_NAMES).map(|(name, n)| format!("{name} ({n})")).collect();
    let more = info.annotations.len().saturating_sub(MAX_NAMES);
    let rest = if more > 0 { format!(" and {} more", grouped(more as u64)) } else { String::new() };
    format!("{}: {}{rest}", grouped(ranges), names.join(", "))
}

/// Whether the ring buffer was full, so that the oldest events were overwritten.
fn ring_buffer(trace: &Trace, settings: &[(String, String)]) -> String {
    let events = trace.device.events.len();
    match (trace.coverage, has_overflowed(settings)) {
        (Coverage::None, _) => "no history was recorded".to_owned(),
        (_, Some(true)) => {
            "full: the oldest events were overwritten (trace_alloc_overflowed)".to_owned()
        }
        (_, Some(false)) => "not full (trace_alloc_overflowed)".to_owned(),
        (Coverage::Whole, _) => "not full: nothing was allocated before the window".to_owned(),
        // `max_entries` is nearly always a round number.
        (Coverage::Partial, _) if events.is_multiple_of(1000) => {
            format!("probably full: {} events is a round number", grouped(events as u64))
        }
        (Coverage::Partial, _) => "probably not full: recording probably started late".to_owned(),
    }
}
