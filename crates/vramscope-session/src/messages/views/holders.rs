//! What holds the memory: rows of a tree table, and what drops free.

use crate::messages::Quantity;
use serde::{Deserialize, Serialize};

/// What holds the memory at the end, as far as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct HolderTable {
    /// What limits the answer, in sentences.
    pub text: Vec<String>,
    /// The first column of bytes: `at peak` or `at cursor`.
    pub moment: String,
    /// Blocks by what holds them: each root with most bytes first, followed by parts of it.
    pub rows: Vec<HolderLine>,
    /// What a drop does to bytes: `frees`, or `frees at most`.
    pub frees: String,
    /// What dropping references frees at the end: a row is followed by the rows within it. Empty
    /// where `rows` say it.
    pub drops: Vec<DropLine>,
}

/// Blocks with one holder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct HolderLine {
    /// Identifies the row.
    pub row: u32,
    /// The variable, a part of it, or why none is named.
    pub label: String,
    /// The number of rows around it.
    pub depth: u32,
    /// Bytes at the moment.
    pub total: Quantity,
    /// The same as a percentage of all bytes: `43.2 %`.
    pub percent: String,
    /// Bytes at the end.
    pub end: Quantity,
    /// What dropping it alone frees; null if that is not known.
    pub frees: Option<Quantity>,
    /// The number of blocks at the moment.
    pub blocks: Quantity,
    /// The categories in words: `activations 8.20 GiB, parameters 1.22 GiB`.
    pub categories: String,
    /// Their shares, from 0 to 1, most bytes first.
    pub shares: Vec<f64>,
    /// The color words of the shares.
    pub colors: Vec<u32>,
    /// The terms of a search for the blocks; empty if none finds them.
    pub terms: Vec<String>,
}

/// What dropping references frees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DropLine {
    /// The references.
    pub label: String,
    /// The number of rows that it is within.
    pub depth: u32,
    /// Freed bytes.
    pub bytes: Quantity,
    /// Freed blocks.
    pub blocks: Quantity,
}
