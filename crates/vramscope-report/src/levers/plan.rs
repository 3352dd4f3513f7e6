//! Sets of changes with which a run goes through: the cheapest in each currency, and the largest
//! batch with it.

use super::Trial;
use super::candidates::Candidate;
use crate::derived::Derived;
use crate::target::Target;
use crate::what_if::{Outcome, least_available};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use vramscope_inference::{Cost, Covers, Lever, Question, Recipe, Rest, WhatIf};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// What a set of changes costs besides settings and edits, which cost nothing in a run.
const CURRENCIES: [Cost; 4] = [Cost::Edit, Cost::Time, Cost::Precision, Cost::Batch];

/// The largest factor of the batch that is searched. Programs with up to twice the batch were
/// measured.
pub(crate) const MAX_BATCH: f64 = 4.0;
/// The steps of that search: it ends within a sixty-fourth.
const BATCH_STEPS: u32 = 6;

/// What to change so that a run goes through on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PlanRecord {
    /// What PyTorch can have on the device.
    pub pytorch_memory: Bytes,
    /// Whether the run goes through without a change.
    pub unchanged: Outcome,
    /// What PyTorch must have for that: of the part that is in the file, if `covers` is `request`.
    pub needs_bytes: Bytes,
    /// The largest batch that fits without a change, as a factor of the recorded one; 4 stands for
    /// more. Null if nothing grows with the batch, and if none fits.
    pub largest_batch: Option<f64>,
    /// The cheapest set of changes that fits: at most one of each currency. Empty if the run goes
    /// through without one, and if nothing fits.
    pub sets: Vec<PlannedSet>,
    /// The part of the run that was replayed.
    pub covers: Covers,
}

/// A set of changes that fits, without a needless part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PlannedSet {
    /// The changes.
    #[serde(flatten)]
    pub lever: Lever,
    /// The largest batch that fits with them, as [`PlanRecord::largest_batch`].
    pub largest_batch: Option<f64>,
}

/// The plan for a device on which PyTorch can have `available` bytes. `None` where the model does
/// not reproduce the recording.
pub(crate) async fn plan(
    target: Target<'_>,
    model: &WhatIf,
    available: u64,
    budget: &mut Budget,
) -> Option<PlanRecord> {
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let editable = target.entry.editable(target.index)?;
    let mut trial = Trial::new(target, model, editable, Some(available), budget).await?;
    let (unchanged, needs) = if editable.rest == Rest::Whole {
        // The model replays the recording itself, call by call.
        let question =
            Question { available: Some(available), ..Question::as_recorded(&model.settings) };
        let own = model.answer(question, budget).await;
        let outcome = if own.fits() { Outcome::Fits } else { Outcome::Short };
        (outcome, own.least.unwrap_or(own.reserved_peak))
    } else {
        let base = trial.run(&[], budget).await?;
        let own = base.answer(&model.settings, Some(available), budget).await;
        let needs = base.least(&model.settings, budget).await;
        (own.fits.unwrap_or(Outcome::Unknown), needs)
    };
    let nothing = Candidate::of([], Cost::None);
    let is_known = editable.rest != Rest::Unknown;
    let mut plan = PlanRecord {
        pytorch_memory: Bytes(available),
        unchanged,
        needs_bytes: Bytes(needs),
        largest_batch: None,
        sets: Vec::new(),
        covers: Covers::of(editable.rest),
    };
    if is_known {
        let largest = largest_batch(&mut trial, &nothing, budget).await;
        // The search keeps a margin. The recorded batch was replayed exactly and needs none.
        plan.largest_batch = match unchanged {
            Outcome::Fits => largest.map(|factor| factor.max(1.0)),
            Outcome::Short => largest.filter(|&factor| factor < 1.0),
            _ => largest,
        };
    }
    if unchanged == Outcome::Fits || !is_known {
        return Some(plan);
    }
    let singles = trial.singles(budget).await;
    for (candidate, mut lever) in sets(&mut trial, &singles, plan.largest_batch, budget).await {
        trial.measure(&candidate, &mut lever, budget).await;
        let is_batch = lever.cost == Cost::Batch;
        let largest_batch =
            if is_batch { None } else { largest_batch(&mut trial, &candidate, budget).await };
        plan.sets.push(PlannedSet { lever, largest_batch });
    }
    Some(plan)
}

