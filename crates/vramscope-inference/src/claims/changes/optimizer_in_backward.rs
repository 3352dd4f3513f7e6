//! The optimizer updates a parameter as soon as its gradient is there.

use super::prelude::*;
use crate::evidence::gradients;
use crate::evidence::optimizer::without_temporaries;
use rustc_hash::FxHashMap;
use vramscope_units::grouped;

/// A gradient dies at birth, that of a weight used twice at the end of backward. Each update needs
/// two temporaries of its size. States are born there.
pub(super) static IN_BACKWARD: Change = Change {
    form: "optimizer_in_backward",
    does: "a gradient dies at birth, with two temporaries beside it",
    error_percent: Some(3.0),
    cost: Cost::Time,
    slows: Slows::Updates,
    tries: |_| vec![Value::None],
    moves_blocks: true,
    apply: |lives, facts, _, _| optimizer_in_backward(lives, facts),
    is_on: Some(is_on),
    on: ["the optimizer runs three times or more within a backward pass", "gradients wait for it"],
    proof: |state, words| match state {
        Enabled::On => format!(
            "{} runs {} times within one backward pass{}{}",
            words.optimizer,
            grouped(words.count.into()),
            words.at,
            words.by
        ),
        _ => format!("{} with {} wait for the optimizer", words.counted("gradient"), words.bytes),
    },
    snippet: include_str!("snippets/optimizer_in_backward.py"),
    called: |_, _| "Run the optimizer in backward hooks".to_owned(),
    ..OF_OPTIMIZER
};

/// The optimizer runs several times within one backward pass.
fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let pass = run.typical().filter(|pass| pass.backward.is_some())?;
    let from = run.lives.spans.partition_point(|span| span.begin < pass.end - 0.5);
    let (mut count, mut since) = (0, 0);
    for span in &run.lives.spans[from..] {
        match span.phase {
            StepPhase::Forward | StepPhase::Evaluation => break,
            StepPhase::Optimizer => since += 1,
            StepPhase::Backward => count += std::mem::take(&mut since),
            _ => {}
        }
    }
    if count < MIN_RUNS {
        let of = gradients::of_step(run).filter(|of| of.count > 1 && of.at_once * 20 < of.bytes)?;
        let proof = Proof { count: of.count, bytes: of.bytes, ..Proof::default() };
        return Some((Enabled::Off, proof));
    }
    let life = run
        .lives
        .all
        .iter()
        .find(|life| life.begin >= pass.end && run.lives.mark(life).has(Mark::OPTIMIZER));
    let (site, by) =
        life.map_or((None, None), |life| (run.site(life), run.marked_frame(life, Mark::OPTIMIZER)));
    let proof = Proof { site, by, count, ..Proof::default() };
    Some((Enabled::On, proof))
}

/// Fewer runs of the optimizer within backward are those of several losses.
const MIN_RUNS: u32 = 3;

/// # Errors
/// No backward pass makes gradients.
fn optimizer_in_backward(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    without_temporaries(lives);
    let mut changed = 0;
    for step in lives.steps() {
        let Some(backward) = lives.span(step, StepPhase::Backward) else { continue };
        changed += of_step(lives, facts, step, backward);
    }
    Applied::of(changed, Declined::NoGradients)
}

fn of_step(lives: &mut Lives, facts: &Facts, step: i32, backward: (f64, f64)) -> u32 {
    let is_of_step = |life: &Life| life.step == step && life.phase == StepPhase::Backward;
    let temporary = |life: &&Life| is_of_step(life) && life.category == Category::Temporary;
    // A second gradient of one weight is a temporary that is added to the first.
    let mut last: FxHashMap<u64, f64> = FxHashMap::default();
    for life in lives.all.iter().filter(temporary) {
        let begin = last.entry(life.bytes).or_insert(life.begin);
        *begin = begin.max(life.begin);
    }
    let is_tied = |life: &Life| {
        facts.parameters.get(&life.bytes) == Some(&1)
            && last.get(&life.bytes).is_some_and(|&begin| begin > life.begin)
    };
    let mut new = Vec::new();
    let mut births: FxHashMap<u64, Vec<f64>> = FxHashMap::default();
    for life in &mut lives.all {
        if life.category != Category::Gradient || life.step != step {
            continue;
        }
        births.entry(life.bytes).or_default().push(life.begin);
        if life.phase != StepPhase::Backward {
            continue;
        }
        let end = if is_tied(life) { backward.1 - 0.5 } else { life.begin + 0.5 };
        for at in [0.15, 0.1] {
            let begin = end - at;
            new.push(Life { begin, end, category: Category::Temporary, is_new: true, ..*life });
        }
        life.end = end;
    }
    let states = lives.all.iter_mut().filter(|life| {
        life.category == Category::OptimizerState
            && life.phase == StepPhase::Optimizer
            && life.step == step
            && life.bytes > 512
    });
    for state in states {
        if let Some(births) = births.get(&state.bytes) {
            state.begin = births[births.len() / 2] + 0.3;
        }
    }
    let changed = new.len() as u32 / 2;
    lives.all.extend(new);
    changed
}
