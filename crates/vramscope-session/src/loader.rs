//! Reads a file within a memory limit, with a preview of its curve.

use crate::load_preview::CurvePreview;
use crate::memory_limit::MemoryLimit;
use std::ops::Range;
use vramscope_protocol::{Failure, Progress, TooLarge};
use vramscope_report::summary::ErrorSummary;
use vramscope_report::{LoadedFile, piece_len};
use vramscope_snapshot::{LoadError, Reader};
use vramscope_units::Bytes;

/// Reads a file from chunks.
pub struct Loader {
    path: String,
    /// The file's size in bytes; 0 when unknown.
    total: u64,
    /// Bytes of the file read so far, packed.
    read: u64,
    reader: Reader,
    preview: CurvePreview,
    /// The event range that is read; `None` for all events.
    events: Option<Range<u32>>,
    limit: Option<MemoryLimit>,
    /// The file beside the snapshot, or why it cannot be read.
    sidecar: Option<Result<Vec<u8>, String>>,
    /// The dimensions of the model that the user gives.
    widths: Option<String>,
}

/// Files of at least this size show a preview of their curve while they load.
const PREVIEW_MIN_BYTES: u64 = 50 << 20;

impl Loader {
    /// A loader for the file at `path`, of `total` bytes (0 when unknown).
    pub fn new(path: &str, total: u64) -> Self {
        Self {
            path: path.to_owned(),
            total,
            read: 0,
            reader: Reader::default(),
            preview: CurvePreview::default(),
            events: None,
            limit: None,
            sidecar: None,
            widths: None,
        }
    }

    /// Restricts every trace to an event range, and to the events of blocks that are live around
    /// it. Must be called before the first byte.
    #[must_use]
    pub fn of_events(mut self, events: Range<u32>) -> Self {
        self.reader = Reader::for_event_range(events.clone());
        self.events = Some(events);
        self
    }

    /// Sets a memory limit in bytes. A file beyond it fails with a message before memory runs out.
    /// Must be called before the first byte.
    #[must_use]
    pub fn within(mut self, memory: u64) -> Self {
        self.limit = Some(MemoryLimit::new(memory));
        self
    }

    /// Takes the file beside the snapshot (docs/sidecar.md), or the reason why it cannot be read.
    pub fn set_sidecar(&mut self, json: Result<Vec<u8>, String>) {
        self.sidecar = Some(json);
    }

    /// Takes the dimensions of the model that the user gives.
    pub fn set_widths(&mut self, text: String) {
        self.widths = Some(text);
    }

    /// The message for a file beyond the memory limit, and the event range that fits. Valid after
    /// the last byte. `None` for a file within the limit.
    pub fn too_large(&self) -> Option<TooLarge> {
        let limit = self.limit.as_ref()?;
        limit.too_large(&self.path, self.events.as_ref(), &self.reader, &self.preview)
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        let fed = self.reader.feed(chunk);
        fed.map_err(|error| failure(&error, self.reader.may_be_snapshot()))?;
        if let Some(limit) = &mut self.limit {
            // The page offers an event range of the whole curve, so the preview goes on after rows
            // are dropped.
            self.preview.follow(&self.reader);
            let fraction = if self.total == 0 { 0.0 } else { self.read as f64 / self.total as f64 };
            limit.check(
                &self.path,
                self.events.as_ref(),
                (fraction, chunk.len()),
                &mut self.reader,
            )?;
            if limit.is_exceeded() {
                return Ok(());
            }
        }
        self.reader.reserve_ahead(self.read, self.total);
        Ok(())
    }

    /// Reads the next bytes of the file.
    ///
    /// # Errors
    /// The bytes show that the file is no snapshot, or the memory limit is exceeded and dropping
    /// rows cannot help.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        chunk.chunks(piece_len(self.total)).try_for_each(|piece| {
            self.read += piece.len() as u64;
            self.take(piece)
        })
    }

    /// Reads the next unpacked bytes of a gzip file, after its first `read` packed bytes. Browsers
    /// unpack gzip themselves.
    ///
    /// # Errors
    /// The bytes show that the file holds no snapshot, or the memory limit is exceeded and dropping
    /// rows cannot help.
    pub fn feed_unpacked(&mut self, chunk: &[u8], read: u64) -> Result<(), Failure> {
        self.read = read;
        self.take(chunk)?;
        if self.total >= PREVIEW_MIN_BYTES {
            self.preview.follow(&self.reader);
        }
        Ok(())
    }

    /// The progress. For files of at least 50 MiB it includes a preview of the curve.
    pub fn progress(&self) -> Progress {
        let progress = progress(self.read, self.total);
        if self.total < PREVIEW_MIN_BYTES {
            progress
        } else {
            Progress { provisional: self.preview.picture(), ..progress }
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The bytes are not a complete snapshot.
    pub fn finish(self) -> Result<LoadedFile, Failure> {
        let may_be_snapshot = self.reader.may_be_snapshot();
        let entries = self.reader.finish().map_err(|error| failure(&error, may_be_snapshot))?;
        let mut file = LoadedFile::new(self.path, self.read, entries);
        for entry in &mut file.entries {
            match &self.sidecar {
                Some(Ok(json)) => entry.set_sidecar(json),
                Some(Err(reason)) => entry.refuse_sidecar(reason.clone()),
                None => {}
            }
            if let Some(text) = &self.widths {
                entry.read_widths(text);
            }
        }
        Ok(file)
    }
}

fn failure(error: &LoadError, may_be_snapshot: bool) -> Failure {
    let ErrorSummary { message, hint, kind, .. } = ErrorSummary::new(error, may_be_snapshot);
    Failure { id: None, message, hint, file: Some(kind) }
}

fn progress(read: u64, total: u64) -> Progress {
    if total == 0 {
        return Progress { fraction: 0.0, text: Bytes(read).to_string(), provisional: None };
    }
    let fraction = (read as f64 / total as f64).min(1.0);
    Progress { fraction, text: format!("{} of {}", Bytes(read), Bytes(total)), provisional: None }
}
