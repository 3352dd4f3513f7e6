//! Attribution: what memory is, added up by call stack, by frame, or by anything else that a block
//! has.

use crate::blocks::{Block, Origin};
use crate::carving::Carving;
use crate::segments::Segments;
use crate::slicing::{Budget, run_to_completion, strides};
use crate::trace::Trace;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_snapshot::{FrameId, Snapshot, StackId};

/// What each block counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Requested bytes, if it is live in the slot.
    Requested(u32),
    /// Block bytes, if it is live in the slot.
    Active(u32),
    /// Block bytes, if it is live in the slot and its free has not been asked for.
    Allocated(u32),
    /// Requested bytes times microseconds of life within the window; times events where there is no
    /// clock.
    ByteTime,
    /// One, if it was allocated in the window.
    Count,
    /// Requested bytes, if it was allocated in the window, however short it lived.
    Churn,
}

impl Measure {
    /// What a block counts for; 0 when it does not.
    pub fn of(self, trace: &Trace, carving: &Carving, index: u32) -> u128 {
        let block = &trace.blocks[index as usize];
        let size = || u128::from(carving.sizes[index as usize].0);
        let live = |slot: u32| block.enters <= slot && slot < block.leaves;
        let bytes = u128::from(block.bytes.0);
        match self {
            Self::Requested(slot) if live(slot) => bytes,
            Self::Active(slot) if live(slot) => size(),
            Self::Allocated(slot) if carving.is_allocated(trace, index, slot) => size(),
            Self::ByteTime => bytes * u128::from(lifetime(trace, block)),
            Self::Count if block.origin() == Origin::Alloc => 1,
            Self::Churn if block.origin() == Origin::Alloc => bytes,
            _ => 0,
        }
    }

    /// The same with only the events of `events` (both ends included) counted: lives are clipped to
    /// them, and only allocations among them count. What is live in a slot is so whatever the
    /// events.
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

/// Microseconds (or events, where there is no clock) of the window in which a block is live.
pub fn lifetime(trace: &Trace, block: &Block) -> u64 {
    lifetime_within(trace, block, (0, u32::MAX))
}

/// The same from one event to another.
fn lifetime_within(trace: &Trace, block: &Block, (first, last): (u32, u32)) -> u64 {
    let Some(last) = trace.slots().checked_sub(2).map(|end| last.min(end)) else { return 0 };
    // A state lasts from its event to the next; what is there before the window counts from its
    // first event on.
    let from = (block.enters.max(1) - 1).max(first);
    let to = block.leaves.saturating_sub(1).min(last + 1);
    match &trace.clock {
        _ if from >= to || first > last => 0,
        Some(clock) => clock.offset(to.min(last)) - clock.offset(from.min(last)),
        None => u64::from(to - from),
    }
}

/// What a call stack adds up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The stack.
    pub stack: StackId,
    /// Whether it is the stack of the free: the block was allocated before the window, and the file
    /// has no other.
    pub is_of_free: bool,
    /// The sum of the measure.
    pub weight: u128,
    /// Blocks (segments, for `reserved_bytes`) that count for something.
    pub blocks: u32,
}

/// A device's blocks by call stack, largest share first. Pre-window blocks are included: the sum is
/// the band's value.
pub fn by_stack(trace: &Trace, carving: &Carving, measure: Measure) -> Vec<Share> {
    run_to_completion(by_stack_sliced(
        trace,
        |i| measure.of(trace, carving, i),
        &mut Budget::unlimited(),
    ))
}

/// The same in slices, of whatever a block counts for.
pub async fn by_stack_sliced(
    trace: &Trace,
    weight: impl Fn(u32) -> u128,
    budget: &mut Budget,
) -> Vec<Share> {
    let mut sum = Sum::default();
    for part in strides(trace.blocks.len()) {
        budget.charge(3 * part.len() as u64).await;
        for (i, b) in (part.start as u32..).zip(&trace.blocks[part]) {
            sum.add(b.stack, b.has_stack_of_free(), weight(i));
        }
    }
    sum.finish()
}

/// Reserved bytes in a slot, by the stack of the allocation that made the segment.
pub fn reserved_by_stack(segments: &Segments, slot: u32) -> Vec<Share> {
    let there = segments.spans.iter().filter(|s| s.enters <= slot && slot < s.leaves);
    let mut sum = Sum::default();
    for span in there {
        sum.add(span.stack, false, span.size.0.into());
    }
    sum.finish()
}

/// Weights by stack, each with whether that is the stack of the free.
#[derive(Default)]
struct Sum {
    index: FxHashMap<(StackId, bool), usize>,
    shares: Vec<Share>,
}

impl Sum {
    /// What weighs nothing does not count.
    fn add(&mut self, stack: StackId, is_of_free: bool, weight: u128) {
        if weight == 0 {
            return;
        }
        let at = *self.index.entry((stack, is_of_free)).or_insert_with(|| {
            self.shares.push(Share { stack, is_of_free, weight: 0, blocks: 0 });
            self.shares.len() - 1
        });
        self.shares[at].weight += weight;
        self.shares[at].blocks += 1;
    }

    /// Largest first.
    fn finish(mut self) -> Vec<Share> {
        self.shares.sort_unstable_by_key(|s| (Reverse(s.weight), s.stack, s.is_of_free));
        self.shares
    }
}

/// What a frame adds up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameShare {
    /// The frame.
    pub frame: FrameId,
    /// Of all stacks that it is in, each counted once however often it recurs there.
    pub inclusive: u128,
    /// Of the stacks in which it is the innermost.
    pub exclusive: u128,
}

/// Shares by frame, largest inclusive first.
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
    frames.sort_unstable_by_key(|f| (Reverse(f.inclusive), f.frame));
    frames
}
