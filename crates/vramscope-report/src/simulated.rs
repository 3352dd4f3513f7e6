//! What the model of the allocator says about findings: by how much an allocation that failed is
//! short, what would have fitted, and what other settings would reserve.

use crate::derived::Derived;
use crate::levers::{self, OfFailure};
use crate::target::Target;
use vramscope_inference::{
    Capacity, ChangeKind, Facts, Finding, Growth, OomStory, Predicted, Question, Recipe, Rest,
    Scenario, Search, Simulated, Verdict, WhatIf, settings_text, split_outside_brackets,
};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{AllocatorSettings, line_of};
use vramscope_units::Bytes;

/// The maximum number of failed allocations that are simulated: the first of the findings.
const MAX_OOMS: usize = 4;

/// The same for growth.
const MAX_GROWTHS: usize = 2;

/// What the model says about the findings of a device: by index of the finding.
pub(crate) type SimulatedFindings = Vec<(usize, Predicted)>;

/// Simulates what the findings of a device are about. Empty without a finding that the model can
/// say something about, and where the model does not reproduce the recording.
pub(crate) async fn simulate(target: Target<'_>, budget: &mut Budget) -> SimulatedFindings {
    let findings = target.entry.findings(target.index);
    let mut ooms: Vec<(usize, &OomStory)> = Vec::new();
    let mut reserved = None;
    let mut growths: Vec<(usize, &Growth)> = Vec::new();
    let mut dead = None;
    let mut edits: Vec<(usize, Recipe)> = Vec::new();
    for (i, finding) in findings.iter().enumerate() {
        match &finding.facts {
            Facts::Oom(story) if ooms.len() < MAX_OOMS => ooms.push((i, story)),
            Facts::Reserved(_) => reserved = Some(i),
            Facts::DeadAtPeak(_) => dead = Some(i),
            // A backward pass may still use a graph that lives at the end.
            Facts::NoGrad(facts) if !facts.is_open && facts.kept_by.is_none() => {
                edits.push((i, Recipe::eval_no_grad()));
            }
            Facts::GradientsHeld(_) => edits.push((i, Recipe::zero_grad_early())),
            Facts::Growth(growth) if growths.len() < MAX_GROWTHS => growths.push((i, growth)),
            _ => {}
        }
    }
    // A run that failed has no peak to compare with.
    let reserved = reserved.filter(|_| ooms.is_empty());
    growths.retain(|_| ooms.is_empty());
    let dead = dead.filter(|_| ooms.is_empty());
    edits.retain(|_| ooms.is_empty());
    let has_others = reserved.is_some() || dead.is_some() || !edits.is_empty();
    if ooms.is_empty() && growths.is_empty() && !has_others {
        return Vec::new();
    }
    target.entry.derive(Derived::WhatIf, target.index, budget).await;
    let model = target.entry.what_if(target.index).filter(|model| model.calibration.is_equal());
    let Some(model) = model else { return Vec::new() };
    let simulator = Simulator { target, model };
    let mut all = Vec::new();
    for (i, story) in ooms {
        let (fixes, looks) =
            levers::of_oom(target, model, story, OfFailure::default(), budget).await;
        let (simulated, least) = simulator.oom(story, budget).await.unzip();
        let is_last = target
            .entry
            .editable(target.index)
            .is_some_and(|run| run.rest == Rest::Unknown && run.failed_at() == Some(story.last.0));
        let predicted = Predicted {
            simulated: simulated.into_iter().collect(),
            fixes,
            looks,
            at_least: least.flatten().filter(|_| is_last),
            ..Predicted::default()
        };
        all.push((i, predicted));
    }
    for (i, growth) in growths {
        all.push((i, simulator.growth(&findings[i], growth, budget).await));
    }
    if let Some(i) = dead.filter(|_| !model.starts_late()) {
        let fixes = levers::last_uses(target, model, &findings[i], budget).await;
        all.push((i, Predicted { fixes, ..Predicted::default() }));
    }
    edits.retain(|_| !model.starts_late());
    for (i, recipe) in edits {
        let fixes = levers::edited(target, model, recipe, budget).await.into_iter().collect();
        all.push((i, Predicted { fixes, ..Predicted::default() }));
    }
    if let Some(i) = reserved {
        let simulated = simulator.reserved(budget).await;
        all.push((i, Predicted { simulated, ..Predicted::default() }));
    }
    all
}

struct Simulator<'a> {
    target: Target<'a>,
    model: &'a WhatIf,
}

