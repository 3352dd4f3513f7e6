//! The card that shows the details of a range, a frame or a change.

use crate::messages::DetailRow;
use crate::messages::views::{DetailCard, StackShareRow};
use std::fmt::Write as _;
use vramscope_report::Quantity;

/// A card with rows and call stacks, and its text for the clipboard.
pub(super) fn detail_card(
    kind: &str,
    title: Quantity,
    rows: Vec<DetailRow>,
    heading: &str,
    stacks: Vec<StackShareRow>,
) -> DetailCard {
    let mut copy = format!("{kind}  {}\n", title.exact);
    let mut line = |text: std::fmt::Arguments<'_>| {
        copy.write_fmt(text).expect("writing to a String cannot fail");
        copy.push('\n');
    };
    for row in &rows {
        line(format_args!("{}: {}", row.label, row.text));
    }
    if !heading.is_empty() {
        line(format_args!("{heading}:"));
    }
    for stack in &stacks {
        let gap = if stack.note.is_empty() { "" } else { ", " };
        let via = if stack.via.is_empty() { String::new() } else { format!(" ({})", stack.via) };
        let StackShareRow { bytes, site, blocks, note, .. } = stack;
        line(format_args!("  {}  {site}{via}  {}{gap}{note}", bytes.text, blocks.exact));
    }
    DetailCard {
        kind: kind.to_owned(),
        title,
        rows,
        heading: heading.to_owned(),
        stacks,
        stack: None,
        copy,
    }
}
