//! The levers of a run that went through, best first.

use super::candidates::{Candidate, candidates, other_settings};
use super::trial::of_needs;
use super::{Trial, order, words};
use crate::derived::Derived;
use crate::findings::{FindingEntry, FindingRecord};
use crate::serving::share;
use crate::target::Target;
use crate::what_if::lever_place;
use std::cmp::Reverse;
use vramscope_inference::{
    Cost, Covers, FindingKind, Lever, LeverBasis, LeverPlace, PeakPart, Rest, peak_parts,
};
use vramscope_trace::file_name;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// A lever that saves less comes after the others, in percent of what the run needs.
const MIN_WORTH_PERCENT: u64 = 3;
/// A lever that saves less is none.
pub(super) const MIN_PERCENT: u64 = 1;

/// The levers of a run that went through, and what it needs without them, in bytes.
pub(crate) struct Found {
    pub(crate) now: u64,
    pub(crate) levers: Vec<Lever>,
}

/// At most `most` levers of a run that went through, with what PyTorch can have at least and at
/// most if `limit` says it. `findings` are those of the device, with their replays: their cures are
/// levers.
pub(crate) async fn levers(
    target: Target<'_>,
    findings: &[FindingEntry],
    limit: [Option<u64>; 2],
    most: usize,
    budget: &mut Budget,
) -> Found {
    target.entry.derive(Derived::WhatIf, target.index, budget).await;
    let model = target.entry.what_if(target.index).filter(|model| model.calibration.is_equal());
    let model = model.filter(|model| !model.starts_late());
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let run = target.entry.editable(target.index).filter(|run| run.rest == Rest::Whole);
    let [available, at_most] = limit;
    let trial = match (model, run) {
        (Some(model), Some(run)) => Trial::new(target, model, run, available, budget).await,
        _ => None,
    };
    let mut trial = trial.map(|trial| Trial { at_most, ..trial });
    let mut all = match &mut trial {
        Some(trial) => replayed(trial, findings, most, budget).await,
        None => Vec::new(),
    };
    let now = match &mut trial {
        Some(trial) => trial.now_bytes(budget).await,
        None => None,
    };
    let now = now.unwrap_or_else(|| target.trace().requested_band.peak.max(0) as u64);
    for part in peak_parts(target.entry.evidence(target.index), budget).await {
        let cure = part.cure.to_string();
        if all.iter().any(|one| one.recipe == cure) {
            continue;
        }
        // An estimate stands for a replay that is not possible, and never beside one.
        let candidate = Candidate::of([part.cure.clone()], part.cure.change.cost);
        if let Some(trial) = &mut trial
            && trial.run(&candidate.recipes, budget).await.is_some()
        {
            push_measured(trial, &candidate, &mut all, budget).await;
        } else {
            all.push(of_peak_part(target, &part, now));
        }
    }
    for lever in findings.iter().filter_map(|finding| cure(&finding.record, now)) {
        if all.iter().all(|one| one.cures != lever.cures) {
            all.push(lever);
        }
    }
    for lever in all.iter_mut().filter(|lever| lever.outcome.is_none()) {
        match (&mut trial, available) {
            (Some(trial), _) => trial.judge(lever, budget).await,
            (None, Some(available)) => judge_estimate(lever, available),
            (None, None) => {}
        }
    }
    // A flag sizes the cache of an engine, whatever the batch.
    if share(target, budget).await.is_some_and(|of| of.flag.is_some()) {
        all.retain(|lever| !matches!(&*lever.kind, "batch" | "eval_batch"));
    }
    let least = |percent: u64| Bytes(now / 100 * percent);
    all.retain(|lever| lever.saving_bytes >= least(MIN_PERCENT));
    let first = first_cured(findings, &all, least(MIN_WORTH_PERCENT));
    all.sort_by_key(|lever| (first.as_ref() != Some(&lever.id), rank(lever, now)));
    all.truncate(most);
    Found { now, levers: all }
}

