//! Checkpointing, and losses in parts: what runs inside of a checkpointing function.

use super::marks::Mark;
use super::{Enabled, Optimization, OptimizationKind, Proof, Run};
use crate::recipes::facts::{Pass, logits};
use crate::recipes::lives::Life;
use crate::recipes::stacks::{Kind, Place};
use rustc_hash::{FxHashSet, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use vramscope_snapshot::{FrameId, StrId};

/// Calls of one function through a checkpointing function, in one pass.
#[derive(Debug)]
struct Calls {
    /// The function and its file.
    function: (u32, StrId),
    /// Its lines.
    places: FxHashSet<Place>,
    /// The line that calls the checkpointing function.
    caller: Option<FrameId>,
    /// The checkpointing function.
    by: FrameId,
    has_loss: bool,
    /// The largest block that a call makes.
    largest: u64,
    /// How often the function ran so, and how often at all.
    count: u32,
    of: u32,
    /// The line that calls it without checkpointing.
    other: Option<FrameId>,
}

pub(super) fn find(run: &Run<'_>) -> Vec<Optimization> {
    let Some(pass) = run.typical() else { return Vec::new() };
    let mut calls = calls(run, pass);
    for of in &mut calls {
        count(run, pass, of);
    }
    let (losses, blocks): (Vec<_>, Vec<_>) =
        calls.iter().partition(|calls| calls.has_loss && calls.count > 1);
    let checkpoint = checkpoint(run, pass, &blocks, !losses.is_empty());
    checkpoint.into_iter().chain(chunked_loss(run, pass, &losses)).collect()
}

/// The functions that run through a checkpointing function.
fn calls(run: &Run<'_>, pass: &Pass) -> Vec<Calls> {
    let mut all: Vec<Calls> = Vec::new();
    for (_, life) in run.made_in(pass) {
        let Some(at) = checkpoint_at(run, life) else { continue };
        let frames = run.lives.frames(life);
        let Some(body) = body(run, &frames[..at]) else { continue };
        let frame = run.cx.snapshot.frame(frames[body]);
        let function = (run.lives.stacks.function(frames[body]), frame.file);
        let of = all.iter().position(|calls| calls.function == function);
        let of = of.unwrap_or_else(|| {
            all.push(Calls {
                function,
                places: FxHashSet::default(),
                caller: run.outside_of_torch(&frames[at + 1..]),
                by: frames[at],
                has_loss: false,
                largest: 0,
                count: 0,
                of: 0,
                other: None,
            });
            all.len() - 1
        });
        all[of].places.insert(run.lives.stacks.place(frames[body]));
        all[of].has_loss |= has(run, &frames[..at], Kind::CROSS_ENTROPY);
        all[of].largest = all[of].largest.max(life.bytes);
    }
    all
}

/// The innermost frame of a checkpointing function.
fn checkpoint_at(run: &Run<'_>, life: &Life) -> Option<usize> {
    if !run.mark(life).has(Mark::CHECKPOINT) {
        return None;
    }
    let frames = run.lives.frames(life);
    frames.iter().position(|&frame| run.marks.of_frame(frame).has(Mark::CHECKPOINT))
}

/// The outermost of frames that is no frame of PyTorch; else the outermost of a module of it.
fn body(run: &Run<'_>, frames: &[FrameId]) -> Option<usize> {
    let kind = |frame: FrameId| run.lives.stacks.kind(frame);
    frames.iter().rposition(|&frame| !kind(frame).has(Kind::TORCH)).or_else(|| {
        let module = frames.iter().rposition(|&frame| kind(frame).has(Kind::MODULE_CALL))?;
        frames[..module].iter().rposition(|&frame| !kind(frame).has(Kind::MODULE_CALL))
    })
}

fn has(run: &Run<'_>, frames: &[FrameId], kind: Kind) -> bool {
    frames.iter().any(|&frame| run.lives.stacks.kind(frame).has(kind))
}

/// Counts the calls of a function with and without checkpointing.
fn count(run: &Run<'_>, pass: &Pass, of: &mut Calls) {
    let (mut checked, mut all) = (Vec::new(), Vec::new());
    for (_, life) in run.made_in(pass) {
        let frames = run.lives.frames(life);
        let inner = checkpoint_at(run, life);
        let within = inner.map_or(frames, |at| &frames[..at]);
        let is_of = |&frame: &FrameId| of.places.contains(&run.lives.stacks.place(frame));
        let Some(body) = within.iter().rposition(is_of) else { continue };
        let mut hasher = FxHasher::default();
        for &frame in &frames[..=body] {
            run.lives.stacks.place(frame).hash(&mut hasher);
        }
        all.push(hasher.finish());
        if inner.is_some() {
            checked.push(hasher.finish());
        } else if of.other.is_none() {
            of.other = run.outside_of_torch(&frames[body + 1..]);
        }
    }
    of.count = times(&checked);
    of.of = times(&all).max(of.count);
}

/// How often a function ran that made these blocks: how often most of its stacks come again.
pub(super) fn times(stacks: &[u64]) -> u32 {
    let mut starts: BTreeMap<u64, u32> = BTreeMap::new();
    let mut last = None;
    for &stack in stacks {
        if last != Some(stack) {
            *starts.entry(stack).or_default() += 1;
        }
        last = Some(stack);
    }
    let mut with: BTreeMap<u32, u32> = BTreeMap::new();
    for count in starts.into_values() {
        *with.entry(count).or_default() += 1;
    }
    with.into_iter().max_by_key(|&(count, stacks)| (stacks, count)).map_or(0, |most| most.0)
}

fn checkpoint(
    run: &Run<'_>,
    pass: &Pass,
    calls: &[&Calls],
    has_losses: bool,
) -> Option<Optimization> {
    let recomputed = run.lives.all.iter().filter(|life| run.mark(life).has(Mark::RECOMPUTE));
    let (mut blocks, mut bytes, mut by) = (0, 0, None);
    for life in recomputed.filter(|life| life.step == pass.step) {
        blocks += 1;
        bytes += life.bytes;
        by = by.or_else(|| run.marked_frame(life, Mark::RECOMPUTE));
    }
    let most = calls.iter().max_by_key(|calls| (calls.count, calls.largest));
    let Some(most) = most else {
        let is_off = (blocks == 0 || has_losses) && pass.backward.is_some() && run.is_eager(pass);
        let passes = run.training().count() as u32;
        let proof = Proof { count: passes, ..Proof::default() };
        return is_off
            .then(|| Optimization::new(OptimizationKind::Checkpoint, Enabled::Off, proof));
    };
    let state = match most.count {
        // It is called, and nothing is computed again.
        _ if blocks == 0 && pass.backward.is_some() => Enabled::Off,
        count if count < most.of => Enabled::Partly,
        _ => Enabled::On,
    };
    let proof = Proof {
        site: most.caller,
        by: by.or(Some(most.by)),
        other: most.other.filter(|_| most.count < most.of),
        count: most.count,
        of: most.of,
        bytes,
    };
    Some(Optimization::new(OptimizationKind::Checkpoint, state, proof))
}

fn chunked_loss(run: &Run<'_>, pass: &Pass, losses: &[&Calls]) -> Option<Optimization> {
    let optimization =
        |state, proof| Some(Optimization::new(OptimizationKind::ChunkedLoss, state, proof));
    if let Some(most) = losses.iter().max_by_key(|calls| calls.count) {
        let proof = Proof {
            site: most.caller,
            by: Some(most.by),
            count: most.count,
            of: most.of,
            bytes: most.largest,
            other: None,
        };
        return optimization(Enabled::On, proof);
    }
    let fused = run.made_in(pass).find(|(_, life)| run.mark(life).has(Mark::FUSED_LOSS));
    if let Some((_, life)) = fused {
        let by = run.marked_frame(life, Mark::FUSED_LOSS);
        let proof = Proof { site: run.site(life), by, count: 1, of: 1, ..Proof::default() };
        return optimization(Enabled::On, proof);
    }
    pass.backward?;
    let blocks = run.lives.born(pass.begin, pass.end);
    let logits = logits(&run.lives, &run.facts, blocks, pass)?;
    let first = &run.lives.all[logits.block];
    let losses: Vec<u64> = run
        .made_in(pass)
        .map(|(_, life)| match life.stack {
            Some(stack) if has(run, run.lives.frames(life), Kind::CROSS_ENTROPY) => {
                u64::from(stack.0) + 1
            }
            _ => 0,
        })
        .collect();
    let is_loss = |stack: &&u64| **stack != 0;
    let mut stacks: Vec<u64> = losses.iter().filter(is_loss).copied().collect();
    stacks.sort_unstable();
    stacks.dedup();
    let starts = |stack: u64| {
        let pairs = losses.windows(2).filter(|pair| pair[1] == stack && pair[0] != stack);
        pairs.count() + usize::from(losses.first() == Some(&stack))
    };
    let count = stacks.iter().map(|&stack| starts(stack)).max().unwrap_or(0) as u32;
    let proof =
        Proof { site: run.site(first), count, of: count, bytes: first.bytes, ..Proof::default() };
    match count {
        0 => None,
        1 => optimization(Enabled::Off, proof),
        // The parts are computed one after the other, and all of them wait for backward.
        _ => optimization(Enabled::Partly, proof),
    }
}
