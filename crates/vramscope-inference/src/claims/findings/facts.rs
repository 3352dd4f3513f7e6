//! The facts of all findings of a device: one list.

use super::churn::SegmentChurn;
use super::cycle::Cycle;
use super::dead::DeadAtPeak;
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
use crate::claims::found::Found;
use crate::claims::kinds::FindingKind;
use crate::claims::scene::Claim;

/// A finding of one device. A comparison of ranks makes [`RankSkew`](super::RankSkew), which is a
/// finding of its own.
pub type Finding = Found<Facts>;

/// Declares the facts of findings.
macro_rules! facts {
    ($($facts:ident($of:ty): $kind:ident;)*) => {
        /// The facts of a finding.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Facts {
            $(#[doc = concat!("See [`FindingKind::", stringify!($kind), "`].")] $facts($of),)*
        }

        impl Facts {
            /// The words, place and proof of these facts.
            pub fn claim(&self) -> &dyn Claim {
                match self { $(Self::$facts(facts) => facts,)* }
            }
        }

        $(impl From<Found<$of>> for Finding {
            fn from(found: Found<$of>) -> Self {
                debug_assert_eq!(found.common.id.kind, FindingKind::$kind);
                found.common.with(Facts::$facts(found.facts))
            }
        })*
    };
}

facts! {
    Growth(Growth): Growth;
    Cycle(Cycle): Cycle;
    GradientsHeld(GradientsHeld): GradientsHeld;
    HeldTooLong(HeldTooLong): HeldTooLong;
    NoGrad(NoGrad): NoGrad;
    PeakCause(PeakCause): PeakCause;
    Oom(Box<OomStory>): Oom;
    Reserved(Box<ReservedPeak>): Reserved;
    StrandedPool(StrandedPool): StrandedPool;
    GraphPools(GraphPools): StrandedPool;
    PendingFree(PendingFrees): PendingFree;
    Churn(SegmentChurn): Churn;
    DeadAtPeak(DeadAtPeak): DeadAtPeak;
    Pinned(Pinned): Pinned;
}
