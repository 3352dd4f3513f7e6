//! The allocator's settings: those of a recording, and those of a question.

use std::fmt;
use vramscope_allocator::{DIVISION_INTERVALS, Settings};
use vramscope_snapshot::{Device, PoolId, Snapshot};

/// Bytes of a setting that is given in MiB.
const MIB: u64 = 1 << 20;

/// The largest `large_segment_size_mb` that is read: more than any device has.
const MOST_MIB: u64 = 1 << 20;

/// The settings with which a device was recorded. PyTorch writes them since 2.3. For older files,
/// only expandable segments can be told, by the segments.
pub fn recorded_settings(snapshot: &Snapshot, device: &Device) -> Settings {
    let mut settings = Settings::default();
    let segments = snapshot.segments_of(device);
    settings.expandable_segments = segments.iter().any(|segment| segment.is_expandable);
    // PyTorch 2.9 maps pages in private pools too, and is the first to write this setting.
    let is_since_2_9 =
        snapshot.settings.iter().any(|(key, _)| key == "graph_capture_record_stream_reuse");
    settings.expandable_private_pools = is_since_2_9
        || segments.iter().any(|segment| {
            segment.is_expandable
                && snapshot.pool(segment.pool).is_some_and(|pool| pool != PoolId::DEFAULT)
        });
    for (key, value) in &snapshot.settings {
        let number = value.parse::<i64>().ok().and_then(|value| u64::try_from(value).ok());
        match key.as_str() {
            "expandable_segments" => settings.expandable_segments = value == "true",
            // PyTorch does not write this setting on its own.
            "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF" => {
                if let Some(size) = large_segment_size(value.trim_matches('"')) {
                    set_large_segment_size(&mut settings, size);
                }
            }
            // -1 and the largest size both mean no limit.
            "max_split_size" => {
                settings.max_split_size =
                    number.filter(|&size| size > 0 && size < 1 << 62).unwrap_or(u64::MAX);
            }
            "max_non_split_rounding_size" => {
                if let Some(size) = number {
                    settings.max_non_split_rounding_size = size;
                }
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

/// `large_segment_size_mb` of a configuration, in bytes.
fn large_segment_size(text: &str) -> Option<u64> {
    let mut values = text.split(',').filter_map(|part| {
        let (key, value) = part.split_once(':')?;
        (key.trim() == "large_segment_size_mb").then_some(value)
    });
    let mib = values.next_back()?.trim().parse::<u64>().ok()?;
    (mib > 10 && mib <= MOST_MIB).then_some(mib * MIB)
}

/// Sets the size of large segments. It is also the default of `max_non_split_rounding_mb`.
fn set_large_segment_size(settings: &mut Settings, size: u64) {
    if settings.max_non_split_rounding_size == settings.large_segment_size {
        settings.max_non_split_rounding_size = size;
    }
    settings.large_segment_size = size;
}

/// A setting that the model does not know, or a value that PyTorch does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The part of the text that is wrong.
    pub text: String,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a setting: expected {}", self.text, self.expected)
    }
}

impl std::error::Error for SettingError {}

/// The keys that [`parse_settings`] reads: those that decide how much memory is reserved.
pub const SETTING_KEYS: [&str; 6] = [
    "expandable_segments",
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "large_segment_size_mb",
    "roundup_power2_divisions",
    "garbage_collection_threshold",
];

/// The keys with their values, for errors.
const KEYS: &str = "expandable_segments:True|False, max_split_size_mb:N, \
    max_non_split_rounding_mb:N, large_segment_size_mb:N, roundup_power2_divisions:N, or \
    garbage_collection_threshold:0.N";

/// Gives a setting PyTorch's default; `None` if there is no such setting.
fn unset(settings: &mut Settings, key: &str) -> Option<()> {
    let usual = Settings::default();
    match key {
        "expandable_segments" => settings.expandable_segments = usual.expandable_segments,
        "max_split_size_mb" => settings.max_split_size = usual.max_split_size,
        "large_segment_size_mb" => set_large_segment_size(settings, usual.large_segment_size),
        "max_non_split_rounding_mb" => {
            settings.max_non_split_rounding_size = settings.large_segment_size;
        }
        "roundup_power2_divisions" => {
            settings.roundup_power2_divisions = usual.roundup_power2_divisions;
        }
        "garbage_collection_threshold" => {
            settings.garbage_collection_threshold = usual.garbage_collection_threshold;
        }
        _ => return None,
    }
    Some(())
}

/// Reads settings in the form of `PYTORCH_CUDA_ALLOC_CONF` on top of `base`. A part
/// `without max_split_size_mb` gives a setting its default, for which PyTorch has no value.
///
/// # Errors
///
/// A [`SettingError`] names the first part that is not such a setting.
pub fn parse_settings(text: &str, base: &Settings) -> Result<Settings, SettingError> {
    let mut settings = base.clone();
    // Before all others, as PyTorch does: another default depends on it.
    if let Some(size) = large_segment_size(text) {
        set_large_segment_size(&mut settings, size);
    }
    for part in split_outside_brackets(text) {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let error = |expected| SettingError { text: part.to_owned(), expected };
        if let Some(key) = part.strip_prefix("without ") {
            unset(&mut settings, key.trim()).ok_or_else(|| error(KEYS))?;
            continue;
        }
        let (key, value) = part.split_once(':').ok_or_else(|| error(KEYS))?;
        let value = value.trim();
        let number = || value.parse::<u64>().map_err(|_| error("a number of MiB"));
        match key.trim() {
            "expandable_segments" => {
                settings.expandable_segments = match value.to_ascii_lowercase().as_str() {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    _ => return Err(error("expandable_segments:True or False")),
                };
            }
            "max_split_size_mb" => {
                settings.max_split_size = match number()? {
                    0 => u64::MAX,
                    mib if mib > 20 => mib.saturating_mul(MIB),
                    _ => return Err(error("more than 20 MiB, as PyTorch demands")),
                };
            }
            "large_segment_size_mb" => {
                if !(11..=MOST_MIB).contains(&number()?) {
                    return Err(error("more than 10 MiB, as PyTorch demands"));
                }
            }
            "max_non_split_rounding_mb" => {
                let mib = number()?;
                if mib <= 20 {
                    return Err(error("more than 20 MiB, as PyTorch demands"));
                }
                settings.max_non_split_rounding_size = mib.saturating_mul(MIB);
            }
            "roundup_power2_divisions" => {
                settings.roundup_power2_divisions = divisions(value)
                    .ok_or_else(|| error("a power of two, or [256:1,512:2,>:4]"))?;
            }
            "garbage_collection_threshold" => {
                let threshold = value.parse::<f64>().ok().filter(|t| *t > 0.0 && *t < 1.0);
                settings.garbage_collection_threshold =
                    threshold.ok_or_else(|| error("a number between 0 and 1"))?;
            }
            _ => return Err(error(KEYS)),
        }
    }
    Ok(settings)
}

/// Splits at commas that are not in brackets.
pub fn split_outside_brackets(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    })
}

