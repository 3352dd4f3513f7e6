//! The `Loaded` response: what the page learns about a file when it is read.

use crate::messages::{
    Axis, AxisBreak, AxisKind, DeviceSummary, Loaded, PROTOCOL, Part, WarningRow,
};
use vramscope_report::Quantity;
use vramscope_report::device_name;
use vramscope_report::summary::{self, WarningSummary};
use vramscope_report::{LoadedFile, SnapshotEntry, time_of};
use vramscope_trace::{Coverage, Cut, Trace};
use vramscope_units::Micros;

/// The response to a finished load.
pub(crate) fn loaded(file: &LoadedFile) -> Loaded {
    Loaded { protocol: PROTOCOL, parts: file.entries.iter().map(part_of).collect() }
}

fn part_of(entry: &SnapshotEntry) -> Part {
    let default = entry.default_trace();
    Part {
        name: entry.name.clone(),
        devices: entry.traces.iter().map(device).collect(),
        default_device: default.map_or(0, |t| t.device.device),
        peak: default.map(|t| Quantity::signed_bytes(t.requested_band.peak)),
        warnings: warnings(entry),
        annotations: entry.snapshot.annotations.len() as u32,
    }
}

/// The warnings of a snapshot. Those of block sizes are missing, because nothing is carved yet.
fn warnings(entry: &SnapshotEntry) -> Vec<WarningRow> {
    let has_several = entry.traces.len() > 1;
    let row = |warning: WarningSummary| WarningRow {
        code: warning.code.to_owned(),
        message: match warning.device.filter(|_| has_several) {
            Some(device) => format!("{}: {}", device_name(device), warning.message),
            None => warning.message,
        },
        count: warning.count,
    };
    summary::warnings(entry, false).into_iter().map(row).collect()
}

fn device(trace: &Trace) -> DeviceSummary {
    let band = trace.requested_band;
    let peak = Quantity::signed_bytes(band.peak);
    let peak_event = Quantity::peak_event(band.peak_event);
    let at = if band.peak_event.is_some() { "at " } else { "" };
    DeviceSummary {
        device: trace.device.device,
        label: device_name(trace.device.device).into_owned(),
        events: Quantity::count(trace.device.events.len() as u64, "event", "events"),
        blocks: Quantity::count(trace.blocks.len() as u64, "block", "blocks"),
        peak_text: format!("peak {} {at}{}", peak.text, peak_event.text),
        peak,
        peak_event,
        reserved_peak: Quantity::signed_bytes(trace.reserved_band.peak),
        reserved_apart: is_apart(band.peak, trace.reserved_band.peak),
        start: Quantity::signed_bytes(band.start),
        end: Quantity::signed_bytes(band.end),
        axes: [AxisKind::Event, AxisKind::Time]
            .into_iter()
            .filter_map(|kind| axis(trace, kind))
            .collect(),
        breaks: breaks(trace),
        until: trace
            .slots()
            .checked_sub(1)
            .and_then(|last| time_of(trace, last))
            .map(|us| us as f64 / 1e3),
        note: note(trace),
    }
}

/// Whether reserved bytes would leave the stack less than five eighths of the height.
pub(crate) fn is_apart(requested: i64, reserved: i64) -> bool {
    requested > 0 && i128::from(reserved) * 5 > i128::from(requested) * 8
}

fn axis(trace: &Trace, kind: AxisKind) -> Option<Axis> {
    let axis = vramscope_layout::Axis::new(trace, kind)?;
    let peak = trace.requested_band.peak_event.map_or(0, |event| event + 1);
    Some(Axis {
        kind,
        extent: axis.extent() as f64,
        origin: axis.origin() as f64,
        peak: axis.slot_of(peak) as f64,
    })
}

/// The parts of the time axis that take less room.
pub(crate) fn breaks(trace: &Trace) -> Vec<AxisBreak> {
    let Some(axis) = vramscope_layout::Axis::new(trace, AxisKind::Time) else { return Vec::new() };
    let part = |cut: &Cut| {
        let x0 = axis.slot_of_offset(cut.from);
        let text = Micros((cut.to - cut.from) as i64).to_string();
        let title = if cut.is_start {
            format!("{text} of start-up, before 1 % of the peak is in use")
        } else {
            format!("{text} without events")
        };
        AxisBreak {
            x0: x0 as f64,
            x1: (x0 + cut.width) as f64,
            time: (cut.to - cut.from) as f64,
            text,
            title,
        }
    };
    axis.cuts().iter().map(part).collect()
}

/// Why the device has no timeline; `None` if it has one.
fn note(trace: &Trace) -> Option<String> {
    let is_single_event = trace.device.events.len() == 1;
    match trace.coverage {
        Coverage::None if trace.blocks.is_empty() => Some(
            "No memory is in use on this device, and no history was recorded for it.".to_owned(),
        ),
        Coverage::None => Some(format!(
            "No history was recorded for this device. This is its final state, without a timeline. \
             Call {}.memory._record_memory_history() before the code of interest.",
            trace.device.kind.module()
        )),
        // `_record_memory_history(enabled="state")` records one event.
        Coverage::Partial if is_single_event => Some(
            "The trace has a single event (recorded with enabled=\"state\"). This is the final \
             state, without a history."
                .to_owned(),
        ),
        Coverage::Whole | Coverage::Partial => None,
    }
}
