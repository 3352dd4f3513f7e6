//! What layers of a forward pass multiply, by the sizes of their blocks.
//!
//! A linear layer has a result of `tokens x out`, an input of `tokens x in`, and a weight of
//! `out x in`. The file has the sizes of all three, but not which belong together. The input is the
//! last block before the result that is live and whose width times that of the result is the size
//! of a parameter.

use super::is_result;
use crate::evidence::marks::Mark;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use std::ops::Range;
use vramscope_snapshot::StackId;

/// Blocks before a result among which its input is searched.
const MAX_BACK: usize = 16;

/// The result of a layer that multiplies. Nothing is known of a product without operations.
#[derive(Clone, Debug)]
pub(super) struct Multiplied {
    pub(super) block: usize,
    stack: Option<StackId>,
    pub(super) bytes: f64,
    /// Multiplications and additions of 16-bit numbers.
    pub(super) half: f64,
    /// The same of 32-bit numbers.
    pub(super) single: f64,
    /// Whether the weight has a gradient.
    pub(super) is_trained: bool,
}

impl Multiplied {
    pub(super) fn is_known(&self) -> bool {
        self.half + self.single > 0.0
    }
}

/// The product that made a block of this call stack and size.
pub(super) fn of<'a>(all: &'a [Multiplied], life: &Life) -> Option<&'a Multiplied> {
    let is_same = |one: &&Multiplied| one.stack == life.stack && one.bytes == life.bytes as f64;
    all.iter().find(is_same)
}

/// The results of layers that multiply, by birth. `gradients` are the sizes of gradients.
pub(super) fn find(
    lives: &Lives,
    facts: &Facts,
    blocks: Range<usize>,
    gradients: &[u64],
) -> Vec<Multiplied> {
    let layer = Mark::LINEAR.or(Mark::CONVOLUTION);
    let is_layer = |index: usize| {
        let life = &lives.all[index];
        is_result(life) && !life.is_weight_copy && lives.mark(life).has(layer)
    };
    let mut found = Vec::new();
    for index in blocks.clone().filter(|&index| is_layer(index)) {
        let life = &lives.all[index];
        // Autocast converts what a layer reads: its result is the last block of the call.
        let is_cast = facts.has_autocast
            && blocks.contains(&(index + 1))
            && lives.all[index + 1].stack == life.stack;
        if is_cast {
            continue;
        }
        let product = product(lives, facts, blocks.start, index);
        let (operations, element, weight) = product.unwrap_or((0.0, 4, 0));
        found.push(Multiplied {
            block: index,
            stack: life.stack,
            bytes: life.bytes as f64,
            half: if element == 2 { operations } else { 0.0 },
            single: if element == 2 { 0.0 } else { operations },
            is_trained: gradients.contains(&weight),
        });
    }
    found
}

/// The operations of a linear layer's product, the bytes of an element, and those of its weight.
fn product(lives: &Lives, facts: &Facts, first: usize, result: usize) -> Option<(f64, u64, u64)> {
    let tokens = facts.tokens.filter(|&tokens| tokens > 0)?;
    let of = &lives.all[result];
    let widths = |life: &Life| {
        let certain = u64::from(life.element);
        let elements = [2, 4].into_iter().filter(move |&one| certain == 0 || one == certain);
        let bytes = life.bytes;
        elements.filter_map(move |one| {
            (bytes % (one * tokens) == 0).then_some((bytes / (one * tokens), one))
        })
    };
    let from = first.max(result.saturating_sub(MAX_BACK));
    let before = (from..result).rev().map(|index| &lives.all[index]);
    for input in before.filter(|input| input.end > of.begin && is_result(input)) {
        for (wide, element) in widths(of) {
            for (deep, _) in widths(input).filter(|&(_, own)| own == element) {
                let weight = wide * deep * facts.element;
                if facts.parameters.contains_key(&weight) {
                    return Some((2.0 * (tokens * wide * deep) as f64, element, weight));
                }
            }
        }
    }
    None
}
