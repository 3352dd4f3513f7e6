//! The overview of a run's ranks: the coordinator's side.
//!
//! The overview compares the cards of ranks, so a run of 1,000 ranks needs none of their tables.

use super::findings;
use super::matrix::ShownMatrix;
use super::ranks::{self, Compared, Rank, by_rank};
use crate::messages::views::{
    FindingGroup, FindingMember, FindingRow, ListQuery, MAX_ROWS, MatrixAnswer, MatrixQuery,
    Overview, RankList, RunCard, RunQuery, ShownRank,
};
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_inference::{RankFacts, RankSkew, Severity, SkewCause, rank_runs, rank_skew};
use vramscope_report::Quantity;
use vramscope_report::findings::{
    CauseKey, FindingRecord, RunKey, groups as group_findings, of_ranks,
};
use vramscope_units::grouped;

/// The most groups of findings of an index, and the most members of one, that the page gets.
const MAX_GROUPS: usize = 200;
const MAX_MEMBERS: usize = 8;

/// The cards of a run, and the sort order of the overview.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    /// Sorted by folder, then rank, then path.
    pub(super) rows: Vec<Rank>,
    /// The facts that each rank is compared by, in the order of `rows`.
    facts: Vec<RankFacts>,
    /// The place in `rows` by key.
    places: FxHashMap<u32, usize>,
    /// Findings of the comparison, with the index in `rows` of their rank.
    outliers: Vec<(usize, RankSkew)>,
    /// These as rows, the worst first.
    outlier_rows: Vec<FindingRow>,
    /// The matrix that was asked for last.
    pub(super) matrix: Option<ShownMatrix>,
    pub(super) query: ListQuery,
}

impl Ranks {
    /// Applies a query, and returns the whole overview.
    pub(crate) fn answer(&mut self, query: &RunQuery) -> Overview {
        match query {
            RunQuery::Clear {} => *self = Self { query: self.query.clone(), ..Self::default() },
            RunQuery::Cards { cards } if cards.is_empty() => {}
            RunQuery::Cards { cards } => {
                let of = |RunCard { key, group, card }: &RunCard| {
                    Rank::new(*key, group.clone(), card.clone(), None)
                };
                self.insert(cards.iter().map(of).collect());
            }
        }
        self.overview()
    }

    /// Chooses which rows are shown.
    pub(crate) fn choose(&mut self, query: &ListQuery) -> RankList {
        if self.query.iteration != query.iteration {
            self.matrix = None;
        }
        self.query = query.clone();
        if query.filter.contains("cluster:") {
            self.show_matrix(None);
        }
        self.list()
    }

    /// Rows by key.
    pub(crate) fn rows(&self, keys: &[u32]) -> Vec<ShownRank> {
        let stories = Stories::new(&self.outlier_rows);
        let largest = self.largest();
        let places = keys.iter().filter_map(|key| self.places.get(key));
        places.map(|&place| self.row(place, largest, &stories)).collect()
    }

    /// Answers a query about the matrix of the ranks of a run.
    pub(crate) fn matrix(&mut self, query: &MatrixQuery) -> MatrixAnswer {
        match *query {
            MatrixQuery::Show { key, by_step } => {
                self.show_matrix(key);
                let Some(shown) = &mut self.matrix else { return MatrixAnswer::Matrix(None) };
                shown.by_step = by_step && shown.has_steps();
                let key = |row: usize| self.rows[row].key;
                MatrixAnswer::Matrix(Some(Box::new(shown.answer(key))))
            }
            MatrixQuery::Cell { row, column } => MatrixAnswer::Cell(
                self.matrix.as_ref().and_then(|shown| shown.cell(row as usize, column as usize)),
            ),
        }
    }

    /// Makes the matrix of the run with a row, or of the largest run, of the chosen iteration.
    pub(super) fn show_matrix(&mut self, key: Option<u32>) {
        let iteration = self.iteration(&self.iterations());
        let is_shown = |row: usize| iteration.is_none() || self.rows[row].iteration() == iteration;
        let row = key.and_then(|key| self.places.get(&key).copied()).filter(|&row| is_shown(row));
        let known = self.matrix.take();
        self.matrix = ShownMatrix::of(&self.facts, &self.rows, row, is_shown, known);
    }

