//! The details of a frame: what it holds at the peak.

use super::detail_card::detail_card;
use super::range::slot_label;
use super::shares::fraction;
use super::stack_shares::{StackShares, share_rows};
use crate::messages::DetailRow;
use crate::messages::views::DetailCard;
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, by_category, slot_of};
use vramscope_snapshot::{FrameId, StackId};
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, STRIDE, strides};
use vramscope_units::Bytes;

/// Call stacks in the list.
const MAX_STACKS: usize = 20;

/// The details of a frame at the peak of `requested_bytes`: blocks of all stacks that contain it at
/// any level. A stack that contains it twice counts once. `None` when no frame of the snapshot has
/// this name, file and line.
pub(crate) async fn frame(
    at: Target<'_>,
    name: &str,
    file: &str,
    line: u32,
    budget: &mut Budget,
) -> Option<DetailCard> {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    // Damaged texts of several frames can decode to the same text, so a frame can have several ids.
    let is_frame = |id: FrameId| {
        let frame = snapshot.frame(id);
        frame.line == line && snapshot.text(frame.name) == name && snapshot.text(frame.file) == file
    };
    let mut ids: Vec<FrameId> = Vec::new();
    for part in strides(snapshot.frames.len()) {
        budget.charge(2 * part.len() as u64).await;
        ids.extend(part.map(|id| FrameId(id as u32)).filter(|&id| is_frame(id)));
    }
    let frame = snapshot.frame(*ids.first()?);
    let has_frame = |stack: usize| {
        snapshot.stacks.frames(StackId(stack as u32)).iter().any(|f| ids.contains(f))
    };
    let mut with_frame: Vec<bool> = Vec::with_capacity(snapshot.stacks.len());
    for part in strides(snapshot.stacks.len()) {
        budget.charge(16 * part.len() as u64).await;
        with_frame.extend(part.map(has_frame));
    }
    let is_innermost =
        |stack: StackId| snapshot.stacks.frames(stack).first().is_some_and(|f| ids.contains(f));

    let slot = slot_of(trace.requested_band.peak_event);
    let mut live: Vec<u32> = Vec::new();
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let blocks = (part.start as u32..).zip(&trace.blocks[part]);
        let is_live = |b: &Block| b.is_live_at(slot) && with_frame[b.stack.0 as usize];
        live.extend(blocks.filter(|(_, b)| is_live(b)).map(|(i, _)| i));
    }
    let mut shares = StackShares::new(at, slot);
    for part in live.chunks(STRIDE) {
        budget.charge(4 * part.len() as u64).await;
        for &i in part {
            shares.add(i);
        }
    }
    let shares = shares.finish();
    let inclusive = shares.iter().fold(0u64, |sum, s| sum.saturating_add(s.bytes));
    let own = shares.iter().filter(|s| is_innermost(s.stack));
    let exclusive = own.fold(0u64, |sum, s| sum.saturating_add(s.bytes));
    let whole = trace.requested.at(slot);

    let blocks = Quantity::count(live.len() as u64, "block", "blocks");
    let mut rows = vec![
        DetailRow::new("frame", "frame", text::full_label(snapshot, frame), None),
        DetailRow::new("file", "file", file.to_owned(), None),
        DetailRow::new(
            "peak",
            "at the peak",
            slot_label(trace, slot),
            Some(vramscope_report::event_of(slot).to_string()),
        ),
        DetailRow::new(
            "inclusive",
            "total (all stacks with the frame)",
            Bytes(inclusive).exact(),
            Some(inclusive.to_string()),
        ),
        DetailRow::new(
            "exclusive",
            "self (innermost frame)",
            Bytes(exclusive).exact(),
            Some(exclusive.to_string()),
        ),
        DetailRow::new("blocks", "blocks", blocks.text, Some(blocks.value.to_string())),
        DetailRow::new(
            "share",
            "share of the peak",
            format!("{:.1} %", 100.0 * fraction(inclusive, whole)),
            None,
        ),
    ];
    let categories = at.entry.categories(at.index);
    let weights =
        live.iter().map(|&i| (categories.get(i).category, trace.blocks[i as usize].bytes.0));
    rows.extend(by_category(weights).into_iter().map(|c| {
        let blocks = Quantity::count(c.blocks.into(), "block", "blocks").exact;
        let name = c.category.name();
        let label = name.replace('_', " ");
        DetailRow::new(name, label, format!("{}, {blocks}", c.bytes), Some(c.bytes.0.to_string()))
    }));

    let stacks = share_rows(at, &shares, MAX_STACKS, inclusive, |share| {
        if share.is_of_free { "stack of the free".to_owned() } else { String::new() }
    });
    let heading = if stacks.is_empty() { "" } else { "Call stacks with the frame at the peak" };
    Some(detail_card("Frame", Quantity::bytes(Bytes(inclusive)), rows, heading, stacks))
}
