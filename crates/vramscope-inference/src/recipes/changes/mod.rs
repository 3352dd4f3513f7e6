//! The recipes: each edits the list of blocks.

mod accumulate;
mod batch;
mod checkpoint;
mod chunked_loss;
mod del;
mod evaluation;
mod flash;
mod freeze;
mod in_backward;
mod last_use;
mod offload;
mod optimizer;
mod precision;
mod shard;
mod zero_grad;

use super::facts::Facts;
use super::lives::Lives;
use super::recipe::{Frozen, NewOptimizer, Recipe};
use super::{Applied, Declined};
use crate::evidence::Evidence;

/// Applies one recipe.
///
/// # Errors
/// The recipe lacks a fact.
pub(super) fn apply(
    lives: &mut Lives,
    facts: &Facts,
    recipe: &Recipe,
    cx: Evidence<'_>,
) -> Result<Applied, Declined> {
    match recipe {
        Recipe::Batch(k) => Ok(batch::batch(lives, facts, *k)),
        Recipe::Sequence(k) => batch::sequence(lives, facts, *k),
        Recipe::EvaluationBatch(k) => batch::evaluation(lives, facts, *k),
        Recipe::Accumulate(parts) => accumulate::accumulate(lives, facts, *parts),
        Recipe::Checkpoint(which) => checkpoint::checkpoint(lives, facts, which, cx),
        Recipe::ChunkedLoss(parts) => chunked_loss::chunked(lives, facts, *parts),
        Recipe::UpcastOff => chunked_loss::without_upcast(lives, facts),
        Recipe::FlashAttention => flash::flash(lives, facts),
        Recipe::ForeachOff => Ok(optimizer::foreach_off(lives)),
        Recipe::Optimizer(NewOptimizer::Fused) => Ok(optimizer::fused(lives)),
        Recipe::Optimizer(NewOptimizer::Sgd) => optimizer::sgd(lives),
        Recipe::Optimizer(NewOptimizer::EightBit) => optimizer::eight_bit(lives, facts),
        Recipe::Optimizer(NewOptimizer::Adafactor) => optimizer::adafactor(lives, facts),
        Recipe::Optimizer(NewOptimizer::Muon) => optimizer::muon(lives, facts),
        Recipe::ZeroGrad(when) => Ok(zero_grad::zero_grad(lives, *when)),
        Recipe::OptimizerInBackward => in_backward::optimizer_in_backward(lives, facts),
        Recipe::ParametersBf16 => precision::parameters_bf16(lives, facts),
        Recipe::Autocast(_) | Recipe::Freeze(Frozen::Lower) => Err(Declined::NotPredicted),
        Recipe::AutocastCacheOff => precision::without_cast_cache(lives, facts),
        Recipe::OffloadActivations => offload::offload(lives, facts),
        Recipe::Freeze(Frozen::Embedding) => freeze::embedding(lives, facts),
        Recipe::Shard(ranks) => shard::shard(lives, facts, *ranks),
        Recipe::EvaluationNoGrad => evaluation::no_grad(lives, facts),
        Recipe::Del(site) => del::del(lives, site, cx),
        Recipe::LastUse(site) => last_use::last_use(lives, site, cx),
    }
}
