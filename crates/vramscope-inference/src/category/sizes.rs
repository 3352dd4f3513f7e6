//! Evidence from sizes: the number of parameters of each size, and the categories of the remaining
//! blocks that follow from it.

use super::copies::{autocast_copies, judge_copies, model_copies};
use super::counts::{
    Counts, JudgedBlocks, MIN_FROZEN_SIZES, MIN_PARAMETER_BYTES, has_category, parameters,
};
use super::life::Verdict;
use super::lineage::Lineage;
use super::phases::Phases;
use super::window::Window;
use super::workspace::{MAX_PER_STREAM, WORKSPACE_BYTES};
use super::{Basis, Category, CopyKind, Guess, Phase};
use rustc_hash::FxHashSet;
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, filled};

/// A size with at least this many blocks must divide into whole copies of the model.
const MIN_COPIES: u32 = 4;

/// The states that most optimizers have for each parameter.
const USUAL_STATES: u32 = 2;

/// More models than these are not looked for.
const MAX_MODELS: u32 = 8;

/// Other tensors of a model do not have more than this many times the bytes of its weights.
const MIN_FROZEN_RATIO: u128 = 8;

/// Assigns blocks to the parameters that must exist, and guesses the others by size.
struct SizeMatcher<'a> {
    /// Parameters that must exist.
    expected: Counts,
    /// Parameters found so far.
    found: Counts,
    /// Blocks from before the window without a stack.
    preexisting: Counts,
    /// Gradients that this window's backward passes allocated.
    gradients: Counts,
    /// Gradients of this window that are live at its end.
    live_gradients: Counts,
    /// Gradients from before the window found so far. They are zeroed in place.
    zeroed_gradients: Counts,
    /// Optimizer states known from stacks.
    states: Counts,
    /// Stacks of the program that make many tensors of several sizes before the first pass.
    program_stacks: FxHashSet<StackId>,
    /// The largest block of a forward pass, in bytes.
    largest_activation: u64,
    /// Stacks and sizes of temporaries that a module's `__init__` allocated.
    init_temporaries: FxHashSet<(StackId, u64)>,
    phases: &'a Phases,
    /// Whether the gradients are views of the buckets in which they are reduced.
    buckets_hold_gradients: bool,
    /// Number of models among the blocks from before the window: a frozen reference and an average
    /// of the weights have the sizes of the parameters, too.
    models: u32,
    /// Whether the blocks from before the window without another category are frozen weights.
    has_frozen_weights: bool,
    /// Whether the window ends in a forward pass that keeps its activations. Then the program
    /// trains, but the window does not reach its backward pass.
    ends_in_forward: bool,
}

