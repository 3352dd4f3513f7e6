//! The warning for an excerpt, a trace that holds only a range of its file's events.

use vramscope_snapshot::{Device, Excerpt, Report, WarningKind};
use vramscope_units::{EventIndex, grouped};

/// Warns that the trace is an excerpt, and maps the file's event numbers to the trace's.
pub(crate) fn warn(excerpt: &Excerpt, device: &Device, report: &mut Report) {
    let Excerpt { events, of, before, .. } = excerpt;
    let (of, kept) = (grouped(u64::from(*of)), grouped(device.events.len() as u64));
    report.warn(WarningKind::Part, None, || {
        let around = "and what was live around them; block sizes are estimates";
        if events.is_empty() {
            return format!("a part of the file: none of its {of} events, {around}");
        }
        let (first, last) = (EventIndex(events.start), EventIndex(events.end - 1));
        let (from, to) =
            (EventIndex(*before), EventIndex(before + (events.end - events.start) - 1));
        format!(
            "a part of the file: events {first} to {last} of {of}, here {from} to {to} of the \
             {kept} kept, {around}"
        )
    });
}
