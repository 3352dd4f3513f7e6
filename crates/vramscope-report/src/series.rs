//! The iterations of `vramscope ranks`: the ranks of a run over its iterations, and which call
//! sites drift.
//!
//! A run is the files below one folder whose paths name an iteration. Each rank is compared with
//! itself: peak, growth, free memory. A call site drifts on a rank if what it keeps grows from
//! iteration to iteration by about the same. What is kept is what is live after the last whole
//! step: at the peak, activations of another batch would grow, too.

mod drift;
mod words;

use crate::card::{Card, MAX_SITES, Names};
use crate::index::Entry;
use crate::peak::BandKind;
use crate::run_folder_of;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet};
use vramscope_inference::CallSite;
use vramscope_units::{Iteration, grouped};

pub use drift::MIN_ITERATIONS;

/// The most snapshots of a run, present or not. A row has a value for every iteration of its run,
/// and each takes about a hundred bytes.
const MAX_VALUES: usize = 1 << 20;

/// The iterations of runs, in `vramscope.ranks/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesReport {
    /// The fewest iterations of a rank among which drift is looked for.
    pub min_iterations: usize,
    /// The runs, that with the most ranks first.
    pub runs: Vec<RunSeries>,
    /// Files whose path names no rank or no iteration, and second files of one iteration.
    pub other_files: usize,
    /// Files that could not be read.
    pub failed_files: usize,
    /// Files in folders that are no snapshots.
    pub skipped_files: u64,
}

/// The iterations of one run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSeries {
    /// The folder of the run; empty for the working directory.
    pub folder: String,
    /// What the series shows, in sentences.
    pub text: Vec<String>,
    /// The iterations, ascending, as the paths number them. Lists of ranks have this order.
    pub iterations: Vec<u64>,
    /// The ranks, that with the most growth of its peak first.
    pub ranks: Vec<RankSeries>,
    /// The number of ranks left out by `--limit`.
    pub omitted: usize,
    /// Call sites that drift, that with the most bytes per iteration first.
    pub drifts: Vec<Drift>,
    /// What could not be looked for, one sentence each.
    pub blind_spots: Vec<String>,
}

/// One device of a rank over the iterations of its run. A value is null where the rank has no
/// snapshot.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSeries {
    /// The rank.
    pub rank: u32,
    /// The device's ordinal.
    pub device: u32,
    /// The peak of `requested_bytes`.
    pub peak_bytes: Vec<Option<i64>>,
    /// What that peak grew by since the last iteration with a snapshot.
    pub growth_bytes: Vec<Option<i64>>,
    /// What is kept: `requested_bytes` after the last whole step, or after the last event where
    /// nothing shows steps.
    pub kept_bytes: Vec<Option<i64>>,
    /// The peak of `reserved_bytes`.
    pub reserved_bytes: Vec<Option<i64>>,
    /// Free bytes that the allocator caches at the peak of `reserved_bytes`: reserved minus active.
    pub free_bytes: Vec<Option<i64>>,
    /// Bytes of the largest free piece then.
    pub largest_free_bytes: Vec<Option<i64>>,
}

/// A call site that holds more from iteration to iteration.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// The call site.
    pub site: String,
    /// The growth from one iteration to the next, in bytes: the median of the ranks.
    pub bytes_per_iteration: u64,
    /// The same for one step, if the numbers of the iterations count steps; null if they are
    /// consecutive.
    pub bytes_per_step: Option<u64>,
    /// The ranks on which it drifts, ascending.
    pub ranks: Vec<DriftRank>,
    /// The number of other ranks that have as many iterations and do not grow there.
    pub steady_ranks: usize,
    /// The number of other ranks of which that is not known.
    pub unknown_ranks: usize,
    /// The drift in a sentence.
    pub text: String,
    /// What would disprove it, in a sentence.
    pub disproof: String,
}

