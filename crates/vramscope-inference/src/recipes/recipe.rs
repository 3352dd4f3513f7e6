//! The names of recipes.

use std::fmt;
use std::str::FromStr;

/// A change of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// `batch:K`: K times the batch.
    Batch(f64),
    /// `sequence:K`: K times the length of each sequence.
    Sequence(f64),
    /// `accumulate:N`: the batch in N parts, with gradients that add up.
    Accumulate(u32),
    /// `checkpoint:all|half|SITE`: activations of the model's blocks are computed again.
    Checkpoint(Checkpointed),
    /// `chunked_loss:N`: logits and loss in N parts.
    ChunkedLoss(u32),
    /// `upcast:off`: no copy of the logits in 32 bits.
    UpcastOff,
    /// `attention:flash`: a kernel that makes no maps.
    FlashAttention,
    /// `foreach:off`: the optimizer updates one parameter after the other.
    ForeachOff,
    /// `optimizer:fused|sgd|8bit|adafactor|muon`.
    Optimizer(NewOptimizer),
    /// `zero_grad:early|late`.
    ZeroGrad(When),
    /// `optimizer_in_backward`: each gradient is used and freed as soon as it is there.
    OptimizerInBackward,
    /// `params:bf16`: the whole model in 16 bits.
    ParametersBf16,
    /// `autocast:bf16|off`.
    Autocast(AutocastChange),
    /// `autocast_cache:off`: casts of weights are not kept.
    AutocastCacheOff,
    /// `offload_activations`: what backward needs waits in the host's memory.
    OffloadActivations,
    /// `freeze:embedding|lower`.
    Freeze(Frozen),
    /// `shard:N`: parameters, gradients and states over N ranks (FSDP).
    Shard(u32),
    /// `eval:no_grad`: evaluation keeps no graph.
    EvaluationNoGrad,
    /// `eval_batch:K`: K times the batch of evaluation.
    EvaluationBatch(f64),
    /// `del:SITE`: what a line makes dies after the backward pass.
    Del(String),
    /// `last_use:SITE`: what a line makes dies at its last use, as a traced step shows it.
    LastUse(String),
}

/// What is checkpointed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpointed {
    /// Every block of the model.
    All,
    /// Every other block.
    Half,
    /// The blocks that run through a call site: `FILE:LINE`.
    Site(String),
}

/// Another optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewOptimizer {
    /// `fused=True`: no temporaries.
    Fused,
    /// SGD without momentum: no states.
    Sgd,
    /// States of 8 bits, as bitsandbytes keeps them.
    EightBit,
    /// Adafactor without a first moment: a row and a column for each matrix.
    Adafactor,
    /// Muon: one momentum for each matrix, and the states of `AdamW` for the rest.
    Muon,
}

/// When gradients are freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Right after the optimizer's step.
    Early,
    /// Right before the next backward pass.
    Late,
}

/// How autocast changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutocastChange {
    /// On, with `bfloat16`.
    Bf16,
    /// Off.
    Off,
}

/// Which parameters are not trained any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// The embedding.
    Embedding,
    /// The lower half of the model.
    Lower,
}

/// A text that is no recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeError {
    /// The text.
    pub text: String,
    /// The forms that the recipe may have; the names of all recipes if there is no such one.
    pub expected: String,
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no change of the program: expected {}", self.text, self.expected)
    }
}

/// The largest factor of a batch or of parts.
const MAX_FACTOR: f64 = 1024.0;

/// All forms, for messages.
pub(super) const FORMS: [(&str, &str); 21] = [
    ("batch", "batch:K with K from 0.001 to 1024"),
    ("sequence", "sequence:K with K from 0.001 to 1024"),
    ("accumulate", "accumulate:N with N from 2 to 1024"),
    ("checkpoint", "checkpoint:all, checkpoint:half or checkpoint:FILE:LINE"),
    ("chunked_loss", "chunked_loss:N with N from 2 to 1024"),
    ("upcast", "upcast:off"),
    ("attention", "attention:flash"),
    ("foreach", "foreach:off"),
    ("optimizer", "optimizer:fused, sgd, 8bit, adafactor or muon"),
    ("zero_grad", "zero_grad:early or zero_grad:late"),
    ("optimizer_in_backward", "optimizer_in_backward"),
    ("params", "params:bf16"),
    ("autocast", "autocast:bf16 or autocast:off"),
    ("autocast_cache", "autocast_cache:off"),
    ("offload_activations", "offload_activations"),
    ("freeze", "freeze:embedding or freeze:lower"),
    ("shard", "shard:N with N from 2 to 1024"),
    ("eval", "eval:no_grad"),
    ("eval_batch", "eval_batch:K with K from 0.001 to 1024"),
    ("del", "del:FILE:LINE"),
    ("last_use", "last_use:FILE:LINE"),
];

