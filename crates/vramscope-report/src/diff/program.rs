//! What changed in the program between two recordings, and whether that did what a prediction from
//! the first one says.

use crate::derived::Derived;
use crate::optimizations::features;
use crate::side::Side;
use crate::target::Target;
use crate::text::category;
use crate::what_if::REST_UNKNOWN;
use crate::{Quantity, peak::BandKind};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use vramscope_inference::{
    Arena, Category, Changes, Features, Question, Recipe, Rest, Search, ended_by_failure,
    recorded_settings, settings_text,
};
use vramscope_trace::AllocatorSettings;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// How a side's program was made.
pub struct SideProgram {
    features: Features,
    settings: AllocatorSettings,
    torch: Option<String>,
}

impl SideProgram {
    /// The program of a device; `None` if the recording has no history.
    pub async fn of(target: Target<'_>, budget: &mut Budget) -> Option<Self> {
        let features = features(target, budget).await?;
        Some(Self {
            features,
            settings: recorded_settings(target.snapshot(), &target.trace().device),
            torch: target.entry.sidecar().and_then(|sidecar| sidecar.torch.clone()),
        })
    }
}

/// What changed in the program, and whether the memory changed as predicted from A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramChanges {
    /// The changes that lead from A to B, as `what-if --apply` takes them.
    pub recipes: Vec<String>,
    /// A change that sizes cannot tell from the first one, with an equal prediction; else null.
    pub or: Option<String>,
    /// The allocator settings of B, if they differ from those of A; else empty.
    pub conf: String,
    /// Memory optimizations of A that B does not have.
    pub undone: Vec<String>,
    /// The peak of active bytes that is predicted from A; null without a prediction.
    pub predicted_active_peak: Option<Bytes>,
    /// The peak of active bytes in B.
    pub active_peak: Bytes,
    /// How far the active peak of B is above the prediction, in percent.
    pub active_percent: Option<f64>,
    /// The peak of reserved bytes that is predicted from A; null without a prediction.
    pub predicted_reserved_peak: Option<Bytes>,
    /// Where that lies at least and at most.
    pub predicted_reserved_range: Option<[Bytes; 2]>,
    /// The peak of reserved bytes in B.
    pub reserved_peak: Bytes,
    /// How far the reserved peak of B is above the prediction, in percent.
    pub reserved_percent: Option<f64>,
    /// The measured error of the recipes, in percent; null if one was not measured, and without
    /// recipes.
    pub error_percent: Option<f64>,
    /// Why nothing is predicted, in a few words; null with a prediction.
    pub declined: Option<String>,
    /// Why prediction and B differ by more than the error, in sentences.
    pub reasons: Vec<String>,
}

/// What changed between two programs.
pub struct FoundChanges {
    changes: Changes,
    settings: AllocatorSettings,
    conf: String,
}

/// Finds what changed; `None` if nothing did, or if the change has no name.
pub fn found_changes(a: &SideProgram, b: &SideProgram) -> Option<FoundChanges> {
    let changes = a.features.changes_to(&b.features)?;
    let conf = settings_text(&b.settings);
    let is_other = conf != settings_text(&a.settings);
    if changes.recipes.is_empty() && changes.undone.is_empty() && !is_other {
        return None;
    }
    let default = || "expandable_segments:False".to_owned();
    let conf = match (is_other, conf.is_empty()) {
        (false, _) => String::new(),
        (true, true) => default(),
        (true, false) => conf,
    };
    Some(FoundChanges { changes, settings: b.settings.clone(), conf })
}

/// How far a value lies above a prediction, in percent with one digit.
fn percent(predicted: u64, real: u64) -> f64 {
    let percent = (real as f64 / (predicted as f64).max(1.0) - 1.0) * 100.0;
    (percent * 10.0).round() / 10.0
}

/// A smaller difference needs no reason, in percent.
const LEAST_ERROR: f64 = 0.5;
/// Reserved bytes differ by this much more than active ones.
const RESERVED_ERROR: f64 = 5.0;