/// The place of a lever after the first one: what helps, what is worth a line, what costs less, and
/// what saves most for the time that it costs comes before. `now` is what the run needs, in bytes.
pub(super) fn rank(lever: &Lever, now: u64) -> (bool, bool, Cost, u8, Reverse<Bytes>, Bytes) {
    let is_small = lever.saving_bytes < Bytes(now / 100 * MIN_WORTH_PERCENT);
    let worth = Reverse(lever.saving_per_percent());
    (lever.is_short(), is_small, lever.cost, order(lever.outcome), worth, lever.needs_bytes)
}

/// The cure that saves this much at least: of the finding with the first words, else of another
/// that could have them, else the largest.
fn first_cured(findings: &[FindingEntry], all: &[Lever], least: Bytes) -> Option<String> {
    let cure = |finding: &FindingEntry| {
        let id = &finding.record.id;
        let lever = all.iter().find(|lever| lever.cures.as_ref() == Some(id));
        lever.filter(|lever| lever.saving_bytes >= least)
    };
    let of = |leads: bool| {
        let cures = findings.iter().filter(|finding| finding.leads == leads).filter_map(cure);
        cures.max_by_key(|lever| lever.saving_bytes)
    };
    let leading = findings.iter().filter(|finding| finding.leads);
    let first = leading.min_by_key(|finding| finding.record.weight()).and_then(cure);
    first.or_else(|| of(true)).or_else(|| of(false)).map(|lever| lever.id.clone())
}

/// The levers of replays: those of findings, then those that lower the peak most.
async fn replayed(
    trial: &mut Trial<'_>,
    findings: &[FindingEntry],
    most: usize,
    budget: &mut Budget,
) -> Vec<Lever> {
    let of_finding = |finding: &FindingEntry| {
        let finding = &finding.record;
        let cures = Some(finding.id.clone());
        let first = finding.fixes.first().cloned();
        let place = || place_of(finding);
        first.map(|lever| Lever {
            cures,
            outcome: None,
            short_by: None,
            place: lever.place.clone().or_else(place),
            ..lever
        })
    };
    let mut all: Vec<Lever> = findings.iter().filter_map(of_finding).collect();
    all.extend(settings(trial, findings, budget).await);
    let mut tried: Vec<(u64, Candidate)> = Vec::new();
    let least = trial.before / 100 * MIN_PERCENT;
    for candidate in candidates(trial, budget).await {
        let [recipe] = &candidate.recipes[..] else { continue };
        let worth_percent = recipe.change.worth_percent;
        let id = recipe.to_string();
        if all.iter().any(|lever| lever.id == id) {
            continue;
        }
        let model = trial.model;
        let before = trial.before;
        let Some(run) = trial.run(&candidate.recipes, budget).await else { continue };
        let lowers = before.saturating_sub(run.active_peak(&model.settings, budget).await);
        if lowers > least {
            tried.push((lowers.saturating_mul(worth_percent) / 100, candidate));
        }
    }
    // The best form of each kind comes before further forms.
    tried.sort_by_key(|(lowers, candidate)| {
        (*lowers < trial.before / 100 * MIN_WORTH_PERCENT, candidate.cost, Reverse(*lowers))
    });
    let mut kept: Vec<Candidate> = Vec::new();
    for (_, candidate) in tried {
        let is_same = |one: &&Candidate| one.recipes[0].is_same_kind(&candidate.recipes[0]);
        let same = kept.iter().filter(is_same).count();
        if same < forms(most) && all.len() + kept.len() <= most {
            kept.push(candidate);
        }
    }
    for candidate in kept {
        push_measured(trial, &candidate, &mut all, budget).await;
    }
    all
}

/// Adds the lever of a change, if the replay has it. Two changes of one effect are one to a reader:
/// `batch` and `eval_batch`.
async fn push_measured(
    trial: &mut Trial<'_>,
    candidate: &Candidate,
    all: &mut Vec<Lever>,
    budget: &mut Budget,
) {
    let Some(mut lever) = trial.lever(candidate, budget).await else { return };
    trial.measure(candidate, &mut lever, budget).await;
    let is_known = |one: &Lever| (one.lowers, one.needs_bytes) == (lever.lowers, lever.needs_bytes);
    if !all.iter().any(is_known) {
        all.push(lever);
    }
}

/// Sets the outcome of a lever where no run can be replayed.
fn judge_estimate(lever: &mut Lever, available: u64) {
    let needs = lever.needs_bytes.0;
    lever.outcome = Some(of_needs(needs, available));
    lever.short_by = needs.checked_sub(available).filter(|&bytes| bytes > 0).map(Bytes);
}

