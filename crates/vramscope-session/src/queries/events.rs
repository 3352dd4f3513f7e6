//! The events of a trace as a table.

use super::lru_cache::LruCache;
use super::ranked_bitmap::RankedBitmap;
use super::subject::Subject;
use crate::messages::views::{EventFilter, EventPage, EventRow, EventView};
use crate::messages::{DetailRow, DeviceRef};
use crate::scheduler::SLICE;
use std::ops::Range;
use vramscope_layout::site_color;
use vramscope_report::events::event_record;
use vramscope_report::search::{Matcher, count_of_total};
use vramscope_report::{Target, row_site, text};
use vramscope_snapshot::StackId;
use vramscope_trace::NoStack;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::{Bytes, EventIndex, Micros, grouped};

/// The maximum number of rows on a page of a table.
pub(super) const MAX_PAGE_ROWS: u32 = 500;

/// Caches the last filter and the blocks of events, so that scrolling needs no pass over the trace.
pub(crate) struct Cache {
    filtered: LruCache<(DeviceRef, EventFilter), FilteredEvents>,
    blocks: LruCache<DeviceRef, EventBlocks>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { filtered: LruCache::new(1), blocks: LruCache::new(1) }
    }
}

/// The events that pass a filter.
pub(super) struct FilteredEvents {
    /// The event indices; `None` for all events.
    events: Option<RankedBitmap>,
    total: u32,
    /// The message when the search cannot be parsed.
    error: Option<String>,
}

impl FilteredEvents {
    /// Applies a filter.
    pub(super) async fn new(at: Target<'_>, filter: &EventFilter, budget: &mut Budget) -> Self {
        let total = at.trace().device.events.len() as u32;
        let only =
            |events: RankedBitmap, error| Self { total: events.len(), events: Some(events), error };
        let matcher = match Matcher::of_events(at, &filter.text, budget).await {
            Ok(None) if filter.actions.is_empty() => {
                return Self { events: None, total, error: None };
            }
            Ok(matcher) => matcher,
            Err(error) => return only(RankedBitmap::default(), Some(error)),
        };
        let snapshot = at.snapshot();
        let mut wanted = [filter.actions.is_empty(); 256];
        for &(action, _) in &at.trace().actions {
            wanted[usize::from(action.0)] |=
                filter.actions.iter().any(|name| *name == snapshot.action_name(action));
        }
        let start = at.trace().device.events.start;
        let is_wanted = |&event: &u32| {
            wanted[usize::from(snapshot.events.action(start + event).0)]
                && matcher.as_ref().is_none_or(|m| m.event(at, event))
        };
        let mut events = RankedBitmap::default();
        for part in strides(total as usize) {
            budget.charge(2 * part.len() as u64).await;
            part.map(|event| event as u32).filter(is_wanted).for_each(|event| events.push(event));
        }
        only(events, None)
    }

    /// The events in these rows, clamped to the total.
    pub(super) fn rows(&self, rows: Range<u32>) -> impl Iterator<Item = u32> {
        let end = rows.end.min(self.total);
        let rows = rows.start.min(end)..end;
        let mut events = self.events.as_ref().map(|events| events.range(rows.clone()));
        // Without a filter, a row number is an event index.
        rows.map(move |row| events.as_mut().and_then(Iterator::next).unwrap_or(row))
    }

    /// The number of events.
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// The last row at or before an event.
    fn row_near(&self, event: u32) -> Option<u32> {
        let rows = match &self.events {
            Some(events) => events.count_up_to(event),
            None => event.saturating_add(1).min(self.total),
        };
        rows.checked_sub(1)
    }
}

async fn filtered(on: Subject, (_, filter): (DeviceRef, EventFilter)) -> FilteredEvents {
    FilteredEvents::new(on.at(), &filter, &mut Budget::of(SLICE)).await
}

async fn event_blocks(on: Subject) -> EventBlocks {
    EventBlocks::new(on.at(), &mut Budget::of(SLICE)).await
}

