//! `vramscope events`: the events of a device's trace, as they were recorded.

use super::{StackTable, Target, site, stack, time_of};
use crate::columns::{Column, Rows};
use crate::text::{block_reference, pool, pool_text};
use serde::Serialize;
use std::borrow::Cow;
use std::ops::Range;
use vramscope_snapshot::{Events as SnapshotEvents, StackId};
use vramscope_units::{Addr, Bytes, EventIndex};

/// `vramscope.events/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Events<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The device's ordinal.
    pub device: u32,
    /// The number of all events of the device.
    pub total: usize,
    /// The first event's time in microseconds since the Unix epoch; null without a clock.
    pub start_us: Option<i64>,
    /// The selected events in file order, at most `--limit`.
    pub events: Vec<EventRecord<'a>>,
    /// The number of selected events left out by `--limit`.
    pub omitted: usize,
    /// The call stacks of `events`, innermost frame first.
    pub stacks: StackTable<'a>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct EventRecord<'a> {
    /// The event's index in the device's trace, from 0.
    pub index: EventIndex,
    /// The recorded time in microseconds since the Unix epoch; null if it was not recorded.
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub time_us: Option<i64>,
    /// The action: `alloc`, `free_completed`, `segment_map` and others.
    pub action: Cow<'a, str>,
    /// The address: `0x...`; null for an event without one, such as an out-of-memory event.
    pub address: Option<Addr>,
    /// The recorded size in bytes: requested bytes for blocks, the reserved range for segments.
    pub size: Bytes,
    /// The stream's handle; 0 is the default stream.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub stream: i64,
    /// The memory pool: `[0, 0]` is the default pool; null if the event does not record it.
    #[cfg_attr(feature = "typescript", ts(type = "[number, number] | null"))]
    pub pool: Option<[u64; 2]>,
    /// The call site: the stack's innermost frame in the user's own code.
    pub site: String,
    /// The index of the call stack in the report's `stacks`.
    pub stack: u32,
    /// The text of `_annotate_tensor` of an `annotate` event, or the one that
    /// `_set_memory_metadata` had set at the event; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub user_metadata: Option<Cow<'a, str>>,
}

impl EventRecord<'_> {
    /// The record with an action of its own.
    pub fn into_owned(self) -> EventRecord<'static> {
        let Self {
            index,
            time_us,
            action,
            address,
            size,
            stream,
            pool,
            site,
            stack,
            user_metadata,
        } = self;
        let action = Cow::Owned(action.into_owned());
        let user_metadata = user_metadata.map(|text| Cow::Owned(text.into_owned()));
        EventRecord {
            index,
            time_us,
            action,
            address,
            size,
            stream,
            pool,
            site,
            stack,
            user_metadata,
        }
    }
}

/// Which events to report.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only events about memory that contains this address.
    pub address: Option<u64>,
    /// Only events with these indices.
    pub range: Option<Range<u32>>,
}

/// The events of a device that pass a filter, at most `limit`.
pub fn events<'a>(target: Target<'a>, filter: &EventFilter, limit: Option<usize>) -> Events<'a> {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    let (events, rows) = (&snapshot.events, &trace.device.events);
    let count = rows.len() as u32;
    let range = filter.range.clone().unwrap_or(0..count);
    // An event without a size still has its own address.
    let contains = |address: u64, row: u32| {
        let (start, size) = (events.addr(row).0, events.size(row).0.max(1));
        start != 0 && address.checked_sub(start).is_some_and(|offset| offset < size)
    };
    let is_selected = |&index: &u32| filter.address.is_none_or(|a| contains(a, rows.start + index));
    let mut stacks = StackTable::default();
    let mut record = |index: u32| {
        let stack = stacks.add(snapshot, events.stack(rows.start + index));
        event_record(target, index, stack)
    };
    let mut selected = (range.start.min(count)..range.end.min(count)).filter(is_selected);
    let shown: Vec<EventRecord<'_>> =
        selected.by_ref().take(limit.unwrap_or(usize::MAX)).map(&mut record).collect();
    let omitted = selected.count();
    Events {
        schema: "vramscope.events/1",
        path: target.path,
        device: target.device(),
        total: rows.len(),
        start_us: trace.clock.as_ref().map(|clock| clock.start.0),
        events: shown,
        omitted,
        stacks,
    }
}

