//! Levers: what can be changed, and what the run needs then. Each was replayed over the whole run,
//! with a failed step completed.

mod candidates;
mod dead;
mod list;
mod plan;
mod seconds;
mod table;
mod trial;
mod words;

pub(crate) use candidates::other_settings;
pub(crate) use dead::last_uses;
pub(crate) use list::{MAX_TOLD, levers};
pub(crate) use plan::{MAX_BATCH, edited, plan as of_device, without};
pub use plan::{PlanRecord, PlannedSet};
pub(crate) use seconds::{machine, seconds_percent};
pub use table::{LeverTable, NoLever, SettingNeeds, lever_table, setting_needs};

use crate::derived::Derived;
use crate::target::Target;
use crate::what_if::{Outcome, least_available, most_available, recorded_least};
use candidates::Candidate;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use trial::Trial;
pub(crate) use trial::correction;
use vramscope_inference::{
    Category, Context, Cost, Editable, Lever, Look, OomStory, Question, Recipe, Rest, Search,
    Verdict, WhatIf, ended_by_failure,
};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The maximum number of changes that fit in a finding, and of one cost.
const MAX_FITTING: usize = 6;
const MAX_OF_COST: usize = 2;
/// A change after growth is told if the run is full again no sooner than after this part of the
/// steps that it had, as its divisor.
const MIN_LASTS: u64 = 4;
/// The maximum number of changes in a finding that do not help.
const MAX_SHORT: usize = 2;
/// A cause that makes less of the peak is not worth a line, in percent.
const MIN_LOOK_PERCENT: u64 = 5;
/// The maximum number of causes in a finding.
const MAX_LOOKS: usize = 3;

/// What PyTorch can have, for changes after a failure: what the recording shows. Under a limit of
/// unknown size that is what was reserved when the request failed. `None` if other memory is at
/// fault.
fn available(story: &OomStory, model: &WhatIf) -> Option<u64> {
    match story.verdict {
        Verdict::OtherMemory => None,
        Verdict::Limit => least_available(model).or(Some(story.reserved.0)),
        _ => least_available(model).or(story.room.map(|room| room.0)),
    }
}

/// What PyTorch can have after a failure at least and at most, in bytes: on the recording's device
/// if none is `asked` for. Both differ under a limit of unknown size.
fn limits_after(story: &OomStory, model: &WhatIf, asked: Option<u64>) -> [Option<u64>; 2] {
    let Some(available) = asked.or_else(|| available(story, model)) else { return [None; 2] };
    let at_most = match story.verdict {
        Verdict::Limit if asked.is_none() => {
            most_available(model).unwrap_or(available.saturating_add(story.requested.0))
        }
        _ => available,
    };
    [available, at_most].map(Some)
}

/// What PyTorch can have at least and at most in any run, failed or not, in bytes; `None` if the
/// file does not tell.
pub fn known_limits(target: Target<'_>, model: &WhatIf, asked: Option<u64>) -> [Option<u64>; 2] {
    match table::story(target) {
        Some(story) => limits_after(story, model, asked),
        None => [least_available(model), most_available(model)].map(|own| asked.or(own)),
    }
}

/// Options of the question which levers let a failed run go through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OfFailure {
    /// What PyTorch can have on another device, in bytes; `None` asks about the recording's
    /// device.
    pub(crate) available: Option<u64>,
    /// Whether all changes are listed.
    pub(crate) is_complete: bool,
}

