//! Blocks that a backward pass leaves live and that are no gradients: graphs of a second
//! derivative, as `create_graph=True` keeps them.

use super::window::Window;
use super::{Basis, Category, Guess};
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 4;

/// A gradient has at most twice the bytes of its parameter: four bytes for each two.
const MAX_OF_PARAMETERS: u64 = 2;

/// Judges the gradients of a backward pass again that leaves more of other sizes than parameters
/// have than all parameters can have. `is_whole` says that no block is from before the window, so
/// all parameters are known.
pub(super) async fn kept_graphs(
    window: Window<'_>,
    is_whole: bool,
    guesses: &mut [Guess],
    budget: &mut Budget,
) {
    let mut parameters = 0_u64;
    let mut sizes: FxHashSet<u64> = FxHashSet::default();
    let count = |i, block: &Block, _| {
        if guesses[i as usize].category == Category::Parameter {
            parameters = parameters.saturating_add(block.bytes.0);
            sizes.insert(block.bytes.0);
        }
    };
    window.each_alloc(COST_PER_BLOCK, budget, count).await;
    let is_other = |guess: Guess, block: &Block| {
        guess.category == Category::Gradient
            && guess.basis < Basis::Stated
            && !sizes.contains(&block.bytes.0)
    };
    let mut of_pass: FxHashMap<u32, u64> = FxHashMap::default();
    let count = |i, block: &Block, alloc| {
        if is_other(guesses[i as usize], block) {
            let of = of_pass.entry(window.phases.period(alloc)).or_default();
            *of = of.saturating_add(block.bytes.0);
        }
    };
    window.each_alloc(COST_PER_BLOCK, budget, count).await;
    let most = parameters.saturating_mul(MAX_OF_PARAMETERS);
    of_pass.retain(|_, bytes| *bytes > most);
    if !is_whole || parameters == 0 || of_pass.is_empty() {
        return;
    }
    let judge = |i, block: &Block, alloc| {
        let guess = &mut guesses[i as usize];
        if is_other(*guess, block) && of_pass.contains_key(&window.phases.period(alloc)) {
            guess.category = Category::Activation;
        }
    };
    window.each_alloc(COST_PER_BLOCK, budget, judge).await;
}
