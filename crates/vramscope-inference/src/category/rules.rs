//! Rules that map stack frames to categories.

use super::Category;
use std::borrow::Cow;

/// A rule: the category of blocks that have a matching frame in their stack.
///
/// A pattern matches a text that contains it. `*` matches any text. A pattern with a leading `=`
/// matches the whole text only.
///
/// A built-in pattern is searched for in the function's [`own_name`](super::own_name()) only, not
/// in the types that it takes or returns. A user's pattern is searched for in all of the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Pattern for the frame's file.
    pub file: Cow<'static, str>,
    /// Pattern for the frame's function.
    pub function: Cow<'static, str>,
    /// Category of the block.
    pub category: Category,
}

impl Rule {
    const fn new(category: Category, file: &'static str, function: &'static str) -> Self {
        Self { file: Cow::Borrowed(file), function: Cow::Borrowed(function), category }
    }

    /// Whether the rule matches a frame. `part` is the part of the function's name to search in.
    pub(super) fn matches(&self, file: &str, function: &str, part: &str) -> bool {
        pattern_matches(&self.function, function, part) && pattern_matches(&self.file, file, file)
    }
}

fn pattern_matches(pattern: &str, text: &str, part: &str) -> bool {
    match pattern.strip_prefix('=') {
        Some(whole) => text == whole,
        None => pattern == "*" || part.contains(pattern),
    }
}

/// An ordered table of rules. The first rule that any frame of a stack matches applies.
///
/// A user's rules come before the built-in ones, and are final. A built-in rule is only a first
/// guess: the life of the block can override it (did a gradient outlive backward?).
///
/// The text format has one rule per line: `category file function`. The function may contain
/// spaces. `#` starts a comment line.
///
/// ```
/// use vramscope_inference::{Category, Rules};
///
/// let rules = Rules::parse(
///     "# our cache\nbuffer serving/cache.py *\nworkspace * =get_scratch\n",
/// )?;
/// assert_eq!(rules.user()[0].category, Category::Buffer);
/// assert_eq!(Rules::parse("bufer * *").unwrap_err().line, 1);
/// # Ok::<(), vramscope_inference::RuleError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    user: Vec<Rule>,
}

/// An invalid line in a rules text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Description of the error.
    pub message: String,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for RuleError {}

impl Rules {
    /// Parses a user's rules.
    ///
    /// # Errors
    /// When a line is invalid. The error has its number.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let rules = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
        let user = rules
            .map(|(line, text)| parse_rule(text).map_err(|message| RuleError { line, message }));
        Ok(Self { user: user.collect::<Result<_, _>>()? })
    }

    /// The user's rules.
    pub fn user(&self) -> &[Rule] {
        &self.user
    }

    /// The built-in rules. They apply after the user's rules.
    pub fn built_in() -> &'static [Rule] {
        BUILT_IN
    }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let mut rest = text;
    let mut field = |name: &str| {
        let (field, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = after.trim_start();
        if field.is_empty() {
            return Err(format!("{name} is missing: a rule is `category file function`"));
        }
        Ok(field)
    };
    let category = field("category")?;
    let category = Category::parse(category).ok_or_else(|| {
        let names: Vec<&str> = Category::ALL.iter().map(|c| c.name()).collect();
        format!("unknown category {category:?} (known: {})", names.join(", "))
    })?;
    let file = Cow::Owned(field("file")?.to_owned());
    if rest.is_empty() {
        return Err("function is missing: a rule is `category file function`".to_owned());
    }
    Ok(Rule { file, function: Cow::Owned(rest.to_owned()), category })
}

use Category::{
    Activation as Act, Cache, Communication as Comm, Gradient as Grad, Input,
    OptimizerState as Optim, Parameter as Param, Temporary as Temp, Workspace as Work,
};

