//! Attention by a kernel that makes no maps.

use super::prelude::*;
use crate::evidence::attention;
use crate::recipes::facts::attention_maps;

pub(super) static FLASH: Change = Change {
    form: "attention:flash",
    does: "the maps of attention go",
    error_percent: Some(1.0),
    tries: |_| vec![Value::None],
    cause: Some("attention scores: F.scaled_dot_product_attention"),
    apply: |lives, facts, _, _| flash(lives, facts),
    is_on: Some(attention::is_flash),
    on: [
        "functions of FlashAttention, xFormers or `scaled_dot_product_attention` run, and no map \
         was found",
        "maps that wait for backward",
    ],
    proof: |state, words| match state {
        Enabled::On => format!("no map of attention is kept{}", words.by),
        _ => format!("{} kept for backward{}: {}", words.counted("map"), words.at, words.bytes),
    },
    compare,
    line: Line::Maps,
    what: "the softmax of attention",
    snippet: include_str!("snippets/attention_flash.py"),
    snippet_of_transformers: Some(include_str!("snippets/attention_transformers.py")),
    called: |_, _| "Use scaled_dot_product_attention".to_owned(),
    ..Change::PLAIN
};

fn compare(change: &'static Change, a: &Features, b: &Features) -> Compared {
    if !a.is(change, Enabled::Off) {
        let is_gone = a.is(change, Enabled::On) && b.is(change, Enabled::Off);
        return if is_gone { Compared::Went } else { Compared::Same };
    }
    // A kernel of the second run may have no name.
    let has_none = !b.traits.has_maps && !b.traits.training.is_empty();
    if has_none { Compared::Came(Value::None) } else { Compared::Same }
}

/// # Errors
/// No softmax of attention is in the call stacks, or the program keeps its maps.
fn flash(lives: &mut Lives, facts: &Facts) -> Result<Applied, Declined> {
    let maps = attention_maps(lives, facts);
    // Without a backward pass nothing but the program needs maps after their pass.
    let is_kept = |pass: &Pass| {
        let made = lives.born(pass.begin, pass.end);
        let mut of_pass = maps.iter().filter(|index| made.contains(index));
        let ends_later = |life: &Life| life.end > pass.end && !life.stays();
        of_pass.any(|&index| ends_later(&lives.all[index]))
    };
    let infers = lives.failure.is_none() && facts.training().next().is_none();
    if infers && facts.passes.iter().any(is_kept) {
        return Err(Declined::MapsKept);
    }
    for &index in &maps {
        lives.all[index].drop();
    }
    Applied::of(maps.len() as u32, Declined::NoMaps)
}
