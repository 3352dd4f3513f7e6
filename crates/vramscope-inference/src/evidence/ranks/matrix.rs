//! Call sites by ranks: bytes of each rank of a run at its peak, with like ranks side by side.
//!
//! Ranks that hold nearly the same are one cluster, as the stages of a pipeline. A rank that
//! differs from a cluster at a few call sites only is an exception of that cluster, not a cluster
//! of its own.

use super::{CallSite, MIN_RANKS, RankFacts, Spread, are_few, matters, median, total};
use rustc_hash::FxHashMap;

/// Ranks are alike if what they hold differs, on average, by at most one part in this many of what
/// the larger one holds. Differences are added up over call sites.
pub const ALIKE_PARTS: u64 = 10;

/// The most call sites at which an exception differs from the ranks of its cluster.
const EXCEPTION_SITES: usize = 3;

/// All but one part in this many of an exception's difference is at these call sites.
const EXCEPTION_PARTS: u64 = 5;

/// The most groups of nearly equal ranks that are compared pair by pair.
const MAX_LINKED: usize = 256;

/// The most call sites that are compared one by one. The others count together.
const MAX_SITES: usize = 128;

/// Bytes of the ranks of a run at their peaks, by call site.
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
    pub site: CallSite,
    /// Its bytes on each rank, by column.
    pub bytes: Vec<u64>,
    /// The median of these; of an even number of ranks the upper one of the two in the middle.
    pub median: u64,
    /// The most of these.
    pub max: u64,
    /// The largest difference from the median.
    pub deviation: u64,
}

impl MatrixRow {
    /// The row of figures by column.
    pub fn new(site: CallSite, bytes: Vec<u64>) -> Self {
        let median = median(&bytes);
        let deviation = bytes.iter().map(|bytes| bytes.abs_diff(median)).max().unwrap_or(0);
        Self { site, median, max: bytes.iter().copied().max().unwrap_or(0), deviation, bytes }
    }
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
    matrix.rows = (sites.iter().enumerate())
        .map(|(row, &site)| MatrixRow::new(site.clone(), held.row(&order, row)))
        .collect();
    for (cluster, members) in clusters.into_iter().enumerate() {
        let first = matrix.columns.len();
        let medians = held.medians(&members);
        // The rank that is nearest to the medians, and the one that is nearest but for it.
        let usual = held.nearest(&members, usize::MAX, &medians);
        let next = held.nearest(&members, members[usual], &medians);
        for &member in &members {
            let usual = match members.len() {
                1 => held.nearest(&order, member, held.of(member)),
                _ => first + if member == members[usual] { next } else { usual },
            };
            let RankFacts { rank, requested_peak: peak, .. } = *ranks[member];
            let rank = rank.unwrap_or_default();
            matrix.columns.push(MatrixColumn { rank, member, peak, cluster, usual });
        }
        let own = matrix.columns[first..].iter().map(|column| column.rank).collect();
        matrix.clusters.push(RankCluster { first, ranks: own });
        held.outliers(&members, &medians, first, &mut matrix.outliers);
    }
    matrix
}

/// The call sites with the most bytes on any rank, and the number of the others.
fn largest_sites<'a>(ranks: &[&'a RankFacts]) -> (Vec<&'a CallSite>, usize) {
    let mut most: FxHashMap<&CallSite, u64> = FxHashMap::default();
    for (site, bytes) in ranks.iter().flat_map(|rank| &rank.by_site) {
        let most = most.entry(site).or_default();
        *most = *bytes.max(most);
    }
    let mut sites: Vec<(&CallSite, u64)> = most.into_iter().collect();
    sites.sort_unstable_by_key(|&(site, bytes)| (std::cmp::Reverse(bytes), site));
    let omitted = sites.len().saturating_sub(MAX_SITES);
    (sites.iter().take(MAX_SITES).map(|site| site.0).collect(), omitted)
}

/// Bytes of each rank at the call sites, and of the rest.
struct Held {
    /// The call sites, and the rest.
    width: usize,
    /// Bytes rank by rank.
    bytes: Vec<u64>,
    /// The peak of each rank.
    totals: Vec<u64>,
}

impl Held {
    fn new(ranks: &[&RankFacts], sites: &[&CallSite]) -> Self {
        let rows: FxHashMap<&CallSite, usize> = sites.iter().copied().zip(0..).collect();
        let width = sites.len() + 1;
        let mut bytes = vec![0; ranks.len() * width];
        let mut totals = Vec::with_capacity(ranks.len());
        for (rank, own) in ranks.iter().zip(bytes.chunks_exact_mut(width)) {
            let mut rest = rank.requested_peak;
            for (site, held) in &rank.by_site {
                if let Some(&row) = rows.get(site) {
                    own[row] = *held;
                    rest = rest.saturating_sub(*held);
                }
            }
            own[sites.len()] = rest;
            totals.push(rank.requested_peak);
        }
        Self { width, bytes, totals }
    }

