//! What calls a line, and what it calls.

use super::filter_of;
use crate::messages::views::{CodeSpec, Sandwich, StackShareRow};
use crate::queries::shares::fraction;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_layout::Color;
use vramscope_report::code::by_stack;
use vramscope_report::{Quantity, Target, text};
use vramscope_snapshot::FrameId;
use vramscope_trace::is_framework_frame;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Callers or callees in a list.
const MAX_ROWS: usize = 20;

/// The callers and callees of a frame by bytes at the peak; `None` if there is no such frame.
///
/// A stack that goes through the frame several times counts once: with the caller of the outermost
/// call and the callee of the innermost.
pub(crate) async fn sandwich(
    at: Target<'_>,
    spec: &CodeSpec,
    frame: u32,
    budget: &mut Budget,
) -> Option<Sandwich> {
    let snapshot = at.snapshot();
    let wanted = FrameId(frame);
    if frame as usize >= snapshot.frames.len() {
        return None;
    }
    let sums = by_stack(at, &filter_of(at, spec), budget).await;
    let is_listed = |id: FrameId| {
        let frame = snapshot.frame(id);
        !spec.hide_framework
            || id == wanted
            || !is_framework_frame(&snapshot.text(frame.name), &snapshot.text(frame.file))
    };
    let (mut total, mut own) = (0u64, 0u64);
    let mut callers: FxHashMap<FrameId, (u64, u64)> = FxHashMap::default();
    let mut callees: FxHashMap<FrameId, (u64, u64)> = FxHashMap::default();
    for ((stack, _, no_stack), sums) in &sums {
        let frames = snapshot.stacks.frames(*stack);
        budget.charge(4 + frames.len() as u64).await;
        if no_stack.is_some() || !frames.contains(&wanted) {
            continue;
        }
        total = total.saturating_add(sums.peak);
        let site = at.entry.sites.get(*stack).frame;
        let own_frame = frames.iter().position(|&id| site == Some(snapshot.frame(id)));
        let first = frames.iter().position(|&id| id == wanted);
        if own_frame.is_some() && own_frame == first {
            own = own.saturating_add(sums.peak);
        }
        let last = frames.iter().rposition(|&id| id == wanted);
        let outer = last.and_then(|last| frames[last + 1..].iter().find(|&&id| is_listed(id)));
        let inner = first.and_then(|first| frames[..first].iter().rfind(|&&id| is_listed(id)));
        for (frame, of) in [(outer, &mut callers), (inner, &mut callees)] {
            if let Some(&frame) = frame {
                let sum = of.entry(frame).or_default();
                sum.0 = sum.0.saturating_add(sums.peak);
                sum.1 += sums.blocks;
            }
        }
    }
    let label = |id: FrameId| text::label_of(snapshot, snapshot.frame(id));
    let this = label(wanted);
    let rows = |of: FxHashMap<FrameId, (u64, u64)>| {
        let mut rows: Vec<(FrameId, (u64, u64))> = of.into_iter().collect();
        rows.sort_by_key(|&(id, (bytes, _))| (Reverse(bytes), id.0));
        rows.truncate(MAX_ROWS);
        let row = |(id, (bytes, blocks)): (FrameId, (u64, u64))| StackShareRow {
            site: label(id),
            via: String::new(),
            bytes: Quantity::bytes(Bytes(bytes)),
            blocks: Quantity::count(blocks, "block", "blocks"),
            shape: String::new(),
            share: fraction(bytes, total),
            color: Color::NO_STACK.word(),
            block: id.0,
            note: String::new(),
            terms: vec![format!("via:{this}"), format!("via:{}", label(id))],
        };
        rows.into_iter().map(row).collect()
    };
    Some(Sandwich {
        callers: rows(callers),
        callees: rows(callees),
        title: this.clone(),
        total: Quantity::bytes(Bytes(total)),
        own: Quantity::bytes(Bytes(own)),
    })
}
