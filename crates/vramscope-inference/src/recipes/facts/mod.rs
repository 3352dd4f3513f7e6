//! What a recipe must know about a run. Found once, before the first recipe, and shown with the
//! answer: these are its assumptions.

mod find;
mod logits;
mod maps;
mod pieces;

pub(crate) use logits::{Logits, logits, logits_until};
pub(crate) use maps::attention_maps;
pub(crate) use pieces::{Site, model_blocks, pieces, repeated_sites, with_stack};

use super::lives::{Life, Lives};
use crate::category::Category;
use crate::evidence::marks::Mark;
pub(crate) use crate::evidence::passes::Pass;
use crate::step_phases::StepPhase;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Smaller blocks do not depend on the number of tokens: losses, counters.
pub(crate) const MIN_SCALED: u64 = 512;

/// Bytes of the widest number of a token.
const WIDEST_NUMBER: u64 = 8;

/// Each text may have one token more, a target only: the fewest tokens of a text.
const SHORTEST_TEXT: u64 = 8;

/// The facts of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// When the first forward pass begins.
    pub(crate) first_forward: f64,
    /// When the first input is made.
    pub(crate) first_input: f64,
    /// Sizes of parameters in bytes, and how many there are of each.
    pub(crate) parameters: BTreeMap<u64, u32>,
    /// Bytes of a parameter's element.
    pub(crate) element: u64,
    /// Passes through the model but those that generate, by time.
    pub(crate) passes: Vec<Pass>,
    /// Passes that generate, by time.
    pub(crate) generations: Vec<Pass>,
    /// Whether sizes alone look as if autocast cast the weights.
    pub(crate) may_cast: bool,
    /// Whether autocast casts the weights.
    pub(crate) has_autocast: bool,
    /// Sizes that tensors of data have, in bytes.
    pub(crate) data_sizes: FxHashSet<u64>,
    /// Widths of the model.
    pub(crate) widths: Vec<u64>,
    /// Tokens of a pass.
    pub(crate) tokens: Option<u64>,
    /// Whether forward gathers sharded weights. Shards have elements of four bytes where what is
    /// gathered, and all data, has two.
    pub(crate) has_gathered: bool,
    /// The largest block that a forward pass makes, in bytes.
    pub(crate) largest: u64,
}

impl Facts {
    /// The passes with a backward pass.
    pub(crate) fn training(&self) -> impl Iterator<Item = &Pass> {
        self.passes.iter().filter(|pass| pass.backward.is_some())
    }

    /// The pass in the middle of those with a backward pass.
    pub(crate) fn typical(&self) -> Option<&Pass> {
        self.training().nth(self.training().count() / 2)
    }

    /// Whether a parameter has twice these bytes.
    pub(crate) fn is_half_of_parameter(&self, bytes: u64) -> bool {
        bytes.checked_mul(2).is_some_and(|twice| self.parameters.contains_key(&twice))
    }

    /// Whether a block grows with the tokens of a pass.
    ///
    /// Its category decides. What has the size of a parameter in backward may be the gradient of
    /// a weight that is used twice. Under autocast forward copies weights in 16 bits, and backward
    /// makes their gradients.
    pub(crate) fn grows(&self, life: &Life) -> bool {
        if life.begin < 0.0
            || matches!(
                life.category,
                Category::Parameter
                    | Category::Gradient
                    | Category::OptimizerState
                    | Category::Buffer
                    | Category::Workspace
                    | Category::Communication
            )
            || life.phase == StepPhase::Optimizer
            || life.bytes < MIN_SCALED
        {
            return false;
        }
        if life.category == Category::Input {
            return true;
        }
        if life.begin < self.first_input {
            return false;
        }
        if self.has_autocast && self.is_half_of_parameter(life.bytes) {
            return self.data_sizes.contains(&life.bytes) && !life.is_weight_copy;
        }
        if life.phase == StepPhase::Backward
            && let Some(&parameters) = self.parameters.get(&life.bytes)
        {
            return self.data_sizes.contains(&life.bytes)
                && parameters < 2
                && life.category == Category::Activation;
        }
        true
    }

    /// Whether a training pass has an input beside its tokens that is larger than they are, and
    /// convolutions: images, or frames of sound.
    pub(crate) fn has_other_input(&self, lives: &Lives) -> bool {
        let tokens = self.tokens.unwrap_or(0);
        let of_tokens = WIDEST_NUMBER * (tokens + tokens / SHORTEST_TEXT);
        let is_other = |of: &Life| of.bytes > of_tokens;
        self.typical().is_some_and(|pass| {
            let mut inputs = pass.inputs.iter().filter_map(|&at| lives.all.get(at as usize));
            let mut made = lives.all[lives.born(pass.begin, pass.end)].iter();
            inputs.any(is_other) && made.any(|life| lives.mark(life).has(Mark::CONVOLUTION))
        })
    }

    /// [`Life::other`] of a block that a change makes `factor` times as large: a kernel's workspace
    /// in backward may be for the device, and stay. It is larger than all that forward makes.
    pub(crate) fn other_if_scaled(&self, life: &Life, factor: f64) -> f32 {
        let may_stay = life.phase == StepPhase::Backward && life.bytes > self.largest;
        if may_stay { (1.0 / factor) as f32 } else { 1.0 }
    }

    /// Whether a time lies in an evaluation, or in what precedes its inputs.
    pub(crate) fn is_in_evaluation(&self, time: f64) -> bool {
        let mut evaluations = self.passes.iter().filter(|pass| pass.backward.is_none());
        evaluations.any(|pass| (pass.lead..pass.end).contains(&time))
    }

    /// The inputs that were made last, by birth: those of the last pass, or of one that has not
    /// begun.
    pub(crate) fn last_inputs<'l>(&self, lives: &'l Lives) -> Vec<&'l Life> {
        let over = self.passes.last().map_or(f64::NEG_INFINITY, Pass::over);
        let is_open = |life: &&Life| life.category == Category::Input && life.begin >= over;
        let open: Vec<&Life> = lives.all.iter().filter(is_open).collect();
        match self.passes.iter().rfind(|pass| !pass.inputs.is_empty()) {
            Some(pass) if open.is_empty() => {
                pass.inputs.iter().filter_map(|&index| lives.all.get(index as usize)).collect()
            }
            _ => open,
        }
    }
}
