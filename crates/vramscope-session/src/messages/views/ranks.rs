//! The overview of a run: a card of each rank, and the coordinator's comparison of them.

use super::FindingRow;
use crate::messages::Quantity;
use serde::{Deserialize, Serialize};
use vramscope_inference::Category;
use vramscope_report::card::Card;

/// The card of a device, as its file's worker gives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FileCard {
    /// The card as JSON. The page passes it to the coordinator, so byte counts stay exact.
    #[serde(serialize_with = "vramscope_units::whole")]
    pub card: String,
    /// The findings of the card, in its order.
    pub findings: Vec<FindingRow>,
}

/// Width and height of the box of [`OverviewRow::spark`].
pub const SPARK: [u32; 2] = [200, 32];

/// A category's share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct CategoryRow {
    /// The category.
    pub name: Category,
    /// The label: `parameters`.
    pub label: String,
    /// Live bytes.
    pub bytes: Quantity,
    /// Share of the whole, from 0 to 1.
    pub share: f64,
    /// The color word.
    pub color: u32,
}

/// The overview of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// The rows that are shown.
    pub list: RankList,
    /// The rows by rank, if the run has at most [`MAX_ROWS`]; else they are asked for by key.
    pub rows: Vec<ShownRank>,
    /// The number of cards.
    pub cards: u32,
    /// Findings that need a comparison of ranks, the worst first.
    pub outliers: Vec<FindingRow>,
    /// Findings of ranks whose cards are in an index, as far as `groups` name them.
    pub indexed: Vec<FindingRow>,
    /// These and the findings of all ranks, the worst first. Equal ones of several ranks are one.
    pub groups: Vec<FindingGroup>,
    /// The number of groups above low severity.
    pub notable: u32,
    /// The same in words: `3 findings`.
    pub notable_text: String,
    /// The other groups in words: `2 small findings`; empty if there are none.
    pub small_text: String,
    /// The findings that `groups` lacks in words; empty if there are none.
    pub omitted: String,
    /// The key of the row with the worst finding; null without one above low.
    pub worst: Option<u32>,
}

/// The most rows that an [`Overview`] has.
pub const MAX_ROWS: u32 = 200;

/// Snapshots per file: the page's number of a row is the number of its file times this, plus the
/// index of the snapshot in the file.
pub const MAX_PARTS: u32 = 64;

/// The rows of the overview that are shown, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct RankList {
    /// The page's numbers of the rows.
    pub order: Vec<u32>,
    /// The peaks in words: `Peak per rank: 610.2 MiB to 1.16 GiB`.
    pub peaks: String,
    /// How many are shown in words, if a filter is chosen: `312 of 1,024 ranks`; else empty.
    pub text: String,
    /// Whether these are the rows of all cards.
    pub is_whole: bool,
    /// The place of the chosen iteration in [`super::Fleet::iterations`]; null for all iterations.
    pub iteration: Option<u32>,
}

/// A row of the overview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ShownRank {
    /// The row.
    pub row: OverviewRow,
    /// Its card, without the lists that no row shows: call sites, stacks, steps and the curve.
    /// Categories are in their fixed order.
    pub card: Box<Card>,
    /// Whether the card is of an index. Then no worker of a file has its findings.
    pub indexed: bool,
}

/// A finding of one rank, or equal findings of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FindingGroup {
    /// `on 7 of 8 ranks`; empty for a finding without equals.
    pub text: String,
    /// Whether it is of low severity.
    pub small: bool,
    /// The findings, the worst first: all, or the first few of those of an index.
    pub members: Vec<FindingMember>,
}

/// Where a finding of a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct FindingMember {
    /// The page's number for the row whose card has it; null if it is in [`Overview::outliers`].
    pub row: Option<u32>,
    /// Its index there; after the last of these in [`Overview::indexed`].
    pub index: u32,
}

/// A row of the overview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct OverviewRow {
    /// The page's number for the row.
    pub key: u32,
    /// The peak of requested bytes, relative to the largest peak of all ranks.
    pub requested: f64,
    /// The peak of reserved bytes, relative to the largest peak of all ranks.
    pub reserved: f64,
    /// The bars of the categories, in the card's order.
    pub categories: Vec<CategoryBar>,
    /// The out-of-memory events in words: `2 out-of-memory events`; empty if there are none.
    pub ooms: String,
    /// The curve of requested bytes as an SVG path in a box of [`SPARK`], y down.
    pub spark: String,
    /// The number of findings above low severity that the rank has or is about.
    pub notable: u32,
    /// What the rank holds more than others: `480.0 MiB more at train.py:88 step`; empty if
    /// nothing.
    pub outlier: String,
    /// The index in [`Overview::outliers`] of the rank's worst finding; null if that is its own,
    /// or none.
    pub story: Option<u32>,
}

/// How a category of a card is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct CategoryBar {
    /// The label: `parameters`.
    pub label: String,
    /// The color word.
    pub color: u32,
    /// The right edge, relative to the largest peak of all ranks.
    pub end: f64,
}

/// A query to the coordinator about several ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunQuery {
    /// Removes all cards.
    Clear {},
    /// Adds or replaces cards of ranks. The answer is an `Overview` in the current order. It has
    /// all rows, so cards that are ready together are sent together.
    Cards {
        /// The cards.
        cards: Vec<RunCard>,
    },
}

/// Which rows of the overview are shown, and how they are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// The sort key.
    pub sort: RankSort,
    /// True for the largest first.
    pub descending: bool,
    /// The terms that all shown rows meet, separated by spaces. See [`RankList`].
    pub filter: String,
    /// The iteration in decimal digits. Null, or one that no file has, means the last one of an
    /// index, and all of other files.
    pub iteration: Option<String>,
}

/// The card of a rank in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct RunCard {
    /// The page's number for the row.
    pub key: u32,
    /// The file's folder, from the answer to `Plan`.
    pub group: String,
    /// The card, as the text of [`FileCard::card`].
    #[serde(with = "text")]
    #[cfg_attr(test, ts(type = "string"))]
    pub card: Box<Card>,
}

/// A card as its JSON.
mod text {
    use super::Card;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(card: &Card, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&card.to_json())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Card>, D::Error> {
        let card = Card::parse(String::deserialize(from)?.as_bytes());
        card.map(Box::new).map_err(serde::de::Error::custom)
    }
}

/// The sort key of the overview's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub enum RankSort {
    /// Folder, then rank.
    #[default]
    Rank,
    /// Peak of requested bytes.
    Peak,
    /// Peak of reserved bytes.
    Reserved,
    /// Requested bytes at the end.
    End,
    /// The number of findings and OOMs.
    Findings,
}
