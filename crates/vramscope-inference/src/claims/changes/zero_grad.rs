//! When gradients are freed.

use super::optimizer_in_backward::IN_BACKWARD;
use super::prelude::*;
use crate::evidence::gradients;
use rustc_hash::{FxHashMap, FxHashSet};

/// Fields of `early` and `late` alike.
const PLAIN: Change = Change {
    error_percent: Some(1.0),
    line: Line::Optimizer,
    what: "the optimizer's step",
    ..Change::PLAIN
};

pub(super) static EARLY: Change = Change {
    form: "zero_grad:early",
    does: "gradients die after the optimizer's step",
    tries: |_| vec![Value::None],
    cause: Some("old gradients in forward: zero_grad after step()"),
    apply: |lives, _, _, _| zero_grad(lives, When::Early),
    is_on: Some(is_on),
    on: ["gradients die before the next forward pass", "they live in it, or are never freed"],
    proof,
    compare: |change, a, b| match came_in(change, a, b) {
        // Gradients that are never freed are no recipe.
        Compared::Went if !is_kept(b) => Compared::Same,
        compared => compared,
    },
    snippet: include_str!("snippets/zero_grad_early.py"),
    called: |_, _| "Call zero_grad(set_to_none=True) right after step()".to_owned(),
    ..PLAIN
};

pub(super) static LATE: Change = Change {
    form: "zero_grad:late",
    does: "gradients die before the next backward pass",
    apply: |lives, _, _, _| zero_grad(lives, When::Late),
    compare: |_, a, b| match came_in(&EARLY, a, b) {
        Compared::Went if !is_kept(b) => Compared::Came(Value::None),
        _ => Compared::Same,
    },
    snippet: include_str!("snippets/zero_grad_late.py"),
    called: |_, _| "Call zero_grad() before backward".to_owned(),
    ..PLAIN
};

fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let of = gradients::of_step(run).filter(|of| of.bytes > 0)?;
    let state = match of.in_forward * 100 / of.bytes {
        0..=5 if of.at_once * 2 < of.bytes => Enabled::On,
        80.. => Enabled::Off,
        _ => return None,
    };
    // Of one: they outlive the next backward pass, too.
    let kept = u32::from(of.kept * 100 >= of.bytes * 80);
    Some((state, Proof { count: of.count, of: kept, bytes: of.bytes, ..Proof::default() }))
}

fn is_kept(of: &Features) -> bool {
    of.of(&EARLY).is_some_and(|of| of.proof.of == 1)
}

fn proof(state: Enabled, words: &ProofWords) -> String {
    let gradients = format!("{} with {}", words.counted("gradient"), words.bytes);
    match (state, words.of) {
        (Enabled::On, _) => format!("{gradients} are freed before the next forward pass"),
        (_, 1) => format!("{gradients} are never freed"),
        _ => format!("{gradients} live in the next forward pass"),
    }
}

/// Gradients that die in backward are freed neither early nor late.
fn came_in(change: &'static Change, a: &Features, b: &Features) -> Compared {
    match came_or_went(&IN_BACKWARD, a, b) {
        Compared::Same => came_or_went(change, a, b),
        _ => Compared::Same,
    }
}

/// When gradients are freed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Those that outlive the optimizer's step end with it.
    Early,
    /// They live to the next backward pass.
    Late,
}

fn zero_grad(lives: &mut Lives, when: When) -> Result<Applied, Declined> {
    let steps = lives.steps();
    let mut spans = FxHashMap::default();
    for &step in &steps {
        spans.insert(step, (updated(lives, step), lives.span(step + 1, StepPhase::Backward)));
    }
    let mut changed = 0;
    let mut kept = Vec::new();
    for (index, life) in lives.all.iter_mut().enumerate() {
        if life.category != Category::Gradient || life.is_new {
            continue;
        }
        let (updated, next) = spans.get(&life.step).copied().unwrap_or_default();
        let is_kept = next.is_some_and(|next| life.end > next.1);
        if is_kept && when == When::Early {
            kept.push(index);
            continue;
        }
        if life.stays() {
            continue;
        }
        let died = life.dies_in.map(|(_, step)| step);
        let end = match when {
            When::Early => {
                updated.filter(|&end| died.is_some_and(|step| step > life.step) && life.end > end)
            }
            When::Late => match next {
                Some(next) => (life.end < next.0).then_some(next.0 - 0.25),
                None => (died == Some(life.step)).then_some(f64::INFINITY),
            },
        };
        if let Some(end) = end {
            life.end = end;
            changed += 1;
        }
    }
    let mut taken = FxHashSet::default();
    for index in kept {
        changed += u32::from(make_again(lives, index, &steps, &mut taken));
    }
    Applied::of(changed, Declined::HadIt)
}

/// When the update of a step is over. One that allocates nothing follows backward at once.
fn updated(lives: &Lives, step: i32) -> Option<f64> {
    let optimizer = lives.span(step, StepPhase::Optimizer).map(|span| span.1 - 0.25);
    optimizer.or_else(|| Some(lives.span(step, StepPhase::Backward)?.1 + 0.25))
}

/// Ends a gradient that lives through several steps with the optimizer of its own one. In each
/// later step, what backward made to add to it is the gradient itself. `taken` are the blocks that
/// stand for another gradient. False if a step does not show what it made.
fn make_again(
    lives: &mut Lives,
    index: usize,
    steps: &[i32],
    taken: &mut FxHashSet<usize>,
) -> bool {
    let life = lives.all[index];
    let Some(end) = updated(lives, life.step) else { return false };
    let mut again = Vec::new();
    for &step in steps.iter().filter(|&&step| step > life.step) {
        let Some(backward) = lives.span(step, StepPhase::Backward) else { continue };
        if backward.0 >= life.end {
            break;
        }
        let is_same = |&at: &usize| {
            let other = &lives.all[at];
            other.bytes == life.bytes
                && (!other.is_of_model() || other.category == Category::Gradient)
                && other.end <= backward.1
                && !taken.contains(&at)
        };
        let Some(made) = lives.born(backward.0, backward.1).find(is_same) else { return false };
        again.push((made, updated(lives, step).unwrap_or(life.end)));
    }
    lives.all[index].end = end;
    for (made, end) in again {
        taken.insert(made);
        let made = &mut lives.all[made];
        (made.end, made.category) = (end.min(life.end), Category::Gradient);
    }
    true
}
