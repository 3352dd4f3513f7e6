//! The whole model in 16 bits.

use crate::category::Category;
use crate::recipes::facts::Facts;
use crate::recipes::lives::Lives;
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;

/// `params:bf16`: what has elements of four bytes has elements of two. Casts of autocast vanish.
///
/// # Errors
/// The parameters are not in 32 bits.
pub(super) fn parameters_bf16(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    if facts.element != 4 || facts.parameters.is_empty() {
        return Err(Declined::NotFp32);
    }
    let mut changed = 0;
    for life in &mut lives.all {
        let half = life.bytes.div_ceil(2);
        let is_cast = facts.has_autocast
            && facts.is_half_of_parameter(life.bytes)
            && (!facts.data_sizes.contains(&life.bytes) || life.is_weight_copy);
        match life.category {
            Category::Parameter
            | Category::Gradient
            | Category::OptimizerState
            | Category::Buffer => life.bytes = half,
            _ if life.phase == StepPhase::Optimizer => life.bytes = half,
            Category::Temporary
                if life.phase == StepPhase::Other && life.begin < facts.first_input =>
            {
                life.bytes = half;
            }
            _ if is_cast => {
                if life.phase == StepPhase::Forward {
                    life.drop();
                }
            }
            Category::Activation | Category::Temporary | Category::Unknown
                if !facts.has_autocast || life.element == 4 =>
            {
                life.bytes = half;
            }
            _ => continue,
        }
        changed += 1;
    }
    Ok(Applied { changed, ..Applied::default() })
}

/// `autocast_cache:off`: a cast of a weight dies after its use, unless the graph keeps it for
/// backward.
///
/// # Errors
/// Autocast is off.
pub(super) fn without_cast_cache(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    if !facts.has_autocast {
        return Err(Declined::NoAutocast);
    }
    let births: Vec<f64> = lives.all.iter().map(|life| life.begin).collect();
    let mut changed = 0;
    for life in &mut lives.all {
        let is_cached = life.is_weight_copy
            && life.dies_in.is_some_and(|(phase, _)| phase != StepPhase::Backward);
        let used = births.partition_point(|&birth| birth <= life.begin) + 1;
        let Some(end) = births.get(used).map(|birth| birth + 0.25).filter(|_| is_cached) else {
            continue;
        };
        if end < life.end {
            life.end = end;
            changed += 1;
        }
    }
    Ok(Applied { changed, ..Applied::default() })
}
