//! Allocations that failed, and who held memory then.

use super::{Anomaly, AnomalyKind, Context};
use crate::blocks::Block;
use crate::slicing::{Budget, strides};
use crate::trace::Oom;
use rustc_hash::FxHashMap;
use vramscope_snapshot::StackId;
use vramscope_units::{Bytes, grouped};

/// How many holders a text names.
const HOLDERS: usize = 3;

/// A call site, and the stack that was met first there.
struct Holder {
    stack: StackId,
    bytes: u64,
}

pub(super) async fn ooms(cx: &Context<'_>, budget: &mut Budget) -> Vec<Anomaly> {
    if cx.trace.ooms.is_empty() {
        return Vec::new();
    }
    let (of_block, mut holders) = holders(cx, budget).await;
    let mut found = Vec::new();
    let (mut event, mut slot, mut reserved) = (0, 0, cx.trace.reserved_band.start);
    for oom in &cx.trace.ooms {
        // The state after the OOM, which is the one before it: an OOM changes nothing.
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
        found.push(anomaly(cx, oom, reserved, &holders));
        (event, slot) = (after, after + 1);
    }
    found
}

/// The holder of every block, and all holders, empty-handed. The last one is for blocks whose own
/// stack is not known.
async fn holders(cx: &Context<'_>, budget: &mut Budget) -> (Vec<u32>, Vec<Holder>) {
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

fn anomaly(cx: &Context, oom: &Oom, reserved: i64, holders: &[Holder]) -> Anomaly {
    let slot = oom.event.0 + 1;
    let stack = cx.snapshot.events.stack(cx.trace.device.events.start + oom.event.0);
    let mut text = vec![format!("{} failed at {}", oom.requested, oom.event)];
    if stack != StackId::EMPTY {
        text.push(format!(" in {}", cx.label(stack)));
    }
    if let Some(free) = oom.device_free {
        text.push(format!(": the device had {free} free"));
    }
    let in_use = cx.trace.requested.at(slot);
    text.push(format!(
        "; {} were reserved, {} of them in use",
        Bytes(reserved.max(0) as u64),
        Bytes(in_use)
    ));
    if let Some(memory) = (cx.free_at)(slot) {
        text.push(format!(", and the largest free block was {}", Bytes(memory.largest)));
    }
    let mut most: Vec<&Holder> = holders.iter().filter(|h| h.bytes > 0).collect();
    most.sort_unstable_by_key(|h| (std::cmp::Reverse(h.bytes), h.stack));
    let named: Vec<String> = most
        .iter()
        .take(HOLDERS)
        .map(|h| format!("{} ({})", holder_label(cx, h), Bytes(h.bytes)))
        .collect();
    if !named.is_empty() {
        text.push(format!(". Most was held by {}", named.join(", ")));
    }
    let others = most.len().saturating_sub(HOLDERS);
    if others > 0 {
        text.push(format!(" and {} other sites", grouped(others as u64)));
    }
    Anomaly {
        id: cx.id(AnomalyKind::Oom, oom.event.0),
        kind: AnomalyKind::Oom,
        device: cx.trace.device.device,
        severity: cx.severity(AnomalyKind::Oom, oom.requested.0),
        bytes: oom.requested.0,
        text: text.concat(),
        events: vec![oom.event.0],
        stack: (stack != StackId::EMPTY).then_some(stack),
    }
}

fn holder_label(cx: &Context, holder: &Holder) -> String {
    match holder.stack {
        StackId::EMPTY => "blocks whose own stack was not recorded".to_owned(),
        stack => cx.label(stack),
    }
}
