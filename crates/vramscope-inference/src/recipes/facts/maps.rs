//! Attention maps that the program computes itself: they grow with the square of the sequence.

use crate::category::Category;
use crate::evidence::marks::Mark;
use crate::evidence::stacks::Place;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use crate::step_phases::StepPhase;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vramscope_snapshot::{FrameId, StackId};

/// The blocks of attention maps, ascending.
///
/// The size that a softmax makes is that of a map; without its frame [`by_size`] finds it. In
/// forward its half and quarter count too, but only in the function that calls the softmax, called
/// from the same line. In backward the size decides.
pub(crate) fn attention_maps(lives: &Lives, facts: &Facts) -> Vec<usize> {
    let has = |life: &Life, kind: Mark, frames: usize| {
        let all = lives.frames(life);
        all.iter().take(frames).any(|&frame| lives.stacks.mark(frame).has(kind))
    };
    let mut counts: FxHashMap<u64, u32> = FxHashMap::default();
    let mut callers: FxHashSet<(u32, Place)> = FxHashSet::default();
    let infers = facts.training().next().is_none();
    for life in &lives.all {
        // Without a backward pass a map is a temporary.
        let is_softmax = life.phase == StepPhase::Forward
            && (life.category == Category::Activation
                || infers && life.category == Category::Temporary)
            && has(life, Mark::SOFTMAX, 2)
            && !has(life, Mark::CROSS_ENTROPY, 3);
        if is_softmax {
            *counts.entry(life.bytes).or_default() += 1;
            callers.extend(caller(lives, life));
        }
    }
    let most = counts.iter().max_by_key(|(bytes, count)| (**count, **bytes));
    let map = match most {
        Some((&map, _)) => map,
        None => match by_size(lives, facts) {
            Some((map, function)) => {
                callers.insert(function);
                map
            }
            None => return Vec::new(),
        },
    };
    let others = others(lives, map, &callers);
    let of_function =
        |life: &Life| caller(lives, life).is_some_and(|caller| callers.contains(&caller));
    // A linear layer's result may have half or a quarter of a map's size.
    let of_linears: FxHashSet<u64> = lives
        .all
        .iter()
        .filter(|life| life.phase == StepPhase::Forward && has(life, Mark::LINEAR, 2))
        .filter(|life| of_function(life))
        .map(|life| life.bytes)
        .collect();
    let mut maps = Vec::new();
    for (index, life) in lives.all.iter().enumerate() {
        if life.begin < facts.first_input
            || matches!(
                life.category,
                Category::Parameter
                    | Category::Gradient
                    | Category::OptimizerState
                    | Category::Workspace
            )
        {
            continue;
        }
        let has_own_frame = lives.stacks.own(lives.frames(life)).next().is_some();
        let is_map = if has_own_frame {
            let is_part = [map / 2, map / 4].contains(&life.bytes);
            (life.bytes == map || (is_part && !of_linears.contains(&life.bytes)))
                && of_function(life)
        } else {
            life.bytes == map
                && life.phase == StepPhase::Backward
                && is_of_next_map(&others, life.begin)
        };
        if is_map {
            maps.push(index);
        }
    }
    maps
}

