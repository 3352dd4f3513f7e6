//! The ranks of a run beside each other: the coordinator's side.
//!
//! What is compared is what every rank's card says, so that a run of a thousand ranks needs none of
//! their tables.

use super::card::{category_label, share};
use super::findings;
use crate::plan::natural;
use crate::protocol::Quantity;
use crate::protocol::views::{FindingRow, Overview, OverviewRow, RankCard, RankSort, RunQuery};
use crate::report::anomalies::{named, stack_of_outlier};
use crate::report::peak::BandKind;
use crate::text::file_name;
use std::cmp::Ordering;
use vramscope_analysis::{Anomaly, Category, RankFacts, outliers};

/// The cards of a run, and the order that was asked for last.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    /// By folder, then rank, then path.
    rows: Vec<Rank>,
    /// What each of them is compared by, in the same order.
    facts: Vec<RankFacts>,
    /// What only shows when they are compared: whose, by its place in `rows`, and what.
    outliers: Vec<(usize, Anomaly)>,
    sort: RankSort,
    descending: bool,
}

#[derive(Debug)]
struct Rank {
    key: u32,
    group: String,
    card: Box<RankCard>,
    requested: i64,
    reserved: i64,
}

impl Ranks {
    /// Take what is new, and put all in order.
    pub(crate) fn answer(&mut self, query: &RunQuery) -> Overview {
        match query {
            RunQuery::Clear {} => {
                self.rows.clear();
                self.facts.clear();
                self.outliers.clear();
            }
            RunQuery::Card { key, group, card } => self.insert(*key, group, card),
            RunQuery::Sort { sort, descending } => {
                (self.sort, self.descending) = (*sort, *descending)
            }
        }
        self.overview()
    }

    fn insert(&mut self, key: u32, group: &str, card: &RankCard) {
        if let Some(old) = self.rows.iter().position(|r| r.key == key) {
            self.rows.remove(old);
            self.facts.remove(old);
        }
        let rank = Rank {
            key,
            group: group.to_owned(),
            requested: peak(card, BandKind::Requested),
            reserved: peak(card, BandKind::Reserved),
            card: Box::new(card.clone()),
        };
        let place = self.rows.partition_point(|r| by_rank(r, &rank) == Ordering::Less);
        self.facts.insert(place, facts(card));
        self.rows.insert(place, rank);
        self.outliers = outliers(&self.facts);
    }

    fn overview(&self) -> Overview {
        let largest =
            self.rows.iter().map(|r| r.requested.max(r.reserved)).max().unwrap_or(0).max(0) as u64;
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        // They stand in the order by rank, which decides among equals either way round.
        let value = |i: usize| -> [i64; 2] {
            let rank = &self.rows[i];
            match self.sort {
                RankSort::Rank => [0, 0],
                RankSort::Peak => [rank.requested, 0],
                RankSort::Reserved => [rank.reserved, 0],
                RankSort::End => [number(&rank.card.end), 0],
                RankSort::Findings => [number(&rank.card.ooms), rank.card.findings.len() as i64],
            }
        };
        match (self.sort, self.descending) {
            (RankSort::Rank, false) => {}
            (RankSort::Rank, true) => order.reverse(),
            (_, false) => order.sort_by_key(|&i| value(i)),
            (_, true) => order.sort_by_key(|&i| std::cmp::Reverse(value(i))),
        }
        let mut before = "";
        let row = |&i: &usize| {
            let rank = &self.rows[i];
            let is_new = self.sort == RankSort::Rank && !self.descending && rank.group != before;
            before = &rank.group;
            OverviewRow {
                key: rank.key,
                group: if is_new { rank.group.clone() } else { String::new() },
                requested: share(rank.requested.max(0) as u64, largest),
                reserved: share(rank.reserved.max(0) as u64, largest),
                categories: ends(&rank.card, largest),
                outlier: self.outlier(i),
            }
        };
        let outliers = self.outlier_rows();
        let own = self.rows.iter().flat_map(|rank| rank.card.findings.iter().cloned());
        let mut findings: Vec<FindingRow> = own.chain(outliers.iter().cloned()).collect();
        findings::sort(&mut findings);
        let notable = findings.iter().filter(|finding| finding.severity != "low").count() as u32;
        Overview {
            rows: order.iter().map(row).collect(),
            text: self.text(),
            outliers,
            findings,
            notable,
        }
    }

