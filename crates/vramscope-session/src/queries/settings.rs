//! Allocator settings in words, and how the file was recorded.

use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{Churn, Coverage, Trace};
use vramscope_protocol::DetailRow;
use vramscope_protocol::views::{SettingRow, SettingsCard};
use vramscope_report::Quantity;
use vramscope_report::Target;
use vramscope_report::info::{FileInfo, has_overflowed, info_sliced};
use vramscope_units::{Bytes, Micros, grouped};

/// How many kinds of annotated ranges are named.
const NAMES: usize = 6;

/// What the file says of its recording and of the allocator.
pub(crate) async fn settings(at: Target<'_>, budget: &mut Budget) -> SettingsCard {
    let info = info_sliced(at.path, at.entry, budget).await;
    let settings = rows(at, &info.settings);
    SettingsCard {
        provenance: provenance(at, &info),
        note: settings.is_empty().then(|| {
            "Before PyTorch 2.3 a snapshot does not say which allocator settings were in use: they are not in the file."
                .to_owned()
        }),
        settings,
    }
}

fn provenance(at: Target<'_>, info: &FileInfo) -> Vec<DetailRow> {
    let trace = at.trace();
    let mut rows = Vec::new();
    let mut row = |key: &str, label: &str, text: String, raw: Option<u64>| {
        rows.push(DetailRow {
            key: key.to_owned(),
            label: label.to_owned(),
            text,
            raw: raw.map(|n| n.to_string()),
        });
    };
    let number = |n: usize| Some(n as u64);
    if let Some(device) = info.devices.get(at.index) {
        row("recorded", "recorded", device.provenance.clone(), None);
        row("events", "events", grouped(device.events as u64), number(device.events));
        let clock = match device.window_us {
            Some(us) => format!("{} from the first event to the last", Micros(us as i64)),
            None if device.events == 0 => "no events, so no times".to_owned(),
            None => "none: events have times from PyTorch 2.2 on".to_owned(),
        };
        row("clock", "clock", clock, device.window_us);
        row("ring_buffer", "ring buffer", ring_buffer(trace, &info.settings), None);
        let coverage = match trace.coverage {
            Coverage::Whole => "whole: nothing was live before the window".to_owned(),
            Coverage::Partial => format!(
                "partial: {} from before the window",
                Quantity::count(
                    u64::from(trace.preexisting_freed) + u64::from(trace.preexisting_live),
                    "block is",
                    "blocks are"
                )
                .exact
            ),
            Coverage::None => "none: there is no history, only the final state".to_owned(),
        };
        row("coverage", "coverage", coverage, None);
        let steps = match device.steps_by {
            Some(by) => {
                format!("{}, told by {}", grouped(device.steps as u64), by.replace('_', " "))
            }
            None => "none that can be told".to_owned(),
        };
        row("steps", "training steps", steps, number(device.steps));
    }
    let devices: Vec<String> =
        info.devices.iter().map(|d| format!("device {}", d.device)).collect();
    row("devices", "devices", devices.join(", "), number(devices.len()));
    row("stacks", "call stacks", grouped(u64::from(info.stacks)), Some(u64::from(info.stacks)));
    row("frames", "frames", grouped(u64::from(info.frames)), Some(u64::from(info.frames)));
    let ranges = info.annotations.values().map(|&n| u64::from(n)).sum();
    row("annotations", "annotated ranges", annotations(info, ranges), Some(ranges));
    let warnings: u64 = info.warnings.iter().map(|w| u64::from(w.count)).sum();
    row("warnings", "warnings", grouped(warnings), Some(warnings));
    rows
}

/// `12: forward (4), backward (4), optimizer (4)`.
fn annotations(info: &FileInfo, ranges: u64) -> String {
    if ranges == 0 {
        return "none".to_owned();
    }
    let names: Vec<String> =
        info.annotations.iter().take(NAMES).map(|(name, n)| format!("{name} ({n})")).collect();
    let more = info.annotations.len().saturating_sub(NAMES);
    let rest = if more > 0 { format!(" and {} more", grouped(more as u64)) } else { String::new() };
    format!("{}: {}{rest}", grouped(ranges), names.join(", "))
}

