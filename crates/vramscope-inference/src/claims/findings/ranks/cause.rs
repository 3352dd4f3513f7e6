//! Why a rank holds more: a larger batch, memory held on it only, sharding, or the allocator.

use super::skew::{RankSkew, SkewCause, SkewSite};
use crate::category::Category;
use crate::claims::id::FindingId;
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::severity::Severity;
use crate::evidence::ranks::{
    RankFacts, RankMatrix, RankOutlier, RankStack, Spread, are_few, matters, median, total,
};
use rustc_hash::FxHashMap;
use vramscope_trace::group_by_key;
use vramscope_units::Bytes;

/// The smallest ratio, in percent, of a batch that is not [`Severity::Low`]. Batches of samples of
/// different lengths differ by less.
const LARGE_BATCH_PERCENT: u64 = 175;

/// The fewest call stacks that show the ratio of a batch.
const MIN_BATCH_STACKS: usize = 3;

/// The smallest call stack that shows the ratio of a batch.
const MIN_BATCH_BYTES: u64 = 1 << 20;

/// Categories that ranks shard.
const SHARDED: [Category; 2] = [Category::Parameter, Category::OptimizerState];

/// Ranks with similar call stacks.
struct Group<'a> {
    members: &'a [&'a RankFacts],
    /// Each call stack's bytes, by its hash.
    stacks: FxHashMap<u64, Spread>,
    /// The ratio of the batch to the usual one, in percent.
    batch: Figure,
    /// The median of inputs.
    input: u64,
    /// The median peak.
    peak: u64,
    reserved: Figure,
    /// Parameters and optimizer state at call stacks that other ranks have too.
    state: Figure,
}

/// A figure of each rank of a group.
struct Figure {
    values: Vec<u64>,
    spread: Spread,
}

/// An excess of one rank over the median.
struct Excess {
    cause: SkewCause,
    /// The name in the finding's id.
    what: String,
    bytes: u64,
    usual: u64,
    sites: Vec<SkewSite>,
}

/// Skew among ranks with similar call stacks, by index into `members`.
pub(super) fn compare(members: &[&RankFacts]) -> Vec<(usize, RankSkew)> {
    let group = Group::new(members);
    let mut found = Vec::new();
    for (index, rank) in members.iter().enumerate() {
        for excess in group.of_rank(index) {
            let each = group.each(&excess);
            found.push((index, excess.of(rank, each)));
        }
    }
    found
}

impl Excess {
    /// The excess at call stacks, with their usual bytes.
    fn at<'s>(cause: SkewCause, stacks: impl Iterator<Item = (&'s RankStack, u64)>) -> Self {
        let (mut bytes, mut usual, mut sites) = (0u64, 0u64, Vec::new());
        for (stack, usual_bytes) in stacks {
            bytes = bytes.saturating_add(stack.bytes);
            usual = usual.saturating_add(usual_bytes);
            let excess = Bytes(stack.bytes.saturating_sub(usual_bytes));
            sites.push(SkewSite { hash: stack.hash, site: stack.site.clone(), excess });
        }
        sites.sort_by_key(|site| (std::cmp::Reverse(site.excess), site.hash));
        let what = match cause {
            SkewCause::Batch { .. } => "batch".to_owned(),
            _ => sites.first().map(|site| format!("{:016x}", site.hash)).unwrap_or_default(),
        };
        Self { cause, what, bytes, usual, sites }
    }

    /// Bytes above what is usual.
    fn above(&self) -> u64 {
        self.bytes.saturating_sub(self.usual)
    }

    /// The finding about a rank. `each` are the bytes on each compared rank.
    fn of(self, rank: &RankFacts, each: Vec<(u32, Bytes)>) -> RankSkew {
        let reserved = i64::try_from(rank.reserved_peak).unwrap_or(i64::MAX);
        let severity = match self.cause {
            SkewCause::Batch { percent, .. } if percent < LARGE_BATCH_PERCENT => Severity::Low,
            _ => Severity::of(FindingKind::RankSkew, self.above(), reserved),
        };
        let basis = match self.cause {
            // A larger batch and longer sequences look alike, and categories are guesses.
            SkewCause::Batch { .. } | SkewCause::Sharding => Basis::Estimate,
            SkewCause::Held | SkewCause::Reserved => Basis::Recorded,
        };
        let is_main = |stack: &&RankStack| self.sites.first().is_some_and(|m| m.hash == stack.hash);
        RankSkew {
            category: rank.by_stack.iter().find(is_main).map(|stack| stack.category),
            id: FindingId { kind: FindingKind::RankSkew, device: rank.device, what: self.what },
            severity,
            basis,
            rank: rank.rank.unwrap_or_default(),
            cause: self.cause,
            bytes: Bytes(self.bytes),
            usual: Bytes(self.usual),
            ranks: each.len(),
            each,
            sites: self.sites,
        }
    }
}

