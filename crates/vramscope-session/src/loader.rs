//! Reads a file within a memory limit, with a preview of its curve.

use crate::load_preview::CurvePreview;
use crate::memory_limit::MemoryLimit;
use crate::messages::{Failure, Progress, TooLarge};
use std::ops::Range;
use vramscope_report::summary::ErrorSummary;
use vramscope_report::{FileReader, LoadedFile, piece_len};
use vramscope_units::Bytes;

/// Reads a file from chunks.
pub struct Loader {
    file: FileReader,
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
            file: FileReader::new(path, total),
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
        self.file = self.file.of_events(events.clone());
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

    /// Takes the file beside the snapshot (SIDECAR.md), or the reason why it cannot be read.
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
        let (path, tables) = (self.file.path(), self.file.tables());
        limit.too_large(path, self.events.as_ref(), tables, &self.preview)
    }

    fn take(&mut self, piece: &[u8], read: u64) -> Result<(), Failure> {
        self.file.feed_piece(piece, read).map_err(failure)?;
        if let Some(limit) = &mut self.limit {
            // The page offers an event range of the whole curve, so the preview goes on after rows
            // are dropped.
            self.preview.follow(self.file.tables());
            limit.check(self.events.as_ref(), piece.len(), &mut self.file)?;
            if limit.is_exceeded() {
                return Ok(());
            }
        }
        self.file.reserve_ahead();
        Ok(())
    }

    /// Reads the next bytes of the file.
    ///
    /// # Errors
    /// The bytes show that the file is no snapshot, or the memory limit is exceeded and dropping
    /// rows cannot help.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        let mut pieces = chunk.chunks(piece_len(self.file.total()));
        pieces.try_for_each(|piece| self.take(piece, self.file.read() + piece.len() as u64))
    }

    /// Reads the next unpacked bytes of a gzip file, after its first `read` packed bytes. Browsers
    /// unpack gzip themselves.
    ///
    /// # Errors
    /// The bytes show that the file holds no snapshot, or the memory limit is exceeded and dropping
    /// rows cannot help.
    pub fn feed_unpacked(&mut self, chunk: &[u8], read: u64) -> Result<(), Failure> {
        self.take(chunk, read)?;
        if self.file.total() >= PREVIEW_MIN_BYTES {
            self.preview.follow(self.file.tables());
        }
        Ok(())
    }

    /// The progress. For files of at least 50 MiB it includes a preview of the curve.
    pub fn progress(&self) -> Progress {
        let progress = progress(self.file.read(), self.file.total());
        if self.file.total() < PREVIEW_MIN_BYTES {
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
        let mut file = self.file.finish().map_err(failure)?;
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

fn failure(error: ErrorSummary) -> Failure {
    let ErrorSummary { message, hint, kind, .. } = error;
    Failure { id: None, message, hint, file: Some(kind) }
}

fn progress(read: u64, total: u64) -> Progress {
    if total == 0 {
        return Progress { fraction: 0.0, text: Bytes(read).to_string(), provisional: None };
    }
    let fraction = (read as f64 / total as f64).min(1.0);
    Progress { fraction, text: format!("{} of {}", Bytes(read), Bytes(total)), provisional: None }
}
