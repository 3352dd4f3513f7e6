//! What layers of a forward pass multiply, by the sizes of their blocks.
//!
//! A linear layer has a result of `tokens x out`, an input of `tokens x in`, and a weight of
//! `out x in`. The file has the sizes of all three, but not which belong together. The input is the
//! last block before the result that is live and whose width times that of the result is the size
//! of a parameter.

use crate::category::Category;
use crate::evidence::marks::Mark;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use std::collections::BTreeMap;
use std::ops::Range;
use vramscope_snapshot::StackId;

/// Whether a block is what an operation makes.
pub(super) fn is_result(life: &Life) -> bool {
    !life.is_of_model() && life.category != Category::Workspace
}

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
    /// Bytes of the weight; 0 where it is not known.
    pub(super) weight: f64,
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
    // Autocast converts what a layer reads: its result is the last block of the call.
    let is_cast = |index: usize| {
        facts.has_autocast
            && blocks.contains(&(index + 1))
            && lives.all[index + 1].stack == lives.all[index].stack
    };
    let results: Vec<usize> =
        blocks.clone().filter(|&index| is_layer(index) && !is_cast(index)).collect();
    let first = blocks.start;
    let tokens = tokens(lives, facts, first, &results);
    let multiplied = |&block: &usize| {
        let life = &lives.all[block];
        let layer = tokens.and_then(|_| layers(lives, facts, first, block, tokens).next());
        let operations = |element: u64| {
            let of = layer.as_ref().filter(|of| of.element == element);
            of.map_or(0.0, |of| 2.0 * (of.tokens * of.wide * of.deep) as f64)
        };
        let weight = layer.as_ref().map(|of| of.wide * of.deep * facts.element);
        Multiplied {
            block,
            stack: life.stack,
            bytes: life.bytes as f64,
            half: operations(2),
            single: operations(4),
            weight: weight.unwrap_or(0) as f64,
            is_trained: weight.is_some_and(|weight| gradients.contains(&weight)),
        }
    };
    results.iter().map(multiplied).collect()
}

/// Narrower blocks are no input of a layer: statistics of a norm.
const MIN_WIDTH: u64 = 4;

/// A linear layer, by the sizes of its result, its input and its weight.
struct Layer {
    tokens: u64,
    wide: u64,
    deep: u64,
    element: u64,
}

/// The layers that can have made a result, the nearest input first. `tokens` are known, or each
/// number of them is tried that makes the sizes fit.
fn layers(
    lives: &Lives,
    facts: &Facts,
    first: usize,
    result: usize,
    tokens: Option<u64>,
) -> impl Iterator<Item = Layer> {
    let of = &lives.all[result];
    let from = first.max(result.saturating_sub(MAX_BACK));
    let inputs = (from..result).rev().map(|index| &lives.all[index]);
    let inputs = inputs.filter(|input| input.end > of.begin && is_result(input));
    let elements = |life: &Life, element: u64| {
        let certain = u64::from(life.element);
        let is_one = (certain == 0 || certain == element) && life.bytes.is_multiple_of(element);
        is_one.then_some(life.bytes / element)
    };
    let sizes = inputs.flat_map(move |input| {
        [2, 4].map(|element| Some((elements(of, element)?, elements(input, element)?, element)))
    });
    let sizes = sizes.flatten();
    sizes.flat_map(move |(result, input, element)| {
        facts.parameters.keys().filter_map(move |bytes| {
            let weight = bytes / facts.element.max(1);
            // Result times input is the square of the tokens times the weight.
            let square = result.checked_mul(input)? / weight.max(1);
            let found = tokens.unwrap_or_else(|| square.isqrt());
            let fits = found > 0 && result % found == 0 && input % found == 0;
            let (wide, deep) = (result / found.max(1), input / found.max(1));
            let is_layer = fits && wide * deep == weight && wide.min(deep) >= MIN_WIDTH;
            is_layer.then_some(Layer { tokens: found, wide, deep, element })
        })
    })
}

/// The tokens with which the sizes of most results fit; `None` without any. Of images no input of
/// numbers tells them.
fn tokens(lives: &Lives, facts: &Facts, first: usize, results: &[usize]) -> Option<u64> {
    let mut votes: BTreeMap<u64, u64> = BTreeMap::new();
    for &result in results {
        let mut all: Vec<u64> =
            layers(lives, facts, first, result, None).map(|layer| layer.tokens).collect();
        all.sort_unstable();
        all.dedup();
        for tokens in all.into_iter().filter(|&tokens| tokens >= MIN_TOKENS) {
            *votes.entry(tokens).or_default() += lives.all[result].bytes;
        }
    }
    let most = votes
        .into_iter()
        .max_by_key(|&(tokens, bytes)| (bytes, facts.tokens == Some(tokens), tokens));
    most.map(|of| of.0)
}

/// Fewer tokens fit sizes by chance.
const MIN_TOKENS: u64 = 64;
