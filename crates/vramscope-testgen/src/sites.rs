//! The sites of the simulated program that allocate and free: the operations of a layer, and places
//! outside of layers.

/// An operation of a layer.
pub(crate) struct Op {
    /// The name in PyTorch's dispatcher.
    pub(crate) name: &'static str,
    /// The module of the layer that calls the operation.
    pub(crate) module: &'static str,
    /// Size of the result, in 64ths of a hidden state. 0 means one number per token.
    pub(crate) width: u64,
    /// The backward pass needs the result.
    pub(crate) saved: bool,
    /// The operation allocates a workspace.
    pub(crate) workspace: bool,
}

const fn op(
    name: &'static str,
    module: &'static str,
    width: u64,
    saved: bool,
    workspace: bool,
) -> Op {
    Op { name, module, width, saved, workspace }
}

/// The operations of a layer, in the order of the forward pass.
pub(crate) const OPS: [Op; 20] = [
    op("native_layer_norm", "input_layernorm", 64, true, false),
    op("var_mean", "input_layernorm", 0, true, false),
    op("linear", "q_proj", 64, true, true),
    op("linear", "k_proj", 16, true, true),
    op("linear", "v_proj", 16, true, true),
    op("mul_Tensor", "rotary_emb", 64, false, false),
    op("cat", "rotary_emb", 64, true, false),
    op("_scaled_dot_product_flash_attention", "attention", 64, true, true),
    op("logsumexp", "attention", 0, true, false),
    op("linear", "o_proj", 64, false, true),
    op("native_dropout", "dropout", 32, true, false),
    op("add_Tensor", "residual", 64, true, false),
    op("native_layer_norm", "post_layernorm", 64, true, false),
    op("var_mean", "post_layernorm", 0, true, false),
    op("linear", "gate_proj", 176, true, true),
    op("silu", "act_fn", 176, true, false),
    op("linear", "up_proj", 176, true, true),
    op("mul_Tensor", "mlp", 176, true, false),
    op("linear", "down_proj", 64, false, true),
    op("add_Tensor", "residual_mlp", 64, true, false),
];

/// Kinds of layers, which alternate. Each has a source file of its own, and so stacks of its own.
pub(crate) const MAKES: [&str; 4] = ["dense", "experts", "cross", "adapter"];

/// Number of gradients of a layer.
pub(crate) const PARTS: usize = 4;

/// What an operation of a layer does to memory.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    Result,
    Workspace,
    WorkspaceDone,
    /// Frees a result that the backward pass does not need, after the next result.
    Drop,
    Gradient,
    /// Frees a saved result in the backward pass.
    Release,
    /// Frees the gradient of the operation before.
    Consume,
}

pub(crate) const ACTS: [Act; 7] = [
    Act::Result,
    Act::Workspace,
    Act::WorkspaceDone,
    Act::Drop,
    Act::Gradient,
    Act::Release,
    Act::Consume,
];

/// A line of the program that is reached on one path only.
pub(crate) struct Place {
    /// The name of the called operation in the dispatcher; `None` where the line frees.
    pub(crate) call: Option<&'static str>,
    pub(crate) function: &'static str,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
}

const fn place(
    call: Option<&'static str>,
    function: &'static str,
    file: &'static str,
    line: u32,
) -> Place {
    Place { call, function, file, line }
}

const ADAMW: &str = "/opt/venv/lib/python3.11/site-packages/torch/optim/adamw.py";
const CLIP: &str = "/opt/venv/lib/python3.11/site-packages/torch/nn/utils/clip_grad.py";
const FSDP: &str = "/opt/venv/lib/python3.11/site-packages/torch/distributed/fsdp/_fully_shard/\
                    _fsdp_param_group.py";
const FUNCTIONAL: &str = "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py";
const OPTIMIZER: &str = "/opt/venv/lib/python3.11/site-packages/torch/optim/optimizer.py";

