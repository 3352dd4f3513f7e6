//! Scenarios of a changed program, and of a run whose failed step is completed.

use super::edits::edit;
use super::{Configuration, Options, Outcome, PlaceRecord, ScenarioRecord, SettingsRecord};
use crate::derived::Derived;
use crate::levers::{MAX_TOLD, correction, levers, machine, seconds_percent};
use crate::optimizations::{features, proof_of};
use crate::target::Target;
use vramscope_inference::Covers;
use vramscope_inference::{
    Applied, Arena, Capacity, ChangedAnswer, ChangedRun, Completion, Declined, Editable, Features,
    Question, Recipe, Rest, SimulatedBasis, WhatIf, ended_by_failure, settings_text,
};
use vramscope_snapshot::FrameId;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{AllocatorSettings, file_name};
use vramscope_units::{Bytes, Flushes};

/// Whether the answer needs the list of blocks: a change of the program is asked for, or the run
/// ended at a failed request, after which more would have come.
pub(super) fn is_wanted(target: Target<'_>, options: &Options) -> bool {
    !options.recipes.is_empty() || ended_by_failure(target.entry.evidence(target.index))
}

/// The run of a device that recipes change; `None` where the model does not reproduce it.
pub(crate) async fn editable(target: Target<'_>, budget: &mut Budget) -> Option<Editable> {
    target.entry.derive(Derived::WhatIf, target.index, budget).await;
    target.entry.derive(Derived::Dims, target.index, budget).await;
    let model = target.entry.what_if(target.index).filter(|model| model.calibration.is_equal())?;
    let dims = target.entry.known_dims(target.index);
    let evidence = target.entry.evidence(target.index);
    // A completion with which the recorded run does not fail is wrong.
    for by in [Completion::Best, Completion::Like] {
        let editable = Editable::new(evidence, model, dims, by, budget).await;
        let is_completed = !matches!(editable.rest, Rest::Whole | Rest::Unknown);
        if let Some(bytes) = least_available(model)
            && is_completed
            && let Ok(run) = Arena::new(&editable).apply(evidence, &[], budget).await
            && run.answer(&model.settings, Some(bytes), budget).await.fits != Some(Outcome::Short)
        {
            continue;
        }
        return Some(editable);
    }
    Some(Editable::new(evidence, model, dims, Completion::Request, budget).await)
}

/// The bytes that PyTorch could have at least, as the recording shows them.
pub fn least_available(model: &WhatIf) -> Option<u64> {
    match model.calibration.capacity {
        Capacity::Bounded { at_least, .. } => Some(at_least),
        capacity => capacity.known(),
    }
}

/// The largest memory that PyTorch could have, as the recording shows it, in bytes.
pub(crate) fn most_available(model: &WhatIf) -> Option<u64> {
    match model.calibration.capacity {
        Capacity::Bounded { below, .. } => Some(below.saturating_sub(1)),
        capacity => capacity.known(),
    }
}

/// The lower and the upper bound of PyTorch's memory: as asked for, else as recorded.
fn limits(options: &Options, model: &WhatIf) -> [Option<u64>; 2] {
    let asked = options.available();
    [least_available(model), most_available(model)].map(|recorded| asked.or(recorded))
}

/// An outcome beside the least memory of the run. Where a replay contradicts it, other gaps decide,
/// which is too close to tell. `available` is what PyTorch can have at least, `at_most` at most:
/// the limit lies between both, and so may the need.
pub(crate) fn settled(
    outcome: Option<Outcome>,
    least: u64,
    available: Option<u64>,
    at_most: Option<u64>,
) -> Option<Outcome> {
    match outcome {
        Some(Outcome::Short) if at_most.is_some_and(|most| least <= most) => {
            Some(Outcome::FitsBarely)
        }
        Some(Outcome::Fits) if available.is_some_and(|have| least > have) => {
            Some(Outcome::FitsBarely)
        }
        outcome => outcome,
    }
}

/// Why nothing is predicted of a run whose failed step cannot be completed.
pub(crate) const REST_UNKNOWN: &str = "the rest of the failed step is not in the file";