    /// `peaks from 610.2 MiB to 1.16 GiB`.
    fn text(&self) -> String {
        let of = |r: &Rank| crate::text::signed_bytes(r.requested).text;
        let least = self.rows.iter().min_by_key(|r| r.requested).map(of);
        let most = self.rows.iter().max_by_key(|r| r.requested).map(of);
        match (least, most) {
            (Some(least), Some(most)) if least == most && self.rows.len() == 1 => {
                format!("peak {most}")
            }
            (Some(least), Some(most)) if least == most => format!("all peaks at {most}"),
            (Some(least), Some(most)) => format!("peaks from {least} to {most}"),
            _ => String::new(),
        }
    }

    fn outlier_rows(&self) -> Vec<FindingRow> {
        let row = |(index, anomaly): &(usize, Anomaly)| {
            let rank = &self.rows[*index];
            let mut row = findings::plain(named(&rank.card.path, anomaly.clone(), Vec::new()));
            if let Some(site) = site(&rank.card, anomaly) {
                row.stack.note = Some(format!(
                    "The call site is {site}; the rank's own timeline has its whole stack."
                ));
            }
            row
        };
        let mut rows: Vec<FindingRow> = self.outliers.iter().map(row).collect();
        findings::sort(&mut rows);
        rows
    }

    /// `480.0 MiB more at train.py:88 step`: the one about most bytes; empty when there is none.
    fn outlier(&self, index: usize) -> String {
        let Some((_, anomaly)) = self.outliers.iter().find(|(i, _)| *i == index) else {
            return String::new();
        };
        let bytes = vramscope_units::Bytes(anomaly.bytes);
        // An id ends with what it is about: a stack's hash, a category or a band.
        let name = anomaly.id.splitn(3, '-').nth(2).unwrap_or_default();
        let what = match (site(&self.rows[index].card, anomaly), Category::parse(name)) {
            (Some(site), _) => format!("at {site}"),
            (None, Some(category)) => format!("of {}", category_label(category)),
            (None, None) => format!("of {name} at its peak"),
        };
        format!("{bytes} more {what}")
    }
}

/// By folder, then rank; those without one by path.
fn by_rank(a: &Rank, b: &Rank) -> Ordering {
    let rank = |r: &Rank| r.card.rank.unwrap_or(u32::MAX);
    natural(&a.group, &b.group)
        .then_with(|| rank(a).cmp(&rank(b)))
        .then_with(|| natural(&a.card.path, &b.card.path))
        .then_with(|| (a.card.device, a.key).cmp(&(b.card.device, b.key)))
}

fn number(quantity: &Quantity) -> i64 {
    quantity.raw.parse().unwrap_or(0)
}

fn peak(card: &RankCard, band: BandKind) -> i64 {
    card.bands.iter().find(|b| b.name == band.name()).map_or(0, |b| number(&b.peak))
}

/// Where the bars of a card's categories end.
fn ends(card: &RankCard, largest: u64) -> Vec<f64> {
    let mut end = 0u64;
    let bar = |bytes: i64| {
        end = end.saturating_add(bytes.max(0) as u64);
        share(end, largest)
    };
    card.categories.iter().map(|c| number(&c.bytes)).map(bar).collect()
}

/// The call site of the stack that an outlier is about.
fn site<'a>(card: &'a RankCard, anomaly: &Anomaly) -> Option<&'a str> {
    let hash = stack_of_outlier(&anomaly.id)?;
    let stack = card.stacks.iter().find(|s| u64::from_str_radix(&s.hash, 16) == Ok(hash))?;
    Some(&stack.site)
}

/// What a rank is compared by, as the program reads it off the rank's summary.
fn facts(card: &RankCard) -> RankFacts {
    let bands = super::card::BANDS.map(|(band, _)| band);
    let peaks = card.bands.iter().filter_map(|row| {
        let band = bands.iter().find(|band| band.name() == row.name)?;
        Some((band.name(), number(&row.peak)))
    });
    let stacks = card.stacks.iter().filter_map(|s| {
        Some((u64::from_str_radix(&s.hash, 16).ok()?, s.site.clone(), s.bytes.parse().ok()?))
    });
    let categories = card
        .categories
        .iter()
        .filter_map(|c| Some((Category::parse(&c.name)?.name(), c.bytes.raw.parse().ok()?)));
    RankFacts {
        name: file_name(&card.path).to_owned(),
        device: card.device,
        peaks: peaks.collect(),
        by_stack: stacks.collect(),
        by_category: categories.collect(),
    }
}