    /// The number from 1 of a row's cluster in the matrix.
    pub(super) fn cluster_of(&self, row: usize) -> Option<usize> {
        self.matrix.as_ref()?.clusters.get(&row).copied()
    }

    /// Adds ranks, or replaces those with the same key.
    pub(crate) fn insert(&mut self, ranks: Vec<Compared>) {
        for (rank, facts) in ranks {
            if let Some(&place) = self.places.get(&rank.key) {
                (self.rows[place], self.facts[place]) = (rank, facts);
            } else {
                self.places.insert(rank.key, self.rows.len());
                self.rows.push(rank);
                self.facts.push(facts);
            }
        }
        let rows = std::mem::take(&mut self.rows).into_iter();
        let mut all: Vec<Compared> = rows.zip(std::mem::take(&mut self.facts)).collect();
        all.sort_by(|a, b| by_rank(&a.0, &b.0));
        (self.rows, self.facts) = all.into_iter().unzip();
        self.places = self.rows.iter().enumerate().map(|(i, rank)| (rank.key, i)).collect();
        self.outliers = rank_skew(&self.facts);
        self.matrix = None;
    }

    /// Removes the ranks with these keys that an index gave.
    pub(crate) fn remove(&mut self, keys: &FxHashSet<u32>) {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let all = rows.zip(std::mem::take(&mut self.facts));
        let kept = all.filter(|(rank, _)| !(rank.is_indexed && keys.contains(&rank.key)));
        (self.rows, self.facts) = kept.unzip();
        self.insert(Vec::new());
    }

    fn largest(&self) -> u64 {
        self.rows.iter().map(|r| r.requested().max(r.reserved())).max().unwrap_or(0).max(0) as u64
    }

    fn overview(&mut self) -> Overview {
        self.outlier_rows = self.outlier_rows();
        for i in 0..self.rows.len() {
            self.rows[i].outlier = self.outlier(i);
        }
        let (groups, notable_of) = self.groups();
        for (rank, notable) in self.rows.iter_mut().zip(notable_of) {
            rank.notable = notable;
        }
        let small = groups.iter().filter(|group| group.small).count() as u64;
        let notable = groups.len() as u64 - small;
        let mut overview = Overview {
            list: self.list(),
            rows: if self.rows.len() <= MAX_ROWS as usize {
                self.rows(&self.rows.iter().map(|rank| rank.key).collect::<Vec<_>>())
            } else {
                Vec::new()
            },
            cards: self.rows.len() as u32,
            worst: self.worst(&Stories::new(&self.outlier_rows)),
            outliers: self.outlier_rows.clone(),
            indexed: Vec::new(),
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
            omitted: String::new(),
            groups,
        };
        if self.rows.iter().any(|rank| rank.is_indexed) {
            self.add_indexed(&mut overview);
        }
        overview
    }

    /// Gives the page the findings of an index that it lacks: the worst groups, and the worst of
    /// each.
    fn add_indexed(&self, overview: &mut Overview) {
        let count = overview.groups.len();
        overview.groups.truncate(MAX_GROUPS);
        if count > MAX_GROUPS {
            let more = Quantity::count((count - MAX_GROUPS) as u64, "finding", "findings").exact;
            overview.omitted = format!("{more} more: choose a rank for its own findings");
        }
        for group in &mut overview.groups {
            group.members.truncate(MAX_MEMBERS);
            for member in &mut group.members {
                let rank = member.row.and_then(|key| self.places.get(&key));
                let rank = rank.map(|&place| &self.rows[place]).filter(|rank| rank.is_indexed);
                let Some(Rank { card, .. }) = rank else { continue };
                let found = &card.findings[member.index as usize];
                let index = (overview.outliers.len() + overview.indexed.len()) as u32;
                overview.indexed.push(ranks::row(found));
                *member = FindingMember { row: None, index };
            }
        }
    }

    fn row(&self, place: usize, largest: u64, stories: &Stories<'_>) -> ShownRank {
        self.rows[place].shown(largest, self.story(place, stories))
    }

