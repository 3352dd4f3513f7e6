//! A run to search: its recording, its blocks and its facts.

use super::marks::Mark;
use crate::evidence::Evidence;
use crate::recipes::facts::{Facts, Pass};
use crate::recipes::lives::{Life, Lives};
use vramscope_snapshot::FrameId;

/// A run to search.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) cx: Evidence<'a>,
    pub(crate) lives: &'a Lives,
    pub(crate) facts: &'a Facts,
}

impl<'a> Run<'a> {
    /// The passes with a backward pass.
    pub(crate) fn training(self) -> impl Iterator<Item = &'a Pass> {
        self.facts.training()
    }

    /// A typical pass with a backward pass; without one the last pass of a run that failed.
    pub(crate) fn typical(self) -> Option<&'a Pass> {
        let last = self.facts.passes.last().filter(|_| self.lives.failure.is_some());
        self.facts.typical().or(last)
    }

    /// The blocks that a pass makes in forward, with a call stack.
    pub(crate) fn made_in(self, pass: &Pass) -> impl Iterator<Item = (usize, &'a Life)> {
        let range = self.lives.born(pass.begin, pass.end);
        let all = range.map(move |index| (index, &self.lives.all[index]));
        all.filter(move |(_, life)| !self.lives.frames(life).is_empty())
    }

    /// The innermost frame of a block with a mark.
    pub(crate) fn marked_frame(self, life: &Life, mark: Mark) -> Option<FrameId> {
        let frames = self.cx.snapshot.stacks.frames(life.stack?);
        frames.iter().copied().find(|&frame| self.lives.stacks.mark(frame).has(mark))
    }

    /// The outermost frame of a block with a mark.
    pub(crate) fn outermost(self, life: &Life, mark: Mark) -> Option<FrameId> {
        let frames = self.cx.snapshot.stacks.frames(life.stack?);
        frames.iter().rev().copied().find(|&frame| self.lives.stacks.mark(frame).has(mark))
    }

    /// The innermost frame of a block outside of PyTorch: of the program, else of a package.
    pub(crate) fn site(self, life: &Life) -> Option<FrameId> {
        let frames = self.lives.frames(life);
        let own = self.lives.stacks.own(frames).next();
        own.or_else(|| self.outside_of_torch(frames))
    }

    /// The line of the program that calls the outermost module.
    pub(crate) fn calls_model(self, life: &Life) -> Option<FrameId> {
        let (frames, stacks) = (self.lives.frames(life), &self.lives.stacks);
        let is_call = |&frame: &FrameId| stacks.mark(frame).has(Mark::MODULE_CALL);
        stacks.own(&frames[frames.iter().rposition(is_call)?..]).next()
    }

    /// The innermost of frames that is none of PyTorch.
    pub(crate) fn outside_of_torch(self, frames: &[FrameId]) -> Option<FrameId> {
        frames.iter().copied().find(|&frame| !self.lives.stacks.mark(frame).has(Mark::TORCH))
    }

    /// Whether modules ran without a compiler, and their frames were recorded.
    pub(crate) fn is_eager(self, pass: &Pass) -> bool {
        let (mut eager, mut compiled, mut all) = (0_u64, 0_u64, 0_u64);
        for life in &self.lives.all[self.lives.born(pass.begin, pass.end)] {
            let has_module = self.lives.stacks.any(self.lives.frames(life), Mark::MODULE_CALL);
            let is_compiled = self.lives.mark(life).has(Mark::COMPILED);
            all += life.bytes;
            compiled += if is_compiled { life.bytes } else { 0 };
            eager += if has_module && !is_compiled { life.bytes } else { 0 };
        }
        all > 0 && eager * 100 >= all * MIN_EAGER && compiled * 100 <= all * MAX_COMPILED
    }

    /// Blocks with a mark in the step of a typical pass: how many, their bytes and the largest one.
    pub(crate) fn marked(self, mark: Mark) -> Option<(u32, u64, &'a Life)> {
        let step = self.typical()?.step;
        let of = |life: &&Life| life.step == step && self.lives.mark(life).has(mark);
        let all = || self.lives.all.iter().filter(of);
        let largest = all().max_by_key(|life| life.bytes)?;
        Some((all().count() as u32, all().map(|life| life.bytes).sum(), largest))
    }

    /// Bytes of a parameter's element, where sizes tell. Those of shards do not.
    pub(crate) fn element(self) -> Option<u64> {
        let is_sharded =
            || self.lives.all.iter().any(|life| self.lives.mark(life).has(Mark::GATHER));
        (!self.facts.widths.is_empty() && !is_sharded()).then_some(self.facts.element)
    }
}

/// A pass is eager if at least this share of its bytes is made by modules, in percent. Functions
/// make the rest: attention, losses.
const MIN_EAGER: u64 = 30;

/// And at most this share by code that a compiler made.
const MAX_COMPILED: u64 = 10;