/// A rank on which a call site drifts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DriftRank {
    /// The rank.
    pub rank: u32,
    /// The device's ordinal.
    pub device: u32,
    /// The iteration since which it grows.
    pub from_iteration: u64,
    /// The last iteration.
    pub to_iteration: u64,
    /// The number of snapshots from the one to the other.
    pub snapshots: usize,
    /// Bytes of the call site that are kept in the first of these.
    pub first_bytes: u64,
    /// The same in the last.
    pub last_bytes: u64,
    /// The growth from one iteration to the next, in bytes.
    pub bytes_per_iteration: u64,
}

/// What a series needs of a card.
#[derive(Clone, Debug)]
struct Point {
    events: u64,
    has_steps: bool,
    peak: i64,
    kept: u64,
    reserved: i64,
    free: u64,
    largest_free: u64,
    /// Call sites by index, with their bytes that are kept.
    sites: Vec<(u32, u64)>,
    /// What a call site that is not among these holds at most.
    rest: u64,
}

/// The snapshots of one device of a rank, by iteration.
type Points = BTreeMap<u64, Point>;

/// Collects cards. What it keeps of a card is about two kilobytes.
#[derive(Debug, Default)]
pub struct Collector {
    site_names: Vec<CallSite>,
    site_of: FxHashMap<CallSite, u32>,
    /// By folder of the run, then rank and device.
    runs: BTreeMap<String, BTreeMap<(u32, u32), Points>>,
    other_files: usize,
    failed_files: usize,
    skipped_files: u64,
}

impl Collector {
    /// Adds an entry of an index or of a dataset. `names` are those that its card refers to.
    pub fn add(&mut self, entry: &Entry, names: &Names) {
        match entry {
            Ok(card) => self.add_card(card, names),
            Err(_) => self.failed_files += 1,
        }
    }

    fn add_card(&mut self, card: &Card, names: &Names) {
        let (Some(rank), Some(Iteration(iteration))) = (card.rank, card.iteration) else {
            self.other_files += 1;
            return;
        };
        let mut sites = Vec::with_capacity(card.kept_sites.len());
        for of in &card.kept_sites {
            let site = names.site(of.site);
            let index = match self.site_of.get(site) {
                Some(&index) => index,
                None => {
                    let next = self.site_names.len() as u32;
                    self.site_names.push(site.clone());
                    self.site_of.insert(site.clone(), next);
                    next
                }
            };
            sites.push((index, of.bytes.0));
        }
        let is_full = sites.len() >= MAX_SITES;
        let point = Point {
            events: card.events.0,
            has_steps: !card.steps.is_empty(),
            peak: card.band(BandKind::Requested).peak.0,
            kept: card.kept.0,
            reserved: card.band(BandKind::Reserved).peak.0,
            free: card.free.bytes.0,
            largest_free: card.free.largest.0,
            rest: sites.last().filter(|_| is_full).map_or(0, |site| site.1),
            sites,
        };
        let folder = run_folder_of(&card.path).to_owned();
        let device = (rank, card.device);
        let points = self.runs.entry(folder).or_default().entry(device).or_default();
        match points.entry(iteration) {
            btree_map::Entry::Vacant(place) => {
                place.insert(point);
            }
            // The file of the end of an iteration, say. Of several, the one with the most events.
            btree_map::Entry::Occupied(mut known) => {
                self.other_files += 1;
                if known.get().events < point.events {
                    known.insert(point);
                }
            }
        }
    }

    /// Counts files of folders that are no snapshots.
    pub fn add_skipped(&mut self, files: u64) {
        self.skipped_files += files;
    }

