//! Whole tables as text.
//!
//! CSV is RFC 4180 with whole numbers, for spreadsheets; JSON is the rows of the program, which [`crate::report`] makes.
//! Rows are written one by one: a large table fits once, as the text that it becomes.

use super::blocks::{self, slot_after};
use super::events::{self, subject, subjects};
use super::flame;
use crate::detail::reference;
use crate::protocol::DeviceRef;
use crate::protocol::views::{Table, TextForm};
use crate::report::anomalies::{AnomalyRow, of_device};
use crate::report::blocks::row;
use crate::report::export::quoted;
use crate::report::segments::{SegmentRow, segments};
use crate::report::{FrameRow, Target, site, time_of};
use serde::Serialize;

/// A table as text.
pub(crate) fn export(
    at: Target<'_>,
    target: DeviceRef,
    what: &Table,
    form: TextForm,
    flames: &mut flame::Kept,
) -> String {
    match what {
        Table::Blocks { table } => {
            let order = blocks::Found::new(at, target, table, flames).order;
            match form {
                TextForm::Csv => csv(BLOCKS, order.iter().map(|&i| block_line(at, i))),
                TextForm::Json => {
                    let unit = if at.trace().clock.is_some() { "us" } else { "events" };
                    let total = at.trace().blocks.len();
                    let head = format!(
                        "{{\"device\":{},\"total\":{total},\"lifetime_unit\":\"{unit}\",\"blocks\":",
                        at.device()
                    );
                    json(&head, order.iter().map(|&i| row(at, i)))
                }
            }
        }
        Table::Events { filter } => {
            let found = events::Found::new(at, filter);
            let subjects = subjects(at);
            let rows = found.rows(0..found.total()).map(|event| event_row(at, &subjects, event));
            match form {
                TextForm::Csv => csv(EVENTS, rows.map(|row| event_line(&row))),
                TextForm::Json => json(&format!("{{\"device\":{},\"events\":", at.device()), rows),
            }
        }
        Table::Findings {} => {
            let mut found = of_device(at);
            found.sort_unstable_by(|a, b| (b.bytes, &a.id).cmp(&(a.bytes, &b.id)));
            match form {
                TextForm::Csv => csv(FINDINGS, found.iter().map(finding_line)),
                TextForm::Json => json("{\"anomalies\":", found.iter()),
            }
        }
        Table::Segments { event } => {
            let slot = slot_after(at.trace(), *event);
            let found = segments(at, slot);
            match form {
                TextForm::Csv => csv(SEGMENTS, found.segments.iter().map(segment_line)),
                TextForm::Json => {
                    let time = found.time_us.map_or("null".to_owned(), |time| time.to_string());
                    let head = format!("{{\"device\":{},\"event\":{},\"time_us\":{time},", found.device, found.event);
                    let rest = format!(
                        "\"free\":{},\"fragmentation\":{},\"churn\":{},\"segments\":",
                        json_of(&found.free),
                        json_of(&found.fragmentation),
                        json_of(&found.churn)
                    );
                    json(&(head + &rest), found.segments.iter())
                }
            }
        }
    }
}

const BLOCKS: &str = "reference,address,requested_bytes,block_bytes,category,alloc_event,free_requested_event,\
                      free_completed_event,lifetime,stream,site";
const EVENTS: &str = "event,time_us,action,address,bytes,requested_bytes,stream,block,site";
const FINDINGS: &str = "id,kind,device,bytes,events,first_event,last_event,text,stack,path";
const SEGMENTS: &str = "address,total_size,segment_type,stream,pool,is_expandable,allocated,active,requested,free,\
                        largest_free,site";

fn csv(head: &str, lines: impl Iterator<Item = String>) -> String {
    let mut out = format!("{head}\r\n");
    for line in lines {
        out.push_str(&line);
        out.push_str("\r\n");
    }
    out
}

/// An object that ends with a list, which `head` opens.
fn json(head: &str, rows: impl Iterator<Item = impl Serialize>) -> String {
    let mut out = head.to_owned();
    out.push('[');
    for (i, row) in rows.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&json_of(&row));
    }
    out.push_str("]}\n");
    out
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("rows have texts for keys")
}

/// Nothing where there is no number.
fn number<T: ToString>(value: Option<T>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

fn block_line(at: Target<'_>, index: u32) -> String {
    let row = row(at, index);
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
        requested_bytes: trace.requested[event as usize + 1],
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
        "{},{},{},{},{},{},{},{},{},{}",
        quoted(&row.id),
        row.kind,
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
