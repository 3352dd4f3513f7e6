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
    /// Confidence of the guess, from 0 to 1.
    pub confidence: f32,
}

impl Rule {
    const fn new(
        category: Category,
        confidence: f32,
        file: &'static str,
        function: &'static str,
    ) -> Self {
        Self { file: Cow::Borrowed(file), function: Cow::Borrowed(function), category, confidence }
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
/// The text format has one rule per line: `category confidence file function`. The function may
/// contain spaces. `#` starts a comment line.
///
/// ```
/// use vramscope_inference::{Category, Rules};
///
/// let rules = Rules::parse(
///     "# our cache\nbuffer 0.9 serving/cache.py *\nworkspace 1 * =get_scratch\n",
/// )?;
/// assert_eq!(rules.user()[0].category, Category::Buffer);
/// assert_eq!(Rules::parse("bufer 1 * *").unwrap_err().line, 1);
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
            return Err(format!(
                "{name} is missing: a rule is `category confidence file function`"
            ));
        }
        Ok(field)
    };
    let category = field("category")?;
    let category = Category::parse(category).ok_or_else(|| {
        let names: Vec<&str> = Category::ALL.iter().map(|c| c.name()).collect();
        format!("unknown category {category:?} (known: {})", names.join(", "))
    })?;
    let confidence = field("confidence")?;
    let confidence: f32 = match confidence.parse() {
        Ok(number) if (0.0..=1.0).contains(&number) => number,
        _ => return Err(format!("confidence {confidence:?} is not a number from 0 to 1")),
    };
    let file = Cow::Owned(field("file")?.to_owned());
    if rest.is_empty() {
        return Err("function is missing: a rule is `category confidence file function`".to_owned());
    }
    Ok(Rule { file, function: Cow::Owned(rest.to_owned()), category, confidence })
}

use Category::{
    Activation as Act, Cache, Communication as Comm, Gradient as Grad, Input,
    OptimizerState as Optim, Parameter as Param, Temporary as Temp, Workspace as Work,
};

