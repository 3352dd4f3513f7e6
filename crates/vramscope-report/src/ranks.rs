//! `vramscope ranks`: the ranks of a run side by side, and over its iterations.

use crate::card::{Card, Names};
use crate::findings::FindingRecord;
use crate::index::{Entry, FailedFile, NO_DEVICE};
use crate::matrix::{MatrixReport, RunMatrix, matrices_of};
use crate::peak::BandKind;
use crate::run_folder_of;
use crate::series::{Collector, RunSeries};
use serde::Serialize;
use vramscope_inference::{FindingKind, RankFacts, Severity};
use vramscope_units::{Bytes, Iteration};

/// `vramscope.ranks/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ranks {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The devices of all ranks, by run, iteration and rank.
    pub ranks: Vec<RankRow>,
    /// Ranks are alike if what they hold differs by at most this many percent.
    pub alike_percent: u64,
    /// The runs with several ranks, that with the most ranks first. Each iteration is a run of its
    /// own.
    pub runs: Vec<RunMatrix>,
    /// Files that are no rank of a run with several ranks.
    pub other_files: usize,
    /// The fewest iterations of a rank among which drift is looked for.
    pub min_iterations: usize,
    /// The runs whose paths name iterations, that with the most ranks first.
    pub series: Vec<RunSeries>,
    /// Files whose path names no rank or no iteration, and second files of one iteration: no part
    /// of `series`.
    pub files_without_iteration: usize,
    /// Files that could not be read.
    pub failed_files: usize,
    /// Files in folders that are no snapshots.
    pub skipped_files: u64,
}

/// One device of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankRow {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The iteration in the path; null if there is none.
    pub iteration: Option<u64>,
    /// The device's ordinal.
    pub device: u32,
    /// The peak of `requested_bytes`.
    pub peak_bytes: i64,
    /// The peak of `reserved_bytes`.
    pub reserved_bytes: i64,
    /// What is kept: `requested_bytes` after the last whole step, or after the last event where
    /// nothing shows steps.
    pub kept_bytes: u64,
    /// The number of out-of-memory events.
    pub ooms: usize,
    /// The worst finding of the device alone; null without one.
    pub finding: Option<RankFinding>,
    /// The folder of the run, without the iteration.
    #[serde(skip)]
    pub folder: String,
}

/// A finding of a rank in brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankFinding {
    /// The kind.
    pub kind: FindingKind,
    /// The severity.
    pub severity: Severity,
    /// Bytes that the finding is about.
    pub bytes: Bytes,
    /// The finding in one sentence.
    pub text: String,
}

/// Collects the ranks of runs from their cards.
#[derive(Default)]
pub struct RankCollector {
    rows: Vec<RankRow>,
    facts: Vec<RankFacts>,
    series: Collector,
    failed_files: usize,
    skipped_files: u64,
}

impl RankCollector {
    /// Adds an entry of an index or of a dataset. `names` are those that its card refers to.
    pub fn add(&mut self, entry: &Entry, names: &Names) {
        match entry {
            Ok(card) => {
                self.rows.push(row(card));
                self.facts.push(card.facts(names));
                self.series.add(entry, names);
            }
            Err(FailedFile { error, .. }) if error == NO_DEVICE => {}
            Err(_) => self.failed_files += 1,
        }
    }

    /// Counts files of folders that are no snapshots.
    pub fn add_skipped(&mut self, files: u64) {
        self.skipped_files += files;
    }

    /// The number of devices so far.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no device was added.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The ranks side by side. Tables of call sites and of iterations have at most `limit` rows.
    ///
    /// # Errors
    /// A run has so many ranks and iterations that its rows would not fit in memory.
    pub fn report(self, limit: usize) -> Result<Ranks, String> {
        let series = self.series.report(limit)?;
        // A dataset has another order than its files.
        let mut ranks: Vec<(RankRow, RankFacts)> = self.rows.into_iter().zip(self.facts).collect();
        ranks.sort_by(|(a, _), (b, _)| {
            let key = |row: &RankRow| (row.folder.clone(), row.iteration, row.rank, row.device);
            key(a).cmp(&key(b)).then_with(|| a.path.cmp(&b.path))
        });
        let (rows, facts): (Vec<RankRow>, Vec<RankFacts>) = ranks.into_iter().unzip();
        let paths: Vec<&str> = rows.iter().map(|row| row.path.as_str()).collect();
        let MatrixReport { alike_percent, runs, other_files } = matrices_of(&paths, &facts, limit);
        Ok(Ranks {
            schema: "vramscope.ranks/1",
            ranks: rows,
            alike_percent,
            runs,
            other_files,
            min_iterations: series.min_iterations,
            series: series.runs,
            files_without_iteration: series.other_files,
            failed_files: self.failed_files,
            skipped_files: self.skipped_files,
        })
    }
}

fn row(card: &Card) -> RankRow {
    RankRow {
        path: card.path.clone(),
        rank: card.rank,
        iteration: card.iteration.map(|Iteration(number)| number),
        device: card.device,
        peak_bytes: card.band(BandKind::Requested).peak.0,
        reserved_bytes: card.band(BandKind::Reserved).peak.0,
        kept_bytes: card.kept.0,
        ooms: card.ooms.len(),
        finding: worst(card),
        folder: run_folder_of(&card.path).to_owned(),
    }
}

fn worst(card: &Card) -> Option<RankFinding> {
    let worst = card.findings.iter().min_by_key(|finding| finding.record.weight())?;
    let FindingRecord { kind, severity, bytes, .. } = worst.record;
    Some(RankFinding { kind, severity, bytes, text: worst.record.title.clone() })
}
