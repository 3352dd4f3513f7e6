//! Copies of weights and of an optimizer's state that the program or `autocast` makes.

use super::counts::{Counts, MIN_MODEL_BLOCKS};
use super::stacks::Fact;
use super::window::{MIN_BYTES, Window, are_most};
use super::{Basis, Category, CopyKind, Guess, Phase};
use rustc_hash::FxHashMap;
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;

/// Cost of looking at a block, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 4;

/// The blocks that one line allocated, without a forward pass in between.
#[derive(Default)]
struct Made {
    blocks: Vec<u32>,
    sizes: FxHashMap<u64, u32>,
}

/// Blocks that one line made with the sizes of all parameters.
pub(super) struct ModelCopy {
    pub(super) blocks: Vec<u32>,
    /// The number of copies of each parameter.
    pub(super) times: u32,
    /// Whether the program made it before the first forward pass.
    pub(super) is_first: bool,
    /// Whether an optimizer's file or the function that makes its state has a frame.
    pub(super) names_optimizer: bool,
}

/// The copies of models among blocks for which `is_open` holds.
///
/// A line copies a model if it allocates blocks of the sizes of most parameters, and of few other
/// sizes, while none of them is freed. `parameters` has the number of parameters by size.
pub(super) async fn model_copies(
    window: Window<'_>,
    parameters: &Counts,
    is_open: impl Fn(u32, &Block) -> bool + Send + Sync,
    budget: &mut Budget,
) -> Vec<ModelCopy> {
    let Window { trace, phases, .. } = window;
    if parameters.all() < MIN_MODEL_BLOCKS {
        return Vec::new();
    }
    // Index of the last group of each stack, with its round.
    let mut last: FxHashMap<StackId, (Option<u32>, usize)> = FxHashMap::default();
    let mut made: Vec<Made> = Vec::new();
    let visit = |i, block: &Block| {
        if block.stack == StackId::EMPTY || !is_open(i, block) || window.is_brief(block) {
            return;
        }
        let alloc = block.alloc_event();
        let round = alloc.and_then(|alloc| phases.last_before(Phase::Forward, alloc.0));
        let group = match last.get(&block.stack) {
            Some((before, group)) if *before == round => *group,
            _ => {
                made.push(Made::default());
                last.insert(block.stack, (round, made.len() - 1));
                made.len() - 1
            }
        };
        made[group].blocks.push(i);
        *made[group].sizes.entry(block.bytes.0).or_default() += 1;
    };
    window.trace.each_block(COST_PER_BLOCK, budget, visit).await;
    let mut copies = Vec::new();
    budget.charge(made.len() as u64).await;
    for made in made {
        // A copy in 32 bits of parameters in 16 has twice their size.
        let times = [1, 2].into_iter().find_map(|factor| times(&made.sizes, parameters, factor));
        let (Some(times), Some(&youngest)) = (times, made.blocks.last()) else { continue };
        let at = trace.blocks[youngest as usize].enters;
        let live = made.blocks.iter().filter(|i| trace.blocks[**i as usize].is_live_at(at));
        if !are_most(live.count() as u128, made.blocks.len() as u128) {
            continue;
        }
        let begin = |i: &u32| trace.blocks[*i as usize].alloc_event().map_or(0, |event| event.0);
        let before = |i: &u32| phases.last_before(Phase::Forward, begin(i)).is_none();
        let is_first = made.blocks.iter().all(before);
        let first_forward = phases.next_after(Phase::Forward, 0).unwrap_or(u32::MAX);
        let outlives = |i: &u32| window.outlives(window.block(*i), first_forward);
        // Weights that are loaded and copied to a model are gone when it runs.
        if is_first && !made.blocks.iter().all(outlives) {
            continue;
        }
        let names_optimizer = window.stack(window.block(youngest)).has(Fact::OptimizerFile);
        copies.push(ModelCopy { blocks: made.blocks, times, is_first, names_optimizer });
    }
    copies
}

