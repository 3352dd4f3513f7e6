//! Which recipes lead from one run to another.

use super::traits::{Made, Traits};
use super::{Enabled, Features, OptimizationKind as Kind};
use crate::recipes::recipe::{AutocastChange, Checkpointed, Frozen, NewOptimizer, Recipe, When};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The recipes that lead from one run of a program to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Recipes that lead from the first run to the second.
    pub recipes: Vec<Recipe>,
    /// A change that sizes cannot tell from the batch, with equal effect: longer sequences.
    pub or: Option<Recipe>,
    /// Optimizations of the first run that the second has not.
    pub undone: Vec<Kind>,
    /// Optimizations of the first run that the second neither shows nor excludes.
    pub unclear: Vec<Kind>,
}

impl Features {
    /// The recipes that lead to a later run. `None` if the models differ, or if no recipe has the
    /// change.
    pub fn changes_to(&self, after: &Self) -> Option<Changes> {
        let mut changes = Changes::default();
        if is_sharded(self) && !is_sharded(after) {
            return None;
        }
        let shard = shard(self, after);
        let precision = if shard.is_some() { None } else { precision(&self.traits, &after.traits) };
        let is_low = precision.is_some();
        changes.recipes.extend(precision);
        let is_one_model = is_low || shard.is_some() || is_one_model(&self.traits, &after.traits);
        if !is_one_model {
            return None;
        }
        changes.recipes.extend(shard);
        optimizer(self, after, &mut changes);
        blocks(self, after, &mut changes)?;
        let has_other_size =
            is_low || changes.recipes.iter().any(|recipe| matches!(recipe, Recipe::Autocast(_)));
        batch(self, after, has_other_size, &mut changes)?;
        // With OptimizerInBackward, gradients die at once: they do not show frozen parameters.
        if !changes.undone.contains(&Kind::OptimizerInBackward) {
            changes.recipes.extend(frozen(&self.traits, &after.traits));
        }
        let kinds = [Kind::Checkpoint, Kind::ChunkedLoss, Kind::UpcastOff, Kind::EvaluationNoGrad];
        let is_unclear = |kind: &Kind| self.is(*kind, Enabled::On) && after.of(*kind).is_none();
        changes.unclear.extend(kinds.into_iter().filter(is_unclear));
        if changes.recipes.is_empty() && changes.undone.is_empty() {
            changes.recipes.extend(dropped(&self.traits, &after.traits));
        }
        Some(changes)
    }

    /// Whether an optimization came: it was off before.
    fn gains(&self, after: &Self, kind: Kind) -> bool {
        self.is(kind, Enabled::Off) && after.is(kind, Enabled::On)
    }

    fn loses(&self, after: &Self, kind: Kind) -> bool {
        self.is(kind, Enabled::On) && after.is(kind, Enabled::Off)
    }
}

/// Parameters in 16 bits instead of 32.
fn precision(a: &Traits, b: &Traits) -> Option<Recipe> {
    let sizes = |of: &BTreeMap<u64, u32>, by: u64| -> BTreeMap<u64, u32> {
        of.iter().map(|(bytes, count)| (bytes / by, *count)).collect()
    };
    let is_half = !a.parameters.is_empty() && sizes(&a.parameters, 2) == b.parameters;
    is_half.then_some(Recipe::ParametersBf16)
}

fn total(sizes: &BTreeMap<u64, u32>) -> u64 {
    sizes.iter().map(|(bytes, count)| bytes * u64::from(*count)).sum()
}

/// Parameters over ranks.
fn shard(a: &Features, b: &Features) -> Option<Recipe> {
    let (before, after) = (total(&a.traits.parameters), total(&b.traits.parameters));
    let ranks = (before as f64 / (after as f64).max(1.0)).round();
    let is_new = !is_sharded(a) && is_sharded(b) && (2.0..=1024.0).contains(&ranks);
    is_new.then_some(Recipe::Shard(ranks as u32))
}

fn is_sharded(of: &Features) -> bool {
    of.is(Kind::Shard, Enabled::On)
}

/// Parameters of one program may differ by one percent of their bytes: one is allocated again, or
/// gets another category.
fn is_one_model(a: &Traits, b: &Traits) -> bool {
    let (before, after) = (total(&a.parameters), total(&b.parameters));
    before > 0 && before.abs_diff(after) * 100 <= before
}

