//! Folded stacks, one call stack per line: `outermost;...;innermost weight`.

use super::measure;
use crate::flame::Weight;
use crate::frames::frames;
use crate::target::Target;
use crate::text;
use std::io::{self, Write};
use vramscope_trace::by_stack;
use vramscope_trace::slicing::Budget;

/// The cost of a line, in units of [`Budget`].
const LINE_COST: u64 = 512;

pub(super) async fn write(
    target: Target<'_>,
    weight: Weight,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    let (trace, carving, measure) =
        (target.trace(), target.entry.carving(target.index), measure(weight));
    for share in by_stack(trace, |i| measure.of(trace, carving, i), budget).await {
        let frames = frames(target.snapshot(), share.stack);
        let mut line: Vec<String> = frames.iter().rev().map(|f| clean(&f.label())).collect();
        line.extend(share.no_stack.map(|why| text::no_stack(why).to_owned()));
        if share.is_of_free {
            line.insert(0, "(freed here, allocated before the window)".to_owned());
        }
        writeln!(out, "{} {}", line.join(";"), share.weight)?;
        budget.charge(LINE_COST).await;
    }
    Ok(())
}

/// Replaces the characters that would end the frame or the line.
fn clean(frame: &str) -> String {
    frame.replace(';', ":").replace(['\n', '\r'], " ")
}
