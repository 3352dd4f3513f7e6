//! Folded stacks: `outermost;...;innermost weight`, a line a stack.

use super::measure;
use crate::report::flame::Weight;
use crate::report::{Target, frames};
use std::io::{self, Write};
use vramscope_analysis::by_stack;

pub(super) fn write(target: Target<'_>, weight: Weight, out: &mut dyn Write) -> io::Result<()> {
    for share in by_stack(target.trace(), target.part.carving(target.index), measure(weight)) {
        let frames = frames(target.snapshot(), share.stack);
        let mut line: Vec<String> = frames.iter().rev().map(|f| clean(&f.short())).collect();
        if line.is_empty() {
            line.push("(no stack)".to_owned());
        }
        if share.is_of_free {
            line.insert(0, "(freed here, allocated before the window)".to_owned());
        }
        writeln!(out, "{} {}", line.join(";"), share.weight)?;
    }
    Ok(())
}

/// A frame must not end the frame, nor the line.
fn clean(frame: &str) -> String {
    frame.replace(';', ":").replace(['\n', '\r'], " ")
}