/// Turns verdicts into guesses.
pub(super) async fn resolve(
    window: Window<'_>,
    verdicts: &[Verdict],
    lineage: &Lineage,
    budget: &mut Budget,
) -> (Vec<Guess>, Vec<(u32, CopyKind)>) {
    let judged = JudgedBlocks { window, verdicts };
    let phases = window.phases;
    let mut matcher = SizeMatcher {
        expected: parameters(judged, budget).await,
        found: Counts::default(),
        zeroed_gradients: Counts::default(),
        preexisting: Counts::default(),
        gradients: Counts::default(),
        live_gradients: Counts::default(),
        states: Counts::default(),
        program_stacks: judged.program_stacks(budget).await,
        largest_activation: 0,
        init_temporaries: FxHashSet::default(),
        phases,
        buckets_hold_gradients: judged.buckets_hold_gradients(budget).await,
        models: 1,
        has_frozen_weights: false,
        ends_in_forward: false,
    };
    // Backward passes with gradients that outlived them. Blocks freed within such a pass are no
    // gradients.
    let mut passes_with_gradients: FxHashSet<u32> = FxHashSet::default();
    let (mut activations, mut live) = (0, 0);
    let visit = |i, block: &Block, verdict| {
        let (mut size, alloc) = (block.bytes.0, block.alloc_event());
        let counts = match verdict {
            Verdict::Preexisting => &mut matcher.preexisting,
            // A parameter that is dropped and allocated again (converted, sharded) is one
            // parameter, so only the live one counts.
            _ if has_category(verdict, Category::Parameter)
                && judged.window.is_live_at_end(block) =>
            {
                &mut matcher.found
            }
            _ if has_category(verdict, Category::Parameter)
                && lineage.after(i).is_some()
                && judged.window.is_live_at_end(window.block(lineage.youngest(i))) =>
            {
                size = window.block(lineage.youngest(i)).bytes.0;
                &mut matcher.found
            }
            _ if has_category(verdict, Category::OptimizerState) => &mut matcher.states,
            _ if has_category(verdict, Category::Gradient) => {
                if alloc.is_none() {
                    return;
                }
                if judged.window.is_live_at_end(block) {
                    *matcher.live_gradients.entry(size).or_default() += 1;
                }
                let alloc = alloc.filter(|_| size >= MIN_PARAMETER_BYTES);
                passes_with_gradients.extend(alloc.map(|event| phases.period(event.0)));
                &mut matcher.gradients
            }
            _ => {
                if has_category(verdict, Category::Activation) {
                    matcher.largest_activation = size.max(matcher.largest_activation);
                    activations += 1;
                    live += u32::from(judged.window.is_live_at_end(block));
                }
                if has_category(verdict, Category::Temporary)
                    && alloc.is_some()
                    && window.stack(block).is_module_init
                {
                    matcher.init_temporaries.insert((block.stack, size));
                }
                return;
            }
        };
        *counts.entry(size).or_default() += 1;
    };
    judged.each(budget, visit).await;
    // More than a quarter of the activations is live at the end. Inference frees them early.
    matcher.ends_in_forward = 4 * live > activations;
    matcher.infer_expected(judged, budget).await;
    matcher.find_frozen_weights();
    matcher.count_models();
    let mut guesses = filled(Guess::default(), verdicts.len(), budget).await;
    // Blocks with better evidence from their stacks claim parameters first.
    for turn in [Verdict::ModuleTensor, Verdict::ProgramTensor] {
        let visit = |i: u32, block: &Block, verdict| {
            if verdict == turn {
                guesses[i as usize] = match turn {
                    Verdict::ModuleTensor => matcher.module_tensor(block.stack, block.bytes.0),
                    _ => matcher.program_tensor(block.stack, block.bytes.0),
                };
                // A step replaces it, and it is no parameter.
                let replaced_in = lineage.after(i).and_then(|new| window.phase(window.block(new)));
                if replaced_in == Some(Phase::Optimizer)
                    && guesses[i as usize].category != Category::Parameter
                {
                    guesses[i as usize] = Guess::new(Category::OptimizerState);
                }
            }
        };
        judged.each(budget, visit).await;
    }
    let parameters = matcher.preexisting_parameters(judged, budget).await;
    let gradients = matcher.preexisting_gradients(judged, &parameters, budget).await;
    let visit = |i: u32, block: &Block, verdict| {
        let guess = &mut guesses[i as usize];
        match verdict {
            Verdict::Preexisting => {
                *guess = Guess::new(if parameters.contains(&i) {
                    Category::Parameter
                } else if gradients.contains(&i) {
                    Category::Gradient
                } else {
                    matcher.preexisting(block.bytes.0, judged.window.is_live_at_end(block))
                });
            }
            Verdict::Final(known) if matcher.is_first_workspace(block, known, judged) => {
                *guess = Guess::new(Category::Workspace);
            }
            Verdict::Final(known) => *guess = known,
            Verdict::Bucket => {
                *guess = if matcher.buckets_hold_gradients {
                    Guess::new(Category::Gradient)
                } else {
                    Guess::new(Category::Communication)
                };
            }
            Verdict::GradientCopy(or) => *guess = matcher.gradient_copy(block.bytes.0, or),
            Verdict::BackwardTail { is_long } => {
                let may_be_gradient = block
                    .alloc_event()
                    .is_some_and(|event| !passes_with_gradients.contains(&phases.period(event.0)));
                *guess = matcher.backward_tail(block.bytes.0, is_long, may_be_gradient);
            }
            _ => {}
        }
    };
    judged.each(budget, visit).await;
    lineage.pass_on(&mut guesses, budget).await;
    let is_open = |i: u32, block: &Block| {
        let guess = guesses[i as usize];
        // One parameter of each size, or what takes the place of another block.
        let is_claimed = matches!(guess.category, Category::Parameter | Category::OptimizerState)
            && guess.basis >= Basis::Life;
        match verdicts[i as usize] {
            Verdict::ModuleTensor | Verdict::ProgramTensor => !is_claimed,
            Verdict::Final(_) => {
                window.phase(block) == Some(Phase::Other)
                    && guess.basis < Basis::Stated
                    && !is_claimed
                    && !matches!(
                        guess.category,
                        Category::Cache | Category::Workspace | Category::Gradient
                    )
            }
            _ => false,
        }
    };
    let copies = model_copies(window, &matcher.expected, is_open, budget).await;
    let mut kinds = Vec::new();
    judge_copies(copies, matcher.has_states(), &mut guesses, &mut kinds);
    autocast_copies(window, &mut guesses, &mut kinds, budget).await;
    kinds.sort_unstable_by_key(|kind| kind.0);
    (guesses, kinds)
}

