//! Segments given back to the driver and reserved again. Both cost a call that waits for the
//! device.
//!
//! The allocator gives cached segments back when the driver refuses a new one, or when
//! `garbage_collection_threshold` is passed, and asks again at once
//! (`DeviceCachingAllocator::malloc` in `c10/cuda/CUDACachingAllocator.cpp`); a program gives them
//! back by `torch.cuda.empty_cache()`.

use super::{Context, Facts, Finding};
use crate::slicing::{Budget, STRIDE};
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Action, StackId};
use vramscope_units::Bytes;

/// One segment of the large pool: less than this is not worth a line.
pub(super) const LEAST: u64 = 20 << 20;

/// What one side, the allocator or the program, gave back.
#[derive(Default)]
pub(super) struct Side {
    /// Events that give back.
    pub(super) events: Vec<u32>,
    /// Runs of them.
    bursts: usize,
    bytes: u64,
    /// Events that reserve the same sizes again, and the bytes.
    again: Vec<u32>,
    pub(super) again_bytes: u64,
    /// The stack of the first burst.
    stack: StackId,
}

/// Everything given back in the window.
#[derive(Default)]
pub(super) struct GivenBack {
    /// By the allocator, to make room.
    pub(super) to_make_room: Side,
    /// By the program, or when a pool ended.
    on_request: Side,
}

/// What lies with the driver: segments by size, and bytes of expandable segments, whose ranges have
/// any size.
#[derive(Default)]
struct Given {
    segments: FxHashMap<u64, u32>,
    mapped: u64,
}

impl Side {
    /// Whether it is worth a line.
    pub(super) fn is_worth_a_line(&self) -> bool {
        self.again_bytes >= LEAST
    }
}

impl GivenBack {
    /// Walk over the trace once.
    pub(super) async fn find(cx: &Context<'_>, budget: &mut Budget) -> Self {
        let (events, rows) = (&cx.snapshot.events, &cx.trace.device.events);
        let gives =
            |row: u32| matches!(events.action(row), Action::SEGMENT_FREE | Action::SEGMENT_UNMAP);
        let mut sides = [Side::default(), Side::default()];
        let mut given = [Given::default(), Given::default()];
        let mut row = rows.start;
        while row < rows.end {
            if !gives(row) {
                // Most events are neither.
                let until = rows.end.min(row + STRIDE as u32);
                let from = row;
                while row < until && !gives(row) {
                    reserve_again(cx, row, &mut sides, &mut given);
                    row += 1;
                }
                budget.charge(u64::from(row - from)).await;
                continue;
            }
            let end = (row..rows.end).find(|&next| !gives(next)).unwrap_or(rows.end);
            let side = usize::from(!makes_room(cx, row, end));
            let (to, given) = (&mut sides[side], &mut given[side]);
            if to.bursts == 0 {
                to.stack = events.stack(row);
            }
            to.bursts += 1;
            for row in row..end {
                let bytes = events.size(row).0;
                to.events.push(row - rows.start);
                to.bytes += bytes;
                match events.action(row) {
                    Action::SEGMENT_FREE => *given.segments.entry(bytes).or_default() += 1,
                    _ => given.mapped += bytes,
                }
            }
            budget.charge(4 * u64::from(end - row)).await;
            row = end;
        }
        let [to_make_room, on_request] = sides;
        Self { to_make_room, on_request }
    }
}

/// Whether a burst is the allocator's own: the call that frees segments asks the driver again at
/// once, and all that one call does has one stack. Where no stacks are recorded, the order alone
/// must do.
fn makes_room(cx: &Context, row: u32, end: u32) -> bool {
    let events = &cx.snapshot.events;
    let asks = end < cx.trace.device.events.end
        && matches!(events.action(end), Action::SEGMENT_ALLOC | Action::SEGMENT_MAP | Action::OOM);
    asks && events.stack(end - 1) == events.stack(end)
        && !cx
            .snapshot
            .stack(events.stack(row))
            .any(|f| cx.snapshot.text(f.name).contains("empty_cache"))
}

fn reserve_again(cx: &Context, row: u32, sides: &mut [Side; 2], given: &mut [Given; 2]) {
    let events = &cx.snapshot.events;
    let size = events.size(row).0;
    for (side, given) in sides.iter_mut().zip(given) {
        let bytes = match events.action(row) {
            Action::SEGMENT_ALLOC => {
                match given.segments.get_mut(&size).filter(|count| **count > 0) {
                    Some(count) => {
                        *count -= 1;
                        size
                    }
                    None => 0,
                }
            }
            Action::SEGMENT_MAP => size.min(given.mapped),
            _ => 0,
        };
        if bytes > 0 {
            if events.action(row) == Action::SEGMENT_MAP {
                given.mapped -= bytes;
            }
            side.again.push(row - cx.trace.device.events.start);
            side.again_bytes += bytes;
            return;
        }
    }
}

pub(super) fn retries(cx: &Context, given: &GivenBack) -> Vec<Finding> {
    let mut found = Vec::new();
    if given.to_make_room.is_worth_a_line() {
        found.push(finding(cx, &given.to_make_room, true));
    }
    // One return between two phases of a program is the purpose of empty_cache.
    if given.on_request.is_worth_a_line() && given.on_request.bursts >= 2 {
        found.push(finding(cx, &given.on_request, false));
    }
    found
}

fn finding(cx: &Context, side: &Side, by_allocator: bool) -> Finding {
    let facts = Facts::Retry {
        by_allocator,
        returned: Bytes(side.bytes),
        segments: side.events.len(),
        bursts: side.bursts,
        reserved_again: Bytes(side.again_bytes),
    };
    let what = if by_allocator { "make-room" } else { "on-request" };
    let events = [side.events.as_slice(), &side.again].concat();
    let stack = (side.stack != StackId::EMPTY).then_some(side.stack);
    cx.finding(what, side.again_bytes, events, stack, facts)
}
