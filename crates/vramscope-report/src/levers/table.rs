//! What can be changed, as a table for a page: for a device of any size, and unfolded with the
//! changes that a person must ask for, the settings of the allocator, and what is no lever.

use super::candidates::{Candidate, defaults, expandable};
use super::plan::largest_batch;
use super::{OfFailure, Trial, by_worth, known_limits, of_oom, trial_after};
use crate::derived::Derived;
use crate::findings::of_device;
use crate::levers::list::{Found, MIN_PERCENT, levers, rank};
use crate::optimizations::{features, proof_of};
use crate::target::Target;
use vramscope_inference::{
    Applied, CHANGES, Change, Cost, Declined, Facts, Lever, OomStory, Recipe, Rest, Value, WhatIf,
    ended_by_failure, lower_first, settings_text,
};
use vramscope_trace::AllocatorSettings;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The rows of a table that is not unfolded.
const MAX_ROWS: usize = 8;
/// The rows of one that is.
const MAX_UNFOLDED: usize = 32;

/// What people ask for and no replay can size.
const UNSIZED: [(&str, &str); 1] = [("LoRA", "the file has no adapters to size")];

/// Values of settings that are worth a try.
const SPLITS: [u64; 2] = [512 << 20, 128 << 20];
const DIVISIONS: [u64; 2] = [8, 4];

/// What can be changed on a device, best first.
#[derive(Clone, Debug, Default)]
pub struct LeverTable {
    /// What PyTorch must have without a change; `None` where nothing can be replayed after a
    /// failure.
    pub now: Option<Bytes>,
    /// What PyTorch can have; `None` if no device was chosen and the file shows no limit.
    pub available: Option<Bytes>,
    /// The levers.
    pub levers: Vec<Lever>,
    /// What is no lever. Only of an unfolded table.
    pub others: Vec<NoLever>,
    /// The largest batch that fits the chosen device without a change, as a factor of the recorded
    /// one; 4 stands for more. `None` without a device, if nothing grows with the batch, and if
    /// none fits.
    pub largest_batch: Option<f64>,
}

/// A change that is no lever of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLever {
    /// Why: `on already`, `under 1 %`, `not possible`.
    pub why: &'static str,
    /// The change, and the reason where it is not possible.
    pub text: String,
}

/// What a run needs with one setting of the allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingNeeds {
    /// `max_split_size_mb:512`; empty for PyTorch's defaults. The first row has the recording's.
    pub setting: String,
    /// What PyTorch must have without and with expandable segments; `None` where they are not
    /// supported.
    pub needs: [Option<Bytes>; 2],
}

/// The table of a device. `asked` is what PyTorch can have on the device that a person chose.
/// [`Derived::Simulated`] must be computed.
pub async fn lever_table(
    target: Target<'_>,
    asked: Option<u64>,
    is_unfolded: bool,
    budget: &mut Budget,
) -> LeverTable {
    let most = if is_unfolded { MAX_UNFOLDED } else { MAX_ROWS };
    let entries = of_device(target);
    let model = known_model(target, budget).await;
    let own = target.entry.what_if(target.index).filter(|model| model.calibration.is_equal());
    let limits = own.map_or([asked; 2], |model| known_limits(target, model, asked));
    let mut table = match (story(target), model) {
        (Some(story), Some(model)) => {
            after_failure(target, model, story, asked, is_unfolded, budget).await
        }
        (Some(_), None) => LeverTable::default(),
        (None, _) => {
            let Found { now, levers } = levers(target, &entries, limits, most, budget).await;
            LeverTable { now: Some(Bytes(now)), levers, ..LeverTable::default() }
        }
    };
    table.available = limits[0].map(Bytes);
    if let (true, Some(model)) = (is_unfolded, model) {
        unfold(target, model, asked, &mut table, budget).await;
    }
    if let (Some(asked), Some(model)) = (asked, model)
        && let Some(mut trial) = trial_with(target, model, [Some(asked); 2], budget).await
    {
        let nothing = Candidate::of([], Cost::None);
        let largest = largest_batch(&mut trial, &nothing, budget).await;
        // The search keeps a margin. The recorded batch was replayed exactly and needs none.
        let is_enough = table.now.is_some_and(|now| now.0 <= asked);
        table.largest_batch =
            if is_enough { largest.map(|factor| factor.max(1.0)) } else { largest };
    }
    if !is_unfolded {
        // Of what does not help, only what everybody tries first.
        let first = table.levers.iter().position(Lever::is_short).unwrap_or(0);
        let mut at = 0..;
        table.levers.retain(|lever| at.next() == Some(first) || !lever.is_short());
    }
    table.levers.truncate(most);
    table
}

