//! Findings: what costs memory, why, and what would change it.
//!
//! A finding carries typed facts and the events that prove it. It claims only what the trace shows.
//! One cause makes one finding; its call stacks are [`Part`]s of it. [`blind_spots`] tells what
//! could not be looked for.
//!
//! A finding is a room: `NAME.rs` has its detection, its facts, as a [`Claim`] its words, place and
//! proof, and its cases. [`super::kinds`] lists the kinds, [`facts`] the facts.
//! [`super::precedence`] says which finding may speak.
//!
//! [`Claim`]: super::scene::Claim

mod blind;
mod buckets;
mod churn;
mod cycle;
mod dead;
pub(super) mod facts;
mod gathered;
mod gradients;
mod graph_pools;
mod growth;
mod held;
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

pub use blind::{BlindSpot, Overrun, blind_spots};
pub use buckets::Buckets;
pub use churn::{AlgorithmSearch, SegmentChurn};
pub use cycle::Cycle;
pub use dead::DeadAtPeak;
pub use facts::{Facts, Finding};
pub use gathered::Gathered;
pub use gradients::GradientsHeld;
pub use graph_pools::{GraphPools, PoolGrowth};
pub use growth::{Growth, GrowthKind};
pub use held::HeldTooLong;
pub use loaded::Loaded;
pub use no_grad::NoGrad;
pub use one_piece::OnePiece;
pub use oom::{Aftermath, Climb, Context, LargerStep, OomStory, Returned, Verdict};
pub use peak_cause::PeakCause;
pub use pending::PendingFrees;
pub use pinned::{Pinned, PinnedCause};
pub use ranks::{RankSkew, SkewCause, SkewSite, rank_skew, rank_why, rank_words};
pub use reserved::{CostlySetting, Creep, OutOfReach, ReservedPeak};
pub use stranded::StrandedPool;
pub use table::Table;

use super::precedence::{Detector, Floor};
use crate::evidence::marks::Marks;
use crate::evidence::{Evidence, Returns, segments_at, slot_of_last_rise, slot_of_reserved_peak};
use vramscope_trace::slicing::{self, Boxed, Budget};

/// The findings of one device: by severity, then bytes.
#[inline(never)]
pub fn findings<'a>(cx: Evidence<'a>, budget: &'a mut Budget) -> Boxed<'a, Vec<Finding>> {
    Box::pin(async move {
        let mut found = if cx.trace.device.kind.is_host() {
            of_host(cx, budget).await
        } else {
            let mut allocator_budget = budget.fork();
            let (mut found, others) =
                slicing::join(of_program(cx, budget), of_allocator(cx, &mut allocator_budget))
                    .await;
            found.extend(others);
            found
        };
        found.sort_by(|a, b| (a.severity, b.bytes, &a.id).cmp(&(b.severity, a.bytes, &b.id)));
        found
    })
}

/// Findings about pinned host memory. The other kinds are about the model and the settings of a
/// GPU's allocator.
async fn of_host(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    let mut floor = Floor::new(cx);
    floor.add(Detector::Growth, growth::growth(cx, budget).await);
    floor.add(Detector::Pinned, pinned::pinned(cx, budget).await);
    floor.into_findings()
}

/// Findings about the program's use of memory.
async fn of_program(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    use Detector as D;
    let mut floor = Floor::new(cx);
    let marks = Marks::new(cx.snapshot, budget).await;
    floor.add(D::Growth, growth::growth(cx, budget).await);
    let taken = floor.taken(D::NoGrad);
    floor.add(D::NoGrad, no_grad::no_grad(cx, &marks, &taken, budget).await);
    floor.add(D::OnePiece, one_piece::in_one_piece(cx, &marks, budget).await);
    floor.add(D::Gathered, gathered::gathered(cx, &marks, budget).await);
    floor.add(D::Loaded, loaded::loaded(cx, &marks, budget).await);
    floor.add(D::Table, table::tables(cx, &marks, budget).await);
    floor.add(D::Buckets, buckets::buckets(cx, budget).await);
    floor.add(D::Cycle, cycle::cycle(cx, budget).await);
    if floor.may_speak(D::GradientsHeld) {
        let taken = floor.taken(D::GradientsHeld);
        floor.add(D::GradientsHeld, gradients::gradients_held(cx, &taken, budget).await);
    }
    let taken = floor.taken(D::HeldTooLong);
    floor.add(D::HeldTooLong, held::held_too_long(cx, &taken, budget).await);
    if floor.may_speak(D::PeakEvaluation) {
        floor.add(D::PeakEvaluation, peak_cause::evaluation(cx, budget).await);
    }
    if floor.may_speak(D::PeakBuilding) {
        floor.add(D::PeakBuilding, peak_cause::building(cx, budget).await);
    }
    if floor.may_speak(D::PeakStep) {
        floor.add(D::PeakStep, peak_cause::of_step(cx, budget).await);
    }
    let taken = floor.taken(D::PerPass);
    floor.add(D::PerPass, peak_cause::per_pass(cx, &taken, budget).await);
    floor.add(D::DeadAtPeak, dead::dead_at_peak(cx, budget).await);
    floor.into_findings()
}

/// Findings about the allocator.
async fn of_allocator(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    use Detector as D;
    let mut floor = Floor::new(cx);
    let returns = Returns::find(cx, budget).await;
    let was_short = !cx.trace.ooms.is_empty() || returns.has_retries();
    let stories = oom::stories(cx, &returns, budget).await;
    floor.add(D::Oom, stories.found);
    floor.add(D::PendingFree, pending::pending_frees(cx, budget).await);
    floor.add(D::Churn, churn::churn(cx, &returns, &stories.events, budget).await);
    let is_asked = [D::Reserved, D::Stranded, D::GraphPools].map(|of| floor.may_speak(of));
    if !is_asked.contains(&true) {
        return floor.into_findings();
    }
    let slot = slot_of_reserved_peak(cx, budget).await;
    let segments = segments_at(cx, slot, budget).await;
    // What the requests could not use shows when memory was reserved for them.
    let rise = slot_of_last_rise(cx);
    let at_rise = if rise == slot { segments.clone() } else { segments_at(cx, rise, budget).await };
    if floor.may_speak(D::Reserved) {
        let out_of_reach = reserved::OutOfReach::find(cx, &at_rise, rise, budget).await;
        let found = reserved::reserved(cx, &segments, slot, out_of_reach, was_short, budget).await;
        floor.add(D::Reserved, found);
    }
    if floor.may_speak(D::Stranded) {
        floor.add(D::Stranded, stranded::stranded(cx, &at_rise, rise, was_short, budget).await);
    }
    if floor.may_speak(D::GraphPools) {
        floor.add(D::GraphPools, graph_pools::graph_pools(cx, &segments, slot, budget).await);
    }
    floor.into_findings()
}
