//! A rank of a run as the coordinator knows it, by its card.

use super::findings;
use super::shares::{category_label, fraction};
use crate::messages::views::{
    CategoryBar, FileCard, FindingRow, FindingView, OverviewRow, SPARK, ShownRank,
};
use crate::run_order::natural;
use std::cmp::Ordering;
use vramscope_inference::{RankFacts, Severity};
use vramscope_layout::Color;
use vramscope_report::card::{Card, CardFinding, FULL_HEIGHT, Names};

use vramscope_report::findings::{FindingRecord, Weight};
use vramscope_report::peak::BandKind;
use vramscope_report::{CategoryShare, Phrase, Quantity, Target};
use vramscope_trace::slicing::Budget;
use vramscope_units::svg::area;

/// The card of a device, for the coordinator and for the page.
pub(crate) async fn card(at: Target<'_>, budget: &mut Budget) -> FileCard {
    let mut card = Card::new(at, budget).await;
    let entries = std::mem::take(&mut card.entries);
    FileCard { card: card.to_json(), findings: findings::rows(at, entries, budget).await }
}

/// One device of one file.
#[derive(Debug)]
pub(crate) struct Rank {
    /// The page's number for the row.
    pub(super) key: u32,
    pub(super) group: String,
    /// The card without call sites and stacks, which the facts have. Categories are in their fixed
    /// order.
    pub(super) card: Box<Card>,
    /// Whether the card is of an index.
    pub(super) is_indexed: bool,
    /// The number of findings above low that the rank has or is about.
    pub(super) notable: u32,
    /// The bytes that the rank holds more than others, in words.
    pub(super) outlier: String,
}

/// A rank with the facts that it is compared by.
pub(crate) type Compared = (Rank, RankFacts);

impl Rank {
    /// The rank of a card. `names` are those of an index; a file's worker gives a card that names
    /// its own call sites and stacks.
    pub(crate) fn new(
        key: u32,
        group: String,
        mut card: Box<Card>,
        names: Option<&Names>,
    ) -> Compared {
        let facts = card.facts(names.unwrap_or(&card.names));
        card.names = Names::default();
        card.told = None;
        card.stacks = Vec::new();
        for sites in [&mut card.sites, &mut card.kept_sites] {
            *sites = Vec::new();
        }
        card.categories.retain(|of| of.bytes.0 > 0);
        card.categories.sort_by_key(|of| of.category);
        let is_indexed = names.is_some();
        (Self { key, group, card, is_indexed, notable: 0, outlier: String::new() }, facts)
    }

    /// The peak of `requested_bytes`.
    pub(super) fn requested(&self) -> i64 {
        self.card.band(BandKind::Requested).peak.0
    }

    /// The peak of `reserved_bytes`.
    pub(super) fn reserved(&self) -> i64 {
        self.card.band(BandKind::Reserved).peak.0
    }

    /// `requested_bytes` after the last event.
    pub(super) fn end(&self) -> i64 {
        self.card.band(BandKind::Requested).end.0
    }

    pub(super) fn iteration(&self) -> Option<u64> {
        self.card.iteration.map(|iteration| iteration.0)
    }

    /// The weights of the findings above low. The least weight is the worst finding.
    pub(super) fn weights(&self) -> impl Iterator<Item = Weight> {
        let records = self.card.findings.iter().map(|of| &of.record);
        records.filter(|of| of.severity != Severity::Low).map(FindingRecord::weight)
    }

    /// The row of the page. `largest` is the largest peak of all ranks, `story` the index of the
    /// comparison's finding about the rank.
    pub(super) fn shown(&self, largest: u64, story: Option<u32>) -> ShownRank {
        let card = &self.card;
        let part = |bytes: i64| fraction(bytes.max(0).cast_unsigned(), largest);
        let mut end = 0u64;
        let mut bar = |of: &CategoryShare| {
            end = end.saturating_add(of.bytes.0);
            CategoryBar {
                label: category_label(of.category).to_owned(),
                color: Color::category(of.category as u8).word(),
                end: fraction(end, largest),
            }
        };
        let curve: Vec<u64> = card.curve.iter().map(|&top| top.into()).collect();
        ShownRank {
            row: OverviewRow {
                key: self.key,
                requested: part(self.requested()),
                reserved: part(self.reserved()),
                categories: card.categories.iter().map(&mut bar).collect(),
                ooms: match card.ooms.len() as u64 {
                    0 => String::new(),
                    count => {
                        Quantity::count(count, "out-of-memory event", "out-of-memory events").exact
                    }
                },
                spark: area(&curve, SPARK, FULL_HEIGHT.into()),
                notable: self.notable,
                outlier: self.outlier.clone(),
                story,
            },
            card: Box::new(Card { curve: Vec::new(), steps: Vec::new(), ..(**card).clone() }),
            indexed: self.is_indexed,
        }
    }
}

/// A finding of an index as the page shows it, without parts that need the file's tables.
pub(super) fn row(finding: &CardFinding) -> FindingRow {
    let CardFinding { record, place, .. } = finding;
    let view = FindingView {
        label: record.kind.label().to_owned(),
        headline: vec![Phrase { text: record.title.clone(), ..Phrase::default() }],
        place: place.clone(),
        terms: record.filters(),
        ..FindingView::default()
    };
    FindingRow { record: record.clone(), view }
}

/// Compares by folder, then rank. Files without a rank come last, by path.
pub(super) fn by_rank(a: &Rank, b: &Rank) -> Ordering {
    let rank = |of: &Rank| of.card.rank.unwrap_or(u32::MAX);
    natural(&a.group, &b.group)
        .then_with(|| rank(a).cmp(&rank(b)))
        .then_with(|| natural(&a.card.path, &b.card.path))
        .then_with(|| (a.card.device, a.key).cmp(&(b.card.device, b.key)))
}
