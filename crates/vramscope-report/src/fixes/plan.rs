//! The cheapest set of changes that fits, where no single one does.

use super::candidates::{Candidate, Cost, expandable};
use super::{Fix, Trial};
use crate::what_if::Outcome;
use vramscope_inference::{Checkpointed, NewOptimizer, Recipe};
use vramscope_trace::slicing::Budget;

/// A set of changes that fits, without a needless part. `None` if not even all of them fit.
///
/// Changes come by cost until the run fits. Then each is left out again that is not needed.
pub(super) async fn plan(trial: &Trial<'_>, budget: &mut Budget) -> Option<Fix> {
    let base = trial.run(&[], budget).await?;
    let before = base.active_peak(&trial.model.settings);
    let settings = expandable(trial.target, trial.model);
    let steps = [
        (Recipe::Checkpoint(Checkpointed::All), Cost::Time),
        (Recipe::ChunkedLoss(8), Cost::Time),
        (Recipe::Accumulate(2), Cost::Time),
        (Recipe::Optimizer(NewOptimizer::EightBit), Cost::Precision),
        (Recipe::Batch(0.5), Cost::Batch),
    ];
    let mut candidate = Candidate { recipes: Vec::new(), settings, cost: Cost::Setting };
    let mut found = None;
    for (recipe, cost) in steps {
        let mut next = candidate.clone();
        next.recipes.push(recipe);
        next.cost = cost;
        // What the run lacks the facts for is left out.
        let Some(fix) = trial.fix(&next, before, budget).await else { continue };
        candidate = next;
        if fix.outcome == Outcome::Fits {
            found = Some(fix);
            break;
        }
    }
    let mut best = found?;
    let mut at = 0;
    while at < candidate.recipes.len() && candidate.recipes.len() > 1 {
        let mut fewer = candidate.clone();
        fewer.recipes.remove(at);
        match trial.fix(&fewer, before, budget).await {
            Some(fix) if fix.outcome == Outcome::Fits => (candidate, best) = (fewer, fix),
            _ => at += 1,
        }
    }
    if candidate.settings.is_some() {
        let plain = Candidate { settings: None, ..candidate };
        if let Some(fix) = trial.fix(&plain, before, budget).await
            && fix.outcome == Outcome::Fits
        {
            best = fix;
        }
    }
    Some(best)
}
