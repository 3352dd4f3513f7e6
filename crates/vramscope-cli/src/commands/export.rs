//! `vramscope export`.

mod html;
mod index;
mod parquet;
mod pickle;
mod trace;

use crate::Failure;
use crate::arguments::{Export as Arguments, ExportAs, Format};
use crate::out_file::{Kind, write_file};
use crate::read;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use vramscope_report::export::{ExportFormat, export};
use vramscope_report::now;
use vramscope_report::{Target, sidecar};

pub(crate) use html::write as write_html;

/// Writes a device in the format of another tool.
///
/// # Errors
/// The file cannot be read, the device or event does not exist, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.input.common.format == Format::Json {
        let message = "export does not support --format json: choose a format with --as";
        return Err(Failure::Usage(message.to_owned()));
    }
    if arguments.trace.is_some() && arguments.file_format != ExportAs::Perfetto {
        return Err(Failure::Usage("--trace needs --as perfetto".to_owned()));
    }
    if arguments.run.is_some() && arguments.file_format != ExportAs::Parquet {
        return Err(Failure::Usage("--run needs --as parquet".to_owned()));
    }
    match arguments.file_format {
        ExportAs::Html => return html::run(arguments),
        ExportAs::Parquet => return parquet::run(arguments),
        ExportAs::Index => return index::run(arguments),
        _ => {}
    }
    if !arguments.more.is_empty()
        || arguments.data.is_some()
        || arguments.source
        || arguments.redact
    {
        let message = "several paths need --as html, parquet or index; --data, --source and \
                       --redact need --as html";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let Some(trace) = &arguments.trace {
        // Before an output begins.
        std::fs::File::open(trace)
            .map_err(|why| Failure::Usage(format!("--trace {}: {why}", trace.display())))?;
    }
    let kind = match arguments.file_format {
        ExportAs::Folded => Kind::Folded,
        ExportAs::Speedscope => Kind::Speedscope,
        ExportAs::Csv => Kind::Csv,
        ExportAs::Pickle => Kind::Snapshot,
        ExportAs::Perfetto | ExportAs::Html | ExportAs::Parquet | ExportAs::Index => Kind::Perfetto,
    };
    if arguments.file_format == ExportAs::Pickle && arguments.input.common.window.events.is_none() {
        return Err(Failure::Usage("--as pickle needs --window A..B".to_owned()));
    }
    let path = arguments.input.path.as_path();
    let beside = sidecar::path_of(&path.to_string_lossy()).map(PathBuf::from);
    let inputs: Vec<&Path> =
        [Some(path), beside.as_deref(), arguments.trace.as_deref()].into_iter().flatten().collect();
    let work = |target: Target<'_>| {
        to_output(arguments, kind, &inputs, |out| write(arguments, target, out))
    };
    match arguments.file_format {
        // What is live around the events follows from all others.
        ExportAs::Pickle => read::with_device_of_whole(&arguments.input, work),
        _ => read::with_device(&arguments.input, work),
    }
}

/// Writes to a file, compressed if its name says so, or to standard output. `inputs` stay as they
/// are.
fn to_output(
    arguments: &Arguments,
    kind: Kind,
    inputs: &[&Path],
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(path) = arguments.output.as_deref() else {
        let mut out = BufWriter::new(io::stdout());
        write(&mut out)?;
        return Ok(out.flush()?);
    };
    write_file(path, kind, inputs, arguments.force, |out| {
        if path.extension().is_some_and(|end| end == "gz") {
            let mut gzip = GzEncoder::new(out, Compression::default());
            write(&mut gzip)?;
            gzip.finish()?;
            return Ok(());
        }
        write(out)
    })
}

fn write(
    arguments: &Arguments,
    target: Target<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let weight = || super::weight(target, arguments.weight, arguments.moment.at);
    let format = match (arguments.file_format, &arguments.trace) {
        (ExportAs::Pickle, _) => return pickle::write(arguments, target, out),
        (ExportAs::Perfetto, Some(path)) => return trace::merge(target, path, out),
        (ExportAs::Folded, _) => ExportFormat::Folded(weight()?),
        (ExportAs::Speedscope, _) => ExportFormat::Speedscope(weight()?),
        (ExportAs::Csv, _) => ExportFormat::Csv,
        (_, _) => ExportFormat::Perfetto,
    };
    Ok(now(async |budget| export(target, format, out, budget).await)?)
}