fn optimizer(a: &Features, b: &Features, changes: &mut Changes) {
    let recipes = &mut changes.recipes;
    if a.gains(b, Kind::OptimizerInBackward) {
        recipes.push(Recipe::OptimizerInBackward);
    } else if a.gains(b, Kind::EightBitOptimizer) {
        recipes.push(Recipe::Optimizer(NewOptimizer::EightBit));
    } else if a.gains(b, Kind::NoStates) {
        recipes.push(Recipe::Optimizer(NewOptimizer::Sgd));
    } else if a.gains(b, Kind::FusedOptimizer) {
        recipes.push(Recipe::Optimizer(NewOptimizer::Fused));
    } else if a.gains(b, Kind::ForeachOff) {
        recipes.push(Recipe::ForeachOff);
    } else {
        let kinds = [
            Kind::OptimizerInBackward,
            Kind::EightBitOptimizer,
            Kind::NoStates,
            Kind::FusedOptimizer,
            Kind::ForeachOff,
        ];
        changes.undone.extend(kinds.into_iter().filter(|&kind| a.loses(b, kind)));
    }
    let in_backward = changes.recipes.contains(&Recipe::OptimizerInBackward)
        || changes.undone.contains(&Kind::OptimizerInBackward);
    if !in_backward {
        if a.gains(b, Kind::ZeroGradEarly) {
            changes.recipes.push(Recipe::ZeroGrad(When::Early));
        } else if a.loses(b, Kind::ZeroGradEarly) {
            // Gradients that are never freed are no recipe.
            let is_kept = b.of(Kind::ZeroGradEarly).is_some_and(|of| of.proof.of == 1);
            if is_kept {
                changes.undone.push(Kind::ZeroGradEarly);
            } else {
                changes.recipes.push(Recipe::ZeroGrad(When::Late));
            }
        }
    }
}

/// The model's blocks, its attention, its loss, autocast and evaluation. `None`: a change has no
/// name.
fn blocks(a: &Features, b: &Features, changes: &mut Changes) -> Option<()> {
    use Enabled::{Off, On, Partly};
    let state = |of: &Features, kind| of.of(kind).map(|of| of.state);
    let (before, after) = (state(a, Kind::Checkpoint), state(b, Kind::Checkpoint));
    let calls =
        |of: &Features, kind| of.of(kind).map_or((0, 0), |of| (of.proof.count, of.proof.of));
    match (before, after) {
        (Some(Off), Some(On)) => changes.recipes.push(Recipe::Checkpoint(Checkpointed::All)),
        (Some(Off), Some(Partly)) => {
            let (count, of) = calls(b, Kind::Checkpoint);
            if count != of.div_ceil(2) {
                return None;
            }
            changes.recipes.push(Recipe::Checkpoint(Checkpointed::Half));
        }
        (Some(On | Partly), Some(Off)) => changes.undone.push(Kind::Checkpoint),
        (before, after) if before != after && before.is_some() && after.is_some() => return None,
        _ => {}
    }
    let is_chunked = match (state(a, Kind::ChunkedLoss), state(b, Kind::ChunkedLoss)) {
        (Some(Off), Some(On)) => {
            let parts = calls(b, Kind::ChunkedLoss).0;
            if parts < 2 {
                return None;
            }
            changes.recipes.push(Recipe::ChunkedLoss(parts));
            true
        }
        (Some(On), Some(Off)) => {
            changes.undone.push(Kind::ChunkedLoss);
            true
        }
        _ => false,
    };
    if !is_chunked && a.gains(b, Kind::UpcastOff) {
        changes.recipes.push(Recipe::UpcastOff);
    }
    let offloads = |of: &Features| of.is(Kind::OffloadActivations, On);
    match (offloads(a), offloads(b)) {
        (false, true) => changes.recipes.push(Recipe::OffloadActivations),
        (true, false) => changes.undone.push(Kind::OffloadActivations),
        _ => {}
    }
    let has_maps = |of: &Features| of.is(Kind::FlashAttention, Off);
    if has_maps(a) && !b.traits.has_maps && !b.traits.training.is_empty() {
        changes.recipes.push(Recipe::FlashAttention);
    } else if a.is(Kind::FlashAttention, On) && has_maps(b) {
        changes.undone.push(Kind::FlashAttention);
    }
    let casts = |of: &Features| of.is(Kind::Autocast, On);
    let is_plain = |of: &Features| !of.traits.has_autocast && !of.traits.training.is_empty();
    if is_plain(a) && casts(b) {
        changes.recipes.push(Recipe::Autocast(AutocastChange::Bf16));
    } else if casts(a) && is_plain(b) {
        changes.recipes.push(Recipe::Autocast(AutocastChange::Off));
    } else if a.gains(b, Kind::AutocastCacheOff) {
        changes.recipes.push(Recipe::AutocastCacheOff);
    }
    if a.gains(b, Kind::EvaluationNoGrad) {
        changes.recipes.push(Recipe::EvaluationNoGrad);
    } else if a.loses(b, Kind::EvaluationNoGrad) {
        changes.undone.push(Kind::EvaluationNoGrad);
    }
    Some(())
}

