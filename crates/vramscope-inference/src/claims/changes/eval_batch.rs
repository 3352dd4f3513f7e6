//! Another batch of evaluation.

use super::batch::scale;
use super::growth::{growth, has_other_size, is_near, of_step, rounded};
use super::prelude::*;
use crate::evidence::evaluation;
use rustc_hash::FxHashSet;
use vramscope_snapshot::StackId;

/// Two passes may be of two kinds: a short one and a long one. Of three, two are alike.
const MIN_PASSES: usize = 3;

pub(super) static EVAL_BATCH: Change = Change {
    form: "eval_batch:K",
    does: "what grows with tokens in evaluations is K times as large",
    error_percent: Some(1.0),
    tries: |_| vec![Value::Factor(0.5)],
    is_smaller_batch: true,
    apply: |lives, facts, value, _| {
        if !evaluation::evaluates(lives, facts) {
            return Err(Declined::NoEvaluation);
        }
        let after = after_batches(lives, facts);
        let is_of_batch = |life: &Life| life.stack.is_none_or(|stack| !after.contains(&stack));
        scale(lives, facts, value.factor(), |life| {
            facts.is_in_evaluation(life.begin) && is_of_batch(life)
        })
    },
    compare: |_, a, b| compare(a, b),
    line: Line::Evaluation,
    what: "the forward pass of an evaluation; the change is where its inputs are made",
    snippet: include_str!("snippets/eval_batch.py"),
    called: |value, _| part_of(value, "batch of the evaluation"),
    ..Change::PLAIN
};

/// The call stacks that allocate only in the last pass of an evaluation: they work on what all
/// batches left.
fn after_batches(lives: &Lives, facts: &Facts) -> FxHashSet<StackId> {
    let is_evaluation = |pass: &Pass| pass.backward.is_none();
    let rows = facts.passes.chunk_by(|a, b| is_evaluation(a) == is_evaluation(b));
    let stacks = |passes: &[Pass]| -> FxHashSet<StackId> {
        let lives = passes.iter().flat_map(|pass| &lives.all[lives.born(pass.lead, pass.end)]);
        lives.filter_map(|life| life.stack).collect()
    };
    let (mut last, mut others) = (FxHashSet::default(), FxHashSet::default());
    for row in rows.filter(|row| is_evaluation(&row[0]) && row.len() >= MIN_PASSES) {
        let (before, of_last) = row.split_at(row.len() - 1);
        others.extend(stacks(before));
        last.extend(stacks(of_last));
    }
    last.retain(|stack| !others.contains(stack));
    last
}

/// The factor of an evaluation's sizes, beside that of the batch.
fn compare(a: &Features, b: &Features) -> Compared {
    let Ok(Some(of_step)) = of_step(a, b) else { return Compared::Same };
    let of_evaluation = growth(&a.traits.evaluation, &b.traits.evaluation);
    match of_evaluation.map(|of| rounded(of.factor / of_step.factor)) {
        Some(factor) if !is_near(factor, 1.0) && !has_other_size(a, b) => {
            Compared::Came(Value::Factor(factor))
        }
        _ => Compared::Same,
    }
}
