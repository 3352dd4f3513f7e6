//! Call sites by ranks: what each rank of a run holds at its peak, with like ranks side by side.
//!
//! Ranks that hold nearly the same are one cluster, so the stages of a pipeline are clusters
//! without being told. A rank that differs from a cluster at a few call sites only is an exception
//! of that cluster, not a cluster of its own.

use crate::claims::findings::RankFacts;

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

/// Compares ranks of one run, of which the first has the lowest rank.
pub fn rank_matrix(ranks: &[&RankFacts]) -> RankMatrix {
    let (sites, omitted) = largest_sites(ranks);
    let held = Held::new(ranks, &sites);
    let clusters = held.clusters();
    let mut matrix = RankMatrix { omitted, ..RankMatrix::default() };
    let order: Vec<usize> = clusters.concat();
    for (row, site) in sites.into_iter().enumerate() {
        let bytes = held.row(&order, row);
        let median = median(&bytes);
        let (mut max, mut deviation) = (0, 0);
        for &bytes in &bytes {
            max = bytes.max(max);
            deviation = bytes.abs_diff(median).max(deviation);
        }
        matrix.rows.push(MatrixRow { site: site.to_owned(), bytes, median, max, deviation });
    }
    for (cluster, members) in clusters.into_iter().enumerate() {
        let first = matrix.columns.len();
        let medians = held.medians(&members);
        // The rank that is nearest to the medians, and the one that is nearest but for it.
        let usual = held.nearest(&members, usize::MAX, &medians);
        let next = held.nearest(&members, members[usual], &medians);
        let mut of_cluster = RankCluster { first, ranks: Vec::with_capacity(members.len()) };
        for &member in &members {
            let rank = ranks[member].rank.unwrap_or_default();
            of_cluster.ranks.push(rank);
            let usual = match members.len() {
                1 => held.nearest(&order, member, held.of(member)),
                _ => first + if member == members[usual] { next } else { usual },
            };
            matrix.columns.push(MatrixColumn {
                rank,
                member,
                peak: ranks[member].requested_peak,
                cluster,
                usual,
            });
        }
        matrix.clusters.push(of_cluster);
        held.outliers(&members, &medians, first, &mut matrix.outliers);
    }
    matrix
}

/// The call sites with the most bytes on any rank, and the number of the others.
fn largest_sites<'a>(ranks: &[&'a RankFacts]) -> (Vec<&'a str>, usize) {
    let mut all: Vec<(&str, u64)> = Vec::new();
    for rank in ranks {
        for (site, bytes) in &rank.by_site {
            all.push((site, *bytes));
        }
    }
    all.sort_by(|a, b| a.0.cmp(b.0).then(b.1.cmp(&a.1)));
    all.dedup_by_key(|site| site.0);
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let omitted = all.len().saturating_sub(MAX_SITES);
    all.truncate(MAX_SITES);
    (all.iter().map(|site| site.0).collect(), omitted)
}

/// What each rank holds at the call sites, and what it holds beside them.
struct Held {
    /// The call sites, and the rest.
    width: usize,
    /// Bytes rank by rank.
    bytes: Vec<u64>,
    /// The peak of each rank.
    totals: Vec<u64>,
}

impl Held {
    fn new(ranks: &[&RankFacts], sites: &[&str]) -> Self {
        let mut by_name: Vec<(&str, usize)> = sites.iter().copied().zip(0..).collect();
        by_name.sort_by(|a, b| a.0.cmp(b.0));
        let width = sites.len() + 1;
        let mut bytes = vec![0; ranks.len() * width];
        let mut totals = Vec::with_capacity(ranks.len());
        for (rank, own) in ranks.iter().zip(bytes.chunks_exact_mut(width)) {
            let mut rest = rank.requested_peak;
            for (site, held) in &rank.by_site {
                if let Ok(at) = by_name.binary_search_by(|known| known.0.cmp(site)) {
                    own[by_name[at].1] = *held;
                    rest = rest.saturating_sub(*held);
                }
            }
            own[sites.len()] = rest;
            totals.push(rank.requested_peak);
        }
        Self { width, bytes, totals }
    }

    /// What a rank holds.
    fn of(&self, member: usize) -> &[u64] {
        &self.bytes[member * self.width..][..self.width]
    }

    /// What ranks hold at one call site.
    #[inline(never)]
    fn row(&self, members: &[usize], row: usize) -> Vec<u64> {
        let mut bytes = Vec::with_capacity(members.len());
        for member in members {
            bytes.push(self.bytes[member * self.width + row]);
        }
        bytes
    }

