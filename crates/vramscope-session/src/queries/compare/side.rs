//! One side of a comparison: what a worker sends of its device.

use crate::messages::views::COMPARED;
use crate::queries::minimap::columns;
use vramscope_layout::{Axis, AxisKind};
use vramscope_report::peak::BandKind;
use vramscope_report::side::{Align, Side, SideCurve};
use vramscope_report::{Derived, Target};
use vramscope_trace::Series;
use vramscope_trace::slicing::Budget;

/// Columns of a curve: two units of the plot's width each.
const COLUMNS: u32 = COMPARED[0] / 2;

/// The side of a device as JSON, for a comparison by another worker.
pub(crate) async fn side(at: Target<'_>, band: BandKind, budget: &mut Budget) -> String {
    let series = band.series(at, budget).await;
    let mut side = Side::new(at, band, budget).await;
    side.curves.extend(along_axis(at, AxisKind::Event, Align::Event, &series, budget).await);
    side.curves.extend(along_axis(at, AxisKind::Time, Align::Time, &series, budget).await);
    side.curves.extend(by_step(at, &series, budget).await);
    // A side has texts and numbers only, so serialization cannot fail.
    serde_json::to_string(&side).unwrap_or_default()
}

/// The curve along an axis of the trace; `None` where the trace has no such axis.
async fn along_axis(
    at: Target<'_>,
    kind: AxisKind,
    align: Align,
    series: &Series,
    budget: &mut Budget,
) -> Option<SideCurve> {
    // Times of two recordings are compared, so that none may be cut.
    let axis = Axis::even(at.trace(), kind)?;
    let (origin, extent) = (axis.origin() as f64, axis.extent() as f64);
    Some(SideCurve {
        align,
        from: -origin,
        to: extent - origin,
        tops: columns(axis, series, COLUMNS, budget).await,
    })
}

/// The curve by training step; `None` without training steps. All steps have the same width, and so
/// have the parts before the first and after the last step.
async fn by_step(at: Target<'_>, series: &Series, budget: &mut Budget) -> Option<SideCurve> {
    at.entry.derive(Derived::Steps, at.index, budget).await;
    let steps = at.entry.steps(at.index).filter(|steps| steps.are_training())?;
    let (first, last) = (*steps.begins.first()?, *steps.begins.last()?);
    let end = series.len() as u32;
    let before = (first > 0).then_some(0);
    let after = (last + 1 < end).then_some(end.saturating_sub(1));
    let edges: Vec<u32> =
        before.into_iter().chain(steps.begins.iter().copied()).chain(after).collect();
    let from = if before.is_some() { -1.0 } else { 0.0 };
    let parts = edges.len() - 1;
    let slot = |column: u32| {
        let place = f64::from(column) * parts as f64 / f64::from(COLUMNS);
        let part = (place as usize).min(parts - 1);
        let (low, high) = (f64::from(edges[part]), f64::from(edges[part + 1]));
        (low + (high - low) * (place - part as f64)) as u32
    };
    let columns = (0..COLUMNS).map(|at| slot(at)..slot(at + 1).max(slot(at)) + 1);
    let tops = series.tops(columns, budget).await;
    Some(SideCurve { align: Align::Step, from, to: from + parts as f64, tops })
}
