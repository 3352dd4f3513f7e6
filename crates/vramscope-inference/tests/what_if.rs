//! Predictions against recordings of the same programs under other settings.

use crate::{Device, load, parse, test_data};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vramscope_inference::{
    Capacity, Question, Release, Scenario, Search, SimulatedBasis, WhatIf, parse_settings,
    recorded_settings, settings_text,
};
use vramscope_trace::slicing::{Budget, now, run_to_completion};
use vramscope_trace::{AllocatorSettings, Coverage};

/// Settings by the name in a file's name.
const SETTINGS: [(&str, &str); 4] = [
    ("default", ""),
    ("expandable", "expandable_segments:True"),
    ("max_split", "max_split_size_mb:64"),
    ("roundup", "roundup_power2_divisions:4"),
];

/// What PyTorch can have on the small device: 500 MiB of it belong to the context.
const TIGHT: u64 = (2297 - 500) << 20;

fn device(name: &str) -> Device {
    Device::new(load(format!("what_if/{name}.pickle.gz")))
}

fn model(device: &Device) -> WhatIf {
    now(async |budget| WhatIf::new(device.evidence(), budget).await)
}

fn answer(model: &WhatIf, question: Question) -> Scenario {
    now(async |budget| model.answer(question, budget).await)
}

fn set(text: &str) -> Question {
    let settings = parse_settings(text, &AllocatorSettings::default()).expect("settings");
    Question::as_recorded(&settings)
}

fn reserved_peak(device: &Device) -> u64 {
    u64::try_from(device.trace.reserved_band.peak).expect("no negative peak")
}

/// Every file below a folder of the test data.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.to_string_lossy().contains(".pickle") {
            found.push(path);
        }
    }
}

#[test]
fn the_model_reserves_what_was_recorded() {
    let mut paths = Vec::new();
    for folder in ["recorded", "findings", "truth", "what_if"] {
        files(&test_data().join(folder), &mut paths);
    }
    let mut different = Vec::new();
    let mut compared = 0;
    for path in &paths {
        let snapshot = parse(&std::fs::read(path).expect("a file"));
        if snapshot.devices.iter().all(|device| device.events.len() < 2) {
            continue;
        }
        let device = Device::new(snapshot);
        // Pinned memory has a model of its own.
        if device.trace.coverage == Coverage::None || device.trace.device.kind.is_host() {
            continue;
        }
        compared += 1;
        if !model(&device).calibration.is_equal() {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            different.push(name);
        }
    }
    assert!(compared > 60, "only {compared} recordings");
    // PyTorch 2.0 does not write which pool a block belongs to.
    different.retain(|name| !name.starts_with("pools"));
    assert_eq!(different, Vec::<String>::new(), "of {compared}");
}

#[test]
fn each_setting_predicts_each_other_to_the_byte() {
    for family in ["varlen", "multiscale"] {
        let recorded: BTreeMap<&str, Device> = (SETTINGS.iter())
            .map(|(name, _)| (*name, device(&format!("{family}_roomy_{name}"))))
            .collect();
        for (from, device) in &recorded {
            let model = model(device);
            for (to, text) in SETTINGS {
                let question = Question { least: Search::WhenShort, ..set(text) };
                let predicted = answer(&model, question);
                let peak = reserved_peak(&recorded[to]);
                assert_eq!(predicted.reserved_peak, peak, "{family} from {from} to {to}");
                assert_eq!(predicted.basis, SimulatedBasis::Simulated);
                let [low, high] = predicted.reserved_range;
                assert!(low <= peak && peak <= high);
            }
        }
    }
}

#[test]
fn whether_a_run_fits_on_a_smaller_device_is_predicted() {
    let roomy = device("varlen_roomy_default");
    let model = model(&roomy);
    for (name, text) in SETTINGS {
        let tight = device(&format!("varlen_tight_{name}"));
        let predicted = answer(&model, Question { available: Some(TIGHT), ..set(text) });
        assert_eq!(predicted.fits(), tight.trace.ooms.is_empty(), "{name}");
        assert_eq!(predicted.short_by() == Some(0), predicted.fits());
        let least = predicted.least.expect("asked for");
        assert_eq!(least <= TIGHT, predicted.fits(), "{name} needs {least}");
        // The least memory is enough, and 2 MiB less are not.
        let with = |available| {
            let question =
                Question { available: Some(available), least: Search::WhenShort, ..set(text) };
            answer(&model, question).fits()
        };
        assert!(with(least) && !with(least - (2 << 20)), "{name} needs {least}");
    }
}