impl Figure {
    fn new(values: Vec<u64>) -> Self {
        Self { spread: Spread::of(values.clone(), values.len()), values }
    }

    /// Whether a rank and few others have far more than the median.
    fn is_outlier(&self, index: usize) -> bool {
        let median = self.spread.median;
        let is_far = |value: u64| value > median && self.spread.is_far(value, median);
        let far = || self.values.iter().filter(|&&value| is_far(value)).count();
        is_far(self.values[index]) && are_few(far(), self.values.len())
    }
}

impl<'a> Group<'a> {
    fn new(members: &'a [&'a RankFacts]) -> Self {
        let stacks = members.iter().flat_map(|rank| &rank.by_stack);
        let stacks = stacks.map(|stack| (stack.hash, stack.bytes)).collect();
        let stacks: FxHashMap<u64, Spread> = (group_by_key(stacks).into_iter())
            .map(|(hash, bytes)| (hash, Spread::of(bytes, members.len())))
            .collect();
        let values = |of: &dyn Fn(&RankFacts) -> u64| members.iter().map(|rank| of(rank)).collect();
        // Memory that only this rank has is held, not sharded.
        let state = |rank: &RankFacts| {
            let own = rank.by_stack.iter().filter(|stack| {
                SHARDED.contains(&stack.category) && stacks[&stack.hash].median == 0
            });
            bytes_of(rank, &SHARDED).saturating_sub(own.map(|stack| stack.bytes).sum())
        };
        Self {
            batch: Figure::new(values(&|rank| batch_percent(rank, &stacks).unwrap_or(100))),
            input: median(&values(&|rank| bytes_of(rank, &[Category::Input]))),
            peak: median(&values(&|rank| rank.requested_peak)),
            reserved: Figure::new(values(&|rank| rank.reserved_peak)),
            state: Figure::new(values(&state)),
            members,
            stacks,
        }
    }

    fn of_rank(&self, index: usize) -> Vec<Excess> {
        let mut unexplained = self.members[index].requested_peak.saturating_sub(self.peak);
        let mut found = Vec::new();
        let batch = self.batch_of(index);
        let scale = batch.as_ref().map_or(100, |_| self.batch.values[index]);
        for excess in [batch, self.held(index, scale), self.sharding(index)].into_iter().flatten() {
            let bytes = excess.above();
            if matters(bytes, self.peak) && is_at_peak(bytes, unexplained) {
                unexplained = unexplained.saturating_sub(bytes);
                found.push(excess);
            }
        }
        if found.is_empty() {
            found.extend(self.reserved(index));
        }
        found
    }

    /// A larger batch or longer sequences.
    fn batch_of(&self, index: usize) -> Option<Excess> {
        if !self.batch.is_outlier(index) {
            return None;
        }
        let (rank, percent) = (self.members[index], self.batch.values[index]);
        let grown = rank.by_stack.iter().filter_map(|stack| {
            let usual = self.stacks[&stack.hash].median;
            let has_ratio =
                is_data_of_step(stack.category) && is_ratio(stack.bytes, usual, percent);
            has_ratio.then_some((stack, usual))
        });
        let input = bytes_of(rank, &[Category::Input]);
        let inputs = is_ratio(input, self.input, percent);
        let inputs = inputs.then_some((Bytes(input), Bytes(self.input)));
        Some(Excess::at(SkewCause::Batch { percent, inputs }, grown))
    }

    /// Memory of single call stacks. `scale` is the ratio of the batch in percent.
    fn held(&self, index: usize, scale: u64) -> Option<Excess> {
        let held = self.members[index].by_stack.iter().filter_map(|stack| {
            let usual = self.stacks[&stack.hash];
            let scale = if is_data_of_step(stack.category) { scale } else { 100 };
            let expected = usual.median.saturating_mul(scale) / 100;
            let is_far =
                |of: &RankStack| of.bytes > expected && usual.is_site_far(of.bytes, expected);
            let of_rank = |other: &&&RankFacts| {
                other.by_stack.iter().any(|s| s.hash == stack.hash && is_far(s))
            };
            // A larger batch scales a part of what has no frames.
            let is_mixed = scale != 100 && !stack.site.has_frame;
            let is_sharded = usual.median > 0 && SHARDED.contains(&stack.category);
            let is_held = !(stack.is_named || is_mixed || is_sharded)
                && is_far(stack)
                && are_few(self.members.iter().filter(of_rank).count(), self.members.len());
            is_held.then_some((stack, expected))
        });
        Some(Excess::at(SkewCause::Held, held)).filter(|held| !held.sites.is_empty())
    }

    /// More parameters and optimizer state, at call stacks that the other ranks have too.
    fn sharding(&self, index: usize) -> Option<Excess> {
        let larger = self.members[index].by_stack.iter().filter_map(|stack| {
            let usual = self.stacks[&stack.hash].median;
            let is_larger = SHARDED.contains(&stack.category) && 0 < usual && usual < stack.bytes;
            is_larger.then_some((stack, usual))
        });
        self.state.is_outlier(index).then(|| Excess {
            what: "sharding".to_owned(),
            bytes: self.state.values[index],
            usual: self.state.spread.median,
            ..Excess::at(SkewCause::Sharding, larger)
        })
    }

    /// More reserved memory, without more memory in use and without an own finding that explains
    /// it.
    fn reserved(&self, index: usize) -> Option<Excess> {
        let (rank, usual) = (self.members[index], self.reserved.spread.median);
        let excess = rank.reserved_peak.saturating_sub(usual);
        let is_named = rank.findings.iter().any(|&(kind, bytes)| {
            kind != FindingKind::PendingFree && bytes.saturating_mul(2) >= excess
        });
        let is_skew = self.reserved.is_outlier(index)
            && matters(excess, self.peak)
            && rank.requested_peak.saturating_sub(self.peak) <= excess / 2
            && !is_named;
        is_skew.then(|| Excess {
            cause: SkewCause::Reserved,
            what: "reserved".to_owned(),
            bytes: rank.reserved_peak,
            usual,
            sites: Vec::new(),
        })
    }

    /// The bytes on each rank that are compared.
    fn each(&self, excess: &Excess) -> Vec<(u32, Bytes)> {
        let is_site = |stack: &&RankStack| excess.sites.iter().any(|of| of.hash == stack.hash);
        let held = |rank: &RankFacts| total(rank.by_stack.iter().filter(is_site).map(|s| s.bytes));
        let of = |(index, rank): (usize, &&RankFacts)| match excess.cause {
            SkewCause::Batch { .. } | SkewCause::Held => held(rank),
            SkewCause::Sharding => self.state.values[index],
            SkewCause::Reserved => rank.reserved_peak,
        };
        let members = self.members.iter().enumerate();
        members.map(|one| (one.1.rank.unwrap_or_default(), Bytes(of(one)))).collect()
    }
}