/// The places outside of layers, in the order of [`Site::stack`].
pub(crate) const PLACES: [Place; 17] = [
    place(Some("empty_strided"), "init_vectors", "/train/model/build.py", 31),
    place(Some("empty_strided"), "init_matrices", "/train/model/build.py", 57),
    place(Some("zeros_like"), "_init_group", ADAMW, 175),
    place(Some("zeros_like"), "_init_group", ADAMW, 179),
    place(Some("_to_copy"), "next_batch", "/train/data/loader.py", 88),
    place(Some("linear"), "lm_head", "/train/model/head.py", 24),
    place(Some("nll_loss_forward"), "cross_entropy", FUNCTIONAL, 3458),
    place(Some("_foreach_sqrt"), "_multi_tensor_adamw", ADAMW, 586),
    place(Some("linalg_vector_norm"), "_get_total_norm", CLIP, 96),
    place(Some("_allgather_base_"), "unshard", FSDP, 260),
    place(None, "reshard", FSDP, 331),
    place(None, "_multi_tensor_adamw", ADAMW, 601),
    place(None, "_get_total_norm", CLIP, 106),
    place(None, "zero_grad", OPTIMIZER, 1035),
    place(None, "loss_backward", "/train/train.py", 141),
    place(None, "drop_batch", "/train/data/loader.py", 97),
    place(None, "empty_cache", "/opt/venv/lib/python3.11/site-packages/torch/cuda/memory.py", 222),
];

/// Places that only ranks of a fleet reach. Their stacks come after all others, so that those stay
/// as they are.
pub(crate) const FLEET_PLACES: [Place; 3] = [
    place(Some("empty_memory_format"), "recv_forward", "/train/pipeline.py", 58),
    place(Some("empty_memory_format"), "prefetch", "/train/data/loader.py", 112),
    place(Some("clone"), "append", "/train/metrics.py", 44),
];

/// A site that allocates or frees.
#[derive(Clone, Copy)]
pub(crate) enum Site {
    Vector,
    Matrix,
    FirstMoment,
    SecondMoment,
    Batch,
    Logits,
    Loss,
    Foreach,
    Norm,
    Unshard,
    Reshard,
    ForeachDone,
    NormDone,
    ZeroGrad,
    LossDone,
    BatchDone,
    EmptyCache,
    /// The input of a stage of a pipeline, from the stage before.
    Receive,
    /// What a skewed rank holds.
    Prefetch,
    /// What a leaking rank keeps.
    Append,
    /// Allocates a gradient that autograd accumulates.
    Accumulate {
        layer: usize,
        part: usize,
    },
    /// An operation of a layer.
    Layer {
        act: Act,
        layer: usize,
        op: usize,
    },
}

/// The number of the first stack of [`FLEET_PLACES`].
const FLEET: usize = PLACES.len() + MAKES.len() * (PARTS + ACTS.len() * OPS.len());

impl Site {
    /// The number of the site's stack: places first, then gradients by kind of layer and part, then
    /// acts by kind of layer and operation, then places of a fleet.
    pub(crate) fn stack(self) -> usize {
        let places = PLACES.len();
        match self {
            Self::Accumulate { layer, part } => places + layer % MAKES.len() * PARTS + part,
            Self::Layer { act, layer, op } => {
                let before = places + MAKES.len() * PARTS;
                before + (act as usize * MAKES.len() + layer % MAKES.len()) * OPS.len() + op
            }
            Self::Vector => 0,
            Self::Matrix => 1,
            Self::FirstMoment => 2,
            Self::SecondMoment => 3,
            Self::Batch => 4,
            Self::Logits => 5,
            Self::Loss => 6,
            Self::Foreach => 7,
            Self::Norm => 8,
            Self::Unshard => 9,
            Self::Reshard => 10,
            Self::ForeachDone => 11,
            Self::NormDone => 12,
            Self::ZeroGrad => 13,
            Self::LossDone => 14,
            Self::BatchDone => 15,
            Self::EmptyCache => 16,
            Self::Receive => FLEET,
            Self::Prefetch => FLEET + 1,
            Self::Append => FLEET + 2,
        }
    }
}
