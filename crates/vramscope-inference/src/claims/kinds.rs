//! The kinds of findings and their names: one list.

use serde::{Deserialize, Serialize};
use vramscope_units::named;

/// What a finding is about. Findings of two ranks about one thing are one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The device: one cause, wherever each rank was.
    Device,
    /// What its id names: a pool, a stream, who returns memory.
    Id,
    /// Blocks of a call site.
    Blocks,
    /// A rank beside others.
    Rank,
}

/// All kinds of findings: name in JSON, name on the page, what a finding is about, and its facts.
/// `$then` makes something of the list.
macro_rules! all_findings {
    ($then:ident) => {
        $then! {
            /// Allocations that failed, from one cause.
            Oom: "oom", "Out of memory", Device => [Oom(Box<super::oom::OomStory>)];
            /// Live bytes that grow from training step to training step.
            Growth: "growth", "Growth", Blocks => [Growth(super::growth::Growth)];
            /// Growth that a later moment gives back in bulk: reference cycles until Python
            /// collects them.
            Cycle: "cycle", "Reference cycles", Blocks => [Cycle(super::cycle::Cycle)];
            /// Gradients of the last update that stay live through the next forward pass.
            GradientsHeld: "gradients_held", "Gradients held", Blocks => [
                GradientsHeld(super::gradients::GradientsHeld)
            ];
            /// Memory that stays live although its successor is already allocated, or its copy is.
            HeldTooLong: "held_too_long", "Held too long", Blocks => [
                HeldTooLong(super::held::HeldTooLong)
            ];
            /// Autograd graphs that no backward pass uses: evaluation or inference without
            /// `no_grad`.
            NoGrad: "no_grad", "Graph without backward", Blocks => [NoGrad(super::no_grad::NoGrad)];
            /// A checkpointed piece with all blocks of the model, which backward computes again at
            /// once.
            OnePiece: "one_piece", "One checkpointed piece", Blocks => [
                OnePiece(super::one_piece::OnePiece)
            ];
            /// Buckets of data parallelism that are a second copy of all gradients.
            Buckets: "buckets", "Gradients twice", Blocks => [Buckets(super::buckets::Buckets)];
            /// Weights of all ranks that stay after forward.
            Gathered: "gathered", "Gathered weights", Blocks => [
                Gathered(super::gathered::Gathered)
            ];
            /// A checkpoint on the device beside the weights that were set from it.
            Loaded: "loaded", "Loaded twice", Blocks => [Loaded(super::loaded::Loaded)];
            /// Dense gradients and moments of tables of which few rows are read.
            Table: "table", "Dense table", Blocks => [Table(super::table::Table)];
            /// What alone sets the peak: one step, the making of the model, an evaluation, results
            /// of each pass.
            PeakCause: "peak_cause", "Cause of the peak", Blocks => [
                PeakCause(super::peak_cause::PeakCause)
            ];
            /// A rank that holds far more than the other ranks of its run.
            RankSkew: "rank_skew", "Rank skew", Rank => [];
            /// More memory reserved than needed.
            Reserved: "reserved", "Reserved, not needed", Device => [
                Reserved(Box<super::reserved::ReservedPeak>)
            ];
            /// Free memory in a pool that the requests in need cannot use.
            StrandedPool: "stranded_pool", "Stranded pool", Id => [
                StrandedPool(super::stranded::StrandedPool),
                GraphPools(super::graph_pools::GraphPools)
            ];
            /// Frees that wait for another stream before their memory can be reused.
            PendingFree: "pending_free", "Pending frees", Device => [
                PendingFree(super::pending::PendingFrees)
            ];
            /// Segments released to the driver and reserved again.
            Churn: "churn", "Churn", Id => [Churn(super::churn::SegmentChurn)];
            /// Memory at the peak of a traced step that no operation uses again.
            DeadAtPeak: "dead_at_peak", "Never read again", Blocks => [
                DeadAtPeak(super::dead::DeadAtPeak)
            ];
            /// Pinned host memory that is of no use: rounding, outgrown sizes, blocks that nothing
            /// uses.
            Pinned: "pinned", "Pinned, of no use", Id => [Pinned(super::pinned::Pinned)];
        }
    };
}
pub(super) use all_findings;

/// Declares [`FindingKind`].
macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $kind:ident: $name:literal, $label:literal, $about:ident => [$($facts:ident($of:ty)),*];
    )*) => {
        /// The kinds of findings.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
        #[serde(rename_all = "snake_case")]
        pub enum FindingKind {
            $($(#[$doc])* $kind,)*
        }

        impl FindingKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The name on the page.
            pub fn label(self) -> &'static str {
                match self { $(Self::$kind => $label,)* }
            }

            /// What a finding of the kind is about.
            pub fn about(self) -> About {
                match self { $(Self::$kind => About::$about,)* }
            }
        }
    };
}

all_findings!(kinds);

impl FindingKind {
    /// The kind with this name in JSON.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

named! {
    /// How the numbers of a finding were obtained.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum Basis {
        /// The file has them.
        Recorded = "recorded",
        /// They follow from the file without a guess.
        Exact = "exact",
        /// They rest on a guess that the finding names.
        Estimate = "estimate",
    }
}