/// How many forms of one kind a list of `most` levers has.
fn forms(most: usize) -> usize {
    if most > MAX_TOLD { 2 } else { 1 }
}

/// The levers that a text tells.
pub(crate) const MAX_TOLD: usize = 5;

/// The settings with which the run needs least: the shortest of those that need about as little.
async fn settings(
    trial: &mut Trial<'_>,
    findings: &[FindingEntry],
    budget: &mut Budget,
) -> Option<Lever> {
    let mut records = findings.iter().map(|finding| &finding.record);
    let finding = records.find(|finding| finding.kind == FindingKind::Reserved);
    let mut found: Vec<Lever> = Vec::new();
    for settings in other_settings(trial.target, trial.model, finding.is_some()) {
        let candidate =
            Candidate { recipes: Vec::new(), settings: Some(settings), cost: Cost::None };
        if let Some(mut lever) = trial.lever(&candidate, budget).await {
            trial.measure(&candidate, &mut lever, budget).await;
            found.push(lever);
        }
    }
    let least = found.iter().map(|lever| lever.needs_bytes.0).min()?;
    found.retain(|lever| lever.needs_bytes.0 <= least + least / 100);
    let best = found.into_iter().min_by_key(|lever| lever.text.len())?;
    Some(Lever { cures: finding.map(|finding| finding.id.clone()), ..best })
}

/// The cure of a part of the peak, with what the trace shows of it.
fn of_peak_part(target: Target<'_>, part: &PeakPart, now: u64) -> Lever {
    let (recipe, saving) = (part.cure.to_string(), part.saving);
    Lever {
        id: recipe.clone(),
        kind: part.cure.change.name().to_owned(),
        text: words::called(target, &part.cure),
        recipe,
        place: part.site.and_then(|frame| lever_place(target, frame)),
        cost: part.cure.change.cost,
        ..estimated(target.path, target.device(), now, saving)
    }
}

/// The cure of a finding that no replay covers; `None` if the peak would stay. What
/// [`FindingKind::Reserved`] saves is reserved memory, which is no need: its settings are replayed.
fn cure(finding: &FindingRecord, now: u64) -> Option<Lever> {
    let is_of_peak = finding.fixes.is_empty() && finding.kind != FindingKind::Reserved;
    let saving = finding.saving_bytes.filter(|_| is_of_peak)?.0;
    // Its first sentence, without the reason.
    let first = finding.action.split(". ").next()?;
    let first = first.split(": ").next().unwrap_or(first);
    Some(Lever {
        id: finding.id.to_string(),
        kind: CURE.to_owned(),
        text: first.trim_end_matches('.').to_owned(),
        place: place_of(finding),
        cures: Some(finding.id.clone()),
        ..estimated(&finding.path, finding.device, now, saving)
    })
}

/// The kind of a lever that is the cure of a finding and no change that is replayed.
const CURE: &str = "cure";

/// The line of a finding.
fn place_of(finding: &FindingRecord) -> Option<LeverPlace> {
    let place = finding.place.as_ref().filter(|place| place.line > 0)?;
    Some(LeverPlace {
        site: format!("{}:{}", file_name(&place.file), place.line),
        file: place.file.clone(),
        line: place.line,
    })
}

/// A lever that lowers the peak by `saving` bytes. `now` is what the run needs without it.
fn estimated(path: &str, device: u32, now: u64, saving: u64) -> Lever {
    let saving = saving.min(now);
    Lever {
        id: String::new(),
        kind: String::new(),
        recipe: String::new(),
        conf: None,
        text: String::new(),
        path: path.to_owned(),
        device,
        place: None,
        now_bytes: Bytes(now),
        needs_bytes: Bytes(now - saving),
        saving_bytes: Bytes(saving),
        cost: Cost::Edit,
        seconds_percent: None,
        seconds_gpu: None,
        outcome: None,
        short_by: None,
        covers: Covers::Run,
        lasts: None,
        basis: LeverBasis::Estimated,
        error_percent: None,
        range: None,
        cures: None,
        edit: None,
        lowers: Bytes(saving),
    }
}