/// Reads `roundup_power2_divisions`: one number for all sizes, or numbers by size in MiB.
fn divisions(value: &str) -> Option<[u64; DIVISION_INTERVALS]> {
    let number =
        |text: &str| text.trim().parse::<u64>().ok().filter(|&n| n == 0 || n.is_power_of_two());
    let Some(list) = value.strip_prefix('[') else {
        return Some([number(value)?; DIVISION_INTERVALS]);
    };
    let mut all = [0; DIVISION_INTERVALS];
    let mut from = 0;
    let mut last = 0;
    for entry in list.strip_suffix(']')?.split(',') {
        let (size, divisions) = entry.split_once(':')?;
        last = number(divisions)?;
        if size.trim() == ">" {
            all[from..].fill(last);
            return Some(all);
        }
        // A number holds for the sizes up to its key, and from the one before.
        let until = (number(size)?.checked_ilog2()? as usize).min(DIVISION_INTERVALS - 1);
        all.get_mut(from..=until)?.fill(last);
        from = until + 1;
    }
    all[from..].fill(last);
    Some(all)
}

/// The settings that differ from PyTorch's defaults, in the form of `PYTORCH_CUDA_ALLOC_CONF`.
pub fn settings_text(settings: &Settings) -> String {
    let mut parts = Vec::new();
    if settings.expandable_segments {
        parts.push("expandable_segments:True".to_owned());
    }
    if settings.max_split_size != u64::MAX {
        parts.push(format!("max_split_size_mb:{}", settings.max_split_size / MIB));
    }
    if settings.large_segment_size != Settings::default().large_segment_size {
        parts.push(format!("large_segment_size_mb:{}", settings.large_segment_size / MIB));
    }
    if settings.max_non_split_rounding_size != settings.large_segment_size {
        let mib = settings.max_non_split_rounding_size / MIB;
        parts.push(format!("max_non_split_rounding_mb:{mib}"));
    }
    let divisions = &settings.roundup_power2_divisions;
    if divisions.iter().all(|n| n == &divisions[0]) {
        if divisions[0] > 1 {
            parts.push(format!("roundup_power2_divisions:{}", divisions[0]));
        }
    } else {
        let list: Vec<String> =
            (0..).zip(divisions).map(|(i, n)| format!("{}:{n}", 1u64 << i)).collect();
        parts.push(format!("roundup_power2_divisions:[{}]", list.join(",")));
    }
    if settings.garbage_collection_threshold > 0.0 {
        parts.push(format!(
            "garbage_collection_threshold:{}",
            settings.garbage_collection_threshold
        ));
    }
    parts.join(",")
}
