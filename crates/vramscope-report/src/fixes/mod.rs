//! Changes that let a failed run go through. Each was replayed over the whole run, with the failed
//! step completed.

mod candidates;
mod dead;
mod plan;
mod trial;
mod words;

pub(crate) use dead::last_uses;
pub(crate) use plan::{
    MAX_BATCH, SAVINGS, add_peak_parts, plan as of_device, savings, without, without_graphs,
};
pub use plan::{PlanRecord, PlannedSet};

use crate::derived::Derived;
use crate::target::Target;
use crate::what_if::{Outcome, least_available, most_available};
use candidates::Candidate;
use std::collections::{BTreeMap, BTreeSet};
use trial::Trial;
use vramscope_inference::{
    Category, Context, Cost, Covers, Fix, Look, OomStory, Question, Recipe, Rest, Search, Verdict,
    WhatIf, ended_by_failure, settings_text,
};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The maximum number of changes that fit in a finding, and of one cost.
const MAX_FITTING: usize = 5;
const MAX_OF_COST: usize = 2;
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

/// The changes with which a run goes through that ended at a failed request: what fits first, then
/// by cost. Empty where the program itself shows the change, and where the model does not know the
/// run.
pub(crate) async fn of_oom(
    target: Target<'_>,
    model: &WhatIf,
    story: &OomStory,
    budget: &mut Budget,
) -> (Vec<Fix>, Vec<Look>) {
    let nothing = || (Vec::new(), Vec::new());
    let is_of_program = story.climb.is_some() || story.context == Context::Capture;
    let Some(available) = available(story, model).filter(|_| !is_of_program) else {
        return nothing();
    };
    if !ended_by_failure(target.entry.evidence(target.index)) {
        return (of_survivor(target, model, budget).await.into_iter().collect(), Vec::new());
    }
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let Some(editable) = target.entry.editable(target.index) else { return nothing() };
    let is_this = |at: u32| (story.event.0..=story.last.0).contains(&at);
    let is_known = editable.failed_at().is_some_and(is_this);
    if !is_known || model.starts_late() {
        return nothing();
    }
    let larger = story.larger.filter(|larger| larger.category == Category::Input);
    let earlier = larger.map(|larger| larger.before.0 as f64 / larger.bytes.0.max(1) as f64);
    let earlier_batch = earlier.map(|part| (part * 100.0).floor() / 100.0).filter(|k| *k > 0.0);
    let at_most = match story.verdict {
        Verdict::Limit => {
            most_available(model).unwrap_or(available.saturating_add(story.requested.0))
        }
        _ => available,
    };
    let trial = Trial::new(target, model, editable, available, budget).await;
    let Some(trial) = trial else { return nothing() };
    let mut trial = Trial { at_most, earlier_batch, grows: story.grows, ..trial };
    if story.copies.is_some() {
        let candidate = candidates::copies(target, story);
        let fix = trial.fix(&candidate, budget).await;
        let mut fix = fix.filter(|fix| fix.outcome != Outcome::Short);
        if let Some(fix) = &mut fix {
            trial.least_of(&candidate, fix, budget).await;
        }
        return (fix.into_iter().collect(), Vec::new());
    }
    let singles = trial.singles(budget).await;
    let fits = singles.iter().any(|(_, fix)| fix.outcome == Outcome::Fits);
    let sets = match editable.rest {
        Rest::Unknown => Vec::new(),
        _ if fits => Vec::new(),
        _ => plan::sets(&mut trial, &singles, None, budget).await,
    };
    let looks = looks(&trial, &singles);
    // What does not help is named only if everybody tries it.
    let is_said =
        |(of, fix): &(Candidate, Fix)| fix.outcome != Outcome::Short || words::is_tried(of);
    let mut chosen = chosen(singles.into_iter().filter(is_said).chain(sets).collect());
    for (candidate, fix) in &mut chosen {
        trial.least_of(candidate, fix, budget).await;
    }
    (chosen.into_iter().map(|(_, fix)| fix).collect(), looks)
}

