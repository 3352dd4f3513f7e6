//! Memory returned to the driver. Each return waits for the device.
//!
//! The allocator returns cached segments when the driver refuses a new one, or when use exceeds
//! `garbage_collection_threshold`. It then asks the driver again at once
//! (`DeviceCachingAllocator::malloc` in `c10/cuda/CUDACachingAllocator.cpp`). A program returns
//! them with `torch.cuda.empty_cache()`. `torch.cuda.graph` calls it before each capture, and
//! cuDNN's search for an algorithm calls it after each convolution that it has measured
//! (`torch.backends.cudnn.benchmark`, `aten/src/ATen/native/cudnn/Conv_v8.cpp`).

use super::Evidence;
use super::memory_use::{is_graph_pool, pool_or_default};
use rustc_hash::FxHashMap;
use std::ops::Range;
use vramscope_snapshot::{Action, PoolIndex, SegmentType, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, STRIDE};
use vramscope_trace::{Rounding, SMALL_SIZE, Span, segment_event};

/// The maximum number of events between a return and the next allocation that are read. The
/// allocator maps expandable segments in a few ranges.
const MAX_RESERVATIONS: u32 = 64;

/// How much larger than its request a segment may be that is never split (`kLargeBuffer`).
const LARGE_BUFFER: u64 = 20 << 20;

/// Why memory is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The allocator makes room for an allocation.
    MakeRoom,
    /// The program asks for it, or a pool ends.
    Request,
    /// cuDNN has searched for the fastest algorithm of a convolution.
    Search,
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
    /// The use of the segments for the next request.
    fit: Fit,
    /// The reserved bytes before the return, and those that the next event reserves.
    wanted: u64,
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
        let room = Room::new(cx);
        budget.charge(cx.carving.segments.spans.len() as u64).await;
        let mut found = Self::default();
        let mut reserved = cx.trace.reserved_band.start;
        let mut row = rows.start;
        while row < rows.end {
            let from = row;
            let until = rows.end.min(row + STRIDE as u32);
            while row < until && !returns(cx.snapshot, row) {
                if let Some((true, _)) = segment_event(events.action(row)) {
                    found.reservations.push((row - rows.start, events.size(row).0));
                    reserved = reserved.saturating_add(signed(events.size(row).0));
                }
                row += 1;
            }
            budget.charge(u64::from(row - from)).await;
            if row == until {
                continue;
            }
            let end = (row..rows.end).find(|&next| !returns(cx.snapshot, next));
            let end = end.unwrap_or(rows.end);
            let fit = room.fit(row..end);
            let cause = cause(cx, row..end, &graphs, fit);
            budget.charge(4 * u64::from(end - row) + graphs.len() as u64).await;
            let bytes: u64 = (row..end).map(|row| events.size(row).0).sum();
            let next = (end < rows.end)
                .then(|| segment_event(events.action(end)).filter(|event| event.0))
                .flatten()
                .map_or(0, |_| events.size(end).0);
            found.bursts.push(Burst {
                events: row - rows.start..end - rows.start,
                bytes,
                cause,
                stack: events.stack(row),
                fit,
                wanted: (reserved.max(0) as u64).saturating_add(next),
            });
            reserved = reserved.saturating_sub(signed(bytes));
            row = end;
        }
        budget.charge(4 * found.bursts.len() as u64).await;
        mark_searches(cx, &mut found.bursts);
        found
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Whether an event returns memory to the driver.
fn returns(snapshot: &Snapshot, row: u32) -> bool {
    matches!(segment_event(snapshot.events.action(row)), Some((false, _)))
}

/// Why the rows of a burst return memory.
///
/// A call that makes room asks the driver again at once, and all events of one call have one stack.
/// Without recorded stacks only the order of events decides. The call first looked for free memory,
/// so no segment that it returns could have served the request.
fn cause(cx: Evidence<'_>, rows: Range<u32>, graphs: &[&Span], fit: Fit) -> Cause {
    let events = &cx.snapshot.events;
    let stack = events.stack(rows.start);
    if is_in_graphs(cx, stack) || captures_next(cx, rows.end, graphs) {
        return Cause::Capture;
    }
    let end = cx.trace.device.events.end;
    let asks = rows.end < end
        && (events.action(rows.end) == Action::OOM
            || matches!(segment_event(events.action(rows.end)), Some((true, _))));
    let is_one_call = asks
        && events.stack(rows.end - 1) == events.stack(rows.end)
        && !calls(cx, stack, "empty_cache");
    if is_one_call && fit != Fit::Served { Cause::MakeRoom } else { Cause::Request }
}

/// Whether the function name of a frame contains a name.
fn calls(cx: Evidence<'_>, stack: StackId, name: &str) -> bool {
    cx.snapshot.stack(stack).any(|frame| cx.snapshot.text(frame.name).contains(name))
}

/// The free segments that a burst returns, compared with the request that follows it.
struct Room<'a> {
    cx: Evidence<'a>,
    rounding: Rounding,
    /// The span that each event returns, by the slot in which it is gone and its address.
    returned: FxHashMap<(u32, u64), &'a Span>,
}

/// The use of returned segments for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// One of them could have served it.
    Served,
    /// None could have, and some are of its pool.
    TooSmall,
    /// None is of its pool.
    OtherPool,
}

