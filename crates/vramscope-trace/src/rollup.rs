//! Attribution: memory summed up by call stack and by frame.

use crate::blocks::{Block, Origin};
use crate::carving::Carving;
use crate::no_stack::NoStack;
use crate::segments::Segments;
use crate::site::Sites;
use crate::slicing::{Budget, strides};
use crate::trace::Trace;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_snapshot::{FrameId, Snapshot, StackId};

/// The weight of a block in a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Requested bytes of blocks that are live in the slot.
    Requested(u32),
    /// Sizes of blocks that are live in the slot.
    Active(u32),
    /// Sizes of blocks that are live in the slot, and whose free is not requested yet.
    Allocated(u32),
    /// Requested bytes times the microseconds of life within the window. Without a clock, times the
    /// number of events.
    ByteTime,
    /// Number of blocks that were allocated in the window.
    Count,
    /// Requested bytes of blocks that were allocated in the window, however short they lived.
    Churn,
}

impl Measure {
    /// The weight of the block with this index into [`Trace::blocks`].
    pub fn of(self, trace: &Trace, carving: &Carving, index: u32) -> u128 {
        let block = &trace.blocks[index as usize];
        let size = || u128::from(carving.sizes[index as usize].0);
        let bytes = u128::from(block.bytes.0);
        match self {
            Self::Requested(slot) if block.is_live_at(slot) => bytes,
            Self::Active(slot) if block.is_live_at(slot) => size(),
            Self::Allocated(slot) if carving.is_allocated(trace, index, slot) => size(),
            Self::ByteTime => bytes * u128::from(lifetime(trace, block)),
            Self::Count if block.origin() == Origin::Alloc => 1,
            Self::Churn if block.origin() == Origin::Alloc => bytes,
            _ => 0,
        }
    }

    /// The weight of a block within a range of events, both ends included.
    ///
    /// [`Measure::ByteTime`] clips the life of the block to the range. [`Measure::Count`] and
    /// [`Measure::Churn`] count allocations in the range only. Measures of a slot ignore the range.
    pub fn within(self, trace: &Trace, carving: &Carving, index: u32, events: (u32, u32)) -> u128 {
        let block = &trace.blocks[index as usize];
        match self {
            Self::ByteTime => {
                u128::from(block.bytes.0) * u128::from(lifetime_within(trace, block, events))
            }
            Self::Count | Self::Churn
                if !block.alloc_event().is_some_and(|e| events.0 <= e.0 && e.0 <= events.1) =>
            {
                0
            }
            _ => self.of(trace, carving, index),
        }
    }
}

/// Microseconds of the window in which a block is live. Without a clock, the number of events.
pub fn lifetime(trace: &Trace, block: &Block) -> u64 {
    lifetime_within(trace, block, (0, u32::MAX))
}

/// [`lifetime`] clipped to the events from `first` to `last`.
fn lifetime_within(trace: &Trace, block: &Block, (first, last): (u32, u32)) -> u64 {
    let Some(last) = trace.slots().checked_sub(2).map(|end| last.min(end)) else { return 0 };
    // A state lasts from its event to the next one. The life of a block from before the window
    // starts at the first event.
    let from = (block.enters.max(1) - 1).max(first);
    let to = block.leaves.saturating_sub(1).min(last + 1);
    match &trace.clock {
        _ if from >= to || first > last => 0,
        Some(clock) => clock.offset(to.min(last)) - clock.offset(from.min(last)),
        None => u64::from(to - from),
    }
}

/// The sum of a call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The stack.
    pub stack: StackId,
    /// Whether it is the stack of the free. The file has no other stack for blocks that were
    /// allocated before the window.
    pub is_of_free: bool,
    /// Why there is no stack. `None` if there is one.
    pub no_stack: Option<NoStack>,
    /// Sum of the measure.
    pub weight: u128,
    /// Number of blocks with a weight above 0. Number of segments for `reserved_bytes`.
    pub blocks: u32,
}

