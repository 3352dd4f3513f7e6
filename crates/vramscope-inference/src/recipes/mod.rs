//! What a change of the program does to its memory: recipes.
//!
//! A recipe rewrites the list of blocks of a run ([`lives`]): when each is born and dies, and its
//! size. The allocator's model then replays the whole list. Recipes are pure, so they combine.
//!
//! 1. [`lives`] makes the list from a trace.
//! 2. [`rest`] completes a step that failed: what came after the failed request is not in the file.
//! 3. [`facts`] finds what recipes must know: passes, the model's blocks, logits, maps, sizes.
//! 4. [`crate::claims::changes`] has one file per change.
//! 5. [`arena`] applies recipes to a copy of the list, which it uses again and again.
//! 6. [`replay`] replays the list.
//! 7. [`seconds`] estimates how much longer a step takes.

mod arena;
pub(crate) mod facts;
pub(crate) mod lives;
pub(crate) mod order;
pub(crate) mod replay;
mod rest;
pub(crate) mod seconds;
mod settle;

pub use arena::Arena;
pub use replay::{ChangedAnswer, ChangedRun, Outcome};
pub use rest::{Completion, Rest};
pub use seconds::Machine;

use crate::category::Category;
use crate::evidence::Evidence;
use crate::evidence::stacks::Stacks;
use crate::shapes::Dims;
use crate::step_phases::StepPhase;
use crate::what_if::WhatIf;
use facts::Facts;
use lives::{Life, Lives, Return};
use order::Order;
use rustc_hash::FxHashMap;
use seconds::StepWork;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::AllocatorSettings;
use vramscope_trace::slicing::{Budget, strides};

/// Declares [`Declined`] with the words of each reason.
macro_rules! declined {
    ($($reason:ident = $words:literal,)*) => {
        /// Why a recipe has no answer: the fact that it lacks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Declined {
            $(#[doc = $words] $reason,)*
        }

        impl Declined {
            /// The reason in words, without capital and point.
            pub fn words(self) -> &'static str {
                match self { $(Self::$reason => $words,)* }
            }
        }
    };
}

declined! {
    NoPass = "no forward pass with a backward pass was found",
    NothingKept = "nothing is kept for a backward pass",
    SavedView = "backward gathers more than all that is kept: a saved view may be copied whole",
    TwoInputs = "inputs of two kinds come, and the file does not tell which of them gets longer",
    NotOfInputs = "activations hold the peak, and none of them grows with an input of the file",
    NothingRepeats = "no call site runs the blocks of the model",
    NoTokens = "the number of tokens is not known",
    NoLogits = "no logits were found",
    NoUpcast = "the logits are not copied to 32 bits",
    NoMaps = "no softmax of attention is in the call stacks",
    MapsKept = "the program keeps the maps of attention",
    NoStates = "the optimizer keeps no state",
    NoEvaluation = "no evaluation was found",
    NoGraph = "no evaluation keeps a graph",
    NoSite = "nothing is allocated at this line",
    NotFp32 = "the parameters are not in 32 bits",
    NoGradients = "no backward pass makes gradients",
    NoAutocast = "autocast is off",
    NotTraced = "no step was traced: record with --use-step",
    NothingGrows = "nothing grows with the batch",
    NoFailedPass = "no request failed in a forward pass",
    KeptForBackward = "backward needs what the failed function makes",
    HadIt = "nothing would change",
    NotPredicted = "sizes do not tell what it does",
}

/// What a recipe found and changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The frame that runs the model's blocks, or that makes the logits.
    pub site: Option<FrameId>,
    /// How many blocks of the model, passes with logits, or maps it found.
    pub found: u32,
    /// Of how many blocks of the model; 0 for other changes.
    pub of: u32,
}

impl Applied {
    /// What a recipe changed.
    ///
    /// # Errors
    /// It changed nothing: `why`.
    pub(crate) fn of(changed: u32, why: Declined) -> Result<Self, Declined> {
        if changed == 0 { Err(why) } else { Ok(Self { site: None, found: changed, of: 0 }) }
    }
}

/// Whether a failed request ended the run.
pub fn ended_by_failure(cx: Evidence<'_>) -> bool {
    lives::failure(cx).is_some()
}

/// A run that recipes can change: its blocks, with the failed step completed, and its facts.
#[derive(Debug)]
pub struct Editable {
    pub(crate) lives: Lives,
    order: Order,
    /// Whether no block has two readings.
    is_sure: bool,
    pub(crate) facts: Facts,
    /// What a typical step does; `None` without a training pass.
    pub(crate) work: Option<StepWork>,
    /// The settings of the recording.
    settings: AllocatorSettings,
    /// How the step that failed was completed.
    pub rest: Rest,
    /// By what it was to be completed.
    pub by: Completion,
}