/// Whether the excess of a rank shows in its peak. Otherwise another moment is its peak.
fn is_at_peak(excess: u64, above_peak: u64) -> bool {
    above_peak >= excess / 2
}

/// Whether memory of a category grows with the batch.
fn is_data_of_step(category: Category) -> bool {
    matches!(category, Category::Activation | Category::Temporary | Category::Input)
}

/// Whether bytes are within a tenth of the usual bytes times a ratio.
fn is_ratio(bytes: u64, usual: u64, percent: u64) -> bool {
    usual > 0 && (bytes.saturating_mul(100) / usual).abs_diff(percent) <= percent / 10
}

fn bytes_of(rank: &RankFacts, categories: &[Category]) -> u64 {
    rank.by_category.iter().filter(|share| categories.contains(&share.0)).map(|share| share.1).sum()
}

/// The ratio of a rank's data of a step to the usual, in percent. `None` if the call stacks do not
/// agree: three quarters of the usual bytes must be within a tenth of the ratio. Where only Python
/// frames are recorded, all of backward has no frames: gradients and workspaces, which do not grow,
/// are in one row with what does. That row is left out.
fn batch_percent(rank: &RankFacts, stacks: &FxHashMap<u64, Spread>) -> Option<u64> {
    let mut ratios: Vec<(u64, u64, u64)> = (rank.by_stack.iter())
        .filter(|stack| is_data_of_step(stack.category) && stack.site.has_frame)
        .map(|stack| (stack.bytes, stacks[&stack.hash].median))
        .filter(|&(_, usual)| usual >= MIN_BATCH_BYTES)
        .map(|(bytes, usual)| (bytes.saturating_mul(100) / usual, usual, bytes))
        .collect();
    if ratios.len() < MIN_BATCH_STACKS {
        return None;
    }
    ratios.sort_unstable();
    let whole: u64 = ratios.iter().map(|ratio| ratio.1).sum();
    let mut before = 0;
    let percent = ratios.iter().find_map(|&(percent, usual, _)| {
        before += usual;
        (before * 2 >= whole).then_some(percent)
    })?;
    let agree = ratios.iter().filter(|&&(_, usual, bytes)| is_ratio(bytes, usual, percent));
    let agreeing: u64 = agree.map(|ratio| ratio.1).sum();
    (agreeing.saturating_mul(4) >= whole.saturating_mul(3)).then_some(percent)
}