    /// All findings, the worst first: equal ones on several ranks of a run are one group. And the
    /// number of groups above low that each row has or is about.
    fn groups(&self) -> (Vec<FindingGroup>, Vec<u32>) {
        let mut ranks = vec![0; self.rows.len()];
        for run in rank_runs(&self.facts) {
            for &row in &run {
                ranks[row] = run.len();
            }
        }
        // A finding, its place and the row that it is about.
        let mut all: Vec<(&FindingRecord, FindingMember, usize)> = Vec::new();
        for (row, rank) in self.rows.iter().enumerate() {
            let own = (0..).zip(&rank.card.findings);
            all.extend(own.map(|(index, of)| {
                (&of.record, FindingMember { row: Some(rank.key), index }, row)
            }));
        }
        let mut by_file: FxHashMap<(&str, u32), usize> = FxHashMap::default();
        for (row, rank) in self.rows.iter().enumerate() {
            by_file.entry((&rank.card.path, rank.card.device)).or_insert(row);
        }
        for (index, of) in (0..).zip(self.outlier_rows.iter().map(|row| &row.record)) {
            let row = by_file.get(&(&*of.path, of.device)).copied().unwrap_or_default();
            all.push((of, FindingMember { row: None, index }, row));
        }
        let path = |row: usize| &*self.rows[row].card.path;
        all.sort_by(|(a, _, in_a), (b, _, in_b)| {
            (a.weight(), path(*in_a), &a.id).cmp(&(b.weight(), path(*in_b), &b.id))
        });
        let keys: Vec<Option<RunKey<'_, CauseKey<'_>>>> = all
            .iter()
            .map(|(finding, member, row)| {
                let is_shared = member.row.is_some() && ranks[*row] > 1;
                is_shared.then_some((&*self.facts[*row].folder, finding.cause(), path(*row)))
            })
            .collect();
        let mut notable = vec![0; self.rows.len()];
        let group = |members: Vec<usize>| {
            let (worst, _, row) = all[members[0]];
            let small = worst.severity == Severity::Low;
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

    /// The key of the row with the worst finding, of the rows that are shown at first. Of equals
    /// the first rank.
    fn worst(&self, stories: &Stories<'_>) -> Option<u32> {
        let iteration = self.iteration(&self.iterations());
        let of = |(index, rank): (usize, &Rank)| {
            let outlier =
                self.story(index, stories).map(|at| &self.outlier_rows[at as usize].record);
            Some((rank.weights().chain(outlier.map(FindingRecord::weight)).min()?, rank.key))
        };
        let is_shown =
            |(_, rank): &(usize, &Rank)| iteration.is_none() || rank.iteration() == iteration;
        let all = self.rows.iter().enumerate().filter(is_shown).filter_map(of);
        all.min_by_key(|(weight, _)| *weight).map(|(_, key)| key)
    }

    /// The index of the comparison's finding about a rank, if no finding of its own is worse.
    fn story(&self, index: usize, stories: &Stories<'_>) -> Option<u32> {
        let rank = &self.rows[index];
        let at = stories.of(rank)?;
        let weight = self.outlier_rows[at].record.weight();
        rank.weights().min().is_none_or(|own| weight < own).then_some(at as u32)
    }

    fn outlier_rows(&self) -> Vec<FindingRow> {
        let row = |(index, skew): &(usize, RankSkew)| {
            let rank = &self.rows[*index];
            findings::without_tables(of_ranks(&rank.card.path, skew, Vec::new()))
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
        let Some((_, skew)) = found else { return String::new() };
        let what = match (&skew.cause, skew.sites.first()) {
            (SkewCause::Held, Some(site)) => format!("at {}", site.site.name),
            (SkewCause::Held, None) => String::new(),
            (SkewCause::Batch { .. }, _) => "of activations".to_owned(),
            (SkewCause::Sharding, _) => "of parameters and optimizer state".to_owned(),
            (SkewCause::Reserved, _) => "reserved".to_owned(),
        };
        format!("{} more {what}", skew.excess())
    }
}

/// The comparison's worst finding above low about each file and device.
struct Stories<'a>(FxHashMap<(&'a str, u32), usize>);

impl<'a> Stories<'a> {
    /// `outliers` are sorted, the worst first.
    fn new(outliers: &'a [FindingRow]) -> Self {
        let mut first = FxHashMap::default();
        let notable = |(_, row): &(usize, &FindingRow)| row.record.severity != Severity::Low;
        for (at, row) in outliers.iter().enumerate().filter(notable) {
            first.entry((&*row.record.path, row.record.device)).or_insert(at);
        }
        Self(first)
    }

    fn of(&self, rank: &Rank) -> Option<usize> {
        self.0.get(&(&*rank.card.path, rank.card.device)).copied()
    }
}
