//! The cards of many snapshots, made in the background: the page shows a run without reading its
//! files.
//!
//! The page asks for the cards in parts. Each set of cards of a file has a number. A part is an
//! index of its own, with the sets from one number on. Its first line has the next number. When a
//! file changes, its new cards get the next number and replace the old ones. So memory and answers
//! grow with the number of files, however often they change.

use super::shelf::{self, Shelf};
use crate::commands::cards::entries;
use crate::memory;
use crate::read::{Limits, map_in_order, read_opened};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vramscope_report::index::{Entry, Writer, parse_entry};
use vramscope_report::summary::ErrorKind;

/// The page reads fewer snapshots than this as quickly itself.
const MIN_FILES: usize = 33;

/// Bytes after which an answer ends, at the end of a file's cards. The page asks for the rest.
const MAX_ANSWER: usize = 4 << 20;

/// Where the page finds the cards.
#[derive(Serialize)]
pub(crate) struct CardsAt {
    /// Relative to the index.
    url: &'static str,
    /// The number of files of which cards are made.
    total: usize,
}

/// The cards of the files that are served.
#[derive(Default)]
pub(crate) struct Cards {
    state: Mutex<State>,
    is_stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The run's name.
    title: String,
    /// The listed files by their number on the shelf; none before there are many.
    files: BTreeMap<usize, Listed>,
    /// The cards of each file, compressed, by their own number from 1 on.
    made: BTreeMap<u64, Arc<[u8]>>,
    /// The number of the cards that were made last.
    last: u64,
    /// The files whose cards are not made yet, each with whether a search of a folder found it.
    waiting: BTreeMap<usize, bool>,
    is_begun: bool,
    is_running: bool,
}

/// A listed file.
struct Listed {
    version: String,
    /// The number of its cards; `None` if there are none yet.
    cards: Option<u64>,
    /// Whether it was read and is no snapshot.
    is_other: bool,
}

/// What was made of a file.
struct Made {
    number: usize,
    /// Empty if the file is gone.
    entries: Vec<Entry>,
    /// Whether a search of a folder found it, and it is no snapshot.
    is_other: bool,
}

impl Cards {
    /// Makes the cards of these files that are not made yet. `None` for few files. It needs a
    /// runtime.
    pub(crate) fn of(
        self: &Arc<Self>,
        shelf: &Arc<Shelf>,
        title: &str,
        files: &[shelf::Entry],
    ) -> Option<CardsAt> {
        let mut state = self.lock();
        if files.len() < MIN_FILES && !state.is_begun {
            return None;
        }
        state.is_begun = true;
        title.clone_into(&mut state.title);
        state.list(files);
        if !state.is_running && !state.waiting.is_empty() {
            state.is_running = true;
            let (cards, shelf) = (Arc::clone(self), Arc::clone(shelf));
            tokio::task::spawn_blocking(move || cards.make(&shelf));
        }
        Some(CardsAt { url: "cards", total: files.len() })
    }

    /// The cards from this number on, as an index. Its last line, which tells that all are there,
    /// is absent while cards are made. Empty for few files.
    ///
    /// # Errors
    /// Cards cannot be unpacked.
    pub(crate) fn text(&self, from: u64) -> io::Result<String> {
        let (made, title, total, done) = {
            let state = self.lock();
            if !state.is_begun {
                return Ok(String::new());
            }
            let made = state.made.range(from..).map(|(&number, cards)| (number, Arc::clone(cards)));
            let skipped = state.files.values().filter(|file| file.is_other).count();
            let done = (!state.is_running).then(|| Writer::done(skipped));
            (made.collect::<Vec<_>>(), state.title.clone(), state.files.len(), done)
        };
        let (mut writer, mut lines) = (Writer::default(), String::new());
        let (mut next, mut is_whole) = (from.max(1), true);
        for (number, cards) in made {
            is_whole = lines.len() <= MAX_ANSWER;
            if !is_whole {
                break;
            }
            for entry in unpack(&cards)? {
                lines.push_str(&writer.line(entry).map_err(io::Error::other)?);
                lines.push('\n');
            }
            next = number + 1;
        }
        let mut text = Writer::header_of_part(&title, total, next) + "\n" + &lines;
        if let Some(done) = done.filter(|_| is_whole) {
            text.push_str(&done);
            text.push('\n');
        }
        Ok(text)
    }

