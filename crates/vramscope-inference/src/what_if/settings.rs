//! The settings and the release with which a device was recorded.

use vramscope_allocator::{Release, Settings};
use vramscope_snapshot::{Device, HOST, PoolId, PoolIndex, Snapshot};

/// Names under which a configuration's text is recorded.
const TEXTS: [&str; 3] =
    ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"];

/// The text of the recorded configuration, without quotes; empty if there is none.
pub fn recorded_text(snapshot: &Snapshot) -> &str {
    let text = snapshot.settings.iter().find(|(key, _)| TEXTS.contains(&key.as_str()));
    text.map_or("", |(_, value)| value.trim_matches('"'))
}

/// The settings with which a device was recorded. PyTorch writes them since 2.3, some only in the
/// text of the configuration. For older files, only expandable segments can be told, by the
/// segments.
pub fn recorded_settings(snapshot: &Snapshot, device: &Device) -> Settings {
    let release = releases(snapshot, device)[0];
    let mut settings = Settings { release, ..Settings::default() };
    let segments = snapshot.segments_of(device);
    settings.expandable_segments = segments.iter().any(|segment| segment.is_expandable);
    settings.set_from_recorded_text(recorded_text(snapshot));
    for (key, value) in &snapshot.settings {
        let number = value.parse::<i64>().ok().and_then(|value| u64::try_from(value).ok());
        match key.as_str() {
            "expandable_segments" => settings.expandable_segments = value == "true",
            // -1 and the largest size both mean no limit.
            "max_split_size" => {
                settings.max_split_size =
                    number.filter(|&size| size > 0 && size < 1 << 62).unwrap_or(u64::MAX);
            }
            "garbage_collection_threshold" => {
                settings.garbage_collection_threshold = value.parse().unwrap_or(0.0);
            }
            _ => {
                if let Some(power) = key.strip_prefix("roundup_power2_divisions.")
                    && let Ok(power) = power.parse::<u64>()
                    && power.is_power_of_two()
                    && let Some(divisions) =
                        settings.roundup_power2_divisions.get_mut(power.ilog2() as usize)
                {
                    *divisions = number.unwrap_or(0);
                }
            }
        }
    }
    settings
}

/// The releases that may have written a file, as far as its keys tell: the newest, and the oldest
/// if the allocator differed between them. docs/record.md lists which release writes which key.
pub(super) fn releases(snapshot: &Snapshot, device: &Device) -> Vec<Release> {
    let has = |name: &str| snapshot.settings.iter().any(|(key, _)| key == name);
    let text = recorded_text(snapshot);
    let segments = snapshot.segments_of(device);
    let expands_pools = segments.iter().any(|segment| {
        segment.is_expandable
            && snapshot.pool(segment.pool).is_some_and(|pool| pool != PoolId::DEFAULT)
    });
    let rows = || device.events.clone();
    let has_pools = rows().any(|row| snapshot.events.pool(row) != PoolIndex::UNKNOWN);
    // Signs of a release, from old to new: what none before it writes.
    let signs = [
        (3, !snapshot.settings.is_empty()),
        (5, !snapshot.annotations.is_empty() || expands_pools),
        (6, text.contains("max_non_split_rounding_mb")),
        (9, has("graph_capture_record_stream_reuse")),
        (10, text.contains("per_process_memory_fraction")),
        (11, text.contains("large_segment_size_mb")),
        (12, has_pools || text.contains("throw_on_cudamalloc_oom")),
        (14, has("max_round_threshold") || snapshot.device(HOST).is_some()),
        (15, text.contains("expandable_segments_reserve")),
    ];
    let oldest = signs.iter().rev().find(|(_, is_there)| *is_there).map_or(0, |(minor, _)| *minor);
    let newest = match oldest {
        0 => 2,
        3..=8 => 8,
        9..=11 if !rows().is_empty() => 11,
        // 2.12 numbers segments by thread, and no file tells threads: the rules after it may fit.
        12 => 13,
        _ => Release::LATEST.0,
    };
    let (oldest, newest) = (Release(oldest), Release(newest.max(oldest)));
    let mut all = vec![newest];
    all.extend((!oldest.allocates_like(newest)).then_some(oldest));
    all
}