/// The first failed request of a device.
pub(super) fn story(target: Target<'_>) -> Option<&OomStory> {
    target.entry.findings(target.index).iter().find_map(|finding| match &finding.facts {
        Facts::Oom(story) => Some(&**story),
        _ => None,
    })
}

/// The model of the allocator, where it reproduces the recording.
async fn known_model<'a>(target: Target<'a>, budget: &mut Budget) -> Option<&'a WhatIf> {
    target.entry.derive(Derived::WhatIf, target.index, budget).await;
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let model = target.entry.what_if(target.index)?;
    (model.calibration.is_equal() && !model.starts_late()).then_some(model)
}

async fn after_failure(
    target: Target<'_>,
    model: &WhatIf,
    story: &OomStory,
    asked: Option<u64>,
    is_unfolded: bool,
    budget: &mut Budget,
) -> LeverTable {
    let of = OfFailure { available: asked, is_complete: is_unfolded };
    let (levers, _) = of_oom(target, model, story, of, budget).await;
    let now = match levers.first() {
        Some(lever) => Some(lever.now_bytes),
        None => match trial_with(target, model, [None; 2], budget).await {
            Some(mut trial) => trial.now_bytes(budget).await.map(Bytes),
            None => None,
        },
    };
    LeverTable { now, levers, ..LeverTable::default() }
}

/// The trial of changes with what PyTorch can have at least and at most; `None` if the run cannot
/// be replayed to its end.
async fn trial_with<'a>(
    target: Target<'a>,
    model: &'a WhatIf,
    [available, at_most]: [Option<u64>; 2],
    budget: &mut Budget,
) -> Option<Trial<'a>> {
    let run = target.entry.editable(target.index).filter(|run| run.rest != Rest::Unknown)?;
    let trial = Trial::new(target, model, run, available, budget).await?;
    Some(Trial { at_most, ..trial })
}

