//! Reads a file within a memory limit, with a preview of its curve.

use crate::load_preview::Sketch;
use crate::memory_limit::Limit;
use std::ops::Range;
use vramscope_protocol::{Failure, Progress, TooLarge};
use vramscope_report::{LoadedFile, piece_len};
use vramscope_snapshot::{LoadError, Reader};
use vramscope_units::Bytes;

/// Reads a file from chunks.
pub struct Loader {
    path: String,
    total: u64,
    read: u64,
    reader: Reader,
    sketch: Sketch,
    /// The part of the events that is read.
    events: Option<Range<u32>>,
    limit: Option<Limit>,
}

/// Files from this size on show a preview of their curve while they load.
const PREVIEW_MIN_BYTES: u64 = 50 << 20;

impl Loader {
    /// For the file at `path`, of `total` bytes (0 when that is not known).
    pub fn new(path: &str, total: u64) -> Self {
        Self {
            path: path.to_owned(),
            total,
            read: 0,
            reader: Reader::default(),
            sketch: Sketch::default(),
            events: None,
            limit: None,
        }
    }

    /// Of every trace read only these events, and those of what is live around them. Said before
    /// the first byte.
    #[must_use]
    pub fn of_events(mut self, events: Range<u32>) -> Self {
        self.reader = Reader::for_event_range(events.clone());
        self.events = Some(events);
        self
    }

    /// End in words before more than so many bytes of memory are needed. Said before the first
    /// byte.
    #[must_use]
    pub fn within(mut self, memory: u64) -> Self {
        self.limit = Some(Limit::new(memory));
        self
    }

    /// What can be opened of a file that needs more memory than there is; its bytes have ended.
    pub fn too_large(&self) -> Option<TooLarge> {
        self.limit.as_ref()?.outcome(&self.path, self.events.as_ref(), &self.reader, &self.sketch)
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        self.reader.feed(chunk).map_err(|error| failure(&error))?;
        if let Some(limit) = &mut self.limit {
            // People choose a part from the whole curve: it goes on when the rows do not.
            self.sketch.follow(&self.reader);
            let fraction = if self.total == 0 { 0.0 } else { self.read as f64 / self.total as f64 };
            limit.watch(
                &self.path,
                self.events.as_ref(),
                (fraction, chunk.len()),
                &mut self.reader,
            )?;
            if limit.is_met() {
                return Ok(());
            }
        }
        self.reader.reserve_ahead(self.read, self.total);
        Ok(())
    }

    /// Read the next bytes.
    ///
    /// # Errors
    /// When they show that the file is no snapshot.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        chunk.chunks(piece_len(self.total)).try_for_each(|piece| {
            self.read += piece.len() as u64;
            self.take(piece)
        })
    }

    /// Read the next bytes of what is in the file, which were unpacked elsewhere from its first
    /// `read` bytes.
    ///
    /// # Errors
    /// When they show that the file holds no snapshot.
    pub fn feed_unpacked(&mut self, chunk: &[u8], read: u64) -> Result<(), Failure> {
        self.read = read;
        self.take(chunk)?;
        if self.total >= PREVIEW_MIN_BYTES {
            self.sketch.follow(&self.reader);
        }
        Ok(())
    }

    /// How far it is. That of a large file has its curve so far.
    pub fn progress(&self) -> Progress {
        let progress = progress(self.read, self.total);
        if self.total < PREVIEW_MIN_BYTES {
            progress
        } else {
            Progress { provisional: self.sketch.picture(), ..progress }
        }
    }

    /// The bytes have ended.
    ///
    /// # Errors
    /// When they are no whole snapshot.
    pub fn finish(self) -> Result<LoadedFile, Failure> {
        let named = self.reader.finish().map_err(|error| failure(&error))?;
        Ok(LoadedFile::new(self.path, self.read, named))
    }
}

fn failure(error: &LoadError) -> Failure {
    Failure { id: None, message: error.to_string(), hint: error.hint().map(str::to_owned) }
}

fn progress(read: u64, total: u64) -> Progress {
    if total == 0 {
        return Progress { fraction: 0.0, text: Bytes(read).to_string(), provisional: None };
    }
    let fraction = (read as f64 / total as f64).min(1.0);
    Progress { fraction, text: format!("{} of {}", Bytes(read), Bytes(total)), provisional: None }
}
