//! The changes of a scenario as edits of the program: the line, and the lines of PyTorch that do
//! it.
//!
//! `snippets/*.py` has the text that is shown. `scripts/twins/snippets.py` runs it.

use super::changed::place;
use crate::target::Target;
use crate::text;
use serde::{Deserialize, Serialize};
use vramscope_inference::{
    Applied, Checkpointed, EditAt, Editable, Frozen, NewOptimizer, Recipe, When,
};
use vramscope_snapshot::FrameId;

/// A change as an edit of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct EditRecord {
    /// The change: `checkpoint:all`.
    pub recipe: String,
    /// The line of the program: `train.py:12`; null if no call stack shows it.
    pub place: Option<String>,
    /// What stands there.
    pub what: String,
    /// The change in Python. Names such as `model`, `block`, `hidden` and `lr` are the program's.
    pub snippet: String,
}

/// The edits that recipes are. One that the program has already is none.
pub(super) fn edits(
    target: Target<'_>,
    editable: &Editable,
    recipes: &[Recipe],
    applied: &[Applied],
) -> Vec<EditRecord> {
    let both = recipes.iter().zip(applied).filter(|(_, applied)| !applied.had_it);
    both.filter_map(|(recipe, applied)| {
        let at = editable.edit_at(recipe, applied, target.entry.evidence(target.index));
        let place = match recipe {
            Recipe::Del(site) | Recipe::LastUse(site) => Some(site.clone()),
            _ => at.frame.map(|frame| place(target, frame)),
        };
        let is_of_transformers = at.package.is_some_and(|frame| {
            let file = target.snapshot().text(target.snapshot().frame(frame).file);
            file.contains("/transformers/")
        });
        Some(EditRecord {
            recipe: recipe.to_string(),
            place,
            what: what(target, recipe, at),
            snippet: snippet(recipe, is_of_transformers)?,
        })
    })
    .collect()
}

/// What stands at the line of an edit.
fn what(target: Target<'_>, recipe: &Recipe, at: EditAt) -> String {
    let what = match recipe {
        Recipe::Checkpoint(_) => match at.block {
            Some(block) => format!("the call of each block ({})", block_name(target, block)),
            None => "the call of each block".to_owned(),
        },
        Recipe::ChunkedLoss(_) => "the head and the loss".to_owned(),
        Recipe::UpcastOff => "the loss of a copy in 32 bits".to_owned(),
        Recipe::FlashAttention => "the softmax of attention".to_owned(),
        Recipe::ForeachOff | Recipe::Optimizer(_) | Recipe::OptimizerInBackward => {
            "the optimizer's step; the change is where it is constructed".to_owned()
        }
        Recipe::ZeroGrad(_) => "the optimizer's step".to_owned(),
        Recipe::Accumulate(_)
        | Recipe::OffloadActivations
        | Recipe::Autocast(_)
        | Recipe::AutocastCacheOff => "the forward pass of a training step".to_owned(),
        Recipe::Batch(_) | Recipe::Sequence(_) => {
            "the forward pass of a training step; the change is where its inputs are made"
                .to_owned()
        }
        Recipe::EvaluationNoGrad => "the forward pass of an evaluation".to_owned(),
        Recipe::EvaluationBatch(_) => {
            "the forward pass of an evaluation; the change is where its inputs are made".to_owned()
        }
        Recipe::ParametersBf16 | Recipe::Freeze(_) | Recipe::Shard(_) => {
            "where the parameters are made".to_owned()
        }
        Recipe::Del(_) => "what this line makes outlives the backward pass".to_owned(),
        Recipe::LastUse(_) => "what this line makes outlives its last use".to_owned(),
    };
    match at.package {
        Some(frame) => format!("{what}; {} of a package does it", place(target, frame)),
        None => what,
    }
}