/// `train.py:12`.
pub(crate) fn place(target: Target<'_>, frame: FrameId) -> String {
    let frame = target.snapshot().frame(frame);
    let file = target.snapshot().text(frame.file);
    format!("{}:{}", file_name(&file), frame.line)
}

/// The scenarios of `options`: its recipes under each of its configurations.
pub(super) async fn scenarios(
    target: Target<'_>,
    model: &WhatIf,
    options: &Options,
    budget: &mut Budget,
) -> Vec<ScenarioRecord> {
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let Some(editable) = target.entry.editable(target.index) else { return Vec::new() };
    let features = if options.recipes.is_empty() { None } else { features(target, budget).await };
    let [available, at_most] = limits(options, model);
    let own = &model.settings;
    let total = options.memory().or_else(|| model.total());
    let mut declined_ones = Vec::new();
    let mut all: Vec<(Vec<Recipe>, AllocatorSettings)> = Vec::new();
    for one in &options.configurations {
        match one.settings(own, total) {
            Ok(settings) => all.push((options.recipes.clone(), settings)),
            Err(why) => declined_ones.push(declined(target, model, options, one, why)),
        }
    }
    if all.is_empty() && declined_ones.is_empty() {
        all.push((options.recipes.clone(), own.clone()));
        if !options.has_question() {
            all.extend(usual(own));
        }
    }
    let mut arena = Arena::new(editable);
    let by = correction_of(target, model, &mut arena, budget).await;
    let mut records = Vec::with_capacity(all.len());
    for (recipes, settings) in &all {
        if editable.rest == Rest::Unknown && recipes.is_empty() && settings == own {
            records.push(as_recorded(target, model, options, budget).await);
            continue;
        }
        let features = features.as_ref();
        let change = Change { recipes, settings, options, available, at_most, by, features };
        let is_of_request = recipes.iter().all(|recipe| recipe.change.is_of_request);
        let record = scenario(target, editable, &mut arena, &change, budget).await;
        let is_request = editable.by == Completion::Request && !is_of_request;
        // What fails up to the failed request fails whatever follows.
        records.push(match record.outcome {
            Some(Outcome::Short) => record,
            _ if is_request && record.declined.is_none() => {
                let declined = Some(REST_UNKNOWN.to_owned());
                ScenarioRecord { declined, ..change.empty(target, editable.rest) }
            }
            _ => record,
        });
    }
    if options.recipes.is_empty() {
        for record in &mut records {
            record.curve.clear();
        }
    }
    records.extend(declined_ones);
    // A usual change that the run lacks the facts for is no answer to a question.
    let mut at = 0;
    records.retain(|record| {
        at += 1;
        at == 1 || record.declined.is_none() || !options.configurations.is_empty()
    });
    records
}

/// The answer about settings that cannot be predicted.
pub(super) fn declined(
    target: Target<'_>,
    model: &WhatIf,
    options: &Options,
    one: &Configuration,
    why: String,
) -> ScenarioRecord {
    let (recipes, available) = (&options.recipes, options.available());
    let (settings, at_most, by) = (&model.settings, available, 0);
    let change = Change { recipes, settings, options, available, at_most, by, features: None };
    ScenarioRecord {
        change: one.text().to_owned(),
        conf: one.text().to_owned(),
        declined: Some(why),
        rest: None,
        basis: SimulatedBasis::Simulated,
        ..change.empty(target, Rest::Unknown)
    }
}

/// The levers of a run that went through.
pub(super) async fn of_levers(
    target: Target<'_>,
    model: &WhatIf,
    options: &Options,
    budget: &mut Budget,
) -> Vec<ScenarioRecord> {
    let mut records = Vec::new();
    let [available, at_most] = limits(options, model);
    let found = levers(target, &[], [available, at_most], MAX_TOLD, budget).await;
    let Some(editable) = target.entry.editable(target.index) else { return records };
    let mut arena = Arena::new(editable);
    let by = correction_of(target, model, &mut arena, budget).await;
    for lever in found.levers.into_iter().filter(|lever| !lever.recipe.is_empty()) {
        let Ok(recipes) = Recipe::parse_list(&lever.recipe) else { continue };
        let settings = &model.settings;
        let recipes = &recipes;
        let change = Change { recipes, settings, options, available, at_most, by, features: None };
        let record = scenario(target, editable, &mut arena, &change, budget).await;
        records.push(ScenarioRecord { curve: Vec::new(), ..record });
    }
    records
}

