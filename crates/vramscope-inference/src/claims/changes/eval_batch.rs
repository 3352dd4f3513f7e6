//! Another batch of evaluation.

use super::batch::scale;
use super::growth::{growth, has_other_size, is_near, of_step, rounded};
use super::prelude::*;
use crate::evidence::evaluation;

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
        scale(lives, facts, value.factor(), |life| facts.is_in_evaluation(life.begin))
    },
    compare: |_, a, b| compare(a, b),
    line: Line::Evaluation,
    what: "the forward pass of an evaluation; the change is where its inputs are made",
    snippet: include_str!("snippets/eval_batch.py"),
    called: |value, _, _| format!("{value} x the batch of the evaluation"),
    ..Change::PLAIN
};

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