/// The record of the event at `index` in the device's trace. `stack` is the index of its call stack
/// in the report.
pub fn event_record(target: Target<'_>, index: u32, stack: u32) -> EventRecord<'_> {
    let (snapshot, row) = (target.snapshot(), target.trace().device.events.start + index);
    let events = &snapshot.events;
    EventRecord {
        index: EventIndex(index),
        time_us: events.time(row).map(|time| time.0),
        action: snapshot.action_name(events.action(row)),
        address: Some(events.addr(row)).filter(|&address| address != Addr(0)),
        size: events.size(row),
        stream: snapshot.stream(events.stream(row)),
        pool: pool(snapshot, events.pool(row)),
        site: site(target.entry, events.stack(row)),
        stack,
        user_metadata: SnapshotEvents::sparse(&events.user_metadata, row)
            .map(|text| snapshot.text(text)),
    }
}

/// Rows of the table of events.
pub struct EventRows;

/// A row of the table of events.
pub struct EventRow<'a> {
    /// The device.
    pub target: Target<'a>,
    /// The event.
    pub record: EventRecord<'a>,
    /// The block that it allocates or frees; `None` if it does not, and in tables.
    pub block: Option<u32>,
}

impl Rows for EventRows {
    type Row<'a> = EventRow<'a>;
}

impl<'a> EventRow<'a> {
    /// The row of the event at `index`.
    pub fn new(target: Target<'a>, index: u32, block: Option<u32>) -> Self {
        // Tables name call stacks by the snapshot's own index.
        let events = &target.snapshot().events;
        let stack = events.stack(target.trace().device.events.start + index).0;
        Self { target, record: event_record(target, index, stack), block }
    }

    fn stack(&self) -> Option<u32> {
        stack(StackId(self.record.stack))
    }
}

/// The columns of the table of events, in order.
pub fn columns() -> Vec<Column<EventRows>> {
    type Of = Column<EventRows>;
    vec![
        Of::new("event", "Event, from 0", |row| row.record.index.0),
        Of::new("time_us", "Time, never before that of an earlier event", |row| {
            time_of(row.target.trace(), row.record.index.0 + 1)
        })
        .only_in_csv(),
        Of::new("time_us", "Time as recorded", |row| row.record.time_us).not_in_csv(),
        Of::text("action", "Action", |row| row.record.action.as_ref().into()),
        Of::new("address", "Address; null if there is none", |row| row.record.address),
        Of::new("size_bytes", "Size: requested bytes for blocks, all for segments", |row| {
            row.record.size
        })
        .named_in_csv("bytes"),
        Of::new("requested_bytes", "Requested bytes in total after the event", |row| {
            row.target.trace().requested.at(row.record.index.0 + 1)
        })
        .only_in_csv(),
        Of::new("stream", "Stream; 0 is the default stream", |row| row.record.stream),
        Of::maybe_text("pool", "Memory pool; `(0, 0)` is the default pool", |row| {
            row.record.pool.map(|pool| pool_text(pool).into())
        })
        .not_in_csv(),
        Of::maybe_text("block", "Id of the event's block", |row| {
            let trace = row.target.trace();
            row.block.map(|block| block_reference(trace, &trace.blocks[block as usize]).into())
        })
        .only_in_csv(),
        Of::text("site", "Call site with its line", |row| row.record.site.as_str().into()),
        Of::new("stack", "Call stack; null if there is none", |row: &EventRow<'_>| row.stack())
            .not_in_csv(),
    ]
}