/// Sums up a device's blocks by call stack, largest share first. Blocks from before the window are
/// included, so the shares add up to the band's value. Blocks without a stack have one share for
/// each reason. `weight` takes an index into [`Trace::blocks`].
pub async fn by_stack(
    trace: &Trace,
    weight: impl Fn(u32) -> u128,
    budget: &mut Budget,
) -> Vec<Share> {
    let mut sum = ShareSums::default();
    for part in strides(trace.blocks.len()) {
        budget.charge(3 * part.len() as u64).await;
        for (i, b) in (part.start as u32..).zip(&trace.blocks[part]) {
            sum.add((b.stack, b.has_stack_of_free(), trace.no_stack(b)), weight(i), 1);
        }
    }
    sum.finish()
}

/// Sums up reserved bytes in a slot by the stack of the allocation that caused the reservation.
pub fn reserved_by_stack(trace: &Trace, segments: &Segments, slot: u32) -> Vec<Share> {
    let reserved = segments.spans.iter().filter(|s| s.is_reserved_at(slot));
    let mut sum = ShareSums::default();
    for span in reserved {
        let no_stack = trace.no_stack_of_segment(span.stack, span.enters);
        sum.add((span.stack, false, no_stack), span.size.0.into(), 1);
    }
    sum.finish()
}

/// Merges shares of stacks that differ only in generated code, if the model's line is known. Each
/// keeps the stack of [`Sites::same_line`].
pub fn merge_same_lines(shares: Vec<Share>, sites: &Sites) -> Vec<Share> {
    let mut sum = ShareSums::default();
    for share in shares {
        let key = (sites.same_line(share.stack), share.is_of_free, share.no_stack);
        sum.add(key, share.weight, share.blocks);
    }
    sum.finish()
}

/// What the blocks of a share have in common: the stack, whether it is that of the free, and why
/// there is none.
type ShareKey = (StackId, bool, Option<NoStack>);

/// Collects shares by stack. Stacks of frees are kept apart.
#[derive(Default)]
struct ShareSums {
    index: FxHashMap<ShareKey, usize>,
    shares: Vec<Share>,
}

impl ShareSums {
    /// Adds blocks. Ignores weight 0.
    fn add(&mut self, key: ShareKey, weight: u128, blocks: u32) {
        if weight == 0 {
            return;
        }
        let at = *self.index.entry(key).or_insert_with(|| {
            let (stack, is_of_free, no_stack) = key;
            self.shares.push(Share { stack, is_of_free, no_stack, weight: 0, blocks: 0 });
            self.shares.len() - 1
        });
        self.shares[at].weight += weight;
        self.shares[at].blocks += blocks;
    }

    /// All shares, largest first.
    fn finish(mut self) -> Vec<Share> {
        self.shares.sort_by_key(|s| (Reverse(s.weight), s.stack, s.is_of_free, s.no_stack));
        self.shares
    }
}

/// The sum of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameShare {
    /// The frame.
    pub frame: FrameId,
    /// Weight of all stacks that contain the frame. A stack counts once, even if the frame recurs
    /// in it.
    pub inclusive: u128,
    /// Weight of the stacks in which the frame is the innermost one.
    pub exclusive: u128,
}

/// Sums up shares by frame, largest inclusive weight first.
pub fn by_frame(snapshot: &Snapshot, shares: &[Share]) -> Vec<FrameShare> {
    let empty = |i: u32| FrameShare { frame: FrameId(i), inclusive: 0, exclusive: 0 };
    let mut frames: Vec<FrameShare> = (0..snapshot.frames.len() as u32).map(empty).collect();
    let mut seen = vec![u32::MAX; frames.len()];
    for (n, share) in (0..).zip(shares) {
        let stack = snapshot.stacks.frames(share.stack);
        if let Some(first) = stack.first() {
            frames[first.0 as usize].exclusive += share.weight;
        }
        for frame in stack {
            if std::mem::replace(&mut seen[frame.0 as usize], n) != n {
                frames[frame.0 as usize].inclusive += share.weight;
            }
        }
    }
    frames.retain(|f| f.inclusive > 0);
    frames.sort_by_key(|f| (Reverse(f.inclusive), f.frame));
    frames
}
