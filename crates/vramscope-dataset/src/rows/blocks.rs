//! The table `blocks`.

use super::{Key, Stacks};
use crate::table::{Table, Value};
use parquet::errors::Result;
use vramscope_analysis::StepPhases;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_report::blocks::facts;
use vramscope_report::text::pool_text;
use vramscope_report::{BlockPlaces, Target, TensorRecord, notes, time_of};

pub(super) fn add(
    table: &mut Table,
    [file, rank, device]: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    let (trace, places) = (target.trace(), BlockPlaces::new(target));
    let (entry, index) = (target.entry, target.index);
    let (categories, steps) = (entry.categories(index), entry.steps(index));
    let budget = &mut Budget::unlimited();
    let parts = run_to_completion(StepPhases::parts(trace, categories, steps, budget));
    for (index, block) in (0..).zip(&trace.blocks) {
        let (row, notes) = (facts(&places, target, index), notes(target, index));
        let tensor = target.entry.tensor(target.index, index);
        let stack = stacks.name(block.stack, trace.no_stack(block));
        let part = row
            .alloc_event
            .and_then(|event| parts.get(parts.partition_point(|part| part.end <= event)));
        let alloc_us = row.alloc_event.and_then(|event| time_of(trace, event + 1));
        let lifetime_us = trace.clock.as_ref().map(|_| row.lifetime);
        let pool = row.pool.map(pool_text);
        let annotations = (!notes.annotations.is_empty()).then(|| notes.annotations.join("; "));
        let shape = tensor.map(TensorRecord::shape_text);
        table.push(&[
            file,
            rank,
            device,
            Value::Int(block.address.0 as i64),
            row.reuse.into(),
            row.bytes.into(),
            row.block_bytes.into(),
            row.guess.category.name().into(),
            row.guess.confidence.into(),
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
            notes.metadata.as_deref().into(),
            annotations.as_deref().into(),
            tensor.map(|tensor| tensor.kind.as_str()).into(),
            tensor.map(|tensor| tensor.name.as_str()).into(),
            shape.as_deref().into(),
            tensor.map(|tensor| tensor.dtype.as_str()).into(),
        ])?;
    }
    Ok(())
}
