//! Call sites by ranks: what each rank of a run holds at its peak, with like ranks side by side.
//!
//! Ranks that hold nearly the same are one cluster, so the stages of a pipeline are clusters
//! without being told. A rank that differs from a cluster at a few call sites only is an exception
//! of that cluster, not a cluster of its own.

use crate::findings::RankFacts;
use crate::small_sort::SmallSort;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Ranks are alike if what they hold differs, on average, by at most one part in this many of what
/// the larger one holds. Differences are added up over call sites.
pub const ALIKE_PARTS: u64 = 10;

/// The most call sites at which an exception differs from the ranks of its cluster.
pub const EXCEPTION_SITES: usize = 3;

/// All but one part in this many of an exception's difference is at these call sites.
const EXCEPTION_PARTS: u64 = 5;

/// The most groups of nearly equal ranks that are compared pair by pair.
const MAX_LINKED: usize = 1024;

/// The most call sites that are compared one by one. The others count together.
const MAX_SITES: usize = 128;

/// The smallest difference from the median that makes an outlier, whatever the spread.
const MIN_EXCESS_BYTES: u64 = 16 << 20;

/// A difference below this share of the usual peak makes no outlier: one part in fifty.
const MIN_EXCESS_PARTS: u64 = 50;

/// The smallest difference at one call site that counts.
const MIN_SITE_BYTES: u64 = 1 << 20;

/// A difference counts if it is more than this many times the usual one.
const USUAL_DIFFERENCES: u64 = 9;

/// The fewest ranks with a meaningful median.
const MIN_RANKS: usize = 3;

/// What the ranks of a run hold at their peaks, by call site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankMatrix {
    /// The call sites, that with the most bytes on any rank first.
    pub rows: Vec<MatrixRow>,
    /// The number of call sites that are not among the rows.
    pub omitted: usize,
    /// The ranks, cluster by cluster.
    pub columns: Vec<MatrixColumn>,
    /// Groups of like ranks, that with the lowest rank first.
    pub clusters: Vec<RankCluster>,
    /// Ranks that hold far more or less than the others of their cluster, by column.
    pub outliers: Vec<RankOutlier>,
}

/// A call site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixRow {
    /// The call site.
    pub site: String,
    /// Its bytes on each rank, by column.
    pub bytes: Vec<u64>,
    /// The median of these; of an even number of ranks the upper one of the two in the middle.
    pub median: u64,
    /// The most of these.
    pub max: u64,
    /// The largest difference from the median.
    pub deviation: u64,
}

/// A rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixColumn {
    /// The rank.
    pub rank: u32,
    /// Its index among the compared ranks.
    pub member: usize,
    /// The peak of its requested bytes.
    pub peak: u64,
    /// Its cluster.
    pub cluster: usize,
    /// The column to compare it with: the rank of its cluster nearest to the cluster's medians, or
    /// the next one if that is this rank. Alone in its cluster, the rank that is most like it.
    pub usual: usize,
}

/// Ranks that hold nearly the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankCluster {
    /// Its first column.
    pub first: usize,
    /// Its ranks, ascending.
    pub ranks: Vec<u32>,
}

/// A rank that holds far more or less at some call sites than the other ranks of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankOutlier {
    /// The rank's column.
    pub column: usize,
    /// The rows, that with the largest difference first.
    pub rows: Vec<usize>,
    /// Bytes of these call sites on this rank.
    pub bytes: u64,
    /// The median of these bytes on the other ranks of the cluster.
    pub usual: u64,
    /// The number of these other ranks.
    pub others: usize,
}

/// What one rank holds by row, and the rest.
struct Vector {
    bytes: Vec<u64>,
    total: u64,
}

