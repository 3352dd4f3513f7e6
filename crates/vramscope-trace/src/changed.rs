//! What changed between two states of the segments: what went, what was mapped, what was released.
use crate::state::{Content, Piece, SegmentState};
use std::ops::Range;
use vramscope_units::{Addr, Bytes};

/// How a piece of a [`ChangedSegment`] differs from the earlier state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PieceKind {
    /// A block or free memory of the later state.
    #[default]
    Now,
    /// A block of the earlier state that is gone. Its place is free now.
    Went,
    /// Free memory that was not reserved in the earlier state.
    Mapped,
    /// Memory that is not reserved any more, and was free in the earlier state.
    Released,
}

/// A segment of the later state, or a released part of a segment of the earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSegment {
    /// The segment. Its pieces are split where `kinds` change, and blocks that went are blocks.
    pub state: SegmentState,
    /// The kind of each piece; empty if all are [`PieceKind::Now`].
    pub kinds: Vec<PieceKind>,
    /// Whether it is a released part.
    pub is_released: bool,
}

/// The parts of sorted `ranges` that no range of `cover`, which is sorted too, contains.
pub fn outside(ranges: &[Range<u64>], cover: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let mut next = 0;
    for range in ranges {
        while cover.get(next).is_some_and(|covered| covered.end <= range.start) {
            next += 1;
        }
        let mut at = range.start;
        for covered in &cover[next..] {
            if covered.start >= range.end {
                break;
            }
            if at < covered.start {
                parts.push(at..covered.start);
            }
            at = at.max(covered.end);
        }
        if at < range.end {
            parts.push(at..range.end);
        }
    }
    parts
}

/// The segments of a later state with what the earlier one had in their free memory, and the
/// released parts of the earlier segments. By address. `is_live` tells whether a block is live in
/// the later state.
pub fn changed_segments(
    before: &[SegmentState],
    after: Vec<SegmentState>,
    is_live: impl Fn(u32) -> bool,
) -> Vec<ChangedSegment> {
    let was_reserved: Vec<Range<u64>> = before.iter().map(range_of).collect();
    let is_reserved: Vec<Range<u64>> = after.iter().map(range_of).collect();
    let went: Vec<Piece> = before
        .iter()
        .flat_map(|segment| &segment.pieces)
        .filter(|piece| matches!(piece.content, Content::Block { block, .. } if !is_live(block)))
        .copied()
        .collect();
    let mut changed: Vec<ChangedSegment> =
        after.into_iter().map(|segment| split(segment, &went, &was_reserved)).collect();
    for segment in before {
        for range in outside(&[range_of(segment)], &is_reserved) {
            changed.push(released(segment, &range, &is_live));
        }
    }
    changed.sort_by_key(|segment| segment.state.address);
    changed
}

fn range_of(segment: &SegmentState) -> Range<u64> {
    let start = segment.address.0;
    start..start.saturating_add(segment.size.0)
}

fn end(piece: &Piece) -> u64 {
    piece.address.0.saturating_add(piece.size.0)
}

/// Splits the free memory of a segment by what was there before.
fn split(mut state: SegmentState, went: &[Piece], was_reserved: &[Range<u64>]) -> ChangedSegment {
    let mut pieces: Vec<Piece> = Vec::with_capacity(state.pieces.len());
    let mut kinds: Vec<PieceKind> = Vec::with_capacity(state.pieces.len());
    let mut push = |range: Range<u64>, content: Content, kind: PieceKind| {
        if range.start < range.end {
            let size = Bytes(range.end - range.start);
            pieces.push(Piece { address: Addr(range.start), size, content });
            kinds.push(kind);
        }
    };
    for piece in &state.pieces {
        let (start, end_of_piece) = (piece.address.0, end(piece));
        if piece.content != Content::Free {
            push(start..end_of_piece, piece.content, PieceKind::Now);
            continue;
        }
        let free = |range: Range<u64>, push: &mut dyn FnMut(Range<u64>, Content, PieceKind)| {
            let mut at = range.start;
            for mapped in outside(std::slice::from_ref(&range), was_reserved) {
                push(at..mapped.start, Content::Free, PieceKind::Now);
                push(mapped.clone(), Content::Free, PieceKind::Mapped);
                at = mapped.end;
            }
            push(at..range.end, Content::Free, PieceKind::Now);
        };
        let mut at = start;
        let first = went.partition_point(|gone| end(gone) <= start);
        for gone in went[first..].iter().take_while(|gone| gone.address.0 < end_of_piece) {
            let (from, until) = (gone.address.0.max(at), end(gone).min(end_of_piece));
            if from < until {
                free(at..from, &mut push);
                push(from..until, gone.content, PieceKind::Went);
                at = until;
            }
        }
        free(at..end_of_piece, &mut push);
    }
    state.pieces = pieces;
    ChangedSegment { state, kinds, is_released: false }
}

