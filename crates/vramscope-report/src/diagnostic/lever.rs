//! Levers in words.

use super::LeverRow;
use crate::what_if::Outcome;
use vramscope_inference::{Cost, Covers, Lever, LeverBasis};
use vramscope_units::grouped;

impl LeverRow {
    /// A lever in words. `is_step` tells whether what failed is a step.
    pub fn new(lever: &Lever, label: String, is_step: bool) -> Self {
        let site = lever.place.as_ref().map_or("", |place| &place.site);
        let is_told = site.is_empty() || lever.text.contains(site);
        let verdict = match (lever.outcome, lever.short_by) {
            (None, _) => String::new(),
            (Some(Outcome::Fits), _) => "fits".to_owned(),
            (Some(Outcome::Short), Some(short)) => format!("{short} short"),
            (Some(Outcome::Short), None) => "short".to_owned(),
            (Some(Outcome::FitsBarely), _) => "fits, barely".to_owned(),
            (Some(Outcome::Unknown), _) => "not known".to_owned(),
        };
        let covers = covers(lever, is_step).filter(|_| !lever.is_short());
        Self {
            label,
            text: if is_told { lever.text.clone() } else { format!("{} ({site})", lever.text) },
            needs: format!("needs {}", lever.needs_bytes),
            verdict,
            cost: cost(lever, covers.as_deref()),
            covers,
            basis: if lever.is_short() { String::new() } else { basis(lever) },
            helps: !lever.is_short(),
        }
    }
}

/// Which part of the run was replayed, or for how many steps the run goes on. `None` if the whole
/// run was replayed.
fn covers(lever: &Lever, is_step: bool) -> Option<String> {
    match (&lever.lasts, lever.covers) {
        (Some(lasts), _) => {
            Some(format!("full again in {} {}", grouped(lasts.steps), lasts.called))
        }
        // A note says it of all steps.
        (_, Covers::Run | Covers::Steps) => None,
        (_, Covers::Step) => Some(if is_step { "this step" } else { "this pass" }.to_owned()),
        (_, Covers::Request) => Some("this request only".to_owned()),
    }
}

/// The cost of a lever and the part of the run that was replayed. Empty for a lever that does not
/// help.
fn cost(lever: &Lever, covers: Option<&str>) -> String {
    if lever.is_short() {
        return String::new();
    }
    let cost = cost_text(lever);
    covers.map_or_else(|| cost.clone(), |covers| format!("{cost}, {covers}"))
}

/// `no cost`, `edit`, `time, est. +18-26 %`: short, for a column.
pub fn cost_text(lever: &Lever) -> String {
    match (lever.cost, lever.seconds_percent) {
        (Cost::None, _) => "no cost".to_owned(),
        (cost, Some([low, high])) => {
            format!("{}, est. +{}-{} %", cost.name(), grouped(low.into()), grouped(high.into()))
        }
        (cost, None) => cost.name().to_owned(),
    }
}

/// How much longer a step takes: `+18 to 26 %`.
pub fn longer([low, high]: [u32; 2]) -> String {
    format!("+{} to {} %", grouped(low.into()), grouped(high.into()))
}

/// What an estimate of time is: `time: % a step, estimated for an H100, not measured`.
pub fn time_note(gpu: &str) -> String {
    format!("time: % a step, estimated by the data sheet of the {gpu}, not measured")
}

fn basis(lever: &Lever) -> String {
    match (lever.basis, lever.error_percent, lever.range) {
        (LeverBasis::Estimated, ..) => "estimated".to_owned(),
        (LeverBasis::Replayed, Some(percent), _) => format!("±{:.0} %", percent.ceil()),
        (LeverBasis::Replayed, None, Some([low, high])) => format!("{low} to {high}"),
        (LeverBasis::Replayed, None, None) => String::new(),
    }
}
