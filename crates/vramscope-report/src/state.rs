//! `vramscope state`: live blocks and the layout of segments after any event.

use super::{
    BlockPlaces, CategoryShare, StackTable, Target, block_site, by_category, event_of, slot_of,
    time_of,
};
use crate::backward::{self, BackwardRecord, BackwardTable};
use crate::device_name;
use crate::holders::{self, Holder};
use crate::notes::notes;
use crate::segments::{FreeRecord, SegmentRecord, free_records, segment_record};
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Reverse;
use vramscope_inference::Category;
use vramscope_trace::slicing::now;
use vramscope_trace::{LiveSet, Trace};
use vramscope_units::EventIndex;

/// A position in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before the first event.
    Start,
    /// The peak of `requested_bytes`.
    Peak,
    /// After the last event.
    End,
    /// After this event; -1 is the state before the window.
    Event(i64),
    /// After the last event up to this time, in microseconds since the Unix epoch.
    Time(i64),
}

impl At {
    /// The slot of this position.
    ///
    /// # Errors
    /// The event does not exist, or the trace has no clock. The error is a message for the user.
    pub fn slot(self, trace: &Trace) -> Result<u32, String> {
        let events = trace.slots() - 1;
        match self {
            Self::Start => Ok(0),
            Self::End => Ok(events),
            Self::Peak => Ok(slot_of(trace.requested_band.peak_event)),
            Self::Event(event) => {
                let slot =
                    u32::try_from(event.saturating_add(1)).ok().filter(|&slot| slot <= events);
                slot.ok_or_else(|| {
                    format!(
                        "there is no event {event}: {} has {events} events, numbered from \
                         0 (-1 is the state before the window)",
                        device_name(trace.device.device)
                    )
                })
            }
            Self::Time(time) => {
                let clock = trace.clock.as_ref().ok_or(
                    "this file has no times (PyTorch records them since 2.2, torch_npu does not). \
                     Name an event instead.",
                )?;
                let offset = u64::try_from(time.saturating_sub(clock.start.0));
                // Events at exactly this time are included.
                Ok(offset.map_or(0, |offset| clock.events_before(offset + 1)))
            }
        }
    }
}

/// `vramscope.state/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct State<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The device's ordinal.
    pub device: u32,
    /// The event after which this state holds, from 0; -1 is the state before the window.
    pub event: i64,
    /// The time of `event`; null without a clock.
    pub time_us: Option<i64>,
    /// Requested bytes of `blocks`.
    pub requested_bytes: u64,
    /// Block sizes of `blocks`.
    pub active_bytes: u64,
    /// Block sizes of `blocks` without pending frees.
    pub allocated_bytes: u64,
    /// Sizes of `segments`.
    pub reserved_bytes: u64,
    /// Live blocks by address; with `--limit`, the largest.
    pub blocks: Vec<LiveBlockRecord<'a>>,
    /// The number of blocks left out by `--limit`.
    pub omitted: usize,
    /// Requested bytes by category, most bytes first.
    pub categories: Vec<CategoryShare>,
    /// Segments by address, with their blocks and free pieces; with `--limit`, the largest.
    pub segments: Vec<SegmentRecord>,
    /// The number of segments left out by `--limit`.
    pub segments_omitted: usize,
    /// Free memory by pool, stream and size class.
    pub free: Vec<FreeRecord>,
    /// The places in backward of `blocks`.
    pub backward: BackwardTable,
    /// The call stacks of `blocks` and `segments`, innermost frame first.
    pub stacks: StackTable<'a>,
}

/// A live block.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveBlockRecord<'a> {
    /// The address: `0x...`.
    pub address: String,
    /// Requested bytes.
    pub bytes: u64,
    /// The block size: bytes that the allocator carved out of a segment.
    pub block_bytes: u64,
    /// The category.
    pub category: Category,
    /// Two categories that are equally likely, where `category` is `unknown` for that reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidates: Option<[Category; 2]>,
    /// The event that allocated the block; null if it was before the window.
    pub alloc_event: Option<u32>,
    /// `active_allocated`, or `active_pending_free` while the free is pending.
    pub state: &'static str,
    /// The stream's handle; 0 is the default stream.
    pub stream: i64,
    /// The memory pool: `[0, 0]` is the default pool; null if the file does not record pools.
    pub pool: Option<[u64; 2]>,
    /// `small` (requests up to 1 MiB) or `large`: the kind of segment that the block lies in.
    pub segment_type: &'static str,
    /// True if `stack` is the stack of the free, not of the alloc.
    pub of_free: bool,
    /// The call site: the stack's innermost frame in the user's own code.
    pub site: String,
    /// The index of its place in the report's `backward`; absent unless backward allocated the
    /// block in a thread without Python.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backward: Option<u32>,
    /// The text of `_set_memory_metadata` at the alloc; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<Cow<'a, str>>,
    /// The texts of `_annotate_tensor`, in order; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Cow<'a, str>>,
    /// What holds the block at the end; absent unless the file beside the snapshot tells it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// The index of the call stack in the report's `stacks`.
    pub stack: u32,
}

