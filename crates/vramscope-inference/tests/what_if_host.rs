//! Predictions for pinned host memory, compared with recordings of the other settings.
//!
//! `recorded/pinned/` has one program under six settings. PyTorch's `host_memory_stats()` of each
//! is in `expected.json`.

use crate::{Device, bytes_of, load};
use serde_json::Value;
use vramscope_inference::{HostChange, HostScenario, HostWhatIf};
use vramscope_trace::slicing::now;

const NAMES: [&str; 6] =
    ["default", "threshold_0", "threshold_8", "cached_4", "cached_0", "threshold_1_cached_4"];

fn recording(name: &str) -> Device {
    Device::host(load(format!("recorded/pinned/{name}.pickle.gz")))
}

fn model(device: &Device) -> HostWhatIf {
    now(async |budget| HostWhatIf::new(device.evidence(), budget).await)
}

/// The change to the settings of a recording, and PyTorch's peak of pinned bytes under them.
fn expected(name: &str) -> (HostChange, u64) {
    let all: Value =
        serde_json::from_slice(&bytes_of("recorded/pinned/expected.json")).expect("JSON");
    let bytes = |key: &str| all[name][key].as_i64().expect("a number");
    let size = |key: &str| Some(u64::try_from(bytes(key)).unwrap_or(u64::MAX));
    let change = HostChange {
        max_round_threshold: size("max_round_threshold"),
        max_cached_size: size("max_cached_size"),
    };
    (change, bytes("allocated_bytes.peak") as u64)
}

fn answer(from: &HostWhatIf, to: &str) -> (Option<HostScenario>, u64) {
    let (change, peak) = expected(to);
    (now(async |budget| from.answer(change.of(from.settings), budget).await), peak)
}

#[test]
fn pinned_bytes_of_recordings_are_reproduced() {
    for name in NAMES {
        let model = model(&recording(name));
        assert!(model.is_equal(), "{name}: {:?}", model.first_difference);
        assert_eq!(model.recorded_peak, expected(name).1, "{name}: PyTorch's own counter");
    }
    for path in ["recorded/t215_pinned_loader.pickle", "edge/host.pickle", "edge/host_only.pickle"]
    {
        let model = model(&Device::host(load(path)));
        assert!(model.is_equal(), "{path}: {:?}", model.first_difference);
    }
}

/// A recording without rounding answers for every other setting to the byte, but for what depends
/// on requests that a larger free block served.
#[test]
fn predictions_equal_the_recordings_of_the_other_settings() {
    let [mut exact, mut bounded, mut estimates, mut declined] = [const { Vec::new() }; 4];
    for from in NAMES {
        let model = model(&recording(from));
        for to in NAMES.iter().filter(|to| **to != from) {
            let (answer, peak) = answer(&model, to);
            let pair = format!("{from} -> {to}");
            match answer.map(|answer| (answer.is_estimate, answer.reserved_range)) {
                None => declined.push(pair),
                // `empty_cache` leaves no event where nothing is cached.
                Some((true, _)) => estimates.push(pair),
                Some((_, [low, high])) if low == high => {
                    assert_eq!(low, peak, "{pair}");
                    exact.push(pair);
                }
                Some((_, [low, high])) => {
                    assert!((low..=high).contains(&peak), "{pair}: {low} to {high}, not {peak}");
                    bounded.push(pair);
                }
            }
        }
    }
    let counts = [exact.len(), bounded.len(), estimates.len(), declined.len()];
    assert_eq!(counts, [8, 5, 9, 8], "{exact:?}\n{bounded:?}\n{estimates:?}\n{declined:?}");
    for pair in ["threshold_0 -> default", "threshold_0 -> threshold_8", "cached_4 -> cached_0"] {
        assert!(exact.contains(&pair.to_owned()), "{pair}");
    }
    assert!(declined.contains(&"default -> threshold_0".to_owned()), "requests are not known");
}
