//! The state after an event: live and reserved memory, and markers of events.

use super::block_detail as detail;
use super::disambiguate;
use super::shares::{category_label, category_row, fraction};
use crate::messages::views::{Marker, StackShareRow, StateAt};
use crate::messages::{AxisKind, DetailRow};
use std::cmp::Reverse;
use vramscope_inference::Category;
use vramscope_layout::{Axis, Color};
use vramscope_report::backward::{self, BackwardShare};
use vramscope_report::shapes::BlockShapes;
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, by_category, event_of, row_site, slot_after};
use vramscope_snapshot::Action;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Trace, sort};
use vramscope_units::{Bytes, EventIndex};

/// Call stacks in the list.
const MAX_STACKS: usize = 12;

/// The state after an event; -1 is the state before the window.
pub(crate) async fn state_at(at: Target<'_>, event: i64, budget: &mut Budget) -> StateAt {
    let trace = at.trace();
    let (carving, categories) = (at.entry.carving(at.index), at.entry.categories(at.index));
    let slot = slot_after(trace, event);
    let live = live_blocks(trace, slot, budget).await;
    let event = slot.checked_sub(1).map(EventIndex);
    let requested = trace.requested.at(slot);
    let (active, allocated) = (carving.active.at(slot), carving.allocated.at(slot));
    let reserved =
        carving.segments.spans.iter().filter(|s| s.is_reserved_at(slot)).map(|s| s.size.0).sum();
    let mut bands = vec![
        band("requested_bytes", "requested", requested as i64),
        band("active_bytes", "active", active as i64),
        band("allocated_bytes", "allocated", allocated as i64),
        band("reserved_bytes", "reserved", reserved as i64),
        band("rounding_waste", "rounding", (active as i64).wrapping_sub(requested as i64)),
        band("cached_free", "reserved, free", (reserved as i64).wrapping_sub(active as i64)),
    ];
    if let Some(pools) = at.entry.pools(at.index) {
        bands.push(band("private_pools", "private pools", pools.size.at(slot) as i64));
    }
    let stacks = stack_rows(at, &live, MAX_STACKS, budget).await;
    let block = match event {
        Some(event) => block_of(trace, event, budget).await,
        None => None,
    };
    let shares = by_category(
        live.iter().map(|&i| (categories.get(i).category, trace.blocks[i as usize].bytes.0)),
    );
    let categories: Vec<_> =
        shares.iter().map(|s| category_row(s.category, s.bytes.0, requested)).collect();
    let blocks = Quantity::count(live.len() as u64, "block", "blocks");
    let Marker { event: after, spans, label } = marker(trace, slot);
    let largest = categories
        .first()
        .map(|c| format!("; largest category: {}, {}", c.label, c.bytes.text))
        .unwrap_or_default();
    let spoken = format!(
        "{}: {} requested in {}, {} reserved{largest}.",
        event.map_or_else(|| "Before the window".to_owned(), |_| format!("After event {label}")),
        Bytes(requested),
        blocks.exact,
        Bytes(reserved),
    );
    StateAt {
        event: after,
        spans,
        label,
        action: event.map_or_else(|| "before the window".to_owned(), |event| action(at, event)),
        block,
        bands,
        blocks,
        categories,
        stacks,
        spoken,
    }
}

/// The markers of these events. Events outside the trace have none.
pub(super) fn markers(trace: &Trace, events: &[i64]) -> Vec<Marker> {
    let slots = events.iter().filter_map(|event| u32::try_from(event.checked_add(1)?).ok());
    slots.filter(|&slot| slot < trace.slots()).map(|slot| marker(trace, slot)).collect()
}

/// The position and label of a slot.
fn marker(trace: &Trace, slot: u32) -> Marker {
    let event = slot.checked_sub(1).map(EventIndex);
    Marker {
        event: event_of(slot),
        spans: detail::spans(trace, slot, slot + 1),
        label: event
            .map_or_else(|| "before the window".to_owned(), |event| text::event(trace, event)),
    }
}

fn band(key: &str, label: &str, bytes: i64) -> DetailRow {
    let bytes = Quantity::signed_bytes(bytes);
    DetailRow::new(key, label, bytes.text, Some(bytes.value.to_string()))
}

/// The event at a slot of an axis, clamped to the trace; -1 is the state before the window.
pub(crate) fn event_at(trace: &Trace, axis: AxisKind, slot: f64) -> i64 {
    // `max` maps NaN and places before the axis to its start.
    event_of(Axis::new(trace, axis).map_or(0, |axis| axis.state_at(slot.max(0.0) as u64)))
}

/// An event's action and size: `alloc 2.00 MiB`. Actions without a size show their name only.
fn action(at: Target<'_>, event: EventIndex) -> String {
    let events = &at.snapshot().events;
    let row = at.trace().device.events.start + event.0;
    let (action, size) = (events.action(row), events.size(row));
    let name = at.snapshot().action_name(action);
    if size.0 == 0 && action > Action::OOM { name.into_owned() } else { format!("{name} {size}") }
}

