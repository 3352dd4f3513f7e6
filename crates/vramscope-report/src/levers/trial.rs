//! The run on which levers are tried, and the result of a trial.

use super::candidates::{Candidate, candidates};
use super::words;
use super::{machine, seconds_percent};
use crate::target::Target;
use crate::what_if::{Outcome, edit, recorded_least, settled};
use vramscope_inference::{
    Applied, Arena, ChangedRun, Cost, Covers, Editable, Grows, Lasts, Lever, LeverBasis, Machine,
    Question, Recipe, Rest, Search, WhatIf, settings_text,
};
use vramscope_trace::AllocatorSettings;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// A change that saves less of the peak says nothing beside others, in percent.
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

/// The run on which levers are tried.
pub(super) struct Trial<'a> {
    pub(super) target: Target<'a>,
    pub(super) model: &'a WhatIf,
    pub(super) editable: &'a Editable,
    pub(super) arena: Arena<'a>,
    /// What PyTorch can have at least; `None` if no limit is known.
    pub(super) available: Option<u64>,
    /// What it can have at most: more than that under a limit whose size is not known.
    pub(super) at_most: Option<u64>,
    /// A change that saves less of the peak is none, in percent.
    pub(super) min_percent: u64,
    /// The inputs of the largest step before the one that failed, as a part of its own.
    pub(super) earlier_batch: Option<f64>,
    /// The GPU for which times are estimated; `None` if its speeds are not known.
    pub(super) machine: Option<Machine>,
    /// The growth from step to step, if the run has one.
    pub(super) grows: Option<Grows>,
    /// The peak of `active_bytes` without a change, by the sizes of blocks alone.
    pub(super) before: u64,
    /// The peak of `active_bytes` without a change, in a replay.
    pub(super) replayed: u64,
    /// What the run needs without a change, in bytes, and the correction of what its list of blocks
    /// needs; `None` until a lever is measured.
    pub(super) now: Option<(u64, i64)>,
}

/// By how much a run as recorded needs more than its list of blocks, in bytes: requests at equal
/// times have another order there. Of a run whose failed step was completed nothing is known.
pub(crate) async fn correction(
    model: &WhatIf,
    rebuilt: &ChangedRun<'_>,
    budget: &mut Budget,
) -> i64 {
    if rebuilt.rest != Rest::Whole {
        return 0;
    }
    let peaks = rebuilt.free_peaks(&model.settings, budget).await;
    let unlimited =
        Question { available: Some(u64::MAX), ..Question::as_recorded(&model.settings) };
    let recorded = model.answer(Question { least: Search::Never, ..unlimited }, budget).await;
    if peaks == [recorded.active_peak, recorded.reserved_peak] {
        return 0;
    }
    let least = rebuilt.least(&model.settings, budget).await;
    match recorded_least(model, &model.settings, budget).await {
        Some(recorded) => recorded.cast_signed().saturating_sub(least.cast_signed()),
        None => 0,
    }
}

impl<'a> Trial<'a> {
    /// Trials of levers with this memory; `None` if the run cannot be replayed.
    pub(super) async fn new(
        target: Target<'a>,
        model: &'a WhatIf,
        editable: &'a Editable,
        available: Option<u64>,
        budget: &mut Budget,
    ) -> Option<Self> {
        let evidence = target.entry.evidence(target.index);
        let mut arena = Arena::new(editable);
        let base = arena.apply(evidence, &[], budget).await.ok()?;
        let before = base.active_peak(&model.settings, budget).await;
        let [replayed, _] = base.free_peaks(&model.settings, budget).await;
        let (at_most, earlier_batch, grows, now) = (available, None, None, None);
        let machine = machine(target, available);
        Some(Self {
            target,
            model,
            editable,
            arena,
            available,
            at_most,
            min_percent: MIN_SAVING_PERCENT,
            earlier_batch,
            machine,
            grows,
            before,
            replayed,
            now,
        })
    }