/// The cheapest set of changes that fits, in each currency; if there is none, in all of them
/// together. `singles` are the changes alone, by cost.
pub(super) async fn sets(
    trial: &mut Trial<'_>,
    singles: &[(Candidate, Lever)],
    largest_batch: Option<f64>,
    budget: &mut Budget,
) -> Vec<(Candidate, Lever)> {
    let mut all: Vec<(Candidate, Lever)> = Vec::new();
    for currency in CURRENCIES {
        let found = match currency {
            Cost::Batch => smaller_batch(trial, largest_batch, budget).await,
            _ => {
                let is_paid = |cost: Cost| cost <= Cost::Edit || cost == currency;
                cheapest(trial, singles, currency, is_paid, budget).await
            }
        };
        let is_known = |lever: &Lever| {
            all.iter()
                .any(|(_, known)| (&known.recipe, &known.conf) == (&lever.recipe, &lever.conf))
        };
        all.extend(found.filter(|(_, lever)| !is_known(lever)));
    }
    if all.is_empty() {
        all.extend(cheapest(trial, singles, Cost::Batch, |_| true, budget).await);
    }
    all
}

/// The largest smaller batch that fits.
async fn smaller_batch(
    trial: &mut Trial<'_>,
    largest: Option<f64>,
    budget: &mut Budget,
) -> Option<(Candidate, Lever)> {
    let factor = largest.filter(|&factor| factor < 1.0)?;
    let candidate = Candidate::of([Recipe::batch(factor)], Cost::Batch);
    let lever = trial.lever(&candidate, budget).await?;
    (lever.fits()).then_some((candidate, lever))
}

/// The first change of a currency that fits alone. Else changes that `is_paid` allows come together
/// until the run fits, those with the largest savings first; then each is left out again that is
/// not needed. `None` if not even all of them fit.
async fn cheapest(
    trial: &mut Trial<'_>,
    singles: &[(Candidate, Lever)],
    currency: Cost,
    is_paid: impl Fn(Cost) -> bool,
    budget: &mut Budget,
) -> Option<(Candidate, Lever)> {
    let is_free = currency == Cost::Edit;
    let is_own = |cost: Cost| cost == currency || is_free && cost < currency;
    let mut alone = singles.iter().filter(|(of, _)| of.recipes.len() < 2 && is_own(of.cost));
    if let Some(found) = alone.find(|(_, lever)| lever.fits()) {
        return Some(found.clone());
    }
    let mut parts: Vec<&(Candidate, Lever)> = singles
        .iter()
        .filter(|(of, _)| of.recipes.len() < 2 && is_paid(of.cost))
        .filter(|(of, lever)| of.settings.is_some() || lever.lowers > Bytes(0))
        .collect();
    parts.sort_by_key(|(of, lever)| {
        let saving = of.recipes.first().map_or(0, |recipe| worth(recipe, lever.lowers.0));
        (of.cost.max(Cost::Edit), Reverse(saving))
    });
    let mut candidate = Candidate::of([], Cost::None);
    let mut found = None;
    for (part, _) in parts {
        let next = candidate.with(part);
        // Two forms of one change, and what the run lacks the facts for, are left out.
        let Some(next) = next else { continue };
        let Some(lever) = trial.lever(&next, budget).await else { continue };
        candidate = next;
        if lever.fits() {
            found = Some(lever);
            break;
        }
    }
    let best = found?;
    Some(without_needless(trial, candidate, best, budget).await)
}

/// A saving beside those of other changes.
fn worth(recipe: &Recipe, saving: u64) -> u64 {
    saving.saturating_mul(recipe.change.worth_percent) / 100
}

