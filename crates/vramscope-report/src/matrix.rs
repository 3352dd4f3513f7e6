//! The comparison of `vramscope ranks`: call sites by ranks, with like ranks in clusters.

use crate::card::Card;
use serde::Serialize;
use vramscope_inference::{
    ALIKE_PARTS, MatrixColumn, MatrixRow, RankCluster, RankFacts, RankMatrix, RankOutlier,
    at_or_with, median, rank_matrix, rank_runs,
};
use vramscope_units::{Bytes, grouped};

/// The call sites that the page shows.
pub const ROWS: usize = 40;

/// Clusters and outliers that a text names. All are in JSON.
const MAX_NAMED: usize = 8;

/// The matrices of runs, in `vramscope.ranks/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixReport {
    /// Ranks are alike if what they hold differs by at most this many percent.
    pub alike_percent: u64,
    /// The runs with several ranks, that with the most ranks first.
    pub runs: Vec<RunMatrix>,
    /// Files that are no rank of a run with several ranks.
    pub other_files: usize,
}

/// The matrix of one run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunMatrix {
    /// The folder of the run's files; empty for the working directory.
    pub folder: String,
    /// What the matrix shows, in sentences.
    pub text: Vec<String>,
    /// Groups of like ranks, that with the lowest rank first.
    pub clusters: Vec<ClusterRecord>,
    /// The ranks, cluster by cluster. The bytes of rows have this order.
    pub columns: Vec<ColumnRecord>,
    /// The call sites, that with the most bytes on any rank first.
    pub rows: Vec<RowRecord>,
    /// The number of call sites that are not among the rows.
    pub omitted: usize,
    /// Ranks that hold far more or less than the others of their cluster.
    pub outliers: Vec<OutlierRecord>,
}

/// A group of like ranks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClusterRecord {
    /// Its ranks, ascending.
    pub ranks: Vec<u32>,
    /// The same in words: `ranks 0-3, 8`.
    pub text: String,
}

/// A rank.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColumnRecord {
    /// The rank.
    pub rank: u32,
    /// Its file.
    pub path: String,
    /// The compared device.
    pub device: u32,
    /// The index of its cluster.
    pub cluster: usize,
    /// The peak of `requested_bytes`, at which the bytes are counted.
    pub peak_bytes: u64,
    /// The rank to compare it with: the one of its cluster nearest to the medians.
    pub usual_rank: u32,
}

/// A call site.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowRecord {
    /// The call site.
    pub site: String,
    /// The median over the ranks, in bytes.
    pub median: u64,
    /// The most bytes on a rank.
    pub max: u64,
    /// The rank with the most bytes; of equals the lowest.
    pub max_rank: u32,
    /// The largest difference from the median, in bytes.
    pub deviation: u64,
    /// The median of each cluster, in bytes.
    pub clusters: Vec<u64>,
    /// Bytes on each rank.
    pub bytes: Vec<u64>,
}

/// A rank that differs from the others of its cluster.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutlierRecord {
    /// The rank.
    pub rank: u32,
    /// Bytes of the call sites on this rank.
    pub bytes: u64,
    /// The median on the other ranks of its cluster.
    pub median: u64,
    /// The number of these.
    pub others: usize,
    /// The call sites, that with the largest difference first.
    pub sites: Vec<String>,
    /// The outlier in a sentence.
    pub text: String,
}

/// The matrices of all runs among these ranks. Each has at most `limit` rows.
pub fn matrices(ranks: &[Card], limit: usize) -> MatrixReport {
    let facts: Vec<RankFacts> = ranks.iter().map(|card| card.facts(&card.names)).collect();
    let paths: Vec<&str> = ranks.iter().map(|card| card.path.as_str()).collect();
    matrices_of(&paths, &facts, limit)
}

