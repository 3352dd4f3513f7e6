//! Ranks that hold far more than similar ranks.
//!
//! Ranks need not be alike: pipeline stages run different code, and batches differ. So ranks are
//! compared only with those that allocate from the same call stacks, and only what stands out from
//! the spread among them counts.

use super::{Facts, Finding, OutlierItem, Severity, sort};
use crate::category::Category;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use vramscope_units::Bytes;

/// What is known of one device of one rank when ranks are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankFacts {
    /// What to call it.
    pub name: String,
    /// The device's ordinal.
    pub device: u32,
    /// Bands and their peaks in bytes.
    pub peaks: Vec<(&'static str, i64)>,
    /// At the peak of requested bytes: hash of a stack, its call site for people, bytes.
    pub by_stack: Vec<(u64, String, u64)>,
    /// At the same moment: category and bytes.
    pub by_category: Vec<(Category, u64)>,
}

impl RankFacts {
    fn reserved_peak(&self) -> i64 {
        self.peaks.iter().find(|(band, _)| *band == "reserved_bytes").map_or(0, |(_, peak)| *peak)
    }
}

/// Fewer ranks than this have no usual value.
const LEAST_RANKS: usize = 4;

/// An excess below this is left alone, whatever the spread.
const LEAST: u64 = 16 << 20;

/// One number to compare: what it is (kind and name), whose, and the value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Stack(u64),
    Category(Category),
    Band(&'static str),
}

/// Ranks (by index) that hold far more than the others of their group, the most severe first within
/// a rank. A rank that holds less is no outlier.
pub fn outliers(ranks: &[RankFacts]) -> Vec<(usize, Finding)> {
    let mut found: Vec<Vec<Finding>> = vec![Vec::new(); ranks.len()];
    for group in groups(ranks) {
        if group.len() >= LEAST_RANKS {
            compare(ranks, &group, &mut found);
        }
    }
    let each = found.into_iter().enumerate().flat_map(|(rank, mut findings)| {
        sort(&mut findings);
        findings.into_iter().map(move |a| (rank, a))
    });
    each.collect()
}

/// Ranks whose stacks are mostly the same as those of the first of the group: at least four in five
/// of all that either has. A rank that leaks has a stack or two of its own, a stage of a pipeline
/// has many.
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
    // What a difference is measured by: the usual peak of the first band.
    let whole = ranks[group[0]].peaks.first().map_or(0, |p| usual(&Item::Band(p.0)));
    let mut explained = vec![0; ranks.len()];
    // Stacks come first: a category or a band that is high because of them says nothing new.
    for (item, values) in &items {
        let middle = median(values, group.len());
        let spread = spread(values, middle, group.len());
        let share = if matches!(item, Item::Stack(_)) { middle / 2 } else { middle / 4 };
        let limit = (spread * 6).max(share).max(whole / 50).max(LEAST);
        let beyond: Vec<(usize, u64)> =
            values.iter().filter(|v| v.1 > middle.saturating_add(limit)).copied().collect();
        // What several ranks have is another kind of rank, not an accident.
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

/// The middle value, where ranks without one have zero.
fn median(values: &[(usize, u64)], ranks: usize) -> u64 {
    middle(values.iter().map(|v| v.1).collect(), ranks)
}

/// The median distance from the median, scaled as is usual to a standard deviation (1.4826).
fn spread(values: &[(usize, u64)], center: u64, ranks: usize) -> u64 {
    let mut distances: Vec<u64> = values.iter().map(|v| v.1.abs_diff(center)).collect();
    distances.resize(ranks.max(distances.len()), center);
    let count = distances.len();
    (middle(distances, count) as f64 * 1.4826) as u64
}

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
    let facts = Facts::Outlier {
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
        events: Vec::new(),
        stack: None,
        facts,
    }
}