/// How often the sizes of the parameters occur among others, if they are most of them.
fn times(sizes: &FxHashMap<u64, u32>, parameters: &Counts, factor: u64) -> Option<u32> {
    let known = |size: u64| -> u32 {
        let size = if size.is_multiple_of(factor) { size / factor } else { return 0 };
        parameters.of(size)
    };
    let (mut all, mut matching, mut blocks, mut distinct) = (0, 0, 0, 0);
    let (mut times, mut largest) = (1, 0);
    let mut by_size: Vec<(u64, u32)> = sizes.iter().map(|(&size, &count)| (size, count)).collect();
    by_size.sort_unstable();
    for (size, count) in by_size {
        let bytes = size.saturating_mul(u64::from(count));
        all += bytes;
        let parameters = known(size);
        if parameters == 0 {
            continue;
        }
        matching += bytes;
        blocks += count;
        distinct += 1;
        // The count of the size with most bytes is least likely to be cut off.
        if (bytes, size) > (largest, 0) {
            (largest, times) = (bytes, count.div_ceil(parameters));
        }
    }
    let is_copy = blocks >= MIN_MODEL_BLOCKS
        && 2 * blocks >= parameters.all()
        && 2 * distinct >= parameters.len()
        && are_most(matching.into(), all.into());
    is_copy.then_some(times)
}

/// Gives the copies of models their category, and says which of them are checkpoints.
///
/// `has_states` says that an optimizer is known to have its state elsewhere.
pub(super) fn judge_copies(
    copies: Vec<ModelCopy>,
    has_states: bool,
    guesses: &mut [Guess],
    kinds: &mut Vec<(u32, CopyKind)>,
) {
    let first: u32 = copies.iter().filter(|copy| copy.is_first).map(|copy| copy.times).sum();
    for copy in copies {
        let guess = match (copy.is_first, has_states) {
            // Two moments for each parameter.
            (true, false) if first >= 2 || copy.names_optimizer => {
                Guess::new(Category::OptimizerState)
            }
            (true, false) => Guess::either(Category::OptimizerState, Category::Parameter),
            (false, _) if copy.times >= 2 => Guess::new(Category::OptimizerState),
            // A frozen reference model, or an average of the weights; the weights of a checkpoint.
            (true, true) | (false, _) => Guess::new(Category::Parameter),
        };
        for block in copy.blocks {
            guesses[block as usize] = guess;
            if !copy.is_first {
                kinds.push((block, CopyKind::Checkpoint));
            }
        }
    }
}

/// Finds the copies of weights that `autocast` keeps until its end.
///
/// It casts other arguments with the same function. So the copies of a size are never more than
/// the parameters of twice the size.
pub(super) async fn autocast_copies(
    window: Window<'_>,
    guesses: &mut [Guess],
    kinds: &mut Vec<(u32, CopyKind)>,
    budget: &mut Budget,
) {
    // Casts that outlive their operation, by size: begin and end of their life, and index.
    let mut casts: FxHashMap<u64, Vec<(u32, u32, u32)>> = FxHashMap::default();
    let visit = |i, block: &Block| {
        if window.stack(block).has(Fact::AutocastCast)
            && !block.has_stack_of_free()
            && !window.is_brief(block)
            && block.bytes.0 >= MIN_BYTES
        {
            casts.entry(block.bytes.0).or_default().push((block.enters, block.leaves, i));
        }
    };
    window.trace.each_block(1, budget, visit).await;
    if casts.is_empty() {
        return;
    }
    // Parameters by the size of their cast.
    let mut parameters: FxHashMap<u64, usize> = FxHashMap::default();
    let visit = |i: u32, block: &Block| {
        if guesses[i as usize].category == Category::Parameter && block.bytes.0.is_multiple_of(2) {
            *parameters.entry(block.bytes.0 / 2).or_default() += 1;
        }
    };
    window.trace.each_block(1, budget, visit).await;
    let mut casts: Vec<_> = casts.into_iter().collect();
    casts.sort_unstable_by_key(|(size, _)| *size);
    for (size, mut of_size) in casts {
        let Some(&parameters) = parameters.get(&size) else { continue };
        budget.charge(of_size.len() as u64 * COST_PER_BLOCK).await;
        of_size.sort_unstable();
        // The number of live casts at each allocation.
        let mut ends: std::collections::BinaryHeap<std::cmp::Reverse<u32>> =
            std::collections::BinaryHeap::new();
        let fits = of_size.iter().all(|&(enters, leaves, _)| {
            while ends.peek().is_some_and(|end| end.0 <= enters) {
                ends.pop();
            }
            ends.push(std::cmp::Reverse(leaves));
            ends.len() <= parameters
        });
        if !fits {
            continue;
        }
        for (.., i) in of_size {
            if guesses[i as usize].basis < Basis::Stated {
                guesses[i as usize] = Guess::new(Category::Parameter);
                kinds.push((i, CopyKind::Autocast));
            }
        }
    }
}
