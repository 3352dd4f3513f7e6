//! `vramscope segments`: reserved and free memory at one event, and the segment events of the whole
//! window.

use super::{StackTable, Target, event_of, row_site, time_of};
use crate::columns::{Column, Rows};
use crate::state::largest;
use crate::text::{pool, pool_text, segment_type};
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_snapshot::Snapshot;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{
    Content, Fragmentation, FreeKind, LargestFree, LiveSet, Pin, SegmentState, free_shares, pins,
};
use vramscope_units::{Addr, Bytes, grouped};

/// `vramscope.segments/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segments<'a> {
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
    /// The segments by address; with `--limit`, the largest.
    pub segments: Vec<SegmentRecord>,
    /// The number of segments left out by `--limit`.
    pub omitted: usize,
    /// Free memory by pool, stream and size class. Blocks never move between these.
    pub free: Vec<FreeRecord>,
    /// Segments that few blocks keep from being returned to the driver, sorted by
    /// [`PinRecord::kept`], the largest first; with `--limit`, that many.
    pub pins: Vec<PinRecord>,
    /// Free memory over the window.
    pub fragmentation: FragmentationRecord,
    /// Segment events of the window.
    pub churn: ChurnRecord,
    /// With `--curve`: the largest free piece of every pool, stream and size class over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// The call stacks of `segments`, innermost frame first.
    pub stacks: StackTable<'a>,
}

/// A segment.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SegmentRecord {
    /// The address: `0x...`.
    pub address: Addr,
    /// Bytes reserved.
    pub total_size: Bytes,
    /// `small` (requests up to 1 MiB) or `large`.
    pub segment_type: &'static str,
    /// The stream's handle; 0 is the default stream.
    pub stream: i64,
    /// The memory pool: `[0, 0]` is the default pool; null if the file does not record pools.
    pub pool: Option<[u64; 2]>,
    /// True for a mapped range of an expandable segment.
    pub is_expandable: bool,
    /// Block sizes of allocated blocks.
    pub allocated: Bytes,
    /// Block sizes of allocated blocks and of blocks whose free is pending.
    pub active: Bytes,
    /// Requested bytes of the active blocks.
    pub requested: Bytes,
    /// Free bytes.
    pub free: Bytes,
    /// Bytes of the largest free piece.
    pub largest_free: Bytes,
    /// Blocks and free pieces by address, without gaps.
    pub blocks: Vec<PieceRecord>,
    /// The call site: the stack's innermost frame in the user's own code.
    pub site: String,
    /// The index in the report's `stacks` of the call stack that reserved the segment.
    pub stack: u32,
}

/// A piece of a segment: a block or free memory.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PieceRecord {
    /// The address: `0x...`.
    pub address: Addr,
    /// Size in bytes.
    pub size: Bytes,
    /// `active_allocated`, `active_pending_free` or `inactive`.
    pub state: &'static str,
    /// Requested bytes; 0 for free memory.
    pub requested_size: Bytes,
}

/// Free memory of one pool, stream and size class.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FreeRecord {
    /// The memory pool: `[0, 0]` is the default pool; null if the file does not record pools.
    pub pool: Option<[u64; 2]>,
    /// The stream's handle; 0 is the default stream.
    pub stream: i64,
    /// `small` or `large`.
    pub segment_type: &'static str,
    /// Reserved bytes.
    pub reserved: u64,
    /// Bytes of active blocks.
    pub active: u64,
    /// Free bytes that the allocator caches.
    pub free: u64,
    /// Bytes of the largest free piece.
    pub largest_free: u64,
}

/// A segment in which at most an eighth is in use. It can be returned to the driver only when its
/// blocks are freed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PinRecord {
    /// The segment's address: `0x...`.
    pub segment: String,
    /// The number of blocks in it.
    pub blocks: u32,
    /// Bytes of these blocks.
    pub active: u64,
    /// The other bytes of the segment.
    pub kept: u64,
    /// The address of the largest block: `0x...`.
    pub largest_block: String,
    /// The largest block's call site.
    pub site: String,
    /// The index in the report's `stacks` of the largest block's call stack.
    pub stack: u32,
}