/// Compares ranks of one run, of which the first has the lowest rank.
pub fn rank_matrix(ranks: &[&RankFacts]) -> RankMatrix {
    let (sites, omitted) = largest_sites(ranks);
    let vectors = vectors(ranks, &sites);
    let clusters = clusters(&vectors);
    let order: Vec<usize> = clusters.iter().flatten().copied().collect();
    let mut columns = Vec::with_capacity(order.len());
    for (cluster, members) in clusters.iter().enumerate() {
        columns.extend(members.iter().map(|&member| MatrixColumn {
            rank: ranks[member].rank.unwrap_or_default(),
            member,
            peak: ranks[member].requested_peak,
            cluster,
            usual: 0,
        }));
    }
    let row = |(index, site): (usize, String)| {
        let bytes: Vec<u64> = order.iter().map(|&member| vectors[member].bytes[index]).collect();
        let median = middle(bytes.clone());
        let deviation = bytes.iter().map(|bytes| bytes.abs_diff(median)).max();
        MatrixRow {
            max: bytes.iter().copied().max().unwrap_or(0),
            median,
            deviation: deviation.unwrap_or(0),
            site,
            bytes,
        }
    };
    let mut matrix = RankMatrix {
        rows: sites.into_iter().enumerate().map(row).collect(),
        omitted,
        columns,
        clusters: Vec::new(),
        outliers: Vec::new(),
    };
    let mut first = 0;
    for members in &clusters {
        let of: Vec<&Vector> =
            order[first..first + members.len()].iter().map(|&i| &vectors[i]).collect();
        let usual = usual_columns(&of);
        for (column, usual) in matrix.columns[first..].iter_mut().zip(usual) {
            column.usual = first + usual;
        }
        if members.len() == 1 {
            matrix.columns[first].usual = most_alike(&vectors, &order, first);
        }
        let ranks = members.iter().map(|&member| ranks[member].rank.unwrap_or_default()).collect();
        matrix.clusters.push(RankCluster { first, ranks });
        outliers(&of, first, &mut matrix.outliers);
        first += members.len();
    }
    matrix
}

/// The call sites with the most bytes on any rank, and the number of the others.
fn largest_sites(ranks: &[&RankFacts]) -> (Vec<String>, usize) {
    let mut most: FxHashMap<&str, u64> = FxHashMap::default();
    for (site, bytes) in ranks.iter().flat_map(|rank| &rank.by_site) {
        let known = most.entry(site).or_default();
        *known = (*known).max(*bytes);
    }
    let mut sites: Vec<(Reverse<u64>, &str)> =
        most.into_iter().map(|(site, bytes)| (Reverse(bytes), site)).collect();
    sites.sort_small();
    let omitted = sites.len().saturating_sub(MAX_SITES);
    sites.truncate(MAX_SITES);
    (sites.into_iter().map(|(_, site)| site.to_owned()).collect(), omitted)
}

fn vectors(ranks: &[&RankFacts], sites: &[String]) -> Vec<Vector> {
    let index: FxHashMap<&str, usize> =
        sites.iter().enumerate().map(|(at, site)| (site.as_str(), at)).collect();
    let vector = |rank: &&RankFacts| {
        let mut bytes = vec![0; sites.len() + 1];
        let mut rest = rank.requested_peak;
        for (site, held) in &rank.by_site {
            if let Some(&at) = index.get(site.as_str()) {
                bytes[at] = *held;
                rest = rest.saturating_sub(*held);
            }
        }
        bytes[sites.len()] = rest;
        Vector { bytes, total: rank.requested_peak }
    };
    ranks.iter().map(vector).collect()
}

impl Vector {
    /// The most by which another vector may differ.
    fn limit(&self, other: &Self) -> u64 {
        self.total.max(other.total) / ALIKE_PARTS
    }

    /// The sum of the differences; `None` above the limit.
    fn difference(&self, other: &Self, limit: u64) -> Option<u64> {
        let mut sum = 0u64;
        for (a, b) in self.bytes.iter().zip(&other.bytes) {
            sum = sum.saturating_add(a.abs_diff(*b));
            if sum > limit {
                return None;
            }
        }
        Some(sum)
    }

    /// The sum of the differences as a share of what the larger one holds.
    fn share(&self, other: &Self) -> f64 {
        let difference = self.difference(other, u64::MAX).unwrap_or(u64::MAX);
        difference as f64 / (self.total.max(other.total) as f64).max(1.0)
    }

    /// The sum of the differences, and that without the largest ones.
    fn exceptions(&self, other: &Self) -> (u64, u64) {
        let each = self.bytes.iter().zip(&other.bytes).map(|(a, b)| a.abs_diff(*b));
        let mut largest = [0; EXCEPTION_SITES];
        let (mut whole, mut rest) = (0u64, 0u64);
        for mut difference in each {
            whole = whole.saturating_add(difference);
            // The list stays sorted, and what leaves it is added.
            for known in &mut largest {
                if difference > *known {
                    std::mem::swap(known, &mut difference);
                }
            }
            rest = rest.saturating_add(difference);
        }
        (whole, rest)
    }

