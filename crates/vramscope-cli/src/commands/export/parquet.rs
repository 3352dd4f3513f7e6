//! `vramscope export --as parquet`: the files of a job as a dataset.

use crate::Failure;
use crate::arguments::Export as Arguments;
use crate::dataset::{Exported, Job, find, plan};
use crate::output::complain;
use crate::read;
use std::io::ErrorKind;
use std::path::PathBuf;
use vramscope_dataset::check_dataset;
use vramscope_units::{Bytes, grouped};

/// Adds files to a dataset.
///
/// # Errors
/// An option does not apply, an input cannot be read, or the dataset cannot be read or written.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let usage = |message: &str| Err(Failure::Usage(message.to_owned()));
    let Some(dataset) = &arguments.output else {
        return usage("--as parquet needs -o DATASET: the folder of the dataset");
    };
    let (input, window) = (&arguments.input, &arguments.input.common.window);
    if window.events.is_some() || input.choice.is_some() {
        return usage(
            "a dataset is of whole files: --window, --device and --snapshot do not apply",
        );
    }
    if arguments.data.is_some() || arguments.source || arguments.redact {
        return usage("--data, --source and --redact need --as html");
    }
    let given: Vec<PathBuf> =
        std::iter::once(&input.path).chain(&arguments.more).cloned().collect();
    let found = find(&given, arguments.run.as_deref())?;
    let usage_or_io = |error: std::io::Error| match error.kind() {
        ErrorKind::InvalidInput => Failure::Usage(error.to_string()),
        _ => Failure::Io(error),
    };
    check_dataset(dataset, arguments.force).map_err(usage_or_io)?;
    let plan = plan(dataset, &found).map_err(usage_or_io)?;
    if let Some(removed) = removed(&plan.removed) {
        complain(removed);
    }
    let files = plan.parts.iter().flat_map(|part| &part.sources);
    let job = Job {
        dataset,
        rules: read::load_rules(&window.reading)?,
        max_memory: window.reading.max_memory,
        bar: read::progress_bar(files.map(|source| source.path.as_path())),
        is_named: &|source| found.is_named(source),
        failed: &|source, error| read::print_failure(&source.path, error),
    };
    let exported = job.run(plan)?;
    for (source, error) in &exported.failed_before {
        complain(format_args!("{}: {error}", source.path.display()));
    }
    read::report_skipped(exported.skipped);
    if exported.converted + exported.present == 0 {
        read::none_found(&[]);
        return Err(Failure::Input);
    }
    complain(said(&exported));
    let is_whole = exported.failed.is_empty() && exported.failed_before.is_empty();
    if is_whole { Ok(()) } else { Err(Failure::Input) }
}

/// What was removed: `removed 3 files of an interrupted or older export, such as ds/ranks/...`.
fn removed(files: &[PathBuf]) -> Option<String> {
    let first = files.first()?.display();
    let count = grouped(files.len() as u64);
    Some(match files.len() {
        1 => format!("removed a file of an interrupted or older export: {first}"),
        _ => format!("removed {count} files of an interrupted or older export, such as {first}"),
    })
}

/// What was done: `32 files of 640 MiB in 16 parts of 18.2 MiB; 8 files were there`.
fn said(exported: &Exported) -> String {
    let files = |count: usize| match count {
        1 => "1 file".to_owned(),
        count => format!("{} files", grouped(count as u64)),
    };
    let parts = match exported.parts {
        1 => "1 part".to_owned(),
        count => format!("{} parts", grouped(count as u64)),
    };
    let (read, written) = (Bytes(exported.bytes_read), Bytes(exported.bytes_written));
    let converted = format!("{} of {read} in {parts} of {written}", files(exported.converted));
    match exported.present {
        0 => converted,
        1 => format!("{converted}; 1 file was there"),
        count => format!("{converted}; {} were there", files(count)),
    }
}
