//! Delayed frees. After `Tensor.record_stream` the allocator holds a freed block until the other
//! stream has passed an event.

use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Exhibit, Parts, Scene, Words};
use crate::claims::words::{at_site, counted};
use crate::evidence::{Evidence, Materiality};
use vramscope_snapshot::{StackId, StreamId};
use vramscope_trace::Block;
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, EventIndex, Micros};

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality::percent(1);

/// Events between request and completion of a free that waits for no stream.
const PROMPT_EVENTS: u32 = 1;

/// Frees that wait for another stream at the peak of `active_bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingFrees {
    /// The peak of `active_bytes`.
    pub peak: Bytes,
    /// The peak of `allocated_bytes`: the peak of `active_bytes` if no free waited.
    pub peak_without: Bytes,
    /// Bytes that wait at the peak of `active_bytes`.
    pub waiting: Bytes,
    /// The streams of the waiting blocks, ascending.
    pub streams: Vec<StreamId>,
    /// All frees of the window that waited.
    pub frees: usize,
    /// The longest of these waits in events.
    pub longest_events: u32,
    /// The event at which it begins.
    pub longest_from: EventIndex,
    /// The longest wait in time; `None` without a clock.
    pub longest_time: Option<Micros>,
}

/// A block that waits at the peak.
struct Waiting {
    stack: StackId,
    stream: StreamId,
    bytes: u64,
    /// The event that requested its free.
    from: Option<u32>,
}

pub(super) async fn pending_frees(
    cx: Evidence<'_>,
    budget: &mut Budget,
) -> Option<Found<PendingFrees>> {
    let [peak, peak_without] = [cx.carving.active_band.peak, cx.carving.allocated_band.peak]
        .map(|bytes| u64::try_from(bytes).unwrap_or(0));
    let cost = peak.saturating_sub(peak_without);
    if !MATTERS.is_met(cost, peak) {
        return None;
    }
    // PyTorch looks whether a stream is done only when it allocates. Without a trace a pending
    // block does not tell that it waited for long. `enabled="state"` records one event.
    if cx.trace.is_state_only() {
        return None;
    }
    let slot = cx.carving.active_band.peak_event.map_or(0, |event| event + 1);
    let rows = &cx.trace.device.events;
    let mut waiting: Vec<Waiting> = Vec::new();
    let (mut frees, mut longest, mut longest_time) = (0, (0, EventIndex(0)), None);
    let visit = |index, block: &Block| {
        let from = block.free_requested().map(|event| event.0);
        if block.is_live_at(slot) && !cx.carving.is_allocated(cx.trace, index, slot) {
            let bytes = cx.carving.sizes[index as usize].0;
            let stack = from.map_or(StackId::EMPTY, |f| cx.snapshot.events.stack(rows.start + f));
            waiting.push(Waiting { stack, stream: block.stream, bytes, from });
        }
        let Some(from) = from else { return };
        let events = block.leaves - 1 - from;
        if events > PROMPT_EVENTS {
            frees += 1;
            if events > longest.0 {
                longest = (events, EventIndex(from));
            }
            longest_time = longest_time.max(cx.trace.clock.as_ref().map(|clock| {
                let to = (block.leaves - 1).min(cx.trace.slots() - 2);
                Micros((clock.offset(to) - clock.offset(from)) as i64)
            }));
        }
    };
    cx.trace.each_block(4, budget, visit).await;
    budget.charge(4 * waiting.len() as u64).await;
    let mut streams: Vec<StreamId> = waiting.iter().map(|w| w.stream).collect();
    streams.dedup();
    streams.sort();
    streams.dedup();
    let facts = PendingFrees {
        peak: Bytes(peak),
        peak_without: Bytes(peak_without),
        waiting: Bytes(waiting.iter().map(|w| w.bytes).sum()),
        streams,
        frees,
        longest_events: longest.0,
        longest_from: longest.1,
        longest_time,
    };
    let events = waiting.iter().filter_map(|w| w.from).collect();
    Some(
        Common {
            step: cx.step_at(slot.saturating_sub(1)),
            phase: cx.phase_at(slot.saturating_sub(1)),
            basis: Basis::Exact,
            blocks: waiting.len() as u32,
            parts: parts(waiting.iter().map(|w| (w.stack, w.bytes))),
            ..cx.found(FindingKind::PendingFree, "peak", cost, cost, events)
        }
        .with(facts),
    )
}

impl Claim for PendingFrees {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let cost = scene.bytes();
        let site = scene.main_site();
        let at = at_site(&site);
        let streams = scene.streams(&self.streams);
        let time = self.longest_time.map(|time| format!(", the longest in time {time}"));
        Words {
            title: scene
                .titled("Frees delayed by record_stream", self.spot(scene).as_ref(), cost)
                .text(" at the peak"),
            text: format!(
                "At the peak of {}, {} ({}) of {} were already freed{at}, but waited until another \
                 stream had caught up (record_stream). With immediate frees the peak is {cost} \
                 lower: {}. In all, {} waited. The longest wait is {} from {}{}.",
                self.peak,
                counted(scene.finding.blocks as usize, "block"),
                self.waiting,
                streams,
                self.peak_without,
                counted(self.frees, "free"),
                counted(self.longest_events as usize, "event"),
                self.longest_from,
                time.unwrap_or_default(),
            ),
            action: format!(
                "Wait for the other stream before the free{at} (wait_stream), instead of \
                 record_stream."
            ),
        }
    }

    fn why(&self, scene: &Scene<'_>) -> String {
        format!(
            "blocks were freed, and waited until {} had caught up (record_stream)",
            scene.streams(&self.streams)
        )
    }

    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        Some(Bytes(self.peak.0.saturating_sub(self.peak_without.0)))
    }

    fn exhibit(&self, _scene: &Scene<'_>) -> Exhibit {
        let allocated = self.peak.0.saturating_sub(self.waiting.0);
        Exhibit::Parts(Parts {
            title: "active_bytes at its peak",
            parts: vec![("allocated", Bytes(allocated), false), ("waiting", self.waiting, true)],
            line: Some(("without waiting", self.peak_without)),
        })
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    PendingFree,
    fires: ["recorded/t26/streams.pickle.gz"],
    silent: ["findings/side_stream_strands.pickle.gz"]
}
