//! `vramscope export`.

mod trace;

use crate::Failure;
use crate::arguments::{Export as Arguments, ExportAs, Format};
use crate::read;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use vramscope_report::Target;
use vramscope_report::export::{ExportFormat, export};

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
    read::with_device(&arguments.input, |target| match &arguments.output {
        None => {
            let mut out = BufWriter::new(io::stdout());
            write(arguments, target, &mut out)?;
            Ok(out.flush()?)
        }
        Some(path) => to_file(arguments, target, path),
    })
}

fn to_file(arguments: &Arguments, target: Target<'_>, path: &Path) -> Result<(), Failure> {
    // The file is created before it is read.
    if let Some(trace) = &arguments.trace
        && is_same(trace, path)
    {
        return Err(Failure::Usage("-o names the trace itself: choose another file".to_owned()));
    }
    let file = File::create(path)
        .map_err(|e| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display())))?;
    let mut out = BufWriter::new(file);
    if path.extension().is_some_and(|end| end == "gz") {
        let mut gzip = GzEncoder::new(out, Compression::default());
        write(arguments, target, &mut gzip)?;
        out = gzip.finish()?;
    } else {
        write(arguments, target, &mut out)?;
    }
    Ok(out.flush()?)
}

fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

fn write(
    arguments: &Arguments,
    target: Target<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let weight = || super::weight(target, arguments.weight, &arguments.moment);
    let format = match (arguments.file_format, &arguments.trace) {
        (ExportAs::Perfetto, Some(path)) => return trace::merge(target, path, out),
        (ExportAs::Folded, _) => ExportFormat::Folded(weight()?),
        (ExportAs::Speedscope, _) => ExportFormat::Speedscope(weight()?),
        (ExportAs::Csv, _) => ExportFormat::Csv,
        (ExportAs::Perfetto, None) => ExportFormat::Perfetto,
    };
    Ok(export(target, format, out)?)
}
