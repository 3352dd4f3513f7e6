//! Checkpointing of many blocks as one piece: backward computes all of them again at once.

use super::Evidence;
use super::marks::{Mark, Marks};
use super::passes::Pass;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::is_python;

/// The fewest blocks of the model in a piece that could be pieces of their own.
const MIN_BLOCKS: u32 = 3;

/// The smallest share of what a backward pass computes again that one piece holds, in percent.
const MIN_PERCENT: u64 = 80;

/// A piece that is computed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// What it keeps for backward, by birth: blocks, and which repetition of the model's blocks
    /// makes each, from 0.
    pub(crate) kept: Vec<(u32, u32)>,
    /// Bytes of `kept`.
    pub(crate) bytes: u64,
    /// The share of all that this backward pass computes again, in percent.
    pub(crate) percent: u64,
    /// How often the model's blocks repeat in it.
    pub(crate) blocks: u32,
    /// The line that calls the checkpointing function.
    pub(crate) caller: Option<FrameId>,
}

/// A request: the frames inside of the checkpointing function, and bytes.
type Request = (u64, u64);

/// The piece of a pass that holds nearly all that its backward pass computes again, if it has
/// several blocks of the model.
///
/// A piece ends where backward allocates for itself. What the piece makes is kept if it outlives
/// the piece. Forward makes the same requests without keeping them, so they show whether a failed
/// pass went through the whole piece.
pub(crate) fn one_piece(cx: Evidence<'_>, marks: &Marks, pass: &Pass) -> Option<Piece> {
    let backward = pass.backward?;
    let made = |begin: f64, end: f64| {
        let from = cx.trace.blocks.partition_point(|block| f64::from(block.enters) - 1.0 < begin);
        let born = (from as u32..).zip(&cx.trace.blocks[from..]);
        born.take_while(move |(_, block)| f64::from(block.enters) - 1.0 < end)
    };
    let mut runs: Vec<Vec<u32>> = Vec::new();
    let mut is_inside = false;
    for (index, block) in made(backward.begin, backward.end) {
        let mark = marks.of(block.stack);
        let is_again = mark.has(Mark::RECOMPUTE) && inside(cx, marks, block.stack).is_some();
        if is_again && !is_inside {
            runs.push(Vec::new());
        }
        if let Some(run) = runs.last_mut().filter(|_| is_again) {
            run.push(index);
        }
        is_inside = is_again;
    }
    let block = |index: u32| &cx.trace.blocks[index as usize];
    let kept = |run: &[u32]| -> Vec<u32> {
        let last = run.last().map_or(0, |&last| block(last).enters);
        run.iter().copied().filter(|&index| block(index).leaves > last + 1).collect()
    };
    let bytes = |of: &[u32]| -> u64 { of.iter().map(|&index| block(index).bytes.0).sum() };
    let largest = runs.iter().max_by_key(|run| bytes(&kept(run)))?;
    let all: u64 = runs.iter().map(|run| bytes(&kept(run))).sum();
    let of_piece = kept(largest);
    let percent = bytes(&of_piece) * 100 / all.max(1);
    if percent < MIN_PERCENT {
        return None;
    }
    let request = |index: u32| -> Option<Request> {
        Some((inside(cx, marks, block(index).stack)?, block(index).bytes.0))
    };
    let mut again: FxHashMap<Request, u32> = FxHashMap::default();
    for request in largest.iter().filter_map(|&index| request(index)) {
        *again.entry(request).or_default() += 1;
    }
    let (mut before, mut caller): (FxHashMap<Request, u32>, _) = (FxHashMap::default(), None);
    for (_, block) in made(pass.begin, pass.end) {
        let mark = marks.of(block.stack);
        if !mark.has(Mark::CHECKPOINT) || mark.has(Mark::RECOMPUTE) {
            continue;
        }
        if let Some(inside) = inside(cx, marks, block.stack) {
            *before.entry((inside, block.bytes.0)).or_default() += 1;
            caller = caller.or_else(|| calls_checkpoint(cx, marks, block.stack));
        }
    }
    let mut seen: BTreeMap<Request, u32> = BTreeMap::new();
    let (mut counts, mut whole, mut made_again) = (BTreeMap::<u32, u64>::new(), 0, 0);
    let mut numbered = Vec::new();
    for &index in &of_piece {
        let Some(request) = request(index) else { continue };
        let at = seen.entry(request).or_default();
        numbered.push((index, *at));
        *at += 1;
    }
    for (request, &count) in &seen {
        *counts.entry(count).or_default() += request.1 * u64::from(count);
        made_again += request.1 * u64::from(again.get(request).copied().unwrap_or(0));
        whole += request.1 * u64::from(before.get(request).copied().unwrap_or(0));
    }
    let blocks = counts.into_iter().max_by_key(|&(count, bytes)| (bytes, count))?.0;
    let is_whole = made_again * 100 >= whole * MIN_PERCENT;
    let piece = Piece { kept: numbered, bytes: bytes(&of_piece), percent, blocks, caller };
    (blocks >= MIN_BLOCKS && is_whole).then_some(piece)
}

/// A hash of the Python frames inside of the checkpointing function. `None` without one, and where
/// its piece runs backward: that is no computation of forward.
fn inside(cx: Evidence<'_>, marks: &Marks, stack: StackId) -> Option<u64> {
    let frames = cx.snapshot.stacks.frames(stack);
    let at = frames.iter().position(|&frame| marks.of_frame(frame).has(Mark::CHECKPOINT))?;
    let mut hasher = FxHasher::default();
    let mut count = 0;
    for &id in &frames[..at] {
        let frame = cx.snapshot.frame(id);
        let file = cx.snapshot.text(frame.file);
        if file.replace('\\', "/").contains("/torch/autograd/") {
            return None;
        }
        if is_python(&file) {
            count += 1;
            (frame.file, frame.line, frame.name).hash(&mut hasher);
        }
    }
    (count > 0).then(|| hasher.finish())
}

/// The line outside of PyTorch that calls the checkpointing function.
fn calls_checkpoint(cx: Evidence<'_>, marks: &Marks, stack: StackId) -> Option<FrameId> {
    let frames = cx.snapshot.stacks.frames(stack);
    let at = frames.iter().rposition(|&frame| marks.of_frame(frame).has(Mark::CHECKPOINT))?;
    let is_outside = |&frame: &FrameId| !marks.of_frame(frame).has(Mark::TORCH);
    let is_code = |&frame: &FrameId| is_python(&cx.snapshot.text(cx.snapshot.frame(frame).file));
    frames[at + 1..].iter().copied().filter(is_code).find(is_outside)
}
