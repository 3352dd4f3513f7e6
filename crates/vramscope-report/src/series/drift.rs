//! Values that grow from iteration to iteration.

use super::{Drift, DriftRank, Member, Point, words};
use crate::matrix::named;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vramscope_inference::{CallSite, median};

/// The fewest iterations of a rank among which drift is looked for: growth that happened once may
/// be a larger batch.
pub const MIN_ITERATIONS: usize = 3;

/// The least growth over all iterations that is drift.
pub(super) const MIN_BYTES: u64 = 1 << 20;

/// Growth is steady if no iteration grows by less than the mean divided by this.
const STEADY_PARTS: u64 = 4;

/// The most values of which all pairs are compared: the last ones.
const MAX_COMPARED: usize = 200;

/// A value in an iteration: the iteration's place in its run, and bytes.
pub(super) type Value = (usize, u64);

/// Steady growth up to the last value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Growth {
    pub(super) first: Value,
    pub(super) last: Value,
    /// The number of values from the one to the other.
    pub(super) values: usize,
    /// The growth from one iteration to the next: the median over all pairs of values.
    pub(super) per_iteration: u64,
}

impl Growth {
    pub(super) fn bytes(self) -> u64 {
        self.last.1 - self.first.1
    }
}

/// The median growth over all pairs of rising values. Windows have different numbers of steps,
/// which moves single values.
fn slope(values: &[Value]) -> u64 {
    let values = &values[values.len().saturating_sub(MAX_COMPARED)..];
    let mut slopes = Vec::with_capacity(values.len() * values.len() / 2);
    for (at, later) in values.iter().enumerate() {
        let before = values[..at].iter();
        slopes.extend(before.map(|before| (later.1 - before.1) / (later.0 - before.0) as u64));
    }
    median(&slopes)
}

/// The growth of the last values, of which each is larger than the one before. `None` if these are
/// too few, or grow by little or unevenly.
pub(super) fn growth(values: &[Value], min_bytes: u64) -> Option<Growth> {
    let rising = values.windows(2).rev().take_while(|pair| pair[0].1 < pair[1].1).count() + 1;
    let last = &values[values.len().checked_sub(rising)?..];
    if rising < MIN_ITERATIONS {
        return None;
    }
    // Growth that has slowed down to almost nothing, or one leap, is not steady. What fills up
    // first may come before steady growth.
    (0..=last.len() - MIN_ITERATIONS).find_map(|from| {
        let values = &last[from..];
        let (&first, &end) = (values.first()?, values.last()?);
        let per_iteration = slope(values);
        let growth = Growth { first, last: end, values: values.len(), per_iteration };
        let least = values
            .windows(2)
            .map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0).max(1) as u64)
            .min()?;
        let is_steady =
            least.saturating_mul(STEADY_PARTS) >= growth.bytes() / (end.0 - first.0) as u64;
        (growth.bytes() >= min_bytes && is_steady).then_some(growth)
    })
}

/// The values of a rank, by iteration.
pub(super) fn values(
    member: &Member<'_>,
    iterations: &[u64],
    of: impl Fn(&Point) -> Option<u64>,
) -> Vec<Value> {
    let value = |(place, iteration)| Some((place, of(member.points.get(iteration)?)?));
    (0..).zip(iterations).filter_map(value).collect()
}

/// The bytes of a call site that are kept; `None` if the card may have left it out.
fn site_bytes(point: &Point, site: u32) -> Option<u64> {
    let found = point.sites.iter().find(|of| of.0 == site).map(|of| of.1);
    found.or((point.rest == 0).then_some(0))
}

/// The call sites that drift, that with the most bytes per iteration first.
pub(super) fn drifts(
    members: &[Member<'_>],
    iterations: &[u64],
    site_names: &[CallSite],
) -> Vec<Drift> {
    // By call site: the ranks on which it drifts.
    let mut found: BTreeMap<u32, Vec<(usize, Growth)>> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        if member.points.len() < MIN_ITERATIONS {
            continue;
        }
        let kept = values(member, iterations, |point| Some(point.kept));
        for (site, growth) in of_rank(member, iterations) {
            if is_growth_of_all(&kept, growth) {
                found.entry(site).or_default().push((at, growth));
            }
        }
    }
    let mut all: Vec<Drift> = found
        .into_iter()
        .map(|(site, on)| drift(members, iterations, (site, &site_names[site as usize]), &on))
        .collect();
    all.sort_by(|a, b| {
        Reverse(a.bytes_per_iteration)
            .cmp(&Reverse(b.bytes_per_iteration))
            .then_with(|| a.site.cmp(&b.site))
    });
    all
}

/// The call sites that keep more and more on a rank.
fn of_rank(member: &Member<'_>, iterations: &[u64]) -> Vec<(u32, Growth)> {
    // What drifts is there in the last iteration.
    let Some((_, last)) = member.points.last_key_value() else { return Vec::new() };
    let mut by_site: Vec<(u32, Vec<Value>)> =
        last.sites.iter().map(|&(site, _)| (site, Vec::new())).collect();
    for (place, iteration) in iterations.iter().enumerate() {
        let Some(point) = member.points.get(iteration) else { continue };
        let known: FxHashMap<u32, u64> = point.sites.iter().copied().collect();
        for (site, values) in &mut by_site {
            let bytes = known.get(site).copied().or((point.rest == 0).then_some(0));
            values.extend(bytes.map(|bytes| (place, bytes)));
        }
    }
    let growth_of = |(site, values): (u32, Vec<Value>)| Some((site, growth(&values, MIN_BYTES)?));
    by_site.into_iter().filter_map(growth_of).collect()
}

