//! Evidence from stacks: the rules that each stack matches, and the phase that it shows.

use super::own_name::own_name;
use super::rules::{Rule, Rules};
use super::{Category, Phase};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vramscope_snapshot::{FrameId, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, STRIDE, strides};
use vramscope_trace::{Trace, is_framework_file};

/// The evidence from one stack.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the facts do not depend on each other")]
pub(super) struct StackHints {
    /// Category of the user's rule that the stack matches.
    pub(super) user_rule: Option<Category>,
    /// Category of the built-in rule that the stack matches.
    pub(super) built_in_rule: Option<Category>,
    /// Whether the stack has frames.
    pub(super) has_frames: bool,
    /// Whether the stack is from inside the autograd engine, or from a thread that C++ started.
    pub(super) is_engine: bool,
    /// Whether a module's own `__init__` allocated the block: a parameter or a buffer.
    pub(super) is_module_init: bool,
    /// Whether the block is a bucket of gradients that `DistributedDataParallel` reduces at once.
    pub(super) is_bucket: bool,
    /// Whether the program's own function or file has `cache` in its name.
    pub(super) is_cache: bool,
    /// Whether the block is one buffer for many gradients, which a library allocates at its start.
    pub(super) is_gradient_buffer: bool,
    /// Whether a thread of the program runs the code, while modules run in other threads.
    pub(super) is_worker_thread: bool,
    /// The innermost frame in Python.
    pub(super) site: Option<FrameId>,
    facts: u8,
}

/// What a frame shows, and each stack that has the frame.
#[derive(Clone, Copy)]
pub(super) enum Fact {
    /// A module runs: a forward pass, or its repetition inside backward.
    RunsModule,
    /// `DistributedDataParallel` allocates buckets.
    AllocatesBuckets,
    /// The call zeroes gradients, or drops them.
    ZeroesGradients,
    /// `autocast` casts an argument of an operation, and keeps the result if it is a weight.
    AutocastCast,
    /// An autograd graph drops the tensors that it saved.
    ReleasesGraph,
    /// The program's own code is in an optimizer's file.
    OptimizerFile,
    /// `Module._apply` moves or converts a model.
    MovesModel,
    /// The innermost Python frame is the program's own: it calls the operation itself.
    IsOwnLine,
}

impl StackHints {
    pub(super) fn has(self, fact: Fact) -> bool {
        self.facts & 1 << fact as u8 != 0
    }

    /// The phase that the stack shows. `None` if it could be any.
    pub(super) fn phase(&self) -> Option<Phase> {
        if self.is_engine {
            return Some(Phase::Backward);
        }
        match self.built_in_rule {
            Some(Category::Activation) => Some(Phase::Forward),
            Some(Category::Gradient) => Some(Phase::Backward),
            Some(Category::OptimizerState | Category::Temporary) => Some(Phase::Optimizer),
            Some(_) => None,
            None => self.has_frames.then_some(Phase::Other),
        }
    }
}

/// The evidence from one frame.
#[derive(Clone, Copy, Default)]
struct FrameHints {
    /// Index of the first user's rule that the frame matches.
    user_rule: Option<u32>,
    /// Index of the first built-in rule that the frame matches.
    built_in_rule: Option<u32>,
    class: FrameClass,
    /// Whether the function is an `__init__`.
    is_init: bool,
    function: MixedFunction,
    is_cache: bool,
    is_thread: bool,
    /// A bit for each [`Fact`].
    facts: u8,
}

/// The code that a frame belongs to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FrameClass {
    #[default]
    Compiled,
    /// The autograd engine's loop over a graph.
    Engine,
    /// The entry point of a Python program or thread.
    Root,
    /// PyTorch and Python's standard library.
    Library,
    /// The program, and packages that it uses.
    User,
}