/// Whether what came before the window was recorded once, and written over.
fn ring_buffer(trace: &Trace, settings: &[(String, String)]) -> String {
    let events = trace.device.events.len();
    match (trace.coverage, has_overflowed(settings)) {
        (Coverage::None, _) => "there is no history".to_owned(),
        (_, Some(true)) => "full: what came before the window is lost, says the file".to_owned(),
        (_, Some(false)) => "not full, says the file".to_owned(),
        (Coverage::Whole, _) => "not full: the window begins with nothing live".to_owned(),
        // A limit on the entries is nearly always a round number.
        (Coverage::Partial, _) if events.is_multiple_of(1000) => {
            format!("probably full: {} events is a round number", grouped(events as u64))
        }
        (Coverage::Partial, _) => {
            "probably not full: recording seems to have begun late".to_owned()
        }
    }
}

/// Settings in the file's order; the steps of `roundup_power2_divisions` are one row.
fn rows(at: Target<'_>, settings: &[(String, String)]) -> Vec<SettingRow> {
    let divisions: Vec<(u64, u64)> = settings
        .iter()
        .filter_map(|(key, value)| {
            Some((
                key.strip_prefix(DIVISIONS)?.strip_prefix('.')?.parse().ok()?,
                value.parse().ok()?,
            ))
        })
        .collect();
    let mut rows: Vec<SettingRow> = Vec::new();
    for (key, value) in settings {
        if !key.starts_with(DIVISIONS) {
            rows.push(setting(at, key, value));
        } else if rows.iter().all(|row| row.key != DIVISIONS) {
            rows.push(roundup(at, &divisions));
        }
    }
    rows
}

const DIVISIONS: &str = "roundup_power2_divisions";

/// A setting: its value as JSON text, what it does, and what that means here.
fn setting(at: Target<'_>, key: &str, json: &str) -> SettingRow {
    let value = json.trim_matches('"');
    let is_on = value == "true";
    let host = "This is about pinned host memory, which is not what is shown here.";
    let (value, text) = match key {
        "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF" | "PYTORCH_HIP_ALLOC_CONF" => match value {
            "" => ("(empty)", "The environment variable is not set: all settings are the allocator's own.".to_owned()),
            set => (set, "The environment variable as it was set; what follows is what became of it.".to_owned()),
        },
        "expandable_segments" => (value, expandable(at, is_on)),
        "max_split_size" => return max_split_size(at, key, value),
        "garbage_collection_threshold" => (value, collection(at, value)),
        "pinned_num_register_threads" => (value, format!("How many threads register pinned memory. {host}")),
        "pinned_use_cuda_host_register" => {
            (value, format!("Whether pinned memory is made with cudaHostRegister instead of cudaHostAlloc. {host}"))
        }
        "release_lock_on_cudamalloc" => (
            value,
            "Whether other threads may use the allocator while one waits for cudaMalloc. It changes how long threads \
             wait, not how much memory is used."
                .to_owned(),
        ),
        "graph_capture_record_stream_reuse" => (
            value,
            "Whether memory that another stream used (record_stream) can be used again within the same capture of a \
             CUDA graph."
                .to_owned(),
        ),
        "per_process_memory_fraction" => {
            (value, "The part of the device's memory that the process may use: beyond it, allocations fail.".to_owned())
        }
        "trace_alloc_max_entries" => {
            (value, "How many events the recording keeps: the oldest make room for new ones.".to_owned())
        }
        "trace_alloc_overflowed" => (value, "Whether the recording has lost its oldest events.".to_owned()),
        _ => {
            (value, "vramscope does not know this setting: it shows its value, and takes no account of it.".to_owned())
        }
    };
    SettingRow { key: key.to_owned(), value: value.to_owned(), text }
}