impl<'a> Room<'a> {
    fn new(cx: Evidence<'a>) -> Self {
        let spans = &cx.carving.segments.spans;
        let ends = spans.iter().filter(|span| span.leaves < cx.trace.slots());
        Self {
            cx,
            rounding: Rounding::of(cx.snapshot, &cx.trace.device),
            returned: ends.map(|span| ((span.leaves, span.address.0), span)).collect(),
        }
    }

    fn fit(&self, rows: Range<u32>) -> Fit {
        let (events, all) = (&self.cx.snapshot.events, &self.cx.trace.device.events);
        let until = all.end.min(rows.end + MAX_RESERVATIONS);
        let is_request = |&row: &u32| matches!(events.action(row), Action::ALLOC | Action::OOM);
        let Some(request) = (rows.end..until).find(is_request) else { return Fit::TooSmall };
        let size = self.rounding.round(events.size(request).0);
        let is_small = size <= SMALL_SIZE;
        let pool = self.pool_of(rows.end, request);
        let pending = self.completed_before(rows.start);
        let mut fit = Fit::OtherPool;
        for row in rows {
            let slot = row - all.start + 1;
            let Some(span) = self.returned.get(&(slot, events.addr(row).0)) else { continue };
            let is_of_kind = pool_or_default(span.pool) == pool
                && span.stream == events.stream(request)
                && (span.segment_type == SegmentType::Small) == is_small;
            if !is_of_kind {
                continue;
            }
            fit = Fit::TooSmall;
            let was_pending = pending.iter().any(|&at| span.address.0 <= at && at < span.end());
            // An unmap may return a part of a mapped range.
            if !was_pending && self.serves(events.size(row).0, size) {
                return Fit::Served;
            }
        }
        fit
    }

    /// The pool of a request: that of the span that the row before it reserves. The rows of a
    /// request that failed reserve nothing.
    fn pool_of(&self, reserves: u32, request: u32) -> PoolIndex {
        let (events, start) = (&self.cx.snapshot.events, self.cx.trace.device.events.start);
        let slot = reserves - start + 1;
        let spans = &self.cx.carving.segments.spans;
        let span = spans.get(spans.partition_point(|span| span.enters < slot));
        match span.filter(|span| reserves < request && span.enters == slot) {
            Some(span) => pool_or_default(span.pool),
            None => pool_or_default(events.pool(request)),
        }
    }

    /// Addresses of blocks that waited for a stream until the call that returns memory. It waits
    /// for them first, so they could not serve its request.
    fn completed_before(&self, row: u32) -> Vec<u64> {
        let (events, start) = (&self.cx.snapshot.events, self.cx.trace.device.events.start);
        let mut addresses = Vec::new();
        for row in (start..row).rev().take(MAX_RESERVATIONS as usize) {
            let address = events.addr(row);
            let is_prompt = row > start
                && events.action(row - 1) == Action::FREE_REQUESTED
                && events.addr(row - 1) == address;
            if events.action(row) != Action::FREE_COMPLETED || is_prompt {
                break;
            }
            addresses.push(address.0);
        }
        addresses
    }

    /// Whether a free segment may serve a request (`get_free_block`).
    fn serves(&self, free: u64, request: u64) -> bool {
        let limit = self.rounding.max_split_size();
        let is_oversize = free >= limit;
        free >= request
            && (!is_oversize || (request >= limit && free < request.saturating_add(LARGE_BUFFER)))
    }
}

/// Tells the returns of cuDNN's search from those of the program.
///
/// Where frames of C++ are recorded, they name cuDNN. Otherwise the call stack of the return ends
/// in a convolution of PyTorch, and the next event has the same stack: what the program calls
/// itself has its own. Where one such search is seen, returns of convolutions and returns without
/// frames of the program (backward) are others. So is a return before a reservation of another
/// pool, if the driver could give as much: PyTorch once reserved more.
fn mark_searches(cx: Evidence<'_>, bursts: &mut [Burst]) {
    let (events, rows) = (&cx.snapshot.events, &cx.trace.device.events);
    let convolves = |stack: StackId| {
        cx.snapshot.stack(stack).any(|frame| {
            let name = cx.snapshot.text(frame.name);
            let file = cx.snapshot.text(frame.file).replace('\\', "/");
            name.contains("cudnn") || file.ends_with("torch/nn/modules/conv.py")
        })
    };
    let peak = u64::try_from(cx.trace.reserved_band.peak).unwrap_or(0);
    let is_possible = |burst: &Burst| match burst.cause {
        Cause::Request => !calls(cx, burst.stack, "empty_cache"),
        Cause::MakeRoom => burst.fit == Fit::OtherPool && burst.wanted <= peak,
        _ => false,
    };
    let is_seen = |burst: &Burst| {
        let next = rows.start + burst.events.end;
        burst.cause == Cause::Request
            && is_possible(burst)
            && next < rows.end
            && events.stack(next) == burst.stack
            && convolves(burst.stack)
    };
    if !bursts.iter().any(is_seen) {
        return;
    }
    for burst in bursts {
        let has_frames = cx.snapshot.stack(burst.stack).next().is_some();
        if is_possible(burst) && (!has_frames || convolves(burst.stack)) {
            burst.cause = Cause::Search;
        }
    }
}

/// Whether a call stack passes through `torch.cuda.graph`.
pub(crate) fn is_in_graphs(cx: Evidence<'_>, stack: StackId) -> bool {
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
