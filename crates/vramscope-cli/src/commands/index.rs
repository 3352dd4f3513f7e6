//! `vramscope index`: a file with the card of every rank.

use crate::Failure;
use crate::arguments::Index as Arguments;
use crate::output::{STRONG, styled};
use crate::paths::{self, Links};
use crate::read;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use vramscope_report::index::{Card, Writer};
use vramscope_report::summary::ErrorSummary;
use vramscope_report::{LoadedFile, Target};
use vramscope_units::{Bytes, grouped};

/// Writes the index of these files.
///
/// # Errors
/// The rules or an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let files = paths::expand(&arguments.paths, Links::Everywhere);
    let output = Output::new(&arguments.output)?;
    let mut out = GzEncoder::new(BufWriter::new(&output.file), Compression::default());
    writeln!(out, "{}", Writer::header(&paths::title(&arguments.paths), files.len()))?;
    let (mut writer, mut count) = (Writer::default(), 0);
    let read = read::in_order(&files, &arguments.common(), cards, |cards| {
        for card in cards {
            writeln!(out, "{}", writer.card(card).map_err(io::Error::other)?)?;
            count += 1;
        }
        Ok(())
    })?;
    if count > 0 {
        writeln!(out, "{}", Writer::done(read.skipped_files))?;
        out.finish()?.flush()?;
        let bytes = Bytes(output.keep()?);
        let named = styled(STRONG, arguments.output.display());
        let files = (files.len() - read.skipped_files) as u64;
        let words = [(count, "card"), (files, "file")]
            .map(|(n, word)| format!("{} {word}{}", grouped(n), if n == 1 { "" } else { "s" }));
        writeln!(anstream::stdout(), "{named}: {} of {}, {bytes}", words[0], words[1])?;
    }
    read.outcome
}

/// The cards of a file, one for each device.
pub(crate) fn cards(path: &Path, bytes: u64, file: Result<LoadedFile, ErrorSummary>) -> Vec<Card> {
    let path = path.to_string_lossy();
    let file = match file {
        Ok(file) => file,
        Err(error) => return vec![Card::failed(&path, bytes, &error.message)],
    };
    let targets = file.entries.iter().flat_map(|entry| {
        (0..entry.traces.len()).map(|index| Target { path: &entry.path, entry, index })
    });
    let cards: Vec<Card> = targets.map(|target| Card::new(target, bytes)).collect();
    if cards.is_empty() {
        return vec![Card::failed(&path, bytes, "no memory was allocated on any device")];
    }
    cards
}

/// A file that has its name only when it is complete.
struct Output {
    file: File,
    path: PathBuf,
    temporary: PathBuf,
    is_kept: bool,
}

impl Output {
    fn new(path: &Path) -> io::Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary).map_err(|e| {
            io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()))
        })?;
        Ok(Self { file, path: path.to_owned(), temporary, is_kept: false })
    }

    /// Gives the file its name, and returns its size.
    fn keep(mut self) -> io::Result<u64> {
        let bytes = self.file.metadata()?.len();
        fs::rename(&self.temporary, &self.path)?;
        self.is_kept = true;
        Ok(bytes)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = fs::remove_file(&self.temporary)
        {
            let path = self.temporary.display();
            crate::output::complain(format_args!("cannot remove {path}: {error}"));
        }
    }
}
