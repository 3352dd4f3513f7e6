//! The overview of a run's ranks: the coordinator's side.
//!
//! The overview compares the cards of ranks, so a run of 1,000 ranks needs none of their tables.

use super::card::fraction;
use super::findings;
use super::matrix::ShownMatrix;
use crate::run_order::natural;
use rustc_hash::FxHashMap;
use std::cmp::{Ordering, Reverse};
use vramscope_analysis::SmallSort;
use vramscope_analysis::{
    Facts, Finding, RankFacts, RankSkew, RankStack, Severity, SkewCause, rank_runs, rank_skew,
};
use vramscope_protocol::views::{
    FindingGroup, FindingMember, FindingRow, MatrixAnswer, MatrixQuery, Overview, OverviewRow,
    RankCard, RankSort, RunCard, RunQuery, StackFact,
};
use vramscope_report::Quantity;
use vramscope_report::findings::{RunKey, groups as group_findings, of_ranks, order};
use vramscope_report::peak::BandKind;
use vramscope_report::rank::run_facts;
use vramscope_units::grouped;

/// The cards of a run, and the sort order of the overview.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    /// Sorted by folder, then rank, then path.
    rows: Vec<Rank>,
    /// The facts that each rank is compared by, in the order of `rows`.
    facts: Vec<RankFacts>,
    /// Findings of the comparison, with the index in `rows` of their rank.
    outliers: Vec<(usize, Finding)>,
    /// The matrix that was asked for last.
    matrix: Option<ShownMatrix>,
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
    /// Applies a query, and returns the whole overview.
    pub(crate) fn answer(&mut self, query: &RunQuery) -> Overview {
        match query {
            RunQuery::Clear {} => {
                self.rows.clear();
                self.facts.clear();
                self.outliers.clear();
                self.matrix = None;
            }
            RunQuery::Cards { cards } => {
                for card in cards {
                    self.insert(card);
                }
                self.outliers = rank_skew(&self.facts);
                self.matrix = None;
            }
            RunQuery::Sort { sort, descending } => {
                (self.sort, self.descending) = (*sort, *descending);
            }
        }
        self.overview()
    }

    /// Answers a query about the matrix of the ranks of a run.
    pub(crate) fn matrix(&mut self, query: &MatrixQuery) -> MatrixAnswer {
        match *query {
            MatrixQuery::Show { key } => {
                let row = self.rows.iter().position(|rank| Some(rank.key) == key);
                let shown = ShownMatrix::of(&self.facts, row, self.matrix.take());
                let key = |row: usize| self.rows[row].key;
                let answer = shown.as_ref().map(|shown| Box::new(shown.answer(key)));
                self.matrix = shown;
                MatrixAnswer::Matrix(answer)
            }
            MatrixQuery::Cell { row, column } => MatrixAnswer::Cell(
                self.matrix.as_ref().and_then(|shown| shown.cell(row as usize, column as usize)),
            ),
        }
    }

    fn insert(&mut self, RunCard { key, group, card }: &RunCard) {
        let key = *key;
        if let Some(old) = self.rows.iter().position(|r| r.key == key) {
            self.rows.remove(old);
            self.facts.remove(old);
        }
        let rank = Rank {
            key,
            group: group.clone(),
            requested: peak(card, BandKind::Requested),
            reserved: peak(card, BandKind::Reserved),
            card: card.clone(),
        };
        let place = self.rows.partition_point(|r| by_rank(r, &rank) == Ordering::Less);
        self.facts.insert(place, facts(card));
        self.rows.insert(place, rank);
    }

    fn overview(&self) -> Overview {
        let outliers = self.outlier_rows();
        let (groups, notable_of) = self.groups(&outliers);
        let largest =
            self.rows.iter().map(|r| r.requested.max(r.reserved)).max().unwrap_or(0).max(0) as u64;
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        // `rows` are sorted by rank, and the sorts are stable: equals stay in the order of ranks.
        let value = |i: usize| -> [i64; 2] {
            let rank = &self.rows[i];
            match self.sort {
                RankSort::Rank => [0, 0],
                RankSort::Peak => [rank.requested, 0],
                RankSort::Reserved => [rank.reserved, 0],
                RankSort::End => [number(&rank.card.end), 0],
                RankSort::Findings => [number(&rank.card.ooms), notable_of[i].into()],
            }
        };
        match (self.sort, self.descending) {
            (RankSort::Rank, false) => {}
            (RankSort::Rank, true) => order.reverse(),
            (_, false) => order.sort_small_by_key(|&i| value(i)),
            (_, true) => order.sort_small_by_key(|&i| std::cmp::Reverse(value(i))),
        }
        let stories = Stories::new(&outliers);
        let mut before = "";
        let row = |&i: &usize| {
            let rank = &self.rows[i];
            let is_new = self.sort == RankSort::Rank && !self.descending && rank.group != before;
            before = &rank.group;
            OverviewRow {
                key: rank.key,
                group: if is_new { rank.group.clone() } else { String::new() },
                requested: fraction(rank.requested.max(0) as u64, largest),
                reserved: fraction(rank.reserved.max(0) as u64, largest),
                categories: category_ends(&rank.card, largest),
                notable: notable_of[i],
                outlier: self.outlier(i),
                story: self.story(i, &outliers, &stories),
            }
        };
        let small = groups.iter().filter(|group| group.small).count() as u64;
        let notable = groups.len() as u64 - small;
        Overview {
            rows: order.iter().map(row).collect(),
            text: self.text(),
            worst: self.worst(&outliers, &stories),
            outliers,
            notable: notable as u32,
            notable_text: if notable == 0 {
                "No finding of high or medium severity".to_owned()
            } else {
                Quantity::count(notable, "finding", "findings").exact
            },
            small_text: if small == 0 {
                String::new()
            } else {
                Quantity::count(small, "small finding", "small findings").exact
            },
            groups,
        }
    }

    /// All findings, the worst first: equal ones on several ranks of a run are one group. And the
    /// number of groups above low that each row has or is about.
    fn groups(&self, outliers: &[FindingRow]) -> (Vec<FindingGroup>, Vec<u32>) {
        let mut ranks = vec![0; self.rows.len()];
        for run in rank_runs(&self.facts) {
            for &row in &run {
                ranks[row] = run.len();
            }
        }
        // A finding, its place and the row that it is about.
        let mut all: Vec<(&FindingRow, FindingMember, usize)> = Vec::new();
        for (row, rank) in self.rows.iter().enumerate() {
            let own = (0..).zip(&rank.card.findings);
            all.extend(own.map(|(index, finding)| {
                (finding, FindingMember { row: Some(rank.key), index }, row)
            }));
        }
        for (index, finding) in (0..).zip(outliers) {
            let is_of = |rank: &Rank| {
                (&rank.card.path, rank.card.device) == (&finding.path, finding.device)
            };
            let row = self.rows.iter().position(is_of).unwrap_or_default();
            all.push((finding, FindingMember { row: None, index }, row));
        }
        all.sort_small_by(|(a, ..), (b, ..)| {
            weight(a).cmp(&weight(b)).then_with(|| (&a.path, &a.id).cmp(&(&b.path, &b.id)))
        });
        let keys: Vec<Option<RunKey<'_>>> = all
            .iter()
            .map(|(finding, member, row)| {
                let is_shared = member.row.is_some() && ranks[*row] > 1;
                is_shared.then_some((&*self.facts[*row].folder, &*finding.cause, &*finding.path))
            })
            .collect();
        let mut notable = vec![0; self.rows.len()];
        let group = |members: Vec<usize>| {
            let (worst, _, row) = all[members[0]];
            let small = !is_notable(worst);
            if !small {
                for &i in &members {
                    notable[all[i].2] += 1;
                }
            }
            let [on, of] = [members.len(), ranks[row]].map(|count| grouped(count as u64));
            FindingGroup {
                text: if members.len() > 1 {
                    format!("on {on} of {of} ranks")
                } else {
                    String::new()
                },
                small,
                members: members.into_iter().map(|i| all[i].1).collect(),
            }
        };
        let groups = group_findings(&keys).into_iter().map(group).collect();
        (groups, notable)
    }

    /// The key of the row with the worst finding. Of equals the first rank.
    fn worst(&self, outliers: &[FindingRow], stories: &Stories<'_>) -> Option<u32> {
        let of = |(index, rank): (usize, &Rank)| {
            let outlier = self.story(index, outliers, stories).map(|at| &outliers[at as usize]);
            let own = rank.card.findings.iter().filter(|finding| is_notable(finding)).map(weight);
            Some((own.chain(outlier.map(weight)).min()?, rank.key))
        };
        let all = self.rows.iter().enumerate().filter_map(of);
        all.min_by_key(|(weight, _)| *weight).map(|(_, key)| key)
    }

    /// The index of the comparison's finding about a rank, if no finding of its own is worse.
    fn story(&self, index: usize, outliers: &[FindingRow], stories: &Stories<'_>) -> Option<u32> {
        let card = &self.rows[index].card;
        let at = stories.of(card)?;
        let own = card.findings.iter().filter(|finding| is_notable(finding)).map(weight).min();
        own.is_none_or(|own| weight(&outliers[at]) < own).then_some(at as u32)
    }

    /// `Peak per rank: 610.2 MiB to 1.16 GiB`.
    fn text(&self) -> String {
        let of = |r: &Rank| Quantity::signed_bytes(r.requested).text;
        let lowest = self.rows.iter().min_by_key(|r| r.requested).map(of);
        let highest = self.rows.iter().max_by_key(|r| r.requested).map(of);
        match (lowest, highest) {
            (Some(lowest), Some(highest)) if lowest == highest && self.rows.len() == 1 => {
                format!("Peak: {highest}")
            }
            (Some(lowest), Some(highest)) if lowest == highest => {
                format!("Peak per rank: {highest}")
            }
            (Some(lowest), Some(highest)) => format!("Peak per rank: {lowest} to {highest}"),
            _ => String::new(),
        }
    }

    fn outlier_rows(&self) -> Vec<FindingRow> {
        let row = |(index, finding): &(usize, Finding)| {
            let rank = &self.rows[*index];
            findings::without_tables(of_ranks(&rank.card.path, finding, Vec::new()))
        };
        let mut rows: Vec<FindingRow> = self.outliers.iter().map(row).collect();
        findings::sort(&mut rows);
        rows
    }

    /// What a rank holds more than others: `480.0 MiB more at train.py:88 step`. Empty if nothing.
    fn outlier(&self, index: usize) -> String {
        // The comparison sorts them by rank.
        let found = self.outliers.partition_point(|(rank, _)| *rank < index);
        let found = self.outliers.get(found).filter(|(rank, _)| *rank == index);
        let Some((bytes, skew)) = found.and_then(|(_, f)| Some((f.bytes, skew(f)?))) else {
            return String::new();
        };
        let what = match (&skew.cause, skew.sites.first()) {
            (SkewCause::Held, Some(site)) => format!("at {}", site.site),
            (SkewCause::Held, None) => String::new(),
            (SkewCause::Batch { .. }, _) => "of activations".to_owned(),
            (SkewCause::Sharding, _) => "of parameters and optimizer state".to_owned(),
            (SkewCause::Reserved, _) => "reserved".to_owned(),
        };
        format!("{} more {what}", vramscope_units::Bytes(bytes))
    }
}