impl Recipe {
    /// Reads recipes with commas between them.
    ///
    /// # Errors
    /// A part is no recipe.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RecipeError> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
    }

    /// The error of the active peak that was measured over programs that were really changed: 95 of
    /// 100 are within it, in percent. `None` where too few were measured (docs/what-if.md).
    pub fn error_percent(&self) -> Option<f64> {
        match self {
            Self::Optimizer(NewOptimizer::Adafactor | NewOptimizer::Muon) => None,
            Self::Optimizer(_)
            | Self::ZeroGrad(_)
            | Self::ForeachOff
            | Self::UpcastOff
            | Self::AutocastCacheOff
            | Self::EvaluationNoGrad
            | Self::EvaluationBatch(_)
            | Self::FlashAttention => Some(1.0),
            Self::Batch(_) | Self::Sequence(_) | Self::Freeze(_) => Some(2.0),
            Self::Del(_) | Self::LastUse(_) | Self::OptimizerInBackward => Some(3.0),
            Self::Shard(_) => Some(4.0),
            Self::Accumulate(_) | Self::Checkpoint(_) | Self::OffloadActivations => Some(5.0),
            Self::ChunkedLoss(_) => Some(6.0),
            Self::ParametersBf16 | Self::Autocast(_) => Some(9.0),
        }
    }

    /// Whether another recipe is a form of the same change: two of them do not combine.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Del(one) | Self::LastUse(one), Self::Del(other) | Self::LastUse(other)) => {
                one == other
            }
            // Both say when the graph's blocks die.
            (Self::Checkpoint(_) | Self::OffloadActivations, Self::OffloadActivations)
            | (Self::OffloadActivations, Self::Checkpoint(_))
            | (
                Self::Optimizer(_) | Self::ForeachOff | Self::OptimizerInBackward,
                Self::Optimizer(_) | Self::ForeachOff | Self::OptimizerInBackward,
            ) => true,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Whether blocks move in time, so that the order of requests changes: recomputation,
    /// accumulation, offloading.
    pub fn moves_blocks(&self) -> bool {
        matches!(
            self,
            Self::Checkpoint(_)
                | Self::Accumulate(_)
                | Self::OffloadActivations
                | Self::ChunkedLoss(_)
                | Self::OptimizerInBackward
                | Self::Shard(_)
        )
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let wrong = || {
            let form = FORMS.iter().find(|form| form.0 == name);
            let names = || format!("one of {}", FORMS.map(|form| form.0).join(", "));
            let expected = form.map_or_else(names, |form| form.1.to_owned());
            RecipeError { text: text.to_owned(), expected }
        };
        let factor = || {
            let factor: f64 = value.parse().map_err(|_| wrong())?;
            if (0.001..=MAX_FACTOR).contains(&factor) { Ok(factor) } else { Err(wrong()) }
        };
        let parts = || match value.parse::<u32>() {
            Ok(parts) if (2..=1024).contains(&parts) => Ok(parts),
            _ => Err(wrong()),
        };
        let site = || {
            let line = value
                .rsplit_once(':')
                .is_some_and(|(file, line)| !file.is_empty() && line.parse::<u32>().is_ok());
            if line { Ok(value.to_owned()) } else { Err(wrong()) }
        };
        Ok(match (name, value) {
            ("batch", _) => Self::Batch(factor()?),
            ("sequence", _) => Self::Sequence(factor()?),
            ("accumulate", _) => Self::Accumulate(parts()?),
            ("checkpoint", "all") => Self::Checkpoint(Checkpointed::All),
            ("checkpoint", "half") => Self::Checkpoint(Checkpointed::Half),
            ("checkpoint", _) => Self::Checkpoint(Checkpointed::Site(site()?)),
            ("chunked_loss", _) => Self::ChunkedLoss(parts()?),
            ("upcast", "off") => Self::UpcastOff,
            ("attention", "flash") => Self::FlashAttention,
            ("foreach", "off") => Self::ForeachOff,
            ("optimizer", "fused") => Self::Optimizer(NewOptimizer::Fused),
            ("optimizer", "sgd") => Self::Optimizer(NewOptimizer::Sgd),
            ("optimizer", "8bit") => Self::Optimizer(NewOptimizer::EightBit),
            ("optimizer", "adafactor") => Self::Optimizer(NewOptimizer::Adafactor),
            ("optimizer", "muon") => Self::Optimizer(NewOptimizer::Muon),
            ("zero_grad", "early") => Self::ZeroGrad(When::Early),
            ("zero_grad", "late") => Self::ZeroGrad(When::Late),
            ("optimizer_in_backward", "") => Self::OptimizerInBackward,
            ("params", "bf16") => Self::ParametersBf16,
            ("autocast", "bf16") => Self::Autocast(AutocastChange::Bf16),
            ("autocast", "off") => Self::Autocast(AutocastChange::Off),
            ("autocast_cache", "off") => Self::AutocastCacheOff,
            ("offload_activations", "") => Self::OffloadActivations,
            ("freeze", "embedding") => Self::Freeze(Frozen::Embedding),
            ("freeze", "lower") => Self::Freeze(Frozen::Lower),
            ("shard", _) => Self::Shard(parts()?),
            ("eval", "no_grad") => Self::EvaluationNoGrad,
            ("eval_batch", _) => Self::EvaluationBatch(factor()?),
            ("del", _) => Self::Del(site()?),
            ("last_use", _) => Self::LastUse(site()?),
            _ => return Err(wrong()),
        })
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch(k) => write!(f, "batch:{k}"),
            Self::Sequence(k) => write!(f, "sequence:{k}"),
            Self::Accumulate(n) => write!(f, "accumulate:{n}"),
            Self::Checkpoint(Checkpointed::All) => f.write_str("checkpoint:all"),
            Self::Checkpoint(Checkpointed::Half) => f.write_str("checkpoint:half"),
            Self::Checkpoint(Checkpointed::Site(site)) => write!(f, "checkpoint:{site}"),
            Self::ChunkedLoss(n) => write!(f, "chunked_loss:{n}"),
            Self::UpcastOff => f.write_str("upcast:off"),
            Self::FlashAttention => f.write_str("attention:flash"),
            Self::ForeachOff => f.write_str("foreach:off"),
            Self::Optimizer(NewOptimizer::Fused) => f.write_str("optimizer:fused"),
            Self::Optimizer(NewOptimizer::Sgd) => f.write_str("optimizer:sgd"),
            Self::Optimizer(NewOptimizer::EightBit) => f.write_str("optimizer:8bit"),
            Self::Optimizer(NewOptimizer::Adafactor) => f.write_str("optimizer:adafactor"),
            Self::Optimizer(NewOptimizer::Muon) => f.write_str("optimizer:muon"),
            Self::ZeroGrad(When::Early) => f.write_str("zero_grad:early"),
            Self::ZeroGrad(When::Late) => f.write_str("zero_grad:late"),
            Self::OptimizerInBackward => f.write_str("optimizer_in_backward"),
            Self::ParametersBf16 => f.write_str("params:bf16"),
            Self::Autocast(AutocastChange::Bf16) => f.write_str("autocast:bf16"),
            Self::Autocast(AutocastChange::Off) => f.write_str("autocast:off"),
            Self::AutocastCacheOff => f.write_str("autocast_cache:off"),
            Self::OffloadActivations => f.write_str("offload_activations"),
            Self::Freeze(Frozen::Embedding) => f.write_str("freeze:embedding"),
            Self::Freeze(Frozen::Lower) => f.write_str("freeze:lower"),
            Self::Shard(n) => write!(f, "shard:{n}"),
            Self::EvaluationNoGrad => f.write_str("eval:no_grad"),
            Self::EvaluationBatch(k) => write!(f, "eval_batch:{k}"),
            Self::Del(site) => write!(f, "del:{site}"),
            Self::LastUse(site) => write!(f, "last_use:{site}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_what_its_text_says() {
        let texts = "batch:0.5,sequence:2,accumulate:4,checkpoint:all,checkpoint:half,\
                     checkpoint:model.py:65,chunked_loss:8,upcast:off,attention:flash,foreach:off,\
                     optimizer:fused,optimizer:sgd,optimizer:8bit,optimizer:adafactor,\
                     optimizer:muon,zero_grad:early,zero_grad:late,optimizer_in_backward,\
                     params:bf16,autocast:bf16,autocast:off,autocast_cache:off,\
                     offload_activations,freeze:embedding,freeze:lower,shard:2,eval:no_grad,\
                     eval_batch:0.5,del:train.py:133,last_use:train.py:133";
        let recipes = Recipe::parse_list(texts).expect("right recipes");
        let written: Vec<String> = recipes.iter().map(Recipe::to_string).collect();
        assert_eq!(written.join(","), texts);
        // Every form has a recipe.
        for (name, _) in FORMS {
            assert!(written.iter().any(|text| text.split(':').next() == Some(name)), "{name}");
        }
    }

    #[test]
    fn wrong_values_name_the_right_ones() {
        for text in ["batch:0", "batch:x", "accumulate:1", "optimizer:lion", "del:train.py"] {
            let error = text.parse::<Recipe>().expect_err(text);
            assert!(!error.expected.starts_with("one of "), "{text}");
        }
        let error = "bigger".parse::<Recipe>().expect_err("no recipe");
        assert!(error.expected.starts_with("one of batch, sequence"), "{error}");
    }
}
