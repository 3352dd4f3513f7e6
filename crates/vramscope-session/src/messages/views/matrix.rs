//! The matrix of call sites and ranks, from the coordinator.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// A query about the matrix.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MatrixQuery {
    /// The matrix of a run.
    Show {
        /// The page's number for a row of that run; null for the run with the most ranks.
        key: Option<u32>,
        /// Whether its rows are steps instead of call sites.
        by_step: bool,
    },
    /// A cell of the matrix that was asked for last.
    Cell {
        /// The index of its call site.
        row: u32,
        /// The index of its rank.
        column: u32,
    },
}

/// The answer to a [`MatrixQuery`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum MatrixAnswer {
    /// The matrix; null without a run of several ranks.
    Matrix(Option<Box<Matrix>>),
    /// The cell; null if there is none.
    Cell(Option<MatrixCell>),
}

/// What the ranks of a run hold at their peaks, by call site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// Whether the rows are steps, of which the ranks have at least two.
    pub by_step: bool,
    /// Whether the ranks have steps.
    pub has_steps: bool,
    /// Clusters and outliers in sentences.
    pub text: Vec<String>,
    /// The call sites, that with the most bytes on any rank first.
    pub rows: Vec<MatrixRow>,
    /// The call sites without a row in words: `13 more call sites`; empty if there are none.
    pub omitted: String,
    /// The ranks, cluster by cluster.
    pub columns: Vec<MatrixColumn>,
    /// Groups of like ranks.
    pub clusters: Vec<MatrixCluster>,
    /// The colors of the cells, row by row, a letter for each: `e` near the median, to `a` far
    /// below and `i` far above, `-` for none.
    pub levels: String,
    /// The bytes of the cells in words, row by row; empty with many ranks.
    pub cells: Vec<String>,
    /// The least differences from the median of the four steps of color, in words.
    pub bounds: Vec<String>,
}

/// A call site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MatrixRow {
    /// The call site.
    pub site: String,
    /// The filter that chooses its blocks; empty if there is none.
    pub term: String,
    /// The median over all ranks.
    pub median: Quantity,
    /// The most bytes on a rank.
    pub max: Quantity,
}

/// A rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MatrixColumn {
    /// The page's number for the row.
    pub key: u32,
    /// The rank in digits.
    pub label: String,
    /// The page's number for the row that it is compared with.
    pub usual: u32,
    /// How it differs from its cluster, in a sentence; empty if it does not.
    pub outlier: String,
}

/// A group of like ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MatrixCluster {
    /// The index of its first column.
    pub first: u32,
    /// The number of its columns.
    pub count: u32,
    /// Its ranks in words: `ranks 0-3, 8`.
    pub text: String,
}

/// The bytes of a call site on a rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MatrixCell {
    /// The cell in words: `233.3 MiB on rank 3`.
    pub title: String,
    /// The bytes.
    pub bytes: Quantity,
    /// The difference from the median over all ranks.
    pub change: Quantity,
    /// The call site.
    pub site: String,
    /// The median and the cluster in words.
    pub lines: Vec<String>,
}