/// `Block (gpt.py:31)` where functions have qualified names, else `gpt.py:31 forward`.
fn block_name(target: Target<'_>, frame: FrameId) -> String {
    let of = target.snapshot().frame(frame);
    let function = target.snapshot().text(of.name);
    match function.rsplit_once('.') {
        Some((class, _)) => format!("{class}, {}", place(target, frame)),
        None => text::frame_label(&function, &target.snapshot().text(of.file), of.line),
    }
}

/// The change in Python; `None` for a change without a prediction.
fn snippet(recipe: &Recipe, is_of_transformers: bool) -> Option<String> {
    macro_rules! file {
        ($name:literal) => {
            include_str!(concat!("snippets/", $name, ".py"))
        };
    }
    let text = match recipe {
        Recipe::Checkpoint(_) if is_of_transformers => file!("checkpoint_transformers"),
        Recipe::Checkpoint(Checkpointed::Half) => file!("checkpoint_half"),
        Recipe::Checkpoint(_) => file!("checkpoint"),
        Recipe::ChunkedLoss(_) => file!("chunked_loss"),
        Recipe::UpcastOff => file!("upcast_off"),
        Recipe::FlashAttention if is_of_transformers => file!("attention_transformers"),
        Recipe::FlashAttention => file!("attention_flash"),
        Recipe::ForeachOff => file!("foreach_off"),
        Recipe::Optimizer(NewOptimizer::Fused) => file!("optimizer_fused"),
        Recipe::Optimizer(NewOptimizer::Sgd) => file!("optimizer_sgd"),
        Recipe::Optimizer(NewOptimizer::EightBit) => file!("optimizer_8bit"),
        Recipe::Optimizer(NewOptimizer::Adafactor) => file!("optimizer_adafactor"),
        Recipe::Optimizer(NewOptimizer::Muon) => file!("optimizer_muon"),
        Recipe::ZeroGrad(When::Early) => file!("zero_grad_early"),
        Recipe::ZeroGrad(When::Late) => file!("zero_grad_late"),
        Recipe::OptimizerInBackward => file!("optimizer_in_backward"),
        Recipe::Accumulate(_) => file!("accumulate"),
        Recipe::Batch(_) => file!("batch"),
        Recipe::Sequence(_) => file!("sequence"),
        Recipe::EvaluationBatch(_) => file!("eval_batch"),
        Recipe::EvaluationNoGrad => file!("eval_no_grad"),
        Recipe::OffloadActivations => file!("offload_activations"),
        Recipe::Del(_) => file!("del"),
        Recipe::LastUse(_) => file!("last_use"),
        Recipe::ParametersBf16 => file!("params_bf16"),
        Recipe::AutocastCacheOff => file!("autocast_cache_off"),
        Recipe::Freeze(Frozen::Embedding) => file!("freeze_embedding"),
        Recipe::Shard(_) => file!("shard"),
        Recipe::Autocast(_) | Recipe::Freeze(Frozen::Lower) => return None,
    };
    // Names of the files stand for the numbers of a recipe.
    let text = text.trim_end();
    Some(match recipe {
        Recipe::Accumulate(n) | Recipe::ChunkedLoss(n) => text.replace("PARTS", &n.to_string()),
        Recipe::Shard(n) => text.replace("RANKS", &n.to_string()),
        Recipe::Batch(k) | Recipe::Sequence(k) | Recipe::EvaluationBatch(k) => {
            text.replace("FACTOR", &k.to_string())
        }
        _ => text.to_owned(),
    })
}

/// An edit in lines: where and what, then the snippet, indented. Blank lines are left out.
pub fn edit_text(edit: &EditRecord) -> String {
    let EditRecord { recipe, place, what, snippet } = edit;
    let at = place.as_ref().map_or(String::new(), |place| format!(" at {place}"));
    let mut text = format!("{recipe}{at}: {what}.");
    for line in snippet.lines().filter(|line| !line.is_empty()) {
        text.push_str("\n    ");
        text.push_str(line);
    }
    text
}