/// The block that an event allocates, requests to free, or frees.
async fn block_of(trace: &Trace, event: EventIndex, budget: &mut Budget) -> Option<u32> {
    let entered = trace.blocks.partition_point(|b| b.enters <= event.0 + 1);
    let has_event = |b: &vramscope_trace::Block| {
        b.alloc_event() == Some(event)
            || b.free_requested() == Some(event)
            || b.free_completed() == Some(event)
    };
    for part in strides(entered) {
        budget.charge(part.len() as u64).await;
        if let Some(at) = trace.blocks[part.clone()].iter().position(has_event) {
            return Some((part.start + at) as u32);
        }
    }
    None
}

/// The blocks that are live in a slot, in stack order.
pub(super) async fn live_blocks(trace: &Trace, slot: u32, budget: &mut Budget) -> Vec<u32> {
    // Blocks are sorted by the slot at which they enter.
    let entered = trace.blocks.partition_point(|b| b.enters <= slot);
    let mut live = Vec::new();
    for part in strides(entered) {
        budget.charge(part.len() as u64).await;
        let blocks = (part.start as u32..).zip(&trace.blocks[part]);
        live.extend(blocks.filter(|(_, b)| slot < b.leaves).map(|(i, _)| i));
    }
    live
}

/// Requested bytes of blocks by call stack, the largest first, at most `max` rows.
pub(super) async fn stack_rows(
    at: Target<'_>,
    blocks: &[u32],
    max: usize,
    budget: &mut Budget,
) -> Vec<StackShareRow> {
    let (trace, entry) = (at.trace(), at.entry);
    let categories = entry.categories(at.index);
    let of = |i: u32| &trace.blocks[i as usize];
    let stack = |i: u32| entry.sites.same_line(of(i).stack);
    let key = |i: u32| (stack(i), of(i).has_stack_of_free(), trace.no_stack(of(i)));
    let sum = |blocks: &[u32]| blocks.iter().map(|&i| of(i).bytes.0).sum::<u64>();
    // Zero-sized requests hold no memory.
    let holding = blocks.iter().filter(|&&i| of(i).bytes.0 > 0);
    let mut blocks: Vec<_> = holding.map(|&i| (key(i), i)).collect();
    budget.charge(4 * blocks.len() as u64).await;
    sort(&mut blocks, budget).await;
    let blocks: Vec<u32> = blocks.into_iter().map(|(_, i)| i).collect();
    budget.charge(4 * blocks.len() as u64).await;
    let whole = sum(&blocks);
    let mut groups: Vec<(u64, &[u32])> =
        blocks.chunk_by(|&a, &b| key(a) == key(b)).map(|group| (sum(group), group)).collect();
    groups.sort_by_key(|&(bytes, group)| (Reverse(bytes), key(group[0])));
    groups.truncate(max);
    // Stacks of backward's threads have a node, and its line in the forward pass.
    let of_backward: Vec<(usize, u32, u64)> = (0..)
        .zip(&groups)
        .filter(|(_, (_, group))| entry.sites.is_compiled_only(stack(group[0])))
        .flat_map(|(row, (_, group))| group.iter().map(move |&i| (row, i, of(i).bytes.0)))
        .collect();
    let places = backward::shares(at, &of_backward, groups.len(), budget).await;
    let mut shapes = BlockShapes::new(at);
    let row = |(&(bytes, group), places): (&(u64, &[u32]), &Vec<BackwardShare>)| {
        let (stack, is_of_free, no_stack) = key(group[0]);
        let mut sums = [0u64; Category::ALL.len()];
        let mut largest = group[0];
        for &i in group {
            sums[categories.get(i).category as usize] += of(i).bytes.0;
            if of(i).bytes > of(largest).bytes {
                largest = i;
            }
        }
        let mut found = Category::ALL.iter().filter(|&&c| sums[c as usize] > 0);
        let (category, color) = match (found.next(), found.next()) {
            (Some(&only), None) => (category_label(only), Color::category(only as u8)),
            (Some(_), Some(_)) => ("mixed", Color::OTHER),
            (None, _) => {
                let only = categories.get(largest).category;
                (category_label(only), Color::category(only as u8))
            }
        };
        let site = row_site(entry, stack, no_stack);
        StackShareRow {
            terms: vec![format!("site:{site}")],
            site: backward::row_label(site, no_stack, places),
            via: String::new(),
            bytes: Quantity::bytes(Bytes(bytes)),
            blocks: Quantity::count(group.len() as u64, "block", "blocks"),
            shape: shapes
                .of_all(group.iter().copied())
                .map_or_else(String::new, |shape| shape.words()),
            share: fraction(bytes, whole),
            color: color.word(),
            block: largest,
            note: if is_of_free {
                format!("{category}, stack of the free")
            } else {
                category.to_owned()
            },
        }
    };
    let mut rows: Vec<_> = groups.iter().zip(&places).map(row).collect();
    let stacks: Vec<_> = groups.iter().map(|(_, group)| key(group[0]).0).collect();
    disambiguate::add_vias(&entry.snapshot, &mut rows, &stacks);
    rows
}