/// The set without the parts that are not needed, the settings and the dearest first. What is left
/// out can make another part needless, so it ends once nothing more is.
async fn without_needless(
    trial: &mut Trial<'_>,
    mut candidate: Candidate,
    mut best: Lever,
    budget: &mut Budget,
) -> (Candidate, Lever) {
    loop {
        let mut fewer = Vec::new();
        if candidate.settings.is_some() && !candidate.recipes.is_empty() {
            fewer.push(Candidate { settings: None, ..candidate.clone() });
        }
        for at in (0..candidate.recipes.len()).rev() {
            let mut next = candidate.clone();
            next.recipes.remove(at);
            fewer.push(next);
        }
        fewer.retain(|next| next.settings.is_some() || !next.recipes.is_empty());
        let mut is_less = false;
        for next in fewer {
            match trial.lever(&next, budget).await {
                Some(lever) if lever.fits() => {
                    (candidate, best) = (next, lever);
                    is_less = true;
                    break;
                }
                _ => {}
            }
        }
        if !is_less {
            return (candidate, best);
        }
    }
}

/// The largest factor of the batch with which a changed run goes through, at most [`MAX_BATCH`].
/// `None` if nothing grows with the batch, and if none fits.
pub(super) async fn largest_batch(
    trial: &mut Trial<'_>,
    candidate: &Candidate,
    budget: &mut Budget,
) -> Option<f64> {
    let settings = candidate.settings.as_ref().unwrap_or(&trial.model.settings);
    let available = trial.available?;
    let hundredths = |factor: f64| (factor * 100.0).floor() / 100.0;
    let mut fits = async |factor: f64| {
        let mut recipes = candidate.recipes.clone();
        recipes.push(Recipe::batch(factor));
        let run = trial.run(&recipes, budget).await?;
        Some(run.fits(settings, available, budget).await)
    };
    let (mut low, mut high) = if fits(1.0).await? { (1.0, MAX_BATCH) } else { (0.0, 1.0) };
    if high > 1.0 && fits(MAX_BATCH).await? {
        return Some(MAX_BATCH);
    }
    for _ in 0..BATCH_STEPS {
        let middle = f64::midpoint(low, high);
        if fits(hundredths(middle)).await? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(hundredths(low)).filter(|&factor| factor > 0.0)
}

/// The run without what a line keeps, of which `total` bytes were found to grow. `None` if the line
/// keeps more than that for another reason, or if the peak does not have it.
pub(crate) async fn without(
    target: Target<'_>,
    model: &WhatIf,
    line: &str,
    total: Bytes,
    budget: &mut Budget,
) -> Option<Lever> {
    let lever = replayed(target, model, Recipe::del(line.to_owned()), budget).await?;
    let is_all = lever.lowers.0 <= total.0 + total.0 / 8;
    is_all.then_some(lever)
}

/// The run with the edit that cures a finding. `None` if that saves less than
/// [`MIN_SAVING_PERCENT`] of the peak.
pub(crate) async fn edited(
    target: Target<'_>,
    model: &WhatIf,
    recipe: Recipe,
    budget: &mut Budget,
) -> Option<Lever> {
    let lever = replayed(target, model, recipe, budget).await?;
    let peak = target.trace().requested_band.peak.max(0) as u64;
    (lever.lowers.0.saturating_mul(100) > peak.saturating_mul(MIN_SAVING_PERCENT)).then_some(lever)
}

/// The whole run with one edit; `None` if it does not go through.
async fn replayed(
    target: Target<'_>,
    model: &WhatIf,
    recipe: Recipe,
    budget: &mut Budget,
) -> Option<Lever> {
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let editable = target.entry.editable(target.index).filter(|run| run.rest == Rest::Whole)?;
    let mut trial = Trial::new(target, model, editable, least_available(model), budget).await?;
    let candidate = Candidate::of([recipe], Cost::Edit);
    let mut lever = trial.lever(&candidate, budget).await.filter(|lever| !lever.is_short())?;
    trial.measure(&candidate, &mut lever, budget).await;
    Some(lever)
}

/// An edit is told if it saves at least this part of the peak, in percent.
const MIN_SAVING_PERCENT: u64 = 2;
