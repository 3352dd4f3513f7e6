//! Memory by place in the code. A block counts once for each place that its call stack goes
//! through, however often the place recurs in the stack.

mod places;

pub use places::{PlaceKind, SourcePlace, SourceSums, has_line};

use crate::search::Matcher;
use crate::{Target, slot_of};
use rustc_hash::FxHashMap;
use vramscope_inference::Category;
use vramscope_snapshot::StackId;
use vramscope_trace::NoStack;
use vramscope_trace::slicing::{Budget, strides};

/// The blocks and moments of a sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// A search; empty for all blocks.
    pub text: &'a str,
    /// The slot of the cursor, if there is one.
    pub cursor: Option<u32>,
}

/// The sums of some blocks.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Bytes at the peak.
    pub peak: u64,
    /// Bytes at the cursor.
    pub cursor: u64,
    /// Bytes at the end of the first step.
    pub first_step: u64,
    /// Bytes at the end of the last whole step.
    pub last_step: u64,
    /// Blocks in the window.
    pub blocks: u64,
    /// The bytes of the largest block.
    pub largest: u64,
    /// Bytes at the peak by category.
    pub categories: [u64; Category::ALL.len()],
}

impl Sums {
    /// Adds the sums of other blocks.
    pub fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, bytes: u64| *sum = sum.saturating_add(bytes);
        add(&mut self.peak, other.peak);
        add(&mut self.cursor, other.cursor);
        add(&mut self.first_step, other.first_step);
        add(&mut self.last_step, other.last_step);
        add(&mut self.blocks, other.blocks);
        self.largest = self.largest.max(other.largest);
        for (sum, bytes) in self.categories.iter_mut().zip(other.categories) {
            add(sum, bytes);
        }
    }

    /// What the bytes at the ends of steps grow by in a step, over this many steps.
    pub fn growth(&self, steps: u32) -> i64 {
        let change = i128::from(self.last_step) - i128::from(self.first_step);
        i64::try_from(change / i128::from(steps)).unwrap_or(i64::MAX)
    }
}

/// What the blocks of a sum have in common: the call stack, whether it is that of the free, and why
/// there is none.
pub type StackKey = (StackId, bool, Option<NoStack>);

/// Sums the blocks of a search by call stack, in the order of the first block of each.
pub async fn by_stack(
    at: Target<'_>,
    filter: &Filter<'_>,
    budget: &mut Budget,
) -> Vec<(StackKey, Sums)> {
    let trace = at.trace();
    let matcher = Matcher::new(at, filter.text, budget).await;
    // A text that cannot be parsed finds nothing.
    let finds_nothing = matcher.is_none() && !filter.text.trim().is_empty();
    let peak_slot = slot_of(trace.requested_band.peak_event);
    let begins = at.entry.steps(at.index).map_or(&[][..], |steps| &steps.begins);
    // Step `i` ends in slot `begins[i + 1]`.
    let steps = begins.get(1).copied().zip(begins.last().copied());
    let categories = at.entry.categories(at.index);
    let mut places: FxHashMap<StackKey, usize> = FxHashMap::default();
    let mut sums: Vec<(StackKey, Sums)> = Vec::new();
    let count = if finds_nothing { 0 } else { trace.blocks.len() };
    for part in strides(count) {
        budget.charge(6 * part.len() as u64).await;
        for index in part {
            if matcher.as_ref().is_some_and(|found| !found.block(at, index as u32)) {
                continue;
            }
            let block = &trace.blocks[index];
            let key = (block.stack, block.has_stack_of_free(), trace.no_stack(block));
            let place = *places.entry(key).or_insert_with(|| {
                sums.push((key, Sums::default()));
                sums.len() - 1
            });
            let (sum, bytes) = (&mut sums[place].1, block.bytes.0);
            let at_slot = |slot: Option<u32>| {
                let is_live = slot.is_some_and(|slot| block.is_live_at(slot));
                if is_live { bytes } else { 0 }
            };
            let peak = at_slot(Some(peak_slot));
            let mut one = Sums {
                peak,
                cursor: at_slot(filter.cursor),
                first_step: at_slot(steps.map(|steps| steps.0)),
                last_step: at_slot(steps.map(|steps| steps.1)),
                blocks: 1,
                largest: bytes,
                categories: [0; Category::ALL.len()],
            };
            one.categories[categories.get(index as u32).category as usize] = peak;
            sum.add(&one);
        }
    }
    sums
}

/// The number of steps from the end of the first whole step to the end of the last one; `None` with
/// fewer than two.
pub fn steps_between(at: Target<'_>) -> Option<u32> {
    let begins = at.entry.steps(at.index).map_or(0, |steps| steps.begins.len());
    begins.checked_sub(2).filter(|&steps| steps > 0).map(|steps| steps as u32)
}