/// The changes with which a run goes through that ended at a failed request: what fits first, then
/// by cost. Empty where the program itself shows the change, and where the model does not know the
/// run.
pub(crate) async fn of_oom(
    target: Target<'_>,
    model: &WhatIf,
    story: &OomStory,
    asked: OfFailure,
    budget: &mut Budget,
) -> (Vec<Lever>, Vec<Look>) {
    let nothing = || (Vec::new(), Vec::new());
    let is_of_program = story.climb.is_some() || story.context == Context::Capture;
    if limits_after(story, model, asked.available)[0].is_none() || is_of_program {
        return nothing();
    }
    if !ended_by_failure(target.entry.evidence(target.index)) {
        let lever = of_survivor(target, model, asked.available, budget).await;
        return (lever.into_iter().collect(), Vec::new());
    }
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let Some(editable) = target.entry.editable(target.index) else { return nothing() };
    let is_this = |at: u32| (story.event.0..=story.last.0).contains(&at);
    let is_known = editable.failed_at().is_some_and(is_this);
    if !is_known || model.starts_late() {
        return nothing();
    }
    let trial = trial_after(target, model, editable, story, asked.available, budget).await;
    let Some(mut trial) = trial else { return nothing() };
    if story.copies.is_some() {
        let candidate = candidates::copies(target, story);
        let lever = trial.lever(&candidate, budget).await;
        let mut lever = lever.filter(|lever| !lever.is_short());
        if let Some(lever) = &mut lever {
            trial.measure(&candidate, lever, budget).await;
        }
        return (lever.into_iter().collect(), Vec::new());
    }
    let singles = trial.singles(budget).await;
    let fits = singles.iter().any(|(_, lever)| lever.fits());
    let sets = match editable.rest {
        Rest::Unknown => Vec::new(),
        _ if fits => Vec::new(),
        _ => plan::sets(&mut trial, &singles, None, budget).await,
    };
    let looks = looks(&trial, &singles);
    // What does not help is named only if everybody tries it.
    let is_said = |(of, lever): &(Candidate, Lever)| {
        asked.is_complete || !lever.is_short() || words::is_tried(of)
    };
    let all: Vec<(Candidate, Lever)> = singles.into_iter().filter(is_said).chain(sets).collect();
    let grew = story.grows.map_or(0, |grows| u64::from(grows.steps));
    let mut chosen = if asked.is_complete { by_cost(all) } else { chosen(all, grew) };
    for (candidate, lever) in &mut chosen {
        trial.measure(candidate, lever, budget).await;
    }
    // Some turned out too close to tell.
    chosen.sort_by_key(|(_, lever)| by_worth(lever));
    (chosen.into_iter().map(|(_, lever)| lever).collect(), looks)
}

/// The trial of changes after a failure, on the recording's device if none is `asked` for. `None`
/// if the run cannot be replayed, or if other memory is at fault.
async fn trial_after<'a>(
    target: Target<'a>,
    model: &'a WhatIf,
    editable: &'a Editable,
    story: &OomStory,
    asked: Option<u64>,
    budget: &mut Budget,
) -> Option<Trial<'a>> {
    let [available, at_most] = limits_after(story, model, asked);
    available?;
    let larger = story.larger.filter(|larger| larger.category == Category::Input);
    let earlier = larger.map(|larger| larger.before.0 as f64 / larger.bytes.0.max(1) as f64);
    let earlier_batch = earlier.map(|part| (part * 100.0).floor() / 100.0).filter(|k| *k > 0.0);
    let trial = Trial::new(target, model, editable, available, budget).await?;
    Some(Trial { at_most, earlier_batch, grows: story.grows, ..trial })
}

/// Known causes whose cures save enough, but do not suffice alone: the largest first.
fn looks(trial: &Trial<'_>, singles: &[(Candidate, Lever)]) -> Vec<Look> {
    let is_worth = |lever: &Lever| lever.lowers.0 * 100 >= trial.before * MIN_LOOK_PERCENT;
    let short = singles.iter().filter(|(_, lever)| lever.is_short() && is_worth(lever));
    let look = |(candidate, lever): &(Candidate, Lever)| {
        Some(Look {
            text: words::cause(candidate)?.to_owned(),
            bytes: lever.lowers,
            site: lever.place.as_ref().map(|place| place.site.clone()),
            recipe: lever.recipe.clone(),
        })
    };
    let mut looks: Vec<Look> = short.filter_map(look).collect();
    looks.sort_by_key(|look| Reverse(look.bytes));
    // Several changes may cure one cause at one line: keep the best.
    let mut known = BTreeSet::new();
    looks.retain(|look| known.insert((look.text.clone(), look.site.clone())));
    looks.truncate(MAX_LOOKS);
    looks
}

