//! Where a block lies in a view, however low it is.

use crate::axis::Axis;
use crate::group_edges::{Place, View, columns, states};
use crate::stack_order::StackOrder;
use vramscope_trace::slicing::{Budget, strides};

/// Cost of reading a block for the first column, in units of [`Budget`].
const COST_PER_BLOCK: u64 = 2;

/// The rectangle of a block near `slot`, as `[x0, x1, y0, y1]` in slots and bytes. `None` if the
/// block is not live in the view.
///
/// A block moves when blocks below it come and go. This starts at the column nearest to `slot` that
/// has the block, and spans its neighbors with the block at the same height. It covers whole
/// columns, as the picture does.
pub async fn block_run(
    axis: Axis<'_>,
    order: Option<&StackOrder>,
    block: u32,
    view: View,
    slot: f64,
    budget: &mut Budget,
) -> Option<Place> {
    let trace = axis.trace();
    let it = trace.blocks.get(block as usize)?;
    let (kx, first) = columns(axis, view);
    let states = states(axis, kx, first, view, budget).await;
    let position = |block: u32| order.map_or(block, |order| order.position(block));
    let own = position(block);
    let is_below = |other: u32| position(other) < own;
    let begin = *states.first()?;
    let mut below = 0;
    for part in strides(trace.blocks.len()) {
        budget.charge(part.len() as u64 * COST_PER_BLOCK).await;
        for (index, other) in (part.start as u32..).zip(&trace.blocks[part]) {
            if other.is_live_at(begin) && is_below(index) {
                below += other.bytes.0;
            }
        }
    }
    // The height of the block's lower edge in each column; `None` where it is not live.
    let mut heights = Vec::with_capacity(states.len());
    let mut before = begin;
    for &state in &states {
        let changes = trace.changes_in(before + 1..state + 1);
        budget.charge(1 + changes.len() as u64).await;
        for change in changes.iter().filter(|change| is_below(change.block())) {
            let bytes = trace.blocks[change.block() as usize].bytes.0;
            below = if change.enters() { below + bytes } else { below - bytes };
        }
        heights.push(it.is_live_at(state).then_some(below));
        before = state;
    }
    let column = (1u64 << kx) as f64;
    let wanted = (slot / column) as i64 - first as i64;
    let near = (0..heights.len())
        .filter(|&at| heights[at].is_some())
        .min_by_key(|&at| (at as i64).abs_diff(wanted))?;
    let height = heights[near]?;
    let is_same = |&at: &usize| heights[at] == Some(height);
    let from = (0..=near).rev().take_while(is_same).last()?;
    let to = (near..heights.len()).take_while(is_same).last()?;
    let x = |at: usize| (first + at as u64) as f64 * column;
    Some([x(from), x(to + 1), height as f64, (height + it.bytes.0) as f64])
}
