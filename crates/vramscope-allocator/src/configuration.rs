//! The text of `PYTORCH_CUDA_ALLOC_CONF`, `PYTORCH_ALLOC_CONF` and `PYTORCH_HIP_ALLOC_CONF`.
//!
//! The grammar is that of PyTorch's `ConfigTokenizer` and of `parseArgs` in
//! `c10/core/AllocatorConfig.cpp` and `c10/cuda/CUDAAllocatorConfig.cpp`: keys with values, between
//! commas; white space does not count. Two things are more: `without KEY` gives a setting its
//! default, for which PyTorch has no value, and `true` and `1` are `True`.

use crate::settings::{DIVISION_INTERVALS, LARGE_SEGMENT, MIB, Reserve, Settings};
use crate::version::Release;
use std::fmt;

/// The largest `large_segment_size_mb` that is read: more than any device has.
const MOST_MIB: u64 = 1 << 20;

/// A setting that the model does not know, or a value that PyTorch does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The part of the text that is wrong.
    pub text: String,
    /// Why.
    pub cause: SettingCause,
}

/// Why a part of a configuration cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingCause {
    /// It is none of PyTorch's settings, or has a wrong value. What was expected.
    Expected(&'static str),
    /// The model cannot say what it does to memory. The reason, as the end of a sentence.
    NotModeled(&'static str),
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            SettingCause::Expected(what) => {
                write!(f, "`{}` is not a setting: expected {what}", self.text)
            }
            SettingCause::NotModeled(why) => {
                write!(f, "`{}` cannot be predicted: {why}", self.text)
            }
        }
    }
}

impl std::error::Error for SettingError {}

/// The keys that [`parse_settings`] reads: those that decide how much memory is reserved.
pub const SETTING_KEYS: [&str; 9] = [
    "expandable_segments",
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "large_segment_size_mb",
    "roundup_power2_divisions",
    "garbage_collection_threshold",
    "per_process_memory_fraction",
    "throw_on_cudamalloc_oom",
    "expandable_segments_reserve",
];

/// The keys with their values, for errors.
const KEYS: &str = "expandable_segments:True|False, max_split_size_mb:N, \
    max_non_split_rounding_mb:N, large_segment_size_mb:N, roundup_power2_divisions:N, \
    garbage_collection_threshold:0.N, per_process_memory_fraction:0.N, \
    throw_on_cudamalloc_oom:True|False, or expandable_segments_reserve:0.N";

/// Settings of PyTorch that the model has no answer for, and why.
const NOT_MODELED: [(&str, &str); 4] = [
    ("backend", "only the native allocator has a model"),
    (
        "expandable_segments_reserve_by_class",
        "the program tags its streams, and the recording does not show which",
    ),
    ("graph_capture_record_stream_reuse", "it decides when blocks of a capture become free"),
    ("pinned_", "it is about pinned host memory: see the device `host`"),
];

/// Settings of PyTorch that do not change what is reserved on a device.
const WITHOUT_EFFECT: [&str; 2] = ["release_lock_on_cudamalloc", "release_lock_on_hipmalloc"];

/// Whether a key belongs to PyTorch's settings, modeled or not.
fn not_modeled(key: &str, value: &str) -> Option<&'static str> {
    let is_native = key == "backend" && value == "native";
    let found = NOT_MODELED
        .iter()
        .find(|(name, _)| if name.ends_with('_') { key.starts_with(name) } else { key == *name });
    found.filter(|_| !is_native).map(|(_, why)| *why)
}

/// The settings of a configuration that the model has no answer for, each with the reason. Those of
/// pinned host memory are none: they do not concern a device.
pub fn unmodeled_settings(text: &str) -> Vec<(String, &'static str)> {
    let parts = items(text).into_iter().filter(|(key, _)| !key.starts_with("pinned_"));
    parts
        .filter_map(|(key, value)| {
            // As recorded, its effect is in the recording.
            let why =
                not_modeled(&key, &value).filter(|_| key != "graph_capture_record_stream_reuse")?;
            Some((format!("{key}:{value}"), why))
        })
        .collect()
}

/// Keys and values of a configuration. A part without a colon has an empty value.
fn items(text: &str) -> Vec<(String, String)> {
    let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let parts = split_outside_brackets(text).map(plain).filter(|part| !part.is_empty());
    let item = |part: String| match part.split_once(':') {
        Some((key, value)) => (key.to_owned(), value.to_owned()),
        None => (part, String::new()),
    };
    parts.map(item).collect()
}

