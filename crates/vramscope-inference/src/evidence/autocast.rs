//! Autocast: whether it casts weights, and keeps the casts.

use super::Run;
use super::marks::Mark;
use super::proof::{Enabled, Proof};
use crate::category::Category;
use crate::recipes::facts::{Facts, Pass};
use crate::recipes::lives::{Life, Lives};
use crate::step_phases::StepPhase;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::{Budget, strides};

/// Parameters of at least this many bytes show whether autocast is on.
const LARGE_PARAMETER: u64 = 64 << 10;

/// Autocast is on if this share of the sizes of large parameters occurs halved in forward, in
/// percent.
const AUTOCAST_PERCENT: usize = 60;

/// Casts have half the size of weights. Autocast is on if they have at least this share of the
/// parameters' bytes, in percent: blocks of data have the size of a cast by chance.
const MIN_CAST: u64 = 15;

/// Finds whether autocast is on, and which blocks are its copies of weights.
///
/// Of the blocks that a linear layer makes with half the size of a weight, the first is the copy,
/// and the second may be the layer's result.
pub(crate) async fn find(lives: &mut Lives, facts: &mut Facts, budget: &mut Budget) {
    let sizes = sizes_of_casts(lives, budget).await;
    let large = facts.parameters.keys().filter(|&&bytes| bytes >= LARGE_PARAMETER);
    let halved = large.clone().filter(|&&bytes| sizes.contains(&(bytes / 2))).count();
    facts.may_cast = halved > 0 && halved * 100 >= AUTOCAST_PERCENT * large.count();
    if facts.may_cast {
        mark_copies(lives, facts, budget).await;
        facts.has_autocast = is_confirmed(lives, facts);
    }
    if !facts.has_autocast {
        facts.data_sizes.clear();
        for part in strides(lives.all.len()) {
            budget.charge(part.len() as u64).await;
            let forward = |life: &&mut Life| life.phase == StepPhase::Forward;
            for life in lives.all[part].iter_mut().filter(forward) {
                life.is_weight_copy = false;
                if life.category == Category::Activation {
                    facts.data_sizes.insert(life.bytes);
                }
            }
        }
    }
}

async fn mark_copies(lives: &mut Lives, facts: &mut Facts, budget: &mut Budget) {
    let mut last: FxHashMap<u64, (f64, Option<StackId>)> = FxHashMap::default();
    for part in strides(lives.all.len()) {
        budget.charge(4 * part.len() as u64).await;
        for index in part {
            let life = lives.all[index];
            if life.phase != StepPhase::Forward || !facts.is_half_of_parameter(life.bytes) {
                continue;
            }
            let before = last.insert(life.bytes, (life.begin, life.stack));
            let is_first =
                before.is_none_or(|(begin, stack)| life.begin - begin > 6.0 || stack != life.stack);
            if is_first && lives.is_made_by(&life, Mark::LINEAR, 2) {
                lives.all[index].is_weight_copy = true;
            } else {
                facts.data_sizes.insert(life.bytes);
            }
        }
    }
}

/// Whether a pass with call stacks has frames of autocast, or casts of enough weights.
fn is_confirmed(lives: &Lives, facts: &Facts) -> bool {
    let Some(pass) = facts.typical() else { return true };
    let made = || lives.all[lives.born(pass.begin, pass.end)].iter();
    if made().all(|life| lives.frames(life).is_empty())
        || made().any(|life| lives.mark(life).has(NAMED))
    {
        return true;
    }
    // More blocks of one size than weights are data.
    let mut sizes: BTreeMap<u64, u32> = BTreeMap::new();
    for life in casts(lives, facts, pass) {
        *sizes.entry(life.bytes).or_default() += 1;
    }
    let parameters = &facts.parameters;
    let weights: u64 = parameters.iter().map(|(bytes, count)| bytes * u64::from(*count)).sum();
    let at_most = |bytes: u64| parameters.get(&(bytes * 2)).copied().unwrap_or(0);
    let certain = sizes.iter().map(|(&bytes, &n)| bytes * u64::from(n.min(at_most(bytes))));
    certain.sum::<u64>() * 100 >= weights * MIN_CAST
}

