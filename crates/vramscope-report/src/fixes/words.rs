//! The words of changes.

use super::candidates::Candidate;
use crate::target::Target;
use crate::what_if::{Outcome, place};
use vramscope_inference::{
    Applied, Checkpointed, Cost, Covers, Fix, Frozen, NewOptimizer, PeakPart, Recipe, When,
};
use vramscope_snapshot::FrameId;
use vramscope_trace::is_generated_file;
use vramscope_units::Bytes;

/// Settings to change, as the variable that has them.
pub(super) fn of_settings(conf: &str) -> String {
    format!("PYTORCH_CUDA_ALLOC_CONF={conf}")
}

/// What to change beside settings, each in a few words.
pub(super) fn changes(target: Target<'_>, recipes: &[Recipe], applied: &[Applied]) -> Vec<String> {
    let of = |(recipe, applied): (&Recipe, &Applied)| of_recipe(target, recipe, applied);
    recipes.iter().zip(applied).map(of).collect()
}

fn of_recipe(target: Target<'_>, recipe: &Recipe, applied: &Applied) -> String {
    let at = || site(target, applied).map_or_else(String::new, |site| format!(" ({site})"));
    match recipe {
        Recipe::Batch(k) => format!("{k} x the batch"),
        Recipe::Sequence(k) => format!("{k} x the sequence length"),
        Recipe::Accumulate(n) => format!("gradients accumulated over {n} micro-batches"),
        Recipe::Checkpoint(Checkpointed::Half) => {
            format!("every other block checkpointed{}", at())
        }
        Recipe::Checkpoint(_) => format!("{} blocks checkpointed{}", applied.changed, at()),
        Recipe::ChunkedLoss(n) => format!("logits and loss in {n} chunks{}", at()),
        Recipe::UpcastOff => "no fp32 copy of the logits".to_owned(),
        Recipe::FlashAttention => "scaled_dot_product_attention".to_owned(),
        Recipe::ForeachOff => "foreach=False".to_owned(),
        Recipe::Optimizer(NewOptimizer::Fused) => "fused=True".to_owned(),
        Recipe::Optimizer(NewOptimizer::Sgd) => "SGD without momentum".to_owned(),
        Recipe::Optimizer(NewOptimizer::EightBit) => "8-bit optimizer states".to_owned(),
        Recipe::Optimizer(NewOptimizer::Adafactor) => "Adafactor".to_owned(),
        Recipe::Optimizer(NewOptimizer::Muon) => "Muon".to_owned(),
        Recipe::ZeroGrad(When::Early) => "zero_grad right after step()".to_owned(),
        Recipe::ZeroGrad(When::Late) => "zero_grad before backward".to_owned(),
        Recipe::OptimizerInBackward => "the optimizer in backward hooks".to_owned(),
        Recipe::ParametersBf16 => "the model in bf16".to_owned(),
        Recipe::Autocast(_) => recipe.to_string(),
        Recipe::AutocastCacheOff => "autocast(cache_enabled=False)".to_owned(),
        Recipe::OffloadActivations => "activations offloaded to the CPU".to_owned(),
        Recipe::Freeze(Frozen::Embedding) => "the embedding frozen".to_owned(),
        Recipe::Freeze(Frozen::Lower) => "the lower half frozen".to_owned(),
        Recipe::Shard(n) => format!("FSDP over {n} ranks"),
        Recipe::EvaluationNoGrad => "torch.no_grad() for the evaluation".to_owned(),
        Recipe::EvaluationBatch(k) => format!("{k} x the batch of the evaluation"),
        Recipe::Del(site) => format!("del of what {site} keeps, after backward"),
        Recipe::LastUse(site) => format!("del of what {site} makes, after its last use"),
    }
}

/// The cure of a part of the peak, with what the trace shows of it.
pub(super) fn of_peak_part(target: Target<'_>, part: &PeakPart) -> Fix {
    let applied = Applied { site: part.site, changed: 1, had_it: false };
    let text = of_recipe(target, &part.cure, &applied);
    Fix {
        short: text.clone(),
        text,
        recipe: part.cure.to_string(),
        conf: None,
        outcome: Outcome::Unknown,
        needs_bytes: Bytes(part.without),
        short_by: None,
        saving_bytes: Bytes(part.saving),
        cost: match part.cure {
            Recipe::ChunkedLoss(_) => Cost::Time,
            _ => Cost::Edit,
        },
        covers: Covers::Run,
        error_percent: None,
        site: site(target, &applied),
    }
}

/// The line that a recipe changes: `gpt.py:44`.
pub(super) fn site(target: Target<'_>, applied: &Applied) -> Option<String> {
    let is_of_program = |frame: &FrameId| {
        let file = target.snapshot().frame(*frame).file;
        !is_generated_file(&target.snapshot().text(file))
    };
    applied.site.filter(is_of_program).map(|frame| place(target, frame))
}

/// A known cause of memory, and its cure; `None` for changes without one.
pub(super) fn cause(candidate: &Candidate) -> Option<&'static str> {
    Some(match candidate.recipes[..] {
        [Recipe::FlashAttention] => "attention scores: F.scaled_dot_product_attention",
        [Recipe::ChunkedLoss(_)] => "copies of the logits: chunked or fused cross-entropy",
        [Recipe::UpcastOff] => "fp32 copy of the logits: a loss that takes bf16",
        [Recipe::ForeachOff | Recipe::Optimizer(NewOptimizer::Fused)] => {
            "optimizer temporaries: fused=True"
        }
        [Recipe::AutocastCacheOff] => "autocast copies of weights: bf16 weights",
        [Recipe::EvaluationNoGrad] => "graphs of the evaluation: torch.no_grad()",
        [Recipe::ZeroGrad(When::Early)] => "old gradients in forward: zero_grad after step()",
        _ => return None,
    })
}

/// Whether everybody tries it: it is named even if it does not help.
pub(super) fn is_tried(candidate: &Candidate) -> bool {
    matches!(candidate.recipes[..], [] | [Recipe::ForeachOff])
}

/// What to do, and what does not help, in sentences. Empty without changes.
pub(crate) fn sentences(fixes: &[Fix]) -> Vec<String> {
    let mut sentences = Vec::new();
    let of = |outcome: Outcome| fixes.iter().filter(move |fix| fix.outcome == outcome);
    let fitting: Vec<String> =
        of(Outcome::Fits).map(|fix| format!("{} (needs {})", fix.text, fix.needs_bytes)).collect();
    if !fitting.is_empty() {
        sentences.push(format!("It fits with {}.", fitting.join(", or ")));
    }
    let close: Vec<&str> = of(Outcome::FitsBarely).map(|fix| fix.text.as_str()).collect();
    if !close.is_empty() {
        sentences.push(format!("Too close to tell: {}.", close.join(", or ")));
    }
    let short: Vec<String> = of(Outcome::Short)
        .map(|fix| match fix.short_by {
            Some(bytes) => format!("{} ({bytes} short)", fix.text),
            None => fix.text.clone(),
        })
        .collect();
    if !short.is_empty() {
        sentences.push(format!("Not enough: {}.", short.join(", ")));
    }
    sentences
}
