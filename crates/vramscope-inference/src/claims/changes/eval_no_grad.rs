//! Evaluation without a graph.

use super::prelude::*;
use crate::evidence::evaluation;

/// In passes without backward, all but logits and the last result die three requests later. The
/// change leaves out three kinds of memory: passes whose results a later backward pass frees, a
/// last pass that may belong to training, and pools of CUDA graphs.
pub(super) static EVAL_NO_GRAD: Change = Change {
    form: "eval:no_grad",
    does: "what an evaluation's graph holds dies after three requests. Not where a later backward \
           pass frees it, nor in a pool of graphs",
    error_percent: Some(1.0),
    tries: |_| vec![Value::None],
    cause: Some("graphs of the evaluation: torch.no_grad()"),
    apply: |lives, facts, _, _| no_grad(lives, facts),
    is_on: Some(evaluation::is_without_graph),
    on: [
        "at most 15 % of what an evaluation makes outlives the next requests",
        "45 % or more does",
    ],
    proof: |state, words| match state {
        Enabled::On => format!(
            "an evaluation makes {}{}, and keeps none of it for backward",
            words.bytes, words.at
        ),
        _ => format!("an evaluation keeps a graph of {}{}", words.bytes, words.at),
    },
    must_stay: true,
    line: Line::Evaluation,
    what: "the forward pass of an evaluation",
    snippet: include_str!("snippets/eval_no_grad.py"),
    called: |_, _| "Run the evaluation under torch.no_grad()".to_owned(),
    ..Change::PLAIN
};

/// Requests after which a result is not needed any more.
const REQUESTS: usize = 3;

/// # Errors
/// No evaluation keeps a graph.
fn no_grad(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let mut changed = 0;
    let all = evaluation::evaluations(lives, facts);
    for of in all.into_iter().filter(|of| of.has_graph() == Some(true)) {
        let Some(&last) = of.blocks.last() else { continue };
        // A variable holds it. What comes after it may be a workspace.
        let held = of.blocks.iter().rfind(|&&index| lives.all[index].end >= of.pass.end).copied();
        let last_end = lives.all[last].begin + 0.5;
        for (at, &index) in of.blocks.iter().enumerate() {
            let later = of.blocks.get(at + REQUESTS).map(|&later| lives.all[later].begin + 0.25);
            let end = later.unwrap_or(last_end);
            let life = &mut lives.all[index];
            let is_result = [of.result, held, Some(last)].contains(&Some(index));
            if !is_result && life.category != Category::Input && life.end > end {
                life.end = end;
                changed += 1;
            }
        }
    }
    Applied::of(changed, Declined::NoGraph)
}
