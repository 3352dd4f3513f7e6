//! One-offs: a block that stayed although the other blocks of its call stack are freed.
//!
//! Being alive at the end is no fault: parameters are. This looks only at blocks made in the middle
//! of steady work, at stacks whose blocks otherwise live shortly.

use super::{Context, Facts, Finding, Steps};
use crate::blocks::{Block, Origin};
use crate::slicing::{Budget, strides};
use std::ops::Range;
use vramscope_snapshot::StackId;

/// Smaller blocks are not worth a line.
const LEAST: u64 = 1 << 20;

/// So many blocks of the stack must have been freed for that to be the rule.
const FREED: u32 = 8;

/// More blocks that stay are no one-off.
const MOST_STAYING: usize = 3;

#[derive(Clone, Default)]
struct Habit {
    freed: u32,
    longest: u32,
    staying: Vec<u32>,
}

pub(super) async fn never_freed(
    cx: &Context<'_>,
    steps: Option<&Steps>,
    growing: &[StackId],
    budget: &mut Budget,
) -> Vec<Finding> {
    let slots = cx.trace.slots();
    let steady = steady(steps, slots);
    let mut habits = vec![Habit::default(); cx.snapshot.stacks.len()];
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let blocks = (part.start as u32..).zip(&cx.trace.blocks[part]);
        for (i, block) in blocks.filter(|(_, b)| b.origin() == Origin::Alloc) {
            let habit = &mut habits[block.stack.0 as usize];
            if block.leaves < slots {
                habit.freed += 1;
                habit.longest = habit.longest.max(block.leaves - block.enters);
            } else {
                habit.staying.push(i);
            }
        }
    }
    let least = LEAST.max(cx.trace.requested_band.peak as u64 / 1000);
    let mut found = Vec::new();
    for (stack, habit) in (0..).map(StackId).zip(&habits) {
        // Without a stack, blocks have nothing in common. The others come in (age, so the first is
        // the oldest) order.
        let few =
            habit.staying.len() <= MOST_STAYING && habit.staying.len() as u32 * 8 <= habit.freed;
        if stack == StackId::EMPTY || habit.freed < FREED || !few || growing.contains(&stack) {
            continue;
        }
        let outlived = |b: &&Block| slots - b.enters > habit.longest.saturating_mul(4);
        let blocks: Vec<&Block> = habit
            .staying
            .iter()
            .map(|&i| &cx.trace.blocks[i as usize])
            .filter(|b| b.bytes.0 >= least && steady.contains(&b.enters))
            .filter(outlived)
            .collect();
        let Some(first) = blocks.first().and_then(|b| b.alloc_event()) else { continue };
        let bytes = blocks.iter().map(|b| b.bytes.0).sum();
        let facts = Facts::NeverFreed {
            first,
            blocks: blocks.len(),
            freed: habit.freed,
            longest_life: habit.longest,
        };
        let events = blocks.iter().filter_map(|b| b.alloc_event()).map(|e| e.0).collect();
        found.push(cx.stack_finding(stack, bytes, events, facts));
    }
    found
}

/// Where work is steady: after warm-up, and long enough before the end that what lives for a step
/// or two has gone.
fn steady(steps: Option<&Steps>, slots: u32) -> Range<u32> {
    let Some(steps) = steps else { return slots / 4..slots / 4 * 3 };
    match steps.warm_up() {
        Some(warm_up) => steps.begins[warm_up] + 1..steps.begins[steps.whole() - 2],
        None => 0..0,
    }
}
