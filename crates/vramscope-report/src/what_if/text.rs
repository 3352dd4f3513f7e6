//! The words of a prediction.

use super::{PartsRecord, ScenarioRecord, WhatIfReport, devices::memory_text};
use std::cmp::Ordering;
use vramscope_analysis::{SimulatedBasis, WhatIf};
use vramscope_units::{Bytes, EventIndex};

/// The largest error of scaled reserved bytes that was measured, in percent (docs/what-if.md).
const SCALED_ERROR: f64 = 12.0;

/// The name of a basis in JSON.
pub(crate) fn basis(basis: SimulatedBasis) -> &'static str {
    match basis {
        SimulatedBasis::Simulated => "simulated",
        SimulatedBasis::Scaled => "scaled",
        SimulatedBasis::Estimate => "estimate",
    }
}

/// The measured error of scaled numbers, in percent.
pub(crate) fn error_percent(basis: SimulatedBasis) -> Option<f64> {
    (basis == SimulatedBasis::Scaled).then_some(SCALED_ERROR)
}

/// How well the model reproduces a recording.
pub fn calibration_text(model: &WhatIf) -> String {
    let calibration = &model.calibration;
    match calibration.first_difference {
        Some((event, simulated, recorded)) => format!(
            "The model leaves the recording at {}: reserved {}, recorded {}. There is no \
             prediction.",
            EventIndex(event),
            Bytes(simulated),
            Bytes(recorded)
        ),
        None if !calibration.is_equal() => format!(
            "The model reserves {} at most, the recording {}. There is no prediction.",
            Bytes(calibration.simulated_reserved_peak),
            Bytes(calibration.recorded_reserved_peak)
        ),
        None => "The model reproduces this recording to the byte.".to_owned(),
    }
}

/// What the reserved peak was used for, and what would change it.
pub fn sentence(report: &WhatIfReport<'_>) -> Option<String> {
    let calibration = report.calibration.as_ref()?;
    let PartsRecord { in_use, rounding, idle, stuck, small } = report.reserved?;
    let needed = in_use + rounding;
    let own = report.scenarios.first().filter(|scenario| scenario.change == "as recorded");
    let least = own.and_then(|own| own.least_device_memory);
    let fits = least.map_or(String::new(), |b| format!(" (this run fits in {})", memory_text(b)));
    Some(format!(
        "{} reserved at most, {} of it in use. {} is idle cache that PyTorch returns when memory \
         is short{fits}; {} is stuck in segments in use.",
        Bytes(calibration.recorded_reserved_peak),
        Bytes(needed),
        Bytes(idle),
        Bytes(stuck + small)
    ))
}

/// The reserved peak of a scenario, with its range where the order of addresses decides.
pub fn peak_text(scenario: &ScenarioRecord) -> String {
    let peak = Bytes(scenario.reserved_peak);
    let [low, high] = scenario.reserved_range;
    if low < high {
        format!("{peak} ({} to {})", Bytes(low), Bytes(high))
    } else {
        peak.to_string()
    }
}

/// Whether a scenario fits, in a few words.
pub fn outcome_text(scenario: &ScenarioRecord) -> String {
    match (scenario.pytorch_memory, scenario.ooms.first()) {
        (_, Some(&event)) => {
            let short =
                scenario.short_by.map_or(String::new(), |b| format!(", short by {}", Bytes(b)));
            format!("runs out at {}{short}", EventIndex(event))
        }
        (Some(limit), None) => format!("fits in {}", Bytes(limit)),
        (None, None) => "no limit known".to_owned(),
    }
}

/// How the numbers of a scenario were obtained, with the error where it was measured.
pub fn basis_text(scenario: &ScenarioRecord) -> String {
    match scenario.error_percent {
        Some(percent) => format!("{} \u{b1}{percent} %", scenario.basis),
        None => scenario.basis.to_owned(),
    }
}

/// A scenario in a sentence: whether it fits, and how its reserved peak compares with the recorded
/// one.
pub fn verdict(scenario: &ScenarioRecord, recorded_peak: u64) -> String {
    let peak = Bytes(scenario.reserved_peak);
    let limit = scenario.pytorch_memory;
    if let Some(&event) = scenario.ooms.first() {
        let of = limit.map_or(String::new(), |bytes| format!(" of {}", Bytes(bytes)));
        return format!(
            "Runs out of memory at {}, with up to {peak}{of} reserved.",
            EventIndex(event)
        );
    }
    let difference = Bytes(scenario.reserved_peak.abs_diff(recorded_peak));
    let compared = match scenario.reserved_peak.cmp(&recorded_peak) {
        Ordering::Less => format!("{difference} less than recorded"),
        Ordering::Equal => "as recorded".to_owned(),
        Ordering::Greater => format!("{difference} more than recorded"),
    };
    match limit {
        Some(bytes) => {
            format!("Fits in {}. It reserves {peak} at most, {compared}.", Bytes(bytes))
        }
        None => format!("Reserves {peak} at most, {compared}."),
    }
}
