//! The tables `ooms`, `findings` and `annotations`.

use super::{Key, Stacks};
use crate::table::{Table, Value};
use parquet::errors::Result;
use vramscope_analysis::named_ranges;
use vramscope_report::findings::of_device;
use vramscope_report::summary;
use vramscope_report::{SnapshotEntry, Target, time_of};

pub(super) fn ooms(
    table: &mut Table,
    [file, rank, device]: Key<'_>,
    target: Target<'_>,
) -> Result<()> {
    let trace = target.trace();
    summary::ooms(trace).into_iter().try_for_each(|oom| {
        table.push(&[
            file,
            rank,
            device,
            oom.event.0.into(),
            time_of(trace, oom.event.0 + 1).into(),
            oom.requested.0.into(),
            oom.device_free.map(|free| free.0).into(),
        ])
    })
}

pub(super) fn findings(
    table: &mut Table,
    [file, rank, device]: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    of_device(target).iter().try_for_each(|finding| {
        let stack = finding.stack.and_then(|stack| stacks.name(stack, None).id.as_deref());
        table.push(&[
            file,
            rank,
            device,
            (&finding.id).into(),
            finding.kind.name().into(),
            finding.severity.name().into(),
            finding.bytes.into(),
            finding.blocks.into(),
            finding.step.into(),
            finding.phase.into(),
            finding.events.first().copied().into(),
            finding.events.last().copied().into(),
            finding.sites.first().into(),
            stack.into(),
            (&finding.title).into(),
            (&finding.text).into(),
            (&finding.action).into(),
        ])
    })
}

pub(super) fn annotations(
    table: &mut Table,
    [file, rank]: [Value<'_>; 2],
    entry: &SnapshotEntry,
) -> Result<()> {
    named_ranges(&entry.snapshot).into_iter().try_for_each(|range| {
        table.push(&[
            file,
            rank,
            range.device.into(),
            entry.snapshot.text(range.name).as_ref().into(),
            range.start.0.into(),
            range.end.0.into(),
            range.lane.into(),
        ])
    })
}
