//! Requests about a whole run: the order of its files, the overview, the comparison.

use crate::messages::views::{IndexedFile, MAX_PARTS, ReadIndex, RunQuery};
use crate::messages::{FileEntry, PlannedRow, RunRequest, RunResponse};
use crate::queries::{Compared, Rank, Ranks, Said};
use crate::run_order::plan;
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_report::Quantity;
use vramscope_report::card::{Card, Names};
use vramscope_report::diagnostic;
use vramscope_report::explain::explain;
use vramscope_report::index::{Entry, Reader};
use vramscope_report::peak::BandKind;
use vramscope_report::what_if::{gpu_names, parse_gpu};
use vramscope_units::{Bytes, grouped};

/// Answers requests about all files of a run. In a browser it runs in its own worker.
#[derive(Debug, Default)]
pub struct Coordinator {
    ranks: Ranks,
    compared: Option<Box<Compared>>,
    /// What reads the index of the run.
    reader: Reader,
    /// The request whose text it reads. The answer to each is an index of its own.
    request: u32,
    /// The files of that answer so far.
    answered: FxHashSet<String>,
    /// The number and the group of the files of the run by path.
    files: FxHashMap<String, (u32, String)>,
    /// The files of the index, each with its peak.
    indexed: FxHashMap<String, Option<i64>>,
    /// Cards of files that are not planned yet. Those of earlier answers name their own call sites
    /// and stacks.
    waiting: Vec<Card>,
    /// The keys of ranks whose file has changed and has no card any more.
    gone: FxHashSet<u32>,
}

impl Coordinator {
    /// Answers a request.
    pub fn handle(&mut self, request: &RunRequest) -> RunResponse {
        match request {
            RunRequest::Plan { id, files } => {
                let (title, rows) = plan(files);
                self.know(files, &rows);
                // A rank may have a file in each of several iterations.
                let mut ranks = FxHashSet::default();
                let are_ranks =
                    rows.iter().all(|row| row.rank.is_some_and(|rank| ranks.insert(rank)));
                let (one, many) = if are_ranks { ("rank", "ranks") } else { ("file", "files") };
                let skipped =
                    files.iter().filter(|file| file.skipped && !file.closed).count() as u64;
                let skipped = Quantity::count(skipped, "other file", "other files");
                RunResponse::Planned {
                    id: *id,
                    title,
                    skipped_text: (skipped.value > 0).then(|| format!("{} skipped", skipped.exact)),
                    skipped,
                    count_text: Quantity::count(rows.len() as u64, one, many).exact,
                    rows,
                }
            }
            RunRequest::View { id, query } => {
                RunResponse::Overview { id: *id, overview: self.ranks.answer(query) }
            }
            RunRequest::List { id, query } => {
                RunResponse::List { id: *id, list: self.ranks.choose(query) }
            }
            RunRequest::Rows { id, keys } => {
                RunResponse::Rows { id: *id, rows: self.ranks.rows(keys) }
            }
            RunRequest::Gpu { id, text } => {
                let gpu = parse_gpu(text);
                RunResponse::Gpu {
                    id: *id,
                    bytes: gpu.as_ref().ok().map(|gpu| gpu.available as f64),
                    text: gpu.map_or_else(
                        |error| error,
                        |gpu| {
                            let amount = Bytes(gpu.available);
                            gpu.name.map_or(amount.to_string(), |name| format!("{name}, {amount}"))
                        },
                    ),
                    names: gpu_names().map(str::to_owned).collect(),
                }
            }
            RunRequest::Fleet { id, key, sizes, capacity } => {
                let said = Said { sizes, capacity: capacity.map(|bytes| bytes as u64) };
                let fleet = self.ranks.fleet(*key, &said).map(Box::new);
                RunResponse::Fleet { id: *id, fleet }
            }
            RunRequest::Compare { id, query } => {
                let answer = Compared::answer(&mut self.compared, query);
                RunResponse::Compared { id: *id, answer }
            }
            RunRequest::Matrix { id, query } => {
                RunResponse::Matrix { id: *id, answer: self.ranks.matrix(query) }
            }
            RunRequest::Explain { id, text } => RunResponse::Explained {
                id: *id,
                html: diagnostic::html(&explain(text).answer()),
                styles: diagnostic::styles(),
            },
        }
    }

