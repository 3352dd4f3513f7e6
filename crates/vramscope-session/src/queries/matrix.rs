//! The matrix of call sites and ranks: the coordinator's side.

use std::cmp::Ordering;
use vramscope_analysis::{RankFacts, RankMatrix, SmallSort, median, rank_matrix, rank_runs};
use vramscope_protocol::views::{Matrix, MatrixCell, MatrixCluster, MatrixColumn, MatrixRow};
use vramscope_report::matrix::{LEVELS, ROWS, bounds, level, named, outlier_text, sentences};
use vramscope_report::{Quantity, site_filter};
use vramscope_units::Bytes;

/// Up to this many ranks have their bytes in the cells.
const MAX_WRITTEN: usize = 16;

/// The matrix of one run.
#[derive(Debug)]
pub(super) struct ShownMatrix {
    /// The run's ranks, by index.
    run: Vec<usize>,
    matrix: RankMatrix,
}

impl ShownMatrix {
    /// The matrix of the run with a rank, or else of the largest run. `known` is kept if it is that
    /// one.
    pub(super) fn of(
        ranks: &[RankFacts],
        rank: Option<usize>,
        known: Option<Self>,
    ) -> Option<Self> {
        let mut runs = rank_runs(ranks);
        runs.retain(|run| run.len() > 1);
        // A run with the rank is the larger one.
        let size = |run: &Vec<usize>| (rank.is_some_and(|rank| run.contains(&rank)), run.len());
        runs.sort_small_by_key(|run| std::cmp::Reverse(size(run)));
        let run = runs.into_iter().next()?;
        if let Some(known) = known.filter(|known| known.run == run) {
            return Some(known);
        }
        let members: Vec<&RankFacts> = run.iter().map(|&rank| &ranks[rank]).collect();
        Some(Self { matrix: rank_matrix(&members), run })
    }

    /// What the page shows. `key` gives the page's number of a rank.
    pub(super) fn answer(&self, key: impl Fn(usize) -> u32) -> Matrix {
        let matrix = &self.matrix;
        let bounds = bounds(matrix, ROWS);
        let rows = &matrix.rows[..matrix.rows.len().min(ROWS)];
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
        let outlier = |column: usize| {
            let found = matrix.outliers.iter().find(|of| of.column == column);
            found.map_or_else(String::new, |of| outlier_text(matrix, of))
        };
        let key_of = |column: usize| key(self.run[matrix.columns[column].member]);
        let omitted = matrix.omitted + matrix.rows.len() - rows.len();
        Matrix {
            text: sentences(matrix),
            rows: rows
                .iter()
                .map(|row| MatrixRow {
                    site: row.site.clone(),
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
                    outlier: outlier(at),
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
        let (row, of) = (matrix.rows.get(row)?, matrix.columns.get(column)?);
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
        lines.push(format!("Click to compare with rank {}", matrix.columns[of.usual].rank));
        let bytes = Quantity::bytes(Bytes(bytes));
        Some(MatrixCell {
            title: format!("{} on rank {}", bytes.text, of.rank),
            site: row.site.clone(),
            bytes,
            change,
            lines,
        })
    }
}