/// Expandable segments, if a run goes through with them that survived its failures: the file has
/// the whole run.
async fn of_survivor(
    target: Target<'_>,
    model: &WhatIf,
    asked: Option<u64>,
    budget: &mut Budget,
) -> Option<Lever> {
    let settings = candidates::expandable(target, model).filter(|_| !model.starts_late())?;
    let question = Question { available: asked, ..Question::as_recorded(&settings) };
    let answer = model.answer(Question { least: Search::Never, ..question }, budget).await;
    answer.question.available.filter(|_| answer.fits())?;
    let now = recorded_least(model, &model.settings, budget).await?;
    let needs = recorded_least(model, &settings, budget).await?;
    let candidate =
        Candidate { recipes: Vec::new(), settings: Some(settings.clone()), cost: Cost::None };
    Some(trial::of_settings(target, &candidate, &settings, [now, needs]))
}

/// All, each effect once: what fits first, then by cost.
fn by_cost(mut all: Vec<(Candidate, Lever)>) -> Vec<(Candidate, Lever)> {
    all.sort_by_key(|(_, lever)| by_worth(lever));
    let mut known: BTreeSet<(Cost, Bytes, Bytes)> = BTreeSet::new();
    all.retain(|(_, lever)| known.insert((lever.cost, lever.needs_bytes, lever.lowers)));
    all
}

/// What fits, what may fit, and what everybody tries and does not help.
///
/// `grew` are the steps of growth that ended the run, 0 without growth.
fn chosen(mut all: Vec<(Candidate, Lever)>, grew: u64) -> Vec<(Candidate, Lever)> {
    // A run that is soon full again has gained nothing.
    all.retain(|(_, lever)| {
        lever.lasts.as_ref().is_none_or(|lasts| lasts.steps > grew / MIN_LASTS)
    });
    // Beside a change that ends growth, one that delays the failure is not worth a line.
    let ends = |(_, lever): &(Candidate, Lever)| lever.fits() && lever.lasts.is_none();
    if all.iter().any(ends) {
        all.retain(|(_, lever)| lever.is_short() || lever.lasts.is_none());
    }
    // A stable sort: by cost within each outcome.
    all.sort_by_key(|(_, lever)| (order(lever.outcome), lever.cost));
    let fitting: Vec<Recipe> = all
        .iter()
        .filter(|(_, lever)| lever.fits() && lever.conf.is_none())
        .filter_map(|(of, _)| <[Recipe; 1]>::try_from(of.recipes.clone()).ok())
        .flatten()
        .collect();
    let has_needless = |of: &Candidate| {
        of.recipes.len() > 1 && of.recipes.iter().any(|recipe| fitting.contains(recipe))
    };
    let mut of_cost: BTreeMap<(u8, Cost), usize> = BTreeMap::new();
    let (mut fits, mut short) = (0, 0);
    // Two changes of one effect are one to a reader: `batch` and `eval_batch`.
    let mut known: BTreeSet<(Cost, Bytes, Bytes)> = BTreeSet::new();
    all.retain(|(of, lever)| {
        let same = of_cost.entry((order(lever.outcome), lever.cost)).or_default();
        match lever.outcome {
            Some(Outcome::Fits | Outcome::FitsBarely) => {
                let is_new = *same < MAX_OF_COST
                    && fits < MAX_FITTING
                    && !has_needless(of)
                    && known.insert((lever.cost, lever.needs_bytes, lever.lowers));
                *same += usize::from(is_new);
                fits += usize::from(is_new);
                is_new
            }
            Some(Outcome::Short) => {
                short += 1;
                short <= MAX_SHORT
            }
            Some(Outcome::Unknown) | None => false,
        }
    });
    all
}

/// The place of a lever after a failure: what helps, then what costs less, then what saves most for
/// the time that it costs.
fn by_worth(lever: &Lever) -> (u8, Cost, Reverse<Bytes>) {
    (order(lever.outcome), lever.cost, Reverse(lever.saving_per_percent()))
}

fn order(outcome: Option<Outcome>) -> u8 {
    match outcome {
        Some(Outcome::Fits) => 0,
        Some(Outcome::FitsBarely) => 1,
        Some(Outcome::Unknown) | None => 2,
        Some(Outcome::Short) => 3,
    }
}

pub use words::lever_question;
/// The changes in sentences: what to do, and what does not help.
pub(crate) use words::sentences;
