//! `vramscope export`.

use crate::Failure;
use crate::arguments::{Export as Arguments, ExportAs, Format};
use crate::read;
use std::io::{self, Write};
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
    read::with_device(&arguments.input, |target| {
        let weight = || super::weight(target, arguments.weight, &arguments.moment);
        let format = match arguments.file_format {
            ExportAs::Folded => ExportFormat::Folded(weight()?),
            ExportAs::Speedscope => ExportFormat::Speedscope(weight()?),
            ExportAs::Csv => ExportFormat::Csv,
            ExportAs::Perfetto => ExportFormat::Perfetto,
        };
        let destination: Box<dyn Write + Send> = match &arguments.output {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(std::fs::File::create(path).map_err(|e| {
                io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()))
            })?),
        };
        let mut out = io::BufWriter::new(destination);
        export(target, format, &mut out)?;
        Ok(out.flush()?)
    })
}
