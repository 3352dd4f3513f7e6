//! Finds the facts of a run.

use super::{Facts, MIN_SCALED, logits};
use crate::category::Category;
use crate::evidence::autocast;
use crate::evidence::passes::{PassKind, passes};
use crate::recipes::lives::Lives;
use crate::shapes::Dims;
use crate::step_phases::StepPhase;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use vramscope_trace::slicing::{Budget, strides};

/// Sizes of the workspaces that PyTorch allocates for cuBLAS, in bytes. PyTorch 2.15 allocates one
/// for each call.
const WORKSPACES: [u64; 3] = [32 << 20, 8_519_680, 4 << 20];

impl Facts {
    /// The facts of a run. `dims` are those of its peak.
    pub(crate) async fn new(lives: &mut Lives, dims: Option<&Dims>, budget: &mut Budget) -> Self {
        budget.charge(lives.all.len() as u64).await;
        let results = lives.all.iter().filter(|life| {
            matches!(life.phase, StepPhase::Forward | StepPhase::Evaluation) && !life.is_of_model()
        });
        let largest = results.map(|life| life.bytes).max().unwrap_or(u64::MAX);
        for part in strides(lives.all.len()) {
            budget.charge(part.len() as u64).await;
            for life in &mut lives.all[part] {
                let is_workspace = WORKSPACES.contains(&life.bytes)
                    && life.category == Category::Temporary
                    && life.end - life.begin <= 2.0;
                // All data of a run: no batch is larger than all that a pass makes of it.
                let is_data_set =
                    life.category == Category::Input && life.stays() && life.bytes > largest;
                if is_workspace {
                    life.category = Category::Workspace;
                } else if is_data_set {
                    life.category = Category::Buffer;
                }
            }
        }
        let passes = passes(&lives.spans, lives, budget).await;
        let forward = lives.spans.iter().find(|span| span.phase == StepPhase::Forward);
        let first_pass = passes.first().map_or(0.0, |pass| pass.begin);
        let first_forward = forward.map_or(first_pass, |span| span.begin);
        // What outlives requests there are caches and results, and no graphs.
        let (generations, passes) =
            passes.into_iter().partition(|pass| pass.kind == PassKind::Generation);
        let first_input = first_forward;
        let mut facts = Self { first_forward, first_input, passes, generations, ..Self::default() };
        for part in strides(lives.all.len()) {
            budget.charge(part.len() as u64).await;
            for life in &lives.all[part] {
                if life.phase == StepPhase::Forward && !life.is_of_model() {
                    facts.largest = facts.largest.max(life.bytes);
                    facts.has_gathered |= life.category == Category::Communication;
                }
                if life.category == Category::Input {
                    facts.first_input = facts.first_input.min(life.begin);
                }
                // `.to()` frees the weights that it replaces before the first forward pass.
                if life.category == Category::Parameter && life.end > first_forward {
                    *facts.parameters.entry(life.bytes).or_default() += 1;
                }
            }
        }
        autocast::find(lives, &mut facts, budget).await;
        facts.read_dims(lives, dims, budget).await;
        let has_widths = dims.is_some_and(|dims| dims.widths.len() > 1);
        if has_widths && !facts.may_cast && facts.has_wide_copy_of_logits(lives) {
            facts.element = 2;
        }
        facts
    }

    async fn read_dims(&mut self, lives: &Lives, dims: Option<&Dims>, budget: &mut Budget) {
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
        if self.tokens.is_none() {
            self.tokens = tokens(lives, budget).await;
        }
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
}

/// Rows of a batch to try.
const MAX_ROWS: u64 = 1024;

/// Fewer tokens divide sizes by chance.
const MIN_TOKENS: u64 = 64;

/// The number of tokens of the largest batch of `int64` inputs whose number divides the sizes of
/// most activations.
///
/// A batch of `rows` texts may have one token more in each: the last is a target only.
async fn tokens(lives: &Lives, budget: &mut Budget) -> Option<u64> {
    let mut activations: FxHashMap<u64, usize> = FxHashMap::default();
    let mut inputs = BTreeSet::new();
    for part in strides(lives.all.len()) {
        budget.charge(part.len() as u64).await;
        for life in &lives.all[part] {
            let is_activation = life.category == Category::Activation
                && life.phase == StepPhase::Forward
                && !life.is_weight_copy
                && life.bytes > 65_536;
            if is_activation {
                *activations.entry(life.bytes).or_default() += 1;
            }
            let is_of_numbers = life.bytes % 8 == 0 && life.bytes > MIN_SCALED;
            if life.category == Category::Input && is_of_numbers {
                inputs.insert(life.bytes / 8);
            }
        }
    }
    let total: usize = activations.values().sum();
    let fits = |tokens: u64| {
        let fit = activations.iter().filter(|&(bytes, _)| bytes % tokens == 0);
        total > 0 && fit.map(|(_, count)| count).sum::<usize>() * 10 > total * 8
    };
    budget.charge((inputs.len() * activations.len()) as u64).await;
    let whole = inputs.iter().copied().rev().find(|&tokens| fits(tokens));
    if whole.is_some() {
        return whole;
    }
    for &tokens in inputs.iter().rev() {
        budget.charge(MAX_ROWS + 16 * activations.len() as u64).await;
        let rows = (1..=MAX_ROWS).filter(|rows| tokens % rows == 0);
        let mut shorter = rows.map(|rows| tokens - rows).filter(|&tokens| tokens >= MIN_TOKENS);
        if let Some(found) = shorter.find(|&tokens| fits(tokens)) {
            return Some(found);
        }
    }
    None
}
