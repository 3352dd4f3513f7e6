//! What a series shows, in sentences.

use super::drift::{MIN_ITERATIONS, ranks_that_grow};
use super::{Drift, DriftRank, MAX_SITES, Member, RankSeries};
use crate::matrix::named;
use vramscope_inference::{CallSite, at_or_with, capitalized};
use vramscope_units::{Bytes, grouped};

/// The least growth over all iterations of memory that no call site explains.
const MIN_UNEXPLAINED: u64 = 16 << 20;

/// The least growth of free memory, as a part of `reserved_bytes`.
const MIN_FREE_PARTS: u64 = 50;

/// Drifts that a text names. All are in JSON.
const MAX_NAMED: usize = 8;

/// `Rank 5 grows by 800.0 MiB per iteration at metrics.py:44 append; the other 31 ranks do not.`
pub(super) fn drift(drift: &Drift, site: &CallSite) -> String {
    let mut ranks: Vec<u32> = drift.ranks.iter().map(|of| of.rank).collect();
    ranks.dedup();
    let others = drift.steady_ranks + drift.unknown_ranks;
    let who = if others == 0 && ranks.len() > 1 {
        let count = grouped(ranks.len() as u64);
        let all = if ranks.len() == 2 { "Both".to_owned() } else { format!("All {count}") };
        format!("{all} ranks grow")
    } else {
        let name = capitalized(&named(&ranks));
        format!("{name} {}", if ranks.len() == 1 { "grows" } else { "grow" })
    };
    let rest = match (drift.steady_ranks, drift.unknown_ranks) {
        (0, 0) => String::new(),
        (0, unknown) => format!("; of {} it is not known", other_ranks(unknown)),
        (1, 0) => "; the other rank does not".to_owned(),
        (steady, 0) => format!("; the other {} ranks do not", grouped(steady as u64)),
        (steady, unknown) => format!(
            "; {} {}, of {} more it is not known",
            other_ranks(steady),
            if steady == 1 { "does not" } else { "do not" },
            grouped(unknown as u64)
        ),
    };
    let by = if drift.ranks.len() > 1 { "by a median of" } else { "by" };
    let per_step = drift.bytes_per_step.map_or_else(String::new, |bytes| {
        format!(" That is {} per step, if the numbers of the iterations count steps.", Bytes(bytes))
    });
    let bytes = Bytes(drift.bytes_per_iteration);
    format!("{who} {by} {bytes} per iteration {}{rest}.{per_step}", at_or_with(site))
}

/// What would disprove a drift.
pub(super) fn disproof(drift: &Drift, site: &CallSite) -> String {
    let most = drift.ranks.iter().max_by_key(|rank| rank.last_bytes);
    let Some(DriftRank { rank, to_iteration, last_bytes, .. }) = most else { return String::new() };
    format!(
        "A later snapshot of rank {rank} that keeps at most {} {} after a step, as in iteration \
         {to_iteration}, would disprove it. Memory that fills up once, such as a cache or a \
         history of fixed length, looks the same until it is full.",
        Bytes(*last_bytes),
        at_or_with(site)
    )
}

fn other_ranks(count: usize) -> String {
    let ranks = if count == 1 { "rank" } else { "ranks" };
    format!("{} other {ranks}", grouped(count as u64))
}