    /// Every lever that may help, alone.
    pub(super) async fn singles(&mut self, budget: &mut Budget) -> Vec<(Candidate, Lever)> {
        let mut all: Vec<(Candidate, Lever)> = Vec::new();
        for candidate in candidates(self, budget).await {
            // More parts than enough say nothing.
            let has_less =
                |(of, lever): &(Candidate, Lever)| lever.fits() && of.is_in_fewer_parts(&candidate);
            if all.iter().any(has_less) {
                continue;
            }
            let lever = self.lever(&candidate, budget).await;
            all.extend(lever.map(|lever| (candidate, lever)));
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

    async fn now(&mut self, budget: &mut Budget) -> Option<(u64, i64)> {
        if self.now.is_none() {
            let model = self.model;
            let run = self.run(&[], budget).await?;
            let by = correction(model, &run, budget).await;
            let recorded = match run.rest {
                Rest::Whole => recorded_least(model, &model.settings, budget).await,
                _ => None,
            };
            let now = match recorded {
                Some(recorded) => recorded,
                None => run.least(&model.settings, budget).await,
            };
            self.now = Some((now, by));
        }
        self.now
    }

    /// The least memory with which the run goes through without a change, in bytes.
    pub(super) async fn now_bytes(&mut self, budget: &mut Budget) -> Option<u64> {
        Some(self.now(budget).await?.0)
    }

    /// The least memory with which the run goes through with a change.
    pub(super) async fn least(
        &mut self,
        candidate: &Candidate,
        budget: &mut Budget,
    ) -> Option<u64> {
        let (_, by) = self.now(budget).await?;
        let model = self.model;
        let settings = candidate.settings.as_ref().unwrap_or(&model.settings);
        if candidate.recipes.is_empty() && self.editable.rest == Rest::Whole {
            return recorded_least(model, settings, budget).await;
        }
        let run = self.run(&candidate.recipes, budget).await?;
        Some(run.least(settings, budget).await.saturating_add_signed(by))
    }

    /// Sets what a lever needs and saves, and whether that is enough. With more memory the
    /// allocator reserves more because it can, so the need is searched without the limit.
    pub(super) async fn measure(
        &mut self,
        candidate: &Candidate,
        lever: &mut Lever,
        budget: &mut Budget,
    ) {
        let Some(now) = self.now_bytes(budget).await else { return };
        if let Some(least) = self.least(candidate, budget).await {
            let before = lever.needs_bytes.0;
            lever.needs_bytes = Bytes(least);
            if let Some(range) = &mut lever.range {
                for end in range {
                    end.0 = end.0.saturating_add(least).saturating_sub(before);
                }
            }
            self.settle(lever);
        }
        lever.now_bytes = Bytes(now);
        lever.saving_bytes = Bytes(now.saturating_sub(lever.needs_bytes.0));
    }

    /// Sets the outcome of a lever that was found without a limit.
    pub(super) async fn judge(&mut self, lever: &mut Lever, budget: &mut Budget) {
        let Some(available) = self.available else { return };
        let recipes = Recipe::parse_list(&lever.recipe).unwrap_or_default();
        let mut outcome = of_needs(lever.needs_bytes.0, available);
        if lever.basis == LeverBasis::Replayed && !recipes.is_empty() {
            let settings = &self.model.settings;
            if let Some(run) = self.run(&recipes, budget).await
                && let Some(fits) = run.answer(settings, Some(available), budget).await.fits
            {
                outcome = fits;
            }
        }
        lever.outcome = Some(outcome);
        self.settle(lever);
    }

    /// Sets the outcome of a lever, and what is missing, after its need.
    fn settle(&self, lever: &mut Lever) {
        let needs = lever.needs_bytes.0;
        lever.outcome = settled(lever.outcome, needs, self.available, self.at_most);
        let short =
            self.at_most.filter(|_| lever.is_short()).map(|most| needs.saturating_sub(most));
        lever.short_by = short.filter(|&bytes| bytes > 0).map(Bytes);
    }

    /// What a change does; `None` if it lacks a fact, or changes nothing. What it needs is
    /// [measured](Self::measure) where it is said.
    pub(super) async fn lever(
        &mut self,
        candidate: &Candidate,
        budget: &mut Budget,
    ) -> Option<Lever> {
        let evidence = self.target.entry.evidence(self.target.index);
        let (run, arena, recipes) = (self.editable, &mut self.arena, &candidate.recipes);
        let on = self.machine.filter(|_| candidate.cost == Cost::Time);
        let mut seconds = match (&on, &recipes[..]) {
            (Some(on), [_, _, ..]) => {
                seconds_percent(self.target, run, arena, recipes, on, budget).await
            }
            _ => None,
        };
        let run = self.arena.apply(evidence, recipes, budget).await.ok()?;
        if let (Some(on), [recipe]) = (&on, &recipes[..]) {
            seconds = self.editable.seconds_percent(recipe, &run, on);
        }
        let seconds = seconds.zip(on.map(|on| on.speeds.name));
        let settings = candidate.settings.as_ref().unwrap_or(&self.model.settings);
        let active = run.active_peak(settings, budget).await;
        let lowers = self.before.saturating_sub(active);
        let is_small = lowers * 100 < self.before * self.min_percent;
        if candidate.settings.is_none() && is_small && !words::is_tried(candidate) {
            return None;
        }
        let rest = self.editable.rest;
        let error_percent = run.error_percent();
        let known = Known { candidate, settings, lowers, rest, error_percent, seconds };
        if let Some(at_most) = self.at_most.filter(|&at_most| active > at_most)
            && !words::is_tried(candidate)
        {
            let short = Some(active - at_most);
            return Some(known.lever(
                self.target,
                Some(self.editable),
                &run.applied,
                Some(Outcome::Short),
                active,
                short,
            ));
        }
        let Some(available) = self.available else {
            let [active, _] = run.free_peaks(settings, budget).await;
            let known = Known { lowers: self.replayed.saturating_sub(active), ..known };
            let lever =
                known.lever(self.target, Some(self.editable), &run.applied, None, active, None);
            let (range, error_percent) = run.active_range(active, settings, budget).await;
            let is_open = error_percent.is_none() && range[0] < range[1];
            return Some(Lever { range: is_open.then(|| range.map(Bytes)), ..lever });
        };
        let answer = run.answer(settings, Some(available), budget).await;
        let lowers = self.replayed.saturating_sub(answer.active_peak);
        let known = Known { lowers, error_percent: answer.error_percent, ..known };
        let infers = self.editable.infers();
        let is_of_request = candidate.recipes.iter().any(|Recipe { change, .. }| {
            change.is_of_request || change.cost == Cost::Batch || infers && change.is_smaller_batch
        });
        // Settings alone are replayed call by call.
        let recorded = if candidate.recipes.is_empty() && self.editable.rest == Rest::Whole {
            recorded_least(self.model, settings, budget).await
        } else {
            None
        };
        let outcome = match (recorded, answer.fits) {
            (Some(least), _) => Some(of_needs(least, available)),
            (None, Some(Outcome::Unknown)) if is_of_request => Some(Outcome::Fits),
            (None, outcome) => outcome,
        };
        let mut needs = recorded.unwrap_or(answer.reserved_peak);
        // With less memory the allocator returns what is free, so it needs less than it reserves.
        if recorded.is_none() && (outcome == Some(Outcome::Short) || needs > available) {
            needs = run.least(settings, budget).await;
        }
        let mut short = None;
        if outcome == Some(Outcome::Short) {
            // Whether a limit of unknown size is high enough is not known.
            short = Some(needs.checked_sub(self.at_most?).filter(|&bytes| bytes > 0)?);
        }
        let mut lever =
            known.lever(self.target, Some(self.editable), &run.applied, outcome, needs, short);
        let [low, high] = answer.active_range;
        if lever.error_percent.is_none() && low < high {
            // Measured from the peak of active bytes, as without a limit.
            let shift = needs.saturating_sub(answer.active_peak);
            lever.range = Some([low, high].map(|bytes| Bytes(bytes.saturating_add(shift))));
        }
        if let Some(grows) = self.grows.filter(|_| outcome != Some(Outcome::Short)) {
            lever.lasts = lasts(grows, &run, available.saturating_sub(needs), budget).await;
        }
        Some(lever)
    }
}

/// Whether a need that is known exactly is met.
pub(super) fn of_needs(needs: u64, available: u64) -> Outcome {
    if needs <= available { Outcome::Fits } else { Outcome::Short }
}

/// Settings with which a run goes through that survived its failures. Sizes are in bytes.
pub(super) fn of_settings(
    target: Target<'_>,
    candidate: &Candidate,
    settings: &AllocatorSettings,
    [now, needs]: [u64; 2],
) -> Lever {
    let (rest, error_percent, seconds) = (Rest::Whole, None, None);
    let known = Known { candidate, settings, lowers: 0, rest, error_percent, seconds };
    let lever = known.lever(target, None, &[], Some(Outcome::Fits), needs, None);
    let saving_bytes = Bytes(now.saturating_sub(needs));
    Lever { now_bytes: Bytes(now), saving_bytes, ..lever }
}

/// What is known of a change before its replay.
struct Known<'a> {
    candidate: &'a Candidate,
    settings: &'a AllocatorSettings,
    lowers: u64,
    rest: Rest,
    error_percent: Option<f64>,
    /// By how much a step gets longer, in percent, and the GPU of the estimate.
    seconds: Option<([u32; 2], &'static str)>,
}

impl Known<'_> {
    fn lever(
        &self,
        target: Target<'_>,
        editable: Option<&Editable>,
        applied: &[Applied],
        outcome: Option<Outcome>,
        needs: u64,
        short: Option<u64>,
    ) -> Lever {
        let recipes = &self.candidate.recipes;
        // No recipe can be written for a reference.
        let is_asked = recipes.iter().all(|recipe| recipe.change.is_predicted());
        let written = recipes.iter().filter(|_| is_asked).map(Recipe::to_string);
        let recipe = written.collect::<Vec<_>>().join(",");
        let conf = self.candidate.settings.is_some().then(|| settings_text(self.settings));
        let mut edits = editable.into_iter().flat_map(|run| {
            recipes.iter().zip(applied).map(move |(one, of)| edit(target, run, one, of))
        });
        let (edit, place) = edits.next().unwrap_or_default();
        let is_single = edits.next().is_none() && conf.is_none();
        let names = conf.iter().cloned().chain(recipes.iter().map(Recipe::to_string));
        Lever {
            id: names.collect::<Vec<_>>().join(","),
            kind: recipes.first().map_or("setting", |recipe| recipe.change.name()).to_owned(),
            text: words::text(target, self.candidate, self.settings, applied),
            recipe,
            conf,
            path: target.path.to_owned(),
            device: target.device(),
            place,
            now_bytes: Bytes(0),
            needs_bytes: Bytes(needs),
            saving_bytes: Bytes(0),
            cost: self.candidate.cost,
            seconds_percent: self.seconds.map(|of| of.0),
            seconds_gpu: self.seconds.map(|of| of.1.to_owned()),
            outcome,
            short_by: short.map(Bytes),
            covers: Covers::of(self.rest),
            lasts: None,
            basis: LeverBasis::Replayed,
            // The requests after the failed one were not measured.
            error_percent: self.error_percent.filter(|_| self.rest != Rest::Unknown),
            range: None,
            cures: None,
            edit: edit.filter(|_| is_single),
            lowers: Bytes(self.lowers),
        }
    }
}