/// [`matrices`] of ranks whose facts are known, with the paths of their files.
pub fn matrices_of(paths: &[&str], facts: &[RankFacts], limit: usize) -> MatrixReport {
    let mut runs = rank_runs(facts);
    runs.retain(|run| run.len() > 1);
    runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
    let run_matrix = |run: &Vec<usize>| {
        let members: Vec<&RankFacts> = run.iter().map(|&i| &facts[i]).collect();
        let matrix = rank_matrix(&members);
        let column = |c: &MatrixColumn| ColumnRecord {
            rank: c.rank,
            path: paths[run[c.member]].to_owned(),
            device: members[c.member].device,
            cluster: c.cluster,
            peak_bytes: c.peak,
            usual_rank: matrix.columns[c.usual].rank,
        };
        RunMatrix {
            folder: members[0].folder.clone(),
            text: sentences(&matrix),
            clusters: matrix
                .clusters
                .iter()
                .map(|c| ClusterRecord { text: named(&c.ranks), ranks: c.ranks.clone() })
                .collect(),
            columns: matrix.columns.iter().map(column).collect(),
            omitted: matrix.omitted + matrix.rows.len().saturating_sub(limit),
            outliers: matrix.outliers.iter().map(|of| outlier(&matrix, of)).collect(),
            rows: matrix.rows.iter().take(limit).map(|row| record(&matrix, row)).collect(),
        }
    };
    let in_runs: usize = runs.iter().map(Vec::len).sum();
    MatrixReport {
        alike_percent: 100 / ALIKE_PARTS,
        runs: runs.iter().map(run_matrix).collect(),
        other_files: facts.len() - in_runs,
    }
}

fn record(matrix: &RankMatrix, row: &MatrixRow) -> RowRecord {
    let of_cluster = |cluster: &RankCluster| {
        median(&row.bytes[cluster.first..cluster.first + cluster.ranks.len()])
    };
    let most = matrix.columns.iter().zip(&row.bytes).filter(|(_, bytes)| **bytes == row.max);
    RowRecord {
        site: row.site.name.clone(),
        median: row.median,
        max: row.max,
        max_rank: most.map(|(column, _)| column.rank).min().unwrap_or_default(),
        deviation: row.deviation,
        clusters: matrix.clusters.iter().map(of_cluster).collect(),
        bytes: row.bytes.clone(),
    }
}

fn outlier(matrix: &RankMatrix, of: &RankOutlier) -> OutlierRecord {
    OutlierRecord {
        rank: matrix.columns[of.column].rank,
        bytes: of.bytes,
        median: of.usual,
        others: of.others,
        sites: of.rows.iter().map(|&row| matrix.rows[row].site.name.clone()).collect(),
        text: outlier_text(matrix, of),
    }
}

/// What a matrix shows: its clusters, then its outliers.
pub fn sentences(matrix: &RankMatrix) -> Vec<String> {
    let (ranks, clusters) = (matrix.columns.len(), &matrix.clusters);
    let count = grouped(ranks as u64);
    let mut all = vec![if clusters.len() == 1 {
        let who = if ranks == 2 { "Both".to_owned() } else { format!("All {count}") };
        format!("{who} ranks are one cluster of like ranks.")
    } else if clusters.len() == ranks {
        format!("No two of the {count} ranks are alike.")
    } else {
        let names: Vec<String> = clusters.iter().take(MAX_NAMED).map(|c| named(&c.ranks)).collect();
        let more = match clusters.len() - names.len() {
            0 => String::new(),
            more => format!("; and {} more", grouped(more as u64)),
        };
        format!(
            "{count} ranks in {} clusters of like ranks: {}{more}.",
            grouped(clusters.len() as u64),
            names.join("; ")
        )
    }];
    let outliers = &matrix.outliers;
    all.extend(outliers.iter().take(MAX_NAMED).map(|of| outlier_text(matrix, of)));
    if outliers.len() > MAX_NAMED {
        let more = grouped((outliers.len() - MAX_NAMED) as u64);
        all.push(format!("{more} more ranks differ from their cluster."));
    }
    all
}