/// Known causes whose cures save enough, but do not suffice alone: the largest first.
fn looks(trial: &Trial<'_>, singles: &[(Candidate, Fix)]) -> Vec<Look> {
    let is_worth = |fix: &Fix| fix.saving_bytes.0 * 100 >= trial.before * MIN_LOOK_PERCENT;
    let short = singles.iter().filter(|(_, fix)| fix.outcome == Outcome::Short && is_worth(fix));
    let look = |(candidate, fix): &(Candidate, Fix)| {
        Some(Look {
            text: words::cause(candidate)?.to_owned(),
            bytes: fix.saving_bytes,
            site: fix.site.clone(),
            recipe: fix.recipe.clone(),
        })
    };
    let mut looks: Vec<Look> = short.filter_map(look).collect();
    looks.sort_by_key(|look| std::cmp::Reverse(look.bytes));
    // Several changes may cure one cause at one line: keep the best.
    let mut known = BTreeSet::new();
    looks.retain(|look| known.insert((look.text.clone(), look.site.clone())));
    looks.truncate(MAX_LOOKS);
    looks
}

/// Expandable segments, if a run goes through with them that survived its failures: the file has
/// the whole run.
async fn of_survivor(target: Target<'_>, model: &WhatIf, budget: &mut Budget) -> Option<Fix> {
    let settings = candidates::expandable(target, model).filter(|_| !model.starts_late())?;
    let question = Question { least: Search::Never, ..Question::as_recorded(&settings) };
    let answer = model.answer(question, budget).await;
    let conf = settings_text(&settings);
    (answer.fits() && answer.question.available.is_some()).then(|| Fix {
        text: words::of_settings(&conf),
        short: conf.clone(),
        recipe: String::new(),
        conf: Some(conf),
        outcome: Outcome::Fits,
        needs_bytes: Bytes(answer.reserved_peak),
        short_by: None,
        saving_bytes: Bytes(0),
        cost: Cost::Setting,
        covers: Covers::Run,
        lasts: None,
        error_percent: None,
        site: None,
    })
}

/// What fits, what may fit, and what everybody tries and does not help.
fn chosen(mut all: Vec<(Candidate, Fix)>) -> Vec<(Candidate, Fix)> {
    // A run that is full again in the next step has gained nothing.
    all.retain(|(_, fix)| fix.lasts.as_ref().is_none_or(|lasts| lasts.steps > 0));
    // Beside a change that ends growth, one that delays the failure is not worth a line.
    let ends = |(_, fix): &(Candidate, Fix)| fix.outcome == Outcome::Fits && fix.lasts.is_none();
    if all.iter().any(ends) {
        all.retain(|(_, fix)| fix.outcome == Outcome::Short || fix.lasts.is_none());
    }
    // A stable sort: by cost within each outcome.
    all.sort_by_key(|(_, fix)| (order(fix.outcome), fix.cost));
    let fitting: Vec<Recipe> = all
        .iter()
        .filter(|(_, fix)| fix.outcome == Outcome::Fits && fix.conf.is_none())
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
    all.retain(|(of, fix)| {
        let same = of_cost.entry((order(fix.outcome), fix.cost)).or_default();
        match fix.outcome {
            Outcome::Fits | Outcome::FitsBarely => {
                let is_new = *same < MAX_OF_COST
                    && fits < MAX_FITTING
                    && !has_needless(of)
                    && known.insert((fix.cost, fix.needs_bytes, fix.saving_bytes));
                *same += usize::from(is_new);
                fits += usize::from(is_new);
                is_new
            }
            Outcome::Short => {
                short += 1;
                short <= MAX_SHORT
            }
            Outcome::Unknown => false,
        }
    });
    all
}

fn order(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Fits => 0,
        Outcome::FitsBarely => 1,
        Outcome::Unknown => 2,
        Outcome::Short => 3,
    }
}

/// The changes in sentences: what to do, and what does not help.
pub(crate) use words::sentences;