/// What a run's series shows.
pub(super) fn sentences(
    members: &[Member<'_>],
    rows: &[RankSeries],
    iterations: &[u64],
    drifts: &[Drift],
) -> Vec<String> {
    let mut text: Vec<String> = peaks(rows, iterations).into_iter().collect();
    text.extend(drifts.iter().take(MAX_NAMED).map(|drift| drift.text.clone()));
    if drifts.len() > MAX_NAMED {
        let more = grouped((drifts.len() - MAX_NAMED) as u64);
        text.push(format!("{more} more call sites drift."));
    }
    let compared = members.iter().filter(|of| of.points.len() >= MIN_ITERATIONS).count();
    if drifts.is_empty() && compared > 0 {
        let whom = match compared {
            1 => "this rank".to_owned(),
            ranks => format!("any of {} ranks", grouped(ranks as u64)),
        };
        text.push(format!("No call site grows steadily on {whom}."));
    }
    text.extend(unexplained(members, iterations, drifts));
    text.extend(free_memory(members, iterations));
    text
}

/// The highest peak of the last iteration, and of the first.
fn peaks(rows: &[RankSeries], iterations: &[u64]) -> Option<String> {
    let highest = |place: usize| {
        let peak = |row: &RankSeries| Some((row.peak_bytes[place]?, row.rank));
        // Of equals the lowest rank.
        let all = rows.iter().filter_map(peak);
        all.max_by_key(|&(peak, rank)| (peak, std::cmp::Reverse(rank)))
    };
    let words = |place: usize| {
        let (peak, rank) = highest(place)?;
        let bytes = Bytes(peak.max(0).cast_unsigned());
        Some(format!("{bytes} on rank {rank} in iteration {}", iterations[place]))
    };
    let last = iterations.len().checked_sub(1)?;
    if last == 0 {
        return Some(format!("The highest peak is {}.", words(0)?));
    }
    Some(format!("The highest peak is {}, and {}.", words(0)?, words(last)?))
}

/// Ranks that hold more after each iteration, which no call site explains.
fn unexplained(members: &[Member<'_>], iterations: &[u64], drifts: &[Drift]) -> Option<String> {
    let explained = |member: &Member<'_>| -> u64 {
        let ranks = drifts.iter().flat_map(|drift| &drift.ranks);
        let of = ranks.filter(|of| (of.rank, of.device) == (member.rank, member.device));
        of.map(|of| of.bytes_per_iteration).sum()
    };
    let (ranks, bytes, count) = ranks_that_grow(
        members,
        iterations,
        |point| point.kept,
        |member, growth| {
            growth.bytes() >= MIN_UNEXPLAINED && explained(member) < growth.per_iteration / 2
        },
    )?;
    let (holds, by) = if count == 1 { ("holds", "") } else { ("hold", "a median of ") };
    Some(format!(
        "{} {holds} {by}{} more after each iteration, and call sites that drift do not explain it.",
        capitalized(&ranks),
        Bytes(bytes)
    ))
}

/// Ranks whose free memory grows.
fn free_memory(members: &[Member<'_>], iterations: &[u64]) -> Option<String> {
    let (ranks, bytes, count) = ranks_that_grow(
        members,
        iterations,
        |point| point.free,
        |member, growth| {
            let last = member.points.last_key_value().map_or(0, |(_, point)| point.reserved);
            growth.bytes() >= MIN_UNEXPLAINED.max(last.max(0).cast_unsigned() / MIN_FREE_PARTS)
        },
    )?;
    let (has, by) = if count == 1 { ("has", "") } else { ("have", "a median of ") };
    Some(format!(
        "{} {has} {by}{} more per iteration that is reserved and not active at the peak of \
         reserved_bytes.",
        capitalized(&ranks),
        Bytes(bytes)
    ))
}

/// What could not be looked for.
pub(super) fn blind_spots(members: &[Member<'_>], iterations: &[u64]) -> Vec<String> {
    let mut spots = Vec::new();
    let few: Vec<u32> = members
        .iter()
        .filter(|member| member.points.len() < MIN_ITERATIONS)
        .map(|member| member.rank)
        .collect();
    if few.len() == members.len() && !members.is_empty() {
        spots.push(format!(
            "Drift: it needs {MIN_ITERATIONS} iterations of a rank, and there {} {}.",
            if iterations.len() == 1 { "is" } else { "are" },
            iterations.len()
        ));
    } else if !few.is_empty() {
        spots.push(format!(
            "Drift on {}: it needs {MIN_ITERATIONS} iterations of a rank.",
            named(&few)
        ));
    }
    let points = || members.iter().flat_map(|member| member.points.values());
    let all = points().count();
    let without_steps = points().filter(|point| !point.has_steps).count();
    if without_steps > 0 {
        spots.push(format!(
            "What is kept after a step: {} of {} snapshots show no whole step. What is live after \
             their last event may be within a step.",
            grouped(without_steps as u64),
            grouped(all as u64),
        ));
    }
    let full: Vec<u64> = points().filter(|point| point.rest > 0).map(|point| point.rest).collect();
    if let Some(&most) = full.iter().max() {
        spots.push(format!(
            "Small call sites: {MAX_SITES} are compared, and {} of {} snapshots have more. Each of \
             those keeps at most {}.",
            grouped(full.len() as u64),
            grouped(all as u64),
            Bytes(most)
        ));
    }
    spots
}
