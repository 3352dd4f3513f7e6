//! Changes that let a failed run go through. Each was replayed over the whole run, with the failed
//! step completed.

mod candidates;
mod dead;
mod plan;
mod words;

pub(crate) use dead::last_uses;
pub(crate) use plan::{
    MAX_BATCH, SAVINGS, add_peak_parts, plan as of_device, savings, without, without_graphs,
};
pub use plan::{PlanRecord, PlannedSet};

use crate::derived::Derived;
use crate::target::Target;
use crate::what_if::{Outcome, least_available, most_available};
use candidates::{Candidate, candidates};
use std::collections::{BTreeMap, BTreeSet};
use vramscope_inference::{
    Applied, Arena, Category, ChangedRun, Context, Cost, Covers, Editable, Fix, Grows, Lasts, Look,
    OomStory, Question, Recipe, Rest, Search, Verdict, WhatIf, ended_by_failure, settings_text,
};
use vramscope_trace::AllocatorSettings;
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
/// A change that saves less of the peak says nothing, in percent.
const MIN_SAVING_PERCENT: u64 = 2;

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
    // Beside what ends growth, nothing that delays it is worth a line.
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

/// Growth of less than this part of the recorded one has ended, in percent.
const ENDED_PERCENT: u64 = 10;

/// How long a changed run goes on with so much to spare; `None` if it does not grow.
async fn lasts(
    grows: Grows,
    run: &ChangedRun<'_>,
    spare: u64,
    budget: &mut Budget,
) -> Option<Lasts> {
    // The time of the last event before a state.
    let [from, to] = grows.between.map(|slot| f64::from(slot) - 1.0);
    let [before, after] = [run.live_at(from, budget).await, run.live_at(to, budget).await];
    let per_step = after.saturating_sub(before) / u64::from(grows.steps.max(1));
    (per_step * 100 > grows.per_step.0 * ENDED_PERCENT).then(|| {
        let steps = spare / per_step;
        Lasts { steps, called: grows.words[usize::from(steps != 1)].to_owned() }
    })
}

/// What a change is tried on.
struct Trial<'a> {
    target: Target<'a>,
    model: &'a WhatIf,
    editable: &'a Editable,
    arena: Arena<'a>,
    /// What PyTorch can have at least.
    available: u64,
    /// What it can have at most: more than that under a limit whose size is not known.
    at_most: u64,
    /// The inputs of the largest step before the one that failed, as a part of its own.
    earlier_batch: Option<f64>,
    /// What grows from step to step.
    grows: Option<Grows>,
    /// The peak of `active_bytes` without a change, by the sizes of blocks alone.
    before: u64,
    /// The peak of `active_bytes` without a change, in a replay.
    replayed: u64,
}

impl<'a> Trial<'a> {
    /// Trials of changes with this memory; `None` if the run cannot be replayed.
    async fn new(
        target: Target<'a>,
        model: &'a WhatIf,
        editable: &'a Editable,
        available: u64,
        budget: &mut Budget,
    ) -> Option<Self> {
        let evidence = target.entry.evidence(target.index);
        let mut arena = Arena::new(editable);
        let base = arena.apply(evidence, &[], budget).await.ok()?;
        let before = base.active_peak(&model.settings, budget).await;
        let replayed = base.replayed_active_peak(&model.settings, budget).await;
        let (at_most, earlier_batch, grows) = (available, None, None);
        Some(Self {
            target,
            model,
            editable,
            arena,
            available,
            at_most,
            earlier_batch,
            grows,
            before,
            replayed,
        })
    }

    /// Every change that may help, alone.
    async fn singles(&mut self, budget: &mut Budget) -> Vec<(Candidate, Fix)> {
        let mut all: Vec<(Candidate, Fix)> = Vec::new();
        for candidate in candidates(self, budget).await {
            // More parts than enough say nothing.
            let has_less = |(of, fix): &(Candidate, Fix)| {
                fix.outcome == Outcome::Fits && of.is_in_fewer_parts(&candidate)
            };
            if all.iter().any(has_less) {
                continue;
            }
            let fix = self.fix(&candidate, budget).await;
            all.extend(fix.map(|fix| (candidate, fix)));
        }
        all
    }

