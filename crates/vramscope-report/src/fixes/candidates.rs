//! The changes that are tried after a failure, by cost.

use super::Trial;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use vramscope_inference::{Checkpointed, NewOptimizer, Recipe, WhatIf, When};
use vramscope_trace::AllocatorSettings;
use vramscope_trace::slicing::Budget;

/// What a change costs, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// An environment variable.
    Setting,
    /// A line of the program, without a loss.
    Edit,
    /// Computing time.
    Time,
    /// Precision of numbers.
    Precision,
    /// A smaller batch: other results, or more steps.
    Batch,
}

impl Cost {
    /// The cost in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::Edit => "edit",
            Self::Time => "time",
            Self::Precision => "precision",
            Self::Batch => "batch",
        }
    }
}

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

/// The number of call sites whose results are dropped.
const MAX_HELD: usize = 2;
/// Results of fewer bytes are not worth a line.
const MIN_HELD: u64 = 16 << 20;

/// All changes to try, by cost.
pub(super) async fn candidates(trial: &Trial<'_>, budget: &mut Budget) -> Vec<Candidate> {
    let mut all = Vec::new();
    if let Some(settings) = expandable(trial.target, trial.model) {
        let settings = Some(settings);
        all.push(Candidate { recipes: Vec::new(), settings, cost: Cost::Setting });
    }
    let held = trial.editable.held_sites(budget).await;
    let held = held.into_iter().filter(|(_, bytes)| *bytes >= MIN_HELD).take(MAX_HELD);
    all.extend(held.map(|(frame, _)| {
        Candidate::of([Recipe::Del(crate::what_if::place(trial.target, frame))], Cost::Edit)
    }));
    let edits = [
        Recipe::ZeroGrad(When::Early),
        Recipe::EvaluationNoGrad,
        Recipe::ForeachOff,
        Recipe::Optimizer(NewOptimizer::Fused),
        Recipe::FlashAttention,
        Recipe::EvaluationBatch(0.5),
    ];
    all.extend(edits.map(|recipe| Candidate::of([recipe], Cost::Edit)));
    all.extend(time().map(|recipes| Candidate::of(recipes, Cost::Time)));
    let precision = [Recipe::Optimizer(NewOptimizer::EightBit)];
    all.extend(precision.map(|recipe| Candidate::of([recipe], Cost::Precision)));
    let batches = trial.earlier_batch.into_iter().chain([0.75, 0.5]);
    all.extend(batches.map(|k| Candidate::of([Recipe::Batch(k)], Cost::Batch)));
    all
}

/// Changes that cost computing time, least first.
fn time() -> impl Iterator<Item = Vec<Recipe>> {
    let all = || Recipe::Checkpoint(Checkpointed::All);
    [
        vec![Recipe::Accumulate(2)],
        vec![Recipe::Checkpoint(Checkpointed::Half)],
        vec![Recipe::ChunkedLoss(8)],
        vec![all()],
        vec![Recipe::OptimizerInBackward],
        vec![all(), Recipe::ChunkedLoss(8)],
        vec![Recipe::OffloadActivations],
    ]
    .into_iter()
}

/// The recording's settings with expandable segments; `None` if they are on, or the platform lacks
/// them.
pub(super) fn expandable(target: Target<'_>, model: &WhatIf) -> Option<AllocatorSettings> {
    let recorded = &model.settings;
    let can = crate::finding_text::can_expand(target.entry);
    (!recorded.expandable_segments && can)
        .then(|| AllocatorSettings { expandable_segments: true, ..recorded.clone() })
}
