//! What is said of a block in a tooltip, and of a frame in the details.

use super::hover;
use super::range::{Shares, card, part_of_whole, place, share_rows};
use vramscope_analysis::Block;
use vramscope_analysis::slicing::{Budget, STRIDE, strides};
use vramscope_layout::Picked;
use vramscope_protocol::views::DetailCard;
use vramscope_protocol::{DetailRow, Hit};
use vramscope_report::{Quantity, text};
use vramscope_report::{Target, by_category, slot_of};
use vramscope_snapshot::{FrameId, StackId};
use vramscope_units::Bytes;

/// How many call stacks are listed.
const STACKS: usize = 20;

/// What a tooltip says of a block, wherever it is drawn.
pub(crate) fn hit(at: Target<'_>, block: u32) -> Option<Hit> {
    let found = at.trace().blocks.get(block as usize)?;
    let picked =
        Picked { state: found.enters, block, count: 1, bytes: found.bytes.0, largest: vec![block] };
    Some(hover::picked(at, &picked))
}

/// What may stand in a block, from the longest to the shortest: the function that asked for it and
/// where that is, and how much.
pub(crate) fn names(at: Target<'_>, block: u32) -> Vec<String> {
    let Some(found) = at.trace().blocks.get(block as usize) else { return Vec::new() };
    let (snapshot, bytes) = (at.snapshot(), found.bytes);
    let mut names = Vec::new();
    if let Some(frame) = at.entry.sites.get(found.stack).frame {
        let name = snapshot.text(frame.name);
        names.extend(
            text::place_of(snapshot, frame).map(|place| format!("{name} {place}  {bytes}")),
        );
        names.push(format!("{name}  {bytes}"));
    }
    names.push(bytes.to_string());
    names
}

/// What a frame holds when `requested_bytes` is largest, at any level of the stacks, each counted
/// once.
pub(crate) async fn frame(
    at: Target<'_>,
    name: &str,
    file: &str,
    line: u32,
    budget: &mut Budget,
) -> Option<DetailCard> {
    let (trace, snapshot) = (at.trace(), at.snapshot());
    // Texts that are damaged in different ways may read the same.
    let is_it = |id: FrameId| {
        let frame = snapshot.frame(id);
        frame.line == line && snapshot.text(frame.name) == name && snapshot.text(frame.file) == file
    };
    let mut ids: Vec<FrameId> = Vec::new();
    for part in strides(snapshot.frames.len()) {
        budget.charge(2 * part.len() as u64).await;
        ids.extend(part.map(|id| FrameId(id as u32)).filter(|&id| is_it(id)));
    }
    let known = snapshot.frame(*ids.first()?);
    let goes_through = |stack: usize| {
        snapshot.stacks.frames(StackId(stack as u32)).iter().any(|f| ids.contains(f))
    };
    let mut through: Vec<bool> = Vec::with_capacity(snapshot.stacks.len());
    for part in strides(snapshot.stacks.len()) {
        budget.charge(16 * part.len() as u64).await;
        through.extend(part.map(goes_through));
    }
    let is_innermost =
        |stack: StackId| snapshot.stacks.frames(stack).first().is_some_and(|f| ids.contains(f));

    let slot = slot_of(trace.requested_band.peak_event);
    let mut live: Vec<u32> = Vec::new();
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        let blocks = (part.start as u32..).zip(&trace.blocks[part]);
        let is_live =
            |b: &Block| b.enters <= slot && slot < b.leaves && through[b.stack.0 as usize];
        live.extend(blocks.filter(|(_, b)| is_live(b)).map(|(i, _)| i));
    }
    let mut shares = Shares::new(at, slot);
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

    let row = |key: &str, label: &str, text: String, raw: Option<String>| DetailRow {
        key: key.to_owned(),
        label: label.to_owned(),
        text,
        raw,
    };
    let blocks = Quantity::count(live.len() as u64, "block", "blocks");
    let mut rows = vec![
        row("frame", "frame", text::full_label(snapshot, known), None),
        row("file", "file", file.to_owned(), None),
        row(
            "peak",
            "at the peak",
            place(trace, slot),
            Some(vramscope_report::event_of(slot).to_string()),
        ),
        row(
            "inclusive",
            "in all stacks through it",
            Bytes(inclusive).exact(),
            Some(inclusive.to_string()),
        ),
        row(
            "exclusive",
            "where it is innermost",
            Bytes(exclusive).exact(),
            Some(exclusive.to_string()),
        ),
        row("blocks", "blocks", blocks.text, Some(blocks.value.to_string())),
        row(
            "share",
            "of all at the peak",
            format!("{:.1} %", 100.0 * part_of_whole(inclusive, whole)),
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
        row(name, &label, format!("{}, {blocks}", Bytes(c.bytes)), Some(c.bytes.to_string()))
    }));

    let stacks = share_rows(at, &shares, STACKS, inclusive, |share| {
        if share.is_of_free { "the stack of the free".to_owned() } else { String::new() }
    });
    let heading = if stacks.is_empty() { "" } else { "Call stacks through it at the peak" };
    Some(card("Frame", Quantity::bytes(Bytes(inclusive)), rows, heading, stacks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::tests::load;

    #[test]
    fn what_may_stand_in_a_block_becomes_shorter_down_to_its_size() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let at = Target { path: "", entry: &file.entries[0], index: 0 };
        let blocks = &at.trace().blocks;
        let mut whole = 0;
        for (block, index) in blocks.iter().zip(0..) {
            let (names, size) = (names(at, index), block.bytes.to_string());
            assert_eq!(names.last(), Some(&size));
            assert!(names.iter().all(|name| name.ends_with(&size)), "{names:?}");
            assert!(names.windows(2).all(|pair| pair[0].len() > pair[1].len()), "{names:?}");
            whole += u32::from(names.len() == 3 && names[0].starts_with("forward gpt.py:43  "));
        }
        assert!(whole > 0, "no name says where its function is");
        assert!(names(at, blocks.len() as u32).is_empty());
    }
}
