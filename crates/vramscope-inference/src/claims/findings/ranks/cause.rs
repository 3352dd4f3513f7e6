//! Why a rank holds more: a larger batch, memory held on it only, sharding, or the allocator.

use super::{RankFacts, RankSkew, RankStack, SkewCause, SkewSite};
use crate::category::Category;
use crate::claims::id::FindingId;
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::severity::Severity;
use vramscope_trace::group_by_key;
use vramscope_units::Bytes;

/// The smallest excess over the median to report, whatever the spread.
const MIN_EXCESS_BYTES: u64 = 16 << 20;

/// An excess below this share of the usual peak is not reported: one part in fifty.
const MIN_EXCESS_DIVISOR: u64 = 50;

/// The smallest excess of one call stack that counts.
const MIN_SITE_BYTES: u64 = 1 << 20;

/// A figure must exceed the median by this many standard deviations.
const DEVIATIONS: u64 = 6;

/// The smallest ratio, in percent, of a batch to report.
const MIN_BATCH_PERCENT: u64 = 125;

/// The smallest ratio, in percent, of a batch that is not [`Severity::Low`]. Batches of samples of
/// different lengths differ by less.
const LARGE_BATCH_PERCENT: u64 = 175;

/// The fewest call stacks that show the ratio of a batch.
const MIN_BATCH_STACKS: usize = 3;

/// The group's figures that each rank is compared with.
struct Group<'a> {
    members: &'a [&'a RankFacts],
    /// The median and the spread of each call stack's bytes, by its hash.
    stacks: Vec<(u64, Usual)>,
    /// The ratio of each rank's batch to the usual one, in percent; `None` if there is no single
    /// ratio.
    batches: Vec<Option<u64>>,
    batch: Usual,
    /// The median of inputs.
    input: u64,
    requested: Usual,
    reserved: Usual,
    /// Parameters and optimizer state of each rank.
    states: Vec<u64>,
    state: Usual,
    /// The smallest excess to report.
    least: u64,
}

/// The middle of a figure over all ranks of a group.
#[derive(Clone, Copy)]
struct Usual {
    median: u64,
    /// The median absolute deviation, scaled to a standard deviation.
    spread: u64,
}

/// What exceeds the median on one rank.
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
            let each =
                members.iter().map(|other| (other.rank.unwrap_or_default(), excess.on(other)));
            let mut each: Vec<(u32, Bytes)> = each.collect();
            each[index].1 = Bytes(excess.bytes);
            found.push((index, finding(rank, excess, each)));
        }
    }
    found
}

impl Excess {
    /// The bytes of another rank that are compared.
    fn on(&self, rank: &RankFacts) -> Bytes {
        Bytes(match self.cause {
            SkewCause::Batch { .. } | SkewCause::Held => {
                let is_site = |hash: u64| self.sites.iter().any(|site| site.hash == hash);
                rank.by_stack.iter().filter(|stack| is_site(stack.hash)).map(|s| s.bytes).sum()
            }
            SkewCause::Sharding => bytes_of(rank, &SHARDED),
            SkewCause::Reserved => rank.reserved_peak,
        })
    }
}