/// Free memory over the window.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FragmentationRecord {
    /// Free bytes that the allocator caches after the event.
    pub free: u64,
    /// Bytes of the largest free piece after the event.
    pub largest_free: u64,
    /// 1 - largest / free: 0 if all free memory is one piece.
    pub ratio: f64,
    /// The maximum of free bytes over the window.
    pub max_free: u64,
    /// The first event after which that maximum is reached.
    pub max_free_event: i64,
}

/// The largest free piece over time. A request that is larger needs new memory from the driver.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// The first event of each part of the window; -1 is the state before the window.
    pub events: Vec<i64>,
    /// Pools, streams and size classes, sorted by `most`, the largest first.
    pub largest_free: Vec<CurveRecord>,
}

/// The largest free piece of one pool, stream and size class over time.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurveRecord {
    /// The memory pool: `[0, 0]` is the default pool. Segments without a pool count toward it.
    pub pool: Option<[u64; 2]>,
    /// The stream's handle; 0 is the default stream.
    pub stream: i64,
    /// `small` or `large`.
    pub segment_type: &'static str,
    /// The maximum over the window, in bytes.
    pub most: u64,
    /// The first event after which that maximum is reached; -1 is the state before the window.
    pub most_event: i64,
    /// The maximum in each part of the window, in bytes.
    pub bytes: Vec<u64>,
}

/// The segment events of the window: memory reserved from the driver and returned to it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChurnRecord {
    /// `segment_alloc` events.
    pub segment_allocs: u32,
    /// Bytes of the `segment_alloc` events.
    pub segment_alloc_bytes: u64,
    /// `segment_free` events.
    pub segment_frees: u32,
    /// Bytes of the `segment_free` events.
    pub segment_free_bytes: u64,
    /// `segment_map` events.
    pub segment_maps: u32,
    /// Bytes of the `segment_map` events.
    pub segment_map_bytes: u64,
    /// `segment_unmap` events.
    pub segment_unmaps: u32,
    /// Bytes of the `segment_unmap` events.
    pub segment_unmap_bytes: u64,
}

/// The cost of a segment's record with its call stack, in units of [`Budget`].
const RECORD_COST: u64 = 512;

/// The cost of a piece of a segment, in units of [`Budget`].
const PIECE_COST: u64 = 16;

/// The segments of a device in a slot, at most `limit`, the largest ones.
pub async fn segments<'a>(
    target: Target<'a>,
    slot: u32,
    limit: Option<usize>,
    budget: &mut Budget,
) -> Segments<'a> {
    let (trace, snapshot, carving) =
        (target.trace(), target.snapshot(), target.entry.carving(target.index));
    let states = states(target, slot, budget).await;
    let cached = Fragmentation::new(snapshot, trace, carving, budget).await;
    let (max_slot, max_free) =
        cached.free.largest_sliced(0..trace.slots(), budget).await.unwrap_or_default();
    let churn = cached.churn;
    let free = free_records(snapshot, &states);
    let count = states.len();
    let shown: Vec<usize> = largest(count, limit, |at| states[at].size.0).collect();
    let mut stacks = StackTable::default();
    let rows = records(target, shown.iter().map(|&at| &states[at]), &mut stacks, budget);
    let rows = rows.await;
    let mut pinned = pins(snapshot, &states);
    pinned.truncate(limit.unwrap_or(usize::MAX));
    let pins = pinned.iter().map(|pin| pin_record(target, &states, pin, &mut stacks)).collect();
    Segments {
        schema: "vramscope.segments/1",
        path: target.path,
        device: target.device(),
        event: event_of(slot),
        time_us: time_of(trace, slot),
        free,
        pins,
        omitted: count - rows.len(),
        segments: rows,
        fragmentation: FragmentationRecord {
            free: cached.free.at(slot),
            largest_free: cached.largest.at(slot),
            ratio: cached.ratio(slot),
            max_free,
            max_free_event: event_of(max_slot),
        },
        churn: ChurnRecord {
            segment_allocs: churn.allocs,
            segment_alloc_bytes: churn.alloc_bytes.0,
            segment_frees: churn.frees,
            segment_free_bytes: churn.free_bytes.0,
            segment_maps: churn.maps,
            segment_map_bytes: churn.map_bytes.0,
            segment_unmaps: churn.unmaps,
            segment_unmap_bytes: churn.unmap_bytes.0,
        },
        curve: None,
        stacks,
    }
}

