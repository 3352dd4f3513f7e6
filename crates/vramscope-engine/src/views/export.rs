//! Whole tables as text.
//!
//! CSV is RFC 4180 with whole numbers, for spreadsheets; JSON is the rows of the program, which
//! [`crate::report`] makes. Rows are written one by one: a large table fits once, as the text that
//! it becomes.

use super::blocks::{self, slot_after};
use super::events::{self, subject, subjects};
use crate::detail::reference;
use crate::protocol::views::{Table, TextForm};
use crate::report::anomalies::{AnomalyRow, of_device};
use crate::report::blocks::{line, row};
use crate::report::export::quoted;
use crate::report::segments::{SegmentRow, rows_sliced, segments_sliced, states_sliced};
use crate::report::{FrameRow, Target, site, time_of};
use serde::Serialize;
use vramscope_analysis::slicing::Budget;

/// A table as text.
pub(crate) async fn export(
    at: Target<'_>,
    what: &Table,
    form: TextForm,
    budget: &mut Budget,
) -> String {
    match what {
        Table::Blocks { table } => {
            let order = blocks::Found::sliced(at, table, budget).await.order;
            match form {
                TextForm::Csv => {
                    csv(BLOCKS, order.iter().map(|&i| block_line(at, i)), budget).await
                }
                TextForm::Json => {
                    let unit = if at.trace().clock.is_some() { "us" } else { "events" };
                    let total = at.trace().blocks.len();
                    let head = format!(
                        "{{\"device\":{},\"total\":{total},\"lifetime_unit\":\"{unit}\",\"blocks\":",
                        at.device()
                    );
                    json(&head, order.iter().map(|&i| row(at, i)), budget).await
                }
            }
        }
        Table::Events { filter } => {
            let found = events::Found::sliced(at, filter, budget).await;
            let subjects = subjects(at, budget).await;
            let rows = found.rows(0..found.total()).map(|event| event_row(at, &subjects, event));
            match form {
                TextForm::Csv => csv(EVENTS, rows.map(|row| event_line(&row)), budget).await,
                TextForm::Json => {
                    json(&format!("{{\"device\":{},\"events\":", at.device()), rows, budget).await
                }
            }
        }
        Table::Findings {} => {
            let found = of_device(at);
            match form {
                TextForm::Csv => csv(FINDINGS, found.iter().map(finding_line), budget).await,
                TextForm::Json => json("{\"anomalies\":", found.iter(), budget).await,
            }
        }
        Table::Segments { event } => {
            let slot = slot_after(at.trace(), *event);
            match form {
                TextForm::Csv => {
                    let states = states_sliced(at, slot, budget).await;
                    let rows = rows_sliced(at, &states, budget).await;
                    csv(SEGMENTS, rows.iter().map(segment_line), budget).await
                }
                TextForm::Json => {
                    let found = segments_sliced(at, slot, budget).await;
                    let time = found.time_us.map_or("null".to_owned(), |time| time.to_string());
                    let head = format!(
                        "{{\"device\":{},\"event\":{},\"time_us\":{time},",
                        found.device, found.event
                    );
                    let rest = format!(
                        "\"free\":{},\"fragmentation\":{},\"churn\":{},\"segments\":",
                        json_of(&found.free),
                        json_of(&found.fragmentation),
                        json_of(&found.churn)
                    );
                    json(&(head + &rest), found.segments.iter(), budget).await
                }
            }
        }
    }
}

const BLOCKS: &str = "reference,address,requested_bytes,block_bytes,category,alloc_event,free_requested_event,\
                      free_completed_event,lifetime,stream,site";
const EVENTS: &str = "event,time_us,action,address,bytes,requested_bytes,stream,block,site";
const FINDINGS: &str =
    "id,kind,severity,device,bytes,events,first_event,last_event,text,stack,path";
const SEGMENTS: &str = "address,total_size,segment_type,stream,pool,is_expandable,allocated,active,requested,free,\
                        largest_free,site";

/// What a row costs.
const ROW: u64 = 256;
/// From so many rows it is told how long all will be.
const SAMPLE: usize = 4096;

