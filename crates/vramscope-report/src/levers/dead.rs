//! Changes that drop what is never read again.

use super::Trial;
use super::candidates::Candidate;
use crate::derived::Derived;
use crate::target::Target;
use crate::what_if::least_available;
use std::cmp::Reverse;
use vramscope_inference::{Cost, Finding, Lever, Recipe, Rest, WhatIf};
use vramscope_trace::file_name;
use vramscope_trace::slicing::Budget;

/// The maximum number of lines that are tried.
const MAX_LINES: usize = 4;

/// All lines together are a change of their own if they save this much more than the best of them,
/// in percent.
const MIN_MORE_PERCENT: u64 = 2;

/// The run in which what lines of a finding make dies at its last use: the largest saving first.
pub(crate) async fn last_uses(
    target: Target<'_>,
    model: &WhatIf,
    finding: &Finding,
    budget: &mut Budget,
) -> Vec<Lever> {
    target.entry.derive(Derived::Editable, target.index, budget).await;
    let Some(editable) = target.entry.editable(target.index).filter(|run| run.rest == Rest::Whole)
    else {
        return Vec::new();
    };
    let available = least_available(model);
    let Some(mut trial) = Trial::new(target, model, editable, available, budget).await else {
        return Vec::new();
    };
    let mut lines: Vec<String> = Vec::new();
    for part in &finding.parts {
        let frame = target.entry.sites.get(part.stack).frame.filter(|frame| frame.line > 0);
        let line = frame.map(|frame| {
            let file = target.snapshot().text(frame.file);
            format!("{}:{}", file_name(&file), frame.line)
        });
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    lines.truncate(MAX_LINES);
    let recipes: Vec<Recipe> = lines.into_iter().map(Recipe::last_use).collect();
    let mut levers: Vec<(Candidate, Lever)> = Vec::new();
    for recipe in &recipes {
        let candidate = Candidate::of([recipe.clone()], Cost::Edit);
        let lever = trial.lever(&candidate, budget).await;
        levers.extend(lever.map(|lever| (candidate, lever)));
    }
    levers.sort_by_key(|(_, lever)| Reverse(lever.lowers));
    let best = levers.first().map_or(0, |(_, lever)| lever.lowers.0);
    if recipes.len() > 1 {
        let all = Candidate::of(recipes, Cost::Edit);
        let worth = best.saturating_add(trial.before / 100 * MIN_MORE_PERCENT);
        let lever = trial.lever(&all, budget).await.filter(|lever| lever.lowers.0 > worth);
        if let Some(lever) = lever {
            levers.insert(0, (all, lever));
        }
    }
    levers.retain(|(_, lever)| !lever.is_short());
    for (candidate, lever) in &mut levers {
        trial.measure(candidate, lever, budget).await;
    }
    levers.into_iter().map(|(_, lever)| lever).collect()
}
