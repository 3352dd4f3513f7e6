//! Evidence from sizes: the number of parameters of each size, and the categories of the remaining
//! blocks that follow from it.

use super::copies::{autocast_copies, judge_copies, model_copies};
use super::counts::{
    Counts, JudgedBlocks, MIN_FROZEN_SIZES, MIN_MODEL_BLOCKS, MIN_PARAMETER_BYTES, parameters,
};
use super::kept_graphs::kept_graphs;
use super::life::Verdict;
use super::lineage::Lineage;
use super::phases::Phases;
use super::stacks::Fact;
use super::window::{Window, are_most};
use super::workspace::{MAX_PER_STREAM, WORKSPACE_BYTES};
use super::{Basis, Category, CopyKind, Guess, Phase};
use rustc_hash::FxHashSet;
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, filled};

/// The states that Adam and its kind have for each parameter (`torch/optim/adam.py`).
const USUAL_STATES: u32 = 2;

/// Other tensors of a model do not have more than this many times the bytes of its weights. An
/// adapter of 22 MiB in two sizes beside 2.9 GiB of weights needs it.
const MIN_FROZEN_RATIO: u128 = 8;

/// Assigns blocks to the parameters that must exist, and guesses the others by size.
struct SizeMatcher<'a> {
    judged: JudgedBlocks<'a>,
    lineage: &'a Lineage,
    /// Parameters that must exist.
    expected: Counts,
    /// Parameters found so far.
    found: Counts,
    /// Blocks from before the window without a stack.
    preexisting: Counts,
    /// Size, address and index of each of them that is live at the end, ascending.
    old: Vec<(u64, u64, u32)>,
    /// Gradients that this window's backward passes allocated.
    gradients: Counts,
    /// Gradients of this window that are live at its end.
    live_gradients: Counts,
    /// Gradients from before the window found so far. They are zeroed in place.
    zeroed_gradients: Counts,
    /// Backward passes with gradients that outlived them. Blocks freed within such a pass are no
    /// gradients.
    passes_with_gradients: FxHashSet<u32>,
    /// Optimizer states known from stacks.
    states: Counts,
    /// Stacks of the program that make many tensors of several sizes before the first pass.
    program_stacks: FxHashSet<StackId>,
    /// The largest block of a forward pass, in bytes.
    largest_activation: u64,
    /// Whether modules allocate parameters, or move them to the device.
    has_modules: bool,
    /// The last event before which the program moves parameters that it made on the host.
    last_move: Option<u32>,
    /// Number of tensors that lines of the program's own `__init__` functions make on the device.
    own_tensors: u32,
    /// Stacks and sizes of temporaries that a module's `__init__` allocated.
    init_temporaries: FxHashSet<(StackId, u64)>,
    /// Whether the gradients are views of the buckets in which they are reduced.
    buckets_hold_gradients: bool,
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
    let mut matcher = SizeMatcher {
        judged,
        lineage,
        expected: parameters(judged, budget).await,
        found: Counts::default(),
        preexisting: Counts::default(),
        old: Vec::new(),
        gradients: Counts::default(),
        live_gradients: Counts::default(),
        zeroed_gradients: Counts::default(),
        passes_with_gradients: FxHashSet::default(),
        states: Counts::default(),
        program_stacks: judged.program_stacks(budget).await,
        largest_activation: 0,
        has_modules: false,
        last_move: None,
        own_tensors: 0,
        init_temporaries: FxHashSet::default(),
        buckets_hold_gradients: judged.buckets_hold_gradients(budget).await,
        ends_in_forward: false,
    };
    matcher.count(budget).await;
    matcher.infer_expected();
    let mut guesses = filled(Guess::default(), verdicts.len(), budget).await;
    matcher.guess(&mut guesses, budget).await;
    kept_graphs(window, matcher.preexisting.is_empty(), &mut guesses, budget).await;
    lineage.pass_on(&mut guesses, budget).await;
    let is_open = |i: u32, block: &Block| {
        let guess = guesses[i as usize];
        // One parameter of each size, or what takes the place of another block.
        let is_claimed = matches!(guess.category, Category::Parameter | Category::OptimizerState)
            && guess.basis >= Basis::Life;
        let is_kept =
            matches!(guess.category, Category::Cache | Category::Workspace | Category::Gradient);
        !is_claimed
            && match verdicts[i as usize] {
                Verdict::ModuleTensor | Verdict::ProgramTensor => true,
                Verdict::Final(_) => {
                    window.phase(block) == Some(Phase::Other)
                        && guess.basis < Basis::Stated
                        && !is_kept
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
    fn phases(&self) -> &Phases {
        self.judged.window.phases
    }

    /// Counts the blocks of each size.
    async fn count(&mut self, budget: &mut Budget) {
        let (judged, lineage) = (self.judged, self.lineage);
        let window = judged.window;
        let (mut activations, mut live) = (0, 0);
        let visit = |i, block: &Block, verdict| {
            let (size, alloc) = (block.bytes.0, block.alloc_event());
            let is_live = window.is_live_at_end(block);
            let category = match verdict {
                Verdict::Final(guess) => guess.category,
                Verdict::Preexisting => {
                    self.preexisting.add(size);
                    self.old.extend(is_live.then_some((size, block.address.0, i)));
                    return;
                }
                Verdict::ModuleTensor => {
                    self.has_modules = true;
                    self.own_tensors += u32::from(window.stack(block).has(Fact::IsOwnLine));
                    return;
                }
                _ => return,
            };
            match category {
                // A parameter that is dropped and allocated again (converted, sharded) is one
                // parameter, so only the live one counts.
                Category::Parameter => {
                    self.has_modules = true;
                    if window.stack(block).has(Fact::MovesModel) {
                        self.last_move = alloc.map(|alloc| alloc.0).max(self.last_move);
                    }
                    let youngest = window.block(lineage.youngest(i));
                    if window.is_live_at_end(youngest) {
                        self.found.add(youngest.bytes.0);
                    }
                }
                Category::OptimizerState => self.states.add(size),
                Category::Gradient => {
                    let Some(alloc) = alloc else { return };
                    self.gradients.add(size);
                    if is_live {
                        self.live_gradients.add(size);
                    }
                    if size >= MIN_PARAMETER_BYTES {
                        self.passes_with_gradients.insert(window.phases.period(alloc.0));
                    }
                }
                Category::Activation => {
                    self.largest_activation = size.max(self.largest_activation);
                    activations += 1;
                    live += u32::from(is_live);
                }
                Category::Temporary if alloc.is_some() && window.stack(block).is_module_init => {
                    self.init_temporaries.insert((block.stack, size));
                }
                _ => {}
            }
        };
        judged.each(budget, visit).await;
        self.old.sort_unstable();
        // More than a quarter of the activations is live at the end. Inference frees them early.
        self.ends_in_forward = 4 * live > activations;
    }

    /// Guesses each block.
    async fn guess(&mut self, guesses: &mut [Guess], budget: &mut Budget) {
        let (judged, lineage) = (self.judged, self.lineage);
        let window = judged.window;
        let has_frozen_weights = self.has_frozen_weights();
        let models = self.models();
        // Blocks with better evidence from their stacks claim parameters first.
        for turn in [Verdict::ModuleTensor, Verdict::ProgramTensor] {
            let visit = |i: u32, block: &Block, verdict| {
                if verdict != turn {
                    return;
                }
                let guess = match turn {
                    Verdict::ModuleTensor => self.module_tensor(block),
                    _ => self.program_tensor(block.stack, block.bytes.0),
                };
                // A step replaces it, and it is no parameter.
                let replaced_in = lineage.after(i).and_then(|new| window.phase(window.block(new)));
                let is_state =
                    replaced_in == Some(Phase::Optimizer) && guess.category != Category::Parameter;
                guesses[i as usize] =
                    if is_state { Guess::new(Category::OptimizerState) } else { guess };
            };
            judged.each(budget, visit).await;
        }
        let parameters = self.preexisting_parameters(models);
        let gradients = self.preexisting_gradients(&parameters);
        let visit = |i: u32, block: &Block, verdict| {
            let size = block.bytes.0;
            let category = match verdict {
                Verdict::Preexisting if parameters.contains(&i) => Category::Parameter,
                Verdict::Preexisting if gradients.contains(&i) => Category::Gradient,
                Verdict::Preexisting => {
                    self.preexisting(size, window.is_live_at_end(block), has_frozen_weights)
                }
                Verdict::Final(known) if self.is_first_workspace(block, known) => {
                    Category::Workspace
                }
                Verdict::Final(known) => {
                    guesses[i as usize] = known;
                    return;
                }
                Verdict::Bucket if self.buckets_hold_gradients => Category::Gradient,
                Verdict::Bucket => Category::Communication,
                Verdict::GradientCopy(_) if self.is_gradient_size(size) => Category::Gradient,
                Verdict::GradientCopy(or) => or,
                Verdict::BackwardTail { is_long } if self.is_gradient(block, is_long) => {
                    Category::Gradient
                }
                Verdict::BackwardTail { .. } => Category::Temporary,
                Verdict::ModuleTensor | Verdict::ProgramTensor => return,
            };
            guesses[i as usize] = Guess::new(category);
        };
        judged.each(budget, visit).await;
    }

    /// Whether the states of most parameters are known.
    fn has_states(&self) -> bool {
        let all = self.expected.all();
        let with_state = self.expected.iter().map(|(size, count)| {
            // State in 32 bits of parameters in 16.
            self.states.of(size).max(self.states.of(2 * size)).min(count)
        });
        all > 0 && 2 * with_state.sum::<u32>() > all
    }

    /// The number of models among the blocks from before the window: a frozen reference and an
    /// average of the weights have the sizes of the parameters, too. Each size of a parameter
    /// occurs once for each model and, if the window shows no states of the optimizer, twice more.
    fn models(&self) -> u32 {
        let all = self.expected.bytes(|_, _| true);
        if all == 0 || self.expected.len() < MIN_FROZEN_SIZES || !self.phases().has_whole_backward()
        {
            return 1;
        }
        let others = if self.has_states() { 0 } else { USUAL_STATES }
            + u32::from(self.gradients.is_empty() && self.phases().occurs(Phase::Backward));
        let are_enough = |models: &u32| {
            let known = |size| self.preexisting.of(size) + self.found.of(size);
            let enough = |size, count| known(size) >= (models + others) * count;
            are_most(self.expected.bytes(enough), all)
        };
        let most = self.preexisting.all() + self.found.all();
        (2..=most).take_while(are_enough).last().unwrap_or(1)
    }

    /// Whether a block that is guessed to be a gradient is the workspace of the first backward
    /// pass: no parameter has its size, and no other pass allocates one.
    fn is_first_workspace(&self, block: &Block, guess: Guess) -> bool {
        let size = block.bytes.0;
        guess.category == Category::Gradient
            && guess.basis < Basis::Stated
            && WORKSPACE_BYTES.contains(&size)
            && self.judged.window.is_live_at_end(block)
            && block.alloc_event().is_some()
            && self.gradients.of(size) == 1
            && self.expected.of(size) <= 1
            && [&self.found, &self.states, &self.preexisting].iter().all(|c| c.of(size) == 0)
            && self.expected.len() > 1
    }

    /// Infers `expected` from blocks from before the window, if a training window shows neither
    /// gradients nor states.
    ///
    /// Each parameter's size then occurs three times with two states per parameter (Adam), and
    /// twice with one state (momentum).
    fn infer_expected(&mut self) {
        // Without an optimizer, each block counts as a parameter.
        let has_optimizer = self.phases().occurs(Phase::Optimizer) || !self.states.is_empty();
        if !self.expected.is_empty() || !self.ends_in_forward || !has_optimizer {
            return;
        }
        let mut old = Counts::default();
        self.old.iter().filter(|b| !self.is_workspace(b.0)).for_each(|block| old.add(block.0));
        let all = old.bytes(|_, _| true);
        let are_copies = |times: &u32| are_most(old.bytes(|_, count| count % times == 0), all);
        let Some(times) = [3, 2].into_iter().find(are_copies) else { return };
        for (size, count) in old.iter().filter(|(_, count)| count % times == 0) {
            self.expected.raise(size, count / times);
        }
    }

    /// Whether blocks from before the window with this size are workspaces: the size is one of a
    /// workspace, and few blocks have it. Other tensors have the size of cuBLASLt's workspace too,
    /// so that needs a workspace of cuBLAS beside it.
    fn is_workspace(&self, size: u64) -> bool {
        let few = |size: &u64| (1..=MAX_PER_STREAM).contains(&self.preexisting.of(*size));
        let [cublas @ .., lt] = &WORKSPACE_BYTES;
        few(&size) && (cublas.contains(&size) || size == *lt && cublas.iter().any(few))
    }

    /// Counts a parameter of this size as found, if one more must exist. Returns whether it does.
    fn claim_parameter(&mut self, size: u64) -> bool {
        let is_missing = self.found.of(size) < self.expected.of(size);
        if is_missing {
            self.found.add(size);
        }
        is_missing
    }

    /// Decides about [`Verdict::ModuleTensor`].
    fn module_tensor(&mut self, block: &Block) -> Guess {
        let size = block.bytes.0;
        let is_buffer = !self.claim_parameter(size)
            && (!self.expected.is_empty()
                // `tril(ones(n, n))` allocates a temporary of the same size. `Parameter(ones(n))`
                // does not.
                || self.init_temporaries.contains(&(block.stack, size))
                || self.is_beside_moved(block));
        Guess::new(if is_buffer { Category::Buffer } else { Category::Parameter })
    }

    /// Whether the program makes a few tensors of modules on the device itself, and parameters on
    /// the host, which it moves later.
    fn is_beside_moved(&self, block: &Block) -> bool {
        self.own_tensors < MIN_MODEL_BLOCKS
            && self.judged.window.stack(block).has(Fact::IsOwnLine)
            && block.alloc_event().is_some_and(|alloc| Some(alloc.0) < self.last_move)
    }

    /// Decides about [`Verdict::ProgramTensor`].
    fn program_tensor(&mut self, stack: StackId, size: u64) -> Guess {
        if self.claim_parameter(size) {
            Guess::new(Category::Parameter)
        } else if !self.phases().allocs_have_stacks {
            // Without stacks, tensors of a model get this verdict too. They are more likely than
            // data that is never freed.
            Guess::new(Category::Buffer)
        } else if self.program_stacks.contains(&stack) {
            // One line makes many tensors of many sizes: weights without a gradient.
            Guess { basis: Basis::Line, ..Guess::new(Category::Parameter) }
        } else if size > self.largest_activation && !self.has_modules {
            // Data is not larger than all that the passes make of it. But a program with modules
            // has its parameters there.
            Guess::either(Category::Parameter, Category::Input)
        } else {
            Guess::new(Category::Input)
        }
    }

    /// The blocks from before the window that are parameters. Other blocks (states, gradients) can
    /// have the same sizes.
    ///
    /// A model is built in one go, so its parameters are close together, and below later
    /// allocations. The lowest blocks of each size give the center: the address below which half of
    /// their bytes lie. The blocks of each size that are closest to the center are the parameters.
    fn preexisting_parameters(&self, models: u32) -> FxHashSet<u32> {
        // The blocks of each size, with the number of parameters among them.
        let groups = self.old.chunk_by(|a, b| a.0 == b.0).map(|group| {
            let parameters = self.expected.of(group[0].0).saturating_mul(models);
            let missing = parameters.saturating_sub(self.found.of(group[0].0));
            (group, group.len().min(missing as usize))
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

    /// Whether a copy of a gradient has this size. A copy in 32 bits of a gradient in 16 has twice
    /// its size.
    fn is_gradient_size(&self, size: u64) -> bool {
        let is_known = |size: u64| self.expected.of(size) > 0 || self.gradients.of(size) > 0;
        is_known(size) || size.is_multiple_of(2) && is_known(size / 2)
    }

    /// The blocks from before the window that are gradients of a backward pass that began before
    /// the window. They are younger than states, so they have the highest addresses.
    fn preexisting_gradients(&self, parameters: &FxHashSet<u32>) -> FxHashSet<u32> {
        if self.phases().has_whole_backward() {
            return FxHashSet::default();
        }
        let groups = self.old.chunk_by(|a, b| a.0 == b.0);
        let missing = groups.flat_map(|group| {
            let live = self.live_gradients.of(group[0].0);
            let missing = self.expected.of(group[0].0).saturating_sub(live);
            let count = if live > 0 { missing as usize } else { 0 };
            let others = group.iter().rev().filter(|block| !parameters.contains(&block.2));
            others.take(count)
        });
        missing.map(|block| block.2).collect()
    }

    /// Whether more bytes from before the window have sizes without gradients than with. Then the
    /// program trains a part of the model only, and the others are frozen weights.
    fn has_frozen_weights(&self) -> bool {
        let has_gradients = |size| self.expected.of(size) > 0;
        let is_frozen = |size| !has_gradients(size) && !self.is_workspace(size);
        let sizes = self.preexisting.iter().filter(|known| is_frozen(known.0)).count();
        let frozen = self.preexisting.bytes(|size, _| is_frozen(size));
        let trained = self.preexisting.bytes(|size, _| has_gradients(size));
        trained > 0
            && (sizes >= MIN_FROZEN_SIZES && frozen > trained
                || frozen > MIN_FROZEN_RATIO * trained)
    }

    /// Whether a block of [`Verdict::BackwardTail`] is a gradient.
    fn is_gradient(&self, block: &Block, is_long: bool) -> bool {
        let is_last = |alloc: u32| {
            let pass = self.phases().period(alloc);
            !self.passes_with_gradients.contains(&pass)
        };
        block.alloc_event().is_some_and(|alloc| is_last(alloc.0))
            && if self.expected.is_empty() { is_long } else { self.expected.of(block.bytes.0) > 0 }
    }

    /// Decides about [`Verdict::Preexisting`], for blocks that are no parameters.
    fn preexisting(&mut self, size: u64, is_live: bool, has_frozen_weights: bool) -> Category {
        let parameters = self.expected.of(size);
        let has_backward = self.phases().occurs(Phase::Backward);
        let has_gradients = self.gradients.of(size) > 0;
        match (is_live, parameters) {
            (false, 0) => return Category::Unknown,
            (false, _) => return Category::Gradient,
            (true, 0) => {}
            // All states are known. So the rest are gradients, unless the window's backward passes
            // allocated the gradients.
            (true, _) if self.states.of(size) >= parameters => {
                return if has_gradients { Category::Buffer } else { Category::Gradient };
            }
            // The window's backward passes allocated no gradients. So the gradients are older, and
            // are zeroed in place. They were allocated before the states, so they have the lower
            // addresses.
            (true, _)
                if !has_gradients
                    && has_backward
                    && self.zeroed_gradients.of(size) < parameters =>
            {
                self.zeroed_gradients.add(size);
                return Category::Gradient;
            }
            (true, _) => return Category::OptimizerState,
        }
        let has_forward = self.phases().occurs(Phase::Forward);
        match self.expected.is_empty() {
            _ if self.is_workspace(size) && has_forward => Category::Workspace,
            // Nothing shows an optimizer. The blocks that stay are one copy of the model.
            true if has_forward && !has_backward => Category::Parameter,
            true => Category::Unknown,
            false if has_frozen_weights => Category::Parameter,
            false => Category::Buffer,
        }
    }
}
