//! `vramscope segments`: what is reserved at a moment, what is free in it, and what it cost over
//! the window.

use super::{FrameRecord, Target, event_of, frames, site, time_of};
use crate::text::{pool, segment_type};
use serde::Serialize;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{Content, Fragmentation, LiveSet, SegmentState, free_shares};
use vramscope_snapshot::Snapshot;

/// `vramscope.segments/1`.
#[derive(Debug, Serialize)]
pub struct Segments<'a> {
    /// The name and version of this form.
    pub schema: &'static str,
    /// The file.
    pub path: &'a str,
    /// The device.
    pub device: u32,
    /// The event after which this is so, from 0; -1 before the window.
    pub event: i64,
    /// That event's time; null without a clock.
    pub time_us: Option<i64>,
    /// By address.
    pub segments: Vec<SegmentRecord<'a>>,
    /// Free memory by pool, stream and size class: blocks never move between these.
    pub free: Vec<FreeRow>,
    /// Free memory over the window.
    pub fragmentation: FragmentationRow,
    /// Segment events of the window.
    pub churn: ChurnRow,
}

/// A segment.
#[derive(Debug, Serialize)]
pub struct SegmentRecord<'a> {
    /// `0x...`.
    pub address: String,
    /// Bytes reserved.
    pub total_size: u64,
    /// `small` (requests up to 1 MiB) or `large`.
    pub segment_type: &'static str,
    /// The stream's handle.
    pub stream: i64,
    /// `[0, 0]` is the default pool; null where the file does not tell.
    pub pool: Option<[u64; 2]>,
    /// Whether it is a mapped range of an expandable segment.
    pub is_expandable: bool,
    /// Block sizes of what the program holds.
    pub allocated: u64,
    /// The same with what waits for its free.
    pub active: u64,
    /// Requested bytes of the active blocks.
    pub requested: u64,
    /// Bytes that are free to use.
    pub free: u64,
    /// The largest free piece.
    pub largest_free: u64,
    /// Blocks and free pieces, by address, without gaps.
    pub blocks: Vec<PieceRow>,
    /// The call site that names the stack: its innermost frame that is the user's own.
    pub site: String,
    /// The stack of the allocation that made it, innermost first.
    pub frames: Vec<FrameRecord<'a>>,
}

/// A piece of a segment.
#[derive(Debug, Serialize)]
pub struct PieceRow {
    /// `0x...`.
    pub address: String,
    /// Bytes of it.
    pub size: u64,
    /// `active_allocated`, `active_pending_free` or `inactive`.
    pub state: &'static str,
    /// Requested bytes; 0 when it is free.
    pub requested_size: u64,
}

/// Free memory of one pool, stream and size class.
#[derive(Debug, Serialize)]
pub struct FreeRow {
    /// `[0, 0]` is the default pool; null where the file does not tell.
    pub pool: Option<[u64; 2]>,
    /// The stream's handle.
    pub stream: i64,
    /// `small` or `large`.
    pub segment_type: &'static str,
    /// Bytes reserved for it.
    pub reserved: u64,
    /// Bytes of blocks that are not yet free.
    pub active: u64,
    /// Cached-free bytes.
    pub free: u64,
    /// The largest free piece.
    pub largest_free: u64,
}

/// Free memory over the window.
#[derive(Debug, Serialize)]
pub struct FragmentationRow {
    /// Cached-free bytes after this event.
    pub free: u64,
    /// The largest free piece then.
    pub largest_free: u64,
    /// 1 - largest / free: 0 when all of it is one piece.
    pub ratio: f64,
    /// The most that was ever free.
    pub max_free: u64,
    /// The first event after which that was so.
    pub max_free_event: i64,
}

/// How often memory was taken from the device and given back.
#[derive(Debug, Serialize)]
pub struct ChurnRow {
    /// `segment_alloc` events.
    pub segment_allocs: u32,
    /// Their bytes.
    pub segment_alloc_bytes: u64,
    /// `segment_free` events.
    pub segment_frees: u32,
    /// Their bytes.
    pub segment_free_bytes: u64,
    /// `segment_map` events.
    pub segment_maps: u32,
    /// Their bytes.
    pub segment_map_bytes: u64,
    /// `segment_unmap` events.
    pub segment_unmaps: u32,
    /// Their bytes.
    pub segment_unmap_bytes: u64,
}