impl Editable {
    /// The run of a device. `model` is that of the same device, and `dims` are those of its peak.
    pub async fn new(
        cx: Evidence<'_>,
        model: &WhatIf,
        dims: Option<&Dims>,
        by: Completion,
        budget: &mut Budget,
    ) -> Self {
        let elements = elements_of(cx, dims);
        let of = |pool: Option<u32>| pool.map_or(Return::Everything, Return::Pool);
        let returns = model.returned().map(|(at, pool)| (f64::from(at), of(pool))).collect();
        let failure = lives::failure(cx);
        let stacks = Arc::new(Stacks::new(cx.snapshot, budget).await);
        let pools = |block: u32| model.pool_of(block);
        let mut lives = Lives::new(cx, stacks, pools, elements, returns, failure, budget).await;
        let mut facts = Facts::new(&mut lives, dims, budget).await;
        let oom = cx.trace.ooms.last().map(|oom| cx.stack_of_event(oom.event));
        let stack = oom.filter(|&stack| stack != StackId::EMPTY);
        let rest = rest::complete(&mut lives, &facts, by, stack, budget).await;
        if rest != Rest::Whole {
            lives.sort(budget).await;
            lives.place_again(budget).await;
            facts = Facts::new(&mut lives, dims, budget).await;
        }
        let order = Order::new(&lives.all, budget).await;
        let is_sure = lives.is_sure(budget).await;
        budget.charge(lives.all.len() as u64).await;
        let work = StepWork::new(&lives, &facts, cx.trace.clock.as_ref());
        let settings = model.settings.clone();
        Self { lives, order, is_sure, facts, work, settings, rest, by }
    }

    /// When the request failed that ended the run: its event.
    pub fn failed_at(&self) -> Option<u32> {
        self.lives.failure.map(|failure| failure.at as u32)
    }

    /// Whether the run that failed is one of inference: it dropped a whole pass without backward.
    pub fn infers(&self) -> bool {
        let at = self.lives.failure.map(|failure| failure.at);
        at.is_some_and(|at| rest::infers(&self.lives, &self.facts, at))
    }

    /// The call sites whose results outlive the backward pass of their step, with the most bytes of
    /// a step, most first. What they hold can be dropped there.
    pub async fn held_sites(&self, budget: &mut Budget) -> Vec<(FrameId, u64)> {
        let mut of_sites: FxHashMap<FrameId, BTreeMap<i32, u64>> = FxHashMap::default();
        let ends: FxHashMap<i32, f64> = self
            .lives
            .steps()
            .into_iter()
            .filter_map(|step| Some((step, self.lives.span(step, StepPhase::Backward)?.1)))
            .collect();
        let is_result = |life: &&Life| {
            life.phase == StepPhase::Forward
                && matches!(life.category, Category::Activation | Category::Unknown)
                && ends.get(&life.step).is_some_and(|&end| life.end >= end)
        };
        for part in strides(self.lives.all.len()) {
            budget.charge(4 * part.len() as u64).await;
            for life in self.lives.all[part].iter().filter(is_result) {
                let frames = self.lives.frames(life);
                if let Some(frame) = self.lives.stacks.own(frames).next() {
                    *of_sites.entry(frame).or_default().entry(life.step).or_default() += life.bytes;
                }
            }
        }
        let most = |steps: BTreeMap<i32, u64>| steps.into_values().max().unwrap_or(0);
        let mut sites: Vec<(FrameId, u64)> =
            of_sites.into_iter().map(|(frame, steps)| (frame, most(steps))).collect();
        sites.sort_by_key(|&(frame, bytes)| (std::cmp::Reverse(bytes), frame));
        sites
    }
}

/// Bytes of a block's element, where its shape is certain; else 0.
pub(crate) fn elements_of<'a>(
    cx: Evidence<'a>,
    dims: Option<&'a Dims>,
) -> impl Fn(u32) -> u8 + use<'a> {
    move |block: u32| {
        let of = &cx.trace.blocks[block as usize];
        let category = cx.categories.get(block).category;
        let shapes = dims.map(|dims| dims.shapes(cx.snapshot, of.bytes.0, category, of.stack));
        let certain = shapes.filter(|shapes| shapes.is_certain);
        certain.map_or(0, |shapes| shapes.shapes[0].element_bytes as u8)
    }
}

/// Bytes times a factor, at least one.
pub(crate) fn scaled(bytes: u64, factor: f64) -> u64 {
    ((bytes as f64 * factor).round() as u64).max(1)
}