/// Sizes that autocast may have made of weights in forward.
///
/// A layer casts its weight and makes its result in one call, so the next block has an equal stack.
/// Without autocast a layer makes one block. Dropout and norms make several, and no copies.
async fn sizes_of_casts(lives: &Lives, budget: &mut Budget) -> FxHashSet<u64> {
    let may_cast = |life: &Life| {
        !lives.is_made_by(life, Mark::TORCH, 1)
            || lives.is_made_by(life, Mark::LINEAR.or(Mark::CONVOLUTION), 2)
    };
    let forward =
        |life: &&Life| life.phase == StepPhase::Forward && life.category != Category::Workspace;
    let mut sizes = FxHashSet::default();
    let mut before: Option<&Life> = None;
    for part in strides(lives.all.len()) {
        budget.charge(4 * part.len() as u64).await;
        for next in lives.all[part].iter().filter(forward) {
            let cast = before.replace(next).filter(|life| {
                may_cast(life) && (life.stack == next.stack || lives.frames(life).is_empty())
            });
            sizes.extend(cast.map(|life| life.bytes));
        }
    }
    sizes
}

/// The casts of weights in a pass: a linear layer's or a convolution's first block with half the
/// size of a parameter, before its result.
fn casts<'r>(lives: &'r Lives, facts: &Facts, pass: &Pass) -> Vec<&'r Life> {
    let made = lives.all[lives.born(pass.begin, pass.end)].iter();
    let made: Vec<&Life> = made.filter(|life| !lives.frames(life).is_empty()).collect();
    let next = made.iter().skip(1).map(|life| life.stack).chain([None]);
    let is_cast = |life: &Life, next| {
        let is_half = facts.is_half_of_parameter(life.bytes);
        life.is_weight_copy
            || (is_half && life.stack == next && lives.is_made_by(life, Mark::CONVOLUTION, 2))
    };
    let casts = made.iter().zip(next).filter(|(life, next)| is_cast(life, *next));
    casts.map(|(life, _)| *life).collect()
}

/// Whether forward runs under autocast.
pub(crate) fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let pass = run.typical()?;
    let named = run.made_in(pass).find(|(_, life)| run.lives.mark(life).has(NAMED));
    let by = named.and_then(|(_, life)| run.marked_frame(life, NAMED));
    if !run.facts.has_autocast {
        let is_off = by.is_none()
            && !run.facts.may_cast
            && pass.backward.is_some()
            && run.element() == Some(4)
            && run.is_eager(pass);
        let count = run.training().count() as u32;
        return is_off.then(|| (Enabled::Off, Proof { count, ..Proof::default() }));
    }
    let casts = casts(run.lives, run.facts, pass);
    let proof = Proof {
        site: run.site(casts.first()?),
        by,
        count: casts.len() as u32,
        bytes: casts.iter().map(|life| life.bytes).sum(),
        ..Proof::default()
    };
    Some((Enabled::On, proof))
}

/// Frames of autocast itself.
const NAMED: Mark = Mark::AUTOCAST.or(Mark::CACHED_CAST);

/// Whether casts that backward does not need die after their use: they show whether autocast keeps
/// casts to its end.
pub(crate) fn are_casts_short(run: Run<'_>) -> Option<(Enabled, Proof)> {
    is_on(run).filter(|(state, _)| *state == Enabled::On)?;
    let casts = casts(run.lives, run.facts, run.typical()?);
    let in_backward =
        |life: &&&Life| life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward);
    let site = casts.first().and_then(|life| run.site(life));
    let free: Vec<&&Life> = casts.iter().filter(|life| !in_backward(life)).collect();
    let short = free.iter().filter(|life| life.end < life.begin + SHORT).count();
    let state = match free.len() {
        few if few < MIN_CASTS => return None,
        all if short * 10 >= all * 8 => Enabled::On,
        all if short * 10 <= all * 2 => Enabled::Off,
        _ => return None,
    };
    let bytes = free.iter().map(|life| life.bytes).sum();
    Some((state, Proof { site, count: free.len() as u32, bytes, ..Proof::default() }))
}

/// A cast that is not kept dies within this many events.
const SHORT: f64 = 12.0;

/// Fewer casts without use in backward tell nothing.
const MIN_CASTS: usize = 2;
