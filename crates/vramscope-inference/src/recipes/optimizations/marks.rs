//! Marks frames and call stacks that belong to a memory optimization.

use vramscope_snapshot::{FrameId, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, strides};

/// The optimizations of a frame, or of all frames of a call stack, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark(u32);

impl Mark {
    /// A call of a checkpointing function, in forward or in backward.
    pub(super) const CHECKPOINT: Self = Self(1);
    /// Forward is computed again.
    pub(super) const RECOMPUTE: Self = Self(1 << 1);
    /// Activations are copied to host memory, or back.
    pub(super) const OFFLOAD: Self = Self(1 << 2);
    /// Parameters of all ranks are gathered.
    pub(super) const GATHER: Self = Self(1 << 3);
    /// An optimizer that updates all parameters at once.
    pub(super) const FOREACH: Self = Self(1 << 4);
    /// An optimizer that updates one parameter after the other.
    pub(super) const LOOP: Self = Self(1 << 5);
    /// An optimizer makes its states.
    pub(super) const STATES: Self = Self(1 << 6);
    /// Attention by a kernel without maps.
    pub(super) const FLASH: Self = Self(1 << 7);
    /// A kernel that computes logits and loss in one.
    pub(super) const FUSED_LOSS: Self = Self(1 << 8);
    /// A function under autocast.
    pub(super) const AUTOCAST: Self = Self(1 << 9);
    /// Code that a compiler made.
    pub(super) const COMPILED: Self = Self(1 << 10);
    /// An optimizer of PyTorch.
    pub(super) const OPTIMIZER: Self = Self(1 << 11);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The marks of all frames and stacks.
#[derive(Debug, Default)]
pub(super) struct Marks {
    frames: Vec<Mark>,
    stacks: Vec<Mark>,
}

const COST_PER_FRAME: u64 = 16;

impl Marks {
    pub(super) async fn new(snapshot: &Snapshot, budget: &mut Budget) -> Self {
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

    pub(super) fn of_frame(&self, frame: FrameId) -> Mark {
        self.frames.get(frame.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn of_stack(&self, stack: StackId) -> Mark {
        self.stacks.get(stack.0 as usize).copied().unwrap_or_default()
    }
}

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

/// Files of a loss that makes no logits: Liger, Cut Cross Entropy.
const FUSED_LOSS: [&str; 2] = ["fused_linear_cross_entropy", "/cut_cross_entropy/"];

fn mark(name: &str, file: &str) -> Mark {
    let mut mark = 0;
    let mut add = |bit: Mark, is_so: bool| mark |= if is_so { bit.0 } else { 0 };
    let is_recomputing = RECOMPUTING.iter().any(|path| file.ends_with(path));
    add(Mark::CHECKPOINT, is_recomputing);
    add(Mark::RECOMPUTE, is_recomputing && RECOMPUTED_BY.contains(&name));
    let is_hook = file.ends_with("torch/autograd/graph.py")
        && matches!(name, "pack_to_cpu" | "unpack_from_cpu");
    add(Mark::OFFLOAD, is_hook || file.ends_with("activation_offloading.py"));
    let is_sharding =
        file.contains("torch/distributed/fsdp/") || file.contains("deepspeed/runtime/zero/");
    let gathers = name.contains("all_gather") || name.contains("_unsharded_flat_param");
    add(Mark::GATHER, is_sharding && gathers);
    let is_optimizer = file.contains("torch/optim/");
    add(Mark::OPTIMIZER, is_optimizer);
    add(Mark::FOREACH, is_optimizer && name.starts_with("_multi_tensor_"));
    add(Mark::LOOP, is_optimizer && name.starts_with("_single_tensor_"));
    add(Mark::STATES, is_optimizer && name == "_init_group");
    let is_kernel = name.contains("_scaled_dot_product_flash_attention")
        || name.contains("_scaled_dot_product_efficient_attention")
        || name.contains("_scaled_dot_product_cudnn_attention");
    add(Mark::FLASH, is_kernel || FLASH.iter().any(|path| file.contains(path)));
    add(Mark::FUSED_LOSS, FUSED_LOSS.iter().any(|path| file.contains(path)));
    let is_decorated = name == "decorate_autocast" && file.ends_with("autocast_mode.py");
    add(Mark::AUTOCAST, is_decorated || name.contains("autocast::cached_cast"));
    add(Mark::COMPILED, file.contains("torchinductor") || file.contains("torch/_inductor/"));
    Mark(mark)
}
