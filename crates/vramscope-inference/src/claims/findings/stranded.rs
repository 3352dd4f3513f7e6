//! Free memory of a private pool, which requests outside of it cannot use.

use crate::claims::found::{Common, Found};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Exhibit, Parts, Scene, Spot, Words};
use crate::claims::severity::Severity;
use crate::claims::words::pool;
use crate::evidence::{Evidence, Materiality};
use crate::evidence::{is_graph_pool, pool_or_default};
use vramscope_snapshot::{PoolId, PoolIndex, StreamId};
use vramscope_trace::Span;
use vramscope_trace::group_by_key;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, SegmentState};
use vramscope_units::{Bytes, EventIndex};

/// Lower amounts are no finding.
const MATTERS: Materiality = Materiality { bytes: 256 << 20, percent: 10 };

/// Free memory of a private pool, beside which other requests reserved more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrandedPool {
    /// The pool.
    pub pool: PoolId,
    /// Its reserved bytes at the peak of `reserved_bytes`.
    pub reserved: Bytes,
    /// Its free bytes at that peak. The allocator cannot give them to another pool.
    pub free: Bytes,
    /// The largest free piece.
    pub largest: Bytes,
    /// Bytes that other requests reserved while at least [`StrandedPool::unused`] were free here.
    pub reserved_elsewhere: Bytes,
    /// Bytes that were free here for all that time.
    pub unused: Bytes,
    /// The event since which they were free; `None` if since before the window.
    pub since: Option<EventIndex>,
    /// The peak of `reserved_bytes`.
    pub peak: Bytes,
}

type Kind = (PoolIndex, StreamId);

/// One finding for each private pool and stream with stranded memory. `segments` are those of
/// `slot`, at the peak of `reserved_bytes`.
pub(super) async fn stranded(
    cx: Evidence<'_>,
    segments: &[SegmentState],
    slot: u32,
    was_short: bool,
    budget: &mut Budget,
) -> Vec<Found<StrandedPool>> {
    let peak = cx.trace.reserved_band.peak.max(0) as u64;
    let Some(event) = cx.trace.reserved_band.peak_event else { return Vec::new() };
    let least = MATTERS.least(peak);
    let kinds: Vec<(Kind, Vec<&SegmentState>)> =
        group_by_key(segments.iter().map(|s| ((s.pool, s.stream), s)).collect());
    let mut found = Vec::new();
    for ((pool, stream), own) in &kinds {
        let id = cx.snapshot.pool(*pool).filter(|&id| id != PoolId::DEFAULT);
        let free: u64 = own.iter().map(|s| s.free.0).sum();
        let Some(id) = id.filter(|_| free >= least) else { continue };
        if is_graph_pool(cx.snapshot, *pool, *stream) {
            continue;
        }
        let side = unused_since(cx, (*pool, *stream), own, slot, budget).await;
        let bytes = side.bytes();
        if bytes < least {
            continue;
        }
        let facts = StrandedPool {
            pool: id,
            reserved: Bytes(own.iter().map(|s| s.size.0).sum()),
            free: Bytes(free),
            largest: own.iter().map(|s| s.largest_free).max().unwrap_or_default(),
            reserved_elsewhere: Bytes(side.elsewhere),
            unused: Bytes(side.here),
            since: side.since.checked_sub(1).map(EventIndex),
            peak: Bytes(peak),
        };
        let what = format!("{id}-{}", stream.0);
        let events = side.since.checked_sub(1).into_iter().chain([event]).collect();
        found.push(
            Common {
                severity: if was_short { Severity::Medium } else { Severity::Low },
                step: cx.step_at(event),
                phase: cx.phase_at(event),
                basis: Basis::Exact,
                ..cx.found(FindingKind::StrandedPool, what, bytes, bytes, events)
            }
            .with(facts),
        );
    }
    found
}

/// Memory that a pool and stream did not use while others reserved more.
struct Unused {
    /// The slot since which it was free.
    since: u32,
    /// Bytes that were free from then on.
    here: u64,
    /// Bytes that others reserved since then, and hold at the peak.
    elsewhere: u64,
}

impl Unused {
    /// The bytes that others reserved without need.
    fn bytes(&self) -> u64 {
        self.here.min(self.elsewhere)
    }
}

