//! The words of what alone makes the peak.

use super::{Words, counted, percent};
use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use crate::text::NO_STACK;
use vramscope_inference::{Dominant, DominantCause, Finding};
use vramscope_snapshot::StackId;
use vramscope_units::Bytes;

pub(super) fn dominant(entry: &SnapshotEntry, finding: &Finding, facts: &Dominant) -> Words {
    let Dominant { cause, at_peak, next, trains } = *facts;
    // Backward's blocks have no call stack.
    let named = finding.parts.iter().find(|part| part.stack != StackId::EMPTY);
    let site = named.map_or_else(|| NO_STACK.to_owned(), |part| site(entry, part.stack));
    let first = finding.events.first().copied();
    let blocks = counted(finding.blocks as usize, "block");
    let (title, what, action): (_, _, &str) = match cause {
        DominantCause::Foreach => (
            "Temporaries of the foreach optimizer set the peak",
            format!(
                "At the peak the optimizer has {blocks} of temporaries ({at_peak}), one for each \
                 parameter at once (foreach), at {site}."
            ),
            "Pass fused=True to the optimizer: it makes no such temporaries (Adam, AdamW, SGD and \
             Adagrad have it). Or pass foreach=False: it updates one parameter after the other, \
             and is slower.",
        ),
        DominantCause::Autocast => (
            "Copies of the weights that autocast keeps are a part of the peak",
            format!(
                "Autocast keeps copies of the weights in its precision until it ends: {blocks}, \
                 {at_peak} at the peak, most of them from {site}. They do not grow with the batch."
            ),
            if trains {
                "Train with weights in that precision (model.to(torch.bfloat16)), with an \
                 optimizer made for it. Or shard the weights (FSDP): it converts a layer at a time."
            } else {
                "For inference load the weights in that precision (model.to(torch.bfloat16)), \
                 without autocast. Or pass cache_enabled=False to torch.autocast: each operation \
                 then converts its weights again."
            },
        ),
        DominantCause::Logits => (
            "Copies of the logits set the peak",
            format!(
                "At the peak {blocks} have the size of the logits, or half of it: the logits, \
                 their conversion and what the loss makes of them, {at_peak} together, \
                 most of them from {site}."
            ),
            "Compute the loss in chunks of tokens (each under activation checkpointing), or with a \
             fused kernel for the last layer and cross entropy. Convert the logits once at most.",
        ),
        DominantCause::Scores => (
            "Attention scores set the peak",
            format!(
                "At the peak {blocks} have the size of attention's scores, {at_peak} together, at \
                 {site}. They grow with the square of the sequence length."
            ),
            "Use torch.nn.functional.scaled_dot_product_attention: its fused kernels do not make \
             the scores.",
        ),
        DominantCause::Request => (
            "One request sets the peak",
            format!("At the peak one size of {site} holds {at_peak} ({blocks})."),
            "Compute it in smaller parts, or free what is not needed before it.",
        ),
    };
    Words {
        title: Sentence::new(title).text(": ").event(at_peak, first),
        text: format!(
            "{what} Without it the next lower peak is {next} ({} % of this one).",
            percent(next, Bytes(peak_of(entry, finding))),
        ),
        action: action.to_owned(),
    }
}

/// The peak of `requested_bytes` of the finding's device.
fn peak_of(entry: &SnapshotEntry, finding: &Finding) -> u64 {
    let trace = entry.traces.iter().find(|trace| trace.device.device == finding.device);
    trace.map_or(0, |trace| trace.requested_band.peak.max(0) as u64)
}