/// When the blocks of a map's size die that forward made, by time, and which of them are maps.
/// Empty if all are.
fn others(lives: &Lives, map: u64, callers: &FxHashSet<(u32, Place)>) -> Vec<(f64, bool)> {
    let in_backward = |life: &&Life| {
        life.bytes == map
            && life.phase == StepPhase::Forward
            && life.dies_in.is_some_and(|(phase, _)| phase == StepPhase::Backward)
    };
    let of = |life: &Life| caller(lives, life).is_some_and(|caller| callers.contains(&caller));
    let mut all: Vec<(f64, bool)> =
        lives.all.iter().filter(in_backward).map(|life| (life.end, of(life))).collect();
    if all.iter().all(|&(_, is_map)| is_map) {
        return Vec::new();
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Whether backward makes the gradient of a map at a time: the next block of that size that it
/// frees is a map.
fn is_of_next_map(others: &[(f64, bool)], time: f64) -> bool {
    let next = others.partition_point(|&(end, _)| end < time);
    others.get(next).or(others.last()).is_none_or(|&(_, is_map)| is_map)
}

/// A call makes at most this many blocks of a map's size. A scan makes one for each token.
const MAX_MAPS: u32 = 8;

/// What a function of the program makes in forward.
#[derive(Debug, Default)]
struct Made {
    /// Its linear layers, and how often each ran.
    linears: FxHashMap<StackId, u32>,
    sizes_of_layers: FxHashSet<u64>,
    /// Sizes that it makes itself, from where, and how often.
    own: BTreeMap<u64, (FxHashSet<StackId>, u32)>,
}

/// The size of a map, and the function that makes it, where no frame names the softmax: a method of
/// a tensor has none.
///
/// A function that calls two linear layers or more makes maps itself, on two lines or more. A map
/// has whole elements for each token. Their number is neither a width of the model nor that of a
/// parameter, and no layer of the function makes that size.
fn by_size(lives: &Lives, facts: &Facts) -> Option<(u64, (u32, Place))> {
    let row = facts.tokens.filter(|&tokens| tokens > 0)?;
    let mut made: BTreeMap<(u32, Place), Made> = BTreeMap::new();
    for life in &lives.all {
        let is_data = life.phase == StepPhase::Forward
            && matches!(
                life.category,
                Category::Activation | Category::Temporary | Category::Unknown
            );
        let (Some(stack), Some(caller)) = (life.stack.filter(|_| is_data), caller(lives, life))
        else {
            continue;
        };
        let frames = lives.frames(life);
        let made = made.entry(caller).or_default();
        if lives.is_made_by(life, Mark::CONVOLUTION, 2) {
            made.sizes_of_layers.insert(life.bytes);
        } else if lives.is_made_by(life, Mark::LINEAR, 2) {
            *made.linears.entry(stack).or_default() += 1;
            made.sizes_of_layers.insert(life.bytes);
        } else if frames.first().is_some_and(|&f| !lives.stacks.mark(f).has(Mark::LIBRARY)) {
            let (stacks, count) = made.own.entry(life.bytes).or_default();
            stacks.insert(stack);
            *count += 1;
        }
    }
    let element = if facts.has_autocast { 2 } else { facts.element };
    let is_map = |made: &Made, bytes: u64| {
        let each = bytes / row / element;
        bytes.is_multiple_of(row * element)
            && each > 1
            && !facts.widths.contains(&each)
            && !facts.parameters.contains_key(&(each * facts.element))
            && !made.sizes_of_layers.contains(&bytes)
            && (!facts.has_autocast || !made.sizes_of_layers.contains(&(bytes / 2)))
    };
    let maps = made.iter().filter(|(_, made)| made.linears.len() > 1).flat_map(|(caller, made)| {
        let calls = made.linears.values().copied().max().unwrap_or(0);
        let repeated = made.own.iter().filter(move |(_, (stacks, count))| {
            stacks.len() > 1 && *count <= MAX_MAPS.saturating_mul(calls)
        });
        let maps = repeated.map(|(bytes, _)| *bytes).filter(|&bytes| is_map(made, bytes));
        // Softmax computes in 32 bits.
        maps.map(|map| (if made.own.contains_key(&(map * 2)) { map * 2 } else { map }, *caller))
    });
    maps.max()
}

/// The function of the innermost frame that is not PyTorch's, and the place that calls it. A
/// package may have the attention: the program's own frames are then those of all layers.
fn caller(lives: &Lives, life: &Life) -> Option<(u32, Place)> {
    let is_torch = |frame: &&FrameId| {
        let kind = lives.stacks.mark(**frame);
        kind.has(Mark::LIBRARY) && kind.has(Mark::TORCH)
    };
    let mut frames = lives.frames(life).iter().filter(|frame| !is_torch(frame));
    let (inner, outer) = (frames.next()?, frames.next()?);
    Some((lives.stacks.function(*inner), lives.stacks.place(*outer)))
}
