//! The KV cache that an inference engine can have, in `what-if` and `peak --by pool`.

use crate::output::{STRONG, styled};
use crate::printable::printable;
use std::io::{self, Write};
use vramscope_report::serving::ServingRecord;

/// Writes the sum, and each set of flags in a line of its own, to be pasted.
pub(super) fn write(out: &mut dyn Write, serving: &ServingRecord) -> io::Result<()> {
    serving.text.iter().try_for_each(|sentence| writeln!(out, "{}", printable(sentence)))?;
    for flag in &serving.flags {
        writeln!(out, "{}:\n  {}", printable(&flag.of), styled(STRONG, printable(&flag.text)))?;
    }
    Ok(())
}