/// The comparison's worst finding above low about each file and device.
struct Stories<'a>(FxHashMap<(&'a str, u32), usize>);

impl<'a> Stories<'a> {
    /// `outliers` are sorted, the worst first.
    fn new(outliers: &'a [FindingRow]) -> Self {
        let mut first = FxHashMap::default();
        for (at, row) in outliers.iter().enumerate().filter(|(_, row)| is_notable(row)) {
            first.entry((&*row.path, row.device)).or_insert(at);
        }
        Self(first)
    }

    fn of(&self, card: &RankCard) -> Option<usize> {
        self.0.get(&(&*card.path, card.device)).copied()
    }
}

fn is_notable(finding: &FindingRow) -> bool {
    finding.severity != Severity::Low
}

/// The least weight is the worst finding.
fn weight(finding: &FindingRow) -> (bool, Severity, Reverse<u64>) {
    let bytes = u64::try_from(finding.bytes.value).unwrap_or(0);
    order(finding.kind, finding.severity, bytes)
}

fn skew(finding: &Finding) -> Option<&RankSkew> {
    match &finding.facts {
        Facts::RankSkew(skew) => Some(skew),
        _ => None,
    }
}

/// Compares by folder, then rank. Files without a rank come last, by path.
fn by_rank(a: &Rank, b: &Rank) -> Ordering {
    let rank = |r: &Rank| r.card.rank.unwrap_or(u32::MAX);
    natural(&a.group, &b.group)
        .then_with(|| rank(a).cmp(&rank(b)))
        .then_with(|| natural(&a.card.path, &b.card.path))
        .then_with(|| (a.card.device, a.key).cmp(&(b.card.device, b.key)))
}

