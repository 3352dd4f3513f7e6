//! Delayed frees. After `Tensor.record_stream` the allocator holds a freed block until the other
//! stream has passed an event.

use super::{Evidence, Facts, Finding, Part, PendingFrees};
use crate::slicing::{Budget, STRIDE, strides};
use crate::sort;
use std::collections::BTreeMap;
use vramscope_snapshot::{StackId, StreamId};
use vramscope_units::{Bytes, EventIndex, Micros};

/// Events between request and completion of a free that waits for no stream.
const PROMPT_EVENTS: u32 = 1;

/// Groups whose longest wait is shorter than this are not reported.
const MIN_WAIT_EVENTS: u32 = 16;

/// Groups with fewer bytes waiting at once are not reported: half of a large-pool segment.
const MIN_BYTES: u64 = 10 << 20;

/// One delayed free, from the event that requests it to the event that completes it, or to the end
/// of the window.
struct Wait {
    from: u32,
    to: u32,
    bytes: u64,
}

pub(super) async fn pending_frees(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    let mut groups: BTreeMap<(StackId, StreamId), Vec<Wait>> = BTreeMap::new();
    let rows = &cx.trace.device.events;
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for block in &cx.trace.blocks[part] {
            let Some(from) = block.free_requested() else { continue };
            let wait = Wait { from: from.0, to: block.leaves - 1, bytes: block.bytes.0 };
            if wait.to - wait.from > PROMPT_EVENTS {
                let stack = cx.snapshot.events.stack(rows.start + from.0);
                groups.entry((stack, block.stream)).or_default().push(wait);
            }
        }
    }
    let mut found = Vec::new();
    for ((stack, stream), waits) in groups {
        budget.charge(waits.len() as u64).await;
        let longest = waits.iter().max_by_key(|w| (w.to - w.from, std::cmp::Reverse(w.from)));
        let Some(longest) = longest.filter(|w| w.to - w.from >= MIN_WAIT_EVENTS) else { continue };
        let most = most_at_once(&waits, budget).await;
        if most >= MIN_BYTES {
            found.push(group(cx, stack, stream, &waits, longest, most));
            budget.charge(waits.len() as u64).await;
        }
    }
    found
}

/// The finding for the frees of one call stack and stream.
fn group(
    cx: Evidence<'_>,
    stack: StackId,
    stream: StreamId,
    waits: &[Wait],
    longest: &Wait,
    most_at_once: u64,
) -> Finding {
    let time = cx.trace.clock.as_ref().map(|clock| {
        let time = |w: &Wait| clock.offset(w.to.min(cx.trace.slots() - 2)) - clock.offset(w.from);
        Micros(waits.iter().map(time).max().unwrap_or(0) as i64)
    });
    let facts = Facts::PendingFree(PendingFrees {
        frees: waits.len(),
        total: Bytes(waits.iter().map(|w| w.bytes).sum()),
        most_at_once: Bytes(most_at_once),
        stream,
        longest_events: longest.to - longest.from,
        longest_from: EventIndex(longest.from),
        longest_time: time,
    });
    let (hash, handle) = (cx.sites.get(stack).stack_hash, cx.snapshot.stream(stream));
    let events = waits.iter().map(|w| w.from).collect();
    let part = Part { stack, bytes: Bytes(most_at_once), blocks: waits.len() as u32 };
    Finding {
        parts: vec![part],
        blocks: part.blocks,
        ..cx.finding(
            format_args!("{hash:016x}-{handle:x}"),
            most_at_once,
            most_at_once,
            events,
            facts,
        )
    }
}

/// The most bytes that wait at the same time.
async fn most_at_once(waits: &[Wait], budget: &mut Budget) -> u64 {
    let mut changes: Vec<(u32, i64)> = Vec::with_capacity(2 * waits.len());
    for part in waits.chunks(STRIDE) {
        budget.charge(4 * part.len() as u64).await;
        changes.extend(
            part.iter().flat_map(|w| [(w.from, w.bytes as i64), (w.to, -(w.bytes as i64))]),
        );
    }
    sort(&mut changes, budget).await;
    let (mut now, mut most) = (0i64, 0);
    for part in changes.chunks(STRIDE) {
        budget.charge(part.len() as u64).await;
        for (_, change) in part {
            now = now.wrapping_add(*change);
            most = most.max(now);
        }
    }
    most as u64
}