/// See [`correction`].
async fn correction_of(
    target: Target<'_>,
    model: &WhatIf,
    arena: &mut Arena<'_>,
    budget: &mut Budget,
) -> i64 {
    match arena.apply(target.entry.evidence(target.index), &[], budget).await {
        Ok(run) => correction(model, &run, budget).await,
        Err(_) => 0,
    }
}

/// The recording itself, whose failed step cannot be completed.
async fn as_recorded(
    target: Target<'_>,
    model: &WhatIf,
    options: &Options,
    budget: &mut Budget,
) -> ScenarioRecord {
    let question =
        Question { available: options.available(), ..Question::as_recorded(&model.settings) };
    let scenario = model.answer(question, budget).await;
    ScenarioRecord {
        rest: Some(Rest::Unknown),
        ..ScenarioRecord::new("as recorded".to_owned(), &scenario, target.trace(), options)
    }
}

/// What people try after a failure.
fn usual(own: &AllocatorSettings) -> Vec<(Vec<Recipe>, AllocatorSettings)> {
    let other = !own.expandable_segments;
    let expandable = AllocatorSettings { expandable_segments: other, ..own.clone() };
    let mut all = vec![(Vec::new(), expandable)];
    all.extend(USUAL[..5].iter().filter_map(|text| Some((vec![text.parse().ok()?], own.clone()))));
    all
}

/// Changes of the program that are worth a try. After a failure all but the last are replayed
/// without being asked for: offloading costs most time.
pub const USUAL: [&str; 6] = [
    "accumulate:2",
    "checkpoint:all",
    "chunked_loss:8",
    "optimizer:8bit",
    "batch:0.5",
    "offload_activations",
];

struct Change<'a> {
    recipes: &'a [Recipe],
    settings: &'a AllocatorSettings,
    options: &'a Options,
    /// The lower bound of PyTorch's memory, in bytes.
    available: Option<u64>,
    /// Its upper bound: it differs from `available` under a limit of unknown size.
    at_most: Option<u64>,
    /// By how much the run needs more than its list of blocks, in bytes.
    by: i64,
    /// What the recording has already.
    features: Option<&'a Features>,
}

async fn scenario(
    target: Target<'_>,
    editable: &Editable,
    arena: &mut Arena<'_>,
    change: &Change<'_>,
    budget: &mut Budget,
) -> ScenarioRecord {
    let evidence = target.entry.evidence(target.index);
    let on = machine(target, change.options.memory().or(change.options.pytorch_memory));
    let seconds = match &on {
        Some(on) => seconds_percent(target, editable, arena, change.recipes, on, budget).await,
        None => None,
    };
    let run = match arena.apply(evidence, change.recipes, budget).await {
        Ok(run) => run,
        Err(declined) => return change.declined(target, editable.rest, declined),
    };
    let mut answer = run.answer(change.settings, change.available, budget).await;
    let least = run.least(change.settings, budget).await.saturating_add_signed(change.by);
    answer.fits = settled(answer.fits, least, change.available, change.at_most);
    let mut record = change.record(target, &run, &answer, least);
    record.seconds_percent = seconds;
    record.seconds_gpu = on.filter(|_| seconds.is_some()).map(|on| on.speeds.name.to_owned());
    if !change.options.recipes.is_empty() {
        let both = change.recipes.iter().zip(&run.applied);
        record.edits = both.filter_map(|(one, of)| edit(target, editable, one, of).0).collect();
    }
    record
}

