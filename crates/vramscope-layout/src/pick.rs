//! What lies under a point of the timeline, exactly.

use crate::axis::Axis;
use crate::least::Least;
use crate::tile::{Timeline, row_threshold, shown_state};

/// What a strip stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The state that the column shows.
    pub state: u32,
    /// The block, or the largest of several.
    pub block: u32,
    /// How many blocks the strip stands for.
    pub count: u32,
    /// Their bytes together.
    pub bytes: u64,
    /// The largest of them, largest first; at most [`LISTED`].
    pub largest: Vec<u32>,
}

/// How many members of a merged strip are named.
pub const LISTED: usize = 3;

/// Where to look: the scale that is on screen, and the place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Log2 of the slots in a column.
    pub kx: u8,
    /// Log2 of the bytes in a row.
    pub ky: u8,
    /// The slot.
    pub slot: f64,
    /// The height in bytes.
    pub bytes: f64,
    /// Rows in a cell: strips are cut, and merging starts anew, at the cell's edge.
    pub cell_rows: u32,
}

impl Timeline {
    /// The strip at a place, as [`Timeline::strips`] draws it; `None` over empty ground.
    pub fn pick(&mut self, axis: Axis<'_>, place: Place) -> Option<Picked> {
        if !(place.slot >= 0.0 && place.bytes >= 0.0) {
            return None;
        }
        let column = (place.slot as u64) >> place.kx << place.kx;
        let state = shown_state(axis, column, place.kx)?;
        let at = place.bytes as u64;
        let cell = u64::from(place.cell_rows) << place.ky;
        let (low, high) = (at / cell * cell, (at / cell + 1).saturating_mul(cell));
        let sweep = self.sweep();
        let trace = axis.trace();
        let least = Least::even(row_threshold(place.ky));
        sweep.seek(trace, state, &least);
        let mut found = None;
        sweep.walk(trace, low, high, &least, &mut |piece| {
            if piece.low <= at && at < piece.high {
                found = Some(piece);
            }
        });
        let piece = found?;
        let mut largest: Vec<(u64, u32)> = Vec::new();
        let mut count = 0;
        sweep.walk(trace, piece.low, piece.high, &Least::even(1), &mut |member| {
            count += 1;
            largest.push((member.bytes(), member.block));
            if largest.len() > 64 {
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
        })
    }
}

/// Largest first, ties in stack order.
fn keep_largest(members: &mut Vec<(u64, u32)>) {
    members.sort_unstable_by_key(|&(bytes, block)| (std::cmp::Reverse(bytes), block));
    members.truncate(LISTED);
}