/// Predicts the memory of B from A, and compares. `target` is the device of A.
pub async fn program_changes(
    target: Target<'_>,
    found: &FoundChanges,
    [a, b]: [&SideProgram; 2],
    after: &Side,
    budget: &mut Budget,
) -> ProgramChanges {
    let peak = |band| Bytes(u64::try_from(after.figures(band).peak).unwrap_or(0));
    let recipes = &found.changes.recipes;
    let mut record = ProgramChanges {
        recipes: recipes.iter().map(Recipe::to_string).collect(),
        or: found.changes.or.as_ref().map(Recipe::to_string),
        conf: found.conf.clone(),
        undone: found.changes.undone.iter().map(|change| change.listed().to_owned()).collect(),
        predicted_active_peak: None,
        active_peak: peak(BandKind::Active),
        active_percent: None,
        predicted_reserved_peak: None,
        predicted_reserved_range: None,
        reserved_peak: peak(BandKind::Reserved),
        reserved_percent: None,
        error_percent: None,
        declined: None,
        reasons: Vec::new(),
    };
    if !found.changes.undone.is_empty() {
        record.declined = Some("an optimization of the first recording is missing".to_owned());
        return record;
    }
    if let Some(change) = found.changes.unclear.first() {
        let name = change.listed();
        record.declined = Some(format!("the second recording does not tell whether it has {name}"));
        return record;
    }
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let Some(editable) = target.entry.editable(target.index) else {
        record.declined = Some("the model does not reproduce the first recording".to_owned());
        return record;
    };
    if editable.rest == Rest::Unknown {
        record.declined = Some(REST_UNKNOWN.to_owned());
        return record;
    }
    let evidence = target.entry.evidence(target.index);
    // As in what-if: other settings alone are a replay of the recording, with its failed requests.
    let predicted = if recipes.is_empty() && !ended_by_failure(evidence) {
        of_settings(target, &found.settings, a.features.at_peak, budget).await
    } else {
        match Arena::new(editable).apply(evidence, recipes, budget).await {
            Ok(run) => {
                let answer = run.answer(&found.settings, None, budget).await;
                record.error_percent = answer.error_percent;
                Ok(Prediction {
                    active: answer.active_peak,
                    reserved: answer.reserved_peak,
                    reserved_range: answer.reserved_range,
                    at_peak: run.at_peak(budget).await,
                })
            }
            Err(why) => Err(why.words()),
        }
    };
    let predicted = match predicted {
        Ok(predicted) => predicted,
        Err(why) => {
            record.declined = Some(why.to_owned());
            return record;
        }
    };
    let real = [record.active_peak.0, record.reserved_peak.0];
    record.predicted_active_peak = Some(Bytes(predicted.active));
    record.predicted_reserved_peak = Some(Bytes(predicted.reserved));
    record.predicted_reserved_range = Some(predicted.reserved_range.map(Bytes));
    let of_active = percent(predicted.active, real[0]);
    let of_reserved = percent(predicted.reserved, real[1]);
    record.active_percent = Some(of_active);
    record.reserved_percent = Some(of_reserved);
    let error = record.error_percent.unwrap_or(LEAST_ERROR);
    let is_far = of_active.abs() > error || of_reserved.abs() > error + RESERVED_ERROR;
    if is_far {
        record.reasons = reasons([a, b], predicted.at_peak);
    }
    record
}

/// The memory that B needs according to A.
struct Prediction {
    /// The peak of active bytes.
    active: u64,
    /// The peak of reserved bytes.
    reserved: u64,
    /// The lowest and the highest value of it.
    reserved_range: [u64; 2],
    /// Requested bytes at the peak by category.
    at_peak: [u64; Category::ALL.len()],
}

