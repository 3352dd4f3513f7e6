//! What backward needs waits in the host's memory.

use crate::category::Category;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;

/// Requests after which the copy to the host is done, and before which it comes back.
const REQUESTS: usize = 2;

/// `offload_activations`: a kept block dies two requests after its birth, and comes back two
/// requests before its death.
///
/// # Errors
/// Nothing is kept for backward.
pub(super) fn offload(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let births: Vec<f64> = lives.all.iter().map(|life| life.begin).collect();
    let Some(&last) = births.last() else { return Err(Declined::NothingKept) };
    let passes = &facts.passes;
    let mut new = Vec::new();
    for life in &mut lives.all {
        let is_kept = life.phase == StepPhase::Forward
            && life.dies_in == Some((StepPhase::Backward, life.step))
            && matches!(
                life.category,
                Category::Activation | Category::Temporary | Category::Unknown | Category::Input
            );
        if !is_kept {
            continue;
        }
        let after = births.partition_point(|&birth| birth <= life.begin);
        let before = births.partition_point(|&birth| birth < life.end);
        let back = births[before.saturating_sub(REQUESTS)] - 0.25;
        let mut gone = births.get(after + REQUESTS).unwrap_or(&last) + 0.25;
        if life.is_weight_copy {
            // Autocast keeps it to its end.
            let of = passes.iter().find(|pass| (pass.begin..pass.end).contains(&life.begin));
            gone = of.map_or(gone, |pass| pass.end - 0.25);
        }
        if gone < back {
            new.push(Life { begin: back, is_new: true, ..*life });
            life.end = gone;
        }
    }
    let changed = new.len() as u32;
    lives.all.extend(new);
    if changed == 0 {
        Err(Declined::NothingKept)
    } else {
        Ok(Applied { changed, ..Applied::default() })
    }
}
