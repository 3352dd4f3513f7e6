//! Groups of blocks that a search chooses: what it finds, what they hold, and steps through them.

use super::{CategoryRow, StackShareRow};
use crate::messages::{BlockDetail, DetailRow, Quantity};
use serde::{Deserialize, Serialize};

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// The number of blocks.
    pub blocks: Quantity,
    /// Bytes of the matching blocks that are live at the peak.
    pub bytes: Quantity,
    /// The result in words: `112 blocks, 1.20 GiB at the peak`.
    pub text: String,
    /// The terms of the search as they are written, without quotes.
    pub terms: Vec<String>,
    /// The call sites of the blocks, those with most bytes at the peak first.
    pub sites: Vec<StackShareRow>,
    /// The call sites that are left out: `and 7 more call sites`; empty if none are.
    pub more: String,
}

/// What the blocks of a search hold together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct GroupCard {
    /// Bytes at the peak; the most bytes at once if none of the blocks is live at the peak.
    pub title: Quantity,
    /// What the title is: `at the peak, 36 % of it`, or `most at once, #12`.
    pub note: String,
    /// The number of blocks.
    pub blocks: Quantity,
    /// The properties in display order. None repeats the bytes of the title.
    pub rows: Vec<DetailRow>,
    /// The word above `steps`: `steps`, `requests` or `passes`.
    pub steps_label: String,
    /// The most bytes at once in each step; empty without steps.
    pub steps: Vec<StepBar>,
    /// Bytes at the time of the title by category, most bytes first: all categories of the blocks.
    pub categories: Vec<CategoryRow>,
    /// Bytes at the time of the title by call site, most bytes first.
    pub sites: Vec<StackShareRow>,
    /// The call sites that are left out: `and 7 more call sites`; empty if none are.
    pub more: String,
    /// All of it as text, for the clipboard.
    #[serde(serialize_with = "vramscope_units::whole")]
    pub copy: String,
}

/// What a group holds in a step, or in several neighboring steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StepBar {
    /// The steps: `3` or `3-5`.
    pub label: String,
    /// The most bytes at once.
    pub bytes: Quantity,
    /// The bytes as a fraction of the largest bar, from 0 to 1.
    pub share: f64,
    /// The term of a search for the blocks that are allocated in the steps: `step:3`.
    pub term: String,
}

/// The next block of a search or of a call stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct NextBlock {
    /// The block.
    pub detail: BlockDetail,
    /// Its place among all blocks of a search: `3 of 120`; empty for a call stack.
    pub place: String,
}