/// A function that allocates blocks of two categories. The order of its lines separates them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum MixedFunction {
    /// No such function.
    #[default]
    None,
    /// `Module._apply`.
    ModuleApply,
    /// `_NormBase.__init__`.
    NormInit,
    /// `_setup_for_real_optimizer` of `DeepSpeed`'s stage 3: buckets, then gradients.
    ZeroSetup,
    /// `__init__` of Megatron's buffers: weights, then gradients.
    MegatronBuffers,
}

/// Cost of matching a frame against all rules, in units of [`Budget`].
const COST_PER_FRAME: u64 = 100;

fn first_match(rules: &[Rule], file: &str, name: &str, own: &str) -> Option<u32> {
    rules.iter().position(|rule| rule.matches(file, name, own)).map(|i| i as u32)
}

fn frame_hints(snapshot: &Snapshot, id: FrameId, rules: &Rules) -> FrameHints {
    let frame = snapshot.frame(id);
    // Windows paths have backslashes.
    let (file, name) = (snapshot.text(frame.file).replace('\\', "/"), snapshot.text(frame.name));
    let own = own_name(&name);
    let class = match &*name {
        "<module>" | "_bootstrap" | "_run_module_as_main" | "_run_code" => FrameClass::Root,
        _ if own.contains("torch::autograd::Engine::evaluate_function") => FrameClass::Engine,
        _ if own.contains("torch::autograd::Engine::thread_main") => FrameClass::Engine,
        _ if !file.contains(".py") && !file.starts_with('<') => FrameClass::Compiled,
        _ if is_framework_file(&file) => FrameClass::Library,
        _ => FrameClass::User,
    };
    let function = match &*name {
        "_apply" if file.ends_with("/nn/modules/module.py") => MixedFunction::ModuleApply,
        "__init__" if file.ends_with("/nn/modules/batchnorm.py") => MixedFunction::NormInit,
        "_setup_for_real_optimizer" => MixedFunction::ZeroSetup,
        "__init__" if file.ends_with("/param_and_grad_buffer.py") => MixedFunction::MegatronBuffers,
        _ => MixedFunction::None,
    };
    let is_checkpoint = file.ends_with("checkpoint.py") || file.ends_with("checkpointing.py");
    let is_call = name.contains("_call_impl") && file.ends_with("/nn/modules/module.py");
    let makes_buckets = file.ends_with("/nn/parallel/distributed.py")
        && matches!(&*name, "_ddp_init_helper" | "_pre_forward");
    let facts = [
        (Fact::RunsModule, is_call || is_checkpoint && class != FrameClass::Root),
        (Fact::AllocatesBuckets, makes_buckets || own.contains("Reducer::initialize_buckets")),
        (Fact::ZeroesGradients, name == "zero_grad"),
        (Fact::AutocastCast, own.ends_with("autocast::cached_cast")),
        (
            Fact::ReleasesGraph,
            own.starts_with("torch::autograd::") && own.ends_with("::release_variables"),
        ),
        (Fact::OptimizerFile, class == FrameClass::User && has_optimizer_name(&file)),
        (Fact::MovesModel, function == MixedFunction::ModuleApply),
    ];
    FrameHints {
        user_rule: first_match(rules.user(), &file, &name, &name),
        built_in_rule: first_match(Rules::built_in(), &file, &name, &own),
        class,
        is_init: name == "__init__",
        function,
        is_cache: has_cache_name(&file, &name),
        is_thread: name == "_bootstrap",
        facts: facts.iter().map(|(fact, holds)| u8::from(*holds) << *fact as u8).sum(),
    }
}

/// Whether the name of a file begins or ends with the word `optimizer`, or with `optim`.
fn has_optimizer_name(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    let stem = name.strip_suffix(".py").unwrap_or(&name);
    stem.split('_').any(|word| matches!(word, "optim" | "optims" | "optimizer" | "optimizers"))
}

/// Whether a function or the name of its file has the word `cache`.
fn has_cache_name(file: &str, function: &str) -> bool {
    let file = file.rsplit('/').next().unwrap_or(file);
    [file, function].iter().any(|name| name.to_ascii_lowercase().contains("cache"))
}

