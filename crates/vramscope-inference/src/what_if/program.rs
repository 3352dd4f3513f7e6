//! What a recorded program asked of the allocator: requests, frees and `empty_cache`, without what
//! the allocator decided.

use super::bursts::{Bursts, Gives};
use super::private::PrivateSpans;
use super::recorded_settings;
use crate::evidence::{Evidence, slot_of_reserved_peak};
use vramscope_allocator::{BlockState, StartBlock, StartSegment};
use vramscope_snapshot::{Action, SegmentType, Snapshot};
use vramscope_trace::Block;
use vramscope_trace::Carving;
use vramscope_trace::Trace;
use vramscope_trace::segment_event;
use vramscope_trace::slicing::{Budget, STRIDE, now};
use vramscope_trace::{Content, LiveSet};

/// What the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It asks for memory for a block.
    Malloc {
        /// Index into [`Trace::blocks`].
        block: u32,
    },
    /// It frees a block that a stream still uses.
    FreeLater {
        /// Index into [`Trace::blocks`].
        block: u32,
    },
    /// A block is free.
    Free {
        /// Index into [`Trace::blocks`].
        block: u32,
    },
    /// It asks for memory, and the recording shows that there was none. The bytes are those of
    /// [`Program::failed`].
    Failed {
        /// Index into [`Program::failed`].
        index: u32,
    },
    /// It calls `empty_cache`.
    EmptyCache,
    /// It returns the memory of a private pool.
    EmptyPool {
        /// The pool.
        pool: u32,
    },
}

/// A call with its event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) event: u32,
    pub(crate) call: Call,
}

/// A request as the allocator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) bytes: u64,
    pub(crate) stream: u32,
    pub(crate) pool: u32,
}

/// The bytes of a segment that may have any size.
pub(crate) const ANY_SIZE: u64 = 0;

/// The calls of a window.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// All calls in event order.
    pub(crate) steps: Vec<Step>,
    /// The request of every block of the trace.
    pub(crate) asked: Vec<Asked>,
    /// Requests that failed.
    pub(crate) failed: Vec<Asked>,
    /// The segments from before the window.
    pub(crate) start: Vec<StartSegment>,
    /// The blocks of the trace in `start`, in the order of its used blocks.
    pub(crate) start_blocks: Vec<u32>,
    /// Memory that the allocator itself returned.
    pub(crate) own: Bursts,
    /// Reserved bytes after each event that changes them: event, bytes.
    pub(crate) reserved: Vec<(u32, u64)>,
    /// Reserved bytes before the window.
    pub(crate) reserved_start: u64,
    /// Of the slots with most reserved bytes, that with most in use.
    pub(crate) peak_slot: u32,
    /// New segments as recorded: event, address, bytes, or [`ANY_SIZE`].
    pub(crate) segments: Vec<(u32, u64, u64)>,
    /// Private pools whose blocks are not split, ascending (`no_split` of `torch.cuda.MemPool`).
    pub(crate) unsplit_pools: Vec<u32>,
    /// Whether a request of a private pool returned cached memory: then its pool is no capture's.
    pub(crate) pools_flush: bool,
}

impl Program {
    /// The program of a device's window.
    pub(crate) async fn of(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        let (snapshot, trace) = (cx.snapshot, cx.trace);
        let private = PrivateSpans::of(snapshot, cx.carving);
        let mut asked = Vec::with_capacity(trace.blocks.len());
        let mut late: Vec<(u32, u32)> = Vec::new();
        for (i, block) in (0..).zip(&trace.blocks) {
            asked.push(request(snapshot, block, &private));
            // Most frees are complete at once: their request says nothing new.
            if let Some(event) = block.free_requested()
                && block.free_completed().is_none_or(|done| done.0 != event.0 + 1)
            {
                late.push((event.0, i));
            }
            if i % STRIDE as u32 == 0 {
                budget.charge(2 * STRIDE as u64).await;
            }
        }
        late.sort_unstable();
        let (start, start_blocks) = start(snapshot, trace, cx.carving, &private);
        let own = Bursts::find(cx, &private, budget).await;
        let mut program = Self {
            steps: Vec::with_capacity(trace.device.events.len()),
            asked,
            failed: Vec::new(),
            reserved_start: start.iter().flat_map(|s| &s.blocks).map(|b| b.size).sum(),
            start,
            start_blocks,
            peak_slot: slot_of_reserved_peak(cx, budget).await,
            own,
            reserved: Vec::new(),
            segments: Vec::new(),
            unsplit_pools: unsplit_pools(snapshot, trace, &private),
            pools_flush: false,
        };
        program.read_events(snapshot, trace, &late, budget).await;
        program.pools_flush = program.own.all.iter().any(|burst| {
            let next = program.steps.partition_point(|step| step.event < burst.events.end);
            let next = program.steps.get(next).map(|step| step.call);
            matches!(next, Some(Call::Malloc { block })
                if burst.gives == Gives::ToMakeRoom && program.asked[block as usize].pool != 0)
        });
        program
    }

