//! The table `segments`: the columns of the report's table, with ids of call stacks.

use super::{HasStack, Stacks, stack_id};
use crate::columns::{Bound, Key, Keyed, TableRows, key};
use crate::table::Table;
use parquet::errors::Result;
use vramscope_report::Target;
use vramscope_report::columns::Rows;
use vramscope_report::segments::{SegmentRecord, columns, segment_record, states};
use vramscope_trace::slicing::now;

/// `segments`.
pub(crate) struct Segments;

pub(crate) struct Segment<'a> {
    record: SegmentRecord,
    stack_id: Option<&'a str>,
}

impl Rows for Segments {
    type Row<'a> = Keyed<'a, Segment<'a>>;
}

impl AsRef<SegmentRecord> for Keyed<'_, Segment<'_>> {
    fn as_ref(&self) -> &SegmentRecord {
        &self.record
    }
}

impl HasStack for Keyed<'_, Segment<'_>> {
    fn stack_id(&self) -> Option<&str> {
        self.stack_id
    }
}

impl TableRows for Segments {
    const NAME: &'static str = "segments";
    const ROW: &'static str = "a segment after the last event";

    fn columns() -> Vec<Bound<Self>> {
        let mut all = key();
        for column in columns() {
            if column.name == "site" {
                all.push(stack_id());
            }
            all.push(column.lift().into());
        }
        all
    }
}

pub(super) fn add(
    table: &mut Table<Segments>,
    key: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    let trace = target.trace();
    let last = trace.slots().saturating_sub(1);
    for state in now(async |budget| states(target, last, budget).await) {
        let no_stack = trace.no_stack_of_segment(state.stack, state.enters);
        let stack_id = stacks.name(state.stack, no_stack).id.as_deref();
        // Rows have ids of call stacks, not their index in a report.
        let record = segment_record(target, &state, 0);
        table.push(&key.row(Segment { record, stack_id }))?;
    }
    Ok(())
}