/// `Rank 3 holds 233.3 MiB at train.py:88 step; the median of the other 7 ranks is 0 B.`
pub fn outlier_text(matrix: &RankMatrix, of: &RankOutlier) -> String {
    let site = of.rows.first().map_or_else(String::new, |&row| at_or_with(&matrix.rows[row].site));
    let more = match of.rows.len() {
        0 | 1 => String::new(),
        2 => " and 1 more call site".to_owned(),
        sites => format!(" and {} more call sites", sites - 1),
    };
    let of_cluster = if matrix.clusters.len() > 1 { " of its cluster" } else { "" };
    format!(
        "Rank {} holds {} {site}{more}; the median of the other {} ranks{of_cluster} is {}.",
        matrix.columns[of.column].rank,
        Bytes(of.bytes),
        grouped(of.others as u64),
        Bytes(of.usual)
    )
}

/// Steps of color on each side of the median.
pub const LEVELS: usize = 4;

/// The least differences from the median that have each step of color, ascending, each four times
/// the one before. The last one is a power of two: at most the largest difference of the rows, and
/// at least a 128th of the highest peak, so that small differences are pale.
pub fn bounds(matrix: &RankMatrix, largest: u64) -> [u64; LEVELS] {
    let peak = matrix.columns.iter().map(|column| column.peak).max().unwrap_or(0);
    let most = largest.max(peak / 64).max(1 << 10).ilog2();
    std::array::from_fn(|level| 1 << (most - 2 * (LEVELS - 1 - level) as u32))
}

/// The step of color of a cell, 0 near the median and negative below it.
pub fn level(bytes: u64, median: u64, bounds: [u64; LEVELS]) -> i8 {
    let level = bounds.iter().filter(|&&bound| bytes.abs_diff(median) >= bound).count() as i8;
    if bytes < median { -level } else { level }
}

/// `ranks 0-3, 8`, or `rank 2`.
pub fn named(ranks: &[u32]) -> String {
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, numbers(ranks))
}

/// `0-3, 8`.
pub fn numbers(ranks: &[u32]) -> String {
    let is_next = |a: &u32, b: &u32| a.checked_add(1) == Some(*b);
    let parts: Vec<String> = ranks
        .chunk_by(is_next)
        .map(|part| match part {
            [first, .., last] => format!("{first}-{last}"),
            [only] => only.to_string(),
            [] => String::new(),
        })
        .collect();
    // Ranks of a stage may alternate with those of others.
    let shown = parts[..parts.len().min(MAX_NAMED)].join(", ");
    let rest = if parts.len() > MAX_NAMED {
        format!(", ... ({} ranks)", grouped(ranks.len() as u64))
    } else {
        String::new()
    };
    format!("{shown}{rest}")
}

#[cfg(test)]
mod tests {
    use super::{bounds, level, named};
    use vramscope_inference::{MatrixColumn, RankMatrix};

    const MIB: u64 = 1 << 20;

    #[test]
    fn levels_are_steps_of_four_around_the_median() {
        let column = MatrixColumn { rank: 0, member: 0, peak: 1 << 30, cluster: 0, usual: 0 };
        let matrix = RankMatrix { columns: vec![column], ..RankMatrix::default() };
        let found = bounds(&matrix, 300 * MIB);
        assert_eq!(found, [4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB]);
        assert_eq!(bounds(&matrix, 5)[3], 16 * MIB, "of a peak of 1 GiB");
        assert_eq!(bounds(&matrix, u64::MAX)[3], 1 << 63);
        assert_eq!(bounds(&RankMatrix::default(), 0), [16, 64, 256, 1024]);
        let of = |bytes: u64| level(bytes, 100 * MIB, found);
        assert_eq!([100, 97, 96, 84, 36, 0].map(|mib| of(mib * MIB)), [0, 0, -1, -2, -3, -3]);
        assert_eq!([103, 104, 163, 164, 900].map(|mib| of(mib * MIB)), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn ranks_are_named_by_ranges() {
        assert_eq!(named(&[2]), "rank 2");
        assert_eq!(named(&[0, 1, 2, 3, 8]), "ranks 0-3, 8");
        assert_eq!(named(&[0, 2]), "ranks 0, 2");
        let every_fourth: Vec<u32> = (0..64).map(|i| 4 * i).collect();
        assert_eq!(named(&every_fourth), "ranks 0, 4, 8, 12, 16, 20, 24, 28, ... (64 ranks)");
    }
}
