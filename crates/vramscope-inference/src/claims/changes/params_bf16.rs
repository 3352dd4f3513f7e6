//! The whole model in 16 bits.

use super::prelude::*;
use super::shard;
use crate::evidence::autocast;
use crate::evidence::traits::total;
use crate::recipes::facts::logits;
use rustc_hash::FxHashSet;

/// Blocks with elements of four bytes get elements of two. Casts of autocast vanish.
pub(super) static PARAMS_BF16: Change = Change {
    form: "params:bf16",
    does: "what has four bytes an element has two",
    error_percent: Some(9.0),
    cost: Cost::Precision,
    apply: |lives, facts, _, _| parameters_bf16(lives, facts),
    is_on: Some(is_on),
    on: ["parameters have 2 bytes an element, as far as sizes tell", "4 bytes"],
    proof: |state, words| {
        let bytes = if state == Enabled::On { 2 } else { 4 };
        let parameters = words.counted("parameter");
        format!("{parameters} with {} have {bytes} bytes an element", words.bytes)
    },
    compare: |_, a, b| {
        if is_half(a, b) { Compared::Came(Value::None) } else { Compared::Same }
    },
    line: Line::Parameters,
    what: "where the parameters are made",
    snippet: include_str!("snippets/params_bf16.py"),
    called: |_, _| "Weights, gradients and states in bf16".to_owned(),
    ..Change::PLAIN
};

fn is_on(run: Run<'_>) -> Option<(Enabled, Proof)> {
    run.typical()?;
    let is_low = run.element()? == 2;
    // Autocast casts parameters in 32 bits. Without casts, sizes of 4 bytes an element are unsure.
    let is_cast = autocast::is_on(run).is_some_and(|(state, _)| state == Enabled::On);
    if is_low == is_cast {
        return None;
    }
    let parameters = &run.facts.parameters;
    let (count, bytes) = (parameters.values().sum(), total(parameters));
    let state = if is_low { Enabled::On } else { Enabled::Off };
    Some((state, Proof { count, bytes, ..Proof::default() }))
}

/// Whether the second run's parameters have half the size.
pub(super) fn is_half(a: &Features, b: &Features) -> bool {
    let halves: std::collections::BTreeMap<u64, u32> =
        a.traits.parameters.iter().map(|(bytes, count)| (bytes / 2, *count)).collect();
    !halves.is_empty() && halves == b.traits.parameters && !shard::came(a, b)
}

/// The results that are computed from logits which the model itself copies to 32 bits: they stay.
fn upcast_by_model(lives: &Lives, facts: &Facts) -> FxHashSet<usize> {
    let mut stays = FxHashSet::default();
    for pass in &facts.passes {
        let found = logits(lives, facts, lives.born(pass.begin, pass.end), pass);
        if let Some(logits) =
            found.filter(|of| of.is_upcast_by(lives, pass, |m| !m.has(Mark::TORCH)))
        {
            let wide = 2 * lives.all[logits.block].bytes;
            let blocks = lives.born(logits.begin, pass.over());
            stays.extend(blocks.filter(|&index| lives.all[index].bytes == wide));
        }
    }
    stays
}

/// Whether a line of the model makes a block, and no function of PyTorch.
fn is_by_model(lives: &Lives, life: &Life) -> bool {
    let inner = lives.frames(life).first();
    inner.is_some_and(|&frame| !lives.stacks.mark(frame).has(Mark::TORCH))
}

/// # Errors
/// The parameters are not in 32 bits.
fn parameters_bf16(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    if facts.element != 4 || facts.parameters.is_empty() {
        return Err(Declined::NotFp32);
    }
    let upcast = upcast_by_model(lives, facts);
    let mut changed = 0;
    for index in 0..lives.all.len() {
        if upcast.contains(&index) {
            continue;
        }
        let by_model = !facts.has_autocast && is_by_model(lives, &lives.all[index]);
        let life = &mut lives.all[index];
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
                // Whether the model computes it in 32 bits itself, the file does not tell.
                life.other = if by_model { 2.0 } else { 1.0 };
            }
            _ => continue,
        }
        changed += 1;
    }
    Applied::of(changed, Declined::NotFp32)
}
