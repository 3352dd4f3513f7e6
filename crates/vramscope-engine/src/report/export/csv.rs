//! All blocks as a table (RFC 4180), in stack order: what a spreadsheet or a data frame wants.

use crate::report::{Target, blocks};
use std::io::{self, Write};

const HEAD: &str = "device,address,reuse,bytes,block_bytes,category,confidence,alloc_event,free_requested_event,\
                    free_completed_event,lifetime,preexisting,live_at_end,stream,stack_of_free,stack";

pub(super) fn write(target: Target<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEAD}\r")?;
    let number = |event: Option<u32>| event.map(|e| e.to_string()).unwrap_or_default();
    for index in 0..target.trace().blocks.len() as u32 {
        let row = blocks::row(target, index);
        let stack: Vec<String> = row.frames.iter().map(crate::report::FrameRow::short).collect();
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r",
            target.device(),
            row.address,
            row.reuse,
            row.bytes,
            row.block_bytes,
            row.category,
            row.confidence,
            number(row.alloc_event),
            number(row.free_requested_event),
            number(row.free_completed_event),
            row.lifetime,
            row.preexisting,
            row.live_at_end,
            row.stream,
            row.of_free,
            quoted(&stack.join("; ")),
        )?;
    }
    Ok(())
}

/// A field of text. Spreadsheets take one that begins like a formula for it, whatever file it comes
/// from: an apostrophe goes before.
pub(crate) fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}