    /// Reads further text of an index. `is_first` begins another run. Another `id` begins a further
    /// index of the run: its cards take the place of those of the same files.
    pub fn read_index(&mut self, id: u32, text: &[u8], is_first: bool) -> RunResponse {
        if is_first || id != self.request {
            let names = std::mem::take(&mut self.reader);
            let own = |card: Card| {
                if card.names == Names::default() {
                    card.naming_its_own(names.names())
                } else {
                    card
                }
            };
            self.waiting = std::mem::take(&mut self.waiting).into_iter().map(own).collect();
            self.request = id;
            self.answered.clear();
        }
        if is_first {
            self.ranks.answer(&RunQuery::Clear {});
            self.indexed.clear();
            self.waiting.clear();
            self.gone.clear();
        }
        let mut read = ReadIndex::default();
        match self.reader.feed(text) {
            Ok(entries) => {
                for entry in entries {
                    self.take(entry, &mut read.files);
                }
            }
            Err(error) => read.error = Some(error),
        }
        read.next = self.reader.next().map(|next| next as f64);
        self.place();
        read.title = self.reader.title().to_owned();
        read.is_done = self.reader.is_done();
        if !read.is_done {
            let [known, all] = [self.indexed.len() as u64, self.reader.files()].map(grouped);
            read.progress = format!("Reading {known} of {all} ranks");
        }
        RunResponse::Indexed { id, read }
    }

    /// Takes an entry. Of a file with several cards in an index, that with the highest peak counts.
    /// A file without cards has no peak, which is less than any.
    fn take(&mut self, entry: Entry, files: &mut Vec<IndexedFile>) {
        let (path, bytes, error) = match &entry {
            Ok(card) => (&card.path, card.bytes, None),
            Err(file) => (&file.path, file.bytes, Some(file.error.clone())),
        };
        let peak = entry.as_ref().ok().map(|card| card.band(BandKind::Requested).peak.0);
        let path = file_of(path);
        if self.answered.insert(path.to_owned()) {
            if self.indexed.insert(path.to_owned(), peak).is_some() {
                // The file has changed.
                self.waiting.retain(|card| file_of(&card.path) != path);
                let place = self.files.get(path).filter(|_| peak.is_none());
                self.gone.extend(place.map(|(file, _)| file * MAX_PARTS));
            }
            files.push(IndexedFile { path: path.to_owned(), bytes: bytes.0 as f64, error });
        } else if let Some(known) = self.indexed.get_mut(path) {
            if *known >= peak {
                return;
            }
            *known = peak;
        }
        self.waiting.extend(entry.ok().map(|card| *card));
    }

    /// Notes where the planned files are.
    fn know(&mut self, files: &[FileEntry], rows: &[PlannedRow]) {
        self.files.clear();
        for row in rows {
            let path = files[row.file as usize].path.clone();
            self.files.insert(path, (row.file, row.group.clone()));
        }
        self.place();
    }

    /// Gives the cards of planned files to the ranks.
    fn place(&mut self) {
        if !self.gone.is_empty() {
            self.ranks.remove(&std::mem::take(&mut self.gone));
        }
        let mut found = Vec::new();
        for mut card in std::mem::take(&mut self.waiting) {
            match self.files.get(file_of(&card.path)) {
                Some((file, group)) => {
                    let key = file * MAX_PARTS;
                    let own = std::mem::take(&mut card.names);
                    let is_named = own != Names::default();
                    let names = if is_named { &own } else { self.reader.names() };
                    found.push(Rank::new(key, group.clone(), Box::new(card), Some(names)));
                }
                None => self.waiting.push(card),
            }
        }
        if !found.is_empty() {
            self.ranks.insert(found);
        }
    }
}

/// The file of a card's path, which has the name of a snapshot in it behind `#`.
fn file_of(path: &str) -> &str {
    let is_file = |file: &&str| {
        [".pickle", ".pkl", ".pt", ".gz", ".html", ".json"].iter().any(|end| file.ends_with(end))
    };
    path.rsplit_once('#').map(|(file, _)| file).filter(is_file).unwrap_or(path)
}
