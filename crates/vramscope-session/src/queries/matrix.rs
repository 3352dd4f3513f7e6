//! The matrix of call sites and ranks: the coordinator's side.

use super::ranks::Rank;
use crate::messages::views::{Matrix, MatrixCell, MatrixCluster, MatrixColumn, MatrixRow};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use vramscope_inference::{
    CallSite, MatrixRow as Sizes, RankFacts, RankMatrix, median, rank_matrix, rank_runs,
};
use vramscope_report::card::Card;
use vramscope_report::matrix::{LEVELS, ROWS, bounds, level, named, outlier_text, sentences};
use vramscope_report::{Quantity, site_filter};
use vramscope_units::Bytes;

/// Up to this many ranks have their bytes in the cells.
const MAX_WRITTEN: usize = 16;

/// The most steps in the matrix.
const MAX_STEPS: usize = 64;

/// The matrix of one run.
#[derive(Debug)]
pub(super) struct ShownMatrix {
    /// The run's ranks, by index.
    pub(super) run: Vec<usize>,
    pub(super) matrix: RankMatrix,
    /// The cluster of each rank by index, from 1.
    pub(super) clusters: FxHashMap<usize, usize>,
    /// The peaks of the steps; empty if the ranks have fewer than two.
    steps: Vec<Sizes>,
    /// Whether the rows are steps.
    pub(super) by_step: bool,
    /// Whether the ranks are of an index.
    is_indexed: bool,
}

impl ShownMatrix {
    /// The matrix of the run with a rank, or else of the largest run, among those that
    /// `is_shown`. `known` is kept if it is that one.
    pub(super) fn of(
        facts: &[RankFacts],
        ranks: &[Rank],
        rank: Option<usize>,
        is_shown: impl Fn(usize) -> bool,
        known: Option<Self>,
    ) -> Option<Self> {
        let mut runs = rank_runs(facts);
        runs.retain(|run| run.len() > 1 && is_shown(run[0]));
        // A run with the rank is the larger one.
        let size = |run: &Vec<usize>| (rank.is_some_and(|rank| run.contains(&rank)), run.len());
        runs.sort_by_key(|run| std::cmp::Reverse(size(run)));
        let run = runs.into_iter().next()?;
        if let Some(known) = known.filter(|known| known.run == run) {
            return Some(known);
        }
        let members: Vec<&RankFacts> = run.iter().map(|&rank| &facts[rank]).collect();
        let matrix = rank_matrix(&members);
        let steps = steps(&matrix, |member| &ranks[run[member]]);
        let cluster =
            |column: &vramscope_inference::MatrixColumn| (run[column.member], column.cluster + 1);
        Some(Self {
            clusters: matrix.columns.iter().map(cluster).collect(),
            is_indexed: ranks[run[0]].is_indexed,
            by_step: false,
            steps,
            matrix,
            run,
        })
    }

    /// Whether the ranks have steps.
    pub(super) fn has_steps(&self) -> bool {
        !self.steps.is_empty()
    }

    /// The rows that are shown.
    fn rows(&self) -> &[Sizes] {
        if self.by_step {
            &self.steps
        } else {
            &self.matrix.rows[..self.matrix.rows.len().min(ROWS)]
        }
    }

