//! Where a recipe is an edit of the program: the line that changes.

use super::change::{Change, Line};
use crate::category::Category;
use crate::evidence::Evidence;
use crate::evidence::marks::Mark;
use crate::recipes::facts::attention_maps;
use crate::recipes::lives::Life;
use crate::recipes::{Applied, Editable};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_snapshot::FrameId;

/// The lines of an edit, as far as call stacks show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EditAt {
    /// The innermost frame of the program.
    pub frame: Option<FrameId>,
    /// The frame of a package, other than PyTorch, that does it for the program.
    pub package: Option<FrameId>,
    /// The frame inside a block of the model.
    pub block: Option<FrameId>,
    /// The line to look at first: of what the change found, if it is the program's.
    pub shown: Option<FrameId>,
}

impl Editable {
    /// Where a change is an edit of the program. `applied` is what it found.
    pub fn edit_at(&self, change: &Change, applied: &Applied, cx: Evidence<'_>) -> EditAt {
        let found = match change.line {
            Line::None => None,
            Line::Blocks => self.at_blocks(applied),
            Line::Loss => self.at_loss(applied),
            Line::Maps => self.at_maps(),
            Line::Optimizer => self.at_optimizer(cx),
            Line::Training => self.at_model(true),
            Line::Evaluation => self.at_model(false),
            Line::Parameters => self.at_parameters(),
        };
        let found = found.unwrap_or_default();
        // Where a container of PyTorch calls the blocks, their own line says more.
        let own = [applied.site, found.block].into_iter().flatten().find(|&at| cx.is_program(at));
        EditAt { shown: own.or(applied.site).or(found.frame), ..found }
    }

    fn is_torch(&self, frame: FrameId) -> bool {
        let mark = self.lives.stacks.mark(frame);
        mark.has(Mark::LIBRARY) && mark.has(Mark::TORCH)
    }

    /// The edit at the innermost of `frames` that is not PyTorch's own.
    fn spot(&self, frames: &[FrameId]) -> Option<EditAt> {
        let inner = frames.iter().copied().find(|&frame| !self.is_torch(frame))?;
        let is_package = self.lives.stacks.mark(inner).has(Mark::LIBRARY);
        let frame = self.lives.stacks.own(frames).next();
        let package = is_package.then_some(inner);
        Some(EditAt { frame, package, ..EditAt::default() })
    }

    /// The place with the most bytes, of all blocks for which `of` finds one.
    fn most<'a>(
        &'a self,
        blocks: impl Iterator<Item = &'a Life>,
        of: impl Fn(&[FrameId]) -> Option<EditAt>,
    ) -> Option<EditAt> {
        let mut bytes: FxHashMap<EditAt, u64> = FxHashMap::default();
        for life in blocks {
            if let Some(at) = of(self.lives.frames(life)) {
                *bytes.entry(at).or_default() += life.bytes;
            }
        }
        bytes.into_iter().max_by_key(|&(at, bytes)| (bytes, Reverse(at))).map(|(at, _)| at)
    }

    /// The call of the model's blocks, and the function that it calls.
    fn at_blocks(&self, applied: &Applied) -> Option<EditAt> {
        let stacks = &self.lives.stacks;
        let site = stacks.place(applied.site?);
        self.lives.all.iter().find_map(|life| {
            let frames = self.lives.frames(life);
            let at = frames.iter().position(|&frame| stacks.place(frame) == site)?;
            let mut inner = frames[..at].iter().rev().copied();
            let block = inner.find(|&frame| !self.is_torch(frame))?;
            Some(EditAt { block: Some(block), ..self.spot(&frames[at..])? })
        })
    }

    /// The call of cross entropy; without one, the line that makes the logits.
    fn at_loss(&self, applied: &Applied) -> Option<EditAt> {
        let of_loss = self.most(self.of_passes(true), |frames| {
            let has = |&frame: &FrameId| self.lives.stacks.mark(frame).has(Mark::CROSS_ENTROPY);
            self.spot(&frames[frames.iter().position(has)?..])
        });
        of_loss.or_else(|| Some(EditAt { frame: Some(applied.site?), ..EditAt::default() }))
    }

    /// The softmax of attention; without one, the line that makes the maps.
    fn at_maps(&self) -> Option<EditAt> {
        let maps = attention_maps(&self.lives, &self.facts);
        let maps = || maps.iter().map(|&index| &self.lives.all[index]);
        let of_softmax = self.most(maps(), |frames| {
            let has = |&frame: &FrameId| self.lives.stacks.mark(frame).has(Mark::SOFTMAX);
            self.spot(&frames[frames.iter().position(has)?..])
        });
        of_softmax.or_else(|| self.most(maps(), |frames| self.spot(frames)))
    }

    /// The call of the optimizer's step: outside of all frames of optimizers in packages.
    fn at_optimizer(&self, cx: Evidence<'_>) -> Option<EditAt> {
        let is_optimizer = |&frame: &FrameId| {
            let file = cx.snapshot.text(cx.snapshot.frame(frame).file);
            self.lives.stacks.mark(frame).has(Mark::LIBRARY) && file.contains("/optim")
        };
        let states = self.lives.all.iter().filter(|life| life.category == Category::OptimizerState);
        self.most(states, |frames| self.spot(&frames[frames.iter().rposition(is_optimizer)? + 1..]))
    }

    /// The outermost call of a module, in passes with a backward pass or in others.
    fn at_model(&self, is_trained: bool) -> Option<EditAt> {
        self.most(self.of_passes(is_trained), |frames| {
            let has = |&frame: &FrameId| self.lives.stacks.mark(frame).has(Mark::MODULE_CALL);
            self.spot(&frames[frames.iter().rposition(has)? + 1..])
        })
    }

    fn at_parameters(&self) -> Option<EditAt> {
        let parameters = self.lives.all.iter().filter(|life| life.category == Category::Parameter);
        self.most(parameters, |frames| self.spot(frames))
    }

    /// The blocks that the passes make, with a backward pass or without.
    fn of_passes(&self, is_trained: bool) -> impl Iterator<Item = &Life> {
        let passes = self.facts.passes.iter();
        let passes = passes.filter(move |pass| pass.backward.is_some() == is_trained);
        passes.flat_map(|pass| &self.lives.all[self.lives.born(pass.begin, pass.end)])
    }
}