/// The state of a device in a slot, with at most `limit` blocks and segments, the largest ones.
pub fn state(target: Target<'_>, slot: u32, limit: Option<usize>) -> State<'_> {
    let (trace, entry, snapshot) = (target.trace(), target.entry, target.snapshot());
    let carving = entry.carving(target.index);
    let categories = entry.categories(target.index);
    let live = now(async |budget| LiveSet::new(trace, slot, budget).await);
    let segments = live.segments(carving);
    let blocks = live.blocks();
    let (mut stacks, places) =
        (StackTable::default(), now(async |budget| BlockPlaces::new(target, budget).await));
    let mut backward = BackwardTable::default();
    let mut row = |(&i, place): (&u32, Option<BackwardRecord>)| {
        let notes = notes(target, i);
        let block = &trace.blocks[i as usize];
        let guess = categories.get(i);
        LiveBlockRecord {
            address: block.address.plain(),
            bytes: block.bytes.0,
            block_bytes: carving.sizes[i as usize].0,
            category: guess.category,
            candidates: guess.candidates,
            alloc_event: block.alloc_event().map(|EventIndex(event)| event),
            state: if carving.is_allocated(trace, i, slot) {
                "active_allocated"
            } else {
                "active_pending_free"
            },
            stream: snapshot.stream(block.stream),
            pool: places.pool(i),
            segment_type: places.segment_type(i),
            of_free: block.has_stack_of_free(),
            site: block_site(target, block),
            backward: place.map(|place| backward.add(place)),
            user_metadata: notes.metadata,
            annotations: notes.annotations,
            holders: holders::of_block(target, i).into_iter().collect(),
            stack: stacks.add(snapshot, block.stack),
        }
    };
    let bytes = |i: &u32| trace.blocks[*i as usize].bytes.0;
    let shown = largest(blocks.len(), limit, |at| bytes(&blocks[at]));
    let shown: Vec<u32> = shown.map(|at| blocks[at]).collect();
    let of_backward =
        now(async |budget| backward::of_blocks(target, shown.iter().copied(), budget).await);
    let block_rows: Vec<LiveBlockRecord<'_>> =
        shown.iter().zip(of_backward).map(&mut row).collect();
    let shown = largest(segments.len(), limit, |at| segments[at].size.0);
    let segment_row = |at: usize| {
        let segment = &segments[at];
        segment_record(target, segment, stacks.add(snapshot, segment.stack))
    };
    let segment_rows: Vec<SegmentRecord> = shown.map(segment_row).collect();
    State {
        schema: "vramscope.state/1",
        path: target.path,
        device: target.device(),
        event: event_of(slot),
        time_us: time_of(trace, slot),
        requested_bytes: trace.requested.at(slot),
        active_bytes: carving.active.at(slot),
        allocated_bytes: carving.allocated.at(slot),
        reserved_bytes: segments.iter().map(|s| s.size.0).sum(),
        categories: by_category(blocks.iter().map(|i| (categories.get(*i).category, bytes(i)))),
        omitted: blocks.len() - block_rows.len(),
        blocks: block_rows,
        free: free_records(snapshot, &segments),
        segments_omitted: segments.len() - segment_rows.len(),
        segments: segment_rows,
        backward,
        stacks,
    }
}

/// The indices of the `limit` largest of `count` items, in ascending order; all without a limit.
pub(crate) fn largest(
    count: usize,
    limit: Option<usize>,
    size: impl Fn(usize) -> u64,
) -> impl Iterator<Item = usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if let Some(limit) = limit.filter(|&limit| limit < count) {
        order.sort_by_key(|&at| Reverse(size(at)));
        order.truncate(limit);
        order.sort_unstable();
    }
    order.into_iter()
}