/// Call sites at which a rank holds far more than the others of its cluster, by the matrix of the
/// ranks.
pub(super) fn of_outlier(
    rank: &RankFacts,
    matrix: &RankMatrix,
    outlier: &RankOutlier,
) -> Option<RankSkew> {
    let cluster = &matrix.clusters[matrix.columns[outlier.column].cluster];
    let columns = cluster.first..cluster.first + cluster.ranks.len();
    let rows = || outlier.rows.iter().map(|&row| &matrix.rows[row]);
    let peaks: Vec<u64> = matrix.columns[columns.clone()].iter().map(|of| of.peak).collect();
    let excess = outlier.bytes.saturating_sub(outlier.usual);
    let is_at_peak = is_at_peak(excess, rank.requested_peak.saturating_sub(median(&peaks)));
    if excess == 0
        || !is_at_peak
        || rank
            .by_stack
            .iter()
            .any(|stack| stack.is_named && rows().any(|row| row.site == stack.site))
    {
        return None;
    }
    let sites: Vec<SkewSite> = rows()
        .map(|row| {
            let stacks = rank.by_stack.iter().filter(|stack| stack.site == row.site);
            let largest = stacks.max_by_key(|stack| (stack.bytes, stack.hash));
            let usual = median(&row.bytes[columns.clone()]);
            SkewSite {
                hash: largest.map_or(0, |stack| stack.hash),
                site: row.site.clone(),
                excess: Bytes(row.bytes[outlier.column].saturating_sub(usual)),
            }
        })
        .collect();
    let held = |column: usize| Bytes(total(rows().map(|row| row.bytes[column])));
    let each = columns.map(|column| (matrix.columns[column].rank, held(column))).collect();
    let what = format!("{:016x}", sites.first()?.hash);
    let RankOutlier { bytes, usual, .. } = *outlier;
    Some(Excess { cause: SkewCause::Held, what, bytes, usual, sites }.of(rank, each))
}
