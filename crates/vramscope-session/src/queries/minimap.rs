//! The minimap: the curve of a whole trace, with marks.

use super::findings::findings;
use super::tiles::layout_axis;
use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{FindingKind, Oom, Series, Trace};
use vramscope_layout::Axis;
use vramscope_protocol::AxisKind;
use vramscope_protocol::views::{FindingRow, MINIMAP, Mark, MarkKind, Minimap};
use vramscope_report::Target;
use vramscope_report::peak::separate_peaks;
use vramscope_units::{Bytes, EventIndex};

/// Columns of the curve. Most screens show no more.
const COLUMNS: u32 = MINIMAP[0] / 2;

/// The curve and its marks. Both are empty on an axis that the trace does not have.
pub(crate) async fn minimap(at: Target<'_>, axis: AxisKind, budget: &mut Budget) -> Minimap {
    let trace = at.trace();
    let pools = at.entry.pools(at.index).map_or(0, |p| p.pools.len() as u32);
    let Some(axis) = layout_axis(trace, axis) else {
        return Minimap {
            requested: String::new(),
            reserved: String::new(),
            pools,
            marks: Vec::new(),
        };
    };
    let scale = full_height(trace);
    let requested = columns(axis, &trace.requested, COLUMNS, budget).await;
    let reserved = trace.reserved_sliced(at.snapshot(), budget).await;
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
    for oom in &trace.ooms {
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
    let extent = u128::from(axis.extent());
    let edge = |column: u32| (extent * u128::from(column) / u128::from(columns.max(1))) as u64;
    let mut tops = Vec::with_capacity(columns as usize);
    for column in 0..columns {
        let start = edge(column);
        let states = axis.states_in(start..edge(column + 1).max(start + 1));
        let (_, top) = series.largest_sliced(states, budget).await.unwrap_or_default();
        tops.push(top);
    }
    tops
}

/// A filled SVG path of columns. `scale` is the value at the full height.
pub(super) fn area(columns: &[u64], size: [u32; 2], scale: u64) -> String {
    steps(columns, [0, size[0] * 10], size[1], scale, true)
}

/// The tops of columns as one line, between two x positions in tenths of a unit.
pub(super) fn outline(columns: &[u64], between: [u32; 2], height: u32, scale: u64) -> String {
    steps(columns, between, height, scale, false)
}

/// The tops of columns as one line over the full width.
fn line(columns: &[u64], size: [u32; 2], scale: u64) -> String {
    steps(columns, [0, size[0] * 10], size[1], scale, false)
}

/// A stepped SVG path over the tops of columns. `left` and `right` are in tenths of a unit, and y
/// points down. Equal neighbors share a step.
fn steps(columns: &[u64], [left, right]: [u32; 2], height: u32, scale: u64, fill: bool) -> String {
    let width = u64::from(right.saturating_sub(left));
    let y = |value: u64| {
        let fraction = if scale == 0 { 0.0 } else { (value as f64 / scale as f64).min(1.0) };
        ((1.0 - fraction) * f64::from(height * 10)).round() as u32
    };
    let x = |column: usize| left + (width * column as u64 / columns.len().max(1) as u64) as u32;
    let mut path = String::new();
    let mut put = |command: char, tenths: u32| {
        path.push(command);
        path.push_str(&(tenths / 10).to_string());
        if !tenths.is_multiple_of(10) {
            path.push('.');
            path.push_str(&(tenths % 10).to_string());
        }
    };
    put('M', left);
    let mut last = if fill { height * 10 } else { columns.first().map_or(height * 10, |&c| y(c)) };
    put(' ', last);
    for (column, &value) in columns.iter().enumerate() {
        let y = y(value);
        if y != last {
            if column > 0 {
                put('H', x(column));
            }
            put('V', y);
            last = y;
        }
    }
    put('H', right);
    if fill {
        put('V', height * 10);
        path.push('Z');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_steps_with_at_most_one_decimal() {
        assert_eq!(area(&[0, 1, 1, 3], [8, 3], 3), "M0 3H2V2H6V0H8V3Z");
        assert_eq!(area(&[1, 0], [8, 10], 3), "M0 10V6.7H4V10H8V10Z");
        assert_eq!(line(&[3, 1, 1], [9, 3], 3), "M0 0H3V2H9");
        assert_eq!(outline(&[3, 1], [15, 40], 3, 3), "M1.5 0H2.7V2H4");
        // No columns, and a value above the scale.
        assert_eq!(area(&[], [8, 4], 0), "M0 4H8V4Z");
        assert_eq!(line(&[9], [8, 4], 3), "M0 0H8");
    }
}