/// The largest free piece of every pool, stream and size class, as the maxima in at most `parts`
/// equal parts of the window.
pub fn curve(target: Target<'_>, parts: u32) -> Curve {
    let (snapshot, slots) = (target.snapshot(), target.trace().slots());
    let parts = parts.clamp(1, slots.max(1));
    let edge = |part: u32| (u64::from(slots) * u64::from(part) / u64::from(parts)) as u32;
    let all = target.entry.largest_free(target.index);
    let largest_free = by_most(all, slots)
        .into_iter()
        .map(|(of, (slot, most))| CurveRecord {
            pool: pool(snapshot, of.kind.pool),
            stream: snapshot.stream(of.kind.stream),
            segment_type: class(of.kind),
            most: most.0,
            most_event: event_of(slot),
            bytes: (0..parts)
                .map(|part| of.most_in(edge(part)..edge(part + 1)).map_or(0, |(_, most)| most.0))
                .collect(),
        })
        .collect();
    Curve { events: (0..parts).map(|part| event_of(edge(part))).collect(), largest_free }
}

/// The largest free range of each kind with its maximum over the window and the first slot that has
/// it, the largest first.
pub fn by_most(all: &[LargestFree], slots: u32) -> Vec<(&LargestFree, (u32, Bytes))> {
    let most = |of| (of, LargestFree::most_in(of, 0..slots).unwrap_or_default());
    let mut sorted: Vec<_> = all.iter().map(most).collect();
    sorted.sort_by_key(|(of, (_, most))| (Reverse(*most), of.kind));
    sorted
}

/// The layout of the segments in a slot.
pub async fn states(target: Target<'_>, slot: u32, budget: &mut Budget) -> Vec<SegmentState> {
    LiveSet::new(target.trace(), slot, budget).await.segments(target.entry.carving(target.index))
}

/// The records of segments. Their call stacks are added to `stacks`.
pub async fn records<'a>(
    target: Target<'a>,
    states: impl Iterator<Item = &SegmentState>,
    stacks: &mut StackTable<'a>,
    budget: &mut Budget,
) -> Vec<SegmentRecord> {
    let mut records = Vec::new();
    for state in states {
        budget.charge(RECORD_COST + PIECE_COST * state.pieces.len() as u64).await;
        let stack = stacks.add(target.snapshot(), state.stack);
        records.push(segment_record(target, state, stack));
    }
    records
}

/// The record of a segment, with its pieces. `stack` is the index of its call stack in the report.
pub fn segment_record(target: Target<'_>, state: &SegmentState, stack: u32) -> SegmentRecord {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    let piece = |p: &vramscope_trace::Piece| {
        let (state, requested_size) = match p.content {
            Content::Free => ("inactive", Bytes(0)),
            Content::Block { block, pending } => (
                if pending { "active_pending_free" } else { "active_allocated" },
                trace.blocks[block as usize].bytes,
            ),
        };
        PieceRecord { address: p.address, size: p.size, state, requested_size }
    };
    let no_stack = trace.no_stack_of_segment(state.stack, state.enters);
    SegmentRecord {
        address: state.address,
        total_size: state.size,
        segment_type: segment_type(state.segment_type),
        stream: snapshot.stream(state.stream),
        pool: pool(snapshot, state.pool),
        is_expandable: state.is_expandable,
        allocated: state.allocated,
        active: state.active,
        requested: state.requested,
        free: state.free,
        largest_free: state.largest_free,
        blocks: state.pieces.iter().map(piece).collect(),
        site: row_site(target.entry, state.stack, no_stack),
        stack,
    }
}

