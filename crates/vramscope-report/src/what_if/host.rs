//! Predictions for pinned host memory.

use super::{
    CalibrationRecord, CapacityRecord, Options, ScenarioRecord, SettingsRecord, WhatIfReport,
};
use crate::target::{Target, event_of, slot_of};
use serde::{Deserialize, Serialize};
use vramscope_inference::Covers;
use vramscope_inference::{
    HOST_SETTING_KEYS, HostScenario, HostWhatIf, SimulatedBasis, host_settings_text,
    recorded_settings,
};
use vramscope_trace::HostSettings;
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, EventIndex, Flushes, PeakEvent};

/// What is asked without a question: no rounding, and no cache.
const USUAL: [(&str, HostSettings); 2] = [
    (
        "pinned_max_round_threshold_mb:0",
        HostSettings { max_round_threshold: 0, max_cached_size: u64::MAX },
    ),
    (
        "pinned_max_cached_size_mb:0",
        HostSettings { max_round_threshold: u64::MAX, max_cached_size: 0 },
    ),
];

/// Why a prediction is not possible.
const NO_REQUESTS: &str = "the recording has block sizes, and PyTorch rounds requests up to powers \
                           of two. Record with PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:0 \
                           and ask that recording";

/// The settings of the allocator for pinned host memory (PyTorch 2.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PinnedSettingsRecord {
    /// `pinned_max_round_threshold_mb` in bytes: larger requests are not rounded up to a power of
    /// two. Null without a limit.
    pub max_round_threshold: Option<Bytes>,
    /// `pinned_max_cached_size_mb` in bytes: larger blocks are not kept. Null without a limit.
    pub max_cached_size: Option<Bytes>,
}

impl PinnedSettingsRecord {
    fn of(settings: &HostSettings) -> Self {
        let limit = |bytes| Some(Bytes(bytes)).filter(|&bytes| bytes != Bytes(u64::MAX));
        Self {
            max_round_threshold: limit(settings.max_round_threshold),
            max_cached_size: limit(settings.max_cached_size),
        }
    }
}

/// Answers `options` for the device `host`.
pub(super) async fn answer(
    target: Target<'_>,
    options: &Options,
    report: &mut WhatIfReport,
    budget: &mut Budget,
) {
    let model = HostWhatIf::new(target.entry.evidence(target.index), budget).await;
    report.calibration = Some(calibration(&model));
    if !model.is_equal() {
        report.declined = Some(why_not_equal(&model));
        return;
    }
    if !options.recipes.is_empty() || options.memory().is_some() {
        report.declined = Some(format!(
            "Of pinned host memory only settings can be changed: {}.",
            HOST_SETTING_KEYS.join(", ")
        ));
        return;
    }
    for (change, settings, declined) in questions(&model, options) {
        let answer = match declined {
            Some(why) => Err(why),
            None => model.answer(settings, budget).await.ok_or_else(|| NO_REQUESTS.to_owned()),
        };
        report.scenarios.push(record(target, change, &settings, answer));
    }
}

/// The questions: what changes, the settings, and why there is no answer.
fn questions(model: &HostWhatIf, options: &Options) -> Vec<(String, HostSettings, Option<String>)> {
    let own = model.settings;
    if options.configurations.is_empty() {
        let usual = USUAL.iter().filter(|(_, settings)| *settings != own);
        let usual = usual.map(|(text, settings)| ((*text).to_owned(), *settings, None));
        return [("as recorded".to_owned(), own, None)].into_iter().chain(usual).collect();
    }
    let question = |one: &super::Configuration| {
        let declined = one
            .is_of_device()
            .then(|| format!("pinned host memory has {} alone", HOST_SETTING_KEYS.join(" and ")));
        (one.text().to_owned(), one.host_settings(own), declined)
    };
    options.configurations.iter().map(question).collect()
}

fn why_not_equal(model: &HostWhatIf) -> String {
    match model.first_difference {
        Some((event, simulated, recorded)) if simulated != recorded => format!(
            "The model leaves the recording at {}: pinned {}, recorded {}. There is no prediction.",
            EventIndex(event),
            Bytes(simulated),
            Bytes(recorded)
        ),
        Some((event, ..)) => format!(
            "At {} the recording has what the model does not know, such as an event that is \
             missing. There is no prediction.",
            EventIndex(event)
        ),
        None => format!(
            "The model pins {} at most, the recording {}. There is no prediction.",
            Bytes(model.simulated_peak),
            Bytes(model.recorded_peak)
        ),
    }
}

fn calibration(model: &HostWhatIf) -> CalibrationRecord {
    CalibrationRecord {
        recorded_reserved_peak: Bytes(model.recorded_peak),
        simulated_reserved_peak: Bytes(model.simulated_peak),
        equal: model.is_equal(),
        first_difference_event: model.first_difference.map(|(event, ..)| EventIndex(event)),
        capacity: CapacityRecord {
            bytes: None,
            basis: "unknown",
            rank: None,
            low: None,
            high: None,
        },
    }
}

fn record(
    target: Target<'_>,
    change: String,
    settings: &HostSettings,
    answer: Result<HostScenario, String>,
) -> ScenarioRecord {
    let (answer, declined) = match answer {
        Ok(answer) => (Some(answer), None),
        Err(why) => (None, Some(why)),
    };
    let [low, high] = answer.map_or([0; 2], |answer| answer.reserved_range);
    let active = Bytes(answer.map_or(0, |answer| answer.active_peak));
    let is_estimate = answer.is_some_and(|answer| answer.is_estimate);
    let of_device = recorded_settings(target.snapshot(), &target.trace().device);
    ScenarioRecord {
        change,
        recipes: Vec::new(),
        conf: host_settings_text(settings),
        settings: SettingsRecord::of(&of_device),
        pinned: Some(PinnedSettingsRecord::of(settings)),
        device_memory: None,
        pytorch_memory: None,
        reserved_peak: Bytes(high),
        reserved_peak_event: answer.map(|answer| PeakEvent(event_of(slot_of(answer.peak_event)))),
        active_peak: active,
        active_range: [active; 2],
        reserved_range: [low, high].map(Bytes),
        flushes: Flushes(0),
        ooms: Vec::new(),
        fits: None,
        outcome: None,
        limited_by: None,
        rest: None,
        covers: answer.map(|_| Covers::Run),
        found: Vec::new(),
        seconds_percent: None,
        seconds_gpu: None,
        edits: Vec::new(),
        declined,
        recorded_oom_event: None,
        short_by: None,
        least_device_memory: None,
        basis: if is_estimate { SimulatedBasis::Estimate } else { SimulatedBasis::Simulated },
        curve: Vec::new(),
        error_percent: None,
    }
}
