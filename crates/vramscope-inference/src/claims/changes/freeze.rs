//! Parameters that are not trained any more.

use super::optimizer_in_backward::IN_BACKWARD;
use super::prelude::*;
use std::collections::BTreeMap;

/// Fields of `embedding` and `lower` alike.
const PLAIN: Change = Change {
    error_percent: Some(2.0),
    cost: Cost::Precision,
    line: Line::Parameters,
    what: "where the parameters are made",
    ..Change::PLAIN
};

pub(super) static EMBEDDING: Change = Change {
    form: "freeze:embedding",
    does: "no gradient and no state of the embedding",
    apply: |lives, facts, _, _| embedding(lives, facts),
    compare: |_, a, b| frozen(a, b, true),
    snippet: include_str!("snippets/freeze_embedding.py"),
    called: |_, _| "Freeze the embedding".to_owned(),
    ..PLAIN
};

pub(super) static LOWER: Change = Change {
    form: "freeze:lower",
    does: "declined: sizes do not tell what it does",
    compare: |_, a, b| frozen(a, b, false),
    called: |_, _| "Freeze the lower half".to_owned(),
    ..PLAIN
};

/// Parameters without gradients that had some: embeddings alone, or others as well.
fn frozen(a: &Features, b: &Features, are_embeddings: bool) -> Compared {
    // Gradients that die at once do not show which parameters are frozen.
    let dies_at_once = IN_BACKWARD.compared(a, b) == Compared::Went;
    let (a, b) = (&a.traits, &b.traits);
    let is_known = !a.gradients.is_empty() && !b.gradients.is_empty();
    if a.parameters != b.parameters || !is_known || dies_at_once {
        return Compared::Same;
    }
    let count = |of: &BTreeMap<u64, u32>, bytes| of.get(&bytes).copied().unwrap_or(0);
    let missing = a.gradients.iter().filter(|&(&bytes, &in_a)| count(&b.gradients, bytes) < in_a);
    let is_subset = b.gradients.iter().all(|(&bytes, &in_b)| in_b <= count(&a.gradients, bytes));
    let mut of_embeddings = missing.map(|(bytes, _)| a.embeddings.contains(bytes));
    let (all, any) = (of_embeddings.clone().all(|is| is), of_embeddings.any(|is| is));
    let is_frozen = is_subset && any && all == are_embeddings;
    if is_frozen { Compared::Came(Value::None) } else { Compared::Same }
}

/// # Errors
/// No block is a parameter, or it had neither.
fn embedding(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let mut embeddings: BTreeMap<u64, u32> = BTreeMap::new();
    for life in &lives.all {
        let is_embedding = life.category == Category::Parameter
            && life.end > facts.first_forward
            && lives.frames(life).iter().any(|&f| lives.stacks.mark(f).has(Mark::EMBEDDING));
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
    Applied::of(changed, Declined::HadIt)
}
