//! Attention maps that the program computes itself: they grow with the square of the sequence.

use crate::category::Category;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use crate::recipes::stacks::{Kind, Place};
use crate::step_phases::StepPhase;
use rustc_hash::{FxHashMap, FxHashSet};

/// The blocks of attention maps, ascending.
///
/// The size that a softmax makes is that of a map. In forward its half and quarter count too, but
/// only in the function that calls the softmax, called from the same line. In backward the size
/// decides.
pub(crate) fn attention_maps(lives: &Lives, facts: &Facts) -> Vec<usize> {
    let has = |life: &Life, kind: Kind, frames: usize| {
        let all = lives.frames(life);
        all.iter().take(frames).any(|&frame| lives.stacks.kind(frame).has(kind))
    };
    let mut counts: FxHashMap<u64, u32> = FxHashMap::default();
    let mut callers: FxHashSet<(u32, Place)> = FxHashSet::default();
    for life in &lives.all {
        let is_softmax = life.phase == StepPhase::Forward
            && life.category == Category::Activation
            && has(life, Kind::SOFTMAX, 2)
            && !has(life, Kind::CROSS_ENTROPY, 3);
        if is_softmax {
            *counts.entry(life.bytes).or_default() += 1;
            callers.extend(caller(lives, life));
        }
    }
    let most = counts.iter().max_by_key(|(bytes, count)| (**count, **bytes));
    let Some((&map, _)) = most else { return Vec::new() };
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
            [map, map / 2, map / 4].contains(&life.bytes)
                && caller(lives, life).is_some_and(|caller| callers.contains(&caller))
        } else {
            life.bytes == map && life.phase == StepPhase::Backward
        };
        if is_map {
            maps.push(index);
        }
    }
    maps
}

/// The function of the program's innermost frame, and the place that calls it.
fn caller(lives: &Lives, life: &Life) -> Option<(u32, Place)> {
    let mut own = lives.stacks.own(lives.frames(life));
    let (inner, outer) = (own.next()?, own.next()?);
    Some((lives.stacks.function(inner), lives.stacks.place(outer)))
}