/// Splits at commas that are not in brackets.
pub fn split_outside_brackets(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    })
}

/// `large_segment_size_mb` of a configuration, in bytes.
fn large_segment_size(items: &[(String, String)]) -> Option<u64> {
    let mut values = items.iter().filter(|(key, _)| key == "large_segment_size_mb");
    let mib = values.next_back()?.1.parse::<u64>().ok()?;
    (mib > 10 && mib <= MOST_MIB).then_some(mib * MIB)
}

impl Settings {
    /// Sets the size of large segments. It is also the default of `max_non_split_rounding_mb`.
    fn set_large_segment_size(&mut self, size: u64) {
        if self.max_non_split_rounding_size == self.large_segment_size {
            self.max_non_split_rounding_size = size;
        }
        self.large_segment_size = size;
    }

    /// Gives a setting PyTorch's default; `None` if there is no such setting.
    fn unset(&mut self, key: &str) -> Option<()> {
        let usual = Self::default();
        match key {
            "expandable_segments" => self.expandable_segments = usual.expandable_segments,
            "max_split_size_mb" => self.max_split_size = usual.max_split_size,
            "large_segment_size_mb" => self.set_large_segment_size(usual.large_segment_size),
            "max_non_split_rounding_mb" => {
                self.max_non_split_rounding_size = self.large_segment_size;
            }
            "roundup_power2_divisions" => {
                self.roundup_power2_divisions = usual.roundup_power2_divisions;
            }
            "garbage_collection_threshold" => {
                self.garbage_collection_threshold = usual.garbage_collection_threshold;
            }
            "per_process_memory_fraction" => self.per_process_memory_fraction = None,
            "throw_on_cudamalloc_oom" => self.throw_on_cudamalloc_oom = false,
            "expandable_segments_reserve" => self.expandable_segments_reserve = None,
            _ => return None,
        }
        Some(())
    }

    /// Takes over what only the text of a recorded configuration says: PyTorch writes the other
    /// settings on their own. Parts that PyTorch would refuse are skipped: it did not run with
    /// them.
    pub fn set_from_recorded_text(&mut self, text: &str) {
        let only_in_text = |key: &str| {
            let known = ["max_non_split_rounding_mb", "large_segment_size_mb"];
            known.contains(&key) || SETTING_KEYS[6..].contains(&key)
        };
        let mut items = items(text);
        items.retain(|(key, _)| only_in_text(key));
        if let Some(size) = large_segment_size(&items) {
            self.set_large_segment_size(size);
        }
        for (key, value) in items {
            let mut changed = self.clone();
            if changed.set(&key, &value).is_ok() {
                *self = changed;
            }
        }
    }

