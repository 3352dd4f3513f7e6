//! Ranks beside each other: what each tells of itself, and what the coordinator makes of that.

use super::FindingRow;
use crate::Quantity;
use serde::{Deserialize, Serialize};
use vramscope_analysis::Category;
use vramscope_report::peak::BandKind;

/// One rank in the overview. Goes from the rank's worker to the coordinator, which compares them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct RankCard {
    /// The file's path.
    pub path: String,
    /// The rank that it names.
    pub rank: Option<u32>,
    /// The device.
    pub device: u32,
    /// Requested, active, allocated and reserved bytes: their peaks.
    pub bands: Vec<BandRow>,
    /// Requested bytes after the last event.
    pub end: Quantity,
    /// What was live at the peak of requested bytes, by category, in the fixed order of categories.
    pub categories: Vec<CategoryRow>,
    /// Out-of-memory events.
    pub ooms: Quantity,
    /// Findings of its own.
    pub findings: Vec<FindingRow>,
    /// The curve of requested bytes as an SVG path in a box of [`SPARK`], y down.
    pub spark: String,
    /// What the comparison needs: bytes at the peak by the hash of the stack, with the call
    /// site.
    pub stacks: Vec<StackFact>,
}

/// Width and height of [`RankCard::spark`].
pub const SPARK: [u32; 2] = [200, 32];

/// What one call stack holds at the peak of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct StackFact {
    /// The stack's hash, equal in every rank, as decimal digits.
    #[serde(with = "vramscope_report::digits")]
    #[cfg_attr(test, ts(type = "string"))]
    pub hash: u64,
    /// Its call site.
    pub site: String,
    /// Requested bytes, as decimal digits.
    #[serde(with = "vramscope_report::digits")]
    #[cfg_attr(test, ts(type = "string"))]
    pub bytes: u64,
}

/// A band's peak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BandRow {
    /// The band.
    pub name: BandKind,
    /// `requested`.
    pub label: String,
    /// The peak.
    pub peak: Quantity,
    /// `at #3,737`.
    pub at: String,
    /// Whether it is an estimate.
    pub estimate: bool,
}

/// A category's share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct CategoryRow {
    /// The category.
    pub name: Category,
    /// `parameters`.
    pub label: String,
    /// Bytes.
    pub bytes: Quantity,
    /// The part of the whole, 0 to 1.
    pub share: f64,
    /// The color word.
    pub color: u32,
}

/// The overview of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// In order.
    pub rows: Vec<OverviewRow>,
    /// `peaks from 610.2 MiB to 1.16 GiB`.
    pub text: String,
    /// Findings that only show when ranks are compared.
    pub outliers: Vec<FindingRow>,
    /// These and those of every rank, the most severe first.
    pub findings: Vec<FindingRow>,
    /// How many of them are of more than low severity: what a mark on the page counts.
    pub notable: u32,
}

/// A row of the overview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct OverviewRow {
    /// The page's number for the row.
    pub key: u32,
    /// Its folder, where that differs from the row before (in the order by rank); else empty.
    pub group: String,
    /// The peak of requested bytes as a part of the largest reserved peak of all ranks.
    pub requested: f64,
    /// The peak of reserved bytes as a part of the same.
    pub reserved: f64,
    /// Where its bars of categories end, as parts of the same, in the order of the card.
    pub categories: Vec<f64>,
    /// How it differs from the other ranks: `480 MiB more at train.py:88`; empty when it does not.
    pub outlier: String,
}
