//! Segments that few blocks keep from being returned to the driver.
use crate::state::{Content, SegmentState};
use std::cmp::Reverse;
use vramscope_snapshot::{PoolId, Snapshot};
use vramscope_units::Bytes;

/// A pinned segment is in use by at most one part in this many.
const LEAST_UNUSED: u64 = 8;

/// A pinned segment keeps at least this much: less is not worth a change. It leaves out all
/// segments of the small pool, which have 2 MiB.
const LEAST_KEPT: u64 = 2 << 20;

/// A segment of which little is in use. The allocator returns only whole segments: `release_blocks`
/// in `c10/cuda/CUDACachingAllocator.cpp` takes free blocks without neighbors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The index of the segment.
    pub segment: u32,
    /// The largest block in it.
    pub block: u32,
    /// The number of blocks in it.
    pub blocks: u32,
    /// Bytes of these blocks.
    pub active: Bytes,
    /// The other bytes of the segment.
    pub kept: Bytes,
}

/// The pinned segments, sorted by [`Pin::kept`], the largest first.
///
/// Mapped ranges of expandable segments are left out, because the allocator unmaps the pages
/// between their blocks. So are private pools, whose segments stay until their graph is deleted.
pub fn pins(snapshot: &Snapshot, segments: &[SegmentState]) -> Vec<Pin> {
    let is_private =
        |segment: &SegmentState| snapshot.pool(segment.pool).is_some_and(|p| p != PoolId::DEFAULT);
    let mut pins = Vec::new();
    for (index, segment) in (0..).zip(segments) {
        let (active, kept) =
            (segment.active, Bytes(segment.size.0.saturating_sub(segment.active.0)));
        let is_pinned = active.0 > 0 && active.0 <= segment.size.0 / LEAST_UNUSED;
        if !is_pinned || kept.0 < LEAST_KEPT || segment.is_expandable || is_private(segment) {
            continue;
        }
        let mut largest = (0, 0);
        let mut blocks = 0;
        for piece in &segment.pieces {
            if let Content::Block { block, .. } = piece.content {
                blocks += 1;
                largest = largest.max((piece.size.0, block));
            }
        }
        pins.push(Pin { segment: index, block: largest.1, blocks, active, kept });
    }
    pins.sort_by_key(|pin| (Reverse(pin.kept), pin.segment));
    pins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slicing::now;
    use crate::{Carving, LiveSet, Trace};
    use vramscope_snapshot::Reader;

    /// A segment of `size` MiB with blocks of these MiB at its start.
    fn segment(at: u64, size: u64, blocks: &[u64], rest: &str) -> String {
        let mut address = at << 20;
        let mut rows: Vec<String> = Vec::new();
        for mib in blocks {
            let bytes = mib << 20;
            rows.push(format!(
                r#"{{"address": {address}, "size": {bytes}, "requested_size": {bytes},
                    "state": "active_allocated"}}"#
            ));
            address += bytes;
        }
        let free = ((at + size) << 20) - address;
        rows.push(format!(
            r#"{{"address": {address}, "size": {free}, "requested_size": 0, "state": "inactive"}}"#
        ));
        format!(
            r#"{{"device": 0, "address": {}, "total_size": {}, "blocks": [{}]{rest}}}"#,
            at << 20,
            size << 20,
            rows.join(",")
        )
    }

    #[test]
    fn only_segments_with_little_in_use_are_pinned() {
        let json = format!(
            r#"{{"device_traces": [[]], "segments": [{}]}}"#,
            [
                segment(100, 64, &[2, 6], ""),
                segment(200, 64, &[9], ""),
                segment(300, 160, &[1], ""),
                segment(500, 64, &[], ""),
                segment(600, 64, &[1], r#", "segment_pool_id": [1, 0]"#),
                segment(700, 64, &[1], r#", "is_expandable": true"#),
            ]
            .join(",")
        );
        let mut reader = Reader::default();
        reader.feed(json.as_bytes()).expect("a snapshot");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let trace = &Trace::all(&snapshot)[0];
        let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
        let states = now(async |budget| LiveSet::new(trace, 0, budget).await).segments(&carving);
        let found = pins(&snapshot, &states);
        let brief: Vec<_> = found
            .iter()
            .map(|pin| {
                let largest = trace.blocks[pin.block as usize].address.0 >> 20;
                (pin.segment, largest, pin.blocks, pin.active.0 >> 20, pin.kept.0 >> 20)
            })
            .collect();
        assert_eq!(brief, [(2, 300, 1, 1, 159), (0, 102, 2, 8, 56)]);
    }
}