impl Change<'_> {
    fn record(
        &self,
        target: Target<'_>,
        run: &ChangedRun<'_>,
        answer: &ChangedAnswer,
        least: u64,
    ) -> ScenarioRecord {
        let (phase, step) = answer.fails_in.unwrap_or(answer.peak_in);
        let is_short = answer.fits == Some(Outcome::Short);
        let short = self.at_most.filter(|_| is_short).and_then(|have| least.checked_sub(have));
        let short = short.filter(|&bytes| bytes > 0);
        ScenarioRecord {
            reserved_peak: Bytes(answer.reserved_peak),
            active_peak: Bytes(answer.active_peak),
            active_range: answer.active_range.map(Bytes),
            error_percent: answer.error_percent,
            covers: Some(Covers::of(run.rest)),
            curve: answer.curve.iter().copied().map(Bytes).collect(),
            reserved_range: answer.reserved_range.map(Bytes),
            flushes: Flushes(answer.flushes),
            fits: match answer.fits {
                None | Some(Outcome::Fits) => Some(true),
                Some(Outcome::Short) => Some(false),
                Some(Outcome::FitsBarely | Outcome::Unknown) => None,
            },
            outcome: answer.fits,
            limited_by: Some(PlaceRecord { phase, step }),
            short_by: short.map(Bytes),
            least_device_memory: Some(Bytes(least)),
            found: self.found(target, &run.applied),
            ..self.empty(target, run.rest)
        }
    }

    fn declined(&self, target: Target<'_>, rest: Rest, why: Declined) -> ScenarioRecord {
        let has = self.recipes.iter().find_map(|recipe| self.has_it(target, recipe));
        let declined = has.unwrap_or_else(|| why.words().to_owned());
        ScenarioRecord { declined: Some(declined), ..self.empty(target, rest) }
    }

    fn empty(&self, target: Target<'_>, rest: Rest) -> ScenarioRecord {
        let recipes: Vec<String> = self.recipes.iter().map(Recipe::to_string).collect();
        let conf = settings_text(self.settings);
        let mut words = recipes.clone();
        words.extend(Some(conf.clone()).filter(|text| !text.is_empty()));
        if words.is_empty() {
            words.push("as recorded".to_owned());
        }
        ScenarioRecord {
            change: words.join(", "),
            recipes,
            conf,
            settings: SettingsRecord::of(self.settings),
            pinned: None,
            device_memory: self.options.memory().map(Bytes),
            pytorch_memory: self.available.map(Bytes),
            reserved_peak: Bytes(0),
            reserved_peak_event: None,
            active_peak: Bytes(0),
            active_range: [Bytes(0); 2],
            covers: None,
            curve: Vec::new(),
            reserved_range: [Bytes(0); 2],
            flushes: Flushes(0),
            ooms: Vec::new(),
            fits: None,
            outcome: None,
            limited_by: None,
            rest: Some(rest),
            found: Vec::new(),
            seconds_percent: None,
            seconds_gpu: None,
            edits: Vec::new(),
            declined: None,
            recorded_oom_event: target.trace().ooms.first().map(|oom| oom.event),
            short_by: None,
            least_device_memory: None,
            basis: SimulatedBasis::Recipe,
            error_percent: None,
        }
    }

    /// The proof that the recording has the change already.
    fn has_it(&self, target: Target<'_>, recipe: &Recipe) -> Option<String> {
        let proof = proof_of(target, self.features?, recipe)?;
        Some(format!("{recipe}: the recording has it already. {proof}"))
    }

    /// What each recipe found, in words.
    fn found(&self, target: Target<'_>, applied: &[Applied]) -> Vec<String> {
        let found = |recipe: &Recipe, applied: &Applied| {
            let site = applied.site.map(|frame| place(target, frame)).unwrap_or_default();
            let found = recipe.change.found_text(applied.found, &site)?;
            Some(format!("{recipe}: {found}."))
        };
        let of = |(recipe, applied): (&Recipe, &Applied)| {
            self.has_it(target, recipe).or_else(|| found(recipe, applied))
        };
        self.recipes.iter().zip(applied).filter_map(of).collect()
    }
}
