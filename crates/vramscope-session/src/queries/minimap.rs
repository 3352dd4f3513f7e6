//! The minimap: the curve of a whole trace, with marks.

use super::findings::findings;
use crate::messages::AxisKind;
use crate::messages::views::{FindingRow, MINIMAP, Mark, MarkKind, Minimap};
use vramscope_inference::FindingKind;
use vramscope_layout::Axis;
use vramscope_report::Target;
use vramscope_report::peak::separate_peaks;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Oom, Series, Trace, columns_of};
use vramscope_units::svg::{area, line};
use vramscope_units::{Bytes, EventIndex};

/// Columns of the curve. Most screens show no more.
const COLUMNS: u32 = MINIMAP[0] / 2;

/// The most OOMs that the page marks.
const MAX_OOMS: usize = 100;

/// The OOMs that the page marks: the first and the last ones. A program may catch any number.
pub(super) fn marked(ooms: &[Oom]) -> impl Iterator<Item = &Oom> {
    let last = ooms.len().saturating_sub(MAX_OOMS - 1).max(1);
    ooms.iter().take(1).chain(ooms.iter().skip(last))
}

/// The curve and its marks. Both are empty on an axis that the trace does not have.
pub(crate) async fn minimap(at: Target<'_>, axis: AxisKind, budget: &mut Budget) -> Minimap {
    let trace = at.trace();
    let pools = at.entry.pools(at.index).map_or(0, |p| p.pools.len() as u32);
    let Some(axis) = Axis::new(trace, axis) else {
        return Minimap {
            requested: String::new(),
            reserved: String::new(),
            pools,
            marks: Vec::new(),
        };
    };
    let scale = full_height(trace);
    let requested = columns(axis, &trace.requested, COLUMNS, budget).await;
    let reserved = trace.reserved(at.snapshot(), budget).await;
    let reserved = columns(axis, &reserved, COLUMNS, budget).await;
    Minimap {
        requested: area(&requested, MINIMAP, scale),
        reserved: line(&reserved, MINIMAP, scale),
        pools,
        marks: marks(at, axis, budget).await,
    }
}

/// The bytes at the full height of a whole trace's picture: the peak of reserved bytes, or of
/// requested bytes if that is higher.
pub(super) fn full_height(trace: &Trace) -> u64 {
    trace.reserved_band.peak.max(trace.requested_band.peak).max(0) as u64
}

/// Marks of OOMs and findings by event, then of the separate peaks, the highest first.
async fn marks(at: Target<'_>, axis: Axis<'_>, budget: &mut Budget) -> Vec<Mark> {
    let trace = at.trace();
    let mark = |kind: MarkKind, slot: u32, text: String, id: String| Mark {
        kind,
        slot: axis.slot_of(slot) as f64,
        event: i64::from(slot) - 1,
        text,
        id,
    };
    let findings = findings(at, budget).await;
    let mut marks: Vec<Mark> = Vec::new();
    for oom in marked(&trace.ooms) {
        let finding = findings.iter().map(|row| &row.record).find(|record| {
            record.kind == FindingKind::Oom && record.events.first() == Some(&oom.event)
        });
        marks.push(mark(
            MarkKind::Oom,
            oom.event.0 + 1,
            oom_text(oom),
            finding.map(|record| record.id.to_string()).unwrap_or_default(),
        ));
    }
    for FindingRow { record, view } in
        findings.iter().filter(|row| row.record.kind != FindingKind::Oom)
    {
        if let Some(event) = record.events.first() {
            let text = format!("{}: {}", view.label, record.title);
            marks.push(mark(MarkKind::Finding, event.0 + 1, text, record.id.to_string()));
        }
    }
    marks.sort_by_key(|m| m.event);
    for peak in separate_peaks(&trace.requested, trace.requested_band, budget).await {
        let place = match peak.slot.checked_sub(1) {
            Some(event) => format!("at {}", EventIndex(event)),
            None => "before the window".to_owned(),
        };
        marks.push(mark(
            MarkKind::Peak,
            peak.slot,
            format!("peak {} {place}", Bytes(peak.value)),
            String::new(),
        ));
    }
    marks
}

fn oom_text(oom: &Oom) -> String {
    let free =
        oom.device_free.map(|free| format!(", {free} free on the device")).unwrap_or_default();
    format!("out of memory at {}: {} requested{free}", oom.event, oom.requested)
}

/// The largest value in each of `columns` equal parts of an axis.
pub(super) async fn columns(
    axis: Axis<'_>,
    series: &Series,
    columns: u32,
    budget: &mut Budget,
) -> Vec<u64> {
    let parts = columns_of(0..axis.extent(), columns);
    series.tops(parts.map(|slots| axis.states_in(slots)), budget).await
}
