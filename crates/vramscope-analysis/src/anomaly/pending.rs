//! Frees that wait: `Tensor.record_stream` makes the allocator hold a block until the other stream
//! has passed an event.

use super::{Anomaly, AnomalyKind, Context, counted, sample};
use crate::slicing::{Budget, STRIDE, strides};
use crate::sort;
use std::collections::BTreeMap;
use vramscope_snapshot::{StackId, StreamId};
use vramscope_units::{Bytes, EventIndex, Micros};

/// Without a stream to wait for, a request is completed by the very next event.
const PROMPT: u32 = 1;

/// A group whose longest wait has fewer events than this cost nobody anything.
const LEAST_WAIT: u32 = 16;

/// Nor does one with fewer bytes than this waiting at once: half of a segment of the large pool.
const LEAST_BYTES: u64 = 10 << 20;

/// One free that waited: from the event that asks for it to the one that completes it (or to the
/// end).
struct Wait {
    from: u32,
    to: u32,
    bytes: u64,
}

pub(super) async fn pending_frees(cx: &Context<'_>, budget: &mut Budget) -> Vec<Anomaly> {
    let mut groups: BTreeMap<(StackId, StreamId), Vec<Wait>> = BTreeMap::new();
    let rows = &cx.trace.device.events;
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for block in &cx.trace.blocks[part] {
            let Some(from) = block.free_requested() else { continue };
            let wait = Wait { from: from.0, to: block.leaves - 1, bytes: block.bytes.0 };
            if wait.to - wait.from > PROMPT {
                let stack = cx.snapshot.events.stack(rows.start + from.0);
                groups.entry((stack, block.stream)).or_default().push(wait);
            }
        }
    }
    let mut found = Vec::new();
    for ((stack, stream), waits) in groups {
        budget.charge(waits.len() as u64).await;
        let longest = waits.iter().max_by_key(|w| (w.to - w.from, std::cmp::Reverse(w.from)));
        let Some(longest) = longest.filter(|w| w.to - w.from >= LEAST_WAIT) else { continue };
        let run_to_completion = run_to_completion(&waits, budget).await;
        if run_to_completion >= LEAST_BYTES {
            found.push(group(cx, stack, stream, &waits, longest, run_to_completion));
            budget.charge(waits.len() as u64).await;
        }
    }
    found
}

/// What frees of one stack and stream waited, of which `run_to_completion` bytes did at the same time.
fn group(
    cx: &Context,
    stack: StackId,
    stream: StreamId,
    waits: &[Wait],
    longest: &Wait,
    run_to_completion: u64,
) -> Anomaly {
    let total = waits.iter().map(|w| w.bytes).sum();
    let time = cx.trace.clock.as_ref().map(|clock| {
        let time = |w: &Wait| clock.offset(w.to.min(cx.trace.slots() - 2)) - clock.offset(w.from);
        format!(
            ", the longest in time {}",
            Micros(waits.iter().map(time).max().unwrap_or(0) as i64)
        )
    });
    let stream = cx.snapshot.stream(stream);
    Anomaly {
        id: cx.id(
            AnomalyKind::PendingFree,
            format_args!("{:016x}-{stream:x}", cx.sites.get(stack).stack_hash),
        ),
        kind: AnomalyKind::PendingFree,
        device: cx.trace.device.device,
        severity: cx.severity(AnomalyKind::PendingFree, run_to_completion),
        bytes: run_to_completion,
        text: format!(
            "{} of {} in all at {} (stream {stream:#x}) waited for another stream, up to {} at once; the \
             longest wait is {} from {}{}: record_stream delays the reuse of memory until that stream has caught up",
            counted(waits.len(), "free"),
            Bytes(total),
            cx.label(stack),
            Bytes(run_to_completion),
            counted((longest.to - longest.from) as usize, "event"),
            EventIndex(longest.from),
            time.unwrap_or_default(),
        ),
        events: sample(waits.iter().map(|w| w.from).collect()),
        stack: Some(stack),
    }
}

/// The most bytes that wait at the same time.
async fn run_to_completion(waits: &[Wait], budget: &mut Budget) -> u64 {
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
