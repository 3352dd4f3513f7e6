//! `vramscope export`.

use crate::Failure;
use crate::arguments::{Export as Arguments, ExportAs, Format};
use crate::read;
use std::io::{self, Write};
use vramscope_report::export::{ExportFormat, export};

/// Writes a device in another tool's form.
///
/// # Errors
/// When the file cannot be read, has no such device, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.one.common.format == Format::Json {
        return Err(Failure::Usage("export has forms of its own: name one with --as".to_owned()));
    }
    read::device(&arguments.one, |target| {
        let weight = || super::weight(target, arguments.weight, &arguments.moment);
        let form = match arguments.form {
            ExportAs::Folded => ExportFormat::Folded(weight()?),
            ExportAs::Speedscope => ExportFormat::Speedscope(weight()?),
            ExportAs::Csv => ExportFormat::Csv,
            ExportAs::Perfetto => ExportFormat::Perfetto,
        };
        let to: Box<dyn Write + Send> = match &arguments.output {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(std::fs::File::create(path).map_err(|e| {
                io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()))
            })?),
        };
        let mut out = io::BufWriter::new(to);
        export(target, form, &mut out)?;
        Ok(out.flush()?)
    })
}