    /// The medians of several ranks.
    fn medians(of: &[&Self]) -> Self {
        let rows = of.first().map_or(0, |vector| vector.bytes.len());
        let median = |row: usize| middle(of.iter().map(|vector| vector.bytes[row]).collect());
        Self {
            bytes: (0..rows).map(median).collect(),
            total: middle(of.iter().map(|vector| vector.total).collect()),
        }
    }
}

/// Groups like ranks, by index: average linkage, as long as groups differ by less than the limit on
/// average. Then a small group whose ranks differ from a larger one at a few call sites only joins
/// that one.
fn clusters(vectors: &[Vector]) -> Vec<Vec<usize>> {
    let mut groups = linked(vectors, nearly_equal(vectors));
    groups.sort_small_by_key(|group| Reverse(group.len()));
    let mut kept: Vec<(Vector, usize, Vec<usize>)> = Vec::new();
    for group in groups {
        let own = &vectors[group[0]];
        let hosts = kept.iter().enumerate().filter_map(|(at, (medians, size, _))| {
            // One in eight, at least one: as many exceptions as the ranks of a finding may be.
            let is_few = *size > 1 && group.len() <= (size / 8).max(1);
            let (whole, rest) = is_few.then(|| medians.exceptions(own))?;
            let is_exception =
                rest <= medians.limit(own) && rest.saturating_mul(EXCEPTION_PARTS) <= whole;
            is_exception.then_some((rest, at))
        });
        match hosts.min() {
            Some((_, at)) => kept[at].2.extend(group),
            None => {
                let of: Vec<&Vector> = group.iter().map(|&member| &vectors[member]).collect();
                kept.push((Vector::medians(&of), group.len(), group));
            }
        }
    }
    let mut clusters: Vec<Vec<usize>> = kept.into_iter().map(|kept| kept.2).collect();
    for cluster in &mut clusters {
        cluster.sort_small();
    }
    clusters.sort_small();
    clusters
}

/// Groups of ranks of which each differs from its group's first rank by so little that the groups
/// are few. Without it, a run of many ranks would have too many pairs.
fn nearly_equal(vectors: &[Vector]) -> Vec<Vec<usize>> {
    let mut parts = 128 * ALIKE_PARTS;
    loop {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (member, vector) in vectors.iter().enumerate() {
            let is_equal = |group: &&mut Vec<usize>| {
                let first = &vectors[group[0]];
                let limit = first.total.max(vector.total) / parts;
                first.difference(vector, limit).is_some()
            };
            match groups.iter_mut().find(is_equal) {
                Some(group) => group.push(member),
                None => groups.push(vec![member]),
            }
        }
        if groups.len() <= MAX_LINKED || parts <= ALIKE_PARTS {
            return groups;
        }
        parts /= 2;
    }
}

/// Joins the two groups that differ least on average, until none differ by less than the limit.
fn linked(vectors: &[Vector], mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let count = groups.len();
    let first = |group: &Vec<usize>| group.first().map(|&member| &vectors[member]);
    let firsts: Vec<&Vector> = groups.iter().filter_map(first).collect();
    let mut apart: Vec<f64> = vec![0.0; count * count];
    for a in 0..count {
        for b in 0..a {
            let apart_by = firsts[a].share(firsts[b]);
            (apart[a * count + b], apart[b * count + a]) = (apart_by, apart_by);
        }
    }
    // The nearest group of each with a higher index.
    let nearest_of = |apart: &[f64], groups: &[Vec<usize>], a: usize| {
        let mut nearest = (f64::INFINITY, a);
        for b in a + 1..count {
            if !groups[b].is_empty() && apart[a * count + b] < nearest.0 {
                nearest = (apart[a * count + b], b);
            }
        }
        nearest
    };
    let mut nearest: Vec<(f64, usize)> =
        (0..count).map(|a| nearest_of(&apart, &groups, a)).collect();
    loop {
        let mut best = (1.0 / ALIKE_PARTS as f64, None);
        for a in 0..count {
            if !groups[a].is_empty() && nearest[a].0 <= best.0 && nearest[a].1 > a {
                // Of equals the first pair.
                if best.1.is_none() || nearest[a].0 < best.0 {
                    best = (nearest[a].0, Some((a, nearest[a].1)));
                }
            }
        }
        let Some((a, b)) = best.1 else { break };
        let (in_a, in_b) = (groups[a].len() as f64, groups[b].len() as f64);
        let joined = std::mem::take(&mut groups[b]);
        groups[a].extend(joined);
        for other in 0..count {
            let mean =
                (apart[a * count + other] * in_a + apart[b * count + other] * in_b) / (in_a + in_b);
            (apart[a * count + other], apart[other * count + a]) = (mean, mean);
        }
        for other in 0..count {
            let is_changed = other == a || nearest[other].1 == a || nearest[other].1 == b;
            if groups[other].is_empty() {
                continue;
            }
            if is_changed {
                nearest[other] = nearest_of(&apart, &groups, other);
            } else if other < a && apart[other * count + a] < nearest[other].0 {
                nearest[other] = (apart[other * count + a], a);
            }
        }
    }
    groups.retain(|group| !group.is_empty());
    for group in &mut groups {
        group.sort_small();
    }
    groups
}