    /// The run with recipes; `None` if one lacks a fact, or changes nothing.
    async fn run(&mut self, recipes: &[Recipe], budget: &mut Budget) -> Option<ChangedRun<'_>> {
        let evidence = self.target.entry.evidence(self.target.index);
        self.arena.apply(evidence, recipes, budget).await.ok()
    }

    /// The memory with which the run goes through with a change.
    async fn least(&mut self, candidate: &Candidate, budget: &mut Budget) -> Option<u64> {
        let settings = candidate.settings.as_ref().unwrap_or(&self.model.settings);
        let run = self.run(&candidate.recipes, budget).await?;
        let answer = run.answer(settings, None, budget).await;
        Some(run.least(&answer, settings, budget).await)
    }

    /// Sets what a change that helps needs to the least memory with which the run goes through.
    /// With all of it the allocator reserves more because it can.
    async fn least_of(&mut self, candidate: &Candidate, fix: &mut Fix, budget: &mut Budget) {
        if fix.outcome == Outcome::Short {
            return;
        }
        if let Some(least) = self.least(candidate, budget).await {
            fix.needs_bytes = Bytes(least.min(fix.needs_bytes.0));
        }
    }

    /// What a change does; `None` if it lacks a fact, or changes nothing.
    async fn fix(&mut self, candidate: &Candidate, budget: &mut Budget) -> Option<Fix> {
        let evidence = self.target.entry.evidence(self.target.index);
        let run = self.arena.apply(evidence, &candidate.recipes, budget).await.ok()?;
        let settings = candidate.settings.as_ref().unwrap_or(&self.model.settings);
        let active = run.active_peak(settings, budget).await;
        let saving = self.before.saturating_sub(active);
        let is_small = saving * 100 < self.before * MIN_SAVING_PERCENT;
        if candidate.settings.is_none() && is_small && !words::is_tried(candidate) {
            return None;
        }
        let rest = self.editable.rest;
        let error_percent = run.error_percent();
        let known = Known { candidate, settings, saving, rest, error_percent };
        if active > self.at_most && !words::is_tried(candidate) {
            let short = active - self.at_most;
            return Some(known.fix(self.target, &run.applied, Outcome::Short, active, Some(short)));
        }
        let answer = run.answer(settings, Some(self.available), budget).await;
        let saving = self.replayed.saturating_sub(answer.active_peak);
        let known = Known { saving, error_percent: answer.error_percent, ..known };
        let infers = self.editable.infers();
        let is_of_request = candidate.recipes.iter().any(|Recipe { change, .. }| {
            change.is_of_request || change.cost == Cost::Batch || infers && change.is_smaller_batch
        });
        let outcome = match answer.fits {
            Some(Outcome::Unknown) if is_of_request => Outcome::Fits,
            outcome => outcome.unwrap_or(Outcome::Fits),
        };
        let mut needs = answer.reserved_peak;
        // With less memory the allocator returns what is free, so it needs less than it reserves.
        if outcome == Outcome::Short || needs > self.available {
            needs = run.least(&answer, settings, budget).await;
        }
        let mut short = None;
        if outcome == Outcome::Short {
            // Whether a limit of unknown size is high enough is not known.
            short = Some(needs.checked_sub(self.at_most).filter(|&bytes| bytes > 0)?);
        }
        let mut fix = known.fix(self.target, &run.applied, outcome, needs, short);
        if let Some(grows) = self.grows {
            fix.lasts = lasts(grows, &run, self.available.saturating_sub(needs), budget).await;
        }
        Some(fix)
    }
}

/// What is known of a change before its replay.
struct Known<'a> {
    candidate: &'a Candidate,
    settings: &'a AllocatorSettings,
    saving: u64,
    rest: Rest,
    error_percent: Option<f64>,
}

impl Known<'_> {
    fn fix(
        &self,
        target: Target<'_>,
        applied: &[Applied],
        outcome: Outcome,
        needs: u64,
        short: Option<u64>,
    ) -> Fix {
        let recipes = &self.candidate.recipes;
        // No recipe can be written for a reference.
        let is_asked = recipes.iter().all(|recipe| recipe.change.is_predicted());
        let written = recipes.iter().filter(|_| is_asked).map(Recipe::to_string);
        let recipe = written.collect::<Vec<_>>().join(",");
        let conf = self.candidate.settings.is_some().then(|| settings_text(self.settings));
        let changes = words::changes(target, recipes, applied);
        let with = |settings: Option<String>| {
            settings.iter().chain(&changes).map(String::as_str).collect::<Vec<_>>().join(" + ")
        };
        Fix {
            text: with(conf.as_deref().map(words::of_settings)),
            short: with(conf.clone()),
            recipe,
            conf,
            outcome,
            needs_bytes: Bytes(needs),
            short_by: short.map(Bytes),
            saving_bytes: Bytes(self.saving),
            cost: self.candidate.cost,
            covers: Covers::of(self.rest),
            lasts: None,
            // What follows the request was not measured.
            error_percent: self.error_percent.filter(|_| self.rest != Rest::Unknown),
            site: applied.iter().find_map(|one| words::site(target, one)),
        }
    }
}

/// The changes in sentences: what to do, and what does not help.
pub(crate) use words::sentences;