    fn medians(&self, members: &[usize]) -> Vec<u64> {
        let mut medians = Vec::with_capacity(self.width);
        for row in 0..self.width {
            medians.push(middle(self.row(members, row)));
        }
        medians
    }

    /// By how much two ranks differ, as a share of the higher peak.
    fn share(&self, a: usize, b: usize) -> f64 {
        let whole = self.totals[a].max(self.totals[b]).max(1);
        difference(self.of(a), self.of(b), u64::MAX) as f64 / whole as f64
    }

    /// Groups like ranks: average linkage, as long as groups differ by less than the limit on
    /// average. Then a small group whose ranks differ from a larger one at a few call sites only
    /// joins that one.
    fn clusters(&self) -> Vec<Vec<usize>> {
        let mut groups = self.linked(self.nearly_equal());
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let mut kept: Vec<(Vec<u64>, usize, Vec<usize>)> = Vec::new();
        for group in groups {
            let mut best = (u64::MAX, None);
            for (at, (medians, size, _)) in kept.iter().enumerate() {
                // One in eight, at least one: as many exceptions as the ranks of a finding may be.
                if *size < 2 || group.len() > (size / 8).max(1) {
                    continue;
                }
                let (whole, rest) = exceptions(medians, self.of(group[0]));
                let limit = self.totals[group[0]].max(total(medians)) / ALIKE_PARTS;
                let is_exception = rest <= limit && rest.saturating_mul(EXCEPTION_PARTS) <= whole;
                if is_exception && rest < best.0 {
                    best = (rest, Some(at));
                }
            }
            match best.1 {
                Some(at) => kept[at].2.extend(group),
                None => kept.push((self.medians(&group), group.len(), group)),
            }
        }
        let mut clusters: Vec<Vec<usize>> = Vec::with_capacity(kept.len());
        for (_, _, mut cluster) in kept {
            cluster.sort_by(usize::cmp);
            clusters.push(cluster);
        }
        clusters.sort_by(|a, b| a[0].cmp(&b[0]));
        clusters
    }

