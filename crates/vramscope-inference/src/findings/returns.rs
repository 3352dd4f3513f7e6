//! Memory returned to the driver. Each return waits for the device.
//!
//! The allocator returns cached segments when the driver refuses a new one, or when use exceeds
//! `garbage_collection_threshold`. It then asks the driver again at once
//! (`DeviceCachingAllocator::malloc` in `c10/cuda/CUDACachingAllocator.cpp`). A program returns
//! them with `torch.cuda.empty_cache()`. `torch.cuda.graph` calls it before each capture.

use super::Evidence;
use super::memory_use::is_graph_pool;
use std::ops::Range;
use vramscope_snapshot::{Action, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, STRIDE};
use vramscope_trace::{Span, segment_event};

/// The maximum number of events between a return and the next allocation that are read. The
/// allocator maps expandable segments in a few ranges.
const MAX_RESERVATIONS: u32 = 64;

/// Why memory is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The allocator makes room for an allocation.
    MakeRoom,
    /// The program asks for it, or a pool ends.
    Request,
    /// A CUDA graph is captured next.
    Capture,
}

/// Consecutive events that return memory.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    /// The events.
    pub(crate) events: Range<u32>,
    /// Bytes returned.
    pub(crate) bytes: u64,
    /// Why.
    pub(crate) cause: Cause,
    /// The call stack of the first event.
    pub(crate) stack: StackId,
}

/// All returns of a window, and all reservations.
#[derive(Default)]
pub(crate) struct Returns {
    /// Returns in event order.
    pub(crate) bursts: Vec<Burst>,
    /// The events that reserve memory, with their bytes.
    pub(crate) reservations: Vec<(u32, u64)>,
}

impl Returns {
    /// Whether the allocator ever had to make room.
    pub(crate) fn has_retries(&self) -> bool {
        self.bursts.iter().any(|burst| burst.cause == Cause::MakeRoom)
    }

    pub(crate) async fn find(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        let (events, rows) = (&cx.snapshot.events, &cx.trace.device.events);
        let graphs: Vec<&Span> = (cx.carving.segments.spans.iter())
            .filter(|span| is_graph_pool(cx.snapshot, span.pool, span.stream))
            .collect();
        let mut found = Self::default();
        let mut row = rows.start;
        while row < rows.end {
            let from = row;
            let until = rows.end.min(row + STRIDE as u32);
            while row < until && !returns(cx.snapshot, row) {
                if let Some((true, _)) = segment_event(events.action(row)) {
                    found.reservations.push((row - rows.start, events.size(row).0));
                }
                row += 1;
            }
            budget.charge(u64::from(row - from)).await;
            if row == until {
                continue;
            }
            let end = (row..rows.end).find(|&next| !returns(cx.snapshot, next));
            let end = end.unwrap_or(rows.end);
            let cause = cause(cx, row..end, &graphs);
            budget.charge(4 * u64::from(end - row) + graphs.len() as u64).await;
            found.bursts.push(Burst {
                events: row - rows.start..end - rows.start,
                bytes: (row..end).map(|row| events.size(row).0).sum(),
                cause,
                stack: events.stack(row),
            });
            row = end;
        }
        found
    }
}

/// Whether an event returns memory to the driver.
fn returns(snapshot: &Snapshot, row: u32) -> bool {
    matches!(segment_event(snapshot.events.action(row)), Some((false, _)))
}

/// Why the rows of a burst return memory.
///
/// A call that makes room asks the driver again at once, and all events of one call have one stack.
/// Without recorded stacks only the order of events decides.
fn cause(cx: Evidence<'_>, rows: Range<u32>, graphs: &[&Span]) -> Cause {
    let events = &cx.snapshot.events;
    let stack = events.stack(rows.start);
    let calls = |name: &str| {
        cx.snapshot.stack(stack).any(|frame| cx.snapshot.text(frame.name).contains(name))
    };
    if is_in_graphs(cx, stack) || captures_next(cx, rows.end, graphs) {
        return Cause::Capture;
    }
    let end = cx.trace.device.events.end;
    let asks = rows.end < end
        && (events.action(rows.end) == Action::OOM
            || matches!(segment_event(events.action(rows.end)), Some((true, _))));
    if asks && events.stack(rows.end - 1) == events.stack(rows.end) && !calls("empty_cache") {
        Cause::MakeRoom
    } else {
        Cause::Request
    }
}

/// Whether a call stack passes through `torch.cuda.graph`.
pub(super) fn is_in_graphs(cx: Evidence<'_>, stack: StackId) -> bool {
    cx.snapshot.stack(stack).any(|frame| {
        cx.snapshot.text(frame.file).replace('\\', "/").ends_with("torch/cuda/graphs.py")
    })
}

/// Whether the next allocation is that of a capture: by its call stack, or in a pool of a graph.
fn captures_next(cx: Evidence<'_>, row: u32, graphs: &[&Span]) -> bool {
    let (events, rows) = (&cx.snapshot.events, &cx.trace.device.events);
    let until = rows.end.min(row + MAX_RESERVATIONS);
    let Some(next) = (row..until).find(|&row| events.action(row) == Action::ALLOC) else {
        return false;
    };
    let (address, slot) = (events.addr(next), next - rows.start + 1);
    is_in_graphs(cx, events.stack(next))
        || graphs.iter().any(|span| {
            span.address <= address && address.0 < span.end() && span.is_reserved_at(slot)
        })
}