/// The evidence from every stack of a snapshot, by [`StackId`].
pub(super) async fn hints(
    snapshot: &Snapshot,
    trace: &Trace,
    rules: &Rules,
    budget: &mut Budget,
) -> Vec<StackHints> {
    let mut frames: Vec<FrameHints> = Vec::with_capacity(snapshot.frames.len());
    for id in 0..snapshot.frames.len() as u32 {
        budget.charge(COST_PER_FRAME).await;
        frames.push(frame_hints(snapshot, FrameId(id), rules));
    }
    let count = snapshot.stacks.len();
    let stack = |id: usize| snapshot.stacks.frames(StackId(id as u32));
    let outermost_python = |stack: &[FrameId]| {
        let mut frames = stack.iter().rev().map(|f| frames[f.0 as usize]);
        frames.find(|f| f.class as u8 >= FrameClass::Root as u8)
    };
    // In most files, Python stacks reach down to an entry point of Python. A stack without one is
    // then from a thread that C++ started.
    let (mut python_stacks, mut rooted_stacks) = (0, 0);
    for part in strides(count) {
        budget.charge(part.len() as u64).await;
        for frame in part.filter_map(|id| outermost_python(stack(id))) {
            python_stacks += 1;
            rooted_stacks += u32::from(frame.class == FrameClass::Root);
        }
    }
    let have_roots = 2 * rooted_stacks > python_stacks;
    let category = |rules: &[Rule], index: Option<u32>| index.map(|i| rules[i as usize].category);
    let of_stack = |stack: &[FrameId]| {
        let all_frames = &frames;
        let frames = || stack.iter().map(|f| all_frames[f.0 as usize]);
        let built_in_rule =
            category(Rules::built_in(), frames().filter_map(|f| f.built_in_rule).min());
        let user_frame = frames().find(|f| f.class == FrameClass::User);
        let has_library_init = frames().any(|f| f.is_init && f.class == FrameClass::Library);
        let is_own_line = frames()
            .find(|frame| frame.class != FrameClass::Compiled)
            .is_some_and(|frame| frame.class == FrameClass::User);
        let facts = frames().fold(0, |facts, frame| facts | frame.facts)
            | u8::from(is_own_line) << Fact::IsOwnLine as u8;
        StackHints {
            user_rule: category(rules.user(), frames().filter_map(|f| f.user_rule).min()),
            built_in_rule,
            has_frames: !stack.is_empty(),
            is_engine: frames().any(|f| f.class == FrameClass::Engine)
                || have_roots
                    && outermost_python(stack).is_some_and(|f| f.class != FrameClass::Root),
            is_module_init: built_in_rule == Some(Category::Parameter)
                && user_frame.is_some_and(|f| f.is_init)
                && !has_library_init
                && !frames().any(|f| {
                    matches!(
                        f.function,
                        MixedFunction::ModuleApply | MixedFunction::MegatronBuffers
                    )
                }),
            is_bucket: built_in_rule == Some(Category::Communication)
                && facts & 1 << Fact::AllocatesBuckets as u8 != 0,
            is_cache: user_frame.is_some_and(|f| f.is_cache),
            is_gradient_buffer: false,
            is_worker_thread: outermost_python(stack).is_some_and(|f| f.is_thread),
            facts,
            site: stack
                .iter()
                .copied()
                .find(|f| all_frames[f.0 as usize].class != FrameClass::Compiled),
        }
    };
    let mut hints: Vec<StackHints> = Vec::with_capacity(count);
    for id in 0..count {
        // `of_stack` iterates over the frames several times.
        budget.charge(1 + 2 * stack(id).len() as u64).await;
        hints.push(of_stack(stack(id)));
    }
    let mixed = [
        MixedFunction::ModuleApply,
        MixedFunction::NormInit,
        MixedFunction::ZeroSetup,
        MixedFunction::MegatronBuffers,
    ];
    for function in mixed {
        find_category_by_line(snapshot, trace, &frames, function, &mut hints, budget).await;
    }
    // A server may run its model in a thread.
    if hints.iter().any(|hints| hints.is_worker_thread && hints.has(Fact::RunsModule)) {
        for hints in &mut hints {
            hints.is_worker_thread = false;
        }
    }
    hints
}