impl<'a> Group<'a> {
    fn new(members: &'a [&'a RankFacts]) -> Self {
        let values = members.iter().flat_map(|rank| &rank.by_stack);
        let values = values.map(|stack| (stack.hash, stack.bytes)).collect();
        let stacks: Vec<(u64, Usual)> = group_by_key(values)
            .into_iter()
            .map(|(hash, bytes)| (hash, Usual::of(bytes, members.len())))
            .collect();
        let batches: Vec<Option<u64>> =
            members.iter().map(|rank| batch_percent(rank, &stacks)).collect();
        let requested = Usual::of_each(members, |rank| rank.requested_peak);
        let states: Vec<u64> = members.iter().map(|rank| bytes_of(rank, &SHARDED)).collect();
        Self {
            batch: Usual::of(
                batches.iter().map(|percent| percent.unwrap_or(100)).collect(),
                members.len(),
            ),
            least: MIN_EXCESS_BYTES.max(requested.median / MIN_EXCESS_DIVISOR),
            input: Usual::of_each(members, |rank| bytes_of(rank, &[Category::Input])).median,
            reserved: Usual::of_each(members, |rank| rank.reserved_peak),
            state: Usual::of(states.clone(), members.len()),
            states,
            members,
            stacks,
            batches,
            requested,
        }
    }

    fn of_rank(&self, index: usize) -> Vec<Excess> {
        let rank = self.members[index];
        // What a rank holds more shows in its peak. Otherwise another moment is its peak.
        let mut unexplained = rank.requested_peak.saturating_sub(self.requested.median);
        let mut found = Vec::new();
        let batch = self.batch_of(index);
        let scale = batch.as_ref().map_or(100, |_| self.batches[index].unwrap_or(100));
        for excess in [batch, self.held(rank, scale), self.sharding(rank)].into_iter().flatten() {
            let bytes = excess.bytes.saturating_sub(excess.usual);
            if bytes >= self.least && unexplained >= bytes / 2 {
                unexplained = unexplained.saturating_sub(bytes);
                found.push(excess);
            }
        }
        if found.is_empty() {
            found.extend(self.reserved(rank));
        }
        found
    }

    /// A larger batch or longer sequences.
    fn batch_of(&self, index: usize) -> Option<Excess> {
        let percent = self.batches[index].filter(|&percent| percent >= MIN_BATCH_PERCENT)?;
        let beyond = |other: &Option<u64>| self.batch.is_far(other.unwrap_or(100), 0);
        if !self.batch.is_far(percent, 0) || !few(&self.batches, beyond) {
            return None;
        }
        let rank = self.members[index];
        let grown = rank.by_stack.iter().filter_map(|stack| {
            let usual = usual_of(&self.stacks, stack.hash)?.median;
            let is_part = usual > 0
                && is_data_of_step(stack.category)
                && is_near(stack.bytes.saturating_mul(100) / usual, percent);
            is_part.then_some((stack, usual))
        });
        let (bytes, usual, sites) = summed(grown);
        let (input, usual_input) = (bytes_of(rank, &[Category::Input]), self.input);
        let has_ratio =
            usual_input > 0 && is_near(input.saturating_mul(100) / usual_input, percent);
        let inputs = has_ratio.then_some((Bytes(input), Bytes(usual_input)));
        let cause = SkewCause::Batch { percent, inputs };
        Some(Excess { cause, what: "batch".to_owned(), bytes, usual, sites })
    }

    /// Memory of single call stacks. `scale` is the ratio of the batch in percent.
    fn held(&self, rank: &RankFacts, scale: u64) -> Option<Excess> {
        let held = rank.by_stack.iter().filter_map(|stack| {
            let usual = usual_of(&self.stacks, stack.hash)?;
            let scale = if is_data_of_step(stack.category) { scale } else { 100 };
            let expected = usual.median.saturating_mul(scale) / 100;
            let is_sharded = usual.median > 0 && SHARDED.contains(&stack.category);
            let is_far = |bytes: u64| {
                usual.is_far(bytes, (expected / 2).max(MIN_SITE_BYTES))
                    && bytes.saturating_sub(expected) > (expected / 2).max(MIN_SITE_BYTES)
            };
            let of_rank = |other: &&RankFacts| {
                let own = other.by_stack.iter().find(|own| own.hash == stack.hash);
                own.is_some_and(|own| is_far(own.bytes))
            };
            // A larger batch scales a part of what has no frames.
            let is_mixed = scale != 100 && !stack.has_frames();
            let is_held = !stack.is_told
                && !is_mixed
                && !is_sharded
                && is_far(stack.bytes)
                && few(self.members, of_rank);
            is_held.then_some((stack, expected))
        });
        let (bytes, usual, sites) = summed(held);
        let what = format!("{:016x}", sites.first()?.hash);
        Some(Excess { cause: SkewCause::Held, what, bytes, usual, sites })
    }

    /// More parameters and optimizer state, at call sites that the other ranks have too.
    fn sharding(&self, rank: &RankFacts) -> Option<Excess> {
        // Memory that only this rank has is held, not sharded.
        let own: u64 = rank
            .by_stack
            .iter()
            .filter(|stack| SHARDED.contains(&stack.category))
            .filter(|stack| {
                usual_of(&self.stacks, stack.hash).is_some_and(|usual| usual.median == 0)
            })
            .map(|stack| stack.bytes)
            .sum();
        let usual = self.state;
        let is_far = |bytes: u64| usual.is_far(bytes, usual.median / 4);
        let bytes = bytes_of(rank, &SHARDED).saturating_sub(own);
        if !is_far(bytes) || !few(&self.states, |&other| is_far(other)) {
            return None;
        }
        let larger = rank.by_stack.iter().filter_map(|stack| {
            let usual = usual_of(&self.stacks, stack.hash)?.median;
            let is_larger = SHARDED.contains(&stack.category) && 0 < usual && usual < stack.bytes;
            is_larger.then_some((stack, usual))
        });
        let (_, _, sites) = summed(larger);
        let what = "sharding".to_owned();
        Some(Excess { cause: SkewCause::Sharding, what, bytes, usual: usual.median, sites })
    }

    /// More reserved memory, without more memory in use and without an own finding that explains
    /// it.
    fn reserved(&self, rank: &RankFacts) -> Option<Excess> {
        let usual = self.reserved;
        let is_far = |rank: &&RankFacts| usual.is_far(rank.reserved_peak, usual.median / 4);
        let excess = rank.reserved_peak.saturating_sub(usual.median);
        let requested = rank.requested_peak.saturating_sub(self.requested.median);
        let is_told = rank.findings.iter().any(|&(kind, bytes)| {
            kind != FindingKind::PendingFree && bytes.saturating_mul(2) >= excess
        });
        let is_skew = is_far(&rank)
            && few(self.members, is_far)
            && excess >= self.least
            && requested <= excess / 2
            && !is_told;
        is_skew.then(|| Excess {
            cause: SkewCause::Reserved,
            what: "reserved".to_owned(),
            bytes: rank.reserved_peak,
            usual: usual.median,
            sites: Vec::new(),
        })
    }
}

