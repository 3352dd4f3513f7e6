//! `vramscope export --as index`: a file with the card of every rank.

use crate::Failure;
use crate::arguments::{Export as Arguments, Window};
use crate::commands::cards::Inputs;
use crate::out_file::{Kind, OutFile};
use crate::output::{STRONG, styled};
use crate::paths;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use vramscope_report::index::Writer;
use vramscope_units::{Bytes, grouped};

/// Writes the index of these files.
///
/// # Errors
/// An option does not apply, the rules or an input cannot be read, or the output cannot be written.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let usage = |message: &str| Err(Failure::Usage(message.to_owned()));
    let Some(path) = &arguments.output else {
        return usage("--as index needs -o FILE, such as run.vramscope");
    };
    let (input, window) = (&arguments.input, &arguments.input.common.window);
    if window.events.is_some() || input.choice.is_some() {
        return usage("an index is of whole files: --window, --device and --snapshot do not apply");
    }
    if arguments.data.is_some() || arguments.source || arguments.redact {
        return usage("--data, --source and --redact need --as html");
    }
    let given: Vec<PathBuf> =
        std::iter::once(&input.path).chain(&arguments.more).cloned().collect();
    let inputs = Inputs::new(&given)?;
    let files = inputs.count()?;
    let output = OutFile::create(path, Kind::Index, &inputs.paths(), arguments.force)?;
    let mut out = GzEncoder::new(BufWriter::new(output), Compression::default());
    writeln!(out, "{}", Writer::header(&paths::title(&given), files))?;
    let (mut writer, mut count) = (Writer::default(), 0);
    let read = inputs.each_entry(&Window::whole(&window.reading), |entry| {
        count += 1;
        Ok(writeln!(out, "{}", writer.line(entry).map_err(io::Error::other)?)?)
    })?;
    if count > 0 {
        writeln!(out, "{}", Writer::done(read.skipped_files))?;
        let output = out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        let bytes = Bytes(output.keep()?);
        let named = styled(STRONG, path.display());
        let files = (files - read.skipped_files) as u64;
        let words = [(count, "card"), (files, "file")]
            .map(|(n, word)| format!("{} {word}{}", grouped(n), if n == 1 { "" } else { "s" }));
        writeln!(anstream::stdout(), "{named}: {} of {}, {bytes}", words[0], words[1])?;
    }
    read.outcome
}