/// A part of an earlier segment that is not reserved any more.
fn released(
    segment: &SegmentState,
    range: &Range<u64>,
    is_live: &impl Fn(u32) -> bool,
) -> ChangedSegment {
    let mut state = SegmentState {
        address: Addr(range.start),
        size: Bytes(range.end - range.start),
        pieces: Vec::new(),
        ..*segment
    };
    let mut kinds = Vec::new();
    for piece in &segment.pieces {
        let (from, until) = (piece.address.0.max(range.start), end(piece).min(range.end));
        if from < until {
            let (content, kind) = match piece.content {
                Content::Block { block, .. } if !is_live(block) => (piece.content, PieceKind::Went),
                _ => (Content::Free, PieceKind::Released),
            };
            state.pieces.push(Piece { address: Addr(from), size: Bytes(until - from), content });
            kinds.push(kind);
        }
    }
    ChangedSegment { state, kinds, is_released: true }
}

#[cfg(test)]
mod tests {
    use super::PieceKind::{Mapped, Now, Released, Went};
    use super::*;
    use crate::slicing::now;
    use crate::{Carving, LiveSet, Trace};
    use vramscope_snapshot::Reader;

    #[test]
    fn ranges_outside_of_others_are_found() {
        let all = [0..10, 20..30];
        assert_eq!(outside(&all, &[]), all);
        assert_eq!(outside(&all, &[2..4, 6..25]), [0..2, 4..6, 25..30]);
        assert_eq!(outside(&all, &[0..12, 14..16, 20..40]), []);
        assert_eq!(outside(&[0..4, 8..12], &[0..2, 4..8, 11..40]), [2..4, 8..11]);
    }

    /// Two segments at 100 and 200 MiB before, those at 200 and 300 MiB after. In the second, a
    /// block stays, one goes, and one comes in a part of its place.
    const TRACE: &str = r#"{"device_traces": [[
        {"action": "segment_alloc", "addr": 104857600, "size": 20971520},
        {"action": "alloc", "addr": 104857600, "size": 20971520},
        {"action": "segment_alloc", "addr": 209715200, "size": 20971520},
        {"action": "alloc", "addr": 209715200, "size": 4194304},
        {"action": "alloc", "addr": 213909504, "size": 8388608},
        {"action": "free_requested", "addr": 104857600, "size": 20971520},
        {"action": "free_completed", "addr": 104857600, "size": 20971520},
        {"action": "segment_free", "addr": 104857600, "size": 20971520},
        {"action": "free_requested", "addr": 213909504, "size": 8388608},
        {"action": "free_completed", "addr": 213909504, "size": 8388608},
        {"action": "alloc", "addr": 213909504, "size": 2097152},
        {"action": "segment_alloc", "addr": 314572800, "size": 20971520},
        {"action": "alloc", "addr": 314572800, "size": 12582912}
    ]], "segments": [
        {"device": 0, "address": 209715200, "total_size": 20971520, "blocks": [
            {"address": 209715200, "size": 4194304, "requested_size": 4194304,
             "state": "active_allocated"},
            {"address": 213909504, "size": 2097152, "requested_size": 2097152,
             "state": "active_allocated"},
            {"address": 216006656, "size": 14680064, "requested_size": 0, "state": "inactive"}]},
        {"device": 0, "address": 314572800, "total_size": 20971520, "blocks": [
            {"address": 314572800, "size": 12582912, "requested_size": 12582912,
             "state": "active_allocated"},
            {"address": 327155712, "size": 8388608, "requested_size": 0, "state": "inactive"}]}
    ]}"#;

    #[test]
    fn free_memory_is_split_by_what_was_there() {
        let mut reader = Reader::default();
        reader.feed(TRACE.as_bytes()).expect("a snapshot");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let trace = &Trace::all(&snapshot)[0];
        let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
        let states = |slot: u32| {
            now(async |budget| LiveSet::new(trace, slot, budget).await).segments(&carving)
        };
        let between = |from: u32, to: u32| {
            let is_live = |i: u32| {
                let block = &trace.blocks[i as usize];
                block.is_live_at(to)
            };
            let changed = changed_segments(&states(from), states(to), is_live);
            let brief = changed.iter().flat_map(|segment| {
                let kinds = segment.state.pieces.iter().zip(&segment.kinds);
                kinds.map(|(p, kind)| (p.address.0 >> 20, p.size.0 >> 20, *kind))
            });
            brief.collect::<Vec<_>>()
        };
        let forward = [
            (100, 20, Went),
            (200, 4, Now),
            (204, 2, Now),
            (206, 6, Went),
            (212, 8, Now),
            (300, 12, Now),
            (312, 8, Mapped),
        ];
        assert_eq!(between(5, 13), forward);
        let backward = [
            (100, 20, Now),
            (200, 4, Now),
            (204, 8, Now),
            (212, 8, Now),
            (300, 12, Went),
            (312, 8, Released),
        ];
        assert_eq!(between(13, 5), backward);
        assert!(between(5, 5).iter().all(|(.., kind)| *kind == Now));
    }
}
