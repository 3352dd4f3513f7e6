//! Asks the detectors.

use super::facts::Finding;
use super::{all_detectors, churn, graph_pools, oom, reserved, stranded};
use crate::claims::precedence::{Detector, Floor};
use crate::evidence::marks::Marks;
use crate::evidence::{Evidence, Returns, segments_at, slot_of_last_rise, slot_of_reserved_peak};
use vramscope_snapshot::DeviceKind;
use vramscope_trace::slicing::{self, Boxed, Budget};

/// The findings of one device: by severity, then bytes.
#[inline(never)]
pub fn findings<'a>(cx: Evidence<'a>, budget: &'a mut Budget) -> Boxed<'a, Vec<Finding>> {
    Box::pin(async move {
        let mut allocator_budget = budget.fork();
        let (mut found, others) =
            slicing::join(of_list(cx, budget), of_allocator(cx, &mut allocator_budget)).await;
        found.extend(others);
        found.sort_by(|a, b| (a.severity, b.bytes, &a.id).cmp(&(b.severity, a.bytes, &b.id)));
        found
    })
}

/// The devices on which a detector is asked.
#[derive(Clone, Copy)]
enum On {
    Any,
    /// The model, or the settings of a GPU's allocator.
    Gpu,
    /// Pinned host memory.
    Host,
}

impl On {
    fn has(self, device: DeviceKind) -> bool {
        match self {
            Self::Any => true,
            Self::Gpu => !device.is_host(),
            Self::Host => device.is_host(),
        }
    }
}

/// An argument of a detector beside the evidence.
macro_rules! need {
    (marks, $marks:ident, $floor:ident, $of:ident) => {
        &$marks
    };
    (taken, $marks:ident, $floor:ident, $of:ident) => {
        &$floor.taken(Detector::$of)
    };
}

/// Declares `of_list`.
macro_rules! ask {
    ($($of:ident: $on:ident, $room:ident::$detect:ident($($needs:ident),*);)*) => {
        /// The findings of the detectors in the list.
        async fn of_list(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
            let mut floor = Floor::new(cx);
            let marks = Marks::new(cx.snapshot, budget).await;
            $(if On::$on.has(cx.trace.device.kind) && floor.may_speak(Detector::$of) {
                let found = super::$room::$detect(
                    cx, $(need!($needs, marks, floor, $of),)* budget
                ).await;
                floor.add(Detector::$of, found);
            })*
            floor.into_findings()
        }
    };
}

all_detectors!(ask);

/// Findings about the allocator, which share what they read.
async fn of_allocator(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    use Detector as D;
    let mut floor = Floor::new(cx);
    if cx.trace.device.kind.is_host() {
        return floor.into_findings();
    }
    let returns = Returns::find(cx, budget).await;
    let was_short = !cx.trace.ooms.is_empty() || returns.has_retries();
    let stories = oom::stories(cx, &returns, budget).await;
    floor.add(D::Oom, stories.found);
    floor.add(D::Churn, churn::churn(cx, &returns, &stories.events, budget).await);
    let is_asked = [D::Reserved, D::Stranded, D::GraphPools].map(|of| floor.may_speak(of));
    if !is_asked.contains(&true) {
        return floor.into_findings();
    }
    let slot = slot_of_reserved_peak(cx, budget).await;
    let segments = segments_at(cx, slot, budget).await;
    // Memory that the requests could not use shows when more was reserved for them.
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