    /// Bytes of a rank.
    fn of(&self, member: usize) -> &[u64] {
        &self.bytes[member * self.width..][..self.width]
    }

    /// Bytes of ranks at one call site.
    fn row(&self, members: &[usize], row: usize) -> Vec<u64> {
        members.iter().map(|&member| self.of(member)[row]).collect()
    }

    fn medians(&self, members: &[usize]) -> Vec<u64> {
        (0..self.width).map(|row| median(&self.row(members, row))).collect()
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
            let nearest = kept.iter().enumerate().filter_map(|(at, (medians, size, _))| {
                // As many exceptions as the ranks of a finding may be.
                if *size < 2 || !are_few(group.len(), *size) {
                    return None;
                }
                let (whole, rest) = exceptions(medians, self.of(group[0]));
                let limit = self.totals[group[0]].max(total(medians.iter().copied())) / ALIKE_PARTS;
                let is_exception = rest <= limit && rest.saturating_mul(EXCEPTION_PARTS) <= whole;
                is_exception.then_some((rest, at))
            });
            match nearest.min() {
                Some((_, at)) => kept[at].2.extend(group),
                None => kept.push((self.medians(&group), group.len(), group)),
            }
        }
        let mut clusters: Vec<Vec<usize>> = kept.into_iter().map(|kept| kept.2).collect();
        for cluster in &mut clusters {
            cluster.sort_unstable();
        }
        clusters.sort_unstable();
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
    /// Of equals it joins the first pair.
    fn linked(&self, mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let from = |a: &Vec<usize>| groups.iter().map(|b| self.share(a[0], b[0])).collect();
        let mut apart: Vec<Vec<f64>> = groups.iter().map(from).collect();
        loop {
            let mut least = (f64::INFINITY, 0, 0);
            for (a, row) in apart.iter().enumerate() {
                for (b, &share) in row.iter().enumerate().skip(a + 1) {
                    if share < least.0 {
                        least = (share, a, b);
                    }
                }
            }
            let (share, a, b) = least;
            if share > 1.0 / ALIKE_PARTS as f64 {
                return groups;
            }
            let (in_a, in_b) = (groups[a].len() as f64, groups[b].len() as f64);
            let mean = |(from_a, from_b)| (from_a * in_a + from_b * in_b) / (in_a + in_b);
            let means: Vec<f64> =
                apart[a].iter().copied().zip(apart[b].iter().copied()).map(mean).collect();
            for (row, &mean) in apart.iter_mut().zip(&means) {
                row[a] = mean;
            }
            apart[a] = means;
            let joined = groups.remove(b);
            groups[a].extend(joined);
            apart.remove(b);
            for row in &mut apart {
                row.remove(b);
            }
        }
    }

    /// The place of the rank, but `except`, that differs least.
    fn nearest(&self, among: &[usize], except: usize, from: &[u64]) -> usize {
        let others = among.iter().enumerate().filter(|&(_, &member)| member != except);
        let apart = others.map(|(at, &member)| (difference(self.of(member), from, u64::MAX), at));
        apart.min().map_or(0, |nearest| nearest.1)
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
        let peaks: Vec<u64> = members.iter().map(|&member| self.totals[member]).collect();
        let peak = median(&peaks);
        // For each rank the rows in which it holds far more than the median, and those in which it
        // holds far less. The last row is the rest.
        let mut far: Vec<[Vec<usize>; 2]> = vec![Default::default(); members.len()];
        for row in 0..self.width - 1 {
            let bytes = self.row(members, row);
            let spread = Spread::of(bytes.clone(), bytes.len());
            for is_less in [false, true] {
                let mut of_side = (0..bytes.len()).collect::<Vec<usize>>();
                of_side.retain(|&at| {
                    (bytes[at] < spread.median) == is_less
                        && spread.is_site_far(bytes[at], spread.median)
                });
                if are_few(of_side.len(), bytes.len()) {
                    for at in of_side {
                        far[at][usize::from(is_less)].push(row);
                    }
                }
            }
        }
        for (at, sides) in far.into_iter().enumerate() {
            let own = self.of(members[at]);
            let apart = |row: usize| own[row].abs_diff(medians[row]);
            // Bytes above and below the medians do not cancel out. If enough are above, only the
            // call sites above are listed.
            let is_enough =
                |rows: &Vec<usize>| matters(total(rows.iter().map(|&row| apart(row))), peak);
            let Some(mut rows) = sides.into_iter().find(is_enough) else { continue };
            rows.sort_by_key(|&row| std::cmp::Reverse(apart(row)));
            let held = |member: usize| total(rows.iter().map(|&row| self.of(member)[row]));
            let mut others: Vec<u64> = members.iter().map(|&member| held(member)).collect();
            let bytes = others.remove(at);
            found.push(RankOutlier {
                column: first + at,
                bytes,
                others: others.len(),
                usual: median(&others),
                rows,
            });
        }
    }
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
