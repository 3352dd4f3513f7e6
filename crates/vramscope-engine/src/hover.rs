//! The words of a tooltip.

use crate::detail::{reference, reused};
use crate::file::Part;
use crate::protocol::Hit;
use crate::text;
use vramscope_analysis::Trace;
use vramscope_layout::{Color, Colors, Picked};
use vramscope_units::{Bytes, grouped};

pub(crate) fn hit(part: &Part, trace: &Trace, colors: &Colors, picked: &Picked) -> Hit {
    words(part, trace, colors.of(picked.block), picked)
}

/// The same of what is drawn in another color.
pub(crate) fn words(part: &Part, trace: &Trace, color: Color, picked: &Picked) -> Hit {
    let block = &trace.blocks[picked.block as usize];
    let site_of = |index: u32| {
        let block = &trace.blocks[index as usize];
        text::site(&part.snapshot, part.sites.get(block.stack).frame)
    };
    let bytes = text::bytes(Bytes(picked.bytes));
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
        (bytes.text.clone(), site_of(picked.block), vec![life, reused(block)])
    };
    Hit {
        block: picked.block,
        reference: reference(trace, block),
        title,
        bytes,
        site,
        lines,
        count: picked.count,
        color: color.word(),
    }
}