    async fn read_events(
        &mut self,
        snapshot: &Snapshot,
        trace: &Trace,
        late: &[(u32, u32)],
        budget: &mut Budget,
    ) {
        let (events, rows) = (&snapshot.events, trace.device.events.clone());
        let mut late = late.iter().peekable();
        let mut bursts = self.own.all.clone().into_iter().peekable();
        let mut reserved = self.reserved_start;
        for row in rows.clone() {
            let event = row - rows.start;
            if event % STRIDE as u32 == 0 {
                budget.charge(4 * STRIDE as u64).await;
            }
            let action = events.action(row);
            if let Some((grows, is_expandable)) = segment_event(action) {
                let size = events.size(row).0;
                reserved = if grows {
                    reserved.saturating_add(size)
                } else {
                    reserved.saturating_sub(size)
                };
                self.reserved.push((event, reserved));
                if grows && !is_expandable {
                    self.segments.push((event, events.addr(row).0, size));
                }
            }
            if let Some(burst) = bursts.next_if(|burst| burst.events.start == event) {
                let call = match burst.gives {
                    Gives::ToMakeRoom => None,
                    Gives::Everything => Some(Call::EmptyCache),
                    Gives::Pool(pool) => Some(Call::EmptyPool { pool }),
                };
                self.steps.extend(call.map(|call| Step { event, call }));
            }
            if action == Action::OOM {
                let stream = u32::from(events.stream(row).0);
                let index = self.failed.len() as u32;
                // The trace has no pool of a failed request.
                self.failed.push(Asked { bytes: events.size(row).0, stream, pool: 0 });
                self.steps.push(Step { event, call: Call::Failed { index } });
            }
            while let Some(&(_, block)) = late.next_if(|(at, _)| *at == event) {
                self.steps.push(Step { event, call: Call::FreeLater { block } });
            }
            for change in trace.changes_at(event + 1) {
                let block = change.block();
                let call =
                    if change.enters() { Call::Malloc { block } } else { Call::Free { block } };
                self.steps.push(Step { event, call });
            }
        }
    }

    /// The bytes of memory that the columns take.
    pub(crate) fn heap_bytes(&self) -> usize {
        fn bytes<T>(column: &Vec<T>) -> usize {
            column.capacity() * size_of::<T>()
        }
        let start: usize = self.start.iter().map(|segment| bytes(&segment.blocks)).sum();
        let pools: usize = self.own.all.iter().map(|burst| bytes(&burst.pools)).sum();
        start
            + pools
            + bytes(&self.steps)
            + bytes(&self.asked)
            + bytes(&self.failed)
            + bytes(&self.start)
            + bytes(&self.start_blocks)
            + bytes(&self.own.all)
            + bytes(&self.reserved)
            + bytes(&self.segments)
    }

    /// The bytes that a call asks for.
    pub(crate) fn asked_by(&self, step: &Step) -> Option<u64> {
        match step.call {
            Call::Malloc { block } => Some(self.asked[block as usize].bytes),
            Call::Failed { index } => Some(self.failed[index as usize].bytes),
            _ => None,
        }
    }

    /// Reserved bytes of the recording after an event.
    pub(crate) fn reserved_after(&self, event: u32) -> u64 {
        let at = self.reserved.partition_point(|(e, _)| *e <= event);
        at.checked_sub(1).map_or(self.reserved_start, |at| self.reserved[at].1)
    }

    /// The highest reserved bytes of the recording.
    pub(crate) fn reserved_peak(&self) -> u64 {
        self.reserved.iter().map(|(_, bytes)| *bytes).fold(self.reserved_start, u64::max)
    }
}

fn request(snapshot: &Snapshot, block: &Block, private: &PrivateSpans) -> Asked {
    Asked {
        bytes: block.bytes.0,
        stream: u32::from(block.stream.0),
        pool: private.pool(snapshot, block.pool, block.address.0, block.enters),
    }
}

/// The private pools that are not split: a live block has a whole segment, which the recorded
/// settings would have split.
fn unsplit_pools(snapshot: &Snapshot, trace: &Trace, private: &PrivateSpans) -> Vec<u32> {
    let settings = recorded_settings(snapshot, &trace.device);
    let mut pools: Vec<u32> = Vec::new();
    for segment in snapshot.segments_of(&trace.device) {
        let pool = private.pool(snapshot, segment.pool, segment.address.0, trace.slots() - 1);
        let [block] = snapshot.blocks_of(segment) else { continue };
        let size = settings.round(block.requested_size.0);
        let rest = block.size.0.saturating_sub(size);
        let is_small = segment.segment_type == SegmentType::Small;
        if pool != 0 && block.state.is_active() && settings.splits(size, rest, is_small) {
            pools.push(pool);
        }
    }
    pools.sort_unstable();
    pools.dedup();
    pools
}

/// The segments of the state before the window, and the blocks in them.
fn start(
    snapshot: &Snapshot,
    trace: &Trace,
    carving: &Carving,
    private: &PrivateSpans,
) -> (Vec<StartSegment>, Vec<u32>) {
    let mut used = Vec::new();
    let mut segments = Vec::new();
    for segment in now(async |budget| LiveSet::new(trace, 0, budget).await).segments(carving) {
        let mut blocks: Vec<StartBlock> = Vec::with_capacity(segment.pieces.len());
        for piece in &segment.pieces {
            let block = match piece.content {
                Content::Free => {
                    StartBlock { size: piece.size.0, requested: 0, state: BlockState::Free }
                }
                Content::Block { block, pending } => {
                    used.push(block);
                    StartBlock {
                        size: piece.size.0,
                        requested: trace.blocks[block as usize].bytes.0,
                        state: if pending {
                            BlockState::PendingFree
                        } else {
                            BlockState::Allocated
                        },
                    }
                }
            };
            blocks.push(block);
        }
        segments.push(StartSegment {
            address: segment.address.0,
            stream: u32::from(segment.stream.0),
            pool: private.pool(snapshot, segment.pool, segment.address.0, 0),
            is_small: segment.segment_type == SegmentType::Small,
            is_expandable: segment.is_expandable,
            blocks,
        });
    }
    (segments, used)
}
