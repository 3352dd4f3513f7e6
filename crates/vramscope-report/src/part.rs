//! A part of a recording as a snapshot of its own: the events of a range, and the memory as it is
//! after them.
//!
//! Blocks from before the range follow from the frees in it and from the segments behind it, as in
//! a recording that starts late. The free of such a block begins before the range only if the whole
//! recording tells: in the part the block is allocated until its free completes.

use crate::segments::states;
use crate::target::Target;
use rustc_hash::FxHashMap;
use std::ops::Range;
use vramscope_snapshot::{Annotation, Block, BlockState, Device, Segment, Snapshot, Stage, StrId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Content, SegmentState, Trace};
use vramscope_units::{Bytes, Micros};

/// The snapshot that a recorder would have written after the last event of `events`, if it had
/// begun with the first. Of other devices it has nothing. `None` if the device has fewer events.
pub async fn part(target: Target<'_>, events: Range<u32>, budget: &mut Budget) -> Option<Snapshot> {
    let trace = target.trace();
    if events.start > events.end || events.end >= trace.slots() {
        return None;
    }
    let states = states(target, events.end, budget).await;
    let (mut segments, mut blocks) = (Vec::new(), Vec::new());
    for state in &states {
        budget.charge(state.pieces.len() as u64).await;
        segments.push(segment(trace, state, &mut blocks));
    }
    let whole = &trace.device;
    let first = whole.events.start;
    let device = Device {
        events: first + events.start..first + events.end,
        segments: 0..segments.len() as u32,
        excerpt: None,
        ..whole.clone()
    };
    let annotations = annotations(target.snapshot(), trace, &events);
    let whole = target.snapshot().clone();
    Some(Snapshot { segments, blocks, annotations, devices: vec![device], ..whole })
}

/// A segment as PyTorch lists it, and its blocks.
fn segment(trace: &Trace, state: &SegmentState, blocks: &mut Vec<Block>) -> Segment {
    let start = blocks.len() as u32;
    for piece in &state.pieces {
        let (address, size) = (piece.address, piece.size);
        blocks.push(match piece.content {
            Content::Free => Block {
                address,
                size,
                requested_size: Bytes(0),
                state: BlockState::Inactive,
                stack: vramscope_snapshot::StackId::EMPTY,
            },
            Content::Block { block, pending } => {
                let block = &trace.blocks[block as usize];
                let state = if pending { BlockState::PendingFree } else { BlockState::Allocated };
                Block { address, size, requested_size: block.bytes, state, stack: block.stack }
            }
        });
    }
    Segment {
        device: trace.device.device,
        address: state.address,
        total_size: state.size,
        allocated_size: state.allocated,
        active_size: state.active,
        requested_size: state.requested,
        stream: state.stream,
        segment_type: state.segment_type,
        pool: state.pool,
        is_expandable: state.is_expandable,
        stack: state.stack,
        blocks: start..blocks.len() as u32,
    }
}

/// The ends of the named ranges that are open at some time of the part. None without a clock.
fn annotations(snapshot: &Snapshot, trace: &Trace, events: &Range<u32>) -> Vec<Annotation> {
    let Some(clock) = trace.clock.as_ref().filter(|_| !events.is_empty()) else {
        return Vec::new();
    };
    let at = |event: u32| Micros(clock.start.0 + clock.offset(event) as i64);
    let (from, to) = (at(events.start), at(events.end - 1));
    let mut open: FxHashMap<StrId, Vec<usize>> = FxHashMap::default();
    let mut keep = vec![false; snapshot.annotations.len()];
    for (index, mark) in snapshot.annotations.iter().enumerate() {
        let Some(time) = mark.time else { continue };
        match mark.stage {
            Stage::Start => {
                open.entry(mark.name).or_default().push(index);
                keep[index] = from <= time && time <= to;
            }
            Stage::End => {
                let start = open.get_mut(&mark.name).and_then(Vec::pop);
                let began = start.and_then(|start| snapshot.annotations[start].time);
                if time >= from && began.is_none_or(|began| began <= to) {
                    keep[index] = time <= to;
                    // It began before the part, and is open in it.
                    if let Some(start) = start {
                        keep[start] = true;
                    }
                }
            }
        }
    }
    for start in open.into_values().flatten() {
        keep[start] = snapshot.annotations[start].time.is_some_and(|time| time <= to);
    }
    let kept = snapshot.annotations.iter().zip(keep);
    kept.filter_map(|(mark, keep)| keep.then_some(*mark)).collect()
}
