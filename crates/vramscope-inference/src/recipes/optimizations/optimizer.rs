//! The optimizer: how it updates, and what states it keeps.

use super::marks::Mark;
use super::passes::gradients;
use super::{Enabled, Optimization, OptimizationKind, Proof, Run};
use crate::category::Category;
use crate::recipes::lives::Life;
use crate::step_phases::StepPhase;
use rustc_hash::FxHashMap;
use vramscope_snapshot::Stage;
use vramscope_trace::Coverage;

/// The classes in ranges such as `Optimizer.step#AdamW.step`.
pub(super) fn names(run: &Run<'_>) -> Vec<String> {
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

pub(super) fn find(run: &Run<'_>, names: &[String]) -> Vec<Optimization> {
    let mut all = update(run);
    all.extend(states(run, names));
    all.extend(in_backward(run));
    all
}

/// How parameters are updated: all at once, one after the other, or by one kernel.
fn update(run: &Run<'_>) -> Vec<Optimization> {
    let of = |mark| run.lives.all.iter().filter(move |life| run.mark(life).has(mark));
    let step = of(Mark::FOREACH).chain(of(Mark::LOOP)).map(|life| life.step).max();
    let seen = |mark: Mark| {
        let all: Vec<&Life> = of(mark).filter(|life| Some(life.step) == step).collect();
        let first = *all.first()?;
        let bytes = all.iter().map(|life| life.bytes).sum();
        let by = run.marked_frame(first, mark);
        Some(Proof {
            by,
            site: run.site(first),
            count: all.len() as u32,
            bytes,
            ..Proof::default()
        })
    };
    let (foreach, each) = (seen(Mark::FOREACH), seen(Mark::LOOP));
    let new = Optimization::new;
    match (foreach, each) {
        (Some(proof), _) => vec![
            new(OptimizationKind::ForeachOff, Enabled::Off, proof),
            new(OptimizationKind::FusedOptimizer, Enabled::Off, proof),
        ],
        (None, Some(proof)) => vec![
            new(OptimizationKind::ForeachOff, Enabled::On, proof),
            new(OptimizationKind::FusedOptimizer, Enabled::Off, proof),
        ],
        (None, None) => fused(run).into_iter().collect(),
    }
}

/// A fused optimizer keeps the number of its step on the device, for each parameter.
fn fused(run: &Run<'_>) -> Option<Optimization> {
    let made: Vec<&Life> =
        run.lives.all.iter().filter(|life| run.mark(life).has(Mark::STATES)).collect();
    let steps = made.iter().filter(|life| life.bytes == 4).count();
    let rest = made.len() - steps;
    let is_fused = steps > 0 && rest > 0 && steps * 4 >= rest && run.training().count() > 1;
    let first = made.first().filter(|_| is_fused)?;
    let by = run.marked_frame(first, Mark::STATES);
    let proof = Proof { by, site: run.site(first), count: steps as u32, ..Proof::default() };
    Some(Optimization::new(OptimizationKind::FusedOptimizer, Enabled::On, proof))
}

/// States of fewer bytes may be kept in 32 bits.
const MIN_STATE: u64 = 4096;

/// An element of a state in 8 bits shares a scale of four bytes with this many others.
const ELEMENTS_PER_SCALE: u64 = 256;

fn states(run: &Run<'_>, names: &[String]) -> Vec<Optimization> {
    let states: Vec<&Life> =
        run.lives.all.iter().filter(|life| life.category == Category::OptimizerState).collect();
    let large: Vec<&&Life> = states.iter().filter(|life| life.bytes >= MIN_STATE).collect();
    let bytes: u64 = large.iter().map(|life| life.bytes).sum();
    let new = Optimization::new;
    if bytes == 0 {
        let of = gradients(run).filter(|of| of.count > 1 && of.bytes > 0);
        let has_optimizer = !names.is_empty()
            || run.lives.all.iter().any(|life| run.mark(life).has(Mark::OPTIMIZER));
        let is_without =
            run.cx.trace.coverage == Coverage::Whole && has_optimizer && states.is_empty();
        let of = of.filter(|_| is_without);
        let proof = |count| Proof { count, ..Proof::default() };
        let on = |count| new(OptimizationKind::NoStates, Enabled::On, proof(count));
        return of.map(|of| on(of.count)).into_iter().collect();
    }
    let mut sizes: FxHashMap<u64, u32> = FxHashMap::default();
    for life in &run.lives.all {
        if life.category == Category::OptimizerState {
            *sizes.entry(life.bytes).or_default() += 1;
        }
    }
    let parameters = &run.facts.parameters;
    let is_like = |bytes: u64| {
        parameters.contains_key(&bytes)
            || bytes.is_multiple_of(2) && parameters.contains_key(&(bytes / 2))
    };
    // One byte an element: beside parameters of 4 or 2 bytes an element, with scales.
    let is_low = |bytes: u64| {
        let is_of = [4, 2].iter().any(|element| parameters.contains_key(&(bytes * element)));
        let scales = sizes.get(&(bytes.div_ceil(ELEMENTS_PER_SCALE) * 4));
        is_of && scales >= sizes.get(&bytes)
    };
    let sum = |is: &dyn Fn(u64) -> bool| -> u64 {
        large.iter().map(|life| life.bytes).filter(|&bytes| is(bytes)).sum()
    };
    let (low, like) = (sum(&is_low), sum(&is_like));
    let proof = Proof {
        site: run.site(large[0]),
        by: run.marked_frame(large[0], Mark::STATES),
        count: states.len() as u32,
        bytes,
        of: parameters.values().sum(),
        ..Proof::default()
    };
    // A size of 8 bits may be that of another parameter, but then it has no scales.
    let state = if low * 10 >= bytes * 8 {
        Enabled::On
    } else if like * 10 >= bytes * 8 {
        Enabled::Off
    } else {
        return Vec::new();
    };
    vec![
        new(OptimizationKind::EightBitOptimizer, state, proof),
        new(OptimizationKind::NoStates, Enabled::Off, proof),
    ]
}

/// The optimizer runs several times within one backward pass.
fn in_backward(run: &Run<'_>) -> Option<Optimization> {
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
        let of = gradients(run).filter(|of| of.count > 1 && of.at_once * 20 < of.bytes)?;
        let proof = Proof { count: of.count, bytes: of.bytes, ..Proof::default() };
        return Some(Optimization::new(OptimizationKind::OptimizerInBackward, Enabled::Off, proof));
    }
    let life = run
        .lives
        .all
        .iter()
        .find(|life| life.begin >= pass.end && run.mark(life).has(Mark::OPTIMIZER));
    let (site, by) =
        life.map_or((None, None), |life| (run.site(life), run.marked_frame(life, Mark::OPTIMIZER)));
    let proof = Proof { site, by, count, ..Proof::default() };
    Some(Optimization::new(OptimizationKind::OptimizerInBackward, Enabled::On, proof))
}

/// Fewer runs of the optimizer within backward are those of several losses.
const MIN_RUNS: u32 = 3;
