//! Parameters, gradients and states over several ranks (FSDP).

use super::prelude::*;
use crate::evidence::traits::total;
use crate::recipes::facts::{pieces, repeated_sites, with_stack};

/// Each rank has a part. From forward to the end of backward it has the whole parameters of the
/// root, and those of two blocks.
pub(super) static SHARD: Change = Change {
    form: "shard:N",
    does: "parameters, gradients and states are divided by N. The whole parameters of two blocks \
           and of the root live beside them",
    error_percent: Some(4.0),
    cost: Cost::Time,
    slows: Slows::Unknown,
    moves_blocks: true,
    apply: |lives, facts, value, _| shard(lives, facts, value.parts()),
    is_on: Some(is_on),
    listed_as: "shard",
    on: ["FSDP or DeepSpeed gathers parameters", ""],
    proof: |_, words| {
        let blocks = words.counted("block");
        format!("{blocks} of gathered parameters in a step, up to {}{}", words.bytes, words.by)
    },
    compare: |_, a, b| match (is_sharded(a), is_sharded(b)) {
        (true, false) => Compared::Unnamed,
        _ if came(a, b) => Compared::Came(Value::Parts(ranks(a, b) as u32)),
        _ => Compared::Same,
    },
    line: Line::Parameters,
    what: "where the parameters are made",
    snippet: include_str!("snippets/shard.py"),
    called: |value, _| format!("Shard over {value} GPUs (FSDP)"),
    found: Some(|blocks, site| format!("{blocks} blocks of {site}")),
    ..Change::PLAIN
};

fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let (count, _, largest) = run.marked(Mark::GATHER)?;
    let by = run.marked_frame(largest, Mark::GATHER);
    Some((Enabled::On, Proof { by, count, bytes: largest.bytes, ..Proof::default() }))
}

fn is_sharded(of: &Features) -> bool {
    of.is(&SHARD, Enabled::On)
}

/// Whether only the second run has parts of parameters.
pub(super) fn came(a: &Features, b: &Features) -> bool {
    !is_sharded(a) && is_sharded(b) && (2.0..=1024.0).contains(&ranks(a, b))
}

/// How many times as large the first run's parameters are.
fn ranks(a: &Features, b: &Features) -> f64 {
    let (before, after) = (total(&a.traits.parameters), total(&b.traits.parameters));
    (before as f64 / (after as f64).max(1.0)).round()
}

/// # Errors
/// Nothing repeats, or nothing is a parameter.
fn shard(lives: &mut Lives, facts: &Facts, ranks: u32) -> Result<Applied, Declined> {
    let ranks = u64::from(ranks);
    let sites = repeated_sites(lives, facts)?;
    let pass = facts.passes.iter().find(|pass| pass.backward.is_some()).ok_or(Declined::NoPass)?;
    let blocks = with_stack(lives, lives.born(pass.begin, pass.end));
    let count = sites.iter().map(|&site| pieces(lives, &blocks, site).len()).sum::<usize>();
    let count = count.max(1) as u64;
    let first = lives.all.iter().find(|life| life.category == Category::Parameter);
    let first = *first.ok_or(Declined::NotPredicted)?;
    let total = total(&facts.parameters);
    // Sizes that occur once are in no block: the embedding, the head, the last norm.
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
    let applied = Applied::of(count as u32, Declined::NothingRepeats)?;
    Ok(Applied { site: lives.stacks.frame_at(sites[0].place), ..applied })
}
