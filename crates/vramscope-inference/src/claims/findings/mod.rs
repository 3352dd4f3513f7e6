//! Findings: what costs memory, why, and what would change it.
//!
//! A finding carries typed facts and the events that prove it. It claims only what the trace shows.
//! One cause makes one finding; its call stacks are [`Part`]s of it. [`blind_spots`] tells what
//! could not be looked for.
//!
//! A finding is a room: `NAME.rs` has its detection, its facts, as a [`Claim`] its words, place and
//! proof, and its cases. This file lists the kinds and the detectors. [`super::precedence`] says
//! which finding may speak.
//!
//! [`Claim`]: super::scene::Claim

mod ahead;
mod ask;
mod blind;
mod buckets;
mod cache_twice;
mod churn;
mod cycle;
mod dead;
pub(super) mod facts;
mod gathered;
mod gradients;
mod graph_pools;
mod growth;
mod held;
mod idle;
mod loaded;
mod no_grad;
mod one_piece;
pub(super) mod oom;
mod peak_cause;
mod pending;
mod pinned;
mod ranks;
mod reserved;
mod stranded;
mod table;
mod untrained;

pub use ahead::Ahead;
pub use ask::findings;
pub use blind::{BlindSpot, Overrun, blind_spots};
pub use buckets::Buckets;
pub use cache_twice::CacheTwice;
pub use churn::{AlgorithmSearch, SegmentChurn};
pub use cycle::Cycle;
pub use dead::DeadAtPeak;
pub use facts::{Facts, Finding};
pub use gathered::Gathered;
pub use gradients::{Call as GradientsCall, GradientsHeld};
pub use graph_pools::{GraphPools, PoolGrowth};
pub use growth::{Growth, GrowthKind};
pub use held::HeldTooLong;
pub use idle::Idle;
pub use loaded::Loaded;
pub use no_grad::NoGrad;
pub use one_piece::OnePiece;
pub use oom::{
    Aftermath, Climb, Context, Grows, LargerPass, OomStory, Repeated, Returned, Verdict,
};
pub use peak_cause::PeakCause;
pub use pending::PendingFrees;
pub use pinned::{Pinned, PinnedCause};
pub use ranks::{RankSkew, SkewCause, SkewSite, rank_skew, rank_why, rank_words};
pub use reserved::{CostlySetting, Creep, OutOfReach, ReservedPeak};
pub use stranded::StrandedPool;
pub use table::Table;
pub use untrained::{Frozen, Untrained};

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
                GradientsHeld(super::gradients::GradientsHeld),
                Frozen(super::untrained::Frozen)
            ];
            /// Memory that stays live although its successor is already allocated, or its copy is.
            HeldTooLong: "held_too_long", "Held too long", Blocks => [
                HeldTooLong(super::held::HeldTooLong),
                CacheTwice(super::cache_twice::CacheTwice)
            ];
            /// Autograd graphs that nothing needs: evaluation or inference without `no_grad`, a
            /// model that no optimizer updates.
            NoGrad: "no_grad", "Graph without backward", Blocks => [
                NoGrad(super::no_grad::NoGrad),
                Untrained(super::untrained::Untrained)
            ];
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
            /// One cause that alone sets the peak: a step, the making of the model, an evaluation,
            /// results of each pass, a queue.
            PeakCause: "peak_cause", "Cause of the peak", Blocks => [
                PeakCause(super::peak_cause::PeakCause),
                Ahead(super::ahead::Ahead)
            ];
            /// A model that is idle while another one needs the memory.
            IdleModel: "idle_model", "Idle model", Blocks => [IdleModel(super::idle::Idle)];
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

/// The detectors, in the order in which they are asked: devices on which one is asked, and its
/// function. `marks` are those of frames, `taken` the call stacks of findings that silence it.
/// `$then` makes something of the list.
macro_rules! all_detectors {
    ($then:ident) => {
        $then! {
            Growth: Any, growth::growth();
            NoGrad: Gpu, no_grad::no_grad(marks, taken);
            OnePiece: Gpu, one_piece::in_one_piece(marks);
            Gathered: Gpu, gathered::gathered(marks);
            Loaded: Gpu, loaded::loaded(marks);
            Table: Gpu, table::tables(marks);
            Buckets: Gpu, buckets::buckets();
            Cycle: Gpu, cycle::cycle();
            GradientsHeld: Gpu, gradients::gradients_held(taken);
            HeldTooLong: Gpu, held::held_too_long(taken);
            CacheTwice: Gpu, cache_twice::cache_twice();
            IdleModel: Gpu, idle::idle(marks);
            Ahead: Gpu, ahead::ahead();
            PeakEvaluation: Gpu, peak_cause::evaluation();
            PeakBuilding: Gpu, peak_cause::building();
            PeakStep: Gpu, peak_cause::of_step();
            PerPass: Gpu, peak_cause::per_pass(taken);
            DeadAtPeak: Gpu, dead::dead_at_peak();
            PendingFree: Gpu, pending::pending_frees();
            Pinned: Host, pinned::pinned();
        }
    };
}
pub(super) use all_detectors;
