//! The tables `ooms`, `findings` and `annotations`.

use super::{HasStack, Stacks, stack_id};
use crate::columns::{Bound, Key, Keyed, TableRows, key};
use crate::table::Table;
use parquet::errors::Result;
use std::borrow::Cow;
use vramscope_report::columns::Rows;
use vramscope_report::findings::{FindingEntry, FindingRecord, of_device};
use vramscope_report::summary::{self, OomSummary};
use vramscope_report::{SnapshotEntry, Target, time_of};
use vramscope_trace::{NamedRange, named_ranges};
use vramscope_units::Micros;

/// `ooms`.
pub(crate) struct Ooms;

pub(crate) struct OomRow {
    oom: OomSummary,
    time: Option<Micros>,
}

impl Rows for Ooms {
    type Row<'a> = Keyed<'a, OomRow>;
}

impl TableRows for Ooms {
    const NAME: &'static str = "ooms";
    const ROW: &'static str = "a failed allocation";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<Ooms>;
        let mut columns = key();
        columns.extend([
            Of::new("event", "Event", |row| row.oom.event),
            Of::new("us", "Time of the event", |row| row.time),
            Of::new("requested_bytes", "Bytes requested", |row| row.oom.requested),
            Of::new("device_free_bytes", "Free bytes that the driver reported", |row| {
                row.oom.device_free
            }),
        ]);
        columns
    }
}

pub(super) fn ooms(table: &mut Table<Ooms>, key: Key<'_>, target: Target<'_>) -> Result<()> {
    let trace = target.trace();
    summary::ooms(trace).into_iter().try_for_each(|oom| {
        let time = time_of(trace, oom.event.0 + 1).map(Micros);
        table.push(&key.row(OomRow { oom, time }))
    })
}

/// `findings`.
pub(crate) struct Findings;

pub(crate) struct FindingRow<'a> {
    finding: &'a FindingRecord,
    stack_id: Option<&'a str>,
}

impl Rows for Findings {
    type Row<'a> = Keyed<'a, FindingRow<'a>>;
}

impl HasStack for Keyed<'_, FindingRow<'_>> {
    fn stack_id(&self) -> Option<&str> {
        self.stack_id
    }
}

impl TableRows for Findings {
    const NAME: &'static str = "findings";
    const ROW: &'static str = "a finding about a device, as `vramscope diagnose --all` has it";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<Findings>;
        let mut columns = key();
        columns.extend([
            Of::name("id", "Id: a file gives the same on every machine", |row| {
                row.finding.id.to_string().into()
            })
            .distinct(),
            Of::name("kind", "Kind", |row| row.finding.kind.name().into()),
            Of::name("severity", "`high`, `medium` or `low`", |row| {
                row.finding.severity.name().into()
            }),
            Of::new("bytes", "Bytes that it is about", |row| row.finding.bytes),
            Of::new("blocks", "Blocks that it is about", |row| row.finding.blocks.0 as u32),
            Of::new(
                "saving_bytes",
                "What the peak loses without it; null where that is not measured",
                |row| row.finding.saving_bytes,
            ),
            Of::name(
                "basis",
                "How the numbers were obtained: `recorded`, `exact` or `estimate`",
                |row| row.finding.basis.name().into(),
            ),
            Of::new("step", "Step, from 0; null if it is about several or none", |row| {
                row.finding.step
            }),
            Of::maybe_name("phase", "Phase; null if it is about several or none", |row| {
                row.finding.phase.map(|phase| phase.name().into())
            }),
            Of::new("first_event", "First event of its evidence", |row| {
                row.finding.events.first().copied()
            }),
            Of::new("last_event", "Last event of its evidence", |row| {
                row.finding.events.last().copied()
            }),
            Of::maybe_name("site", "Call site with most of the bytes", |row| {
                row.finding.sites.first().map(Into::into)
            }),
            stack_id(),
            Of::name("title", "The finding in a few words", |row| {
                row.finding.title.as_str().into()
            })
            .distinct(),
            Of::name("text", "Subject, numbers and cause", |row| row.finding.text.as_str().into())
                .distinct(),
            Of::name("why", "Why, in one line; empty where the title says it", |row| {
                row.finding.why.as_str().into()
            })
            .distinct(),
            Of::name("action", "What to do", |row| row.finding.action.as_str().into()).distinct(),
        ]);
        columns
    }
}

pub(super) fn findings(
    table: &mut Table<Findings>,
    key: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    of_device(target).iter().try_for_each(|FindingEntry { record: finding, stack, .. }| {
        let stack_id = stack.and_then(|stack| stacks.name(stack, None).id.as_deref());
        table.push(&key.row(FindingRow { finding, stack_id }))
    })
}

/// `annotations`.
pub(crate) struct Annotations;

pub(crate) struct AnnotationRow<'a> {
    range: NamedRange,
    name: Cow<'a, str>,
}

impl Rows for Annotations {
    type Row<'a> = Keyed<'a, AnnotationRow<'a>>;
}

impl TableRows for Annotations {
    const NAME: &'static str = "annotations";
    const ROW: &'static str =
        "a range of time that the program named, with `record_function` for example";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<Annotations>;
        let mut columns = key();
        columns.extend([
            Of::name("name", "Name", |row| row.name.as_ref().into()),
            Of::new("start_us", "Start", |row| row.range.start),
            Of::new("end_us", "End; the last time in the file if it was not recorded", |row| {
                row.range.end
            }),
            Of::new("lane", "Ranges of a lane nest or do not overlap", |row| row.range.lane),
        ]);
        columns
    }
}

pub(super) fn annotations<'a>(
    table: &mut Table<Annotations>,
    key: impl Fn(i64) -> Key<'a>,
    entry: &SnapshotEntry,
) -> Result<()> {
    named_ranges(&entry.snapshot).into_iter().try_for_each(|range| {
        let name = entry.snapshot.text(range.name);
        table.push(&key(range.device).row(AnnotationRow { range, name }))
    })
}
