//! `vramscope ranks --one-gpu`.

use crate::Failure;
use crate::arguments::{Ranks as Arguments, Window};
use crate::output::{self, STRONG, Table, styled};
use crate::paths::{self, Links};
use crate::printable::printable;
use crate::read;
use std::io::{self, Write};
use vramscope_report::now;
use vramscope_report::one_gpu::{OneGpu, Process, ProcessRecord, one_gpu, one_gpu_text};

/// Prints what processes of one GPU reserve together.
///
/// # Errors
/// An input cannot be read or has no clock, or the output cannot be written.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let files = paths::expand(&arguments.paths, Links::Everywhere);
    let window = Window::whole(&common.window.reading);
    let read = read::each_found(&files, &window, |path, _, result| {
        let file = result.ok()?;
        let entry = read::select_entry(&file, None).ok()?;
        let target = match read::select_device(entry, None, &entry.path) {
            Ok(target) => target,
            Err(failure) => return Some(Err(failure)),
        };
        let process = now(async |budget| Process::of(target, budget).await);
        Some(process.ok_or_else(|| {
            Failure::Usage(format!(
                "{}: its events have no time (PyTorch 2.1 and later write it)",
                path.display()
            ))
        }))
    })?;
    let processes = read.each.into_iter().flatten().flatten();
    let processes: Vec<Process> = processes.collect::<Result<_, Failure>>()?;
    if processes.is_empty() {
        return read.outcome;
    }
    output::print(&one_gpu(&processes), common.format, text)?;
    read.outcome
}

fn text(out: &mut dyn Write, record: &OneGpu) -> io::Result<()> {
    writeln!(out, "{}", styled(STRONG, printable(&one_gpu_text(record))))?;
    if record.declined.is_some() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(
        &["process", "reserved then", "in use then", "highest", "lowest", "pause", "from", "with"],
        &[false, true, true, true, true, true, true, true],
    );
    record.processes.iter().for_each(|one| table.row(row(one)));
    table.write(out)
}

fn row(one: &ProcessRecord) -> Vec<String> {
    let [pause, from, with] = one.pause.map_or_else(Default::default, |pause| {
        [pause.length.to_string(), pause.after.to_string(), pause.reserved.to_string()]
    });
    vec![
        one.path.clone(),
        one.reserved.to_string(),
        one.active.to_string(),
        one.highest.to_string(),
        one.lowest.to_string(),
        pause,
        from,
        with,
    ]
}