impl Cache {
    /// A page of at most [`MAX_PAGE_ROWS`] rows, and the row near an event. Runs a slice of
    /// filtering; `None` until that is done.
    pub(crate) fn page(
        &mut self,
        on: &Subject,
        filter: EventFilter,
        rows: Range<u32>,
        near: Option<u32>,
    ) -> Option<EventPage> {
        let at = on.at();
        let filtered = self.filtered.poll((on.device, filter), |key| filtered(on.clone(), key))?;
        let blocks = self.blocks.poll(on.device, |_| event_blocks(on.clone()))?;
        let from = rows.start.min(filtered.total);
        let until = rows.end.min(from.saturating_add(MAX_PAGE_ROWS));
        let all = at.trace().device.events.len();
        let text = match &filtered.error {
            Some(error) => error.clone(),
            None => count_of_total(filtered.total as usize, all, "event", "events"),
        };
        Some(EventPage {
            total: filtered.total,
            text,
            from,
            rows: filtered.rows(from..until).map(|event| row(at, blocks, event)).collect(),
            at: near.and_then(|event| filtered.row_near(event)),
            actions: actions(at),
        })
    }
}

/// Marks an event that is not about a block.
const NO_BLOCK: u32 = u32::MAX;

/// The block that each event allocates or frees, by event.
pub(super) struct EventBlocks(Vec<u32>);

impl EventBlocks {
    /// Finds the blocks of all events of a trace.
    pub(super) async fn new(at: Target<'_>, budget: &mut Budget) -> Self {
        let trace = at.trace();
        let mut of_event = Vec::with_capacity(trace.device.events.len());
        for part in strides(trace.device.events.len()) {
            budget.charge(part.len() as u64).await;
            of_event.resize(part.end, NO_BLOCK);
        }
        for part in strides(trace.blocks.len()) {
            budget.charge(3 * part.len() as u64).await;
            for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
                for event in [block.alloc_event(), block.free_requested(), block.free_completed()]
                    .into_iter()
                    .flatten()
                {
                    of_event[event.0 as usize] = i;
                }
            }
        }
        Self(of_event)
    }

    /// The block of an event.
    pub(super) fn get(&self, event: u32) -> Option<u32> {
        self.0.get(event as usize).copied().filter(|&block| block != NO_BLOCK)
    }
}

/// All actions of the trace with their counts, for the filter menu.
fn actions(at: Target<'_>) -> Vec<DetailRow> {
    let row = |&(action, count): &(_, u32)| {
        let name = at.snapshot().action_name(action).into_owned();
        DetailRow::new(name.clone(), name, grouped(count.into()), Some(count.to_string()))
    };
    at.trace().actions.iter().map(row).collect()
}

/// The label of an event's call site. An alloc without a stack has the reason of its block.
fn site(at: Target<'_>, event: u32, block: Option<u32>) -> String {
    let (trace, events) = (at.trace(), &at.snapshot().events);
    let stack = events.stack(trace.device.events.start + event);
    let block = block.map(|block| &trace.blocks[block as usize]);
    let of_alloc = block.filter(|block| block.alloc_event() == Some(EventIndex(event)));
    let reason = of_alloc.and_then(|block| trace.no_stack(block));
    let unknown = (stack == StackId::EMPTY).then_some(NoStack::NotRecorded);
    row_site(at.entry, stack, reason.or(unknown))
}

fn row(at: Target<'_>, blocks: &EventBlocks, event: u32) -> EventRow {
    let (trace, events) = (at.trace(), &at.snapshot().events);
    let row = trace.device.events.start + event;
    let block = blocks.get(event);
    let place = match block {
        Some(block) => text::short_block_address(&trace.blocks[block as usize]),
        None if events.addr(row).0 == 0 => String::new(),
        None => events.addr(row).to_string(),
    };
    let time = trace.clock.as_ref().map(|clock| format!("+{}", Micros(clock.offset(event) as i64)));
    let view = EventView {
        time: time.unwrap_or_default(),
        place,
        live: Bytes(trace.requested.at(event + 1)),
        label: site(at, event, block),
        color: site_color(&at.entry.sites, events.stack(row)).word(),
        block,
    };
    EventRow { record: event_record(at, event, events.stack(row).0).into_owned(), view }
}
