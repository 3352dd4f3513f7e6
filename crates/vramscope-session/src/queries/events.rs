//! The trace as a list.

use super::lru_cache::LruCache;
use super::picked::Picked;
use super::search::{Matcher, part_of};
use super::target as target_of;
use crate::scheduler::SLICE;
use std::ops::Range;
use std::sync::Arc;
use vramscope_analysis::slicing::{Budget, run_to_completion, strides};
use vramscope_layout::site_color;
use vramscope_protocol::views::{EventFilter, EventPage, EventRow};
use vramscope_protocol::{DetailRow, DeviceRef};
use vramscope_report::LoadedFile;
use vramscope_report::Target;
use vramscope_report::{Quantity, text};
use vramscope_snapshot::StackId;
use vramscope_units::{Bytes, EventIndex, Micros, grouped};

/// The most rows of a page of a table.
pub(super) const PAGE: u32 = 500;

/// What is kept so that scrolling costs nothing.
pub(crate) struct Cache {
    found: LruCache<(DeviceRef, EventFilter), Found>,
    subjects: LruCache<DeviceRef, Vec<u32>>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { found: LruCache::new(1), subjects: LruCache::new(1) }
    }
}

/// The events that a filter leaves.
pub(super) struct Found {
    /// In order; `None` for all of them.
    list: Option<Picked>,
    total: u32,
    /// Why there are none, when the search cannot be understood.
    unclear: Option<String>,
}

impl Found {
    pub(super) async fn sliced(at: Target<'_>, filter: &EventFilter, budget: &mut Budget) -> Self {
        let total = at.trace().device.events.len() as u32;
        let of = |list: Picked, unclear| Self { total: list.len(), list: Some(list), unclear };
        let matcher = match Matcher::of_table(at, &filter.text, budget).await {
            Ok(None) if filter.actions.is_empty() => {
                return Self { list: None, total, unclear: None };
            }
            Ok(matcher) => matcher,
            Err(unclear) => return of(Picked::default(), Some(unclear)),
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
        let mut list = Picked::default();
        for part in strides(total as usize) {
            budget.charge(2 * part.len() as u64).await;
            part.map(|event| event as u32).filter(is_wanted).for_each(|event| list.push(event));
        }
        of(list, None)
    }

    /// The events in some rows.
    pub(super) fn rows(&self, rows: Range<u32>) -> impl Iterator<Item = u32> {
        let end = rows.end.min(self.total);
        let rows = rows.start.min(end)..end;
        let mut left = self.list.as_ref().map(|list| list.range(rows.clone()));
        // Where no filter is, a row is an event.
        rows.map(move |row| left.as_mut().and_then(Iterator::next).unwrap_or(row))
    }

    /// How many there are.
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    /// The last row at or before an event.
    fn row_near(&self, event: u32) -> Option<u32> {
        let before = match &self.list {
            Some(list) => list.up_to(event),
            None => event.saturating_add(1).min(self.total),
        };
        before.checked_sub(1)
    }
}

async fn found(file: Arc<LoadedFile>, (target, filter): (DeviceRef, EventFilter)) -> Option<Found> {
    Some(Found::sliced(target_of(&file, target)?, &filter, &mut Budget::of(SLICE)).await)
}

async fn subjects_of(file: Arc<LoadedFile>, target: DeviceRef) -> Option<Vec<u32>> {
    Some(subjects(target_of(&file, target)?, &mut Budget::of(SLICE)).await)
}

impl Cache {
    /// Whether the rows that a filter leaves are there; if not, makes a slice of them.
    pub(crate) fn is_ready(
        &mut self,
        file: &Arc<LoadedFile>,
        target: DeviceRef,
        filter: &EventFilter,
    ) -> bool {
        let wanted = (target, filter.clone());
        self.found.is_ready(&wanted, || found(file.clone(), wanted.clone()))
            && self.subjects.is_ready(&target, || subjects_of(file.clone(), target))
    }

    pub(crate) fn page(
        &mut self,
        at: Target<'_>,
        target: DeviceRef,
        filter: &EventFilter,
        rows: Range<u32>,
        near: Option<u32>,
    ) -> EventPage {
        let endless = &mut Budget::unlimited();
        let found = self.found.get(&(target, filter.clone()), || {
            run_to_completion(Found::sliced(at, filter, endless))
        });
        let subjects = self.subjects.get(&target, || run_to_completion(subjects(at, endless)));
        let trace = at.trace();
        let from = rows.start.min(found.total);
        let until = rows.end.min(from.saturating_add(PAGE));
        let all = part_of(found.total as usize, trace.device.events.len(), "event", "events");
        EventPage {
            total: found.total,
            text: found.unclear.clone().unwrap_or(all),
            from,
            rows: found.rows(from..until).map(|event| row(at, subjects, event)).collect(),
            at: near.and_then(|event| found.row_near(event)),
            actions: actions(at),
        }
    }
}

/// Stands for an event that is about no block.
const NONE: u32 = u32::MAX;

/// The block that each event allocates or frees.
pub(super) async fn subjects(at: Target<'_>, budget: &mut Budget) -> Vec<u32> {
    let trace = at.trace();
    let mut subjects = Vec::with_capacity(trace.device.events.len());
    for part in strides(trace.device.events.len()) {
        budget.charge(part.len() as u64).await;
        subjects.resize(part.end, NONE);
    }
    for part in strides(trace.blocks.len()) {
        budget.charge(3 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            for event in [block.alloc_event(), block.free_requested(), block.free_completed()]
                .into_iter()
                .flatten()
            {
                subjects[event.0 as usize] = i;
            }
        }
    }
    subjects
}

/// The block of an event, from [`subjects`].
pub(super) fn subject(subjects: &[u32], event: u32) -> Option<u32> {
    subjects.get(event as usize).copied().filter(|&block| block != NONE)
}

fn actions(at: Target<'_>) -> Vec<DetailRow> {
    let row = |&(action, count): &(_, u32)| {
        let name = at.snapshot().action_name(action).into_owned();
        DetailRow {
            key: name.clone(),
            label: name,
            text: grouped(count.into()),
            raw: Some(count.to_string()),
        }
    };
    at.trace().actions.iter().map(row).collect()
}

/// The call site that names a stack.
pub(super) fn site(at: Target<'_>, stack: StackId) -> String {
    text::site_label(at.snapshot(), at.entry.sites.get(stack).frame)
}

fn row(at: Target<'_>, subjects: &[u32], event: u32) -> EventRow {
    let (trace, events) = (at.trace(), &at.snapshot().events);
    let row = trace.device.events.start + event;
    let block = subject(subjects, event);
    let address = match block {
        Some(block) => text::block_address(&trace.blocks[block as usize]),
        None if events.addr(row).0 == 0 => String::new(),
        None => events.addr(row).to_string(),
    };
    let time = trace.clock.as_ref().map(|clock| format!("+{}", Micros(clock.offset(event) as i64)));
    EventRow {
        event,
        label: EventIndex(event).to_string(),
        time: time.unwrap_or_default(),
        action: at.snapshot().action_name(events.action(row)).into_owned(),
        bytes: Quantity::bytes(events.size(row)),
        address,
        live: Quantity::bytes(Bytes(trace.requested.at(event + 1))),
        site: site(at, events.stack(row)),
        color: site_color(&at.entry.sites, events.stack(row)).word(),
        block,
    }
}
