//! Parameters that are not trained any more.

use crate::category::Category;
use crate::recipes::facts::Facts;
use crate::recipes::lives::Lives;
use crate::recipes::stacks::Kind;
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;
use std::collections::BTreeMap;

/// `freeze:embedding`: it has neither a gradient nor states.
///
/// # Errors
/// No block is a parameter.
pub(super) fn embedding(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let mut embeddings: BTreeMap<u64, u32> = BTreeMap::new();
    for life in &lives.all {
        let is_embedding = life.category == Category::Parameter
            && life.end > facts.first_forward
            && lives.frames(life).iter().any(|&f| lives.stacks.kind(f).has(Kind::EMBEDDING));
        if is_embedding {
            *embeddings.entry(life.bytes).or_default() += 1;
        }
    }
    if embeddings.is_empty() {
        // `.to()` moved the model, and the call stacks of its making are lost: the largest. A
        // second of its size is the head.
        let (&bytes, _) = facts.parameters.iter().next_back().ok_or(Declined::NotPredicted)?;
        embeddings.insert(bytes, 1);
    }
    let mut changed = 0;
    for (category, each) in [(Category::Gradient, 1), (Category::OptimizerState, 2)] {
        let mut left: BTreeMap<(i32, u64), u32> = BTreeMap::new();
        // Backward makes the embedding's gradient last.
        for life in lives.all.iter_mut().rev().filter(|life| life.category == category) {
            let Some(&count) = embeddings.get(&life.bytes) else { continue };
            let left = left.entry((life.step, life.bytes)).or_insert(count * each);
            if *left > 0 {
                *left -= 1;
                life.drop();
                changed += 1;
            }
        }
    }
    for life in &mut lives.all {
        let count = embeddings.get(&life.bytes);
        let is_only = count.is_some() && count == facts.parameters.get(&life.bytes);
        if life.category == Category::Temporary
            && is_only
            && matches!(life.phase, StepPhase::Optimizer | StepPhase::Backward)
            && !facts.data_sizes.contains(&life.bytes)
        {
            life.drop();
        }
    }
    Ok(Applied { changed, ..Applied::default() })
}