    /// The series of the runs. Each has at most `limit` ranks.
    ///
    /// # Errors
    /// A run has so many ranks and iterations that its rows would not fit in memory.
    pub fn report(self, limit: usize) -> Result<SeriesReport, String> {
        for (folder, ranks) in &self.runs {
            let iterations: BTreeSet<u64> =
                ranks.values().flat_map(|points| points.keys().copied()).collect();
            let values = ranks.len().saturating_mul(iterations.len());
            if values > MAX_VALUES {
                return Err(format!(
                    "{folder}: {} devices in {} iterations are {} snapshots, more than {}. Ask \
                     about a part of the iterations",
                    grouped(ranks.len() as u64),
                    grouped(iterations.len() as u64),
                    grouped(values as u64),
                    grouped(MAX_VALUES as u64),
                ));
            }
        }
        let mut runs: Vec<RunSeries> = self
            .runs
            .iter()
            .map(|(folder, ranks)| run_series(folder, ranks, &self.site_names, limit))
            .collect();
        runs.sort_by_key(|run| Reverse(run.ranks.len() + run.omitted));
        Ok(SeriesReport {
            min_iterations: MIN_ITERATIONS,
            runs,
            other_files: self.other_files,
            failed_files: self.failed_files,
            skipped_files: self.skipped_files,
        })
    }
}

/// One device of a rank.
struct Member<'a> {
    rank: u32,
    device: u32,
    points: &'a Points,
}

fn run_series(
    folder: &str,
    ranks: &BTreeMap<(u32, u32), Points>,
    site_names: &[CallSite],
    limit: usize,
) -> RunSeries {
    let mut iterations: Vec<u64> =
        ranks.values().flat_map(|points| points.keys().copied()).collect();
    iterations.sort_unstable();
    iterations.dedup();
    let members: Vec<Member<'_>> =
        ranks.iter().map(|(&(rank, device), points)| Member { rank, device, points }).collect();
    let drifts = drift::drifts(&members, &iterations, site_names);
    let mut rows: Vec<RankSeries> =
        members.iter().map(|member| rank_series(member, &iterations)).collect();
    let text = words::sentences(&members, &rows, &iterations, &drifts);
    let blind_spots = words::blind_spots(&members, &iterations);
    rows.sort_by_key(|row| Reverse(row.growth_bytes.iter().flatten().sum::<i64>()));
    let omitted = rows.len().saturating_sub(limit);
    rows.truncate(limit);
    RunSeries {
        folder: folder.to_owned(),
        text,
        iterations,
        ranks: rows,
        omitted,
        drifts,
        blind_spots,
    }
}

fn rank_series(member: &Member<'_>, iterations: &[u64]) -> RankSeries {
    let of = |value: fn(&Point) -> i64| -> Vec<Option<i64>> {
        iterations.iter().map(|iteration| member.points.get(iteration).map(value)).collect()
    };
    let peak_bytes = of(|point| point.peak);
    let mut before = None;
    let growth = |peak: &Option<i64>| {
        let peak = (*peak)?;
        before.replace(peak).map(|before: i64| peak.saturating_sub(before))
    };
    RankSeries {
        rank: member.rank,
        device: member.device,
        growth_bytes: peak_bytes.iter().map(growth).collect(),
        peak_bytes,
        kept_bytes: of(|point| signed(point.kept)),
        reserved_bytes: of(|point| point.reserved),
        free_bytes: of(|point| signed(point.free)),
        largest_free_bytes: of(|point| signed(point.largest_free)),
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which each rank has a snapshot of an iteration of its own.
    fn diagonal(ranks: u32) -> Collector {
        let point = Point {
            events: 1,
            has_steps: false,
            peak: 1,
            kept: 1,
            reserved: 1,
            free: 0,
            largest_free: 0,
            sites: Vec::new(),
            rest: 0,
        };
        let points = |rank: u32| ((rank, 0), Points::from([(rank.into(), point.clone())]));
        let runs = BTreeMap::from([("run".to_owned(), (0..ranks).map(points).collect())]);
        Collector { runs, ..Collector::default() }
    }

    #[test]
    fn a_run_with_too_many_values_is_refused() {
        assert!(diagonal(100).report(10).is_ok());
        let error = diagonal(6000).report(10).expect_err("36 million values");
        assert!(error.contains("6,000 devices in 6,000 iterations"), "{error}");
    }
}