/// Adds what a person must ask for, and what is no lever.
async fn unfold(
    target: Target<'_>,
    model: &WhatIf,
    asked: Option<u64>,
    table: &mut LeverTable,
    budget: &mut Budget,
) {
    let evidence = target.entry.evidence(target.index);
    let failure = story(target).filter(|_| ended_by_failure(evidence));
    let editable = target.entry.editable(target.index).filter(|run| run.rest != Rest::Unknown);
    let trial = match (editable, failure) {
        (Some(run), Some(story)) => trial_after(target, model, run, story, asked, budget).await,
        _ => None,
    };
    let trial = match trial {
        Some(trial) => Some(trial),
        None => trial_with(target, model, known_limits(target, model, asked), budget).await,
    };
    let Some(trial) = trial else { return };
    let mut trial = Trial { min_percent: MIN_PERCENT, ..trial };
    let Some(now) = trial.now_bytes(budget).await else { return };
    let features = features(target, budget).await;
    let listed: Vec<Recipe> = table.levers.iter().filter_map(single).collect();
    let is_absent = |change: &&Change| listed.iter().all(|recipe| recipe.change != *change);
    let kept = usize::from(!table.levers.is_empty());
    let mut reasons: Vec<(&'static str, Vec<String>)> = Vec::new();
    for &change in CHANGES.iter().filter(|change| change.is_predicted() && is_absent(change)) {
        let Some(recipe) = named(change) else { continue };
        let called = |applied: &Applied| lower_first(&recipe.called(applied));
        if features.as_ref().is_some_and(|of| proof_of(target, of, &recipe).is_some()) {
            table.others.push(NoLever { why: ON, text: called(&Applied::default()) });
            continue;
        }
        let candidate = Candidate::of([recipe.clone()], change.cost);
        let run = match trial.arena.apply(evidence, &candidate.recipes, budget).await {
            Ok(run) => run,
            // Nobody misses what is about an evaluation or a failed request that the run lacks.
            Err(Declined::NoEvaluation | Declined::NoFailedPass) => continue,
            Err(why) => {
                let name = called(&Applied::default());
                match reasons.iter_mut().find(|(known, _)| *known == why.words()) {
                    Some((_, names)) => names.push(name),
                    None => reasons.push((why.words(), vec![name])),
                }
                continue;
            }
        };
        let text = run.applied.first().map_or_else(String::new, called);
        let lowers = trial.before.saturating_sub(run.active_peak(&model.settings, budget).await);
        let mut saving = lowers;
        if let Some(mut lever) = trial.lever(&candidate, budget).await {
            trial.measure(&candidate, &mut lever, budget).await;
            saving = lever.saving_bytes.0;
            // Two changes of one effect are one to a reader.
            let is_same = |one: &Lever| {
                (one.cost, one.needs_bytes, one.lowers)
                    == (lever.cost, lever.needs_bytes, lever.lowers)
            };
            if saving >= now / 100 * MIN_PERCENT && !table.levers.iter().any(is_same) {
                table.levers.push(lever);
            }
        }
        if saving < now / 100 * MIN_PERCENT {
            table.others.push(NoLever { why: SMALL, text });
        }
    }
    match failure {
        Some(_) => table.levers.sort_by_key(by_worth),
        None => table.levers[kept..].sort_by_key(|lever| rank(lever, now)),
    }
    reasons.extend(UNSIZED.map(|(name, why)| (why, vec![name.to_owned()])));
    let texts = reasons.into_iter().map(|(why, names)| format!("{}: {why}", names.join(", ")));
    table.others.extend(texts.map(|text| NoLever { why: IMPOSSIBLE, text }));
    // Changes that have one reason in one word are listed together.
    let place = |of: &NoLever| [ON, SMALL, IMPOSSIBLE].iter().position(|why| *why == of.why);
    table.others.sort_by_key(place);
}

/// The only change of a lever; `None` for settings and for several changes.
fn single(lever: &Lever) -> Option<Recipe> {
    let recipes = Recipe::parse_list(&lever.recipe).ok().filter(|_| lever.conf.is_none())?;
    <[Recipe; 1]>::try_from(recipes).ok().map(|[recipe]| recipe)
}

const ON: &str = "on already";
const SMALL: &str = "under 1 %";
const IMPOSSIBLE: &str = "not possible";

/// A change with the value that people mean; `None` if that is a line or a reference.
fn named(change: &'static Change) -> Option<Recipe> {
    let value = match change.symbol().1 {
        "K" => Value::Factor(0.5),
        // Of a batch, halves.
        "N" if change.is_smaller_batch => Value::Parts(2),
        "N" => Value::Parts(8),
        "FILE:LINE" => return None,
        _ => Value::None,
    };
    Some(Recipe { change, value })
}

/// What the run needs with settings of the allocator, each without and with expandable segments.
/// Empty where the model does not know the run.
pub async fn setting_needs(target: Target<'_>, budget: &mut Budget) -> Vec<SettingNeeds> {
    let Some(model) = known_model(target, budget).await else { return Vec::new() };
    let trial = trial_with(target, model, [None; 2], budget).await;
    let Some(mut trial) = trial else { return Vec::new() };
    let recorded = &model.settings;
    let plain = defaults(recorded);
    let without = AllocatorSettings { expandable_segments: false, ..recorded.clone() };
    let mut all = vec![without, plain.clone()];
    for max_split_size in SPLITS {
        all.push(AllocatorSettings { max_split_size, ..plain.clone() });
    }
    for divisions in DIVISIONS {
        let roundup_power2_divisions = plain.roundup_power2_divisions.map(|_| divisions);
        all.push(AllocatorSettings { roundup_power2_divisions, ..plain.clone() });
    }
    let can_expand = expandable(target, model).is_some() || recorded.expandable_segments;
    let mut rows: Vec<SettingNeeds> = Vec::new();
    for settings in all {
        let setting = settings_text(&settings);
        if rows.iter().any(|row| row.setting == setting) {
            continue;
        }
        let mut needs = [None; 2];
        for (expandable_segments, needs) in [false, true].into_iter().zip(&mut needs) {
            if expandable_segments && !can_expand {
                continue;
            }
            let settings = AllocatorSettings { expandable_segments, ..settings.clone() };
            let candidate =
                Candidate { recipes: Vec::new(), settings: Some(settings), cost: Cost::None };
            *needs = trial.least(&candidate, budget).await.map(Bytes);
        }
        rows.push(SettingNeeds { setting, needs });
    }
    rows
}