/// Separates two categories by their line, in a function that allocates them in a known order.
///
/// `Module._apply` calls its function argument for each parameter, each gradient and each buffer,
/// in this order. It has done so since before PyTorch 2.0. Where two lines allocate, the second one
/// moves gradients if its blocks have the sizes of the first one's, and buffers if not.
/// `_NormBase.__init__` creates weight and bias if it is affine. Then it creates the running mean,
/// the running variance and the number of batches, on one line each, or none of them. The functions
/// of `DeepSpeed` and Megatron allocate gradients last.
async fn find_category_by_line(
    snapshot: &Snapshot,
    trace: &Trace,
    frames: &[FrameHints],
    function: MixedFunction,
    hints: &mut [StackHints],
    budget: &mut Budget,
) {
    // Stacks with their line in the function.
    let mut lines: Vec<(u32, u32)> = Vec::new();
    for id in 0..hints.len() as u32 {
        let stack = snapshot.stacks.frames(StackId(id));
        budget.charge(1 + stack.len() as u64 / 8).await;
        // DeepSpeed's function also calls functions that allocate weights.
        let is_other = function == MixedFunction::ZeroSetup
            && hints[id as usize].built_in_rule != Some(Category::Communication);
        if is_other {
            continue;
        }
        let found = stack.iter().find(|f| frames[f.0 as usize].function == function);
        lines.extend(found.map(|&f| (id, snapshot.frame(f).line)));
    }
    let mut distinct: Vec<u32> = lines.iter().map(|l| l.1).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let count = distinct.len();
    let moves_gradients = function == MixedFunction::ModuleApply
        && (count == 3 || count == 2 && have_equal_sizes(trace, &lines, budget).await);
    for (id, line) in lines {
        let index = distinct.partition_point(|&l| l < line);
        let hints = &mut hints[id as usize];
        match function {
            MixedFunction::ModuleApply if moves_gradients && index == 1 => {
                hints.is_gradient_buffer = true;
                continue;
            }
            MixedFunction::ModuleApply if index > 0 && index + 1 == count => {}
            MixedFunction::NormInit if count >= 3 && index + 3 >= count => {}
            MixedFunction::ZeroSetup | MixedFunction::MegatronBuffers => {
                hints.is_gradient_buffer = index > 0 && index + 1 == count;
                continue;
            }
            _ => continue,
        }
        if hints.built_in_rule == Some(Category::Parameter) {
            hints.built_in_rule = Some(Category::Buffer);
        }
    }
}

/// Whether the live blocks of the stacks of two lines have equal sizes. `lines` has stacks with
/// their line.
async fn have_equal_sizes(trace: &Trace, lines: &[(u32, u32)], budget: &mut Budget) -> bool {
    let lines: FxHashMap<u32, u32> = lines.iter().copied().collect();
    // Sizes, by line.
    let mut sizes: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for blocks in trace.blocks.chunks(STRIDE) {
        budget.charge(blocks.len() as u64 * 2).await;
        let live = blocks.iter().filter(|block| block.leaves == trace.slots());
        for block in live.filter(|block| !block.has_stack_of_free()) {
            if let Some(line) = lines.get(&block.stack.0) {
                sizes.entry(*line).or_default().push(block.bytes.0);
            }
        }
    }
    let mut sizes: Vec<Vec<u64>> = sizes.into_values().collect();
    for sizes in &mut sizes {
        sizes.sort_unstable();
    }
    matches!(&sizes[..], [first, second] if first == second)
}
