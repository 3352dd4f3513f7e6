//! The cards of many snapshots, made in the background: the page shows a run without reading its
//! files.

use super::shelf::{self, Shelf};
use crate::commands::index::entries;
use crate::memory;
use crate::read::{Limits, map_in_order, read_chunks};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vramscope_report::index::{Entry, Writer};
use vramscope_report::summary::ErrorKind;

/// The page reads fewer snapshots than this as quickly itself.
const MIN_FILES: usize = 33;

/// An answer ends after the line with which it has this many bytes. The page asks again.
const MAX_ANSWER: usize = 4 << 20;

/// Where the page finds the cards.
#[derive(Serialize)]
pub(crate) struct CardsAt {
    /// Relative to the index.
    url: &'static str,
    /// The number of files of which cards are made.
    total: usize,
}

/// The lines of an index that is being made.
#[derive(Default)]
pub(crate) struct Cards {
    lines: Mutex<Lines>,
    is_stopped: AtomicBool,
}

#[derive(Default)]
struct Lines {
    /// The first line and the cards, each compressed: there may be thousands.
    packed: Vec<Vec<u8>>,
    writer: Writer,
    /// The numbers and versions of the files that have cards, or will.
    known: BTreeSet<(usize, String)>,
    /// Those of which none is made yet.
    waiting: Vec<(usize, bool)>,
    is_running: bool,
    skipped_files: usize,
}

/// The cards of a file, or that it is no snapshot.
type Made = Option<Vec<Entry>>;

impl Cards {
    /// Makes the cards of these files that are not made yet. `None` for few files. It needs a
    /// runtime.
    pub(crate) fn of(
        self: &Arc<Self>,
        shelf: &Arc<Shelf>,
        title: &str,
        files: &[shelf::Entry],
    ) -> Option<CardsAt> {
        let mut lines = self.lock();
        if files.len() < MIN_FILES && lines.packed.is_empty() {
            return None;
        }
        if lines.packed.is_empty() {
            lines.packed.push(pack(&Writer::header(title, files.len())).ok()?);
        }
        for file in files {
            let version = (file.number, file.version.clone());
            if lines.known.insert(version) {
                lines.waiting.push((file.number, file.searched));
            }
        }
        if !lines.is_running && !lines.waiting.is_empty() {
            lines.is_running = true;
            let (cards, shelf) = (Arc::clone(self), Arc::clone(shelf));
            tokio::task::spawn_blocking(move || cards.make(&shelf));
        }
        Some(CardsAt { url: "cards", total: files.len() })
    }

    /// The lines from this one on, each with its end. The last line, which tells that all are
    /// there, has no number: further files may come.
    ///
    /// # Errors
    /// A line cannot be unpacked.
    pub(crate) fn text(&self, from: usize) -> io::Result<String> {
        let lines = self.lock();
        let mut text = String::new();
        for packed in lines.packed.iter().skip(from) {
            if text.len() > MAX_ANSWER {
                return Ok(text);
            }
            DeflateDecoder::new(&packed[..]).read_to_string(&mut text)?;
        }
        if !lines.is_running && !lines.packed.is_empty() {
            text.push_str(&Writer::done(lines.skipped_files));
            text.push('\n');
        }
        Ok(text)
    }

    /// Ends the work.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes cards until none is waiting.
    fn make(&self, shelf: &Shelf) {
        loop {
            let waiting = {
                let mut lines = self.lock();
                lines.is_running = !lines.waiting.is_empty();
                std::mem::take(&mut lines.waiting)
            };
            if waiting.is_empty() {
                return;
            }
            let limits = Limits {
                events: None,
                memory: memory::limit(None, crate::read::threads(waiting.len())),
            };
            let read = |&(number, is_searched): &(usize, bool)| -> Made {
                // A file may be gone, or a link may lead elsewhere now.
                let (path, _) = shelf.file(number)?;
                let (bytes, result) = read_chunks(&path, &limits, |_| {});
                let is_other = is_searched
                    && result.as_ref().is_err_and(|error| error.kind == ErrorKind::NoSnapshot);
                (!is_other).then(|| entries(&path, bytes, result))
            };
            let made = map_in_order(&waiting, read, |made: Made| {
                if self.is_stopped.load(Ordering::Relaxed) {
                    return Err("the server has stopped".to_owned());
                }
                self.add(made)
            });
            if made.is_err() {
                self.lock().is_running = false;
                return;
            }
        }
    }

    fn add(&self, made: Made) -> Result<(), String> {
        let mut lines = self.lock();
        let Some(entries) = made else {
            lines.skipped_files += 1;
            return Ok(());
        };
        for entry in entries {
            let line = lines.writer.line(entry)?;
            lines.packed.push(pack(&line).map_err(|error| error.to_string())?);
        }
        Ok(())
    }
}

/// A line with its end, compressed.
fn pack(line: &str) -> io::Result<Vec<u8>> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    writeln!(packed, "{line}")?;
    packed.finish()
}
