//! The run on which changes are tried, and the result of a trial.

use super::candidates::{Candidate, candidates};
use super::words;
use crate::target::Target;
use crate::what_if::Outcome;
use vramscope_inference::{
    Applied, Arena, ChangedRun, Cost, Covers, Editable, Fix, Grows, Lasts, Recipe, Rest, WhatIf,
    settings_text,
};
use vramscope_trace::AllocatorSettings;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// A change that saves less of the peak says nothing, in percent.
const MIN_SAVING_PERCENT: u64 = 2;

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

/// The run on which changes are tried.
pub(super) struct Trial<'a> {
    pub(super) target: Target<'a>,
    pub(super) model: &'a WhatIf,
    pub(super) editable: &'a Editable,
    pub(super) arena: Arena<'a>,
    /// What PyTorch can have at least.
    pub(super) available: u64,
    /// What it can have at most: more than that under a limit whose size is not known.
    pub(super) at_most: u64,
    /// The inputs of the largest step before the one that failed, as a part of its own.
    pub(super) earlier_batch: Option<f64>,
    /// The growth from step to step, if the run has one.
    pub(super) grows: Option<Grows>,
    /// The peak of `active_bytes` without a change, by the sizes of blocks alone.
    pub(super) before: u64,
    /// The peak of `active_bytes` without a change, in a replay.
    pub(super) replayed: u64,
}

impl<'a> Trial<'a> {
    /// Trials of changes with this memory; `None` if the run cannot be replayed.
    pub(super) async fn new(
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
    pub(super) async fn singles(&mut self, budget: &mut Budget) -> Vec<(Candidate, Fix)> {
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
    pub(super) async fn run(
        &mut self,
        recipes: &[Recipe],
        budget: &mut Budget,
    ) -> Option<ChangedRun<'_>> {
        let evidence = self.target.entry.evidence(self.target.index);
        self.arena.apply(evidence, recipes, budget).await.ok()
    }

    /// The memory with which the run goes through with a change.
    pub(super) async fn least(
        &mut self,
        candidate: &Candidate,
        budget: &mut Budget,
    ) -> Option<u64> {
        let settings = candidate.settings.as_ref().unwrap_or(&self.model.settings);
        let run = self.run(&candidate.recipes, budget).await?;
        let answer = run.answer(settings, None, budget).await;
        Some(run.least(&answer, settings, budget).await)
    }

    /// Sets `needs_bytes` of a change that helps to the least memory with which the run goes
    /// through. With more memory the allocator reserves more because it can.
    pub(super) async fn least_of(
        &mut self,
        candidate: &Candidate,
        fix: &mut Fix,
        budget: &mut Budget,
    ) {
        if fix.outcome == Outcome::Short {
            return;
        }
        if let Some(least) = self.least(candidate, budget).await {
            fix.needs_bytes = Bytes(least.min(fix.needs_bytes.0));
        }
    }

    /// What a change does; `None` if it lacks a fact, or changes nothing.
    pub(super) async fn fix(&mut self, candidate: &Candidate, budget: &mut Budget) -> Option<Fix> {
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
        if let Some(grows) = self.grows.filter(|_| outcome != Outcome::Short) {
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
            // The requests after the failed one were not measured.
            error_percent: self.error_percent.filter(|_| self.rest != Rest::Unknown),
            site: applied.iter().find_map(|one| words::site(target, one)),
        }
    }
}
