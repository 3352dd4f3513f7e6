//! A pass failed that like passes precede: the rest is that of the last one, from the same place
//! on.

use super::{Failure, Rest};
use crate::category::Category;
use crate::recipes::facts::{Facts, Pass};
use crate::recipes::lives::{Life, Lives, Span};
use crate::recipes::scaled;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::Budget;

/// Passes are alike if the call sites that both have make at least this share of the bytes of the
/// failed one, in percent: of all that it made, and of what is alive when it fails.
const ALIKE_PERCENT: u64 = 50;

/// Blocks of both passes at the same place.
struct Pairs {
    /// Block of the failed pass, block of the whole one.
    all: Vec<(usize, usize)>,
    /// How much larger what a call site makes is in the failed pass.
    of_site: FxHashMap<Option<StackId>, f64>,
    /// The size in the failed pass of blocks with a size in the whole one.
    of_size: FxHashMap<u64, u64>,
    /// How much larger all is that is not equal.
    overall: f64,
}

/// Adds what followed the same place of the last whole pass. What a call site makes is larger by
/// the factor of that call site, as far as both passes have it.
///
/// `None` without a like pass.
pub(super) async fn complete(
    lives: &mut Lives,
    facts: &Facts,
    failure: Failure,
    stack: Option<StackId>,
    budget: &mut Budget,
) -> Option<Rest> {
    let at = failure.at;
    let passes = || facts.passes.iter().chain(&facts.generations);
    let failed =
        passes().filter(|pass| pass.lead <= at).max_by(|a, b| a.lead.total_cmp(&b.lead))?;
    let is_before = |pass: &&Pass| pass.over() <= failed.lead && pass.begin < failed.begin;
    budget.charge(8 * lives.all.len() as u64).await;
    let mut like = passes().filter(is_before).collect::<Vec<_>>();
    like.sort_by(|a, b| b.lead.total_cmp(&a.lead));
    let (whole, pairs) = like
        .into_iter()
        .take(MAX_TRIED)
        .find_map(|whole| Some((whole, pairs(lives, failed, whole, at)?)))?;
    let until = passes().map(|pass| pass.lead).filter(|&lead| lead > whole.lead);
    let until = until.fold(failed.lead, f64::min);
    // What repeats without inputs may be the layers of one pass.
    if whole.backward.is_none() && whole.inputs.is_empty() {
        return None;
    }
    let place = place(lives, &pairs, whole, stack, until)?;
    let moved = |time: f64| at + (time - place).max(0.0);
    let end = moved(until) + 1.0;
    // What is alive dies where its like does.
    for &(now, before) in &pairs.all {
        let of = lives.all[before].end;
        if lives.all[now].stays() && of < until {
            lives.all[now].end = moved(of);
        }
    }
    survivors(lives, whole, failed, place, until, moved);
    let is_like = |life: &&Life| !life.is_of_model();
    let mut is_first = true;
    let mut new: Vec<Life> = Vec::new();
    for life in lives.all[lives.born(place, until)].iter().filter(is_like) {
        let bytes =
            if std::mem::take(&mut is_first) { failure.bytes } else { pairs.bytes(facts, life) };
        let end = if life.end < until { moved(life.end) } else { f64::INFINITY };
        new.push(Life { begin: moved(life.begin), end, bytes, ..*life });
    }
    lives.all.append(&mut new);
    lives.spans.retain(|span| span.begin < at);
    let step = lives.spans.last().map_or(failed.step, |span| span.step);
    if let Some(last) = lives.spans.last_mut() {
        last.end = last.end.min(at);
    }
    let rest: Vec<Span> = lives
        .spans
        .iter()
        .filter(|span| span.end > place && span.begin < until)
        .map(|span| Span {
            begin: moved(span.begin.max(place)),
            end: moved(span.end.min(until)),
            phase: span.phase,
            step,
        })
        .collect();
    lives.spans.extend(rest);
    if let Some(last) = lives.spans.last_mut() {
        last.end = last.end.max(end);
    }
    lives.sort(budget).await;
    Some(Rest::Like)
}

/// The most passes that are compared with the failed one.
const MAX_TRIED: usize = 8;

