//! The words of what the model of the allocator says about findings.

use super::predicted::{ChangeKind, Predicted, Simulated};
use super::words::{capitalized, list};
use vramscope_units::Bytes;

/// A saving of fewer bytes is not worth a change.
const MIN_SAVED: u64 = 16 << 20;

/// By how much a failed allocation is short.
pub(crate) fn shortfall(predicted: &Predicted) -> String {
    let own = predicted.simulated.first().and_then(Simulated::short);
    own.map_or(String::new(), |own| format!("{own} are missing as configured (simulated)."))
}

/// The need of the run as recorded, if it `is_whole`, and the reserved memory of other settings.
pub(crate) fn reserved(simulated: &[Simulated], peak: Bytes, is_whole: bool) -> String {
    let own = simulated.iter().find(|one| one.kind == ChangeKind::AsRecorded);
    let least = own.and_then(|own| own.least_device_memory).filter(|_| is_whole);
    let least = least.map(|bytes| format!("This run fits in {bytes}."));
    let others = simulated.iter().filter(|one| one.kind != ChangeKind::AsRecorded).map(|one| {
        let subject = match one.kind {
            ChangeKind::Expandable => format!("{} would reserve", one.change),
            _ => format!("{} it would reserve", capitalized(&with(one))),
        };
        let reserved = one.reserved_peak;
        if reserved < peak {
            format!("{subject} {reserved}.")
        } else {
            format!("{subject} no less: {reserved}.")
        }
    });
    let sentences: Vec<String> = least.into_iter().chain(others).collect();
    if sentences.is_empty() { String::new() } else { sentences.join(" ") }
}

/// The settings that reserve least, if they save enough: `Set
/// PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: 0.80 GiB less reserved (simulated).`
pub(crate) fn saving(simulated: &[Simulated], peak: Bytes) -> Option<String> {
    let best = least_reserving(simulated)?;
    let saved = saved(simulated, peak).0;
    (saved >= MIN_SAVED && saved.saturating_mul(50) >= peak.0)
        .then(|| format!("{}: {} less reserved (simulated).", set(best), Bytes(saved)))
}

/// The saving of the settings that reserve least; 0 without other settings.
pub(crate) fn saved(simulated: &[Simulated], peak: Bytes) -> Bytes {
    let least = least_reserving(simulated);
    Bytes(least.map_or(0, |one| peak.0.saturating_sub(one.reserved_peak.0)))
}

/// Of the settings whose reserved peak is at most one part in 100 above the least, those with the
/// shortest text.
fn least_reserving(simulated: &[Simulated]) -> Option<&Simulated> {
    let others = || simulated.iter().filter(|one| one.kind != ChangeKind::AsRecorded);
    let least = others().map(|one| one.reserved_peak.0).min()?;
    let best = others().filter(|one| one.reserved_peak.0 <= least + least / 100);
    best.min_by_key(|one| (one.conf.len(), one.reserved_peak))
}

/// `Set PYTORCH_CUDA_ALLOC_CONF=..., without max_split_size_mb`: the text is the whole value. What
/// the recording has and must go is named.
fn set(one: &Simulated) -> String {
    let dropped = list(&one.without);
    match (one.conf.is_empty(), dropped.is_empty()) {
        (true, true) => "Unset PYTORCH_CUDA_ALLOC_CONF".to_owned(),
        (true, false) => format!("Set PYTORCH_CUDA_ALLOC_CONF {dropped}"),
        (false, true) => format!("Set PYTORCH_CUDA_ALLOC_CONF={}", one.conf),
        (false, false) => {
            format!("Set PYTORCH_CUDA_ALLOC_CONF={}, {dropped}", one.conf)
        }
    }
}

/// A change after a verb: `with expandable_segments:True`, `without max_split_size_mb`.
fn with(one: &Simulated) -> String {
    let with = if one.with.is_empty() { "" } else { "with " };
    format!("{with}{}", list(&[&*one.with, &*one.without].concat()))
}
