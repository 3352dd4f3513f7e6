//! Another batch: what grows with tokens is scaled.

use super::growth::{is_near, of_step};
use super::prelude::*;
use crate::recipes::scaled;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::StackId;

/// A call stack is compared only if this many passes use it. Two equal sizes may be chance.
const MIN_COMPARED: usize = 3;

pub(super) static BATCH: Change = Change {
    form: "batch:K",
    does: "what grows with tokens is K times as large",
    error_percent: Some(2.0),
    cost: Cost::Batch,
    tries: |offer| offer.earlier_batch.into_iter().chain([0.75, 0.5]).map(Value::Factor).collect(),
    is_smaller_batch: true,
    scales_passes: true,
    apply: |lives, facts, value, _| scale(lives, facts, value.factor(), |_| true),
    compare: |_, a, b| compare(a, b, false),
    line: Line::Training,
    what: "the forward pass of a training step; the change is where its inputs are made",
    snippet: include_str!("snippets/batch.py"),
    called: |value, _| part_of(value, "batch"),
    ..Change::PLAIN
};

/// Scales what grows with tokens, and is wanted.
///
/// # Errors
/// Nothing grows.
pub(super) fn scale(
    lives: &mut Lives,
    facts: &Facts,
    factor: f64,
    is_wanted: impl Fn(&Life) -> bool,
) -> Result<Applied, Declined> {
    let fixed = fixed_sizes(lives, facts);
    let is_fixed = |life: &Life| life.stack.is_some_and(|stack| fixed.contains(&stack));
    let mut changed = 0;
    for life in &mut lives.all {
        if facts.grows(life) && !is_fixed(life) && is_wanted(life) {
            life.other *= facts.other_if_scaled(life, factor);
            life.bytes = scaled(life.bytes, factor);
            changed += 1;
        }
    }
    Applied::of(changed, Declined::NothingGrows)
}

/// The call stacks of a run without training whose blocks have one size in several passes, though
/// its inputs have several: caches of a fixed length. Training repeats one size of inputs, which
/// shows nothing.
fn fixed_sizes(lives: &Lives, facts: &Facts) -> FxHashSet<StackId> {
    if facts.training().next().is_some() {
        return FxHashSet::default();
    }
    let mut all: FxHashMap<(StackId, bool), Sizes> = FxHashMap::default();
    for life in lives.all.iter().filter(|life| facts.grows(life)) {
        let Some(stack) = life.stack else { continue };
        let pass = facts.passes.partition_point(|pass| pass.begin <= life.begin);
        let sizes = all.entry((stack, life.category == Category::Input)).or_default();
        sizes.passes.insert(pass);
        sizes.sizes.insert(life.bytes);
    }
    let inputs_vary = all.iter().any(|((_, is_input), of)| *is_input && of.sizes.len() > 1);
    let is_fixed = |of: &Sizes| of.sizes.len() == 1 && of.passes.len() >= MIN_COMPARED;
    let fixed = all.iter().filter(|(_, of)| inputs_vary && is_fixed(of));
    fixed.map(|((stack, _), _)| *stack).collect()
}

/// The sizes of the blocks of a call stack, and the passes that made them.
#[derive(Default)]
struct Sizes {
    sizes: FxHashSet<u64>,
    passes: FxHashSet<usize>,
}

/// The factor of the batch, or of the sequences.
pub(super) fn compare(a: &Features, b: &Features, is_sequence: bool) -> Compared {
    match of_step(a, b) {
        Err(unnamed) => unnamed,
        Ok(Some(of)) if !is_near(of.factor, 1.0) => match of.is_sequence {
            is if is == is_sequence => Compared::Came(Value::Factor(of.factor)),
            false if of.may_be_sequence => Compared::Or(Value::Factor(of.factor)),
            _ => Compared::Same,
        },
        Ok(_) => Compared::Same,
    }
}
