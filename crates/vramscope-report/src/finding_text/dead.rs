//! The words of memory that is never read again.

use super::{Words, counted};
use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use vramscope_inference::{DeadAtPeak, Finding};
use vramscope_snapshot::StackId;
use vramscope_units::Bytes;

pub(super) fn dead(entry: &SnapshotEntry, finding: &Finding, facts: &DeadAtPeak) -> Words {
    let first = finding.events.first().copied();
    let named = finding.parts.iter().find(|part| part.stack != StackId::EMPTY);
    let site = named.map(|part| site(entry, part.stack));
    let blocks = counted(finding.blocks as usize, "block");
    let most = site.as_ref().map_or_else(String::new, |site| format!(", most of it from {site}"));
    let index = entry.traces.iter().position(|trace| trace.device.device == finding.device);
    let uses = index.and_then(|index| entry.uses(index).ok());
    let last = uses.and_then(|uses| uses.last_operation(facts.example));
    let step = facts.step.map_or_else(|| "the traced step".to_owned(), |n| format!("step {n}"));
    let mut text = format!(
        "At the peak of {step} ({}) {blocks} ({}) hold what no operation uses again{most}. {}.",
        facts.peak,
        Bytes(finding.bytes),
        super::simulated::capitalized(&why(facts)),
    );
    if !facts.is_of_run {
        text.push_str(" Another step sets the peak of the run.");
    }
    if facts.not_seen.0 > 0 {
        text = format!("{text} No operation was seen to use {} more.", facts.not_seen);
    }
    if facts.has_unseen_kernels {
        text.push_str(
            " Kernels ran that PyTorch's dispatcher does not call, such as those of torch.compile: \
             they may use it.",
        );
    }
    let after = last.map_or_else(String::new, |last| format!(" ({last})"));
    let action = match site {
        Some(site) => format!(
            "`del` what {site} makes after its last use{after}: only references of the program \
             keep it allocated."
        ),
        None => "Use gradients as they come (an optimizer in backward), or drop what holds these \
                 blocks."
            .to_owned(),
    };
    Words {
        title: Sentence::new("Memory at the peak is never read again: ")
            .event(Bytes(finding.bytes), first),
        text,
        action,
    }
}

/// The line about it.
pub(super) fn why(facts: &DeadAtPeak) -> String {
    format!("if each block of the step died at its last use, its peak would be {}", facts.floor)
}
