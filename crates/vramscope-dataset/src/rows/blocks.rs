//! The table `blocks`.

use super::{Key, Stacks};
use crate::table::{Table, Value};
use parquet::errors::Result;
use vramscope_report::blocks::record;
use vramscope_report::text::pool_text;
use vramscope_report::{BlockPlaces, Target, TensorRecord, time_of};

pub(super) fn add(
    table: &mut Table,
    [file, rank, device]: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    let (trace, places) = (target.trace(), BlockPlaces::new(target));
    let context = target.entry.block_context(target.index);
    for (index, block) in (0..).zip(&trace.blocks) {
        let row = record(&places, target, index, 0);
        let stack = stacks.name(block.stack, trace.no_stack(block));
        let part = context.part(block);
        let alloc_us = row.alloc_event.and_then(|event| time_of(trace, event + 1));
        let lifetime_us = trace.clock.as_ref().map(|_| row.lifetime);
        let pool = row.pool.map(pool_text);
        let annotations = (!row.annotations.is_empty()).then(|| row.annotations.join("; "));
        let shape = row.tensor.map(TensorRecord::shape_text);
        table.push([
            file,
            rank,
            device,
            Value::Int(block.address.0 as i64),
            row.reuse.into(),
            row.bytes.into(),
            row.block_bytes.into(),
            row.category.name().into(),
            row.confidence.into(),
            row.alloc_event.into(),
            row.free_requested_event.into(),
            row.free_completed_event.into(),
            alloc_us.into(),
            lifetime_us.into(),
            part.and_then(|part| part.step).into(),
            part.map(|part| part.phase.name()).into(),
            row.preexisting.into(),
            row.live_at_end.into(),
            row.stream.into(),
            pool.as_deref().into(),
            row.segment_type.into(),
            stack.id.as_deref().into(),
            row.of_free.into(),
            (&stack.site).into(),
            row.user_metadata.as_deref().into(),
            annotations.as_deref().into(),
            row.tensor.map(|tensor| tensor.kind.as_str()).into(),
            row.tensor.map(|tensor| tensor.name.as_str()).into(),
            shape.as_deref().into(),
            row.tensor.map(|tensor| tensor.dtype.as_str()).into(),
        ])?;
    }
    Ok(())
}
