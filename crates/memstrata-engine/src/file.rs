//! A file: its snapshots, and what every view of them needs.

use crate::protocol::{DeviceRef, Failure, Progress};
use crate::text;
use memstrata_analysis::{Carving, Categories, Rules, Sites, Trace};
use memstrata_snapshot::{LoadError, Named, Reader, Snapshot};
use std::sync::OnceLock;

/// A file that has been read.
pub struct File {
    /// Its path, as the user gave it.
    pub path: String,
    /// Bytes of the file as it is stored.
    pub bytes: u64,
    /// Its snapshots: one, but for HTML pages.
    pub parts: Vec<Part>,
}

/// One snapshot of a file.
pub struct Part {
    /// Its name inside the file; empty when the file is the snapshot.
    pub name: String,
    /// The tables.
    pub snapshot: Snapshot,
    /// The call sites of its stacks.
    pub sites: Sites,
    /// A trace for every device with events or segments.
    pub traces: Vec<Trace>,
    /// One for each trace, made when it is first asked for: the first picture does not need block sizes.
    carvings: Vec<OnceLock<Carving>>,
    /// The same for categories.
    categories: Vec<OnceLock<Categories>>,
    rules: Rules,
}

impl Part {
    fn new(named: Named) -> Self {
        let Named { name, snapshot } = named;
        let traces = Trace::all(&snapshot);
        let carvings = traces.iter().map(|_| OnceLock::new()).collect();
        let categories = traces.iter().map(|_| OnceLock::new()).collect();
        Self { name, sites: Sites::new(&snapshot), traces, carvings, categories, rules: Rules::default(), snapshot }
    }

    /// Tell categories by these rules from now on.
    pub fn set_rules(&mut self, rules: Rules) {
        self.categories.fill_with(OnceLock::new);
        self.rules = rules;
    }

    /// What the blocks of one of its traces are, by the trace's index.
    pub fn categories(&self, trace: usize) -> &Categories {
        self.categories[trace].get_or_init(|| Categories::new(&self.snapshot, &self.traces[trace], &self.rules))
    }

    /// The block sizes of one of its traces, by index.
    pub fn carving(&self, trace: usize) -> &Carving {
        self.carvings[trace].get_or_init(|| Carving::new(&self.snapshot, &self.traces[trace]))
    }

    /// The device to show first: the one with the most events, then with the most segments.
    pub fn default_trace(&self) -> Option<&Trace> {
        // `max_by_key` takes the last of equals; the first device is the one people expect.
        self.traces.iter().rev().max_by_key(|t| (t.device.events.len(), t.device.segments.len()))
    }
}

impl File {
    /// One device's trace, and the snapshot that it is in.
    pub fn trace(&self, target: DeviceRef) -> Option<(&Part, &Trace)> {
        let part = self.parts.get(target.part as usize)?;
        Some((part, part.traces.iter().find(|t| t.device.device == target.device)?))
    }
}

/// Reads a file from chunks.
pub struct Loader {
    path: String,
    total: u64,
    read: u64,
    reader: Reader,
}

impl Loader {
    /// For the file at `path`, of `total` bytes (0 when that is not known).
    pub fn new(path: &str, total: u64) -> Self {
        Self { path: path.to_owned(), total, read: 0, reader: Reader::default() }
    }

    /// Read the next bytes.
    ///
    /// # Errors
    /// When they show that the file is no snapshot.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Progress, Failure> {
        self.read += chunk.len() as u64;
        self.reader.feed(chunk).map_err(|error| failure(&error))?;
        Ok(text::progress(self.read, self.total))
    }

    /// Read the next bytes of what is in the file, which were unpacked elsewhere from its first `read` bytes.
    ///
    /// # Errors
    /// When they show that the file holds no snapshot.
    pub fn feed_unpacked(&mut self, chunk: &[u8], read: u64) -> Result<Progress, Failure> {
        self.read = read;
        self.reader.feed(chunk).map_err(|error| failure(&error))?;
        Ok(text::progress(self.read, self.total))
    }

    /// The bytes have ended.
    ///
    /// # Errors
    /// When they are no whole snapshot.
    pub fn finish(self) -> Result<File, Failure> {
        let named = self.reader.finish().map_err(|error| failure(&error))?;
        Ok(File { path: self.path, bytes: self.read, parts: named.into_iter().map(Part::new).collect() })
    }
}

fn failure(error: &LoadError) -> Failure {
    Failure { id: None, message: error.to_string(), hint: error.hint().map(str::to_owned) }
}