/// Whether what a call site grew by is also growth of all that is kept. Otherwise it took the place
/// of another call site.
fn is_growth_of_all(kept: &[Value], growth: Growth) -> bool {
    let at = |place: usize| kept.iter().find(|kept| kept.0 == place).map_or(0, |kept| kept.1);
    at(growth.last.0).saturating_sub(at(growth.first.0)) >= growth.bytes() / 2
}

fn drift(
    members: &[Member<'_>],
    iterations: &[u64],
    (site, name): (u32, &CallSite),
    on: &[(usize, Growth)],
) -> Drift {
    let rank = |&(at, growth): &(usize, Growth)| DriftRank {
        rank: members[at].rank,
        device: members[at].device,
        from_iteration: iterations[growth.first.0],
        to_iteration: iterations[growth.last.0],
        snapshots: growth.values,
        first_bytes: growth.first.1,
        last_bytes: growth.last.1,
        bytes_per_iteration: growth.per_iteration,
    };
    let ranks: Vec<DriftRank> = on.iter().map(rank).collect();
    let per_step = |&(_, growth): &(usize, Growth)| {
        let steps = iterations[growth.last.0] - iterations[growth.first.0];
        let places = (growth.last.0 - growth.first.0) as u64;
        let bytes = u128::from(growth.per_iteration) * u128::from(places) / u128::from(steps);
        (steps > places).then_some(bytes as u64)
    };
    let per_step: Option<Vec<u64>> = on.iter().map(per_step).collect();
    let (mut steady_ranks, mut unknown_ranks) = (0, 0);
    for (at, member) in members.iter().enumerate() {
        if on.iter().any(|of| of.0 == at) {
            continue;
        }
        let values = values(member, iterations, |point| site_bytes(point, site));
        let grew = match &values[..] {
            [first, .., last] if values.len() >= MIN_ITERATIONS => {
                Some(last.1.saturating_sub(first.1))
            }
            _ => None,
        };
        if grew.is_some_and(|grew| grew < MIN_BYTES) {
            steady_ranks += 1;
        } else {
            unknown_ranks += 1;
        }
    }
    let per_iteration: Vec<u64> = ranks.iter().map(|rank| rank.bytes_per_iteration).collect();
    let mut drift = Drift {
        site: name.name.clone(),
        bytes_per_iteration: median(&per_iteration),
        bytes_per_step: per_step.map(|all| median(&all)),
        ranks,
        steady_ranks,
        unknown_ranks,
        text: String::new(),
        disproof: String::new(),
    };
    drift.text = words::drift(&drift, name);
    drift.disproof = words::disproof(&drift, name);
    drift
}

/// Ranks whose values grow: their names, and the median of the growth per iteration.
pub(super) fn ranks_that_grow(
    members: &[Member<'_>],
    iterations: &[u64],
    of: impl Fn(&Point) -> u64,
    is_enough: impl Fn(&Member<'_>, Growth) -> bool,
) -> Option<(String, u64, usize)> {
    let mut ranks = Vec::new();
    let mut per_iteration = Vec::new();
    for member in members {
        let found = growth(&values(member, iterations, |point| Some(of(point))), MIN_BYTES);
        if let Some(growth) = found.filter(|&growth| is_enough(member, growth)) {
            ranks.push(member.rank);
            per_iteration.push(growth.per_iteration);
        }
    }
    ranks.dedup();
    (!ranks.is_empty()).then(|| (named(&ranks), median(&per_iteration), ranks.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn found(values: &[u64]) -> Option<(usize, usize, u64)> {
        let values: Vec<Value> = values.iter().map(|mib| mib * MIB).enumerate().collect();
        let growth = growth(&values, MIN_BYTES)?;
        Some((growth.first.0, growth.last.0, growth.per_iteration / MIB))
    }

    #[test]
    fn growth_is_steady_and_lasts_to_the_end() {
        assert_eq!(found(&[0, 8, 16, 24]), Some((0, 3, 8)));
        assert_eq!(found(&[90, 8, 16, 24]), Some((1, 3, 8)), "since the second");
        assert_eq!(found(&[0, 500, 508, 516]), Some((1, 3, 8)), "after a leap");
        assert_eq!(found(&[8, 16, 24, 24]), None, "it stopped");
        assert_eq!(found(&[8, 16]), None, "twice may be by chance");
        assert_eq!(found(&[0, 1, 900]), None, "one leap");
        assert_eq!(found(&[0, 900, 901]), None, "it slows down");
        assert_eq!(found(&[8, 8, 8]), None);
        let with_a_step_more = [0, 8, 16, 32, 40, 48, 56, 64, 72];
        assert_eq!(found(&with_a_step_more), Some((0, 8, 9)));
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_missing_iteration_counts_as_time() {
        let values = [(0, 0), (1, 8 * MIB), (4, 32 * MIB)];
        assert_eq!(growth(&values, MIN_BYTES).map(|g| g.per_iteration), Some(8 * MIB));
        assert_eq!(growth(&values, 40 * MIB), None);
    }

    #[test]
    fn what_takes_the_place_of_others_does_not_drift() {
        let growth = Growth { first: (0, 0), last: (2, 16), values: 3, per_iteration: 8 };
        assert!(is_growth_of_all(&[(0, 100), (1, 108), (2, 116)], growth));
        assert!(!is_growth_of_all(&[(0, 100), (1, 100), (2, 100)], growth));
    }
}