    /// Ends the work.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes cards until none is waiting.
    fn make(&self, shelf: &Shelf) {
        loop {
            let waiting: Vec<(usize, bool)> = {
                let mut state = self.lock();
                state.is_running = !state.waiting.is_empty();
                std::mem::take(&mut state.waiting).into_iter().collect()
            };
            if waiting.is_empty() {
                return;
            }
            let limits = Limits {
                events: None,
                memory: memory::limit(None, crate::read::threads(waiting.len())),
            };
            let read = |&(number, is_searched): &(usize, bool)| {
                // A file may be gone, or a link may lead elsewhere now.
                let Some((path, file, _)) = shelf.open(number) else {
                    return Made { number, entries: Vec::new(), is_other: true };
                };
                let (bytes, result) = read_opened(&path, Ok(file), &limits, |_| {});
                let is_other = is_searched
                    && result.as_ref().is_err_and(|error| error.kind == ErrorKind::NoSnapshot);
                Made { number, entries: entries(&path, bytes, result), is_other }
            };
            let made = map_in_order(&waiting, read, |made: Made| {
                if self.is_stopped.load(Ordering::Relaxed) {
                    return Err("the server has stopped".to_owned());
                }
                self.lock().add(made).map_err(|error| error.to_string())
            });
            if made.is_err() {
                self.lock().is_running = false;
                return;
            }
        }
    }
}

impl State {
    /// Notes the files that are listed now. What is known of others is dropped.
    fn list(&mut self, files: &[shelf::Entry]) {
        let listed: BTreeSet<usize> = files.iter().map(|file| file.number).collect();
        self.waiting.retain(|number, _| listed.contains(number));
        let made = &mut self.made;
        self.files.retain(|number, file| {
            let is_listed = listed.contains(number);
            if let Some(cards) = file.cards.filter(|_| !is_listed) {
                made.remove(&cards);
            }
            is_listed
        });
        for file in files {
            let known = self.files.entry(file.number).or_insert_with(|| Listed {
                version: String::new(),
                cards: None,
                is_other: false,
            });
            if known.version != file.version {
                known.version.clone_from(&file.version);
                self.waiting.insert(file.number, file.searched);
            }
        }
    }

    /// Takes the cards of a file in place of older ones.
    fn add(&mut self, Made { number, entries, is_other }: Made) -> io::Result<()> {
        // Without a place in the list, the file is gone.
        let Some(file) = self.files.get_mut(&number) else { return Ok(()) };
        let old = file.cards.take().and_then(|cards| self.made.remove(&cards));
        // The page has to learn what became of cards that it has.
        file.is_other = entries.is_empty() || (is_other && old.is_none());
        if !file.is_other {
            self.last += 1;
            file.cards = Some(self.last);
            self.made.insert(self.last, pack(entries)?);
        }
        Ok(())
    }
}

/// The entries of a file as lines of JSON, compressed: there may be thousands of files.
fn pack(entries: Vec<Entry>) -> io::Result<Arc<[u8]>> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    for entry in entries {
        let line = match entry {
            Ok(card) => card.short().to_json(),
            Err(file) => file.to_json(),
        };
        writeln!(packed, "{line}")?;
    }
    Ok(packed.finish()?.into())
}

/// The entries of a file.
fn unpack(packed: &[u8]) -> io::Result<Vec<Entry>> {
    let lines = BufReader::new(DeflateDecoder::new(packed)).lines();
    lines.map(|line| parse_entry(line?.as_bytes()).map_err(io::Error::other)).collect()
}
