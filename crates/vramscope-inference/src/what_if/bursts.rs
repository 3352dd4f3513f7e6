//! Memory that goes back to the driver: by the allocator itself, or because the program asks.

use super::private::PrivateSpans;
use crate::evidence::{Cause, Evidence, Returns};
use std::ops::Range;
use vramscope_trace::slicing::Budget;

/// Who returns memory, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    /// The allocator makes room for a request.
    ToMakeRoom,
    /// The program calls `empty_cache`.
    Everything,
    /// The program ends a private pool, or empties it.
    Pool(u32),
}

/// Consecutive events that return memory.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    pub(crate) events: Range<u32>,
    pub(crate) gives: Gives,
    /// The private pools of the segments.
    pub(crate) pools: Vec<u32>,
}

/// All such events of a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bursts {
    pub(crate) all: Vec<Burst>,
}

impl Bursts {
    pub(crate) async fn find(
        cx: Evidence<'_>,
        private: &PrivateSpans,
        budget: &mut Budget,
    ) -> Self {
        let returns = Returns::find(cx, budget).await;
        let rows = &cx.trace.device.events;
        let mut all = Vec::with_capacity(returns.bursts.len());
        for burst in returns.bursts {
            let mut pools = Vec::new();
            let mut is_default_returned = false;
            for event in burst.events.clone() {
                let row = rows.start + event;
                let events = &cx.snapshot.events;
                // The segment is gone in the slot after the event.
                match private.pool(cx.snapshot, events.pool(row), events.addr(row).0, event) {
                    0 => is_default_returned = true,
                    pool => pools.push(pool),
                }
            }
            pools.sort_unstable();
            pools.dedup();
            let gives = match (burst.cause, pools.as_slice()) {
                (Cause::MakeRoom, _) => Gives::ToMakeRoom,
                (_, &[pool]) if !is_default_returned => Gives::Pool(pool),
                _ => Gives::Everything,
            };
            all.push(Burst { events: burst.events, gives, pools });
        }
        Self { all }
    }
}
