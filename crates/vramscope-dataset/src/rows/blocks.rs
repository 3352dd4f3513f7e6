//! The table `blocks`: the columns of the report's table, and those of a dataset.

use super::{HasStack, Stacks, stack_id};
use crate::columns::{Bound, Key, Keyed, TableRows, key};
use crate::table::Table;
use parquet::errors::Result;
use vramscope_inference::StepPart;
use vramscope_report::blocks::{BlockRow, Lifetime, columns};
use vramscope_report::columns::Rows;
use vramscope_report::{BlockPlaces, Target, time_of};
use vramscope_trace::slicing::now;
use vramscope_units::Micros;

/// `blocks`.
pub(crate) struct Blocks;

pub(crate) struct Block<'a> {
    row: BlockRow<'a>,
    stack_id: Option<&'a str>,
    /// The step and phase that allocated it.
    part: Option<&'a StepPart>,
}

impl Rows for Blocks {
    type Row<'a> = Keyed<'a, Block<'a>>;
}

impl<'a> AsRef<BlockRow<'a>> for Keyed<'a, Block<'a>> {
    fn as_ref(&self) -> &BlockRow<'a> {
        &self.row
    }
}

impl HasStack for Keyed<'_, Block<'_>> {
    fn stack_id(&self) -> Option<&str> {
        self.stack_id
    }
}

impl Block<'_> {
    fn alloc_time(&self) -> Option<Micros> {
        let event = self.row.record.alloc_event?;
        time_of(self.row.target.trace(), event.0 + 1).map(Micros)
    }

    fn lifetime(&self) -> Option<Micros> {
        match self.row.record.lifetime {
            Lifetime::Time(time) => Some(time),
            Lifetime::Events(_) => None,
        }
    }
}

impl TableRows for Blocks {
    const NAME: &'static str = "blocks";
    const ROW: &'static str = "a block of a device's window";

    fn columns() -> Vec<Bound<Self>> {
        type Of = Bound<Blocks>;
        let mut all: Vec<Of> = key();
        for column in columns().into_iter().filter(|column| column.in_tables) {
            let (name, about, column) = (column.name, column.description, column.lift());
            let column = Of::from(column);
            match name {
                "address" | "reuse" | "free_requested_event" => all.push(column.split()),
                "requested_bytes" => all.push(column.named("bytes")),
                "free_completed_event" => all.extend([
                    column.split(),
                    Of::new("alloc_us", "Time of `alloc_event`", |row| row.alloc_time()),
                ]),
                "lifetime" => all.extend([
                    Of::new("lifetime_us", about, |row| row.lifetime()).split(),
                    Of::new("step", "Step that allocated it, from 0", |row| row.part?.step),
                    Of::maybe_name("phase", "Phase that allocated it", |row| {
                        row.part.map(|part| part.phase.name().into())
                    }),
                ]),
                "stack_of_free" => all.extend([stack_id(), column.named("of_free")]),
                // Its number is the file's own.
                "stack" => {}
                _ => all.push(column),
            }
        }
        all
    }
}

pub(super) fn add(
    table: &mut Table<Blocks>,
    key: Key<'_>,
    target: Target<'_>,
    stacks: &mut Stacks<'_>,
) -> Result<()> {
    let (trace, places) =
        (target.trace(), now(async |budget| BlockPlaces::new(target, budget).await));
    let (entry, index) = (target.entry, target.index);
    let parts = &entry.passes(index).parts;
    for (index, block) in (0..).zip(&trace.blocks) {
        let stack = stacks.name(block.stack, trace.no_stack(block));
        let row = BlockRow::with_site(&places, target, index, stack.site.as_str().into());
        let part = row
            .record
            .alloc_event
            .and_then(|event| parts.get(parts.partition_point(|part| part.end <= event.0)));
        table.push(&key.row(Block { row, stack_id: stack.id.as_deref(), part }))?;
    }
    Ok(())
}