    /// The key of a setting that is a part of the device's memory; `None` without one.
    pub fn needs_device_memory(&self) -> Option<&'static str> {
        let is_part = matches!(self.expandable_segments_reserve, Some(Reserve::Fraction(_)));
        if self.per_process_memory_fraction.is_some_and(|part| part < 1.0) {
            Some("per_process_memory_fraction")
        } else {
            (is_part && self.expandable_segments).then_some("expandable_segments_reserve")
        }
    }

    /// Sets one setting.
    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingCause> {
        use SettingCause::{Expected, NotModeled};
        let number = || value.parse::<u64>().map_err(|_| Expected("a number of MiB"));
        let flag = |expected| match value.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(Expected(expected)),
        };
        // Since 2.11 20 MiB are allowed too.
        let too_small = Expected("at least 20 MiB and large_segment_size_mb, as PyTorch demands");
        let least = self.large_segment_size.max(LARGE_SEGMENT) / MIB;
        match key {
            "expandable_segments" => {
                self.expandable_segments = flag("expandable_segments:True or False")?;
            }
            "max_split_size_mb" => {
                self.max_split_size = match number()? {
                    0 => u64::MAX,
                    mib if mib >= least => mib.saturating_mul(MIB),
                    _ => return Err(too_small),
                };
            }
            "large_segment_size_mb" => {
                // Its value was set before all others.
                if !(11..=MOST_MIB).contains(&number()?) {
                    return Err(Expected("more than 10 MiB, as PyTorch demands"));
                }
            }
            "max_non_split_rounding_mb" => match number()? {
                mib if mib >= least => {
                    self.max_non_split_rounding_size = mib.saturating_mul(MIB);
                }
                _ => return Err(too_small),
            },
            "roundup_power2_divisions" => {
                self.roundup_power2_divisions = divisions(value, self.release)
                    .ok_or(Expected("a power of two, or [256:1,512:2,>:4]"))?;
            }
            "garbage_collection_threshold" => {
                let threshold = value.parse::<f64>().ok().filter(|t| *t > 0.0 && *t < 1.0);
                self.garbage_collection_threshold =
                    threshold.ok_or(Expected("a number between 0 and 1"))?;
            }
            "per_process_memory_fraction" => {
                let part = value.parse::<f64>().ok().filter(|t| (0.0..=1.0).contains(t));
                let part = part.ok_or(Expected("a number from 0 to 1"))?;
                self.per_process_memory_fraction = Some(part);
            }
            "throw_on_cudamalloc_oom" => {
                self.throw_on_cudamalloc_oom = flag("throw_on_cudamalloc_oom:True or False")?;
            }
            "expandable_segments_reserve" => {
                let reserve = Reserve::parse(value);
                self.expandable_segments_reserve =
                    Some(reserve.ok_or(Expected("a part of the device such as 0.5, or 40G"))?);
            }
            _ if WITHOUT_EFFECT.contains(&key) || (key == "backend" && value == "native") => {}
            _ => return Err(not_modeled(key, value).map_or(Expected(KEYS), NotModeled)),
        }
        Ok(())
    }
}

/// Reads settings on top of `base`. A part `without max_split_size_mb` gives a setting its default,
/// for which PyTorch has no value.
///
/// # Errors
///
/// A [`SettingError`] names the first part that is not such a setting.
pub fn parse_settings(text: &str, base: &Settings) -> Result<Settings, SettingError> {
    let mut settings = base.clone();
    // Before all others, as PyTorch does: another default depends on it.
    if let Some(size) = large_segment_size(&items(text)) {
        settings.set_large_segment_size(size);
    }
    for part in split_outside_brackets(text).map(str::trim).filter(|part| !part.is_empty()) {
        let error = |cause| SettingError { text: part.to_owned(), cause };
        if let Some(key) = part.strip_prefix("without ") {
            settings.unset(key.trim()).ok_or_else(|| error(SettingCause::Expected(KEYS)))?;
            continue;
        }
        for (key, value) in items(part) {
            settings.set(&key, &value).map_err(error)?;
        }
    }
    Ok(settings)
}

/// Reads `roundup_power2_divisions`: one number for all sizes, or numbers by size in MiB.
///
/// A number holds for its size; the first also for all smaller sizes. Sizes that are not named have
/// no divisions. `>` holds for what is above the last size; up to 2.9 for the last size, too.
fn divisions(value: &str, release: Release) -> Option<[u64; DIVISION_INTERVALS]> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|&n| n == 0 || n.is_power_of_two());
    let Some(list) = value.strip_prefix('[') else {
        return Some([number(value)?; DIVISION_INTERVALS]);
    };
    let mut all = [0; DIVISION_INTERVALS];
    let mut last = None;
    for entry in list.strip_suffix(']')?.split(',') {
        let (size, divisions) = entry.split_once(':')?;
        let divisions = number(divisions)?;
        if size == ">" {
            let above = last.map_or(0, |at: usize| at + usize::from(!release.overwrites_last()));
            all[above..].fill(divisions);
            continue;
        }
        let at = (number(size)?.checked_ilog2()? as usize).min(DIVISION_INTERVALS - 1);
        if last.is_none() {
            all[..at].fill(divisions);
        }
        all[at] = divisions;
        last = Some(at);
    }
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
    if settings.large_segment_size != LARGE_SEGMENT {
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
    let fraction = settings.per_process_memory_fraction;
    parts.extend(fraction.map(|part| format!("per_process_memory_fraction:{part}")));
    if settings.throw_on_cudamalloc_oom {
        parts.push("throw_on_cudamalloc_oom:True".to_owned());
    }
    let reserve = settings.expandable_segments_reserve;
    parts.extend(reserve.map(|reserve| format!("expandable_segments_reserve:{reserve}")));
    parts.join(",")
}
