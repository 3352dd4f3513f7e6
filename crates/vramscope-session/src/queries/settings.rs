//! Allocator settings with explanations.

mod provenance;

use self::provenance::provenance;
use crate::messages::views::{SettingRow, SettingsCard};
use vramscope_report::info::info;
use vramscope_report::{Quantity, Target};
use vramscope_trace::Churn;
use vramscope_trace::slicing::{Budget, now};
use vramscope_units::{Bytes, grouped};

/// The recording's provenance and the allocator's settings.
pub(crate) async fn settings(at: Target<'_>, budget: &mut Budget) -> SettingsCard {
    let info = info(at.path, at.entry, budget).await;
    let settings = rows(at, &info.settings);
    SettingsCard {
        provenance: provenance(at, &info),
        note: settings.is_empty().then(|| {
            "Snapshots from PyTorch before 2.3 do not contain allocator settings.".to_owned()
        }),
        settings,
    }
}

/// A row for each setting, in the file's order. The `roundup_power2_divisions` of all sizes share a
/// row.
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

/// A setting with its value and an explanation. Some explanations have numbers of this recording.
fn setting(at: Target<'_>, key: &str, json: &str) -> SettingRow {
    let value = json.trim_matches('"');
    let is_on = value == "true";
    let text = match key {
        "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF" | "PYTORCH_HIP_ALLOC_CONF" => {
            if value.is_empty() {
                let text = "The environment variable is not set. All settings are defaults.";
                return setting_row(key, "(empty)", text);
            }
            "As set in the environment. Effective values below.".to_owned()
        }
        "expandable_segments" => expandable(at, is_on),
        "max_split_size" => return max_split_size(at, key, value),
        "garbage_collection_threshold" => collection(at, value),
        "pinned_num_register_threads" => {
            format!("Threads that register pinned memory. {HOST_ONLY}")
        }
        "pinned_use_cuda_host_register" => format!(
            "Whether pinned memory is allocated with cudaHostRegister instead of cudaHostAlloc. \
             {HOST_ONLY}"
        ),
        "pinned_use_hip_host_register" => format!(
            "Whether pinned memory is allocated with hipHostRegister instead of hipHostMalloc. \
             {HOST_ONLY}"
        ),
        "release_lock_on_cudamalloc" | "release_lock_on_hipmalloc" => {
            let call = if key.ends_with("hipmalloc") { "hipMalloc" } else { "cudaMalloc" };
            format!(
                "Whether other threads can use the allocator while one thread waits for {call}. \
                 Affects waiting times, not memory."
            )
        }
        "graph_capture_record_stream_reuse" => {
            "Whether memory that another stream used (record_stream) can be reused within the same \
             CUDA graph capture."
                .to_owned()
        }
        "per_process_memory_fraction" => {
            "Fraction of the device memory that the process can use. Allocations beyond it fail."
                .to_owned()
        }
        "trace_alloc_max_entries" => {
            "Maximum number of recorded events. New events replace the oldest ones.".to_owned()
        }
        "trace_alloc_overflowed" => "Whether the recording has lost its oldest events.".to_owned(),
        _ => "vramscope does not know this setting and ignores it.".to_owned(),
    };
    setting_row(key, value, &text)
}

const HOST_ONLY: &str = "Affects pinned host memory, which is not shown here.";

fn setting_row(key: &str, value: &str, text: &str) -> SettingRow {
    SettingRow { key: key.to_owned(), value: value.to_owned(), text: text.to_owned() }
}

fn expandable(at: Target<'_>, is_on: bool) -> String {
    let spans = &at.entry.carving(at.index).segments.spans;
    let ranges = spans.iter().filter(|s| s.is_expandable).count() as u64;
    let segments = Quantity::count(spans.len() as u64 - ranges, "segment", "segments").exact;
    let ranges_text = Quantity::count(ranges, "mapped range", "mapped ranges").exact;
    match (is_on, ranges) {
        (true, 0) => {
            format!("Segments grow by mapping more memory at their end. Here none did: {segments}.")
        }
        (true, _) => format!(
            "Segments grow by mapping more memory at their end. Here: {ranges_text}, and \
             {segments} of fixed size."
        ),
        (false, 0) => format!(
            "Segments have a fixed size. Free memory in one segment cannot extend another. Here: \
             {segments}."
        ),
        (false, _) => format!(
            "New segments have a fixed size. Expandable segments were on for a while: \
             {ranges_text}, and {segments}."
        ),
    }
}

fn max_split_size(at: Target<'_>, key: &str, value: &str) -> SettingRow {
    // -1 means no limit. Later releases write it as one of the largest 64-bit numbers.
    let limit = value.parse::<u64>().ok().filter(|&limit| limit < 1 << 62);
    let Some(limit) = limit else {
        let text = "Free memory of any size can be split to serve smaller requests.";
        return setting_row(key, "no limit", text);
    };
    let sizes = &at.entry.carving(at.index).sizes;
    let large: u64 = sizes.iter().filter(|size| size.0 >= limit).count() as u64;
    let all = Quantity::count(sizes.len() as u64, "block", "blocks").exact;
    let text = format!(
        "Free memory of at least this size is never split: such blocks are only reused for \
         requests of similar size. Here {} of {all} {} that large.",
        grouped(large),
        if large == 1 { "is" } else { "are" },
    );
    setting_row(key, &Bytes(limit).to_string(), &text)
}

fn collection(at: Target<'_>, value: &str) -> String {
    let churn = now(async |budget| Churn::new(at.snapshot(), at.trace(), budget).await);
    let released = if churn.frees == 0 {
        "no segment was released in the window".to_owned()
    } else {
        let frees = Quantity::count(u64::from(churn.frees), "time", "times").exact;
        format!("segments were released {frees} in the window ({} total)", churn.free_bytes)
    };
    match value.parse::<f64>() {
        Ok(threshold) if threshold > 0.0 => format!(
            "When more than {:.0} % of the process's memory limit is reserved, segments that were \
             unused for long are released before new ones are reserved. Here {released}.",
            threshold * 100.0
        ),
        _ => format!("Off: free segments are kept until memory runs out. Here {released}."),
    }
}

/// The rounding of requests: `4` if all sizes share it, else `4 from 1 MiB on, 8 from 2 MiB on`.
/// `divisions` are the steps from each size in MiB on.
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
        "Requests are rounded up to one of this many equal steps between two powers of two, so \
         that freed memory fits more later requests."
    } else {
        "Requests are rounded up to 512 bytes (no power-of-two rounding)."
    };
    let trace = at.trace();
    let slot = vramscope_report::slot_of(trace.requested_band.peak_event);
    let requested = trace.requested.at(slot);
    let active = at.entry.carving(at.index).active.at(slot);
    let waste = Bytes(active.saturating_sub(requested));
    let text = format!(
        "{what} Here rounding adds {waste} to the {} requested at the peak.",
        Bytes(requested)
    );
    setting_row(DIVISIONS, &value, &text)
}
