//! Tooltips and labels of blocks.

use super::block_detail::peak_shares;
use super::findings::place;
use crate::messages::Hit;
use vramscope_layout::{Picked, site_color};
use vramscope_report::shapes::BlockShapes;
use vramscope_report::{Quantity, Target, block_site, text};
use vramscope_trace::{Block, Trace};
use vramscope_units::{Bytes, grouped};

/// The tooltip of a block, or of a strip of several merged blocks. `group` is the name of their
/// group.
pub(crate) fn tooltip(at: Target<'_>, picked: &Picked, group: Option<String>) -> Hit {
    let (trace, sites) = (at.trace(), &at.entry.sites);
    let block = &trace.blocks[picked.block as usize];
    let site_of = |index: u32| block_site(at, &trace.blocks[index as usize]);
    let bytes = Quantity::bytes(Bytes(picked.bytes));
    let (title, site, lines) = if picked.count > 1 {
        let largest = picked
            .largest
            .iter()
            .map(|&member| format!("{}  {}", trace.blocks[member as usize].bytes, site_of(member)));
        let title = format!("{} blocks, {}", grouped(u64::from(picked.count)), bytes.text);
        let heading = match group {
            Some(name) => format!("{name}, largest blocks:"),
            None => "Largest blocks:".to_owned(),
        };
        (title, heading, largest.collect())
    } else {
        let lifetime = lifetime(trace, block);
        let life = if block.is_preexisting() {
            format!("from before the window, lifetime in it {lifetime}")
        } else if block.leaves == trace.slots() {
            format!("not freed, lifetime {lifetime}")
        } else {
            format!("lifetime {lifetime}")
        };
        let mut lines: Vec<String> = Vec::new();
        // The pointer does not wait for what is computed once.
        if let Some(context) = at.entry.known_context(at.index) {
            let category = at.entry.categories(at.index).get(picked.block).category;
            let part = context.part(block);
            let place = part.map(|part| place(at, part.step, Some(part.phase.name())));
            let words = [Some(category.name().replace('_', " ")), place];
            lines.push(words.into_iter().flatten().collect::<Vec<_>>().join(" · "));
            let shares = peak_shares(at, block, context);
            lines.extend(shares.map(|[own, site]| format!("{own} of the peak{site}")));
        }
        match at.entry.known_tensor(at.index, picked.block) {
            Some(tensor) => lines.push(tensor.text()),
            None => lines.extend(BlockShapes::new(at).of(picked.block).map(|shape| shape.words())),
        }
        lines.extend([life, text::block_address(block)]);
        (bytes.text.clone(), site_of(picked.block), lines)
    };
    Hit {
        block: picked.block,
        reference: text::block_reference(trace, block),
        title,
        bytes,
        site,
        lines,
        count: picked.count,
        color: site_color(sites, block.stack).word(),
    }
}

/// How long a block is live within the window: `38.2 ms (412 events)`, or `412 events` without a
/// clock.
pub(super) fn lifetime(trace: &Trace, block: &Block) -> String {
    let events = Quantity::count(u64::from(block.leaves - block.enters), "event", "events").exact;
    let short = text::short_lifetime(trace, block).text;
    if short == events { events } else { format!("{short} ({events})") }
}

/// The tooltip of a block by its index. It equals the tooltip of the block in a plot.
pub(crate) fn block_tooltip(at: Target<'_>, block: u32) -> Option<Hit> {
    let found = at.trace().blocks.get(block as usize)?;
    let picked = Picked {
        state: found.enters,
        block,
        count: 1,
        bytes: found.bytes.0,
        largest: vec![block],
        group: None,
    };
    Some(tooltip(at, &picked, None))
}

/// Labels to draw inside a block, from the longest to the shortest: function, place and bytes,
/// function and bytes, bytes. A known tensor takes the place of the function.
pub(crate) fn block_labels(at: Target<'_>, block: u32) -> Vec<String> {
    let Some(found) = at.trace().blocks.get(block as usize) else { return Vec::new() };
    let (snapshot, bytes) = (at.snapshot(), found.bytes);
    let mut labels = Vec::new();
    if let Some(tensor) = at.entry.known_tensor(at.index, block) {
        labels.push(format!("{} {}  {bytes}", tensor.name, tensor.shape_text()));
        labels.push(format!("{}  {bytes}", tensor.name));
    } else if let Some(frame) = at.entry.sites.get(found.stack).frame {
        let name = text::short_function(snapshot, frame);
        labels.extend(
            text::place_of(snapshot, frame).map(|place| format!("{name} {place}  {bytes}")),
        );
        labels.push(format!("{name}  {bytes}"));
    }
    labels.push(bytes.to_string());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::tests::load;

    #[test]
    fn block_labels_shorten_down_to_the_bytes() {
        let file = load("recorded/t26/gpt_small.pickle.gz");
        let at = Target { path: "", entry: &file.entries[0], index: 0 };
        let blocks = &at.trace().blocks;
        let mut with_place = 0;
        for (block, index) in blocks.iter().zip(0..) {
            let (labels, bytes) = (block_labels(at, index), block.bytes.to_string());
            assert_eq!(labels.last(), Some(&bytes));
            assert!(labels.iter().all(|label| label.ends_with(&bytes)), "{labels:?}");
            assert!(labels.windows(2).all(|pair| pair[0].len() > pair[1].len()), "{labels:?}");
            with_place +=
                u32::from(labels.len() == 3 && labels[0].starts_with("forward gpt.py:43  "));
        }
        assert!(with_place > 0, "no label has the place of its function");
        assert!(block_labels(at, blocks.len() as u32).is_empty());
    }
}
