//! What a recipe must know about a run. Found once, before the first recipe, and shown with the
//! answer: these are its assumptions.

mod logits;
mod maps;
mod passes;
mod pieces;

pub(crate) use logits::{Logits, logits};
pub(crate) use maps::attention_maps;
pub(crate) use passes::{Pass, passes};
pub(crate) use pieces::{model_blocks, pieces, repeated_site, with_stack};

use super::lives::{Life, Lives};
use crate::category::Category;
use crate::evidence::autocast;
use crate::shapes::Dims;
use crate::step_phases::StepPhase;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Smaller blocks do not depend on the number of tokens: losses, counters.
pub(crate) const MIN_SCALED: u64 = 512;

/// Sizes of the workspaces that PyTorch allocates for cuBLAS, in bytes. PyTorch 2.15 allocates one
/// for each call.
const WORKSPACES: [u64; 3] = [32 << 20, 8_519_680, 4 << 20];

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
    /// Passes through the model, by time.
    pub(crate) passes: Vec<Pass>,
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
}

impl Facts {
    /// The facts of a run. `dims` are those of its peak.
    pub(crate) fn new(lives: &mut Lives, dims: Option<&Dims>) -> Self {
        let forward = lives.spans.iter().find(|span| span.phase == StepPhase::Forward);
        let first_forward = forward.map_or(0.0, |span| span.begin);
        for life in &mut lives.all {
            let is_workspace = WORKSPACES.contains(&life.bytes)
                && life.category == Category::Temporary
                && life.end - life.begin <= 2.0;
            if is_workspace {
                life.category = Category::Workspace;
            }
        }
        let mut facts = Self { first_forward, ..Self::default() };
        let inputs = lives.all.iter().filter(|life| life.category == Category::Input);
        facts.first_input = inputs.map(|life| life.begin).fold(first_forward, f64::min);
        for life in &lives.all {
            // `.to()` frees the weights that it replaces before the first forward pass.
            if life.category == Category::Parameter && life.end > first_forward {
                *facts.parameters.entry(life.bytes).or_default() += 1;
            }
        }
        facts.passes = passes(lives);
        autocast::find(lives, &mut facts);
        facts.read_dims(lives, dims);
        let has_widths = dims.is_some_and(|dims| dims.widths.len() > 1);
        if has_widths && !facts.may_cast && facts.has_wide_copy_of_logits(lives) {
            facts.element = 2;
        }
        facts
    }

    fn read_dims(&mut self, lives: &Lives, dims: Option<&Dims>) {
        self.element = 4;
        if let Some(dims) = dims {
            if let Some(widths) = dims.widths.first() {
                self.element = widths.element_bytes;
            }
            self.widths = dims.widths.iter().flat_map(|widths| widths.all.clone()).collect();
            self.widths.sort_unstable();
            self.widths.dedup();
            self.tokens = dims.tokens;
        }
        self.tokens = self.tokens.or_else(|| tokens(lives));
    }

    /// Whether logits in 16 bits are copied to 32 without autocast: the model is in 16 bits.
    fn has_wide_copy_of_logits(&self, lives: &Lives) -> bool {
        let Some(pass) = self.passes.iter().find(|pass| pass.backward.is_some()) else {
            return false;
        };
        let blocks = lives.born(pass.begin, pass.end);
        let found = logits(lives, self, blocks, pass);
        found.is_some_and(|logits| lives.all[logits.block].bytes == 2 * logits.elements)
    }

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

    /// The pass that contains a time, if the time lies in an evaluation or just before it.
    pub(crate) fn is_in_evaluation(&self, time: f64) -> bool {
        let lead = |pass: &Pass| pass.begin - INPUT_LEAD;
        self.passes
            .iter()
            .any(|pass| pass.backward.is_none() && (lead(pass)..pass.end).contains(&time))
    }
}

/// Inputs of a pass are made at most this many events before it.
pub(crate) const INPUT_LEAD: f64 = 8.0;

/// Rows of a batch to try.
const MAX_ROWS: u64 = 1024;

/// Fewer tokens divide sizes by chance.
const MIN_TOKENS: u64 = 64;

/// The number of tokens of the largest batch of `int64` inputs whose number divides the sizes of
/// most activations.
///
/// A batch of `rows` texts may have one token more in each: the last is a target only.
fn tokens(lives: &Lives) -> Option<u64> {
    let activations: Vec<u64> = lives
        .all
        .iter()
        .filter(|life| life.category == Category::Activation && life.phase == StepPhase::Forward)
        .filter(|life| !life.is_weight_copy)
        .map(|life| life.bytes)
        .filter(|&bytes| bytes > 65_536)
        .collect();
    let mut inputs: Vec<u64> = lives
        .all
        .iter()
        .filter(|life| life.category == Category::Input)
        .filter(|life| life.bytes % 8 == 0 && life.bytes > MIN_SCALED)
        .map(|life| life.bytes / 8)
        .collect();
    inputs.sort_unstable();
    inputs.dedup();
    let fits = |tokens: &u64| {
        let fit = activations.iter().filter(|&&bytes| bytes % tokens == 0).count();
        !activations.is_empty() && fit * 10 > activations.len() * 8
    };
    let whole = inputs.iter().copied().rev().find(&fits);
    whole.or_else(|| {
        let shorter = inputs.iter().rev().flat_map(|&tokens| {
            let rows = (1..=MAX_ROWS).filter(move |rows| tokens % rows == 0);
            rows.map(move |rows| tokens - rows).filter(|&tokens| tokens >= MIN_TOKENS)
        });
        shorter.into_iter().find(fits)
    })
}
