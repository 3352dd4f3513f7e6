//! The rows of the overview that are shown: iteration, filter, order.

use super::overview::Ranks;
use super::ranks::Rank;
use crate::messages::views::{RankList, RankSort};
use std::cmp::Reverse;
use vramscope_report::Quantity;
use vramscope_units::grouped;

/// A term of a filter.
enum Term<'a> {
    /// Peaks of requested bytes from the first to before the second.
    Peak(u64, u64),
    /// Ranks from the first to the last.
    Ranks(Vec<(u32, u32)>),
    /// The ranks of the cluster with this number, from 1.
    Cluster(usize),
    Oom,
    Outlier,
    Finding,
    /// A part of the path, or a kind of finding.
    Word(&'a str),
}

impl Ranks {
    /// The rows that are shown, in order.
    pub(super) fn list(&self) -> RankList {
        let iterations = self.iterations();
        let iteration = self.iteration(&iterations);
        let filter = self.query.filter.to_lowercase();
        let terms: Vec<Term<'_>> = filter.split_whitespace().map(term).collect();
        let of_iteration =
            |&i: &usize| iteration.is_none_or(|of| self.rows[i].iteration() == Some(of));
        let all: Vec<usize> = (0..self.rows.len()).filter(of_iteration).collect();
        let is_shown = |&&i: &&usize| terms.iter().all(|term| self.meets(i, &self.rows[i], term));
        let mut order: Vec<usize> = all.iter().filter(is_shown).copied().collect();
        // `rows` are sorted by rank, and the sorts are stable: equals stay in the order of ranks.
        let value = |i: usize| -> [i64; 2] {
            let rank = &self.rows[i];
            match self.query.sort {
                RankSort::Rank => [0, 0],
                RankSort::Peak => [rank.requested(), 0],
                RankSort::Reserved => [rank.reserved(), 0],
                RankSort::End => [rank.end(), 0],
                RankSort::Findings => [rank.card.ooms.len() as i64, rank.notable.into()],
            }
        };
        match (self.query.sort, self.query.descending) {
            (RankSort::Rank, false) => {}
            (RankSort::Rank, true) => order.reverse(),
            (_, false) => order.sort_by_key(|&i| value(i)),
            (_, true) => order.sort_by_key(|&i| Reverse(value(i))),
        }
        let [shown, whole] = [order.len(), all.len()].map(|count| grouped(count as u64));
        RankList {
            peaks: self.peaks(&all),
            text: if order.len() == all.len() {
                String::new()
            } else {
                format!("{shown} of {whole} ranks")
            },
            is_whole: order.len() == self.rows.len(),
            iteration: iteration
                .and_then(|of| iterations.iter().position(|&each| each == of))
                .map(|at| at as u32),
            order: order.iter().map(|&i| self.rows[i].key).collect(),
        }
    }

    /// `Peak per rank: 610.2 MiB to 1.16 GiB`. Without ranks, `per file`.
    fn peaks(&self, rows: &[usize]) -> String {
        let peaks = || rows.iter().map(|&i| self.rows[i].requested());
        let of = |peak: i64| Quantity::signed_bytes(peak).text;
        let has_ranks = rows.iter().any(|&i| self.rows[i].card.rank.is_some());
        let each = if has_ranks { "rank" } else { "file" };
        match (peaks().min().map(of), peaks().max().map(of)) {
            (Some(lowest), Some(highest)) if lowest == highest && rows.len() == 1 => {
                format!("Peak: {highest}")
            }
            (Some(lowest), Some(highest)) if lowest == highest => {
                format!("Peak per {each}: {highest}")
            }
            (Some(lowest), Some(highest)) => format!("Peak per {each}: {lowest} to {highest}"),
            _ => String::new(),
        }
    }

    /// The iterations of the ranks, ascending; empty with fewer than two.
    pub(super) fn iterations(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.rows.iter().filter_map(Rank::iteration).collect();
        all.sort_unstable();
        all.dedup();
        if all.len() < 2 { Vec::new() } else { all }
    }

    /// The chosen iteration: the last one of an index, unless another one is chosen.
    pub(super) fn iteration(&self, iterations: &[u64]) -> Option<u64> {
        let chosen = self.query.iteration.as_deref().and_then(|digits| digits.parse().ok());
        let chosen = chosen.filter(|of| iterations.contains(of));
        let is_indexed = self.rows.iter().all(|rank| rank.is_indexed);
        chosen.or_else(|| iterations.last().copied().filter(|_| is_indexed))
    }

    fn meets(&self, at: usize, rank: &Rank, term: &Term<'_>) -> bool {
        match term {
            Term::Peak(least, most) => {
                let peak = rank.requested().max(0).cast_unsigned();
                *least <= peak && peak < *most
            }
            Term::Ranks(parts) => parts
                .iter()
                .any(|&(a, b)| rank.card.rank.is_some_and(|rank| a <= rank && rank <= b)),
            Term::Cluster(number) => self.cluster_of(at) == Some(*number),
            Term::Oom => !rank.card.ooms.is_empty(),
            Term::Outlier => !rank.outlier.is_empty(),
            Term::Finding => rank.notable > 0,
            Term::Word(word) => {
                rank.card.path.to_lowercase().contains(word)
                    || rank.card.findings.iter().any(|of| of.record.kind.name().contains(word))
            }
        }
    }
}

/// The term that a lowercase word is.
fn term(word: &str) -> Term<'_> {
    if let Some(size) = word.strip_prefix(">=").and_then(size) {
        return Term::Peak(size, u64::MAX);
    }
    if let Some(size) = word.strip_prefix('>').and_then(size) {
        return Term::Peak(size.saturating_add(1), u64::MAX);
    }
    if let Some(size) = word.strip_prefix("<=").and_then(size) {
        return Term::Peak(0, size.saturating_add(1));
    }
    if let Some(size) = word.strip_prefix('<').and_then(size) {
        return Term::Peak(0, size);
    }
    if let Some(number) = word.strip_prefix("cluster:").and_then(|number| number.parse().ok()) {
        return Term::Cluster(number);
    }
    if let Some(parts) = word.split(',').map(part).collect::<Option<Vec<_>>>() {
        return Term::Ranks(parts);
    }
    match word {
        "oom" => Term::Oom,
        "outlier" => Term::Outlier,
        "finding" => Term::Finding,
        _ => Term::Word(word),
    }
}

/// `3` or `0-63`.
fn part(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// The bytes in `512mib`, `1.5gib`, `40gb` or `4096`, in binary units.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    let number: f64 = digits.parse().ok().filter(|number: &f64| *number >= 0.0)?;
    Some((number * (1u64 << shift) as f64) as u64)
}
