//! A file: its snapshots, and what every view of them needs.

use crate::limit::Limit;
use crate::protocol::TooLarge;
use crate::protocol::{DeviceRef, Failure, Progress};
use crate::provisional::Sketch;
use crate::text;
use std::ops::Range;
use std::sync::OnceLock;
use vramscope_analysis::pool_envelope_sliced;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{
    Anomaly, Carving, Categories, Fragmentation, FreeMemory, PoolEnvelope, Rules, Sites, Trace,
    anomalies_sliced, free_slots, pool_envelope,
};
use vramscope_snapshot::{CAPACITY_CHECKS_PER_FILE, LoadError, NamedSnapshot, Reader, Snapshot};

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
    /// The file's path, with `#name` behind it where the file holds several.
    pub path: String,
    /// Its name inside the file; empty when the file is the snapshot.
    pub name: String,
    /// The tables.
    pub snapshot: Snapshot,
    /// The call sites of its stacks.
    pub sites: Sites,
    /// A trace for every device with events or segments.
    pub traces: Vec<Trace>,
    /// One for each trace, made when it is first asked for: the first picture does not need block
    /// sizes.
    carvings: Vec<OnceLock<Carving>>,
    /// The same for private pools.
    pools: Vec<OnceLock<Option<PoolEnvelope>>>,
    /// The same for categories.
    categories: Vec<OnceLock<Categories>>,
    /// The same for what deserves a look.
    anomalies: Vec<OnceLock<Vec<Anomaly>>>,
    rules: Rules,
}

impl Part {
    fn new(file: &str, named: NamedSnapshot) -> Self {
        let NamedSnapshot { name, snapshot } = named;
        let (traces, sites) = (Trace::all(&snapshot), Sites::new(&snapshot));
        let carvings = traces.iter().map(|_| OnceLock::new()).collect();
        let pools = traces.iter().map(|_| OnceLock::new()).collect();
        let categories = traces.iter().map(|_| OnceLock::new()).collect();
        let anomalies = traces.iter().map(|_| OnceLock::new()).collect();
        let rules = Rules::default();
        let path = if name.is_empty() { file.to_owned() } else { format!("{file}#{name}") };
        Self { path, name, snapshot, sites, traces, carvings, pools, categories, anomalies, rules }
    }

    /// Tell categories by these rules from now on.
    pub fn set_rules(&mut self, rules: Rules) {
        self.categories.fill_with(OnceLock::new);
        self.rules = rules;
    }

    /// What the blocks of one of its traces are, by the trace's index.
    pub fn categories(&self, trace: usize) -> &Categories {
        self.categories[trace]
            .get_or_init(|| Categories::new(&self.snapshot, &self.traces[trace], &self.rules))
    }

    /// Makes [`Part::categories`] in slices.
    pub(crate) async fn make_categories(&self, trace: usize, budget: &mut Budget) {
        if self.categories[trace].get().is_none() {
            let made =
                Categories::sliced(&self.snapshot, &self.traces[trace], &self.rules, budget).await;
            // Who could not wait may have made them meanwhile; they are the same.
            self.categories[trace].get_or_init(|| made);
        }
    }

    /// The block sizes of one of its traces, by index.
    pub fn carving(&self, trace: usize) -> &Carving {
        self.carvings[trace].get_or_init(|| Carving::new(&self.snapshot, &self.traces[trace]))
    }

    /// Makes [`Part::carving`] in slices.
    pub(crate) async fn make_carving(&self, trace: usize, budget: &mut Budget) {
        if self.carvings[trace].get().is_none() {
            let made = Carving::sliced(&self.snapshot, &self.traces[trace], budget).await;
            self.carvings[trace].get_or_init(|| made);
        }
    }

    /// What the private pools of one of its traces hold, by the trace's index; `None` when there is
    /// no such pool.
    pub fn pools(&self, trace: usize) -> Option<&PoolEnvelope> {
        let make = || pool_envelope(&self.traces[trace], self.carving(trace), &self.snapshot);
        self.pools[trace].get_or_init(make).as_ref()
    }

    /// Makes [`Part::pools`] in slices.
    pub(crate) async fn make_pools(&self, trace: usize, budget: &mut Budget) {
        if self.pools[trace].get().is_none() {
            let made = pool_envelope_sliced(
                &self.traces[trace],
                self.carving(trace),
                &self.snapshot,
                budget,
            )
            .await;
            self.pools[trace].get_or_init(|| made);
        }
    }

    /// What deserves a look on one of its traces, by index.
    pub fn anomalies(&self, trace: usize) -> &[Anomaly] {
        self.anomalies[trace]
            .get_or_init(|| run_to_completion(self.find_anomalies(trace, &mut Budget::unlimited())))
    }

    /// Makes [`Part::anomalies`] in slices.
    pub(crate) async fn make_anomalies(&self, trace: usize, budget: &mut Budget) {
        if self.anomalies[trace].get().is_none() {
            let made = self.find_anomalies(trace, budget).await;
            self.anomalies[trace].get_or_init(|| made);
        }
    }

    async fn find_anomalies(&self, index: usize, budget: &mut Budget) -> Vec<Anomaly> {
        let (snapshot, trace) = (&self.snapshot, &self.traces[index]);
        let cached =
            Fragmentation::until(snapshot, trace, self.carving(index), free_slots(trace), budget)
                .await;
        let free_at = |slot: u32| {
            let (free, largest) = (cached.free.get(slot)?, cached.largest.get(slot)?);
            Some(FreeMemory { free, largest })
        };
        anomalies_sliced(snapshot, trace, &self.sites, &free_at, budget).await
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
    sketch: Sketch,
    /// The part of the events that is read.
    events: Option<Range<u32>>,
    limit: Option<Limit>,
}

/// From this size on a file shows its curve while it is read: smaller ones are there before anybody
/// could look.
const SKETCHED: u64 = 50 << 20;

/// Bytes that are read at least before it is looked again how many rows will come.
const LEAST_PIECE: usize = 1 << 16;

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
        // What a file begins with is unlike the rest, so the sooner it is looked how much is to
        // come the less is copied for it.
        let piece = LEAST_PIECE.max((self.total / CAPACITY_CHECKS_PER_FILE) as usize);
        chunk.chunks(piece).try_for_each(|piece| {
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
        if self.total >= SKETCHED {
            self.sketch.follow(&self.reader);
        }
        Ok(())
    }

    /// How far it is. That of a large file has its curve so far.
    pub fn progress(&self) -> Progress {
        let progress = text::progress(self.read, self.total);
        if self.total < SKETCHED {
            progress
        } else {
            Progress { provisional: self.sketch.picture(), ..progress }
        }
    }

    /// The bytes have ended.
    ///
    /// # Errors
    /// When they are no whole snapshot.
    pub fn finish(self) -> Result<File, Failure> {
        let named = self.reader.finish().map_err(|error| failure(&error))?;
        let parts = named.into_iter().map(|one| Part::new(&self.path, one)).collect();
        Ok(File { path: self.path, bytes: self.read, parts })
    }
}

fn failure(error: &LoadError) -> Failure {
    Failure { id: None, message: error.to_string(), hint: error.hint().map(str::to_owned) }
}
