//! Marks of frames: of modules, losses, optimizers, and of packages that save memory.

use vramscope_snapshot::{FrameId, Snapshot, StackId};
use vramscope_trace::is_python;
use vramscope_trace::slicing::{Budget, strides};

/// The kinds of a frame, or of all frames of a call stack, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u32);

/// Gives each mark a bit.
macro_rules! marks {
    ($($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        impl Mark {
            $($(#[$doc])* pub(crate) const $name: Self = Self(1 << $bit);)*
        }
    };
}

marks! {
    /// Of an installed package or of Python's own library.
    LIBRARY = 0,
    /// Of PyTorch itself.
    TORCH = 1,
    /// The call of a module.
    MODULE_CALL = 2,
    /// A module runs: its call, or its own function.
    MODULE = 3,
    /// A linear layer.
    LINEAR = 4,
    /// An embedding.
    EMBEDDING = 5,
    /// A convolution.
    CONVOLUTION = 6,
    /// A softmax.
    SOFTMAX = 7,
    /// Cross entropy, or a part of it.
    CROSS_ENTROPY = 8,
    /// A kernel that computes logits and loss in one.
    FUSED_LOSS = 9,
    /// Attention by a kernel without maps.
    FLASH = 10,
    /// A call of a checkpointing function, in forward or in backward.
    CHECKPOINT = 11,
    /// Forward is computed again.
    RECOMPUTE = 12,
    /// Activations are copied to host memory, or back.
    OFFLOAD = 13,
    /// Parameters of all ranks are gathered.
    GATHER = 14,
    /// Code of an optimizer.
    OPTIMIZER = 15,
    /// An optimizer updates many parameters in one operation.
    FOREACH = 16,
    /// An optimizer updates one parameter after the other.
    LOOP = 17,
    /// An optimizer makes its states.
    STATES = 18,
    /// A function under autocast.
    AUTOCAST = 19,
    /// Autocast converts a tensor, and keeps it if it is a weight.
    CACHED_CAST = 20,
    /// Autocast ends, and drops the weights that it keeps.
    AUTOCAST_EXIT = 21,
    /// Code that a compiler made.
    COMPILED = 22,
    /// A node of the autograd graph drops what it saved.
    RELEASE = 23,
    /// The autograd engine runs a graph.
    ENGINE = 24,
    /// A file of tensors is read.
    LOADED = 25,
}

impl Mark {
    /// Whether any bit of `other` is set.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Either of two.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The marks of all frames and stacks.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    frames: Vec<Mark>,
    stacks: Vec<Mark>,
}

/// Cost of reading a frame, in units of [`Budget`].
const COST_PER_FRAME: u64 = 20;

impl Marks {
    pub(crate) async fn new(snapshot: &Snapshot, budget: &mut Budget) -> Self {
        let mut marks = Self::default();
        for part in strides(snapshot.frames.len()) {
            budget.charge(part.len() as u64 * COST_PER_FRAME).await;
            marks.frames.extend(part.map(|id| {
                let frame = snapshot.frame(FrameId(id as u32));
                let file = snapshot.text(frame.file).replace('\\', "/");
                mark(&snapshot.text(frame.name), &file)
            }));
        }
        for part in strides(snapshot.stacks.len()) {
            for id in part {
                let frames = snapshot.stacks.frames(StackId(id as u32));
                budget.charge(frames.len() as u64).await;
                let all = frames.iter().fold(0, |all, &frame| all | marks.of_frame(frame).0);
                marks.stacks.push(Mark(all));
            }
        }
        marks
    }

    pub(crate) fn of_frame(&self, frame: FrameId) -> Mark {
        self.frames.get(frame.0 as usize).copied().unwrap_or_default()
    }

    /// The marks of all frames of a call stack.
    pub(crate) fn of(&self, stack: StackId) -> Mark {
        self.stacks.get(stack.0 as usize).copied().unwrap_or_default()
    }
}

/// Folders of installed packages and of Python's own library.
const LIBRARIES: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python"];

/// Files with a function that computes forward again in backward: of PyTorch, `DeepSpeed`,
/// Megatron, fairscale, Unsloth.
const RECOMPUTING: [&str; 5] = [
    "torch/utils/checkpoint.py",
    "activation_checkpointing/checkpointing.py",
    "tensor_parallel/random.py",
    "checkpoint_activations.py",
    "gradient_checkpointing.py",
];

/// Functions in them that run in backward.
const RECOMPUTED_BY: [&str; 3] = ["recompute_fn", "unpack_hook", "backward"];

/// Files of attention without maps: `FlashAttention`, `xFormers`, transformers.
const FLASH: [&str; 4] = [
    "/flash_attn/",
    "xformers/ops/fmha",
    "integrations/sdpa_attention.py",
    "integrations/flash_attention.py",
];

/// Kernels of `scaled_dot_product_attention` that make no maps.
const FLASH_KERNELS: [&str; 3] = [
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
];

/// Files of a loss that makes no logits: Liger, Cut Cross Entropy.
const FUSED_LOSS: [&str; 2] = ["fused_linear_cross_entropy", "/cut_cross_entropy/"];

/// Files that read tensors from a file.
const LOADING: [&str; 2] = ["torch/serialization.py", "safetensors/torch.py"];

/// Functions of PyTorch that free what a node of the graph saved.
const RELEASE: [&str; 3] = ["release_variables", "SavedVariable", "autograd::deleteNode"];

fn mark(name: &str, file: &str) -> Mark {
    let in_name = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let in_file = |parts: &[&str]| parts.iter().any(|part| file.contains(part));
    let is_code = is_python(file);
    let is_recomputing = RECOMPUTING.iter().any(|path| file.ends_with(path));
    let is_hook = file.ends_with("torch/autograd/graph.py")
        && matches!(name, "pack_to_cpu" | "unpack_from_cpu");
    let is_sharding = in_file(&["torch/distributed/fsdp/", "deepspeed/runtime/zero/"]);
    let is_optimizer = is_code && file.contains("/optim/");
    let is_autocast = is_code && file.ends_with("autocast_mode.py");
    let marks = [
        (Mark::LIBRARY, in_file(&LIBRARIES)),
        (Mark::TORCH, file.contains("/torch/")),
        (Mark::MODULE_CALL, file.ends_with("torch/nn/modules/module.py")),
        (Mark::MODULE, is_code && matches!(name, "_call_impl" | "forward")),
        (Mark::LINEAR, file.ends_with("linear.py")),
        (Mark::EMBEDDING, file.ends_with("sparse.py")),
        (Mark::CONVOLUTION, file.ends_with("/conv.py")),
        (Mark::SOFTMAX, name.contains("softmax")),
        (Mark::CROSS_ENTROPY, in_name(&["cross_entropy", "log_softmax", "nll_loss"])),
        (Mark::FUSED_LOSS, in_file(&FUSED_LOSS)),
        (Mark::FLASH, in_name(&FLASH_KERNELS) || in_file(&FLASH)),
        (Mark::CHECKPOINT, is_recomputing),
        (Mark::RECOMPUTE, is_recomputing && RECOMPUTED_BY.contains(&name)),
        (Mark::OFFLOAD, is_hook || file.ends_with("activation_offloading.py")),
        (Mark::GATHER, is_sharding && in_name(&["all_gather", "_unsharded_flat_param"])),
        (Mark::OPTIMIZER, is_optimizer),
        (Mark::FOREACH, name.starts_with("_multi_tensor_") || name.contains("_foreach_")),
        (Mark::LOOP, is_optimizer && name.starts_with("_single_tensor_")),
        (Mark::STATES, is_optimizer && name == "_init_group"),
        (Mark::AUTOCAST, is_autocast && name == "decorate_autocast"),
        (Mark::CACHED_CAST, name.contains("autocast::cached_cast")),
        (Mark::AUTOCAST_EXIT, is_autocast && name == "__exit__"),
        (Mark::AUTOCAST_EXIT, name.contains("at::autocast::clear_cache")),
        (Mark::COMPILED, in_file(&["torchinductor", "torch/_inductor/"])),
        (Mark::RELEASE, !is_code && in_name(&RELEASE)),
        (Mark::LOADED, LOADING.iter().any(|path| file.ends_with(path))),
        (Mark::ENGINE, !is_code && name.contains("torch::autograd::Engine::")),
    ];
    Mark(marks.iter().filter(|(_, is_so)| *is_so).fold(0, |all, (mark, _)| all | mark.0))
}