/// Functions and files of PyTorch 2.0 to 2.15 and of common packages that build on it. Order
/// matters: rules for inner calls come before rules for the calls around them. For example, a loss
/// in a closure in an optimizer's step is an activation.
///
/// Three categories first stand for a phase: activation for a forward pass, gradient for a backward
/// pass, temporary for an optimizer. The life of the block then decides.
const BUILT_IN: &[Rule] = &[
    // ATen/cuda/CublasHandlePool.cpp, CUDABlas.cpp; ATen/native/cudnn. These functions do not
    // allocate outputs.
    Rule::new(Work, 0.95, "*", "getCurrentCUDABlasHandle"),
    Rule::new(Work, 0.95, "*", "CUDABlasLtWorkspace"),
    Rule::new(Work, 0.95, "*", "getNewWorkspace"),
    Rule::new(Work, 0.95, "*", "at::cuda::blas::"),
    Rule::new(Work, 0.95, "*", "at::native::Workspace::Workspace"),
    // Triton clears the L2 cache with a large buffer between the runs of a benchmark. Inductor
    // benchmarks kernels on copies of their arguments.
    Rule::new(Work, 0.9, "/triton/testing.py", "*"),
    Rule::new(Work, 0.9, "*", "get_empty_cache_for_benchmark"),
    Rule::new(Work, 0.9, "*", "=do_bench"),
    Rule::new(Work, 0.9, "/triton/runtime/autotuner.py", "=_bench"),
    Rule::new(Work, 0.9, "/torch/_inductor/autotune_process.py", "*"),
    Rule::new(Work, 0.9, "/torch/_inductor/runtime/benchmarking.py", "*"),
    Rule::new(Work, 0.8, "/torch/_inductor/runtime/triton_heuristics.py", "clone_args"),
    // Keys and values of earlier tokens: transformers, vLLM, SGLang, and names that other programs
    // use.
    Rule::new(Cache, 0.9, "/transformers/cache_utils.py", "*"),
    Rule::new(Cache, 0.9, "/vllm/worker/cache_engine.py", "*"),
    Rule::new(Cache, 0.9, "/sglang/srt/mem_cache/", "*"),
    Rule::new(Cache, 0.85, "*", "allocate_kv_cache"),
    Rule::new(Cache, 0.85, "*", "initialize_kv_cache"),
    Rule::new(Cache, 0.85, "*", "init_kv_cache"),
    Rule::new(Cache, 0.85, "*", "create_kv_cache"),
    Rule::new(Cache, 0.85, "*", "=setup_caches"),
    // Optimizer state is allocated in the first step. PyTorch's optimizers, and others modeled on
    // them, use these function names.
    Rule::new(Param, 0.7, "/torch/optim/swa_utils.py", "*"),
    Rule::new(Optim, 0.95, "*", "=_init_group"),
    Rule::new(Optim, 0.9, "optim", "init_state"),
    Rule::new(Optim, 0.9, "/torch/optim/", "=__init__"),
    Rule::new(Optim, 0.5, "grad_scaler.py", "_lazy_init"),
    Rule::new(Optim, 0.9, "/deepspeed/ops/", "=__init__"),
    // DeepSpeed ZeRO: partitions of weights and gradients, then buffers of collectives.
    Rule::new(Param, 0.9, "/zero/partition_parameters.py", "partition_param"),
    Rule::new(Param, 0.9, "/zero/partition_parameters.py", "=partition"),
    Rule::new(Param, 0.8, "/zero/stage3.py", "_create_fp16_partitions"),
    Rule::new(Param, 0.8, "/zero/stage3.py", "_create_fp32_partitions"),
    Rule::new(Grad, 0.8, "/zero/stage3.py", "partition_grads"),
    Rule::new(Grad, 0.9, "/zero/stage_1_and_2.py", "copy_grads_in_partition"),
    Rule::new(Grad, 0.9, "/zero/stage_1_and_2.py", "get_flat_partition"),
    Rule::new(Grad, 0.9, "/zero/stage_1_and_2.py", "get_gradient_for_partition"),
    Rule::new(Comm, 0.9, "/zero/stage3.py", "_setup_for_real_optimizer"),
    Rule::new(Comm, 0.9, "/zero/stage3.py", "avg_scatter"),
    Rule::new(Comm, 0.9, "/zero/stage3.py", "reduce_and_partition"),
    Rule::new(Comm, 0.9, "/zero/stage_1_and_2.py", "setup_buckets"),
    Rule::new(Comm, 0.9, "/zero/stage_1_and_2.py", "average_tensor"),
    Rule::new(Comm, 0.9, "/zero/stage_1_and_2.py", "allreduce"),
    Rule::new(Comm, 0.9, "/zero/stage_1_and_2.py", "reduce_independent"),
    Rule::new(Comm, 0.9, "/zero/partition_parameters.py", "*"),
    Rule::new(Comm, 0.9, "/zero/partitioned_param_coordinator.py", "*"),
    Rule::new(Comm, 0.9, "/deepspeed/comm/", "*"),
    Rule::new(Comm, 0.9, "/deepspeed/runtime/comm/", "*"),
    // Megatron: one buffer for all weights, one for all gradients.
    Rule::new(Param, 0.9, "/param_and_grad_buffer.py", "=__init__"),
    // FSDP2 and FSDP1, functional and c10d collectives, DDP buckets.
    Rule::new(Input, 0.9, "/torch/distributed/utils.py", "_recursive_to"),
    Rule::new(Param, 0.95, "/_fsdp_param.py", "=_init_sharded_param"),
    Rule::new(Param, 0.9, "/_flat_param.py", "init_flat_param"),
    Rule::new(Comm, 0.95, "/_fsdp_collectives.py", "*"),
    Rule::new(Comm, 0.95, "/_fsdp_param.py", "all_gather"),
    Rule::new(Comm, 0.9, "/_fsdp_param.py", "init_unsharded_param"),
    Rule::new(Comm, 0.9, "/_flat_param.py", "unsharded_flat_param"),
    Rule::new(Comm, 0.9, "/fsdp/_runtime_utils.py", "reduce_grad"),
    Rule::new(Comm, 0.9, "/torch/distributed/distributed_c10d.py", "*"),
    Rule::new(Comm, 0.9, "/_functional_collectives.py", "*"),
    Rule::new(Comm, 0.9, "/ddp_comm_hooks/", "*"),
    Rule::new(Comm, 0.8, "/torch/nn/parallel/distributed.py", "_ddp_init_helper"),
    Rule::new(Comm, 0.8, "/torch/nn/parallel/distributed.py", "=_pre_forward"),
    Rule::new(Comm, 0.8, "/torch/nn/parallel/distributed.py", "_sync_"),
    Rule::new(Comm, 0.8, "/torch/nn/parallel/comm.py", "*"),
    Rule::new(Comm, 0.9, "*", "c10d::"),
    // A lazy module that is initialized inside a forward pass.
    Rule::new(Param, 0.8, "*", "initialize_parameters"),
    // Batches that a trainer moves to the device.
    Rule::new(Input, 0.9, "/accelerate/utils/operations.py", "send_to_device"),
    Rule::new(Input, 0.9, "/transformers/trainer.py", "_prepare_input"),
    Rule::new(Input, 0.9, "*", "transfer_batch_to_device"),
    Rule::new(Input, 0.9, "*", "move_data_to_device"),
    Rule::new(Input, 0.9, "/torch/utils/data/", "*"),
    Rule::new(Input, 0.9, "/torch/nn/parallel/scatter_gather.py", "*"),
    Rule::new(Input, 0.7, "/torchvision/transforms/", "*"),
    // The compiled backward pass of a model. It can have frames of the forward pass.
    Rule::new(Grad, 0.9, "/_aot_autograd/", "=_backward_impl"),
    Rule::new(Grad, 0.9, "*", "CompiledFunctionBackward"),
    Rule::new(Grad, 0.9, "/torch/_dynamo/compiled_autograd.py", "*"),
    // Forward.
    Rule::new(Act, 0.9, "/torch/nn/modules/module.py", "=_call_impl"),
    Rule::new(Act, 0.9, "/torch/nn/functional.py", "*"),
    Rule::new(Act, 0.8, "*", "=forward"),
    Rule::new(Act, 0.7, "torchinductor", "=call"),
    // Backward. Its threads have Python frames only if a hook or a custom function runs.
    Rule::new(Grad, 0.9, "*", "torch::autograd::Engine::"),
    Rule::new(Grad, 0.9, "/torch/autograd/", "_engine_run_backward"),
    Rule::new(Grad, 0.9, "/torch/autograd/__init__.py", "=backward"),
    Rule::new(Grad, 0.9, "/torch/autograd/__init__.py", "=grad"),
    Rule::new(Grad, 0.9, "/torch/_tensor.py", "=backward"),
    Rule::new(Grad, 0.8, "*", "post_backward"),
    Rule::new(Act, 0.5, "*", "=closure"),
    // Between backward and the next forward.
    Rule::new(Temp, 0.8, "/torch/optim/", "*"),
    Rule::new(Temp, 0.8, "/torch/nn/utils/clip_grad.py", "*"),
    Rule::new(Temp, 0.8, "/amp/grad_scaler.py", "*"),
    Rule::new(Temp, 0.8, "*", "=zero_grad"),
    Rule::new(Temp, 0.8, "/deepspeed/ops/", "*"),
    Rule::new(Temp, 0.7, "/zero/stage", "=step"),
    Rule::new(Temp, 0.7, "/megatron/core/optimizer/", "*"),
    Rule::new(Temp, 0.7, "optim", "=step"),
    // Building, moving and loading models.
    Rule::new(Param, 0.9, "/torch/nn/modules/module.py", "=_apply"),
    Rule::new(Param, 0.9, "/torch/nn/modules/", "=__init__"),
    Rule::new(Param, 0.8, "/torch/nn/init.py", "*"),
    Rule::new(Param, 0.8, "*", "reset_parameters"),
    Rule::new(Param, 0.8, "*", "from_pretrained"),
    Rule::new(Param, 0.8, "*", "set_module_tensor_to_device"),
    Rule::new(Param, 0.7, "*", "load_state_dict"),
    Rule::new(Param, 0.6, "*", "=__deepcopy__"),
    Rule::new(Param, 0.5, "/torch/serialization.py", "*"),
    Rule::new(Param, 0.5, "/safetensors/", "*"),
    Rule::new(Param, 0.6, "*", "=__init__"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_keeps_the_order_of_rules() {
        let rules = Rules::parse(
            "# comment\n\n  activation 0.25  model.py  =f \nunknown 1 * operator()(int, long) \
             const\n\tinput\t0\t*\t*",
        );
        let rules = rules.expect("three rules");
        let [first, second, third] = rules.user() else { panic!("three rules: {rules:?}") };
        assert_eq!(first, &Rule::new(Category::Activation, 0.25, "model.py", "=f"));
        assert_eq!(second, &Rule::new(Category::Unknown, 1.0, "*", "operator()(int, long) const"));
        assert_eq!(third, &Rule::new(Category::Input, 0.0, "*", "*"));
    }

    #[test]
    fn parse_reports_the_invalid_line() {
        for (text, line, message) in [
            ("parameter 1 * *\nparam 1 * *", 2, "unknown category \"param\""),
            ("parameter", 1, "confidence is missing"),
            ("\n\nparameter 2 * *", 3, "not a number from 0 to 1"),
            ("parameter NaN * *", 1, "not a number from 0 to 1"),
            ("parameter 1", 1, "file is missing"),
            ("parameter 1 a.py", 1, "function is missing"),
        ] {
            let error = Rules::parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn patterns_match_substrings_whole_texts_or_anything() {
        let matches = |rule: &Rule, file, function| rule.matches(file, function, function);
        let rule = Rule::new(Category::Input, 1.0, "data", "=next");
        assert!(matches(&rule, "/my/data.py", "next"));
        assert!(!matches(&rule, "/my/data.py", "next_batch"));
        assert!(!matches(&rule, "/my/model.py", "next"));
        assert!(matches(&Rule::new(Category::Input, 1.0, "*", "*"), "", ""));
    }
}