fn number(quantity: &Quantity) -> i64 {
    quantity.value.try_into().unwrap_or(i64::MAX)
}

fn peak(card: &RankCard, band: BandKind) -> i64 {
    card.bands.iter().find(|b| b.name == band).map_or(0, |b| number(&b.peak))
}

/// The ends of the bars of a card's categories, as fractions of `largest` bytes.
fn category_ends(card: &RankCard, largest: u64) -> Vec<f64> {
    let mut end = 0u64;
    let bar = |bytes: i64| {
        end = end.saturating_add(bytes.max(0) as u64);
        fraction(end, largest)
    };
    card.categories.iter().map(|c| number(&c.bytes)).map(bar).collect()
}

/// The facts of a card that ranks are compared by.
fn facts(card: &RankCard) -> RankFacts {
    let bytes = |quantity: &Quantity| u64::try_from(quantity.value).unwrap_or(0);
    let of_band = |band: BandKind| u64::try_from(peak(card, band)).unwrap_or(0);
    let stack = |s: &StackFact| RankStack {
        hash: s.hash,
        site: s.site.clone(),
        bytes: s.bytes,
        category: s.category,
        is_told: s.is_told,
    };
    RankFacts {
        device: card.device,
        requested_peak: of_band(BandKind::Requested),
        reserved_peak: of_band(BandKind::Reserved),
        by_stack: card.stacks.iter().map(stack).collect(),
        by_site: card
            .sites
            .iter()
            .cloned()
            .zip(card.site_bytes.iter().map(|&b| b as u64))
            .collect(),
        by_category: card.categories.iter().map(|c| (c.name, bytes(&c.bytes))).collect(),
        findings: card.findings.iter().map(|f| (f.kind, bytes(&f.bytes))).collect(),
        ..run_facts(&card.path)
    }
}