/// Functions and files of PyTorch 2.0 to 2.15 and of common packages that build on it. Order
/// matters: rules for inner calls come before rules for the calls around them. For example, a loss
/// in a closure in an optimizer's step is an activation. The tests have a case for each rule.
///
/// Three categories first stand for a phase: activation for a forward pass, gradient for a backward
/// pass, temporary for an optimizer. The life of the block then decides.
const BUILT_IN: &[Rule] = &[
    // ATen/cuda/CublasHandlePool.cpp, CUDABlas.cpp. These functions do not allocate outputs.
    Rule::new(Work, "*", "getCurrentCUDABlasHandle"),
    Rule::new(Work, "*", "CUDABlasLtWorkspace"),
    Rule::new(Work, "*", "at::cuda::blas::"),
    // Triton clears the L2 cache with a large buffer between the runs of a benchmark. Inductor
    // benchmarks kernels on copies of their arguments.
    Rule::new(Work, "/triton/testing.py", "*"),
    Rule::new(Work, "/torch/_inductor/runtime/benchmarking.py", "*"),
    // Keys and values of earlier tokens: transformers, vLLM, SGLang, and names that other programs
    // use.
    Rule::new(Cache, "/transformers/cache_utils.py", "*"),
    Rule::new(Cache, "/sglang/srt/mem_cache/", "*"),
    Rule::new(Cache, "*", "allocate_kv_cache"),
    Rule::new(Cache, "*", "initialize_kv_cache"),
    // Optimizer state is allocated in the first step. PyTorch's optimizers, and others modeled on
    // them, use these function names.
    Rule::new(Param, "/torch/optim/swa_utils.py", "*"),
    Rule::new(Optim, "*", "=_init_group"),
    Rule::new(Optim, "optim", "init_state"),
    Rule::new(Optim, "/torch/optim/", "=__init__"),
    Rule::new(Optim, "grad_scaler.py", "_lazy_init"),
    // DeepSpeed ZeRO: partitions of weights and gradients, then buffers of collectives.
    Rule::new(Param, "/zero/partition_parameters.py", "partition_param"),
    Rule::new(Param, "/zero/partition_parameters.py", "=partition"),
    Rule::new(Param, "/zero/stage3.py", "_create_fp16_partitions"),
    Rule::new(Param, "/zero/stage3.py", "_create_fp32_partitions"),
    Rule::new(Grad, "/zero/stage_1_and_2.py", "copy_grads_in_partition"),
    Rule::new(Comm, "/zero/stage3.py", "_setup_for_real_optimizer"),
    Rule::new(Comm, "/zero/stage3.py", "avg_scatter"),
    Rule::new(Comm, "/zero/stage_1_and_2.py", "setup_buckets"),
    Rule::new(Comm, "/zero/stage_1_and_2.py", "average_tensor"),
    Rule::new(Comm, "/zero/stage_1_and_2.py", "reduce_independent"),
    Rule::new(Comm, "/zero/partition_parameters.py", "*"),
    Rule::new(Comm, "/zero/partitioned_param_coordinator.py", "*"),
    // Megatron: one buffer for all weights, one for all gradients.
    Rule::new(Param, "/param_and_grad_buffer.py", "=__init__"),
    // FSDP2 and FSDP1, functional and c10d collectives, DDP buckets.
    Rule::new(Input, "/torch/distributed/utils.py", "_recursive_to"),
    Rule::new(Param, "/_fsdp_param.py", "=_init_sharded_param"),
    Rule::new(Param, "/_flat_param.py", "init_flat_param"),
    Rule::new(Comm, "/_fsdp_collectives.py", "*"),
    Rule::new(Comm, "/_flat_param.py", "unsharded_flat_param"),
    Rule::new(Comm, "/fsdp/_runtime_utils.py", "reduce_grad"),
    Rule::new(Comm, "/torch/distributed/distributed_c10d.py", "*"),
    Rule::new(Comm, "/_functional_collectives.py", "*"),
    Rule::new(Comm, "/ddp_comm_hooks/", "*"),
    Rule::new(Comm, "/torch/nn/parallel/distributed.py", "_ddp_init_helper"),
    Rule::new(Comm, "/torch/nn/parallel/distributed.py", "=_pre_forward"),
    Rule::new(Comm, "/torch/nn/parallel/comm.py", "*"),
    Rule::new(Comm, "*", "c10d::"),
    // A lazy module that is initialized inside a forward pass.
    Rule::new(Param, "*", "initialize_parameters"),
    // Batches that a trainer moves to the device.
    Rule::new(Input, "/accelerate/utils/operations.py", "send_to_device"),
    Rule::new(Input, "*", "transfer_batch_to_device"),
    Rule::new(Input, "*", "move_data_to_device"),
    Rule::new(Input, "/torch/utils/data/", "*"),
    Rule::new(Input, "/torch/nn/parallel/scatter_gather.py", "*"),
    Rule::new(Input, "/torchvision/transforms/", "*"),
    // The compiled backward pass of a model. It can have frames of the forward pass.
    Rule::new(Grad, "/_aot_autograd/", "=_backward_impl"),
    // Forward.
    Rule::new(Act, "/torch/nn/modules/module.py", "=_call_impl"),
    Rule::new(Act, "/torch/nn/functional.py", "*"),
    Rule::new(Act, "*", "=forward"),
    Rule::new(Act, "torchinductor", "=call"),
    // Backward. Its threads have Python frames only if a hook or a custom function runs.
    Rule::new(Grad, "*", "torch::autograd::Engine::"),
    Rule::new(Grad, "/torch/autograd/", "_engine_run_backward"),
    Rule::new(Grad, "/torch/autograd/__init__.py", "=backward"),
    Rule::new(Grad, "/torch/autograd/__init__.py", "=grad"),
    Rule::new(Grad, "/torch/_tensor.py", "=backward"),
    Rule::new(Grad, "*", "post_backward"),
    Rule::new(Act, "*", "=closure"),
    // Between backward and the next forward.
    Rule::new(Temp, "/torch/optim/", "*"),
    Rule::new(Temp, "/torch/nn/utils/clip_grad.py", "*"),
    Rule::new(Temp, "/amp/grad_scaler.py", "*"),
    Rule::new(Temp, "*", "=zero_grad"),
    Rule::new(Temp, "/deepspeed/ops/", "*"),
    Rule::new(Temp, "/zero/stage", "=step"),
    Rule::new(Temp, "/megatron/core/optimizer/", "*"),
    Rule::new(Temp, "optim", "=step"),
    // Building, moving and loading models.
    Rule::new(Param, "/torch/nn/modules/module.py", "=_apply"),
    Rule::new(Param, "/torch/nn/modules/", "=__init__"),
    Rule::new(Param, "*", "from_pretrained"),
    Rule::new(Param, "*", "set_module_tensor_to_device"),
    Rule::new(Param, "*", "load_state_dict"),
    Rule::new(Param, "*", "=__deepcopy__"),
    Rule::new(Param, "/torch/serialization.py", "*"),
    Rule::new(Param, "/safetensors/", "*"),
    Rule::new(Param, "*", "=__init__"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A category, and a call stack in the package's own files and functions, innermost first.
    const CASES: &[(Category, &str)] = &[
        (Work, "at::cuda::getCurrentCUDABlasHandle()@libtorch_cuda.so"),
        (Work, "at::cuda::CUDABlasLtWorkspace::CUDABlasLtWorkspace()@libtorch_cuda.so"),
        (Work, "void at::cuda::blas::gemm<float>(char, long)@libtorch_cuda.so"),
        (Work, "do_bench@/triton/testing.py"),
        (Work, "benchmark_gpu@/torch/_inductor/runtime/benchmarking.py"),
        (Cache, "update@/transformers/cache_utils.py; _call_impl@/torch/nn/modules/module.py"),
        (Cache, "_create_buffers@/sglang/srt/mem_cache/memory_pool.py"),
        (Cache, "_allocate_kv_cache_tensors@/vllm/v1/worker/gpu_model_runner.py"),
        (Cache, "initialize_kv_cache@/vllm/v1/worker/gpu_model_runner.py"),
        (Param, "__deepcopy__@/torch/nn/parameter.py; __init__@/torch/optim/swa_utils.py"),
        (Optim, "_init_group@/torch/optim/adamw.py; step@/torch/optim/adamw.py"),
        (Optim, "init_state@/bitsandbytes/optim/optimizer.py"),
        (Optim, "__init__@/torch/optim/adagrad.py"),
        (Optim, "_lazy_init_scale_growth_tracker@/torch/amp/grad_scaler.py"),
        (Param, "_partition_param@/deepspeed/runtime/zero/partition_parameters.py"),
        (Param, "partition@/deepspeed/runtime/zero/partition_parameters.py"),
        (Param, "_create_fp16_partitions_with_defragmentation@/deepspeed/runtime/zero/stage3.py"),
        (Param, "_create_fp32_partitions@/deepspeed/runtime/zero/stage3.py"),
        (Grad, "copy_grads_in_partition@/deepspeed/runtime/zero/stage_1_and_2.py"),
        (Comm, "_setup_for_real_optimizer@/deepspeed/runtime/zero/stage3.py"),
        (Comm, "__avg_scatter_grads@/deepspeed/runtime/zero/stage3.py"),
        (Comm, "setup_buckets@/deepspeed/runtime/zero/stage_1_and_2.py"),
        (Comm, "average_tensor@/deepspeed/runtime/zero/stage_1_and_2.py"),
        (
            Comm,
            "reduce_independent_p_g_buckets_and_remove_grads@\
             /deepspeed/runtime/zero/stage_1_and_2.py",
        ),
        (Comm, "all_gather_coalesced@/deepspeed/runtime/zero/partition_parameters.py"),
        (Comm, "fetch_sub_module@/deepspeed/runtime/zero/partitioned_param_coordinator.py"),
        (Param, "__init__@/megatron/core/distributed/param_and_grad_buffer.py"),
        (
            Input,
            "_recursive_to@/torch/distributed/utils.py; \
             _pre_forward@/torch/nn/parallel/distributed.py",
        ),
        (Param, "_init_sharded_param@/torch/distributed/fsdp/_fully_shard/_fsdp_param.py"),
        (Param, "_init_flat_param_and_metadata@/torch/distributed/fsdp/_flat_param.py"),
        (Comm, "foreach_all_gather@/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py"),
        (Comm, "_alloc_padded_unsharded_flat_param@/torch/distributed/fsdp/_flat_param.py"),
        (Comm, "_reduce_grad@/torch/distributed/fsdp/_runtime_utils.py"),
        (Comm, "all_gather_object@/torch/distributed/distributed_c10d.py"),
        (Comm, "all_reduce@/torch/distributed/_functional_collectives.py"),
        (
            Comm,
            "fp16_compress_hook@\
             /torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py",
        ),
        (Comm, "_ddp_init_helper@/torch/nn/parallel/distributed.py"),
        (Comm, "_pre_forward@/torch/nn/parallel/distributed.py; forward@/my/model.py"),
        (Comm, "broadcast_coalesced@/torch/nn/parallel/comm.py"),
        (Comm, "c10d::Reducer::initialize_buckets(std::vector<unsigned long>&&)@libtorch_cpu.so"),
        (Param, "initialize_parameters@/torch/nn/modules/linear.py"),
        (Input, "send_to_device@/accelerate/utils/operations.py"),
        (Input, "transfer_batch_to_device@/my/module.py"),
        (Input, "move_data_to_device@/lightning/fabric/utilities/apply_func.py"),
        (Input, "default_collate@/torch/utils/data/_utils/collate.py"),
        (Input, "scatter@/torch/nn/parallel/scatter_gather.py"),
        (Input, "normalize@/torchvision/transforms/functional.py"),
        (
            Grad,
            "call@/tmp/torchinductor_me/ab/cab.py; \
             _backward_impl@/torch/_functorch/_aot_autograd/runtime_wrappers.py",
        ),
        (Act, "_call_impl@/torch/nn/modules/module.py"),
        (Act, "cross_entropy@/torch/nn/functional.py; <module>@/my/train.py"),
        (Act, "forward@/my/model.py"),
        (Act, "call@/tmp/torchinductor_me/ab/cab.py"),
        (Grad, "torch::autograd::Engine::evaluate_function(int)@libtorch_cpu.so"),
        (Grad, "_engine_run_backward@/torch/autograd/graph.py"),
        (Grad, "backward@/torch/autograd/__init__.py"),
        (Grad, "grad@/torch/autograd/__init__.py"),
        (Grad, "backward@/torch/_tensor.py"),
        (Grad, "post_backward@/torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py"),
        (Act, "closure@/my/train.py; step@/torch/optim/lbfgs.py"),
        (Temp, "_multi_tensor_adamw@/torch/optim/adamw.py; step@/torch/optim/adamw.py"),
        (Temp, "clip_grad_norm_@/torch/nn/utils/clip_grad.py"),
        (Temp, "unscale_@/torch/amp/grad_scaler.py"),
        (Temp, "zero_grad@/torch/nn/modules/module.py"),
        (Temp, "step@/deepspeed/ops/adam/fused_adam.py"),
        (Temp, "step@/deepspeed/runtime/zero/stage3.py"),
        (Temp, "clip_grad_by_total_norm_fp32@/megatron/core/optimizer/clip_grads.py"),
        (Temp, "step@/bitsandbytes/optim/optimizer.py"),
        (Param, "convert@/torch/nn/modules/module.py; _apply@/torch/nn/modules/module.py"),
        (Param, "__init__@/torch/nn/modules/linear.py"),
        (Param, "from_pretrained@/transformers/modeling_utils.py"),
        (Param, "set_module_tensor_to_device@/accelerate/utils/modeling.py"),
        (Param, "load_state_dict@/torch/nn/modules/module.py"),
        (Param, "__deepcopy__@/torch/_tensor.py"),
        (Param, "load@/torch/serialization.py"),
        (Param, "load_file@/safetensors/torch.py"),
        (Param, "__init__@/my/model.py"),
    ];

    #[test]
    fn each_rule_has_a_case_that_it_decides() {
        let deciding = |stack: &str| {
            let frames = stack.split("; ").filter_map(|frame| frame.split_once('@'));
            let first = |(name, file): (&str, &str)| {
                let own = super::super::own_name(name);
                BUILT_IN.iter().position(|rule| rule.matches(file, name, &own))
            };
            frames.filter_map(first).min().unwrap_or_else(|| panic!("no rule for {stack}"))
        };
        let mut undecided: Vec<usize> = (0..BUILT_IN.len()).collect();
        for (category, stack) in CASES {
            let rule = deciding(stack);
            assert_eq!(BUILT_IN[rule].category, *category, "{stack}");
            undecided.retain(|other| *other != rule);
        }
        let undecided: Vec<&Rule> = undecided.into_iter().map(|rule| &BUILT_IN[rule]).collect();
        assert!(undecided.is_empty(), "{undecided:?}");
    }

    #[test]
    fn parse_keeps_the_order_of_rules() {
        let rules = Rules::parse(
            "# comment\n\n  activation  model.py  =f \nunknown * operator()(int, long) const\n\
             \tinput\t*\t*",
        );
        let rules = rules.expect("three rules");
        let [first, second, third] = rules.user() else { panic!("three rules: {rules:?}") };
        assert_eq!(first, &Rule::new(Category::Activation, "model.py", "=f"));
        assert_eq!(second, &Rule::new(Category::Unknown, "*", "operator()(int, long) const"));
        assert_eq!(third, &Rule::new(Category::Input, "*", "*"));
    }

    #[test]
    fn parse_reports_the_invalid_line() {
        for (text, line, message) in [
            ("parameter * *\nparam * *", 2, "unknown category \"param\""),
            ("\n\nparameter", 3, "file is missing"),
            ("parameter a.py", 1, "function is missing"),
        ] {
            let error = Rules::parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn patterns_match_substrings_whole_texts_or_anything() {
        let matches = |rule: &Rule, file, function| rule.matches(file, function, function);
        let rule = Rule::new(Category::Input, "data", "=next");
        assert!(matches(&rule, "/my/data.py", "next"));
        assert!(!matches(&rule, "/my/data.py", "next_batch"));
        assert!(!matches(&rule, "/my/model.py", "next"));
        assert!(matches(&Rule::new(Category::Input, "*", "*"), "", ""));
    }
}
