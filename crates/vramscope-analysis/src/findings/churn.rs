//! Segments returned to the driver and reserved again. Each of the two is a driver call that waits
//! for the device.
//!
//! The allocator returns cached segments when the driver refuses a new one, or when use exceeds
//! `garbage_collection_threshold`. It then asks the driver again at once
//! (`DeviceCachingAllocator::malloc` in `c10/cuda/CUDACachingAllocator.cpp`). A program returns
//! cached segments with `torch.cuda.empty_cache()`.

use super::{Evidence, Facts, Finding, Part};
use crate::slicing::{Budget, STRIDE};
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Action, StackId};
use vramscope_units::Bytes;

/// The fewest bytes reserved again to report: one segment of the large pool (`kLargeBuffer`).
pub(super) const MIN_BYTES: u64 = 20 << 20;

/// Memory returned to the driver for one cause.
#[derive(Default)]
pub(super) struct Returned {
    /// Events that return memory.
    pub(super) events: Vec<u32>,
    /// Runs of consecutive such events.
    bursts: usize,
    /// Bytes returned.
    bytes: u64,
    /// Events that reserve the returned sizes again.
    again: Vec<u32>,
    /// Bytes reserved again.
    pub(super) again_bytes: u64,
    /// The call stack of the first burst.
    stack: StackId,
}

/// All memory returned in the window, by cause.
#[derive(Default)]
pub(super) struct ReturnedByCause {
    /// Returned by the allocator, to make room.
    pub(super) to_make_room: Returned,
    /// Returned by the program, or when a pool ended.
    on_request: Returned,
}

/// Returned memory that was not yet reserved again.
#[derive(Default)]
struct Outstanding {
    /// The number of segments of each size.
    segments: FxHashMap<u64, u32>,
    /// Bytes of expandable segments. Their mapped ranges have any size.
    mapped: u64,
}

impl Returned {
    /// Whether enough was reserved again to report it.
    pub(super) fn is_reportable(&self) -> bool {
        self.again_bytes >= MIN_BYTES
    }
}

impl ReturnedByCause {
    /// Collects returns and new reservations in one pass over the trace.
    pub(super) async fn find(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        let (events, rows) = (&cx.snapshot.events, &cx.trace.device.events);
        let returns =
            |row: u32| matches!(events.action(row), Action::SEGMENT_FREE | Action::SEGMENT_UNMAP);
        let mut causes = [Returned::default(), Returned::default()];
        let mut outstanding = [Outstanding::default(), Outstanding::default()];
        let mut row = rows.start;
        while row < rows.end {
            if !returns(row) {
                // Most events neither return nor reserve.
                let until = rows.end.min(row + STRIDE as u32);
                let from = row;
                while row < until && !returns(row) {
                    reserve_again(cx, row, &mut causes, &mut outstanding);
                    row += 1;
                }
                budget.charge(u64::from(row - from)).await;
                continue;
            }
            let end = (row..rows.end).find(|&next| !returns(next)).unwrap_or(rows.end);
            let cause = usize::from(!makes_room(cx, row, end));
            let (returned, outstanding) = (&mut causes[cause], &mut outstanding[cause]);
            if returned.bursts == 0 {
                returned.stack = events.stack(row);
            }
            returned.bursts += 1;
            for row in row..end {
                let bytes = events.size(row).0;
                returned.events.push(row - rows.start);
                returned.bytes += bytes;
                match events.action(row) {
                    Action::SEGMENT_FREE => *outstanding.segments.entry(bytes).or_default() += 1,
                    _ => outstanding.mapped += bytes,
                }
            }
            budget.charge(4 * u64::from(end - row)).await;
            row = end;
        }
        let [to_make_room, on_request] = causes;
        Self { to_make_room, on_request }
    }
}

/// Whether the allocator itself returned a burst, to make room.
///
/// Such a call asks the driver again at once, and all events of one call have one stack. Without
/// recorded stacks only the order of events decides.
fn makes_room(cx: Evidence<'_>, row: u32, end: u32) -> bool {
    let events = &cx.snapshot.events;
    let asks = end < cx.trace.device.events.end
        && matches!(events.action(end), Action::SEGMENT_ALLOC | Action::SEGMENT_MAP | Action::OOM);
    asks && events.stack(end - 1) == events.stack(end)
        && !cx
            .snapshot
            .stack(events.stack(row))
            .any(|f| cx.snapshot.text(f.name).contains("empty_cache"))
}

/// Counts an event that reserves memory against the outstanding returns.
fn reserve_again(
    cx: Evidence<'_>,
    row: u32,
    causes: &mut [Returned; 2],
    outstanding: &mut [Outstanding; 2],
) {
    let events = &cx.snapshot.events;
    let size = events.size(row).0;
    for (returned, outstanding) in causes.iter_mut().zip(outstanding) {
        let bytes = match events.action(row) {
            Action::SEGMENT_ALLOC => {
                match outstanding.segments.get_mut(&size).filter(|count| **count > 0) {
                    Some(count) => {
                        *count -= 1;
                        size
                    }
                    None => 0,
                }
            }
            Action::SEGMENT_MAP => size.min(outstanding.mapped),
            _ => 0,
        };
        if bytes > 0 {
            if events.action(row) == Action::SEGMENT_MAP {
                outstanding.mapped -= bytes;
            }
            returned.again.push(row - cx.trace.device.events.start);
            returned.again_bytes += bytes;
            return;
        }
    }
}

pub(super) async fn churn(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    let returned = ReturnedByCause::find(cx, budget).await;
    let mut found = Vec::new();
    if returned.to_make_room.is_reportable() {
        found.push(finding(cx, &returned.to_make_room, true));
    }
    // One return between two phases of a program is the purpose of empty_cache.
    if returned.on_request.is_reportable() && returned.on_request.bursts >= 2 {
        found.push(finding(cx, &returned.on_request, false));
    }
    found
}

fn finding(cx: Evidence<'_>, returned: &Returned, by_allocator: bool) -> Finding {
    let facts = Facts::Churn {
        by_allocator,
        returned: Bytes(returned.bytes),
        segments: returned.events.len(),
        bursts: returned.bursts,
        reserved_again: Bytes(returned.again_bytes),
    };
    let what = if by_allocator { "make-room" } else { "on-request" };
    let events = [returned.events.as_slice(), &returned.again].concat();
    let stack = (returned.stack != StackId::EMPTY).then_some(returned.stack);
    let parts = stack.map(|stack| Part { stack, bytes: Bytes(returned.again_bytes), blocks: 0 });
    Finding {
        parts: parts.into_iter().collect(),
        ..cx.finding(what, returned.again_bytes, returned.again_bytes, events, facts)
    }
}
