//! The answer about out-of-memory messages, as scripts and the page get it.

use serde::Serialize;
use vramscope_units::{Bytes, Count};

/// `vramscope.explain/1`: the out-of-memory messages of a text.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Explained {
    /// The schema's name and version.
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub schema: &'static str,
    /// The lines of the text.
    pub lines: Count,
    /// The messages, in the order of the text. Messages of several ranks that are alike are one.
    pub messages: Vec<Message>,
}

/// One message, or several that are alike.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Message {
    /// The source of the message.
    pub kind: Kind,
    /// The kind of device; null where the message does not tell.
    pub backend: Option<Backend>,
    /// The message in one line.
    pub headline: String,
    /// The line where it begins, from 1.
    pub line: u32,
    /// The messages that are alike, this one included.
    pub count: Count,
    /// The ranks that their lines name, in order.
    pub ranks: Vec<u32>,
    /// The devices that they name, in order.
    pub gpus: Vec<u32>,
    /// The message, at most 600 characters.
    pub text: String,
    /// Each number of bytes in the message, and numbers that follow from them.
    pub figures: Vec<Figure>,
    /// Figures that PyTorch's messages have after the last of these: the message is cut before.
    pub missing: Vec<FigureName>,
    /// Numbers that are no bytes.
    pub counts: Vec<Counted>,
    /// The processes that the message lists.
    pub processes: Vec<ProcessMemory>,
    /// The device's memory in parts; null where the figures do not add up to it.
    pub bar: Option<Bar>,
    /// The main cause that the figures show, else one that they allow; null without any.
    pub cause: Option<CauseKind>,
    /// Each possible cause with what the figures say of it.
    pub causes: Vec<Cause>,
    /// What may help, as far as the figures show it, best first.
    pub fixes: Vec<Advice>,
    /// What many try and what cannot help here.
    pub no: Vec<Advice>,
    /// Commands and lines of code to go on with.
    pub help: Vec<String>,
    /// What cannot be told, and why.
    pub notes: Vec<String>,
}

/// The source of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// PyTorch's caching allocator: `CUDA out of memory. Tried to allocate ...`.
    Allocator,
    /// The allocator `backend:cudaMallocAsync`.
    MallocAsync,
    /// The allocator of Apple's GPUs.
    Mps,
    /// A size that is no size: more than 1 EiB.
    Invalid,
    /// The driver: `CUDA error: out of memory`.
    Driver,
    /// A library such as cuBLAS or cuDNN.
    Library,
    /// NCCL.
    Nccl,
    /// A serving engine has no memory left for its KV cache.
    CacheEmpty,
    /// A serving engine's KV cache is too small for one request.
    CacheLength,
    /// A serving engine finds less free memory at its start than it was told to take.
    CacheStart,
    /// A serving engine runs out of memory as it warms up.
    CacheWarmUp,
    /// The host, not the device.
    Host,
    /// Words without figures.
    Bare,
}

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Hip,
    /// Intel's.
    Xpu,
    /// Apple's.
    Mps,
    /// Another one with PyTorch's allocator.
    Other,
}

impl Backend {
    /// The word of the device in messages.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Hip => "hip",
            Self::Xpu => "xpu",
            Self::Mps => "mps",
            Self::Other => "npu",
        }
    }

    /// The name for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA",
            Self::Hip => "ROCm",
            Self::Xpu => "XPU",
            Self::Mps => "MPS",
            Self::Other => "another device",
        }
    }
}

/// A number of bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Figure {
    /// The figure.
    pub name: FigureName,
    /// The bytes.
    pub bytes: Bytes,
    /// Half of the last digit that is printed: the largest error of `bytes`.
    pub rounding: Bytes,
    /// Whether it follows from other figures.
    pub derived: bool,
    /// The meaning, in a sentence.
    pub meaning: String,
}

/// The name of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FigureName {
    /// The request.
    Asked,
    /// The memory of the device.
    Capacity,
    /// Free memory of the device.
    Free,
    /// Memory of tensors.
    Allocated,
    /// Memory that PyTorch holds for tensors to come.
    Unallocated,
    /// Both.
    Reserved,
    /// The part of `allocated` in private pools.
    PrivatePools,
    /// The memory that this process may reserve.
    Limit,
    /// All memory of this process.
    ThisProcess,
    /// The memory of this process that is not PyTorch's.
    OutsidePytorch,
    /// The memory of other processes.
    OtherProcesses,
    /// Memory that is neither free nor PyTorch's.
    NotPytorch,
    /// Memory that no figure tells more of.
    Untold,
    /// The memory that the KV cache needs.
    CacheNeeded,
    /// The memory that is left for the KV cache.
    CacheAvailable,
    /// The memory that the engine was told to take.
    Desired,
}

/// A number that is no bytes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Counted {
    /// The number's name.
    pub name: CountName,
    /// The number.
    pub count: Count,
}

/// The name of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum CountName {
    /// The tokens that one request may have.
    MaxTokens,
    /// The tokens that the KV cache can store.
    StoredTokens,
    /// The engine's own estimate of the tokens that fit.
    EstimatedTokens,
    /// The requests of a warm-up.
    Requests,
}

/// The memory of a process on the device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ProcessMemory {
    /// The process's number as the driver counts it: that of the host, not of a container.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub pid: u64,
    /// The bytes.
    pub bytes: Bytes,
    /// Whether it is the process that failed; null where the message does not tell.
    pub is_this: Option<bool>,
}

/// The memory of a device to scale.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Bar {
    /// The device's memory, or what this process may reserve.
    pub bytes: Bytes,
    /// The parts, in order. Their sum is about `bytes`.
    pub parts: Vec<BarPart>,
    /// The request; null where the message does not tell.
    pub asked: Option<Bytes>,
}

/// A part of a device's memory.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct BarPart {
    /// The part.
    pub part: FigureName,
    /// The part in words: `reserved but unallocated`.
    pub label: String,
    /// The bytes.
    pub bytes: Bytes,
    /// Whether they are a difference of rounded figures.
    pub about: bool,
}

/// A cause of failed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// The process needs more than it can have.
    Demand,
    /// Memory that PyTorch holds is unused and of no use for the request.
    Fragmentation,
    /// Other processes hold the memory.
    OtherProcesses,
    /// A limit that the program set.
    Limit,
}

/// What the figures say of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum CauseVerdict {
    /// They show it.
    Shown,
    /// They allow it.
    Possible,
    /// They exclude it.
    Excluded,
    /// It cannot be told from them.
    CannotBeTold,
}

/// A cause with what the figures say of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Cause {
    /// The cause.
    pub cause: CauseKind,
    /// What the figures say.
    pub verdict: CauseVerdict,
    /// The bytes that are missing, stranded or held by others; null where they cannot be told.
    pub bytes: Option<Bytes>,
    /// The reason, with the figures.
    pub text: String,
}

/// A change, and what comes of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Advice {
    /// The change.
    pub change: String,
    /// What comes of it.
    pub effect: String,
}
