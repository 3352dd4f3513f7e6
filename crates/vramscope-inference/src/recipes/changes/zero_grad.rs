//! When gradients are freed.

use crate::category::Category;
use crate::recipes::Applied;
use crate::recipes::lives::Lives;
use crate::recipes::recipe::When;
use crate::step_phases::StepPhase;
use rustc_hash::FxHashMap;

/// `zero_grad:early`: gradients that outlive the optimizer's step end with it.
/// `zero_grad:late`: gradients live to the next backward pass.
pub(super) fn zero_grad(lives: &mut Lives, when: When) -> Applied {
    let mut spans = FxHashMap::default();
    for step in lives.steps() {
        spans.insert(
            step,
            (lives.span(step, StepPhase::Optimizer), lives.span(step + 1, StepPhase::Backward)),
        );
    }
    let mut changed = 0;
    for life in &mut lives.all {
        if life.category != Category::Gradient || life.stays() {
            continue;
        }
        let (optimizer, next) = spans.get(&life.step).copied().unwrap_or_default();
        let died = life.dies_in.map(|(_, step)| step);
        let end = match when {
            When::Early => optimizer
                .filter(|span| died.is_some_and(|step| step > life.step) && life.end > span.1)
                .map(|span| span.1 - 0.25),
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
    Applied { changed, had_it: changed == 0, ..Applied::default() }
}
