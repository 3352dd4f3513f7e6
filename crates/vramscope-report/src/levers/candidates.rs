//! The changes that are tried after a failure, by cost.

use super::Trial;
use crate::holders;
use crate::target::Target;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use vramscope_inference::{CHANGES, Cost, Facts, Offer, OomStory, Recipe, Value, WhatIf};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{AllocatorSettings, Block};

/// A change to try.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) recipes: Vec<Recipe>,
    pub(super) settings: Option<AllocatorSettings>,
    pub(super) cost: Cost,
}

impl Candidate {
    pub(super) fn of(recipes: impl Into<Vec<Recipe>>, cost: Cost) -> Self {
        Self { recipes: recipes.into(), settings: None, cost }
    }

    /// Both together; `None` if one has a form of the other's change.
    pub(super) fn with(&self, other: &Self) -> Option<Self> {
        let is_new = |recipe: &Recipe| !self.recipes.iter().any(|one| one.is_same_kind(recipe));
        other.recipes.iter().all(is_new).then(|| Self {
            recipes: self.recipes.iter().chain(&other.recipes).cloned().collect(),
            settings: self.settings.clone().or_else(|| other.settings.clone()),
            cost: self.cost.max(other.cost),
        })
    }
}

impl Candidate {
    /// Whether it is another's change in fewer parts.
    pub(super) fn is_in_fewer_parts(&self, other: &Self) -> bool {
        match (&self.recipes[..], &other.recipes[..]) {
            (
                [Recipe { change, value: Value::Parts(parts) }],
                [Recipe { change: of, value: Value::Parts(more) }],
            ) => change == of && parts < more,
            _ => false,
        }
    }
}

/// All changes to try, by cost.
pub(super) async fn candidates(trial: &Trial<'_>, budget: &mut Budget) -> Vec<Candidate> {
    let cx = trial.target.entry.evidence(trial.target.index);
    let held = trial.editable.held_sites(budget).await;
    let offer = Offer { run: trial.editable, cx, held, earlier_batch: trial.earlier_batch };
    let mut all: Vec<Candidate> = CHANGES
        .iter()
        .flat_map(|&change| {
            let values = (change.tries)(&offer).into_iter();
            values.map(move |value| Candidate::of([Recipe { change, value }], change.cost))
        })
        .collect();
    all.extend(Recipe::parse_list(BOTH).ok().map(|both| Candidate::of(both, Cost::Time)));
    all.extend(holders::droppable(trial.target).into_iter().map(|(name, births)| {
        let name = format!("Drop {name}");
        Candidate::of([Recipe::drop_held(name, births.into())], Cost::Edit)
    }));
    all.extend(idle_models(trial.target));
    if let Some(settings) = expandable(trial.target, trial.model) {
        let settings = Some(settings);
        all.push(Candidate { recipes: Vec::new(), settings, cost: Cost::None });
    }
    // A stable sort: of one cost, those whose saving counts less come last.
    let worth = |all: &Candidate| all.recipes.iter().map(|of| of.change.worth_percent).min();
    all.sort_by_key(|candidate| (candidate.cost, Reverse(worth(candidate))));
    all
}

/// The copies of the model that the line of the failed request made, on the CPU.
pub(super) fn copies(target: Target<'_>, story: &OomStory) -> Candidate {
    let site = |stack: StackId| target.entry.sites.get(stack).site_hash;
    let own = site(story.stack);
    let is_copy = |block: &Block| block.is_live_at(story.event.0 + 1) && site(block.stack) == own;
    without("Make the copies on the CPU", births(target, is_copy).chain([story.event.0]))
}

/// Idle models that move to the host before the failed request.
fn idle_models(target: Target<'_>) -> Option<Candidate> {
    let findings = target.entry.findings(target.index);
    let finding = findings.iter().find(|finding| matches!(finding.facts, Facts::IdleModel(_)))?;
    let stacks: BTreeSet<StackId> = finding.parts.iter().map(|part| part.stack).collect();
    let is_idle = |block: &Block| stacks.contains(&block.stack);
    Some(without("Move idle models to the host", births(target, is_idle)))
}

/// The events that allocate blocks of a kind.
fn births(target: Target<'_>, is_of: impl Fn(&Block) -> bool) -> impl Iterator<Item = u32> {
    let blocks = target.trace().blocks.iter().filter(move |block| is_of(block));
    blocks.filter_map(|block| Some(block.alloc_event()?.0))
}

/// The run without the blocks of these events, from the failed request on.
fn without(name: &str, births: impl Iterator<Item = u32>) -> Candidate {
    let mut births: Vec<u32> = births.collect();
    births.sort_unstable();
    Candidate::of([Recipe::drop_held(name.to_owned(), births.into())], Cost::Edit)
}

/// Checkpointing, and the loss in parts: together they free most activations.
const BOTH: &str = "checkpoint:all,chunked_loss:8";

/// Other settings that may need less memory: expandable segments, and if the recording
/// `is_wasteful`, each without settings that cost memory.
pub(crate) fn other_settings(
    target: Target<'_>,
    model: &WhatIf,
    is_wasteful: bool,
) -> Vec<AllocatorSettings> {
    let recorded = &model.settings;
    let expandable = expandable(target, model);
    let plain = AllocatorSettings {
        expandable_segments: recorded.expandable_segments,
        ..defaults(recorded)
    };
    let both = expandable
        .is_some()
        .then(|| AllocatorSettings { expandable_segments: true, ..defaults(recorded) });
    let others = [Some(plain), both].into_iter().flatten().filter(|_| is_wasteful);
    let mut all: Vec<AllocatorSettings> = expandable.into_iter().collect();
    for settings in others {
        if settings != *recorded && !all.contains(&settings) {
            all.push(settings);
        }
    }
    all
}

/// PyTorch's defaults in the release of the recording.
pub(super) fn defaults(recorded: &AllocatorSettings) -> AllocatorSettings {
    AllocatorSettings { release: recorded.release, ..AllocatorSettings::default() }
}

/// The recording's settings with expandable segments; `None` if they are on, or the platform lacks
/// them.
pub(super) fn expandable(target: Target<'_>, model: &WhatIf) -> Option<AllocatorSettings> {
    let recorded = &model.settings;
    let can = target.entry.evidence(target.index).can_expand();
    (!recorded.expandable_segments && can)
        .then(|| AllocatorSettings { expandable_segments: true, ..recorded.clone() })
}
