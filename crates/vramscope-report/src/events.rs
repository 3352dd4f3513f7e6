//! `vramscope events`: the events of a device's trace, as they were recorded.

use super::{StackTable, Target, site};
use crate::text::pool;
use serde::Serialize;
use std::ops::Range;

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
    pub events: Vec<EventRecord>,
    /// The number of selected events left out by `--limit`.
    pub omitted: usize,
    /// The call stacks of `events`, innermost frame first.
    pub stacks: StackTable<'a>,
}

/// An event.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventRecord {
    /// The event's index in the device's trace, from 0.
    pub index: u32,
    /// The recorded time in microseconds since the Unix epoch; null if it was not recorded.
    pub time_us: Option<i64>,
    /// The action: `alloc`, `free_completed`, `segment_map` and others.
    pub action: String,
    /// The address: `0x...`; null for an event without one, such as an out-of-memory event.
    pub address: Option<String>,
    /// The recorded size in bytes: requested bytes for blocks, the reserved range for segments.
    pub size: u64,
    /// The stream's handle; 0 is the default stream.
    pub stream: i64,
    /// The memory pool: `[0, 0]` is the default pool; null if the event does not record it.
    pub pool: Option<[u64; 2]>,
    /// The call site: the stack's innermost frame in the user's own code.
    pub site: String,
    /// The index of the call stack in the report's `stacks`.
    pub stack: u32,
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
    let shown: Vec<EventRecord> =
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
pub fn event_record(target: Target<'_>, index: u32, stack: u32) -> EventRecord {
    let (snapshot, row) = (target.snapshot(), target.trace().device.events.start + index);
    let events = &snapshot.events;
    let address = events.addr(row);
    EventRecord {
        index,
        time_us: events.time(row).map(|time| time.0),
        action: snapshot.action_name(events.action(row)).into_owned(),
        address: (address.0 != 0).then(|| address.plain()),
        size: events.size(row).0,
        stream: snapshot.stream(events.stream(row)),
        pool: pool(snapshot, events.pool(row)),
        site: site(target.entry, events.stack(row)),
        stack,
    }
}
