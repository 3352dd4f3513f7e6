//! The words of a prediction.

use super::{PartsRecord, WhatIfReport, devices::memory_text};
use vramscope_analysis::{SimulatedBasis, WhatIf};
use vramscope_units::{Bytes, EventIndex};

/// The largest error of scaled reserved bytes that was measured, in percent (docs/what-if.md).
const SCALED_ERROR: f64 = 12.0;

pub(super) fn basis(basis: SimulatedBasis) -> &'static str {
    match basis {
        SimulatedBasis::Simulated => "simulated",
        SimulatedBasis::Scaled => "scaled",
        SimulatedBasis::Estimate => "estimate",
    }
}

pub(super) fn error_percent(basis: SimulatedBasis) -> Option<f64> {
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