    /// Groups of ranks of which each differs from its group's first rank by so little that the
    /// groups are few. Without it, a run of many ranks would have too many pairs.
    fn nearly_equal(&self) -> Vec<Vec<usize>> {
        let mut parts = 128 * ALIKE_PARTS;
        loop {
            let mut groups: Vec<Vec<usize>> = Vec::new();
            'ranks: for member in 0..self.totals.len() {
                for group in &mut groups {
                    let limit = self.totals[group[0]].max(self.totals[member]) / parts;
                    if difference(self.of(group[0]), self.of(member), limit) <= limit {
                        group.push(member);
                        continue 'ranks;
                    }
                }
                groups.push(vec![member]);
            }
            if groups.len() <= MAX_LINKED || parts <= ALIKE_PARTS {
                return groups;
            }
            parts /= 2;
        }
    }

    /// Joins the two groups that differ least on average, until none differ by less than the limit.
    fn linked(&self, mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let count = groups.len();
        let mut apart: Vec<f64> = vec![0.0; count * count];
        for a in 0..count {
            for b in 0..a {
                let share = self.share(groups[a][0], groups[b][0]);
                (apart[a * count + b], apart[b * count + a]) = (share, share);
            }
        }
        let mut nearest: Vec<(f64, usize)> = Vec::with_capacity(count);
        for a in 0..count {
            nearest.push(nearest_after(&apart, &groups, a));
        }
        loop {
            let mut best = (1.0 / ALIKE_PARTS as f64, usize::MAX);
            for a in 0..count {
                // Of equals the first pair.
                let is_least = nearest[a].0 < best.0 || best.1 == usize::MAX;
                if !groups[a].is_empty() && nearest[a].0 <= best.0 && is_least {
                    best = (nearest[a].0, a);
                }
            }
            let a = best.1;
            if a == usize::MAX {
                break;
            }
            let b = nearest[a].1;
            let (in_a, in_b) = (groups[a].len() as f64, groups[b].len() as f64);
            let joined = std::mem::take(&mut groups[b]);
            groups[a].extend(joined);
            for other in 0..count {
                let mean = (apart[a * count + other] * in_a + apart[b * count + other] * in_b)
                    / (in_a + in_b);
                (apart[a * count + other], apart[other * count + a]) = (mean, mean);
            }
            for other in 0..count {
                if other == a || nearest[other].1 == a || nearest[other].1 == b {
                    nearest[other] = nearest_after(&apart, &groups, other);
                } else if other < a && apart[other * count + a] < nearest[other].0 {
                    nearest[other] = (apart[other * count + a], a);
                }
            }
        }
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// The place of the rank, but `except`, that differs least.
    fn nearest(&self, among: &[usize], except: usize, from: &[u64]) -> usize {
        let mut best = (u64::MAX, 0);
        for (at, &member) in among.iter().enumerate() {
            if member == except {
                continue;
            }
            let apart = difference(self.of(member), from, best.0);
            if apart < best.0 {
                best = (apart, at);
            }
        }
        best.1
    }

    /// Adds the outliers of a cluster that begins at column `first`.
    fn outliers(
        &self,
        members: &[usize],
        medians: &[u64],
        first: usize,
        found: &mut Vec<RankOutlier>,
    ) {
        if members.len() < MIN_RANKS {
            return;
        }
        let least = MIN_EXCESS_BYTES.max(total(medians) / MIN_EXCESS_PARTS);
        let few = (members.len() / 8).max(1);
        // For each rank the rows in which it is far from the median, and few others are.
        let mut far: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
        // The last row is the rest.
        for (row, &usual_bytes) in medians.iter().enumerate().take(self.width - 1) {
            let mut apart = self.row(members, row);
            for bytes in &mut apart {
                *bytes = bytes.abs_diff(usual_bytes);
            }
            let usual = median(&apart).saturating_mul(USUAL_DIFFERENCES);
            let limit = usual.max(usual_bytes / 2).max(MIN_SITE_BYTES);
            if apart.iter().filter(|&&apart| apart > limit).count() > few {
                continue;
            }
            for (rows, &apart) in far.iter_mut().zip(&apart) {
                if apart > limit {
                    rows.push(row);
                }
            }
        }
        for (at, mut rows) in far.into_iter().enumerate() {
            let own = self.of(members[at]);
            // Bytes above and below the medians do not cancel out. If enough are above, only the
            // call sites above are listed.
            let (mut more, mut less) = (0u64, 0u64);
            for &row in &rows {
                more = more.saturating_add(own[row].saturating_sub(medians[row]));
                less = less.saturating_add(medians[row].saturating_sub(own[row]));
            }
            let is_more = more >= least;
            if !is_more && less < least {
                continue;
            }
            rows.retain(|&row| (own[row] > medians[row]) == is_more);
            let apart = |row: usize| own[row].abs_diff(medians[row]);
            rows.sort_by_key(|&row| std::cmp::Reverse(apart(row)));
            let held = |member: usize| {
                let own = self.of(member);
                rows.iter().fold(0u64, |sum, &row| sum.saturating_add(own[row]))
            };
            let mut others = Vec::with_capacity(members.len());
            for (other, &member) in members.iter().enumerate() {
                if other != at {
                    others.push(held(member));
                }
            }
            found.push(RankOutlier {
                column: first + at,
                bytes: held(members[at]),
                others: others.len(),
                usual: middle(others),
                rows,
            });
        }
    }
}

/// The nearest of the groups after one.
fn nearest_after(apart: &[f64], groups: &[Vec<usize>], a: usize) -> (f64, usize) {
    let mut nearest = (f64::INFINITY, a);
    for b in a + 1..groups.len() {
        if !groups[b].is_empty() && apart[a * groups.len() + b] < nearest.0 {
            nearest = (apart[a * groups.len() + b], b);
        }
    }
    nearest
}

/// The sum of the differences; some number above the limit if it is above.
#[inline(never)]
fn difference(a: &[u64], b: &[u64], limit: u64) -> u64 {
    let mut sum = 0u64;
    for (a, b) in a.iter().zip(b) {
        sum = sum.saturating_add(a.abs_diff(*b));
        if sum > limit {
            break;
        }
    }
    sum
}

/// The sum of the differences, and that without the largest ones.
fn exceptions(a: &[u64], b: &[u64]) -> (u64, u64) {
    let mut largest = [0; EXCEPTION_SITES];
    let (mut whole, mut rest) = (0u64, 0u64);
    for (a, b) in a.iter().zip(b) {
        let mut difference = a.abs_diff(*b);
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

fn total(bytes: &[u64]) -> u64 {
    bytes.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))
}

/// The median; of an even number of values the upper one of the two in the middle. 0 without
/// values.
pub fn median(values: &[u64]) -> u64 {
    middle(values.to_vec())
}

#[inline(never)]
fn middle(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