/// How sizes differ that grow with tokens.
#[derive(Clone, Copy, Debug)]
struct Growth {
    factor: f64,
    /// A size grows with the square of the factor.
    has_square: bool,
    /// A size does not grow: it is that of one sequence.
    has_constant: bool,
    /// A size does not grow, but there are as many more of it: one for each token.
    has_more: bool,
}

/// Factors of a batch are parts of this: halves, thirds, eighths.
const PARTS: f64 = 24.0;

/// How far a factor may be from such a part.
const MAX_PART_ERROR: f64 = 0.03;

/// How far inputs may be from the factor: each text may have one token more.
const MAX_INPUT_ERROR: f64 = 0.01;

/// Fewer call sites in both runs tell nothing.
const MIN_SITES: usize = 4;

/// The factor of most call sites, in percent of them.
const MOST: usize = 70;

fn is_near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.02
}

fn growth(a: &FxHashMap<u64, Made>, b: &FxHashMap<u64, Made>) -> Option<Growth> {
    let pairs = a.iter().filter_map(|(site, a)| Some((*a, *b.get(site)?)));
    let pairs: Vec<(Made, Made)> = pairs.filter(|(a, _)| a.bytes > 0).collect();
    let mut ratios: Vec<f64> = pairs.iter().map(|(a, b)| b.each() / a.each()).collect();
    if ratios.len() < MIN_SITES {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let factor = ratios[ratios.len() / 2];
    let near = ratios.iter().filter(|&&ratio| is_near(ratio, factor)).count();
    let has_square =
        !is_near(factor, 1.0) && ratios.iter().any(|&ratio| is_near(ratio, factor * factor));
    let constant = || pairs.iter().filter(|(a, b)| is_near(b.each() / a.each(), 1.0));
    let has_constant = constant().any(|(a, b)| a.count == b.count);
    let more = |a: &Made, b: &Made| is_near(f64::from(b.count) / f64::from(a.count), factor);
    let has_more = !is_near(factor, 1.0) && constant().any(|(a, b)| more(a, b));
    let is_most = near * 100 >= ratios.len() * MOST;
    is_most.then_some(Growth { factor, has_square, has_constant, has_more })
}

/// Whether a size of one sequence grows by the factor: positions, which the program makes itself.
/// Sequences are longer than a batch has of them.
fn has_part(
    a: &FxHashMap<u64, Made>,
    b: &FxHashMap<u64, Made>,
    tokens: Option<u64>,
    factor: f64,
) -> bool {
    let tokens = tokens.unwrap_or(0);
    let is_of_sequence = |bytes: u64| {
        let length = bytes / 8;
        let fits = length > 0 && bytes.is_multiple_of(8) && tokens.is_multiple_of(length);
        fits && (2..length).contains(&(tokens / length))
    };
    a.iter().any(|(site, of)| {
        let after = b.get(site).filter(|after| is_near(after.each() / of.each(), factor));
        of.is_own && of.count <= 2 && after.is_some() && is_of_sequence(of.each() as u64)
    })
}

/// Three digits of a factor: `0.333`.
fn rounded(factor: f64) -> f64 {
    (factor * 1000.0).round() / 1000.0
}

/// Another batch, longer sequences, micro-batches. `None`: sizes differ in a way that has no name.
fn batch(a: &Features, b: &Features, has_other_size: bool, changes: &mut Changes) -> Option<()> {
    let (a, b) = (&a.traits, &b.traits);
    let (Some(before), Some(after)) = (a.passes, b.passes) else { return Some(()) };
    if a.training.is_empty() || b.training.is_empty() {
        return Some(());
    }
    let growth_of_pass = if has_other_size {
        let same = a.inputs > 0 && a.inputs == b.inputs;
        same.then_some(Growth {
            factor: 1.0,
            has_square: false,
            has_constant: true,
            has_more: false,
        })?
    } else {
        growth(&a.training, &b.training)?
    };
    let parts = f64::from(after) / f64::from(before);
    let of_step = rounded(growth_of_pass.factor * parts);
    if !is_near(of_step, 1.0) {
        let Growth { has_square, has_constant, has_more, factor } = growth_of_pass;
        // Texts of other lengths are no change of the program, nor is an odd factor.
        let part = (factor * PARTS - (factor * PARTS).round()).abs();
        if !(a.is_steady && b.is_steady) || part > MAX_PART_ERROR {
            return None;
        }
        // Inputs grow by the factor, too. Else something else changed.
        let of_inputs = b.inputs as f64 / (a.inputs as f64).max(1.0);
        if a.inputs > 0 && b.inputs > 0 && (of_inputs / factor - 1.0).abs() > MAX_INPUT_ERROR {
            return None;
        }
        // Images have no tokens. Micro-batches are parts of a batch.
        let has_tokens = after == before && a.tokens.is_some();
        let may_be_sequence = has_tokens && (!has_constant || has_more);
        let has_part = || has_part(&a.training, &b.training, a.tokens, factor);
        let is_sequence =
            (has_tokens && (has_square || has_more)) || (may_be_sequence && has_part());
        let recipe = if is_sequence { Recipe::Sequence } else { Recipe::Batch };
        changes.recipes.push(recipe(of_step));
        if may_be_sequence && !is_sequence {
            changes.or = Some(Recipe::Sequence(of_step));
        }
    }
    if after > before {
        if !after.is_multiple_of(before) {
            return None;
        }
        changes.recipes.push(Recipe::Accumulate(after / before));
    } else if after < before {
        changes.undone.push(Kind::Accumulate);
    }
    let of_evaluation =
        growth(&a.evaluation, &b.evaluation).filter(|_| !has_other_size).map(|of| of.factor);
    if let Some(factor) = of_evaluation.map(|factor| rounded(factor / of_step))
        && !is_near(factor, 1.0)
    {
        changes.recipes.push(Recipe::EvaluationBatch(factor));
    }
    Some(())
}

/// Parameters without gradients that had some.
fn frozen(a: &Traits, b: &Traits) -> Option<Recipe> {
    if a.parameters != b.parameters || a.gradients.is_empty() || b.gradients.is_empty() {
        return None;
    }
    let count = |of: &BTreeMap<u64, u32>, bytes| of.get(&bytes).copied().unwrap_or(0);
    let missing: Vec<u64> = a
        .gradients
        .iter()
        .filter(|&(&bytes, &count_in_a)| count(&b.gradients, bytes) < count_in_a)
        .map(|(&bytes, _)| bytes)
        .collect();
    let is_subset = b.gradients.iter().all(|(&bytes, &in_b)| in_b <= count(&a.gradients, bytes));
    let is_embedding = |bytes: &u64| a.embeddings.contains(bytes);
    let is_frozen = is_subset && missing.iter().any(is_embedding);
    is_frozen.then(|| {
        let only = missing.iter().all(is_embedding);
        Recipe::Freeze(if only { Frozen::Embedding } else { Frozen::Lower })
    })
}

/// The line whose results are not held any more.
fn dropped(a: &Traits, b: &Traits) -> Option<Recipe> {
    let mut gone = a.held.iter().filter(|held| {
        let is_in_b = |other: &super::traits::Held| other.function == held.function;
        !b.held.iter().any(is_in_b) && b.functions.contains(&held.function)
    });
    let first = gone.next()?;
    let rest: u64 = gone.map(|held| held.bytes).sum();
    (rest < first.bytes).then(|| Recipe::Del(first.line.clone()))
}
