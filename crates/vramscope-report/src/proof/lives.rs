//! The lives of the largest blocks of a finding, over the phases of the program.

use super::{Proof, ProofForm, stacks};
use crate::frames::site;
use crate::target::Target;
use crate::text::{self, NO_STACK};
use std::cmp::Reverse;
use vramscope_inference::{Category, Finding, FindingKind, Phase, PhaseSpan};
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;
use vramscope_units::EventIndex;

/// The maximum number of blocks.
const MAX_BLOCKS: usize = 3;

/// Blocks below this part of the largest are left out.
const LEAST_DIVISOR: u64 = 4;

/// More phases are too narrow to see.
const MAX_PHASES: usize = 60;

/// A phase behind the lives of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Its first state.
    pub from: u32,
    /// The first state after it.
    pub to: u32,
    /// The phase.
    pub phase: Phase,
}

/// The lives of the largest blocks of a finding that are live in a state.
pub(super) async fn lives<'a>(
    target: Target<'a>,
    finding: &Finding,
    title: &str,
    moment: u32,
    budget: &mut Budget,
) -> Option<Proof> {
    let stacks = stacks(finding);
    let trace = target.trace();
    let categories = target.entry.categories(target.index);
    // Backward allocates more without call stacks than gradients.
    let only = (finding.kind() == FindingKind::GradientsHeld).then_some(Category::Gradient);
    let mut largest: Vec<(u32, &Block)> = Vec::new();
    let visit = |index, block: &'a Block| {
        if !block.is_live_at(moment) || !stacks.contains(&block.stack) {
            return;
        }
        if only.is_none_or(|only| categories.get(index).category == only) {
            let at = largest.partition_point(|(_, known)| known.bytes >= block.bytes);
            largest.insert(at, (index, block));
            largest.truncate(MAX_BLOCKS);
        }
    };
    trace.each_block(1, budget, visit).await;
    // A small block is no part of what the largest show.
    let least = largest.first()?.1.bytes.0 / LEAST_DIVISOR;
    largest.retain(|(_, block)| block.bytes.0 >= least);
    largest.sort_by_key(|(_, block)| (block.enters, Reverse(block.bytes)));
    let from = largest.iter().map(|(_, block)| block.enters).min()?;
    let to = largest.iter().map(|(_, block)| block.leaves).max()?;
    let mut proof = Proof::new(ProofForm::Lives, title);
    let mut words = Vec::new();
    for (index, block) in largest {
        let begin = match block.enters.checked_sub(1) {
            Some(event) => EventIndex(event).to_string(),
            None => "before the window".to_owned(),
        };
        let end = if block.leaves == trace.slots() {
            "the end".to_owned()
        } else {
            EventIndex(block.leaves - 1).to_string()
        };
        let site = site(target.entry, block.stack);
        let category = text::category(categories.get(index).category);
        proof.labels.push(if site == NO_STACK { category.to_owned() } else { site });
        proof.values.push(block.bytes.0);
        proof.spans.push([block.enters, block.leaves]);
        words.push(format!("{} from {begin} to {end}", block.bytes));
    }
    proof.moment = Some(moment);
    proof.marked = (0..proof.values.len() as u32).collect();
    let phases = categories.phases();
    let first = phases.partition_point(|span| span.end < from);
    let end = phases.partition_point(|span| span.begin < to);
    // Event n leads to state n + 1.
    if let Some(seen) = phases.get(first..end).filter(|seen| seen.len() <= MAX_PHASES) {
        let ground =
            |span: &PhaseSpan| Ground { from: span.begin + 1, to: span.end + 1, phase: span.phase };
        proof.ground = seen.iter().map(ground).collect();
    }
    proof.text = format!("{}: {}", proof.title, words.join(", "));
    Some(proof)
}
