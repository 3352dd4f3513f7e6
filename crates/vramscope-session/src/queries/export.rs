//! Exports: complete tables as CSV or JSON.

use super::blocks::FilteredBlocks;
use super::events::{EventBlocks, FilteredEvents};
use crate::messages::views::{ExportFormat, FlameWeight, Table, TextForm};
use serde::Serialize;
use std::io;
use vramscope_report::blocks::{BlockRecord, record};
use vramscope_report::events::{self, EventRow};
use vramscope_report::export::{
    self, ExportFormat as Format, Object, block_csv, csv, finding_columns, json_list,
};
use vramscope_report::findings::of_device;
use vramscope_report::flame::Weight;
use vramscope_report::segments::{self, PinRecord, records, segments, states};
use vramscope_report::shapes::{BlockShapes, ShapeTable};
use vramscope_report::{BlockPlaces, Derived, StackTable, Target, slot_after, slot_of};
use vramscope_trace::slicing::Budget;

/// A table with all its rows, as text.
pub(crate) async fn export(
    at: Target<'_>,
    what: &Table,
    form: TextForm,
    budget: &mut Budget,
) -> String {
    let mut out = Vec::new();
    write(at, what, form, &mut out, budget).await.expect("writing to a Vec cannot fail");
    String::from_utf8(out).expect("tables are UTF-8")
}

/// A device in the format of another tool.
pub(crate) async fn convert(at: Target<'_>, format: ExportFormat, budget: &mut Budget) -> String {
    let trace = at.trace();
    let weight = |of: FlameWeight, event: i64| match of {
        FlameWeight::Peak => Weight::Bytes(slot_of(trace.requested_band.peak_event)),
        FlameWeight::Cursor => Weight::Bytes(slot_after(trace, event)),
        FlameWeight::ByteSeconds => Weight::ByteSeconds,
        FlameWeight::Count => Weight::Count,
        FlameWeight::Churn => Weight::Churn,
    };
    let format = match format {
        ExportFormat::Folded { weight: of, event } => Format::Folded(weight(of, event)),
        ExportFormat::Speedscope { weight: of, event } => Format::Speedscope(weight(of, event)),
        ExportFormat::Perfetto {} => Format::Perfetto,
    };
    let mut out = Vec::new();
    export::export(at, format, &mut out, budget).await.expect("memory takes all text");
    String::from_utf8(out).expect("exports are text")
}

async fn write(
    at: Target<'_>,
    what: &Table,
    form: TextForm,
    out: &mut Vec<u8>,
    budget: &mut Budget,
) -> io::Result<()> {
    match what {
        Table::Blocks { table } => {
            let order = FilteredBlocks::new(at, table, budget).await.order;
            let trace = at.trace();
            match form {
                TextForm::Csv => block_csv(at, order.into_iter(), out, budget).await,
                TextForm::Json => {
                    let mut stacks = StackTable::default();
                    let (mut shapes, mut known) = (ShapeTable::default(), BlockShapes::new(at));
                    let mut numbers = Vec::with_capacity(order.len());
                    for &i in &order {
                        budget.charge(4).await;
                        let stack = stacks.add(at.snapshot(), trace.blocks[i as usize].stack);
                        numbers.push((stack, known.of(i).map(|shape| shapes.add(shape))));
                    }
                    let head = BlocksHead {
                        device: at.device(),
                        total: trace.blocks.len(),
                        lifetime_unit: if trace.clock.is_some() { "us" } else { "events" },
                        shapes,
                        stacks,
                    };
                    let places = BlockPlaces::new(at, budget).await;
                    let rows = order.into_iter().zip(numbers);
                    let rows = rows.map(|(i, (stack, shape))| BlockRecord {
                        shape,
                        ..record(&places, at, i, stack)
                    });
                    json_list(&head, "blocks", rows, out, budget).await
                }
            }
        }
        Table::Events { filter } => {
            let filtered = FilteredEvents::new(at, filter, budget).await;
            let blocks = EventBlocks::new(at, budget).await;
            let rows = filtered
                .rows(0..filtered.total())
                .map(|event| EventRow::new(at, event, blocks.get(event)));
            let columns = &events::columns();
            match form {
                TextForm::Csv => csv(columns, rows, out, budget).await,
                TextForm::Json => {
                    let rows = rows.map(|row| Object { columns, row });
                    json_list(&DeviceHead { device: at.device() }, "events", rows, out, budget)
                        .await
                }
            }
        }
        Table::Findings {} => {
            at.entry.derive(Derived::Findings, at.index, budget).await;
            let findings = of_device(at);
            match form {
                TextForm::Csv => csv(&finding_columns(), findings.iter(), out, budget).await,
                TextForm::Json => {
                    json_list(&NoHead {}, "findings", findings.iter(), out, budget).await
                }
            }
        }
        Table::Segments { event } => {
            let slot = slot_after(at.trace(), *event);
            match form {
                TextForm::Csv => {
                    let states = states(at, slot, budget).await;
                    let mut stacks = StackTable::default();
                    let rows = records(at, states.iter(), &mut stacks, budget).await;
                    csv(&segments::columns(), rows.into_iter(), out, budget).await
                }
                TextForm::Json => {
                    let mut state = segments(at, slot, None, budget).await;
                    let rows = std::mem::take(&mut state.segments);
                    let head = SegmentsHead {
                        device: state.device,
                        event: state.event,
                        time_us: state.time_us,
                        free: &state.free,
                        fragmentation: &state.fragmentation,
                        churn: &state.churn,
                        pins: &state.pins,
                        stacks: &state.stacks,
                    };
                    json_list(&head, "segments", rows.iter(), out, budget).await
                }
            }
        }
    }
}

#[derive(Serialize)]
struct NoHead {}

#[derive(Serialize)]
struct DeviceHead {
    device: u32,
}

#[derive(Serialize)]
struct BlocksHead<'a> {
    device: u32,
    total: usize,
    lifetime_unit: &'static str,
    shapes: ShapeTable,
    stacks: StackTable<'a>,
}

#[derive(Serialize)]
struct SegmentsHead<'a, F: Serialize, R: Serialize, C: Serialize> {
    device: u32,
    event: i64,
    time_us: Option<i64>,
    free: &'a F,
    fragmentation: &'a R,
    churn: &'a C,
    pins: &'a [PinRecord],
    stacks: &'a StackTable<'a>,
}
