//! The optimizer: how it updates, and what states it keeps.

use super::marks::Mark;
use super::proof::{Enabled, Proof};
use super::{Run, gradients};
use crate::category::Category;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vramscope_snapshot::Stage;
use vramscope_trace::Coverage;

/// The statement at the line of a change of the optimizer.
pub(crate) const WHAT: &str = "the optimizer's step; the change is where it is constructed";

/// bitsandbytes keeps states of fewer elements in 32 bits (`min_8bit_size`).
pub(crate) const MIN_8BIT_ELEMENTS: u64 = 4096;

/// Elements that share a scale of four bytes (bitsandbytes, `blocksize`).
pub(crate) const ELEMENTS_PER_SCALE: u64 = 256;

/// States of fewer bytes may be kept in 32 bits.
const MIN_STATE: u64 = MIN_8BIT_ELEMENTS;

/// The classes in ranges such as `Optimizer.step#AdamW.step`.
pub(crate) fn names(run: Run<'_>) -> Vec<String> {
    let snapshot = run.cx.snapshot;
    let mut names: Vec<String> = snapshot
        .annotations
        .iter()
        .filter(|mark| mark.stage == Stage::Start)
        .filter_map(|mark| {
            let text = snapshot.text(mark.name);
            let class = text.strip_prefix("Optimizer.step#")?.strip_suffix(".step")?;
            Some(class.to_owned())
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The temporaries with which parameters are updated in the last step, by a mark.
fn updates(run: Run<'_>, mark: Mark) -> Option<Proof> {
    let is_of = |life: &&Life, mark| {
        run.lives.mark(life).has(Mark::OPTIMIZER) && run.lives.mark(life).has(mark)
    };
    let any = Mark::FOREACH.or(Mark::LOOP);
    let step = run.lives.all.iter().filter(|life| is_of(life, any)).map(|life| life.step).max()?;
    let all = run.lives.all.iter().filter(|life| life.step == step && is_of(life, mark));
    let first = all.clone().next()?;
    let frames = run.lives.frames(first).iter().copied();
    Some(Proof {
        by: frames.into_iter().find(|&frame| run.lives.stacks.mark(frame).has(mark)),
        site: run.site(first),
        count: all.clone().count() as u32,
        bytes: all.map(|life| life.bytes).sum(),
        ..Proof::default()
    })
}

/// Whether one parameter is updated after the other.
pub(crate) fn is_foreach_off(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let of_all = updates(run, Mark::FOREACH).map(|proof| (Enabled::Off, proof));
    of_all.or_else(|| Some((Enabled::On, updates(run, Mark::LOOP)?)))
}

/// Whether one kernel updates parameters. Such an optimizer keeps the number of its step on the
/// device, for each parameter.
pub(crate) fn is_fused(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let temporaries = || updates(run, Mark::FOREACH).or_else(|| updates(run, Mark::LOOP));
    if let Some(proof) = temporaries() {
        return Some((Enabled::Off, proof));
    }
    let made: Vec<&Life> =
        run.lives.all.iter().filter(|life| run.lives.mark(life).has(Mark::STATES)).collect();
    let steps = made.iter().filter(|life| life.bytes == 4).count();
    let rest = made.len() - steps;
    let is_fused = steps > 0 && rest > 0 && steps * 4 >= rest && run.training().count() > 1;
    let first = made.first().filter(|_| is_fused)?;
    let by = run.marked_frame(first, Mark::STATES);
    let proof = Proof { by, site: run.site(first), count: steps as u32, ..Proof::default() };
    Some((Enabled::On, proof))
}

/// The states of an optimizer: large ones, in bytes.
struct States {
    all: u64,
    /// Of one byte an element, with scales.
    low: u64,
    /// As large as a parameter, or twice as large.
    like: u64,
    proof: Proof,
}

/// The states of a run; `None` without large ones.
fn states(run: Run<'_>) -> Option<States> {
    let states = run.lives.all.iter().filter(|life| life.category == Category::OptimizerState);
    let mut sizes: FxHashMap<u64, u32> = FxHashMap::default();
    for life in states.clone() {
        *sizes.entry(life.bytes).or_default() += 1;
    }
    let large: Vec<&Life> = states.clone().filter(|life| life.bytes >= MIN_STATE).collect();
    let first = large.first()?;
    let parameters = &run.facts.parameters;
    let is_like = |bytes: u64| {
        parameters.contains_key(&bytes)
            || bytes.is_multiple_of(2) && parameters.contains_key(&(bytes / 2))
    };
    // A size of 8 bits may be that of another parameter, but then it has no scales.
    let is_low = |bytes: u64| {
        let is_of = [4, 2].iter().any(|element| parameters.contains_key(&(bytes * element)));
        let scales = sizes.get(&(bytes.div_ceil(ELEMENTS_PER_SCALE) * 4));
        is_of && scales >= sizes.get(&bytes)
    };
    let sum = |is: &dyn Fn(u64) -> bool| -> u64 {
        large.iter().map(|life| life.bytes).filter(|&bytes| is(bytes)).sum()
    };
    let all = sum(&|_| true);
    let proof = Proof {
        site: run.site(first),
        by: run.marked_frame(first, Mark::STATES),
        count: states.count() as u32,
        bytes: all,
        of: parameters.values().sum(),
        ..Proof::default()
    };
    Some(States { all, low: sum(&is_low), like: sum(&is_like), proof })
}

/// Whether states have one byte an element.
pub(crate) fn has_8bit_states(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let States { all, low, like, proof } = states(run)?;
    if low * 10 >= all * 8 {
        return Some((Enabled::On, proof));
    }
    (like * 10 >= all * 8).then_some((Enabled::Off, proof))
}

/// Whether there is an optimizer without states.
pub(crate) fn has_no_states(run: Run<'_>) -> Option<(Enabled, Proof)> {
    if let Some((_, proof)) = has_8bit_states(run) {
        return Some((Enabled::Off, proof));
    }
    let is_state = |life: &Life| life.category == Category::OptimizerState;
    let has_optimizer = !names(run).is_empty()
        || run.lives.all.iter().any(|life| run.lives.mark(life).has(Mark::OPTIMIZER));
    let is_without = run.cx.trace.coverage == Coverage::Whole && has_optimizer;
    if !is_without || run.lives.all.iter().any(is_state) {
        return None;
    }
    let of = gradients::of_step(run).filter(|of| of.count > 1 && of.bytes > 0)?;
    Some((Enabled::On, Proof { count: of.count, ..Proof::default() }))
}

/// The optimizer's temporaries of each step, ascending.
pub(crate) fn temporaries(lives: &Lives) -> BTreeMap<i32, Vec<usize>> {
    let mut of_steps: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    for (index, life) in lives.all.iter().enumerate() {
        if is_temporary(life) {
            of_steps.entry(life.step).or_default().push(index);
        }
    }
    of_steps
}

fn is_temporary(life: &Life) -> bool {
    life.phase == StepPhase::Optimizer
        && !life.is_of_model()
        && !matches!(life.category, Category::Gradient | Category::Communication)
        && life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Optimizer)
        && life.bytes > 512
}

/// Bytes of an element of a state: those of the parameters, and four for a state with twice the
/// size of a parameter in 16 bits, and where weights in 16 bits are gathered from shards.
pub(crate) fn state_element(life: &Life, facts: &Facts) -> u64 {
    let is_wide = facts.element == 2
        && !facts.parameters.contains_key(&life.bytes)
        && facts.parameters.contains_key(&(life.bytes / 2));
    if is_wide || facts.has_gathered { 4 } else { facts.element }
}

/// Changes every state. The change may return a block that is made beside it.
///
/// # Errors
/// There are no states.
pub(crate) fn change_states(
    lives: &mut Lives,
    mut change: impl FnMut(&mut Life) -> Option<Life>,
) -> Result<Applied, Declined> {
    let mut new = Vec::new();
    let mut changed = 0;
    for life in &mut lives.all {
        if life.category == Category::OptimizerState {
            new.extend(change(life));
            changed += 1;
        }
    }
    lives.all.extend(new);
    Applied::of(changed, Declined::NoStates)
}

/// As [`change_states`], of an optimizer without temporaries.
///
/// # Errors
/// There are no states.
pub(crate) fn with_states(
    lives: &mut Lives,
    change: impl FnMut(&mut Life) -> Option<Life>,
) -> Result<Applied, Declined> {
    without_temporaries(lives);
    change_states(lives, change)
}

/// Leaves out the optimizer's temporaries, and counts them.
pub(crate) fn without_temporaries(lives: &mut Lives) -> u32 {
    let all: Vec<usize> = temporaries(lives).into_values().flatten().collect();
    for &index in &all {
        lives.all[index].drop();
    }
    all.len() as u32
}