impl Usual {
    /// Ranks without a value count as zero.
    fn of(mut values: Vec<u64>, ranks: usize) -> Self {
        values.resize(ranks, 0);
        let median = middle(values.clone());
        let deviation = middle(values.iter().map(|value| value.abs_diff(median)).collect());
        Self { median, spread: (deviation as f64 * 1.4826) as u64 }
    }

    fn of_each(members: &[&RankFacts], figure: impl Fn(&RankFacts) -> u64) -> Self {
        Self::of(members.iter().map(|rank| figure(rank)).collect(), members.len())
    }

    /// Whether a value exceeds the median by more than the spread and by more than `least`.
    fn is_far(self, value: u64, least: u64) -> bool {
        value.saturating_sub(self.median) > self.spread.saturating_mul(DEVIATIONS).max(least)
    }
}

fn middle(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// Whether so few of the ranks are beyond a limit that they are exceptions: one in eight, at least
/// one. Otherwise they are another kind of rank.
fn few<T>(ranks: &[T], is_beyond: impl Fn(&T) -> bool) -> bool {
    ranks.iter().filter(|rank| is_beyond(rank)).count() <= (ranks.len() / 8).max(1)
}

/// Categories that ranks shard.
const SHARDED: [Category; 2] = [Category::Parameter, Category::OptimizerState];

/// Whether memory of a category grows with the batch.
fn is_data_of_step(category: Category) -> bool {
    matches!(category, Category::Activation | Category::Temporary | Category::Input)
}

/// Whether a ratio is within a tenth of another.
fn is_near(percent: u64, of: u64) -> bool {
    percent.abs_diff(of) <= of / 10
}

fn bytes_of(rank: &RankFacts, categories: &[Category]) -> u64 {
    rank.by_category.iter().filter(|share| categories.contains(&share.0)).map(|share| share.1).sum()
}

/// The usual bytes of a call stack.
fn usual_of(stacks: &[(u64, Usual)], hash: u64) -> Option<&Usual> {
    let at = stacks.binary_search_by_key(&hash, |stack| stack.0).ok()?;
    Some(&stacks[at].1)
}

/// The ratio of a rank's data of a step to the usual, in percent. `None` if the call stacks do not
/// agree: three quarters of the usual bytes must be within a tenth of the ratio. Where only Python
/// frames are recorded, all of backward has no frames: gradients and workspaces, which do not grow,
/// are in one row with what does. That row is left out.
fn batch_percent(rank: &RankFacts, stacks: &[(u64, Usual)]) -> Option<u64> {
    let mut ratios: Vec<(u64, u64)> = rank
        .by_stack
        .iter()
        .filter(|stack| is_data_of_step(stack.category) && stack.has_frames())
        .filter_map(|stack| {
            let usual = usual_of(stacks, stack.hash)?.median;
            (usual >= MIN_SITE_BYTES).then(|| (stack.bytes.saturating_mul(100) / usual, usual))
        })
        .collect();
    if ratios.len() < MIN_BATCH_STACKS {
        return None;
    }
    ratios.sort_unstable();
    let whole: u64 = ratios.iter().map(|ratio| ratio.1).sum();
    let mut before = 0;
    let percent = ratios.iter().find_map(|&(percent, weight)| {
        before += weight;
        (before * 2 >= whole).then_some(percent)
    })?;
    let agreeing: u64 = ratios.iter().filter(|r| is_near(r.0, percent)).map(|r| r.1).sum();
    (agreeing.saturating_mul(4) >= whole.saturating_mul(3)).then_some(percent)
}

/// The bytes of call stacks, the usual bytes, and the stacks by excess.
fn summed<'a>(stacks: impl Iterator<Item = (&'a RankStack, u64)>) -> (u64, u64, Vec<SkewSite>) {
    let (mut bytes, mut usual_bytes, mut sites) = (0u64, 0u64, Vec::new());
    for (stack, usual) in stacks {
        bytes = bytes.saturating_add(stack.bytes);
        usual_bytes = usual_bytes.saturating_add(usual);
        let excess = Bytes(stack.bytes.saturating_sub(usual));
        sites.push(SkewSite { hash: stack.hash, site: stack.site.clone(), excess });
    }
    sites.sort_by_key(|site| (std::cmp::Reverse(site.excess), site.hash));
    (bytes, usual_bytes, sites)
}

