//! What passes through the model tell: accumulation, gradients, evaluation, offloading, sharding.

use super::marks::Mark;
use super::{Enabled, Optimization, OptimizationKind, Proof, Run, traits};
use crate::category::Category;
use crate::recipes::facts::{Pass, logits};
use crate::recipes::lives::Life;
use crate::recipes::stacks::Kind;
use crate::step_phases::StepPhase;
use std::collections::{BTreeMap, BTreeSet};
use vramscope_snapshot::FrameId;

pub(super) fn find(run: &Run<'_>) -> Vec<Optimization> {
    let all = [accumulate(run), zero_grad(run), evaluation(run), offload(run), shard(run)];
    all.into_iter().flatten().collect()
}

/// Training passes of each whole step. The first and the last step may be cut.
pub(super) fn per_step(run: &Run<'_>) -> Option<(u32, u32)> {
    let mut steps: BTreeMap<i32, u32> = BTreeMap::new();
    for pass in run.training() {
        *steps.entry(pass.step).or_default() += 1;
    }
    let mut counts: Vec<u32> = steps.into_values().collect();
    let steps = counts.len() as u32;
    counts.sort_unstable();
    (steps > 1).then(|| (counts[counts.len() / 2], steps))
}

fn accumulate(run: &Run<'_>) -> Option<Optimization> {
    let (count, steps) = per_step(run)?;
    let site = |pass: &Pass| run.made_in(pass).find_map(|(_, life)| calls_model(run, life));
    // Passes of several models, or several losses, are no micro-batches.
    let caller = |pass: &Pass| Some(run.lives.stacks.place(site(pass)?));
    let first = run.training().next().and_then(caller);
    let state = if count > 1 { Enabled::On } else { Enabled::Off };
    if count > 1 && !run.training().all(|pass| caller(pass) == first) {
        return None;
    }
    let proof =
        Proof { site: run.training().next().and_then(site), count, of: steps, ..Proof::default() };
    Some(Optimization::new(OptimizationKind::Accumulate, state, proof))
}

/// The line of the program that calls the outermost module.
pub(super) fn calls_model(run: &Run<'_>, life: &Life) -> Option<FrameId> {
    let frames = run.lives.frames(life);
    let kind = |frame: FrameId| run.lives.stacks.kind(frame);
    let outermost = frames.iter().rposition(|&frame| kind(frame).has(Kind::MODULE_CALL))?;
    run.lives.stacks.own(&frames[outermost..]).next()
}

/// When the gradients of a step are freed, as shares of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Gradients {
    pub(super) bytes: u64,
    pub(super) count: u32,
    /// Before the last of them is born.
    pub(super) at_once: u64,
    /// They are alive in the next forward pass.
    pub(super) in_forward: u64,
    /// They are alive after the next backward pass.
    pub(super) kept: u64,
    /// Where the first of them is freed.
    pub(super) step: i32,
}

/// The gradients of a step before the last.
pub(super) fn gradients(run: &Run<'_>) -> Option<Gradients> {
    let trained: Vec<&Pass> = run.training().collect();
    let steps: Vec<i32> = {
        let mut steps: Vec<i32> = trained.iter().map(|pass| pass.step).collect();
        steps.dedup();
        steps
    };
    let mut found: Option<Gradients> = None;
    for pair in steps.windows(2) {
        let next = trained.iter().find(|pass| pass.step == pair[1])?;
        let next_backward = next.backward?;
        let of_step = |life: &&Life| {
            life.category == Category::Gradient
                && life.step == pair[0]
                && life.phase != StepPhase::Optimizer
        };
        let all: Vec<&Life> = run.lives.all.iter().filter(of_step).collect();
        let last = all.last().map_or(0.0, |life| life.begin);
        let middle = f64::midpoint(next.begin, next.end);
        let sum = |is: &dyn Fn(&Life) -> bool| -> u64 {
            all.iter().filter(|life| is(life)).map(|life| life.bytes).sum()
        };
        let of = Gradients {
            bytes: sum(&|_| true),
            count: all.len() as u32,
            at_once: sum(&|life| life.end < last),
            in_forward: sum(&|life| life.end > middle),
            kept: sum(&|life| life.end > next_backward.end),
            step: pair[0],
        };
        // Without zero_grad(set_to_none=True) only the first step makes gradients.
        if of.bytes > found.map_or(0, |found| found.bytes) {
            found = Some(of);
        }
    }
    found
}

fn zero_grad(run: &Run<'_>) -> Option<Optimization> {
    let of = gradients(run)?;
    if of.bytes == 0 {
        return None;
    }
    let state = match of.in_forward * 100 / of.bytes {
        0..=5 if of.at_once * 2 < of.bytes => Enabled::On,
        80.. => Enabled::Off,
        _ => return None,
    };
    // Twice as many as `of` says: they outlive the next backward pass, too.
    let kept = u32::from(of.kept * 100 >= of.bytes * 80);
    let proof = Proof { count: of.count, of: kept, bytes: of.bytes, ..Proof::default() };
    Some(Optimization::new(OptimizationKind::ZeroGradEarly, state, proof))
}

