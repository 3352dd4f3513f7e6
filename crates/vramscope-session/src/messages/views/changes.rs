//! What changed between two states.

use crate::messages::{DetailRow, Quantity};
use serde::{Deserialize, Serialize};

/// What came, went and stayed between the states A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StateChanges {
    /// A and B in words: `#3,737  +1.204 s`.
    pub moments: Vec<String>,
    /// All blocks.
    pub all: ChangeRow,
    /// The numbers of blocks that came, went and stayed.
    pub blocks: Vec<Quantity>,
    /// Reserved memory that was mapped and released.
    pub reserved: Vec<DetailRow>,
    /// The color words of what came, went and stayed, and of memory that was mapped and released.
    pub colors: Vec<u32>,
    /// By category, the largest net change first.
    pub categories: Vec<ChangeRow>,
    /// By call site, the largest net change first; at most 200.
    pub sites: Vec<ChangeRow>,
    /// The number of further call sites: `and 12 more call sites`. Empty if there are none.
    pub more: String,
}

/// The blocks of a category or a call site that came, went and stayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ChangeRow {
    /// The category, or the call site.
    pub label: String,
    /// What else is known: the category of a call site.
    pub note: String,
    /// The color word.
    pub color: u32,
    /// The terms of a search for the blocks of the row.
    pub terms: Vec<String>,
    /// The numbers of blocks: `3 blocks came, 1 went, 12 stayed`.
    pub title: String,
    /// Bytes of blocks that are live at B only.
    pub came: Quantity,
    /// Bytes of blocks that are live at A only.
    pub went: Quantity,
    /// Bytes of blocks that are live at both.
    pub stayed: Quantity,
    /// What came less what went.
    pub net: Quantity,
    /// `net` as a share of the largest in its table, from -1 to 1.
    pub bar: f64,
}
