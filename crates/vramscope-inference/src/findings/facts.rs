//! The facts of each kind of finding.

use serde::{Deserialize, Serialize};

use super::churn::SegmentChurn;
use super::cycle::Cycle;
use super::dead::DeadAtPeak;
use super::dominant::Dominant;
use super::gradients::GradientsHeld;
use super::graph_pools::GraphPools;
use super::growth::Growth;
use super::held::HeldTooLong;
use super::no_grad::NoGrad;
use super::oom::OomStory;
use super::peak_cause::PeakCause;
use super::pending::PendingFrees;
use super::pinned::Pinned;
use super::reserved::ReservedPeak;
use super::stranded::StrandedPool;

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Allocations that failed, from one cause.
    Oom,
    /// Live bytes that grow from training step to training step.
    Growth,
    /// Growth that a later moment gives back in bulk: reference cycles until Python collects them.
    Cycle,
    /// Gradients of the last update that stay live through the next forward pass.
    GradientsHeld,
    /// Memory that stays live although its successor is already allocated, or its copy is.
    HeldTooLong,
    /// Autograd graphs that no backward pass uses: evaluation or inference without `no_grad`.
    NoGrad,
    /// What alone sets the peak: one step, the making of the model, an evaluation, results of each
    /// pass.
    PeakCause,
    /// A rank that holds far more than the other ranks of its run.
    RankSkew,
    /// More memory reserved than needed.
    Reserved,
    /// Free memory in a pool or of a stream that the requests in need cannot use.
    StrandedPool,
    /// Frees that wait for another stream before their memory can be reused.
    PendingFree,
    /// Segments released to the driver and reserved again.
    Churn,
    /// Memory at the peak of a traced step that no operation uses again.
    DeadAtPeak,
    /// What alone makes the peak, where a cure is known. It is no fault.
    Dominant,
    /// Pinned host memory that is of no use: rounding, outgrown sizes, blocks that nothing uses.
    Pinned,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::Oom,
        Self::Growth,
        Self::Cycle,
        Self::GradientsHeld,
        Self::HeldTooLong,
        Self::NoGrad,
        Self::PeakCause,
        Self::RankSkew,
        Self::Reserved,
        Self::StrandedPool,
        Self::PendingFree,
        Self::Churn,
        Self::DeadAtPeak,
        Self::Dominant,
        Self::Pinned,
    ];

    /// The kind with this name in JSON.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oom => "oom",
            Self::Growth => "growth",
            Self::Cycle => "cycle",
            Self::GradientsHeld => "gradients_held",
            Self::HeldTooLong => "held_too_long",
            Self::NoGrad => "no_grad",
            Self::PeakCause => "peak_cause",
            Self::RankSkew => "rank_skew",
            Self::Reserved => "reserved",
            Self::StrandedPool => "stranded_pool",
            Self::PendingFree => "pending_free",
            Self::Churn => "churn",
            Self::DeadAtPeak => "dead_at_peak",
            Self::Dominant => "dominant",
            Self::Pinned => "pinned",
        }
    }
}

/// How the numbers of a finding were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The file has them.
    Recorded,
    /// They follow from the file without a guess.
    Exact,
    /// They rest on a guess that the finding names.
    Estimate,
}

impl Basis {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Exact => "exact",
            Self::Estimate => "estimate",
        }
    }
}

/// The facts of a finding of one device, by kind. [`RankSkew`](super::RankSkew) is a finding of its
/// own, because only a comparison of ranks makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts {
    /// See [`FindingKind::Growth`].
    Growth(Growth),
    /// See [`FindingKind::Cycle`].
    Cycle(Cycle),
    /// See [`FindingKind::GradientsHeld`].
    GradientsHeld(GradientsHeld),
    /// See [`FindingKind::HeldTooLong`].
    HeldTooLong(HeldTooLong),
    /// See [`FindingKind::NoGrad`].
    NoGrad(NoGrad),
    /// See [`FindingKind::PeakCause`].
    PeakCause(PeakCause),
    /// See [`FindingKind::Oom`].
    Oom(Box<OomStory>),
    /// See [`FindingKind::Reserved`].
    Reserved(Box<ReservedPeak>),
    /// See [`FindingKind::StrandedPool`].
    StrandedPool(StrandedPool),
    /// See [`FindingKind::StrandedPool`]: the pools are those of CUDA graphs.
    GraphPools(GraphPools),
    /// See [`FindingKind::PendingFree`].
    PendingFree(PendingFrees),
    /// See [`FindingKind::Churn`].
    Churn(SegmentChurn),
    /// See [`FindingKind::DeadAtPeak`].
    DeadAtPeak(DeadAtPeak),
    /// See [`FindingKind::Dominant`].
    Dominant(Dominant),
    /// See [`FindingKind::Pinned`].
    Pinned(Pinned),
}

impl Facts {
    /// The kind of finding that these facts make.
    pub fn kind(&self) -> FindingKind {
        match self {
            Self::Growth(_) => FindingKind::Growth,
            Self::Cycle(_) => FindingKind::Cycle,
            Self::GradientsHeld(_) => FindingKind::GradientsHeld,
            Self::HeldTooLong(_) => FindingKind::HeldTooLong,
            Self::NoGrad(_) => FindingKind::NoGrad,
            Self::PeakCause(_) => FindingKind::PeakCause,
            Self::PendingFree(_) => FindingKind::PendingFree,
            Self::Oom(_) => FindingKind::Oom,
            Self::Reserved(_) => FindingKind::Reserved,
            Self::StrandedPool(_) | Self::GraphPools(_) => FindingKind::StrandedPool,
            Self::Churn(_) => FindingKind::Churn,
            Self::DeadAtPeak(_) => FindingKind::DeadAtPeak,
            Self::Dominant(_) => FindingKind::Dominant,
            Self::Pinned(_) => FindingKind::Pinned,
        }
    }
}