/// Walks back from the slot of the peak. The further back, the less memory was free for all the
/// time, and the more others have reserved. Returns the best of both.
async fn unused_since(
    cx: Evidence<'_>,
    kind: Kind,
    segments: &[&SegmentState],
    peak: u32,
    budget: &mut Budget,
) -> Unused {
    let (mut own, mut others): (Vec<&Span>, Vec<&Span>) =
        (cx.carving.segments.at(peak).into_iter())
            .partition(|span| (pool_or_default(span.pool), span.stream) == kind);
    own.retain(|span| {
        let next = segments.partition_point(|segment| segment.address <= span.address);
        next.checked_sub(1).is_some_and(|i| segments[i].free.0 > 0)
    });
    // Spans are in address order.
    let ranges = own.clone();
    let enters_of = |block: u32| {
        let address = cx.trace.blocks[block as usize].address;
        let next = ranges.partition_point(|span| span.address <= address);
        let span = ranges[next.checked_sub(1)?];
        (address.0 < span.end()).then_some(span.enters)
    };
    own.sort_by_key(|span| span.enters);
    others.sort_by_key(|span| span.enters);
    let mut free = own.iter().map(|span| span.size.0 as i64).sum::<i64>();
    let visit = |index, block: &Block| {
        if block.is_live_at(peak) && enters_of(index).is_some() {
            free -= cx.carving.sizes[index as usize].0 as i64;
        }
    };
    cx.trace.each_block(2, budget, visit).await;
    let mut best = Unused { since: peak, here: 0, elsewhere: 0 };
    let (mut least, mut elsewhere) = (free, 0);
    for slots in strides(peak as usize).collect::<Vec<_>>().into_iter().rev() {
        budget.charge(4 * slots.len() as u64).await;
        for before in slots.rev().map(|slot| slot as u32) {
            let slot = before + 1;
            while let Some(span) = others.pop_if(|span| span.enters == slot) {
                elsewhere += span.size.0;
            }
            let here = least.max(0) as u64;
            if here.min(elsewhere) > best.bytes() {
                best = Unused { since: before, here, elsewhere };
            }
            // Undo the slot.
            for change in cx.trace.changes_at(slot) {
                if enters_of(change.block()).is_some_and(|enters| enters <= slot) {
                    let size = cx.carving.sizes[change.block() as usize].0 as i64;
                    free += if change.enters() { size } else { -size };
                }
            }
            while let Some(span) = own.pop_if(|span| span.enters == slot) {
                free -= span.size.0 as i64;
            }
            least = least.min(free);
        }
        if least <= 0 {
            break;
        }
    }
    best
}

impl Claim for StrandedPool {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let name = pool(Some(self.pool));
        let since = match self.since {
            Some(event) => format!("since {event}"),
            None => "since before the window".to_owned(),
        };
        Words {
            title: scene
                .titled(&format!("Memory of {name} out of reach"), None, self.free)
                .text(" free"),
            text: format!(
                "{name} holds {} at the peak of reserved memory ({}). {} of it are free, in pieces \
                 of at most {}. Requests outside of it reserved {} more while {} of it were free \
                 {since}.",
                self.reserved,
                self.peak,
                self.free,
                self.largest,
                self.reserved_elsewhere,
                self.unused,
            ),
            action: format!(
                "Delete {name} once its tensors are moved out, or allocate in it only what stays. \
                 No allocator setting gives its memory to another pool."
            ),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        format!(
            "requests outside of it reserved {} more, as they may not use it",
            self.reserved_elsewhere
        )
    }

    fn spot(&self, _scene: &Scene<'_>) -> Option<Spot> {
        None
    }

    fn exhibit(&self, _scene: &Scene<'_>) -> Exhibit {
        let elsewhere = self.peak.0.saturating_sub(self.reserved.0);
        let used = self.reserved.0.saturating_sub(self.free.0);
        Exhibit::Parts(Parts {
            title: "reserved memory at its peak",
            parts: vec![
                ("elsewhere", Bytes(elsewhere), false),
                ("in use here", Bytes(used), false),
                ("free here", self.free, true),
            ],
            line: None,
        })
    }
}

#[cfg(test)]
crate::claims::cases::cases! {
    StrandedPool,
    fires: ["findings/graph_pools_stranded.pickle.gz"],
    silent: ["findings/g14_prefetch_stream.pickle.gz"]
}