    /// What the page shows. `key` gives the page's number of a rank.
    pub(super) fn answer(&self, key: impl Fn(usize) -> u32) -> Matrix {
        let matrix = &self.matrix;
        let rows = self.rows();
        let largest = rows.iter().map(|row| row.deviation).max().unwrap_or(0);
        let bounds = bounds(matrix, largest);
        let mut levels = String::with_capacity(rows.len() * matrix.columns.len());
        let mut cells = Vec::new();
        for row in rows {
            for &bytes in &row.bytes {
                let of_cell = level(bytes, row.median, bounds);
                let letter =
                    char::from((i32::from(b'a') + LEVELS as i32 + i32::from(of_cell)) as u8);
                levels.push(if bytes == 0 && of_cell == 0 { '-' } else { letter });
                if matrix.columns.len() <= MAX_WRITTEN {
                    let text = || Bytes(bytes).to_string();
                    cells.push(if bytes == 0 { String::new() } else { text() });
                }
            }
        }
        let mut outliers = vec![String::new(); matrix.columns.len()];
        for of in &matrix.outliers {
            outliers[of.column] = outlier_text(matrix, of);
        }
        let key_of = |column: usize| key(self.run[matrix.columns[column].member]);
        let omitted =
            if self.by_step { 0 } else { matrix.omitted + matrix.rows.len() - rows.len() };
        Matrix {
            by_step: self.by_step,
            has_steps: self.has_steps(),
            text: sentences(matrix),
            rows: rows
                .iter()
                .map(|row| MatrixRow {
                    site: row.site.name.clone(),
                    term: site_filter(&row.site).unwrap_or_default(),
                    median: Quantity::bytes(Bytes(row.median)),
                    max: Quantity::bytes(Bytes(row.max)),
                })
                .collect(),
            omitted: if omitted == 0 {
                String::new()
            } else {
                Quantity::count(omitted as u64, "more call site", "more call sites").exact
            },
            columns: (matrix.columns.iter().enumerate())
                .map(|(at, column)| MatrixColumn {
                    key: key_of(at),
                    label: column.rank.to_string(),
                    usual: key_of(column.usual),
                    outlier: std::mem::take(&mut outliers[at]),
                })
                .collect(),
            clusters: matrix
                .clusters
                .iter()
                .map(|cluster| MatrixCluster {
                    first: cluster.first as u32,
                    count: cluster.ranks.len() as u32,
                    text: named(&cluster.ranks),
                })
                .collect(),
            levels,
            cells,
            bounds: bounds.iter().map(|&bound| Bytes(bound).to_string()).collect(),
        }
    }

    /// A cell in words.
    pub(super) fn cell(&self, row: usize, column: usize) -> Option<MatrixCell> {
        let matrix = &self.matrix;
        let (row, of) = (self.rows().get(row)?, matrix.columns.get(column)?);
        let bytes = *row.bytes.get(column)?;
        let change = Quantity::change_of_bytes((bytes as i64).saturating_sub(row.median as i64));
        let apart = Bytes(bytes.abs_diff(row.median));
        let median_of_all = Bytes(row.median);
        let mut lines = vec![match bytes.cmp(&row.median) {
            Ordering::Less => format!("{apart} less than the median of all ranks, {median_of_all}"),
            Ordering::Equal => "the median of all ranks".to_owned(),
            Ordering::Greater => {
                format!("{apart} more than the median of all ranks, {median_of_all}")
            }
        }];
        if let Some(cluster) = matrix.clusters.get(of.cluster).filter(|_| matrix.clusters.len() > 1)
        {
            let usual = median(&row.bytes[cluster.first..cluster.first + cluster.ranks.len()]);
            lines.push(format!(
                "median of its cluster, {}: {}",
                named(&cluster.ranks),
                Bytes(usual)
            ));
        }
        lines.push(if self.is_indexed {
            format!("Click to read the file of rank {}", of.rank)
        } else {
            format!("Click to compare with rank {}", matrix.columns[of.usual].rank)
        });
        let bytes = Quantity::bytes(Bytes(bytes));
        Some(MatrixCell {
            title: format!("{} on rank {}", bytes.text, of.rank),
            site: row.site.name.clone(),
            bytes,
            change,
            lines,
        })
    }
}

/// The peak of each step on each rank of a matrix; empty if the ranks have fewer than two steps.
fn steps<'a>(matrix: &RankMatrix, rank: impl Fn(usize) -> &'a Rank) -> Vec<Sizes> {
    let of = |column: &vramscope_inference::MatrixColumn| &*rank(column.member).card;
    let cards: Vec<&Card> = matrix.columns.iter().map(of).collect();
    let has_steps = || cards.iter().filter(|card| !card.steps.is_empty());
    let first = has_steps().map(|card| card.first_step).min().unwrap_or(0);
    let end = has_steps().map(|card| card.first_step + card.steps.len() as u32).max().unwrap_or(0);
    let first = first.max(end.saturating_sub(MAX_STEPS as u32));
    if end - first < 2 {
        return Vec::new();
    }
    let row = |step: u32| {
        let of_step = |card: &&Card| {
            let at = step.checked_sub(card.first_step);
            at.and_then(|at| card.steps.get(at as usize)).map_or(0, |step| step.peak.0)
        };
        let name = format!("step {}", vramscope_units::grouped(step.into()));
        Sizes::new(CallSite { name, has_frame: false }, cards.iter().map(of_step).collect())
    };
    (first..end).map(row).collect()
}
