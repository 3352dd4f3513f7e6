//! Precision: autocast and its cache, parameters in 16 bits, logits in 32 bits.

use super::marks::Mark;
use super::{Enabled, Optimization, OptimizationKind, Proof, Run};
use crate::recipes::facts::{Pass, logits};
use crate::recipes::lives::Life;
use crate::recipes::stacks::Kind;
use crate::step_phases::StepPhase;
use std::collections::BTreeMap;

pub(super) fn find(run: &Run<'_>) -> Vec<Optimization> {
    let Some(pass) = run.typical() else { return Vec::new() };
    let mut all = autocast(run, pass);
    all.extend(parameters(run));
    all.extend(upcast(run, pass));
    all
}

/// Bytes of a parameter's element, where sizes tell. Those of shards do not.
fn element(run: &Run<'_>) -> Option<u64> {
    let widths = run.dims.and_then(|dims| dims.widths.first()).filter(|_| !run.is_sharded());
    widths.map(|_| run.facts.element)
}

/// The casts of weights in a pass: a linear layer's or a convolution's first block with half the
/// size of a parameter, before its result.
fn casts<'r>(run: &'r Run<'_>, pass: &Pass) -> Vec<&'r Life> {
    let all: Vec<&Life> = run.made_in(pass).map(|(_, life)| life).collect();
    let is_convolution = |life: &Life| {
        let frames = run.lives.frames(life);
        frames.iter().take(2).any(|&frame| run.lives.stacks.kind(frame).has(Kind::CONVOLUTION))
    };
    let next = all.iter().skip(1).map(|life| life.stack).chain([None]);
    let is_cast = |life: &Life, next| {
        let is_half = run.facts.is_half_of_parameter(life.bytes);
        life.is_weight_copy || (is_half && life.stack == next && is_convolution(life))
    };
    all.iter()
        .zip(next)
        .filter(|(life, next)| is_cast(life, *next))
        .map(|(life, _)| *life)
        .collect()
}

/// Casts have half the size of weights. Autocast is on if they have at least this share of the
/// parameters' bytes, in percent: blocks of data have the size of a cast by chance.
const MIN_CAST: u64 = 15;

fn autocast(run: &Run<'_>, pass: &Pass) -> Vec<Optimization> {
    let casts = casts(run, pass);
    let named = run.made_in(pass).find(|(_, life)| run.mark(life).has(Mark::AUTOCAST));
    let by = named.and_then(|(_, life)| run.marked_frame(life, Mark::AUTOCAST));
    let bytes: u64 = casts.iter().map(|life| life.bytes).sum();
    let count = casts.len() as u32;
    let of = &run.facts.parameters;
    let weights: u64 = of.iter().map(|(bytes, count)| bytes * u64::from(*count)).sum();
    // More blocks of one size than weights are data.
    let mut sizes: BTreeMap<u64, u32> = BTreeMap::new();
    for life in &casts {
        *sizes.entry(life.bytes).or_default() += 1;
    }
    let at_most = |bytes: u64| bytes.checked_mul(2).and_then(|twice| of.get(&twice)).copied();
    let certain =
        sizes.iter().map(|(&bytes, &n)| bytes * u64::from(n.min(at_most(bytes).unwrap_or(0))));
    let is_most = certain.sum::<u64>() * 100 >= weights * MIN_CAST;
    let is_on = run.facts.has_autocast && count > 0 && (is_most || by.is_some());
    let site = casts.first().and_then(|life| run.site(life));
    let proof = Proof { site, by, count, bytes, ..Proof::default() };
    if !is_on {
        let is_off = by.is_none()
            && !run.facts.has_autocast
            && pass.backward.is_some()
            && element(run) == Some(4)
            && run.is_eager(pass);
        let proof = Proof { count: run.training().count() as u32, ..Proof::default() };
        let off = Optimization::new(OptimizationKind::Autocast, Enabled::Off, proof);
        return if is_off { vec![off] } else { Vec::new() };
    }
    let mut all = vec![Optimization::new(OptimizationKind::Autocast, Enabled::On, proof)];
    // Casts that backward does not need show whether they are kept to autocast's end.
    let in_backward =
        |life: &&&Life| life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward);
    let free: Vec<&&Life> = casts.iter().filter(|life| !in_backward(life)).collect();
    let short = free.iter().filter(|life| life.end < life.begin + SHORT).count();
    if free.len() >= MIN_CASTS {
        let bytes = free.iter().map(|life| life.bytes).sum();
        let proof = Proof { site, count: free.len() as u32, bytes, ..Proof::default() };
        let state = if short * 10 >= free.len() * 8 {
            Some(Enabled::On)
        } else if short * 10 <= free.len() * 2 {
            Some(Enabled::Off)
        } else {
            None
        };
        let of = |state| Optimization::new(OptimizationKind::AutocastCacheOff, state, proof);
        all.extend(state.map(of));
    }
    all
}

/// A cast that is not kept dies within this many events.
const SHORT: f64 = 12.0;

/// Fewer casts without use in backward tell nothing.
const MIN_CASTS: usize = 2;

fn parameters(run: &Run<'_>) -> Option<Optimization> {
    let is_low = element(run)? == 2;
    // Autocast casts parameters in 32 bits. Without casts, sizes of 4 bytes an element are unsure.
    let is_cast = run
        .typical()
        .is_some_and(|pass| autocast(run, pass).iter().any(|of| of.state == Enabled::On));
    if is_low == is_cast {
        return None;
    }
    let count = run.facts.parameters.values().sum();
    let bytes = run.facts.parameters.iter().map(|(bytes, n)| bytes * u64::from(*n)).sum();
    let proof = Proof { count, bytes, ..Proof::default() };
    let state = if is_low { Enabled::On } else { Enabled::Off };
    Some(Optimization::new(OptimizationKind::ParametersBf16, state, proof))
}

/// A copy of 16-bit logits in 32 bits, which no function of the loss makes.
fn upcast(run: &Run<'_>, pass: &Pass) -> Option<Optimization> {
    pass.backward?;
    let blocks = run.lives.born(pass.begin, pass.end);
    let logits = logits(&run.lives, &run.facts, blocks, pass)?;
    let first = &run.lives.all[logits.block];
    let is_of_loss = |life: &Life| {
        let frames = run.lives.frames(life);
        frames.iter().any(|&frame| run.lives.stacks.kind(frame).has(Kind::CROSS_ENTROPY))
    };
    let copy = run
        .made_in(pass)
        .map(|(_, life)| life)
        .filter(|life| life.begin > first.begin)
        .find(|life| Some(life.bytes) == first.bytes.checked_mul(2));
    let optimization =
        |state, proof| Some(Optimization::new(OptimizationKind::UpcastOff, state, proof));
    if let Some(copy) = copy {
        // A loss under autocast copies logits itself.
        if is_of_loss(copy) {
            return None;
        }
        let proof = Proof { site: run.site(copy), count: 1, bytes: copy.bytes, ..Proof::default() };
        return optimization(Enabled::Off, proof);
    }
    let is_low =
        first.bytes == 2 * logits.elements && (run.facts.has_autocast || element(run) == Some(2));
    let proof = Proof { site: run.site(first), count: 1, bytes: first.bytes, ..Proof::default() };
    if is_low { optimization(Enabled::On, proof) } else { None }
}
