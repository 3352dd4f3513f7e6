//! The words of a prediction.

use super::{CapacityRecord, Outcome, PartsRecord, ScenarioRecord, WhatIfReport};
use crate::diagnostic::longer;
use crate::levers::{MAX_BATCH, PlanRecord};
use vramscope_inference::Covers;
use vramscope_inference::{Rest, SimulatedBasis, WhatIf};
use vramscope_units::{Bytes, EventIndex};

/// The name of a basis in JSON.
pub(crate) fn basis(basis: SimulatedBasis) -> &'static str {
    match basis {
        SimulatedBasis::Simulated => "simulated",
        SimulatedBasis::Recipe => "recipe",
        SimulatedBasis::Estimate => "estimate",
    }
}

/// The answer to `--plan` in a sentence.
pub fn plan_text(plan: &PlanRecord) -> String {
    let have = plan.pytorch_memory;
    let least = if plan.covers == Covers::Request { "at least " } else { "" };
    let needs = format!("The run needs {least}{}", plan.needs_bytes);
    let batch = batch_text(plan.largest_batch)
        .map_or(String::new(), |text| format!(" Without a change {text} fits."));
    match (plan.unchanged, plan.sets.is_empty()) {
        (Outcome::Fits, _) => format!("{needs}, and PyTorch can have {have}: it fits.{batch}"),
        (Outcome::Unknown, _) => {
            format!("{needs}, and PyTorch can have {have}: whether it fits is not known.")
        }
        (Outcome::FitsBarely, true) => {
            format!("{needs}, and PyTorch can have {have}: too close to tell.{batch}")
        }
        (Outcome::FitsBarely, false) => format!(
            "{needs}, and PyTorch can have {have}: too close to tell.{batch} It fits with one of:"
        ),
        (Outcome::Short, true) => format!(
            "{needs}, and PyTorch can have {have}. No set of changes that can be predicted fits."
        ),
        (Outcome::Short, false) => {
            format!("{needs}, and PyTorch can have {have}.{batch} It fits with one of:")
        }
    }
}

/// How much longer a step takes with the changes of a scenario. `None` without an estimate.
pub fn time_text(scenario: &ScenarioRecord) -> Option<String> {
    let longer = longer(scenario.seconds_percent?);
    let (change, gpu) = (&scenario.change, scenario.seconds_gpu.as_deref()?);
    Some(format!(
        "{change}: {longer} time a step, estimated by the data sheet of the {gpu}, not measured."
    ))
}

/// A factor of the batch: `1.52 x the batch`. `None` without one.
pub fn batch_text(factor: Option<f64>) -> Option<String> {
    factor.map(|factor| match factor {
        1.0 => "the recorded batch".to_owned(),
        _ if factor >= MAX_BATCH => format!("{factor} x the batch or more"),
        _ => format!("{factor} x the batch"),
    })
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

/// How the limit of the device is known, unless a failed allocation of the recording shows it or
/// nothing does.
pub fn limit_text(capacity: &CapacityRecord) -> Option<String> {
    let bytes = capacity.bytes.unwrap_or_default();
    match (capacity.rank, capacity.low, capacity.high) {
        (Some(rank), ..) => Some(format!(
            "The file shows no limit. Rank {rank} of the run ran out of memory where PyTorch could \
             have {bytes}: that limit is assumed here."
        )),
        (_, Some(low), Some(high)) => Some(format!(
            "PyTorch could have between {low} and {high}, from a reservation that the driver \
             refused. {bytes} is assumed."
        )),
        _ if capacity.basis == "measured" => Some(format!(
            "PyTorch could have {bytes} on this device when the snapshot was written, as the file \
             beside it says."
        )),
        _ if capacity.basis == "changing" => Some(
            "Failed and refused requests contradict each other: what PyTorch could have changed \
             during the recording."
                .to_owned(),
        ),
        _ => None,
    }
}

/// What the reserved peak was used for, and what would change it.
pub fn sentence(report: &WhatIfReport) -> Option<String> {
    let calibration = report.calibration.as_ref()?;
    let PartsRecord { in_use, rounding, idle, stuck, small } = report.reserved?;
    let needed = Bytes(in_use.0 + rounding.0);
    let own = report.scenarios.first().filter(|scenario| scenario.change == "as recorded");
    // What the run needs after its last request that failed is in the table, if it is known.
    let mut rests = report.scenarios.iter().filter_map(|scenario| scenario.rest);
    let ended = rests.any(|rest| rest != Rest::Whole);
    let own = own.filter(|_| !ended);
    let least = own.and_then(|own| own.least_device_memory);
    let fits = least.map_or(String::new(), |b| format!(" (this run fits in {b})"));
    Some(format!(
        "{} reserved at most, {needed} of it in use. {idle} is cached, which PyTorch returns \
         when memory is short{fits}; {} is fragmented, in segments in use.{}",
        calibration.recorded_reserved_peak,
        Bytes(stuck.0 + small.0),
        if ended { String::new() } else { expandable(&report.scenarios) }
    ))
}

/// How the failed step of a run was completed, in a sentence; `None` if nothing was.
pub fn rest_text(report: &WhatIfReport) -> Option<&'static str> {
    let rest = report.scenarios.iter().find_map(|scenario| scenario.rest)?;
    Some(match rest {
        Rest::Whole => return None,
        Rest::Repeated => {
            "The failed step is completed by the whole step before it. An evaluation, or longer \
             inputs, that the file lacks are not covered."
        }
        Rest::Optimizer => "The failed step is completed by the states that are still missing.",
        Rest::Backward => "The failed step is completed by a backward pass that mirrors forward.",
        Rest::Forward => "The failed step is completed by the layers that are missing.",
        Rest::Evaluation => "The evaluation is completed by the training pass before it.",
        Rest::Like => "The failed pass is completed by the like pass before it.",
        Rest::Unknown => "The rest of the failed step is not in the file.",
    })
}