fn expandable(at: Target<'_>, is_on: bool) -> String {
    let spans = &at.entry.carving(at.index).segments.spans;
    let ranges = spans.iter().filter(|s| s.is_expandable).count() as u64;
    let segments = Quantity::count(spans.len() as u64 - ranges, "segment", "segments").exact;
    let ranges_text = Quantity::count(ranges, "mapped range", "mapped ranges").exact;
    match (is_on, ranges) {
        (true, 0) => {
            format!("Segments grow by mapping more memory behind them. Here none did: {segments}.")
        }
        (true, _) => format!(
            "Segments grow by mapping more memory behind them. Here: {ranges_text}, and {segments} of a fixed size."
        ),
        (false, 0) => {
            format!(
                "Segments have a fixed size, and free memory in one does not help another. Here: {segments}."
            )
        }
        (false, _) => {
            format!(
                "Segments made now have a fixed size. It was on for a while: {ranges_text}, and {segments}."
            )
        }
    }
}

fn max_split_size(at: Target<'_>, key: &str, value: &str) -> SettingRow {
    // -1 is no limit; the largest 64-bit numbers are what it becomes in later releases.
    let limit = value.parse::<u64>().ok().filter(|&limit| limit < 1 << 62);
    let (value, text) = match limit {
        None => (
            "no limit".to_owned(),
            "Free memory of any size may be split to serve smaller requests.".to_owned(),
        ),
        Some(limit) => {
            let sizes = &at.entry.carving(at.index).sizes;
            let large: u64 = sizes.iter().filter(|size| size.0 >= limit).count() as u64;
            let of = Quantity::count(sizes.len() as u64, "block", "blocks").exact;
            let text = format!(
                "Free memory of this size and more is never split: each piece serves one request of nearly its own \
                 size. Here {} of {of} {} so large.",
                grouped(large),
                if large == 1 { "is" } else { "are" },
            );
            (Bytes(limit).to_string(), text)
        }
    };
    SettingRow { key: key.to_owned(), value, text }
}

fn collection(at: Target<'_>, value: &str) -> String {
    let churn = Churn::new(at.snapshot(), at.trace());
    let given_back = if churn.frees == 0 {
        "none was given back in the window".to_owned()
    } else {
        let frees = Quantity::count(u64::from(churn.frees), "time", "times").exact;
        format!("segments were given back {frees} in the window, {} in all", churn.free_bytes)
    };
    match value.parse::<f64>() {
        Ok(threshold) if threshold > 0.0 => format!(
            "When more than {:.0} % of the memory that the process may use is reserved, segments that have not been \
             used for long are given back before new ones are reserved. Here {given_back}.",
            threshold * 100.0
        ),
        _ => format!("Off: free segments are kept until memory runs out. Here {given_back}."),
    }
}

/// `4`, where it is the same for all sizes; else `4 from 1 MiB on, 8 from 2 MiB on`.
fn roundup(at: Target<'_>, divisions: &[(u64, u64)]) -> SettingRow {
    let steps = |d: u64| if d > 1 { grouped(d) } else { "off".to_owned() };
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &(mib, d) in divisions {
        if runs.last().is_none_or(|run| run.1.max(1) != d.max(1)) {
            runs.push((mib, d));
        }
    }
    let value = match runs.as_slice() {
        [] => "off".to_owned(),
        [(_, d)] => steps(*d),
        _ => {
            let from = |&(mib, d): &(u64, u64)| {
                format!("{} from {} on", steps(d), Bytes(mib.saturating_mul(1 << 20)))
            };
            runs.iter().map(from).collect::<Vec<_>>().join(", ")
        }
    };
    let what = if divisions.iter().any(|d| d.1 > 1) {
        "Requests are rounded up to one of so many equal steps between two powers of two, so that freed memory fits \
         more of the later ones."
    } else {
        "Requests are rounded up to a multiple of 512 bytes, and to no step of a power of two."
    };
    let trace = at.trace();
    let slot = vramscope_report::slot_of(trace.requested_band.peak_event);
    let requested = trace.requested.at(slot);
    let active = at.entry.carving(at.index).active.at(slot);
    let waste = Bytes(active.saturating_sub(requested));
    let text = format!(
        "{what} Here blocks are {waste} larger than the {} requested at the peak.",
        Bytes(requested)
    );
    SettingRow { key: DIVISIONS.to_owned(), value, text }
}