#[test]
fn an_allocation_that_fails_gives_the_limit() {
    let device = device("varlen_tight_default");
    let model = model(&device);
    assert_eq!(model.calibration.capacity, Capacity::Exact { bytes: TIGHT });
    let own = answer(&model, Question::as_recorded(&model.settings));
    let recorded: Vec<u32> = device.trace.ooms.iter().map(|oom| oom.event.0).collect();
    assert_eq!(own.ooms, recorded);
    assert_eq!(own.short_by(), Some(own.least.expect("asked for") - TIGHT));
}

#[test]
fn a_request_that_is_rounded_to_a_power_of_two_is_refused_as_rounded() {
    let model = model(&device("moe_tight_roundup"));
    assert_eq!(model.calibration.capacity, Capacity::Exact { bytes: (2095 - 500) << 20 });
}

#[test]
fn retries_bound_the_limit() {
    let device = device("varlen_tight_expandable");
    let Capacity::Bounded { at_least, below } = model(&device).calibration.capacity else {
        panic!("no bounds");
    };
    assert!(at_least <= TIGHT && TIGHT < below, "{at_least} to {below}");
}

#[test]
fn garbage_collection_is_reproduced() {
    for name in ["varlen_tight_gc", "multiscale_tight_gc"] {
        let model = model(&device(name));
        assert!(model.calibration.is_equal(), "{name}");
        assert!(model.calibration.allowed.is_some(), "{name}");
    }
}

#[test]
fn the_parts_of_the_reserved_peak_add_up() {
    for name in ["varlen_roomy_default", "varlen_roomy_expandable", "varlen_tight_default"] {
        let device = device(name);
        let parts = now(async |budget| model(&device).parts_at_peak(budget).await);
        let sum: u64 = parts.iter().map(|(.., parts)| parts.total()).sum();
        assert_eq!(sum, reserved_peak(&device), "{name}");
    }
}

#[test]
fn slices_change_nothing() {
    let device = device("varlen_tight_default");
    let whole = model(&device);
    let sliced = run_to_completion(WhatIf::new(device.evidence(), &mut Budget::of(1000)));
    assert_eq!(sliced.calibration, whole.calibration);
}

#[test]
fn settings_that_only_the_text_has_are_read_from_it() {
    let mut tight = device("varlen_tight_gc");
    let recorded = recorded_settings(&tight.snapshot, &tight.trace.device);
    assert_eq!(settings_text(&recorded), "garbage_collection_threshold:0.6");
    // PyTorch writes this setting only in the text of the configuration.
    for (key, value) in &mut tight.snapshot.settings {
        if key == "PYTORCH_CUDA_ALLOC_CONF" {
            // A part that PyTorch refuses does not hide the others. What has a key of its own
            // counts as the key says.
            *value = "\"large_segment_size_mb : 12, per_process_memory_fraction:0.5,\
                max_non_split_rounding_mb:no,throw_on_cudamalloc_oom:True,\
                expandable_segments_reserve:40G,expandable_segments:True\""
                .to_owned();
        }
    }
    let recorded = recorded_settings(&tight.snapshot, &tight.trace.device);
    assert_eq!(
        settings_text(&recorded),
        "large_segment_size_mb:12,garbage_collection_threshold:0.6,\
         per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True,\
         expandable_segments_reserve:40G"
    );
    assert_eq!(recorded.release, Release::LATEST);
}

/// Recordings of PyTorch 2.15 with pools that are not split, whose blocks are rounded up far, and
/// whose request returned cached memory. The peaks are those of `memory_stats`.
#[test]
fn pools_of_every_kind_are_reproduced() {
    for (name, reserved, active) in [
        ("mempool_no_split", 186_646_528, 170_917_888),
        ("mempool_rounded", 358_612_992, 328_204_288),
        ("mempool_flush", 465_567_744, 443_547_648),
    ] {
        let model = model(&device(name));
        assert!(model.calibration.is_equal(), "{name}: {:?}", model.calibration);
        let own = answer(&model, Question::as_recorded(&model.settings));
        assert_eq!((own.reserved_peak, own.active_peak), (reserved, active), "{name}");
    }
}