/// Fewer blocks are no evaluation of a model.
const MIN_BLOCKS: usize = 8;

/// Smaller passes tell nothing.
const MIN_EVALUATION: u64 = 1 << 20;

/// Bytes of an evaluation.
#[derive(Clone, Copy, Debug)]
struct Evaluated {
    made: u64,
    /// They outlive the next requests.
    kept: u64,
    /// And no backward pass frees them.
    unused: u64,
    /// The phase is one of evaluation.
    is_named: bool,
    site: Option<FrameId>,
}

fn evaluation(run: &Run<'_>) -> Option<Optimization> {
    let trained = run.typical().filter(|pass| pass.backward.is_some())?;
    let sites = traits::made(run, trained);
    let steps = run.lives.steps().len();
    let mut with: BTreeSet<i32> = BTreeSet::new();
    let mut best: Option<Evaluated> = None;
    for pass in run.facts.passes.iter().filter(|pass| pass.backward.is_none()) {
        let is_cut = run.lives.failure.is_some_and(|failure| failure.at <= pass.end + 1.0);
        let of_data = |life: &Life| {
            matches!(life.category, Category::Activation | Category::Temporary | Category::Unknown)
        };
        let blocks: Vec<(usize, &Life)> =
            run.made_in(pass).filter(|(_, life)| of_data(life)).collect();
        // Under checkpointing a graph keeps as little as no graph.
        let is_checked = blocks.iter().any(|(_, life)| run.mark(life).has(Mark::CHECKPOINT));
        if blocks.len() < MIN_BLOCKS || is_cut || is_checked {
            continue;
        }
        // It runs the model that is trained.
        let all: u64 = blocks.iter().map(|(_, life)| life.bytes).sum();
        let like = blocks.iter().filter(|(_, life)| sites.contains_key(&traits::site(run, life)));
        let like: u64 = like.map(|(_, life)| life.bytes).sum();
        if like * 2 < all || all < MIN_EVALUATION {
            continue;
        }
        with.insert(pass.step);
        let range = run.lives.born(pass.begin, pass.end);
        let result = logits(&run.lives, &run.facts, range, pass).map(|logits| logits.block);
        let (mut made, mut kept, mut unused) = (0, 0, 0);
        for (at, (index, life)) in blocks.iter().enumerate().take(blocks.len() - 3) {
            let later = blocks[(at + 6).min(blocks.len() - 1)].1.begin;
            made += life.bytes;
            if Some(*index) != result && life.end > later + 1.0 {
                kept += life.bytes;
                let is_used = life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward);
                unused += if is_used { 0 } else { life.bytes };
            }
        }
        if best.is_none_or(|best| made > best.made) {
            let is_named = run.lives.at(pass.begin + 1.0).0 == StepPhase::Evaluation;
            let site = calls_model(run, blocks[0].1).or_else(|| run.site(blocks[0].1));
            best = Some(Evaluated { made, kept, unused, is_named, site });
        }
    }
    let Evaluated { made, kept, unused, is_named, site } = best?;
    // A pass in each step may be a part of the training.
    let is_rare = is_named || with.len() < steps;
    let (state, bytes) = if kept * 100 <= made * 15 {
        (Enabled::On, made)
    } else if unused * 100 >= made * 45 && is_rare {
        (Enabled::Off, unused)
    } else {
        return None;
    };
    let proof = Proof { site, bytes, ..Proof::default() };
    Some(Optimization::new(OptimizationKind::EvaluationNoGrad, state, proof))
}

/// Blocks with a mark in the step of a typical pass: how many, their bytes and the largest one.
fn marked<'r>(run: &'r Run<'_>, mark: Mark) -> Option<(u32, u64, &'r Life)> {
    let step = run.typical()?.step;
    let of = |life: &&Life| life.step == step && run.mark(life).has(mark);
    let all = || run.lives.all.iter().filter(of);
    let largest = all().max_by_key(|life| life.bytes)?;
    Some((all().count() as u32, all().map(|life| life.bytes).sum(), largest))
}

fn offload(run: &Run<'_>) -> Option<Optimization> {
    let (count, bytes, largest) = marked(run, Mark::OFFLOAD)?;
    let by = run.marked_frame(largest, Mark::OFFLOAD);
    let proof = Proof { by, count, bytes, ..Proof::default() };
    Some(Optimization::new(OptimizationKind::OffloadActivations, Enabled::On, proof))
}

fn shard(run: &Run<'_>) -> Option<Optimization> {
    let (count, _, largest) = marked(run, Mark::GATHER)?;
    let by = run.marked_frame(largest, Mark::GATHER);
    let proof = Proof { by, count, bytes: largest.bytes, ..Proof::default() };
    Some(Optimization::new(OptimizationKind::Shard, Enabled::On, proof))
}
