//! Free memory of side streams, which requests of other streams cannot use.

use crate::evidence::{DEFAULT_POOL, Evidence, Materiality, pool_or_default};
use std::cmp::Reverse;
use vramscope_snapshot::{StackId, StreamId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, SegmentState, Span, group_by_key};
use vramscope_units::{Bytes, EventIndex};

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality::percent(5);

/// The maximum number of streams: those with most free memory.
const MAX_STREAMS: usize = 3;

/// Free memory of one stream of the default pool, beside which requests of other streams reserved
/// more. The allocator returns free segments to the driver when memory is short, not before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfReach {
    /// The stream.
    pub stream: StreamId,
    /// Its free bytes when `reserved_bytes` reached its peak.
    pub free: Bytes,
    /// The event in which it did; `None` if before the window.
    pub at: Option<EventIndex>,
    /// Bytes in segments of others at the peak, of which each was reserved while as many bytes were
    /// free here.
    pub elsewhere: Bytes,
    /// The largest of these segments.
    pub request: Bytes,
    /// Its call stack.
    pub request_at: StackId,
    /// Its stream.
    pub request_stream: StreamId,
}

impl OutOfReach {
    /// The bytes that others reserved beside free memory.
    pub fn bytes(&self) -> Bytes {
        self.free.min(self.elsewhere)
    }

    /// The side streams of a slot, most bytes first. `segments` are those of the slot.
    pub(in crate::claims::findings) async fn find(
        cx: Evidence<'_>,
        segments: &[SegmentState],
        slot: u32,
        budget: &mut Budget,
    ) -> Vec<Self> {
        budget.charge(2 * segments.len() as u64).await;
        let of_default = segments.iter().filter(|segment| segment.pool == DEFAULT_POOL);
        let mut streams: Vec<(StreamId, Vec<&SegmentState>)> =
            group_by_key(of_default.map(|segment| (segment.stream, segment)).collect());
        let sum = |own: &[&SegmentState], of: fn(&SegmentState) -> u64| -> u64 {
            own.iter().map(|segment| of(segment)).sum()
        };
        // The stream that reserves most is no side stream.
        let main = (0..streams.len()).max_by_key(|&at| sum(&streams[at].1, |of| of.size.0));
        main.map(|main| streams.remove(main));
        streams.sort_by_key(|(stream, own)| (Reverse(sum(own, |of| of.free.0)), *stream));
        let peak = u64::try_from(cx.trace.reserved_band.peak).unwrap_or(0);
        let least = Bytes(MATTERS.least(peak));
        let mut found = Vec::new();
        for (stream, own) in streams.into_iter().take(MAX_STREAMS) {
            let free = Bytes(sum(&own, |of| of.free.0));
            if free < least {
                break;
            }
            let side = of_stream(cx, stream, free, slot, budget).await;
            found.extend(side.filter(|side| side.bytes() >= least));
        }
        found.sort_by_key(|side| (Reverse(side.bytes()), side.stream));
        found
    }
}

/// The memory that others reserved beside the free memory of a stream.
async fn of_stream(
    cx: Evidence<'_>,
    stream: StreamId,
    free: Bytes,
    slot: u32,
    budget: &mut Budget,
) -> Option<OutOfReach> {
    let spans = &cx.carving.segments.spans;
    budget.charge(8 * spans.len() as u64).await;
    // Changes of the free bytes here: by slot.
    let mut changes: Vec<(u32, i64)> = Vec::new();
    let mut others = Vec::new();
    for span in spans.iter().filter(|span| span.enters <= slot) {
        if (pool_or_default(span.pool), span.stream) == (DEFAULT_POOL, stream) {
            let size = span.size.0 as i64;
            changes.extend([(span.enters, size), (span.leaves, -size)]);
        } else if span.enters > 0 && span.is_reserved_at(slot) {
            others.push(span);
        }
    }
    let visit = |index, block: &Block| {
        if block.stream == stream && block.enters <= slot {
            let size = cx.carving.sizes[index as usize].0 as i64;
            changes.extend([(block.enters, -size), (block.leaves, size)]);
        }
    };
    cx.trace.each_block(2, budget, visit).await;
    budget.charge(16 * changes.len() as u64).await;
    changes.sort_unstable();
    others.sort_by_key(|span| span.enters);
    let (mut next, mut now, mut elsewhere) = (0, 0i64, 0u64);
    let mut largest: Option<&Span> = None;
    for span in others {
        // The slot before the reservation counts.
        while changes.get(next).is_some_and(|change| change.0 < span.enters) {
            now = now.saturating_add(changes[next].1);
            next += 1;
        }
        if u64::try_from(now).is_ok_and(|free| free >= span.size.0) {
            elsewhere = span.size.0.saturating_add(elsewhere);
            largest = largest.filter(|other| other.size >= span.size).or(Some(span));
        }
    }
    largest.map(|largest| OutOfReach {
        stream,
        free,
        at: slot.checked_sub(1).map(EventIndex),
        elsewhere: Bytes(elsewhere),
        request: largest.size,
        request_at: largest.stack,
        request_stream: largest.stream,
    })
}
