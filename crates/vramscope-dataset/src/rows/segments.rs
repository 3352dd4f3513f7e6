//! The table `segments`.

use super::{Key, Stacks};
use crate::table::{Table, Value};
use parquet::errors::Result;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_report::Target;
use vramscope_report::segments::states_sliced;
use vramscope_report::text::{pool, pool_text, segment_type};

pub(super) fn add(
    table: &mut Table,
    [file, rank, device]: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    let last = trace.slots().saturating_sub(1);
    for state in run_to_completion(states_sliced(target, last, &mut Budget::unlimited())) {
        let no_stack = trace.no_stack_of_segment(state.stack, state.enters);
        let stack = stacks.name(state.stack, no_stack);
        let pool = pool(snapshot, state.pool).map(pool_text);
        table.push(&[
            file,
            rank,
            device,
            Value::Int(state.address.0 as i64),
            state.size.0.into(),
            segment_type(state.segment_type).into(),
            snapshot.stream(state.stream).into(),
            pool.as_deref().into(),
            state.is_expandable.into(),
            state.allocated.0.into(),
            state.active.0.into(),
            state.requested.0.into(),
            state.free.0.into(),
            state.largest_free.0.into(),
            stack.id.as_deref().into(),
            (&stack.site).into(),
        ])?;
    }
    Ok(())
}
