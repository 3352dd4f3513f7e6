//! `vramscope index`: a file with the card of every rank.

use crate::Failure;
use crate::arguments::{Index as Arguments, Window};
use crate::out_file::{Kind, OutFile};
use crate::output::{STRONG, complain, styled};
use crate::paths::{self, Found, Links};
use crate::read::{self, Read};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use vramscope_dataset::Cards;
use vramscope_report::card::Card;
use vramscope_report::index::{Entry, FailedFile, NO_DEVICE, Writer, parse_entry};
use vramscope_report::now;
use vramscope_report::summary::ErrorSummary;
use vramscope_report::{LoadedFile, Target};
use vramscope_units::{Bytes, grouped};

/// Writes the index of these files.
///
/// # Errors
/// The rules or an input cannot be read, or the output cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let inputs = Inputs::new(&arguments.paths)?;
    let files = inputs.count()?;
    let output = OutFile::create(&arguments.output, Kind::Index, &inputs.paths(), arguments.force)?;
    let mut out = GzEncoder::new(BufWriter::new(output), Compression::default());
    writeln!(out, "{}", Writer::header(&paths::title(&arguments.paths), files))?;
    let (mut writer, mut count) = (Writer::default(), 0);
    let read = inputs.each_entry(&Window::whole(&arguments.reading), |entry| {
        count += 1;
        Ok(writeln!(out, "{}", writer.line(entry).map_err(io::Error::other)?)?)
    })?;
    if count > 0 {
        writeln!(out, "{}", Writer::done(read.skipped_files))?;
        let output = out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        let bytes = Bytes(output.keep()?);
        let named = styled(STRONG, arguments.output.display());
        let files = (files - read.skipped_files) as u64;
        let words = [(count, "card"), (files, "file")]
            .map(|(n, word)| format!("{} {word}{}", grouped(n), if n == 1 { "" } else { "s" }));
        writeln!(anstream::stdout(), "{named}: {} of {}, {bytes}", words[0], words[1])?;
    }
    read.outcome
}

/// What cards are made of: snapshots, and datasets that have them.
pub(super) struct Inputs {
    datasets: Vec<Cards>,
    files: Vec<Found>,
}

impl Inputs {
    /// Finds the snapshots and datasets at these paths.
    ///
    /// # Errors
    /// A dataset cannot be listed.
    pub(super) fn new(paths: &[PathBuf]) -> Result<Self, Failure> {
        let (mut datasets, mut others) = (Vec::new(), Vec::new());
        for path in paths {
            match if path.is_dir() { Cards::open(path)? } else { None } {
                Some(cards) => datasets.push(cards),
                None => others.push(path.clone()),
            }
        }
        Ok(Self { datasets, files: paths::expand(&others, Links::Everywhere) })
    }

    /// The files. Datasets are left out: a folder is never replaced.
    fn paths(&self) -> Vec<&Path> {
        self.files.iter().map(|found| found.path.as_path()).collect()
    }

    /// The number of files.
    fn count(&self) -> io::Result<usize> {
        let counts = self.datasets.iter().map(Cards::count);
        Ok(counts.sum::<io::Result<usize>>()? + self.files.len())
    }

    /// Calls `take` with each entry of an index, in the order of the inputs but datasets first.
    ///
    /// # Errors
    /// The rules or a dataset cannot be read, or `take` fails.
    pub(super) fn each_entry(
        &self,
        window: &Window,
        mut take: impl FnMut(Entry) -> Result<(), Failure>,
    ) -> Result<Read, Failure> {
        if !self.datasets.is_empty() && (window.reading.rules.is_some() || window.events.is_some())
        {
            let message =
                "a dataset has the cards of its export: --rules and --events do not apply";
            return Err(Failure::Usage(message.to_owned()));
        }
        let mut has_failed = false;
        for dataset in &self.datasets {
            let mut failure = None;
            let read = dataset.read(|json| {
                let entry = parse_entry(json.as_bytes()).map_err(io::Error::other)?;
                if let Err(FailedFile { path, error, .. }) = &entry
                    && error != NO_DEVICE
                {
                    complain(format_args!("{path}: {error}"));
                    has_failed = true;
                }
                take(entry).map_err(|error| {
                    failure = Some(error);
                    io::Error::other("the card cannot be used")
                })
            });
            failure.map_or(Ok(()), Err)?;
            read?;
        }
        if self.files.is_empty() && !self.datasets.is_empty() {
            let outcome = if has_failed { Err(Failure::Input) } else { Ok(()) };
            return Ok(Read { skipped_files: 0, outcome });
        }
        let read = read::in_order(&self.files, window, entries, |entries| {
            entries.into_iter().try_for_each(&mut take)
        })?;
        let outcome = if has_failed { Err(Failure::Input) } else { read.outcome };
        Ok(Read { outcome, ..read })
    }
}

/// The entries of a file, one for each device.
pub(crate) fn entries(
    path: &Path,
    bytes: u64,
    file: Result<LoadedFile, ErrorSummary>,
) -> Vec<Entry> {
    let path = path.to_string_lossy();
    let failed = |why: &str| vec![Err(FailedFile::new(&path, Bytes(bytes), why))];
    let file = match file {
        Ok(file) => file,
        Err(error) => return failed(&error.message),
    };
    let targets = file.entries.iter().flat_map(|entry| {
        (0..entry.traces.len()).map(|index| Target { path: &entry.path, entry, index })
    });
    let cards: Vec<Entry> = targets
        .map(|target| Ok(Box::new(now(async |budget| Card::new(target, budget).await))))
        .collect();
    if cards.is_empty() { failed(NO_DEVICE) } else { cards }
}