/// What the other value of `expandable_segments` would reserve, if that is among the scenarios.
fn expandable(scenarios: &[ScenarioRecord]) -> String {
    let of_setting = |scenario: &&ScenarioRecord| {
        matches!(&*scenario.change, "expandable_segments:True" | "expandable_segments:False")
    };
    let Some(scenario) = scenarios.iter().find(of_setting) else { return String::new() };
    let change = &scenario.change;
    if let Some(event) = scenario.ooms.first() {
        return format!(" With {change} it would run out at {event}.");
    }
    let about = if scenario.basis == SimulatedBasis::Estimate { "about " } else { "" };
    format!(" {change} would reserve {about}{}.", scenario.reserved_peak)
}

/// The range of a predicted peak; empty for an exact one.
pub fn range_text(scenario: &ScenarioRecord) -> String {
    let [low, high] = scenario.reserved_range;
    if low < high { format!("{low} to {high}") } else { String::new() }
}

/// Whether a scenario fits, in a few words.
pub fn outcome_text(scenario: &ScenarioRecord) -> String {
    if let Some(why) = &scenario.declined {
        return format!("no prediction: {why}");
    }
    if scenario.basis == SimulatedBasis::Recipe {
        return recipe_outcome(scenario);
    }
    match (scenario.pytorch_memory, scenario.ooms.first()) {
        (_, Some(event)) => {
            let short = scenario.short_by.map_or(String::new(), |b| format!(", short by {b}"));
            format!("runs out at {event}{short}")
        }
        (Some(limit), None) => format!("fits in {limit}"),
        (None, None) => match scenario.recorded_oom_event {
            Some(event) => format!("ran out at {event} in the recording, limit not known"),
            None => "no limit known".to_owned(),
        },
    }
}

/// The same for a change of the program.
fn recipe_outcome(scenario: &ScenarioRecord) -> String {
    let limit = scenario.pytorch_memory.map_or(String::new(), |bytes| format!(" in {bytes}"));
    let short = scenario.short_by.map_or(String::new(), |bytes| format!(" by {bytes}"));
    match scenario.outcome {
        None => "no limit known".to_owned(),
        Some(Outcome::Fits) => format!("fits{limit}"),
        Some(Outcome::FitsBarely) => format!("too close to tell{limit}"),
        Some(Outcome::Short) => format!("short{short}"),
        Some(Outcome::Unknown) => "the rest of the step is not in the file".to_owned(),
    }
}

/// How the numbers of a scenario were obtained, with the error where it was measured.
pub fn basis_text(scenario: &ScenarioRecord) -> String {
    let name = basis(scenario.basis);
    match scenario.error_percent {
        Some(percent) => format!("{name} \u{b1}{percent} %"),
        None => name.to_owned(),
    }
}
