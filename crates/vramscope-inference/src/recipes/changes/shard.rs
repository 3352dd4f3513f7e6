//! Parameters, gradients and states over several ranks (FSDP).

use crate::category::Category;
use crate::recipes::facts::{Facts, pieces, repeated_site, with_stack};
use crate::recipes::lives::{Life, Lives};
use crate::recipes::{Applied, Declined};
use crate::step_phases::StepPhase;

/// `shard:N`: each rank has a part. From forward to the end of backward it has the whole
/// parameters of the root, and those of two blocks.
///
/// # Errors
/// Nothing repeats, or nothing is a parameter.
pub(super) fn shard(lives: &mut Lives, facts: &Facts, ranks: u32) -> Result<Applied, Declined> {
    let ranks = u64::from(ranks);
    let site = repeated_site(lives, facts)?;
    let pass = facts.passes.iter().find(|pass| pass.backward.is_some()).ok_or(Declined::NoPass)?;
    let blocks = with_stack(lives, lives.born(pass.begin, pass.end));
    let count = pieces(lives, &blocks, site).len().max(1) as u64;
    let first = lives.all.iter().find(|life| life.category == Category::Parameter);
    let first = *first.ok_or(Declined::NotPredicted)?;
    let total: u64 = facts.parameters.iter().map(|(bytes, n)| bytes * u64::from(*n)).sum();
    // What occurs once is in no block: the embedding, the head, the last norm.
    let once = facts.parameters.iter().filter(|&(bytes, n)| *n < 2 && *bytes > 4096);
    let root: u64 = once.map(|(bytes, _)| bytes).sum();
    let block = total.saturating_sub(root) / count;
    for life in &mut lives.all {
        let is_sharded = matches!(
            life.category,
            Category::Parameter | Category::Gradient | Category::OptimizerState
        ) || (life.phase == StepPhase::Optimizer
            && life.category == Category::Temporary);
        if is_sharded {
            life.bytes = life.bytes.div_ceil(ranks);
        }
    }
    for pass in &facts.passes {
        let end = pass.backward.map_or(pass.end, |backward| backward.end);
        let gathered = |begin: f64, end: f64, bytes: u64| Life {
            begin,
            end,
            bytes,
            category: Category::Communication,
            stack: None,
            is_new: true,
            ..first
        };
        lives.all.push(gathered(pass.begin + 0.1, end - 0.1, root));
        lives.all.extend([gathered(pass.begin + 0.2, end - 0.2, block); 2]);
    }
    Ok(Applied { site: lives.stacks.frame_at(site), changed: count as u32, ..Applied::default() })
}
