//! Cards of ranks: of snapshots, of datasets and of indexes.

use crate::Failure;
use crate::arguments::Window;
use crate::output;
use crate::paths::{self, Found};
use crate::read::{self, Read};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use vramscope_dataset::Cards;
use vramscope_report::card::{Card, Names};
use vramscope_report::index::{EXTENSION, Entry, FailedFile, NO_DEVICE, Reader, parse_entry};
use vramscope_report::now;
use vramscope_report::summary::ErrorSummary;
use vramscope_report::{LoadedFile, Target};
use vramscope_units::Bytes;

/// Bytes per read of an index.
const CHUNK_BYTES: usize = 1 << 20;

/// Whether a path names an index.
pub(crate) fn is_index(path: &Path) -> bool {
    path.to_string_lossy().ends_with(EXTENSION)
}

/// Refuses indexes, where a command needs snapshots.
///
/// # Errors
/// A path names an index.
pub(crate) fn refuse_index<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    match paths.into_iter().find(|path| is_index(path)) {
        None => Ok(()),
        Some(path) => {
            let path = path.display();
            Err(Failure::Usage(format!(
                "{path} is an index, which has no snapshots: `vramscope diagnose` and `vramscope \
                 ranks` read it, and name the file to look at"
            )))
        }
    }
}

/// Refuses options about reading snapshots, where an index is read.
///
/// # Errors
/// There is such an option.
pub(super) fn refuse_reading(path: &Path, window: &Window) -> Result<(), Failure> {
    if window.reading.rules.is_none() && window.events.is_none() {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::Usage(format!(
        "{path} has the cards of its export: --rules and --window do not apply"
    )))
}

/// Calls `take` with each entry of an index, compressed or not, and with the names that it refers
/// to. Returns the number of files that the index skipped.
///
/// # Errors
/// The file cannot be read, or is no whole index.
pub(super) fn each_of_index(
    path: &Path,
    mut take: impl FnMut(&Entry, &Names),
) -> Result<u64, String> {
    let open = || -> io::Result<Box<dyn io::Read>> {
        let mut file = File::open(path)?;
        let mut start = [0; 2];
        let is_packed = file.read_exact(&mut start).is_ok() && start == [0x1f, 0x8b];
        let file = BufReader::new(File::open(path)?);
        Ok(if is_packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
    };
    let failed = |error: io::Error| format!("cannot read the file: {error}");
    let mut file = open().map_err(failed)?;
    let (mut reader, mut chunk) = (Reader::default(), vec![0; CHUNK_BYTES]);
    loop {
        let bytes = file.read(&mut chunk).map_err(failed)?;
        if bytes == 0 {
            break;
        }
        for entry in reader.feed(&chunk[..bytes])? {
            if let Err(FailedFile { path, error, .. }) = &entry
                && error != NO_DEVICE
            {
                output::complain_of(path, error);
            }
            take(&entry, reader.names());
        }
    }
    if reader.is_done() {
        Ok(reader.skipped_files())
    } else {
        Err("the index ends early".to_owned())
    }
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
        Ok(Self { datasets, files: paths::to_read(&others) })
    }

    /// The files. Datasets are left out: a folder is never replaced.
    pub(super) fn paths(&self) -> Vec<&Path> {
        self.files.iter().map(|found| found.path.as_path()).collect()
    }

    /// The number of files.
    pub(super) fn count(&self) -> io::Result<usize> {
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
                "a dataset has the cards of its export: --rules and --window do not apply";
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
                    output::complain_of(path, error);
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
        .map(|target| Ok(Box::new(now(async |budget| Card::whole(target, budget).await))))
        .collect();
    if cards.is_empty() { failed(NO_DEVICE) } else { cards }
}
