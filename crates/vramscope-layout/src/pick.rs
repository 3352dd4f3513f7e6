//! Exact picking: which blocks the strip under a point of the timeline stands for.

use crate::axis::Axis;
use crate::merge_threshold::MergeThreshold;
use crate::sweep::Pieces;
use crate::tile::{Detail, Timeline, shown_state};

/// Maximum length of [`Picked::largest`].
const MAX_LISTED: usize = 3;

/// Members that are collected before the list is cut to the [`MAX_LISTED`] largest.
const TRUNCATE_ABOVE: usize = 64;

/// The blocks that a picked strip stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The state that the column shows.
    pub state: u32,
    /// The block. In a merged strip the largest one.
    pub block: u32,
    /// Number of blocks in the strip.
    pub count: u32,
    /// Total bytes of these blocks.
    pub bytes: u64,
    /// The largest of these blocks, largest first. At most 3.
    pub largest: Vec<u32>,
    /// Their group in a grouped stack. `None` if they have several.
    pub group: Option<u32>,
}

/// A point of the timeline, and the scale that is on screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PickPoint {
    /// Log2 of the slots per column.
    pub kx: u8,
    /// Log2 of the bytes per row.
    pub ky: u8,
    /// The slot under the point.
    pub slot: f64,
    /// The height of the point in bytes.
    pub bytes: f64,
    /// Rows per cell. Strips are cut at the edges of cells, and merging restarts there.
    pub cell_rows: u32,
    /// The detail of the tiles.
    pub detail: Detail,
}

impl Timeline {
    /// The strip at a point, merged as [`Timeline::strips`] merges it before any retry. `None`
    /// outside the stack.
    pub fn pick(&mut self, axis: Axis<'_>, point: PickPoint) -> Option<Picked> {
        if !(point.slot >= 0.0 && point.bytes >= 0.0) {
            return None;
        }
        let column = (point.slot as u64) >> point.kx << point.kx;
        let state = shown_state(axis, column, point.kx)?;
        let height = point.bytes as u64;
        let cell = u64::from(point.cell_rows) << point.ky;
        let (low, high) = (height / cell * cell, (height / cell + 1).saturating_mul(cell));
        let sweep = self.sweep();
        let trace = axis.trace();
        let threshold = MergeThreshold::uniform(point.detail.threshold(point.ky));
        let pieces = Pieces { threshold: &threshold, bands: point.detail == Detail::Bands };
        sweep.seek(trace, state, pieces);
        let mut found = None;
        sweep.walk(trace, low, high, pieces, &mut |piece| {
            if piece.low <= height && height < piece.high {
                found = Some(piece);
            }
        });
        let piece = found?;
        let mut largest: Vec<(u64, u32)> = Vec::new();
        let mut count = 0;
        let mut group = sweep.order().map(|order| order.group_of(piece.block));
        let each = MergeThreshold::uniform(1);
        let each = Pieces { threshold: &each, bands: false };
        sweep.walk(trace, piece.low, piece.high, each, &mut |member| {
            count += 1;
            group = group.filter(|&group| {
                sweep.order().is_some_and(|order| order.group_of(member.block) == group)
            });
            largest.push((member.bytes(), member.block));
            if largest.len() > TRUNCATE_ABOVE {
                keep_largest(&mut largest);
            }
        });
        keep_largest(&mut largest);
        Some(Picked {
            state,
            block: piece.block,
            count,
            bytes: piece.bytes(),
            largest: largest.into_iter().map(|(_, block)| block).collect(),
            group,
        })
    }
}

/// Keeps the [`MAX_LISTED`] largest members, largest first. Equally large ones are by index.
fn keep_largest(members: &mut Vec<(u64, u32)>) {
    members.sort_by_key(|&(bytes, block)| (std::cmp::Reverse(bytes), block));
    members.truncate(MAX_LISTED);
}
