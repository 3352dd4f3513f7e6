//! Tensors that backward needs wait in the host's memory.

use super::prelude::*;
use rustc_hash::FxHashSet;

/// Requests after which the copy to the host is done, and before which it comes back.
const REQUESTS: usize = 2;

/// A kept block dies two requests after its birth, and comes back two requests before its death.
pub(super) static OFFLOAD: Change = Change {
    form: "offload_activations",
    does: "what is kept for backward dies after two requests, and comes back before its use",
    error_percent: Some(5.0),
    cost: Cost::Time,
    slows: Slows::Crosses,
    tries: |_| vec![Value::None],
    // Each activation crosses the bus twice.
    worth_percent: 50,
    moves_blocks: true,
    group: Group::Graph,
    apply: |lives, facts, _, _| offload(lives, facts),
    is_on: Some(is_on),
    on: ["blocks are made by the hooks of `save_on_cpu`, or by `activation_offloading.py`", ""],
    proof: |_, words| {
        let blocks = words.counted("block");
        format!("{blocks} with {} come back from the host in a step{}", words.bytes, words.by)
    },
    compare,
    line: Line::Training,
    what: "the forward pass of a training step",
    snippet: include_str!("snippets/offload_activations.py"),
    called: |_, _| "Offload saved activations to the CPU".to_owned(),
    ..Change::PLAIN
};

fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    let (count, bytes, largest) = run.marked(Mark::OFFLOAD)?;
    let by = run.marked_frame(largest, Mark::OFFLOAD);
    Some((Enabled::On, Proof { by, count, bytes, ..Proof::default() }))
}

fn compare(change: &'static Change, a: &Features, b: &Features) -> Compared {
    match [a, b].map(|of| of.is(change, Enabled::On)) {
        [false, true] => Compared::Came(Value::None),
        [true, false] => Compared::Went,
        _ => Compared::Same,
    }
}

/// Whether a pass saves an index that was expanded to the size of the tensor that it gathers. Hooks
/// copy it whole, and its block is small. The gathered tensor shows it: forward makes it and keeps
/// none, and backward makes it again, larger than all that is kept.
fn saves_a_view(lives: &Lives, facts: &Facts) -> bool {
    let Some(pass) = facts.typical() else { return false };
    let Some(backward) = pass.backward else { return false };
    let forward = &lives.all[lives.born(pass.begin, pass.end)];
    let kept = forward.iter().filter(|life| life.end >= backward.begin && is_data(life));
    let kept = kept.map(|life| life.bytes).max().unwrap_or(0);
    let again: FxHashSet<u64> = lives.all[lives.born(backward.begin, backward.end)]
        .iter()
        .filter(|life| life.category == Category::Temporary)
        .map(|life| life.bytes)
        .collect();
    forward.iter().any(|life| {
        is_data(life) && life.bytes / MIN_EXPANDED > kept && again.contains(&life.bytes)
    })
}

/// A gathered block is this many times as large as all saved tensors, or larger, if its index was
/// expanded.
const MIN_EXPANDED: u64 = 4;

fn is_data(life: &Life) -> bool {
    matches!(
        life.category,
        Category::Activation | Category::Temporary | Category::Unknown | Category::Input
    )
}

/// # Errors
/// Nothing is kept for backward, or a view is.
fn offload(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    if saves_a_view(lives, facts) {
        return Err(Declined::SavedView);
    }
    let births: Vec<f64> = lives.all.iter().map(|life| life.begin).collect();
    let Some(&last) = births.last() else { return Err(Declined::NothingKept) };
    let passes = &facts.passes;
    let mut new = Vec::new();
    for life in &mut lives.all {
        let is_kept = life.phase == StepPhase::Forward
            && life.dies_in == Some((StepPhase::Backward, life.step))
            && is_data(life);
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
    Applied::of(changed, Declined::NothingKept)
}
