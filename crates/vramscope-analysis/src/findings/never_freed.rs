//! Blocks that stay live although the other blocks of their call stack are freed.
//!
//! Parameters are live at the end too, and rightly so. Only blocks count that were allocated in the
//! steady part of the run, by call stacks whose other blocks have short lives.

use super::{Context, Facts, Finding, Steps};
use crate::blocks::{Block, Origin};
use crate::slicing::{Budget, strides};
use std::ops::Range;
use vramscope_snapshot::StackId;

/// The smallest block to report.
const MIN_BYTES: u64 = 1 << 20;

/// The fewest freed blocks of a call stack that show that its blocks are normally freed.
const MIN_FREED: u32 = 8;

/// The maximum number of blocks that stay. More of them are no exception.
const MAX_STAYING: usize = 3;

/// The lives of the blocks of one call stack.
#[derive(Clone, Default)]
struct StackLives {
    /// Blocks that are freed in the window.
    freed: u32,
    /// The longest life of a freed block, in events.
    longest: u32,
    /// Blocks that are live at the end.
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
    let mut stacks = vec![StackLives::default(); cx.snapshot.stacks.len()];
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let blocks = (part.start as u32..).zip(&cx.trace.blocks[part]);
        for (i, block) in blocks.filter(|(_, b)| b.origin() == Origin::Alloc) {
            let lives = &mut stacks[block.stack.0 as usize];
            if block.leaves < slots {
                lives.freed += 1;
                lives.longest = lives.longest.max(block.leaves - block.enters);
            } else {
                lives.staying.push(i);
            }
        }
    }
    let min_bytes = MIN_BYTES.max(cx.trace.requested_band.peak as u64 / 1000);
    let mut found = Vec::new();
    for (stack, lives) in (0..).map(StackId).zip(&stacks) {
        let few =
            lives.staying.len() <= MAX_STAYING && lives.staying.len() as u32 * 8 <= lives.freed;
        // Blocks without a call stack have nothing in common.
        if stack == StackId::EMPTY || lives.freed < MIN_FREED || !few || growing.contains(&stack) {
            continue;
        }
        let outlived = |b: &&Block| slots - b.enters > lives.longest.saturating_mul(4);
        // Blocks are in the order of their allocs, so the first one is the oldest.
        let blocks: Vec<&Block> = lives
            .staying
            .iter()
            .map(|&i| &cx.trace.blocks[i as usize])
            .filter(|b| b.bytes.0 >= min_bytes && steady.contains(&b.enters))
            .filter(outlived)
            .collect();
        let Some(first) = blocks.first().and_then(|b| b.alloc_event()) else { continue };
        let bytes = blocks.iter().map(|b| b.bytes.0).sum();
        let facts = Facts::NeverFreed {
            first,
            blocks: blocks.len(),
            freed: lives.freed,
            longest_life: lives.longest,
        };
        let events = blocks.iter().filter_map(|b| b.alloc_event()).map(|e| e.0).collect();
        found.push(cx.stack_finding(stack, bytes, events, facts));
    }
    found
}

/// The steady slots of the run: after warm-up, and early enough that blocks which live for one or
/// two steps are freed before the end.
fn steady(steps: Option<&Steps>, slots: u32) -> Range<u32> {
    let Some(steps) = steps else { return slots / 4..slots / 4 * 3 };
    match steps.warm_up() {
        Some(warm_up) => steps.begins[warm_up] + 1..steps.begins[steps.whole() - 2],
        None => 0..0,
    }
}
