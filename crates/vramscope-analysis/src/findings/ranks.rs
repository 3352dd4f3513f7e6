//! Ranks that hold far more than similar ranks.
//!
//! Ranks differ for good reasons: pipeline stages run different code, and batches differ. So a rank
//! is compared only with ranks that allocate from the same call stacks. It is an outlier only if it
//! exceeds the spread among them.

use super::{Facts, Finding, OutlierItem, Severity, sort};
use crate::category::Category;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use vramscope_units::Bytes;

/// The figures of one device of one rank that are compared across ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankFacts {
    /// The rank as texts name it: `rank 3`, or the file's name.
    pub name: String,
    /// The device's ordinal.
    pub device: u32,
    /// Bands by name, and their peaks in bytes.
    pub peaks: Vec<(&'static str, i64)>,
    /// Live memory at the peak of `requested_bytes`: a stack's hash, its call site, its bytes.
    pub by_stack: Vec<(u64, String, u64)>,
    /// Live bytes by category at the peak of `requested_bytes`.
    pub by_category: Vec<(Category, u64)>,
}

impl RankFacts {
    fn reserved_peak(&self) -> i64 {
        self.peaks.iter().find(|(band, _)| *band == "reserved_bytes").map_or(0, |(_, peak)| *peak)
    }
}

/// The fewest ranks in a group that have a meaningful median.
const MIN_RANKS: usize = 4;

/// The smallest excess over the median to report, whatever the spread.
const MIN_EXCESS_BYTES: u64 = 16 << 20;

/// A figure that is compared across ranks. Its order is the order of comparison.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Stack(u64),
    Category(Category),
    Band(&'static str),
}

/// Ranks (by index) that hold far more than other ranks of their group. Findings of one rank are
/// sorted by severity. A rank that holds less is no outlier.
pub fn outliers(ranks: &[RankFacts]) -> Vec<(usize, Finding)> {
    let mut found: Vec<Vec<Finding>> = vec![Vec::new(); ranks.len()];
    for group in groups(ranks) {
        if group.len() >= MIN_RANKS {
            compare(ranks, &group, &mut found);
        }
    }
    let each = found.into_iter().enumerate().flat_map(|(rank, mut findings)| {
        sort(&mut findings);
        findings.into_iter().map(move |finding| (rank, finding))
    });
    each.collect()
}

/// Groups ranks whose call stacks overlap with those of the group's first rank: at least four in
/// five of the stacks that either of them has.
///
/// A rank with a leak has one or two stacks of its own. A pipeline stage has many.
fn groups(ranks: &[RankFacts]) -> Vec<Vec<usize>> {
    let sets: Vec<FxHashSet<u64>> =
        ranks.iter().map(|r| r.by_stack.iter().map(|s| s.0).collect()).collect();
    let alike = |a: &FxHashSet<u64>, b: &FxHashSet<u64>| {
        let both = a.intersection(b).count();
        both * 5 >= (a.len() + b.len() - both) * 4
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (rank, set) in sets.iter().enumerate() {
        match groups.iter_mut().find(|group| alike(&sets[group[0]], set)) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}

fn compare(ranks: &[RankFacts], group: &[usize], found: &mut [Vec<Finding>]) {
    let mut items: BTreeMap<Item, Vec<(usize, u64)>> = BTreeMap::new();
    for &rank in group {
        let facts = &ranks[rank];
        let stacks = facts.by_stack.iter().map(|s| (Item::Stack(s.0), s.2));
        let categories = facts.by_category.iter().map(|c| (Item::Category(c.0), c.1));
        let bands = facts.peaks.iter().map(|p| (Item::Band(p.0), p.1.max(0) as u64));
        for (item, bytes) in stacks.chain(categories).chain(bands) {
            items.entry(item).or_default().push((rank, bytes));
        }
    }
    let usual = |item: &Item| items.get(item).map_or(0, |values| median(values, group.len()));
    // Differences are relative to the median peak of the first band.
    let usual_peak = ranks[group[0]].peaks.first().map_or(0, |p| usual(&Item::Band(p.0)));
    let mut explained = vec![0; ranks.len()];
    // Stacks come first. A category or band that is high because of them adds no information.
    for (item, values) in &items {
        let middle = median(values, group.len());
        let spread = spread(values, middle, group.len());
        let share = if matches!(item, Item::Stack(_)) { middle / 2 } else { middle / 4 };
        let limit = (spread * 6).max(share).max(usual_peak / 50).max(MIN_EXCESS_BYTES);
        let beyond: Vec<(usize, u64)> =
            values.iter().filter(|v| v.1 > middle.saturating_add(limit)).copied().collect();
        // Several ranks above the limit are another kind of rank, not outliers.
        if beyond.len() > (group.len() / 8).max(1) {
            continue;
        }
        for (rank, bytes) in beyond {
            let excess = bytes - middle;
            match item {
                Item::Stack(_) => explained[rank] += excess,
                _ if explained[rank] * 2 >= excess => continue,
                _ => {}
            }
            found[rank].push(finding(&ranks[rank], item, bytes, middle, group.len()));
        }
    }
}

/// The median over `ranks` ranks. Ranks without a value count as zero.
fn median(values: &[(usize, u64)], ranks: usize) -> u64 {
    middle(values.iter().map(|v| v.1).collect(), ranks)
}

/// The median absolute deviation, scaled to a standard deviation (1.4826).
fn spread(values: &[(usize, u64)], center: u64, ranks: usize) -> u64 {
    let mut distances: Vec<u64> = values.iter().map(|v| v.1.abs_diff(center)).collect();
    distances.resize(ranks.max(distances.len()), center);
    let count = distances.len();
    (middle(distances, count) as f64 * 1.4826) as u64
}

/// The middle value of `count` values. Missing values are zero.
fn middle(mut values: Vec<u64>, count: usize) -> u64 {
    values.resize(count.max(values.len()), 0);
    values.sort_unstable();
    values[values.len() / 2]
}

fn finding(rank: &RankFacts, item: &Item, bytes: u64, usual: u64, ranks: usize) -> Finding {
    let (id, item) = match item {
        Item::Stack(hash) => {
            let known = rank.by_stack.iter().find(|s| s.0 == *hash);
            let site = known.map_or_else(String::new, |s| s.1.clone());
            (format!("{hash:016x}"), OutlierItem::Stack { hash: *hash, site })
        }
        Item::Category(category) => (category.name().to_owned(), OutlierItem::Category(*category)),
        Item::Band(name) => ((*name).to_owned(), OutlierItem::Band(name)),
    };
    let excess = bytes.saturating_sub(usual);
    let facts = Facts::RankSkew {
        rank: rank.name.clone(),
        item,
        bytes: Bytes(bytes),
        usual: Bytes(usual),
        ranks,
    };
    Finding {
        id: format!("{}-{}-{id}", facts.kind().name(), rank.device),
        device: rank.device,
        severity: Severity::of(facts.kind(), excess, rank.reserved_peak()),
        bytes: excess,
        step: None,
        phase: None,
        basis: super::Basis::Recorded,
        events: Vec::new(),
        blocks: 0,
        parts: Vec::new(),
        facts,
    }
}