/// For each rank of a cluster, the rank that is nearest to the medians, by index.
fn usual_columns(of: &[&Vector]) -> Vec<usize> {
    let medians = Vector::medians(of);
    let mut nearest: Vec<(u64, usize)> = of
        .iter()
        .enumerate()
        .map(|(at, vector)| (vector.difference(&medians, u64::MAX).unwrap_or(u64::MAX), at))
        .collect();
    nearest.sort_small();
    let other = |at: usize| {
        let found = nearest.iter().find(|&&(_, other)| other != at);
        found.map_or(at, |found| found.1)
    };
    (0..of.len()).map(other).collect()
}

/// The column of the rank that differs least from that of a column.
fn most_alike(vectors: &[Vector], order: &[usize], column: usize) -> usize {
    let own = &vectors[order[column]];
    let mut best = (u64::MAX, column);
    for (at, &member) in order.iter().enumerate().filter(|&(at, _)| at != column) {
        let limit = best.0.saturating_sub(1);
        if let Some(difference) = vectors[member].difference(own, limit) {
            best = (difference, at);
        }
    }
    best.1
}

/// Adds the outliers of a cluster that begins at column `first`.
fn outliers(of: &[&Vector], first: usize, found: &mut Vec<RankOutlier>) {
    if of.len() < MIN_RANKS {
        return;
    }
    let medians = Vector::medians(of);
    let least = MIN_EXCESS_BYTES.max(medians.total / MIN_EXCESS_PARTS);
    let few = (of.len() / 8).max(1);
    // The rows in which few ranks are far from the median, and those ranks.
    let mut far: Vec<Vec<usize>> = vec![Vec::new(); of.len()];
    // The last row is the rest.
    for row in 0..medians.bytes.len().saturating_sub(1) {
        let median = medians.bytes[row];
        let usual = middle(of.iter().map(|vector| vector.bytes[row].abs_diff(median)).collect());
        let limit = usual.saturating_mul(USUAL_DIFFERENCES).max(median / 2).max(MIN_SITE_BYTES);
        let is_far = |&at: &usize| of[at].bytes[row].abs_diff(median) > limit;
        let ranks: Vec<usize> = (0..of.len()).filter(is_far).collect();
        if ranks.len() <= few {
            for at in ranks {
                far[at].push(row);
            }
        }
    }
    for (at, mut rows) in far.into_iter().enumerate() {
        let (own, usual) = (&of[at].bytes, &medians.bytes);
        // More and less are told apart: what a rank holds more is the news.
        let sum = |more: bool| -> u64 {
            let part = |&row: &usize| {
                let (own, usual) = (own[row], usual[row]);
                if more { own.saturating_sub(usual) } else { usual.saturating_sub(own) }
            };
            rows.iter().map(part).fold(0, u64::saturating_add)
        };
        let is_more = sum(true) >= least;
        if !is_more && sum(false) < least {
            continue;
        }
        rows.retain(|&row| (own[row] > usual[row]) == is_more);
        rows.sort_small_by_key(|&row| Reverse(own[row].abs_diff(usual[row])));
        let held = |vector: &Vector| {
            rows.iter().map(|&row| vector.bytes[row]).fold(0, u64::saturating_add)
        };
        let others = of.iter().enumerate().filter(|&(other, _)| other != at);
        let others: Vec<u64> = others.map(|(_, vector)| held(vector)).collect();
        found.push(RankOutlier {
            column: first + at,
            bytes: held(of[at]),
            others: others.len(),
            usual: middle(others),
            rows,
        });
    }
}

/// The median; of an even number of values the upper one of the two in the middle. 0 without
/// values.
pub fn median(values: &[u64]) -> u64 {
    middle(values.to_vec())
}

fn middle(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