/// Replays the recording under other settings. They change no request, so `at_peak` stays.
///
/// # Errors
/// Why nothing is predicted, in a few words.
async fn of_settings(
    target: Target<'_>,
    settings: &AllocatorSettings,
    at_peak: [u64; Category::ALL.len()],
    budget: &mut Budget,
) -> Result<Prediction, &'static str> {
    target.entry.derive(Derived::WhatIf, target.index, budget).await;
    let model = target.entry.what_if(target.index).ok_or("the first recording has no model")?;
    let question = Question { least: Search::Never, ..Question::as_recorded(settings) };
    let scenario = model.answer(question, budget).await;
    if !scenario.fits() {
        return Err("the replay of the first recording with these settings runs out of memory");
    }
    Ok(Prediction {
        active: scenario.active_peak,
        reserved: scenario.reserved_peak,
        reserved_range: scenario.reserved_range,
        at_peak,
    })
}

/// Categories to name.
const MAX_REASONS: usize = 2;

fn reasons([a, b]: [&SideProgram; 2], predicted: [u64; Category::ALL.len()]) -> Vec<String> {
    let mut all = Vec::new();
    let real = b.features.at_peak;
    let total: u64 = real.iter().sum();
    let mut rows: Vec<(Category, i64)> = Category::ALL
        .into_iter()
        .map(|of| (of, real[of as usize] as i64 - predicted[of as usize] as i64))
        .filter(|(_, change)| change.unsigned_abs() * 100 > total)
        .collect();
    rows.sort_by_key(|(_, change)| Reverse(change.unsigned_abs()));
    for (of, change) in rows.into_iter().take(MAX_REASONS) {
        let bytes = Quantity::change_of_bytes(change).text;
        all.push(format!("At the peak, {} are {bytes} against the prediction.", category(of)));
    }
    let is_other_torch = match (&a.torch, &b.torch) {
        (Some(a), Some(b)) => a != b,
        _ => {
            let (a, b) = (&a.features.torch_lines, &b.features.torch_lines);
            !a.is_empty() && !b.is_empty() && a.iter().all(|line| !b.contains(line))
        }
    };
    if is_other_torch {
        all.push(match (&a.torch, &b.torch) {
            (Some(a), Some(b)) => format!("PyTorch differs: {a} before, {b} after."),
            _ => "The recordings are of different releases of PyTorch.".to_owned(),
        });
    }
    all
}

impl ProgramChanges {
    /// What changed and how it compares, in at most three sentences.
    pub fn texts(&self) -> Vec<String> {
        let mut names = self.recipes.clone();
        let is_batch = |name: &&mut String| {
            name.parse().is_ok_and(|of: Recipe| of.change == Recipe::batch(1.0).change)
        };
        let batch = names.iter_mut().find(is_batch);
        if let (Some(name), Some(or)) = (batch, &self.or) {
            *name = format!("{name} or {or}");
        }
        names.extend(Some(self.conf.clone()).filter(|conf| !conf.is_empty()));
        let mut first = Vec::new();
        if !names.is_empty() {
            first.push(format!("Changed: {}.", names.join(", ")));
        }
        if !self.undone.is_empty() {
            first.push(format!("Not on any more: {}.", self.undone.join(", ")));
        }
        let mut texts = vec![first.join(" ")];
        if let (Some(active), Some(reserved), Some(of_active), Some(of_reserved)) = (
            self.predicted_active_peak,
            self.predicted_reserved_peak,
            self.active_percent,
            self.reserved_percent,
        ) {
            let error = self.error_percent.map_or(String::new(), |of| format!(" \u{b1}{of} %"));
            texts.push(format!(
                "Predicted from the first recording: {active} active{error}, {reserved} reserved. \
                 Measured: {} active ({of_active:+.1} %), {} reserved ({of_reserved:+.1} %).",
                self.active_peak, self.reserved_peak
            ));
        }
        if let Some(why) = &self.declined {
            texts.push(format!("No prediction: {why}."));
        }
        if !self.reasons.is_empty() {
            texts.push(self.reasons.join(" "));
        }
        texts
    }
}
