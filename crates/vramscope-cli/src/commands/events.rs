//! `vramscope events`.

use super::segments::pool_id;
use crate::Failure;
use crate::arguments::{Events as Arguments, Format};
use crate::output::{self, STRONG, Table, styled};
use crate::read;
use std::io::{self, Write};
use vramscope_report::events::{EventFilter, Events, events};
use vramscope_units::{Addr, Micros, grouped};

/// Prints the events of a device's trace.
///
/// # Errors
/// The file cannot be read, the device does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    read::with_device(&arguments.input, |target| {
        let format = arguments.input.common.format;
        let limit = output::limit(arguments.limit, format == Format::Text);
        let filter = EventFilter { address: arguments.address, range: arguments.range.clone() };
        output::print(&events(target, &filter, limit), format, text)
    })
}

fn text(out: &mut dyn Write, report: &Events<'_>) -> io::Result<()> {
    writeln!(
        out,
        "{}  {}, {} of {} events\n",
        styled(STRONG, report.path),
        vramscope_report::device_name(report.device),
        grouped((report.events.len() + report.omitted) as u64),
        grouped(report.total as u64)
    )?;
    let mut head =
        vec!["event", "time", "action", "address", "size", "stream", "pool", "call site"];
    let mut are_right = vec![true, true, false, false, true, true, false, false];
    let has_texts = report.events.iter().any(|event| event.user_metadata.is_some());
    if has_texts {
        head.push("metadata");
        are_right.push(false);
    }
    let mut table = Table::new(&head, &are_right);
    table.whole([2, 3]);
    table.optional([6, 5]);
    for event in &report.events {
        let time = event.time_us.zip(report.start_us);
        let mut row = vec![
            event.index.to_string(),
            time.map_or_else(String::new, |(time, start)| {
                format!("+{}", Micros(time.saturating_sub(start)))
            }),
            event.action.to_string(),
            event.address.map_or_else(String::new, Addr::plain),
            event.size.to_string(),
            format!("{:#x}", event.stream),
            pool_id(event.pool),
            event.site.clone(),
        ];
        if has_texts {
            row.push(event.user_metadata.as_deref().unwrap_or_default().to_owned());
        }
        table.row(row);
    }
    table.write(out)?;
    output::write_omitted(out, report.omitted, "events")
}