/// What the matrix of the ranks shows: call sites at which a rank holds far more than the others of
/// its cluster. `others` are those, without the rank.
pub(super) fn of_outlier(
    rank: &RankFacts,
    others: &[&RankFacts],
    sites: &[&str],
    (bytes, usual): (u64, u64),
) -> Option<RankSkew> {
    let at = |rank: &RankFacts, site: &str| {
        rank.by_site.iter().find(|held| held.0 == site).map_or(0, |held| held.1)
    };
    let told = |site: &str| rank.by_stack.iter().any(|s| s.site == site && s.is_told);
    if sites.iter().any(|site| told(site)) {
        return None;
    }
    // What a rank holds more shows in its peak. Otherwise another moment is its peak.
    let peak = middle(others.iter().map(|other| other.requested_peak).collect());
    let excess = bytes.saturating_sub(usual);
    let least = MIN_EXCESS_BYTES.max(peak / MIN_EXCESS_DIVISOR);
    if excess < least || rank.requested_peak.saturating_sub(peak) < excess / 2 {
        return None;
    }
    let mut named: Vec<SkewSite> = Vec::with_capacity(sites.len());
    for &site in sites {
        let of_site = rank.by_stack.iter().filter(|stack| stack.site == site);
        let largest = of_site.max_by_key(|stack| (stack.bytes, stack.hash));
        let usual = middle(others.iter().map(|other| at(other, site)).collect());
        named.push(SkewSite {
            hash: largest.map_or(0, |stack| stack.hash),
            site: site.to_owned(),
            excess: Bytes(at(rank, site).saturating_sub(usual)),
        });
    }
    named.sort_by_key(|site| (std::cmp::Reverse(site.excess), site.hash));
    let held = |rank: &RankFacts| Bytes(sites.iter().map(|site| at(rank, site)).sum());
    let mut each: Vec<(u32, Bytes)> = others
        .iter()
        .map(|other| (other.rank.unwrap_or_default(), held(other)))
        .chain([(rank.rank.unwrap_or_default(), Bytes(bytes))])
        .collect();
    each.sort_by_key(|of| of.0);
    let what = format!("{:016x}", named.first()?.hash);
    let of = Excess { cause: SkewCause::Held, what, bytes, usual, sites: named };
    Some(finding(rank, of, each))
}

fn finding(rank: &RankFacts, of: Excess, each: Vec<(u32, Bytes)>) -> RankSkew {
    let excess = of.bytes.saturating_sub(of.usual);
    let reserved = i64::try_from(rank.reserved_peak).unwrap_or(i64::MAX);
    let severity = match of.cause {
        SkewCause::Batch { percent, .. } if percent < LARGE_BATCH_PERCENT => Severity::Low,
        _ => Severity::of(FindingKind::RankSkew, excess, reserved),
    };
    let basis = match of.cause {
        // A larger batch and longer sequences look alike, and categories are guesses.
        SkewCause::Batch { .. } | SkewCause::Sharding => Basis::Estimate,
        SkewCause::Held | SkewCause::Reserved => Basis::Recorded,
    };
    let main = of.sites.first().and_then(|main| rank.by_stack.iter().find(|s| s.hash == main.hash));
    RankSkew {
        category: main.map(|stack| stack.category),
        id: FindingId { kind: FindingKind::RankSkew, device: rank.device, what: of.what },
        severity,
        basis,
        rank: rank.rank.unwrap_or_default(),
        cause: of.cause,
        bytes: Bytes(of.bytes),
        usual: Bytes(of.usual),
        ranks: each.len(),
        each,
        sites: of.sites,
    }
}
