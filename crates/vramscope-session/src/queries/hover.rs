//! The text of a tooltip.

use vramscope_layout::{Picked, site_color};
use vramscope_protocol::Hit;
use vramscope_report::{Quantity, Target, text};
use vramscope_units::{Bytes, grouped};

/// The tooltip of a block, or of a strip that stands for several.
pub(crate) fn picked(at: Target<'_>, picked: &Picked) -> Hit {
    let (snapshot, trace, sites) = (at.snapshot(), at.trace(), &at.entry.sites);
    let block = &trace.blocks[picked.block as usize];
    let site_of = |index: u32| {
        let block = &trace.blocks[index as usize];
        text::site_label(snapshot, sites.get(block.stack).frame)
    };
    let bytes = Quantity::bytes(Bytes(picked.bytes));
    let (title, site, lines) = if picked.count > 1 {
        let largest = picked
            .largest
            .iter()
            .map(|&member| format!("{}  {}", trace.blocks[member as usize].bytes, site_of(member)));
        let title = format!("{} blocks, {}", grouped(u64::from(picked.count)), bytes.text);
        (title, "the largest of them:".to_owned(), largest.collect())
    } else {
        let lived = text::lifetime(trace, block);
        let life = if block.is_preexisting() {
            format!("from before the window, {lived} in it")
        } else if block.leaves == trace.slots() {
            format!("live at the end, {lived}")
        } else {
            format!("lived {lived}")
        };
        (bytes.text.clone(), site_of(picked.block), vec![life, text::block_address(block)])
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