async fn csv(head: &str, lines: impl Iterator<Item = String>, budget: &mut Budget) -> String {
    let mut out = format!("{head}\r\n");
    let count = lines.size_hint().0;
    for (i, line) in lines.enumerate() {
        out.push_str(&line);
        out.push_str("\r\n");
        make_room(&mut out, i, count);
        budget.charge(ROW).await;
    }
    out
}

/// An object that ends with a list, which `head` opens.
async fn json(
    head: &str,
    rows: impl Iterator<Item = impl Serialize>,
    budget: &mut Budget,
) -> String {
    let mut out = head.to_owned();
    out.push('[');
    let count = rows.size_hint().0;
    for (i, row) in rows.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&json_of(&row));
        make_room(&mut out, i, count);
        budget.charge(ROW).await;
    }
    out.push_str("]}\n");
    out
}

/// After some rows, room for as many as there will be: a long text that grows is copied, which
/// takes longer than a slice.
fn make_room(out: &mut String, row: usize, count: usize) {
    if row == SAMPLE {
        let rest = (out.len() / SAMPLE).saturating_mul(count.saturating_sub(SAMPLE));
        // Where there is not so much it grows as it must.
        out.try_reserve(rest.saturating_add(rest / 8)).unwrap_or_default();
    }
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("rows have texts for keys")
}

/// Nothing where there is no number.
fn number<T: ToString>(value: Option<T>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

fn block_line(at: Target<'_>, index: u32) -> String {
    let row = line(at, index);
    let reference = reference(at.trace(), &at.trace().blocks[index as usize]);
    format!(
        "{reference},{},{},{},{},{},{},{},{},{},{}",
        row.address,
        row.bytes,
        row.block_bytes,
        row.category,
        number(row.alloc_event),
        number(row.free_requested_event),
        number(row.free_completed_event),
        row.lifetime,
        row.stream,
        quoted(&row.site)
    )
}

/// An event of the trace, in the words of the program's other rows.
#[derive(Serialize)]
struct EventOut {
    event: u32,
    time_us: Option<i64>,
    action: String,
    address: Option<String>,
    bytes: u64,
    /// After the event.
    requested_bytes: u64,
    stream: i64,
    /// The reference of the block that it is about.
    block: Option<String>,
    site: String,
}

fn event_row(at: Target<'_>, subjects: &[u32], event: u32) -> EventOut {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    let (events, row) = (&snapshot.events, trace.device.events.start + event);
    EventOut {
        event,
        time_us: time_of(trace, event + 1),
        action: snapshot.action_name(events.action(row)).into_owned(),
        address: (events.addr(row).0 != 0).then(|| events.addr(row).plain()),
        bytes: events.size(row).0,
        requested_bytes: trace.requested.at(event + 1),
        stream: snapshot.stream(events.stream(row)),
        block: subject(subjects, event).map(|i| reference(trace, &trace.blocks[i as usize])),
        site: site(at.part, events.stack(row)),
    }
}

fn event_line(row: &EventOut) -> String {
    format!(
        "{},{},{},{},{},{},{},{},{}",
        row.event,
        number(row.time_us),
        quoted(&row.action),
        row.address.as_deref().unwrap_or_default(),
        row.bytes,
        row.requested_bytes,
        row.stream,
        row.block.as_deref().unwrap_or_default(),
        quoted(&row.site)
    )
}

fn finding_line(row: &AnomalyRow) -> String {
    let stack: Vec<String> = row.frames.iter().map(FrameRow::short).collect();
    format!(
        "{},{},{},{},{},{},{},{},{},{},{}",
        quoted(&row.id),
        row.kind,
        row.severity.name(),
        row.device,
        row.bytes,
        row.events.len(),
        number(row.events.first()),
        number(row.events.last()),
        quoted(&row.text),
        quoted(&stack.join("; ")),
        quoted(&row.path)
    )
}

fn segment_line(row: &SegmentRow<'_>) -> String {
    let pool = row.pool.map(|[a, b]| quoted(&format!("({a}, {b})")));
    format!(
        "{},{},{},{},{},{},{},{},{},{},{},{}",
        row.address,
        row.total_size,
        row.segment_type,
        row.stream,
        pool.unwrap_or_default(),
        row.is_expandable,
        row.allocated,
        row.active,
        row.requested,
        row.free,
        row.largest_free,
        quoted(&row.site)
    )
}
