//! The peak of the traced step if each of its blocks died at its last use.

use super::Uses;
use vramscope_trace::Trace;

/// The peak of the traced step, as recorded and without what is dead, in requested bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The peak of the step.
    pub peak: u64,
    /// Its slot.
    pub slot: u32,
    /// The peak if each block died at its last use.
    pub floor: u64,
    /// The slot of that.
    pub floor_slot: u32,
}

impl Uses {
    /// The floor of the step: what was live before and stays, what is kept and what is not seen
    /// live as long as they do.
    pub fn floor(&self, trace: &Trace) -> Floor {
        let (slot, peak) = self.highest(trace, |_, leaves| leaves);
        let (floor_slot, floor) =
            self.highest(trace, |dead, leaves| dead.map_or(leaves, |dead| dead.min(leaves)));
        Floor { peak, slot, floor, floor_slot }
    }

    /// Dead bytes of each slot of the step.
    pub fn dead_bytes(&self, trace: &Trace) -> Vec<u64> {
        let count = (self.slots.end - self.slots.start) as usize + 1;
        let mut changes = vec![0_i64; count + 1];
        for (block, dead) in self.deaths() {
            let block = &trace.blocks[block as usize];
            let bytes = i64::try_from(block.bytes.0).unwrap_or(i64::MAX);
            let from = dead.max(self.slots.start).max(block.enters);
            let to = block.leaves.min(self.slots.end + 1);
            if from < to {
                add(&mut changes, from - self.slots.start, bytes);
                add(&mut changes, to - self.slots.start, -bytes);
            }
        }
        let mut sum = 0_i64;
        let sums = changes[..count].iter().map(|change| {
            sum = sum.saturating_add(*change);
            sum.max(0) as u64
        });
        sums.collect()
    }

    /// The slot of the highest sum in the step, and the sum, with other ends of blocks.
    fn highest(&self, trace: &Trace, ends: impl Fn(Option<u32>, u32) -> u32) -> (u32, u64) {
        let count = (self.slots.end - self.slots.start) as usize + 1;
        let mut changes = vec![0_i64; count + 1];
        for used in &self.blocks {
            let block = &trace.blocks[used.block as usize];
            let bytes = i64::try_from(block.bytes.0).unwrap_or(i64::MAX);
            let from = block.enters.max(self.slots.start);
            let to = ends(used.dead_from, block.leaves).min(self.slots.end + 1);
            if from < to {
                add(&mut changes, from - self.slots.start, bytes);
                add(&mut changes, to - self.slots.start, -bytes);
            }
        }
        let (mut sum, mut best) = (0_i64, (0, i64::MIN));
        for (at, change) in changes[..count].iter().enumerate() {
            sum = sum.saturating_add(*change);
            if sum > best.1 {
                best = (at, sum);
            }
        }
        (self.slots.start + best.0 as u32, best.1.max(0) as u64)
    }
}

/// Adds to the change of a slot. Sizes of a damaged file may overflow.
fn add(changes: &mut [i64], slot: u32, bytes: i64) {
    let change = &mut changes[slot as usize];
    *change = change.saturating_add(bytes);
}