/// Rows of the table of segments.
pub struct SegmentRows;

impl Rows for SegmentRows {
    type Row<'a> = SegmentRecord;
}

/// The columns of the table of segments, in order. CSV has the names of the record.
pub fn columns() -> Vec<Column<SegmentRows>> {
    type Of = Column<SegmentRows>;
    vec![
        Of::new("address", "Address", |row| row.address),
        Of::new("total_bytes", "Bytes reserved", |row| row.total_size).named_in_csv("total_size"),
        Of::text("segment_type", "`small` or `large`", |row| row.segment_type.into()),
        Of::new("stream", "Stream; 0 is the default stream", |row| row.stream),
        Of::maybe_text("pool", "Memory pool; `(0, 0)` is the default pool", |row| {
            row.pool.map(|pool| pool_text(pool).into())
        }),
        Of::new("is_expandable", "Whether it is a mapped range of an expandable segment", |row| {
            row.is_expandable
        }),
        Of::new("allocated_bytes", "Sizes of allocated blocks", |row| row.allocated)
            .named_in_csv("allocated"),
        Of::new(
            "active_bytes",
            "Sizes of allocated blocks and of blocks whose free is pending",
            |row| row.active,
        )
        .named_in_csv("active"),
        Of::new("requested_bytes", "Requested bytes of active blocks", |row| row.requested)
            .named_in_csv("requested"),
        Of::new("free_bytes", "Free bytes", |row| row.free).named_in_csv("free"),
        Of::new("largest_free_bytes", "Largest free piece", |row| row.largest_free)
            .named_in_csv("largest_free"),
        Of::text(
            "site",
            "Call site with its line: the innermost frame in the user's own code",
            |row| row.site.as_str().into(),
        ),
    ]
}

fn pin_record<'a>(
    target: Target<'a>,
    states: &[SegmentState],
    pin: &Pin,
    stacks: &mut StackTable<'a>,
) -> PinRecord {
    let trace = target.trace();
    let block = &trace.blocks[pin.block as usize];
    PinRecord {
        segment: states[pin.segment as usize].address.plain(),
        blocks: pin.blocks,
        active: pin.active.0,
        kept: pin.kept.0,
        largest_block: block.address.plain(),
        site: row_site(target.entry, block.stack, trace.no_stack(block)),
        stack: stacks.add(target.snapshot(), block.stack),
    }
}

fn class(kind: FreeKind) -> &'static str {
    if kind.is_small { "small" } else { "large" }
}

/// What a pin says: `1.50 MiB keep 198.50 MiB from being returned`.
pub fn pin_text(pin: &Pin) -> String {
    let who = match pin.blocks {
        1 => "1 block".to_owned(),
        count => format!("{} blocks", grouped(count.into())),
    };
    let verb = if pin.blocks == 1 { "keeps" } else { "keep" };
    format!("{who} of {} {verb} {} from being returned", pin.active, pin.kept)
}

/// Free memory by pool, stream and size class.
pub(crate) fn free_records(snapshot: &Snapshot, states: &[SegmentState]) -> Vec<FreeRecord> {
    let record = |f: vramscope_trace::FreeShare| FreeRecord {
        pool: pool(snapshot, f.kind.pool),
        stream: snapshot.stream(f.kind.stream),
        segment_type: class(f.kind),
        reserved: f.reserved.0,
        active: f.active.0,
        free: f.free.0,
        largest_free: f.largest.0,
    };
    free_shares(states).into_iter().map(record).collect()
}
