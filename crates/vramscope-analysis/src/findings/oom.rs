//! Failed allocations, and the call sites that held most memory at that time.

use super::{Evidence, Facts, Finding, Part};
use crate::blocks::Block;
use crate::slicing::{Budget, strides};
use crate::trace::Oom;
use rustc_hash::FxHashMap;
use vramscope_snapshot::StackId;
use vramscope_units::Bytes;

/// The maximum number of holders in a finding.
const MAX_HOLDERS: usize = 3;

/// A call site, the first call stack seen with it, and its live bytes.
struct Holder {
    stack: StackId,
    bytes: u64,
}

pub(super) async fn ooms(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Finding> {
    if cx.trace.ooms.is_empty() {
        return Vec::new();
    }
    let (of_block, mut holders) = holders(cx, budget).await;
    let mut found = Vec::new();
    let (mut event, mut slot, mut reserved) = (0, 0, cx.trace.reserved_band.start);
    for oom in &cx.trace.ooms {
        // An OOM changes nothing: the state after it is the state before it.
        let after = oom.event.0 + 1;
        let changes = cx.trace.changes_in(slot..after + 1);
        for part in strides(changes.len()) {
            budget.charge(4 * part.len() as u64).await;
            for change in &changes[part] {
                let block = &cx.trace.blocks[change.block() as usize];
                let bytes = &mut holders[of_block[change.block() as usize] as usize].bytes;
                *bytes =
                    if change.enters() { *bytes + block.bytes.0 } else { *bytes - block.bytes.0 };
            }
        }
        reserved += cx.reserved_in(event..after, budget).await;
        budget.charge(holders.len() as u64).await;
        found.push(finding(cx, oom, reserved, &holders));
        (event, slot) = (after, after + 1);
    }
    found
}

/// The holder of every block as an index into the holders, and all holders with 0 bytes.
///
/// The first holder collects the blocks whose own call stack was not recorded.
async fn holders(cx: Evidence<'_>, budget: &mut Budget) -> (Vec<u32>, Vec<Holder>) {
    let mut known: FxHashMap<u64, u32> = FxHashMap::default();
    let mut holders = vec![Holder { stack: StackId::EMPTY, bytes: 0 }];
    let mut of_block = |block: &Block| {
        let site = cx.sites.get(block.stack);
        if block.has_stack_of_free() || site.frame.is_none() {
            return 0;
        }
        let next = holders.len() as u32;
        let holder = *known.entry(site.site_hash).or_insert(next);
        if holder == next {
            holders.push(Holder { stack: block.stack, bytes: 0 });
        }
        holder
    };
    let mut of_blocks = Vec::with_capacity(cx.trace.blocks.len());
    for part in strides(cx.trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        of_blocks.extend(cx.trace.blocks[part].iter().map(&mut of_block));
    }
    (of_blocks, holders)
}

fn finding(cx: Evidence<'_>, oom: &Oom, reserved: i64, holders: &[Holder]) -> Finding {
    let slot = oom.event.0 + 1;
    let stack = cx.snapshot.events.stack(cx.trace.device.events.start + oom.event.0);
    let mut largest: Vec<&Holder> = holders.iter().filter(|h| h.bytes > 0).collect();
    largest.sort_unstable_by_key(|h| (std::cmp::Reverse(h.bytes), h.stack));
    let facts = Facts::Oom {
        event: oom.event,
        requested: oom.requested,
        device_free: oom.device_free,
        reserved: Bytes(reserved.max(0) as u64),
        in_use: Bytes(cx.trace.requested.at(slot)),
        holders: largest.iter().take(MAX_HOLDERS).map(|h| (h.stack, Bytes(h.bytes))).collect(),
        other_sites: largest.len().saturating_sub(MAX_HOLDERS),
    };
    let stack = (stack != StackId::EMPTY).then_some(stack);
    let parts = stack.map(|stack| Part { stack, bytes: oom.requested, blocks: 0 });
    let requested = oom.requested.0;
    Finding {
        step: cx.step_at(oom.event.0),
        phase: cx.phase_at(oom.event.0),
        parts: parts.into_iter().collect(),
        ..cx.finding(oom.event.0, requested, requested, vec![oom.event.0], facts)
    }
}