/// What writing out a segment costs, with its stack, and one piece of it.
const ROW: u64 = 512;
const PIECE: u64 = 16;

/// The segments in a slot.
pub fn segments(target: Target<'_>, slot: u32) -> Segments<'_> {
    run_to_completion(segments_sliced(target, slot, &mut Budget::unlimited()))
}

/// The same in slices.
pub async fn segments_sliced<'a>(
    target: Target<'a>,
    slot: u32,
    budget: &mut Budget,
) -> Segments<'a> {
    let (trace, snapshot, carving) =
        (target.trace(), target.snapshot(), target.entry.carving(target.index));
    let states = states_sliced(target, slot, budget).await;
    let cached = Fragmentation::sliced(snapshot, trace, carving, budget).await;
    let (most, max_free) =
        cached.free.largest_sliced(0..trace.slots(), budget).await.unwrap_or_default();
    let churn = cached.churn;
    Segments {
        schema: "vramscope.segments/1",
        path: target.path,
        device: target.device(),
        event: event_of(slot),
        time_us: time_of(trace, slot),
        free: free_rows(snapshot, &states),
        segments: rows_sliced(target, &states, budget).await,
        fragmentation: FragmentationRow {
            free: cached.free.at(slot),
            largest_free: cached.largest.at(slot),
            ratio: cached.ratio(slot),
            max_free,
            max_free_event: event_of(most),
        },
        churn: ChurnRow {
            segment_allocs: churn.allocs,
            segment_alloc_bytes: churn.alloc_bytes.0,
            segment_frees: churn.frees,
            segment_free_bytes: churn.free_bytes.0,
            segment_maps: churn.maps,
            segment_map_bytes: churn.map_bytes.0,
            segment_unmaps: churn.unmaps,
            segment_unmap_bytes: churn.unmap_bytes.0,
        },
    }
}

/// How segments were laid out in a slot, in slices.
pub async fn states_sliced(
    target: Target<'_>,
    slot: u32,
    budget: &mut Budget,
) -> Vec<SegmentState> {
    LiveSet::sliced(target.trace(), slot, budget).await.segments(target.entry.carving(target.index))
}

/// A row for each of them, in slices.
pub async fn rows_sliced<'a>(
    target: Target<'a>,
    states: &[SegmentState],
    budget: &mut Budget,
) -> Vec<SegmentRecord<'a>> {
    let mut rows = Vec::with_capacity(states.len());
    for state in states {
        budget.charge(ROW + PIECE * state.pieces.len() as u64).await;
        rows.push(segment_row(target, state));
    }
    rows
}

/// A segment with all that lies in it.
pub fn segment_row<'a>(target: Target<'a>, state: &SegmentState) -> SegmentRecord<'a> {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    let piece = |p: &vramscope_analysis::Piece| {
        let (state, requested_size) = match p.content {
            Content::Free => ("inactive", 0),
            Content::Block { block, pending } => (
                if pending { "active_pending_free" } else { "active_allocated" },
                trace.blocks[block as usize].bytes.0,
            ),
        };
        PieceRow { address: p.address.plain(), size: p.size.0, state, requested_size }
    };
    SegmentRecord {
        address: state.address.plain(),
        total_size: state.size.0,
        segment_type: segment_type(state.segment_type),
        stream: snapshot.stream(state.stream),
        pool: pool(snapshot, state.pool),
        is_expandable: state.is_expandable,
        allocated: state.allocated.0,
        active: state.active.0,
        requested: state.requested.0,
        free: state.free.0,
        largest_free: state.largest_free.0,
        blocks: state.pieces.iter().map(piece).collect(),
        site: site(target.entry, state.stack),
        frames: frames(snapshot, state.stack),
    }
}

/// Free memory by pool, stream and size class.
pub fn free_rows(snapshot: &Snapshot, states: &[SegmentState]) -> Vec<FreeRow> {
    let row = |f: vramscope_analysis::FreeShare| FreeRow {
        pool: pool(snapshot, f.kind.pool),
        stream: snapshot.stream(f.kind.stream),
        segment_type: if f.kind.is_small { "small" } else { "large" },
        reserved: f.reserved.0,
        active: f.active.0,
        free: f.free.0,
        largest_free: f.largest.0,
    };
    free_shares(states).into_iter().map(row).collect()
}
