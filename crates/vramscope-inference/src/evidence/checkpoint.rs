//! Checkpointing, and losses in parts: what runs inside of a checkpointing function.

use super::Run;
use super::marks::Mark;
use super::one_piece::one_piece;
use super::proof::{Enabled, Proof};
use super::stacks::Place;
use crate::recipes::facts::{Pass, logits};
use crate::recipes::lives::Life;
use rustc_hash::{FxHashSet, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use vramscope_snapshot::{FrameId, StackId, StrId};

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

/// The functions of a typical pass that run through a checkpointing function: the blocks of the
/// model, and losses in parts.
fn found(run: Run<'_>, pass: &Pass) -> (Vec<Calls>, Vec<Calls>) {
    let mut calls = calls(run, pass);
    for of in &mut calls {
        count(run, pass, of);
    }
    calls.into_iter().partition(|calls| calls.has_loss && calls.count > 1)
}

/// The functions that run through a checkpointing function.
fn calls(run: Run<'_>, pass: &Pass) -> Vec<Calls> {
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
        all[of].has_loss |= run.lives.stacks.any(&frames[..at], Mark::CROSS_ENTROPY);
        all[of].largest = all[of].largest.max(life.bytes);
    }
    all
}

/// The innermost frame of a checkpointing function.
fn checkpoint_at(run: Run<'_>, life: &Life) -> Option<usize> {
    if !run.lives.mark(life).has(Mark::CHECKPOINT) {
        return None;
    }
    let frames = run.lives.frames(life);
    frames.iter().position(|&frame| run.lives.stacks.mark(frame).has(Mark::CHECKPOINT))
}

/// The outermost of frames that is no frame of PyTorch; else the outermost of a module of it.
fn body(run: Run<'_>, frames: &[FrameId]) -> Option<usize> {
    let kind = |frame: FrameId| run.lives.stacks.mark(frame);
    frames.iter().rposition(|&frame| !kind(frame).has(Mark::TORCH)).or_else(|| {
        let module = frames.iter().rposition(|&frame| kind(frame).has(Mark::MODULE_CALL))?;
        frames[..module].iter().rposition(|&frame| !kind(frame).has(Mark::MODULE_CALL))
    })
}

/// Counts the calls of a function with and without checkpointing.
fn count(run: Run<'_>, pass: &Pass, of: &mut Calls) {
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

/// How often a function ran that made these blocks: how often most of its stacks come again. A
/// stack can come several times in one run. The first one begins a run, where its count divides
/// that of the others.
fn times(stacks: &[u64]) -> u32 {
    let mut starts: BTreeMap<u64, u32> = BTreeMap::new();
    let mut last = None;
    for &stack in stacks {
        if last != Some(stack) {
            *starts.entry(stack).or_default() += 1;
        }
        last = Some(stack);
    }
    let first = stacks.first().map_or(0, |first| starts[first]);
    let mut with: BTreeMap<u32, u32> = BTreeMap::new();
    for count in starts.into_values() {
        *with.entry(count).or_default() += 1;
    }
    let most = with.into_iter().max_by_key(|&(count, stacks)| (stacks, count));
    let most = most.map_or(0, |most| most.0);
    if first > 1 && most % first == 0 { first } else { most }
}

/// Whether the blocks of the model are computed again in backward.
pub(crate) fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let pass = run.typical()?;
    let (losses, calls) = found(run, pass);
    let recomputed = run.lives.all.iter().filter(|life| run.lives.mark(life).has(Mark::RECOMPUTE));
    let (mut blocks, mut bytes, mut by) = (0, 0, None);
    for life in recomputed.filter(|life| life.step == pass.step) {
        blocks += 1;
        bytes += life.bytes;
        by = by.or_else(|| run.marked_frame(life, Mark::RECOMPUTE));
    }
    let most = calls.iter().max_by_key(|calls| (calls.count, calls.largest));
    let Some(most) = most else {
        let is_off =
            (blocks == 0 || !losses.is_empty()) && pass.backward.is_some() && run.is_eager(pass);
        let count = run.training().count() as u32;
        return is_off.then(|| (Enabled::Off, Proof { count, ..Proof::default() }));
    };
    let piece = one_piece(run.cx, &run.lives.stacks.marks, pass);
    let state = match most.count {
        // It is called, and nothing is computed again.
        _ if blocks == 0 && pass.backward.is_some() => Enabled::Off,
        count if count < most.of || piece.is_some() => Enabled::Partly,
        _ => Enabled::On,
    };
    let proof = Proof {
        site: most.caller,
        by: by.or(Some(most.by)),
        other: most.other.filter(|_| most.count < most.of),
        count: most.count,
        of: most.of,
        bytes,
        at_once: piece.map_or(0, |piece| piece.blocks),
    };
    Some((state, proof))
}

/// Whether logits and loss are computed in parts.
pub(crate) fn is_loss_in_parts(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let pass = run.typical()?;
    let (losses, _) = found(run, pass);
    if let Some(most) = losses.iter().max_by_key(|calls| calls.count) {
        let proof = Proof {
            site: most.caller,
            by: Some(most.by),
            count: most.count,
            of: most.of,
            bytes: most.largest,
            ..Proof::default()
        };
        return Some((Enabled::On, proof));
    }
    let fused = run.made_in(pass).find(|(_, life)| run.lives.mark(life).has(Mark::FUSED_LOSS));
    if let Some((_, life)) = fused {
        let by = run.marked_frame(life, Mark::FUSED_LOSS);
        let proof = Proof { site: run.site(life), by, count: 1, of: 1, ..Proof::default() };
        return Some((Enabled::On, proof));
    }
    pass.backward?;
    let blocks = run.lives.born(pass.begin, pass.end);
    let logits = logits(run.lives, run.facts, blocks, pass)?;
    let first = &run.lives.all[logits.block];
    // The stacks of the loss, by time. A stack that comes again after another is a further part.
    let is_of_loss = |life: &Life| run.lives.is_made_by(life, Mark::CROSS_ENTROPY, usize::MAX);
    let stack = |life: &Life| life.stack.filter(|_| is_of_loss(life));
    let mut stacks: Vec<Option<StackId>> = run.made_in(pass).map(|(_, life)| stack(life)).collect();
    stacks.dedup();
    let mut starts: BTreeMap<StackId, u32> = BTreeMap::new();
    for stack in stacks.into_iter().flatten() {
        *starts.entry(stack).or_default() += 1;
    }
    let count = starts.into_values().max()?;
    let proof =
        Proof { site: run.site(first), count, of: count, bytes: first.bytes, ..Proof::default() };
    // Parts that are computed one after the other, and all of them wait for backward.
    Some((if count > 1 { Enabled::Partly } else { Enabled::Off }, proof))
}