impl Simulator<'_> {
    /// By how much a failed allocation is short as configured, and what PyTorch must have until
    /// then. Changes of the run are [`fixes`]: they cover more than the request.
    async fn oom(
        &self,
        story: &OomStory,
        budget: &mut Budget,
    ) -> Option<(Simulated, Option<Bytes>)> {
        let is_known = matches!(self.model.calibration.capacity, Capacity::Exact { .. });
        // What refused the request was no lack of memory that a change of the run could avoid.
        let is_of_run = !matches!(story.verdict, Verdict::Limit | Verdict::OtherMemory);
        if !is_known || !is_of_run {
            return None;
        }
        let base = Question {
            until: Some(story.event.0),
            least: Search::WhenShort,
            ..Question::as_recorded(&self.model.settings)
        };
        let own = self.model.answer(base, budget).await;
        (own.ooms == [story.event.0]).then(|| (simulated_failure(&own), own.least.map(Bytes)))
    }

    /// The run without what grows, and when memory is full with it.
    async fn growth(&self, finding: &Finding, growth: &Growth, budget: &mut Budget) -> Predicted {
        let target = self.target;
        let entry = target.entry;
        let slope = crate::steps::floors(target, budget).await.slope;
        let full_after = slope.and_then(|slope| {
            // Of several lines that grow, none fills the memory alone.
            let is_alone = slope.bytes_per_step == growth.rate.0;
            Some((slope.steps_left.filter(|_| is_alone)?, Bytes(slope.capacity_bytes?)))
        });
        let own = || finding.stack().and_then(|stack| entry.sites.get(stack).frame);
        let frame = growth.at.filter(|_| growth.sites > 1).or_else(own);
        let line = frame.and_then(|frame| line_of(&entry.snapshot, frame));
        let mut fixes = Vec::new();
        // Dropping is replayed after each backward pass; an evaluation has none. Data is needed.
        let is_known = !self.model.starts_late() && !growth.at_evaluation && !growth.is_data;
        if let Some(line) = line.filter(|_| is_known) {
            fixes.extend(levers::without(target, self.model, &line, growth.total, budget).await);
        }
        Predicted { fixes, full_after, ..Predicted::default() }
    }

    /// The least memory of the run as configured, and what other settings reserve.
    async fn reserved(&self, budget: &mut Budget) -> Vec<Simulated> {
        let base =
            Question { least: Search::Always, ..Question::as_recorded(&self.model.settings) };
        let own = self.model.answer(base.clone(), budget).await;
        let recorded = &self.model.settings;
        let mut all = vec![simulated(ChangeKind::AsRecorded, recorded, &own)];
        if self.model.starts_late() {
            return all;
        }
        for settings in levers::other_settings(self.target, self.model, true) {
            let expandable = AllocatorSettings { expandable_segments: true, ..recorded.clone() };
            let is_expandable = settings == expandable;
            let kind = if is_expandable { ChangeKind::Expandable } else { ChangeKind::Settings };
            let question = Question { settings, least: Search::Never, ..base.clone() };
            let scenario = self.model.answer(question, budget).await;
            if scenario.fits() {
                all.push(simulated(kind, recorded, &scenario));
            }
        }
        all
    }
}

/// What a scenario says about a change of the recording's settings.
fn simulated(kind: ChangeKind, recorded: &AllocatorSettings, scenario: &Scenario) -> Simulated {
    let items = |settings: &AllocatorSettings| -> Vec<String> {
        let text = settings_text(settings);
        let items = split_outside_brackets(&text).filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    let name = |item: &String| item.split(':').next().unwrap_or_default().to_owned();
    let (old, new) = (items(recorded), items(&scenario.question.settings));
    let with: Vec<String> = new.iter().filter(|item| !old.contains(item)).cloned().collect();
    let stays: Vec<String> = new.iter().map(name).collect();
    let gone = old.iter().map(name).filter(|name| !stays.contains(name));
    let without: Vec<String> = gone.map(|name| format!("without {name}")).collect();
    let change = [&*with, &*without].concat();
    Simulated {
        change: if change.is_empty() { "as recorded".to_owned() } else { change.join(", ") },
        conf: settings_text(&scenario.question.settings),
        fits: None,
        short_by: None,
        reserved_peak: Bytes(scenario.reserved_peak),
        least_device_memory: scenario.least.map(Bytes),
        basis: scenario.basis,
        kind,
        with,
        without,
    }
}

/// The same about a failed allocation.
fn simulated_failure(scenario: &Scenario) -> Simulated {
    Simulated {
        fits: Some(scenario.fits()),
        short_by: scenario.short_by().map(Bytes),
        // Searched until the failure only: no figure about the run.
        least_device_memory: None,
        ..simulated(ChangeKind::AsRecorded, &scenario.question.settings, scenario)
    }
}