/// The blocks that both passes make at the same place: by call stack, the first with the first.
/// `None` if the passes are unlike.
fn pairs(lives: &Lives, failed: &Pass, whole: &Pass, at: f64) -> Option<Pairs> {
    let mut of_whole: FxHashMap<Option<StackId>, VecDeque<usize>> = FxHashMap::default();
    for index in lives.born(whole.lead, whole.over()) {
        let life = &lives.all[index];
        if !life.is_of_model() {
            of_whole.entry(life.stack).or_default().push_back(index);
        }
    }
    let mut all = Vec::new();
    // Of all bytes, and of those that are alive at the failure.
    let (mut bytes, mut shared) = ([0_u64; 2], [0_u64; 2]);
    let add = |sums: &mut [u64; 2], life: &Life| {
        sums[0] = sums[0].saturating_add(life.bytes);
        sums[1] = sums[1].saturating_add(if life.end > at { life.bytes } else { 0 });
    };
    let mut of_site: FxHashMap<Option<StackId>, (u64, u64)> = FxHashMap::default();
    let mut of_size = FxHashMap::default();
    for now in lives.born(failed.lead, at) {
        let life = &lives.all[now];
        if life.is_of_model() {
            continue;
        }
        add(&mut bytes, life);
        let Some(before) = of_whole.get_mut(&life.stack).and_then(VecDeque::pop_front) else {
            continue;
        };
        add(&mut shared, life);
        let of = lives.all[before].bytes;
        all.push((now, before));
        of_size.entry(of).or_insert(life.bytes);
        let sums = of_site.entry(life.stack).or_default();
        *sums = (sums.0.saturating_add(life.bytes), sums.1.saturating_add(of));
    }
    let is_alike = |(shared, bytes): (u64, u64)| {
        shared.saturating_mul(100) >= bytes.saturating_mul(ALIKE_PERCENT)
    };
    if all.is_empty() || !std::iter::zip(shared, bytes).all(is_alike) {
        return None;
    }
    let changed = of_site.values().filter(|(now, before)| now != before);
    let sums = changed
        .fold((0_u64, 0_u64), |sum, of| (sum.0.saturating_add(of.0), sum.1.saturating_add(of.1)));
    let factor = |(now, before): (u64, u64)| {
        if before == 0 { 1.0 } else { now as f64 / before as f64 }
    };
    let of_site = of_site.into_iter().map(|(stack, sums)| (stack, factor(sums))).collect();
    Some(Pairs { all, of_site, of_size, overall: factor(sums) })
}

impl Pairs {
    /// The size in the failed pass of a block of the whole one.
    fn bytes(&self, facts: &Facts, life: &Life) -> u64 {
        if life.category == Category::Gradient {
            return life.bytes;
        }
        if let Some(&bytes) = self.of_size.get(&life.bytes) {
            return bytes;
        }
        let of_site = life.stack.and_then(|_| self.of_site.get(&life.stack)).copied();
        let overall = || if facts.grows(life) { self.overall } else { 1.0 };
        match of_site.unwrap_or_else(overall) {
            1.0 => life.bytes,
            factor => scaled(life.bytes, factor),
        }
    }
}

/// The time in the whole pass at which the failed request was made: after the last block that both
/// passes have, at the next request of its call stack.
fn place(
    lives: &Lives,
    pairs: &Pairs,
    whole: &Pass,
    stack: Option<StackId>,
    until: f64,
) -> Option<f64> {
    let last = pairs.all.iter().map(|&(_, before)| lives.all[before].begin);
    let last = last.fold(whole.lead, f64::max);
    let later = || lives.all[lives.born(last, until)].iter().filter(|life| life.begin > last);
    let same = later().find(|life| stack.is_some() && life.stack == stack);
    same.or_else(|| later().next()).map(|life| life.begin)
}

/// What an earlier pass left in the failed one dies where its like died in the whole pass.
fn survivors(
    lives: &mut Lives,
    whole: &Pass,
    failed: &Pass,
    place: f64,
    until: f64,
    moved: impl Fn(f64) -> f64,
) {
    let mut ends: FxHashMap<(Option<StackId>, u64), VecDeque<f64>> = FxHashMap::default();
    for life in &lives.all[..lives.born(whole.lead, whole.lead).start] {
        if !life.is_of_model() && life.begin >= 0.0 && (place..until).contains(&life.end) {
            ends.entry((life.stack, life.bytes)).or_default().push_back(life.end);
        }
    }
    let before = lives.born(failed.lead, failed.lead).start;
    for life in &mut lives.all[..before] {
        if life.stays() && !life.is_of_model() {
            let end = ends.get_mut(&(life.stack, life.bytes)).and_then(VecDeque::pop_front);
            life.end = end.map_or(life.end, &moved);
        }
    }
}
