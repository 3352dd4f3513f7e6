//! Messages between the page and the coordinator of a run.

use crate::messages::{Quantity, views};
use serde::{Deserialize, Serialize};

/// A request from the page to the coordinator, which compares the files of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunRequest {
    /// Sorts dropped files and finds their ranks. The answer is `Planned`.
    Plan {
        /// The id, returned in the response.
        id: u32,
        /// The files, in any order.
        files: Vec<FileEntry>,
    },
    /// A query of the overview. The answer is `Overview`.
    View {
        /// The id, returned in the response.
        id: u32,
        /// The query.
        query: views::RunQuery,
    },
    /// Which rows of the overview are shown. The answer is `List`.
    List {
        /// The id, returned in the response.
        id: u32,
        /// The choice.
        query: views::ListQuery,
    },
    /// Rows of the overview. The answer is `Rows`.
    Rows {
        /// The id, returned in the response.
        id: u32,
        /// The page's numbers of the rows.
        keys: Vec<u32>,
    },
    /// Reads a GPU that the user wrote. The answer is `Gpu`.
    Gpu {
        /// The id, returned in the response.
        id: u32,
        /// A name or an amount; empty for the names alone.
        text: String,
    },
    /// The ranks in one picture. The answer is `Fleet`.
    Fleet {
        /// The id, returned in the response.
        id: u32,
        /// The page's number for a row of the run; null for the run with the most ranks.
        key: Option<u32>,
        /// The sizes of the parallel groups: `64/4/4` for data, tensor and pipeline; empty if they
        /// are not known.
        sizes: String,
        /// What PyTorch can have in bytes, as the user says; null for what the cards say.
        capacity: Option<f64>,
    },
    /// A query about two recordings. The answer is `Compared`.
    Compare {
        /// The id, returned in the response.
        id: u32,
        /// The query.
        query: views::CompareQuery,
    },
    /// A query about the matrix of ranks. The answer is `Matrix`.
    Matrix {
        /// The id, returned in the response.
        id: u32,
        /// The query.
        query: views::MatrixQuery,
    },
    /// Explains out-of-memory messages, which need no file. The answer is `Explained`.
    Explain {
        /// The id, returned in the response.
        id: u32,
        /// A message, or a log.
        text: String,
    },
}

/// A file before it is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    /// The path within the drop: `iteration_10/rank3_memory_snapshot.pickle`.
    pub path: String,
    /// The file's size in bytes.
    pub bytes: f64,
    /// Whether a search of a folder found the file, and it is no snapshot. It gets no row.
    pub skipped: bool,
    /// Whether the user has closed the file. It gets no row, and counts nowhere.
    pub closed: bool,
}

/// A response of the coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunResponse {
    /// The rows in display order.
    Planned {
        /// The request's id.
        id: u32,
        /// The run's name: the common folder, or the file.
        title: String,
        /// The number of files in words: `8 ranks`, `3 files`.
        count_text: String,
        /// The number of skipped files.
        skipped: Quantity,
        /// The skipped files in words: `5 other files skipped`; null if there are none.
        skipped_text: Option<String>,
        /// One row per file that is not skipped.
        rows: Vec<PlannedRow>,
    },
    /// A GPU.
    Gpu {
        /// The request's id.
        id: u32,
        /// What PyTorch can have on it, in bytes; null for a wrong text.
        bytes: Option<f64>,
        /// The GPU in words: `H100, 78.68 GiB`; or what is wrong with the text.
        text: String,
        /// The names that are known.
        names: Vec<String>,
    },
    /// The overview of the run.
    Overview {
        /// The request's id.
        id: u32,
        /// The overview.
        overview: views::Overview,
    },
    /// The rows of the overview that are shown.
    List {
        /// The request's id.
        id: u32,
        /// The rows.
        list: views::RankList,
    },
    /// Rows of the overview.
    Rows {
        /// The request's id.
        id: u32,
        /// The rows with the wanted numbers. Those of no card are missing.
        rows: Vec<views::ShownRank>,
    },
    /// The ranks in one picture.
    Fleet {
        /// The request's id.
        id: u32,
        /// The picture; null with few ranks.
        fleet: Option<Box<views::Fleet>>,
    },
    /// What lines of an index have added. The page sends these lines as bytes.
    Indexed {
        /// The request's id.
        id: u32,
        /// The files and the progress.
        read: views::ReadIndex,
    },
    /// The comparison of two recordings.
    Compared {
        /// The request's id.
        id: u32,
        /// The answer.
        answer: views::CompareAnswer,
    },
    /// The matrix of ranks, or a cell of it.
    Matrix {
        /// The request's id.
        id: u32,
        /// The answer.
        answer: views::MatrixAnswer,
    },
    /// What out-of-memory messages mean.
    Explained {
        /// The request's id.
        id: u32,
        /// The answer as a piece of HTML, in which every text is escaped.
        html: String,
        /// Its styles.
        styles: String,
    },
}

/// A row in the list of ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct PlannedRow {
    /// Index into the request's `files`.
    pub file: u32,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The row's label: the rank's number, or the file's name without a rank, and where its folder
    /// has several files of the rank.
    pub label: String,
    /// The file's folder: `iteration_10`; empty for the top folder.
    pub group: String,
    /// The file's size in words.
    pub size: String,
    /// Index into the request's `files` of the file that `vramscope.record` writes beside the
    /// snapshot; null if it is not among them. It gets no row.
    pub beside: Option<u32>,
}
