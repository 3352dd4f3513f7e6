//! `vramscope export --as pickle`.

use crate::Failure;
use crate::arguments::Export as Arguments;
use std::io::{self, Write};
use vramscope_report::{Target, copy, now, part};
use vramscope_units::grouped;

/// Writes a part of the device's recording as a snapshot.
pub(super) fn write(
    arguments: &Arguments,
    target: Target<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let events = arguments.input.common.window.events.clone().unwrap_or_default();
    let Some(part) = now(async |budget| part(target, events, budget).await) else {
        let of = grouped(u64::from(target.trace().slots() - 1));
        return Err(Failure::Usage(format!("--window: the device has {of} events")));
    };
    let mut written: io::Result<()> = Ok(());
    copy::snapshot(&part, &mut |piece| {
        if written.is_ok() {
            written = out.write_all(piece);
        }
    });
    Ok(written?)
}