impl SizeMatcher<'_> {
    /// Whether the states of most parameters are known.
    fn has_states(&self) -> bool {
        let known = |counts: &Counts, size: &u64| counts.get(size).copied().unwrap_or(0);
        let all: u32 = self.expected.values().sum();
        let with_state = self.expected.iter().map(|(size, count)| {
            // State in 32 bits of parameters in 16.
            let states = known(&self.states, size).max(known(&self.states, &(2 * size)));
            states.min(*count)
        });
        all > 0 && 2 * with_state.sum::<u32>() > all
    }

    /// Counts the models among the blocks from before the window. Each size of a parameter occurs
    /// once for each model and, if the window does not show the optimizer's states, twice more.
    fn count_models(&mut self) {
        let known = |counts: &Counts, size: &u64| counts.get(size).copied().unwrap_or(0);
        let bytes = |size: &u64, count: u32| u128::from(*size) * u128::from(count);
        let all: u128 = self.expected.iter().map(|(size, count)| bytes(size, *count)).sum();
        let others = if self.has_states() { 0 } else { USUAL_STATES }
            + u32::from(self.gradients.is_empty() && self.phases.occurs(Phase::Backward));
        let mut models = 1;
        while all > 0 && models < MAX_MODELS && self.phases.has_whole_backward() {
            let copies = models + 1 + others;
            let enough = self.expected.iter().filter(|(size, count)| {
                known(&self.preexisting, size) + known(&self.found, size) >= copies * **count
            });
            let enough: u128 = enough.map(|(size, count)| bytes(size, *count)).sum();
            if 10 * enough < 9 * all || self.expected.len() < MIN_FROZEN_SIZES {
                break;
            }
            models += 1;
        }
        self.models = models;
    }

    /// Whether a block that is guessed to be a gradient is the workspace of the first backward
    /// pass: no parameter has its size, and no other pass allocates one.
    fn is_first_workspace(&self, block: &Block, guess: Guess, judged: JudgedBlocks<'_>) -> bool {
        let size = block.bytes.0;
        let known = |counts: &Counts| counts.get(&size).copied().unwrap_or(0);
        guess.category == Category::Gradient
            && guess.basis < Basis::Stated
            && WORKSPACE_BYTES.contains(&size)
            && judged.window.is_live_at_end(block)
            && block.alloc_event().is_some()
            && known(&self.gradients) == 1
            && known(&self.expected) <= 1
            && known(&self.found) == 0
            && known(&self.states) == 0
            && known(&self.preexisting) == 0
            && self.expected.len() > 1
    }

    /// Infers `expected` from blocks from before the window, if a training window shows neither
    /// gradients nor states.
    ///
    /// Each parameter's size then occurs three times with two states per parameter (Adam), and
    /// twice with one state (momentum).
    async fn infer_expected(&mut self, judged: JudgedBlocks<'_>, budget: &mut Budget) {
        // Without an optimizer, each block counts as a parameter.
        let has_optimizer = self.phases.occurs(Phase::Optimizer) || !self.states.is_empty();
        if !self.expected.is_empty() || !self.ends_in_forward || !has_optimizer {
            return;
        }
        let mut sizes: Vec<u64> = Vec::new();
        let visit = |_, block: &Block, verdict| {
            if verdict == Verdict::Preexisting
                && judged.window.is_live_at_end(block)
                && !self.is_workspace(block.bytes.0)
            {
                sizes.push(block.bytes.0);
            }
        };
        judged.each(budget, visit).await;
        sizes.sort_unstable();
        let sizes: Vec<(u64, u32)> =
            sizes.chunk_by(|a, b| a == b).map(|s| (s[0], s.len() as u32)).collect();
        let bytes = |each: &dyn Fn(u32) -> bool| -> u128 {
            let sizes = sizes.iter().filter(|(_, count)| each(*count));
            sizes.map(|&(size, count)| u128::from(size) * u128::from(count)).sum()
        };
        let all = bytes(&|_| true);
        // A few blocks of a size can be buffers. Many must be whole copies.
        let are_copies = |times: u32| {
            sizes.iter().all(|&(_, count)| count < MIN_COPIES || count % times == 0)
                && 10 * bytes(&|count| count % times == 0) >= 9 * all
        };
        let Some(times) = [3, 2].into_iter().find(|&times| are_copies(times)) else {
            return;
        };
        for (size, count) in sizes.into_iter().filter(|(_, count)| count % times == 0) {
            self.expected.insert(size, count / times);
        }
    }

    /// Whether blocks from before the window with this size are workspaces: the size is one of a
    /// workspace, and few blocks have it. Other tensors have the size of cuBLASLt's workspace too,
    /// so that needs a workspace of cuBLAS beside it.
    fn is_workspace(&self, size: u64) -> bool {
        let few = |size: &u64| {
            self.preexisting.get(size).is_some_and(|count| (1..=MAX_PER_STREAM).contains(count))
        };
        let [cublas @ .., lt] = &WORKSPACE_BYTES;
        few(&size) && (cublas.contains(&size) || size == *lt && cublas.iter().any(few))
    }

    /// Counts a parameter of this size as found, if one more must exist. Returns whether it does.
    fn claim_parameter(&mut self, size: u64) -> bool {
        let expected = self.expected.get(&size).copied().unwrap_or(0);
        let found = self.found.entry(size).or_default();
        let is_missing = *found < expected;
        *found += u32::from(is_missing);
        is_missing
    }

    /// Decides about [`Verdict::ModuleTensor`].
    fn module_tensor(&mut self, stack: StackId, size: u64) -> Guess {
        if self.claim_parameter(size) {
            return Guess::new(Category::Parameter);
        }
        let has_temporary = self.init_temporaries.contains(&(stack, size));
        // `tril(ones(n, n))` allocates a temporary of the same size. `Parameter(ones(n))` does not.
        let is_buffer = has_temporary || !self.expected.is_empty();
        Guess::new(if is_buffer { Category::Buffer } else { Category::Parameter })
    }

    /// Decides about [`Verdict::ProgramTensor`].
    fn program_tensor(&mut self, stack: StackId, size: u64) -> Guess {
        match (self.claim_parameter(size), self.phases.allocs_have_stacks) {
            (true, _) => Guess::new(Category::Parameter),
            // One line makes many tensors of many sizes: weights without a gradient.
            (false, true) if self.program_stacks.contains(&stack) => {
                Guess { basis: Basis::Line, ..Guess::new(Category::Parameter) }
            }
            // Data is not larger than all that the passes make of it.
            (false, true) if size > self.largest_activation => {
                Guess::either(Category::Parameter, Category::Input)
            }
            (false, true) => Guess::new(Category::Input),
            // Without stacks, tensors of a model get this verdict too. They are more likely than
            // data that is never freed.
            (false, false) => Guess::new(Category::Buffer),
        }
    }

    /// The blocks from before the window that are parameters. Other blocks (states, gradients) can
    /// have the same sizes.
    ///
    /// A model is built in one go, so its parameters are close together, and below later
    /// allocations. The lowest blocks of each size give the center: the address below which half of
    /// their bytes lie. The blocks of each size that are closest to the center are the parameters.
    async fn preexisting_parameters(
        &self,
        judged: JudgedBlocks<'_>,
        budget: &mut Budget,
    ) -> FxHashSet<u32> {
        // Size, address and index.
        let mut blocks: Vec<(u64, u64, u32)> = Vec::new();
        let visit = |i, block: &Block, verdict| {
            if verdict == Verdict::Preexisting && judged.window.is_live_at_end(block) {
                blocks.push((block.bytes.0, block.address.0, i));
            }
        };
        judged.each(budget, visit).await;
        blocks.sort_unstable();
        // The blocks of each size, with the number of parameters among them.
        let groups = blocks.chunk_by(|a, b| a.0 == b.0).map(|group| {
            let known = |counts: &Counts| counts.get(&group[0].0).copied().unwrap_or(0);
            (group, {
                let parameters = known(&self.expected).saturating_mul(self.models);
                group.len().min(parameters.saturating_sub(known(&self.found)) as usize)
            })
        });
        let center = |min_count: usize| {
            let groups = groups.clone().filter(|(_, count)| *count >= min_count);
            let mut lowest: Vec<(u64, u64)> =
                groups.flat_map(|(g, count)| &g[..count]).map(|b| (b.1, b.0)).collect();
            lowest.sort_unstable();
            let mut half = lowest.iter().map(|b| u128::from(b.1)).sum::<u128>() / 2;
            let middle = lowest.iter().find(|b| {
                let reached = u128::from(b.1) >= half;
                half = half.saturating_sub(b.1.into());
                reached
            });
            middle.map(|b| b.0)
        };
        // The address of a single tensor is chance: an early segment may have been free again. So
        // use sizes with several parameters, if there are any.
        let Some(center) = center(2).or_else(|| center(1)) else { return FxHashSet::default() };
        let nearest = groups.flat_map(|(group, count)| {
            let distance = |b: &(u64, u64, u32)| u128::from(b.1.abs_diff(center));
            let mut sum: u128 = group[..count].iter().map(distance).sum();
            let mut best = (sum, 0);
            for start in 1..=group.len() - count {
                sum = sum + distance(&group[start + count - 1]) - distance(&group[start - 1]);
                best = best.min((sum, start));
            }
            &group[best.1..best.1 + count]
        });
        nearest.map(|b| b.2).collect()
    }

    /// Decides about [`Verdict::GradientCopy`]. A copy in 32 bits of a gradient in 16 has twice its
    /// size.
    fn gradient_copy(&self, size: u64, or: Guess) -> Guess {
        let is_known =
            |size: u64| self.expected.contains_key(&size) || self.gradients.contains_key(&size);
        if is_known(size) || size.is_multiple_of(2) && is_known(size / 2) {
            Guess::new(Category::Gradient)
        } else {
            or
        }
    }

    /// The blocks from before the window that are gradients of a backward pass that began before
    /// the window. They are younger than states, so they have the highest addresses.
    async fn preexisting_gradients(
        &self,
        judged: JudgedBlocks<'_>,
        parameters: &FxHashSet<u32>,
        budget: &mut Budget,
    ) -> FxHashSet<u32> {
        let mut blocks: Vec<(u64, u64, u32)> = Vec::new();
        if self.phases.has_whole_backward() {
            return FxHashSet::default();
        }
        let visit = |i, block: &Block, verdict| {
            if verdict == Verdict::Preexisting
                && judged.window.is_live_at_end(block)
                && !parameters.contains(&i)
                && self.live_gradients.contains_key(&block.bytes.0)
            {
                blocks.push((block.bytes.0, block.address.0, i));
            }
        };
        judged.each(budget, visit).await;
        blocks.sort_unstable();
        let groups = blocks.chunk_by(|a, b| a.0 == b.0);
        let missing = groups.flat_map(|group| {
            let known = |counts: &Counts| counts.get(&group[0].0).copied().unwrap_or(0);
            let count = known(&self.expected).saturating_sub(known(&self.live_gradients)) as usize;
            &group[group.len().saturating_sub(count)..]
        });
        missing.map(|block| block.2).collect()
    }

    /// Whether more bytes from before the window have sizes without gradients than with. Then the
    /// program trains a part of the model only.
    fn find_frozen_weights(&mut self) {
        let bytes = |(&size, &count): (&u64, &u32)| u128::from(size) * u128::from(count);
        let has_gradients = |size: &u64| self.expected.contains_key(size);
        let is_frozen = |size: &u64| !has_gradients(size) && !self.is_workspace(*size);
        let sizes = self.preexisting.keys().filter(|&size| is_frozen(size)).count();
        let known = || self.preexisting.iter();
        let frozen: u128 = known().filter(|known| is_frozen(known.0)).map(bytes).sum();
        let trained: u128 = known().filter(|known| has_gradients(known.0)).map(bytes).sum();
        self.has_frozen_weights = trained > 0
            && (sizes >= MIN_FROZEN_SIZES && frozen > trained
                || frozen > MIN_FROZEN_RATIO * trained);
    }

    /// Decides about [`Verdict::BackwardTail`].
    fn backward_tail(&self, size: u64, is_long: bool, may_be_gradient: bool) -> Guess {
        let is_gradient = may_be_gradient
            && if self.expected.is_empty() { is_long } else { self.expected.contains_key(&size) };
        Guess::new(if is_gradient { Category::Gradient } else { Category::Temporary })
    }

    /// Decides about [`Verdict::Preexisting`], for blocks that are no parameters.
    fn preexisting(&mut self, size: u64, is_live_at_end: bool) -> Category {
        let known = |counts: &Counts| counts.get(&size).copied().unwrap_or(0);
        let parameters = known(&self.expected);
        if !is_live_at_end {
            return match parameters {
                0 => Category::Unknown,
                _ => Category::Gradient,
            };
        }
        if parameters > 0 {
            // All states are known. So the rest are gradients, unless the window's backward passes
            // allocated the gradients.
            if known(&self.states) >= parameters {
                return match known(&self.gradients) {
                    0 => Category::Gradient,
                    _ => Category::Buffer,
                };
            }
            // The window's backward passes allocated no gradients. So the gradients are older, and
            // are zeroed in place. They were allocated before the states, so they have the lower
            // addresses.
            if known(&self.gradients) == 0 && self.phases.occurs(Phase::Backward) {
                let zeroed = self.zeroed_gradients.entry(size).or_default();
                if *zeroed < parameters {
                    *zeroed += 1;
                    return Category::Gradient;
                }
            }
            return Category::OptimizerState;
        }
        if self.is_workspace(size) && self.phases.occurs(Phase::Forward) {
            return Category::Workspace;
        }
        match (
            self.expected.is_empty(),
            self.phases.occurs(Phase::Forward),
            self.phases.occurs(Phase::Backward),
        ) {
            // Nothing shows an optimizer. The blocks that stay are one copy of the model.
            (true, true, false) => Category::Parameter,
            (false, _, _) if self.has_frozen_weights => Category::Parameter,
            (false, _, _) => Category::Buffer,
            _ => Category::Unknown,
        }
    }
}
