//! The blocks that a model repeats, found by their call site.

use crate::recipes::Declined;
use crate::recipes::facts::{Facts, Pass};
use crate::recipes::lives::{Life, Lives};
use crate::recipes::stacks::{Kind, Place};
use rustc_hash::{FxHashMap, FxHashSet};

/// Places to try, those with most bytes first.
const MAX_PLACES: usize = 80;

/// One place, and what it makes in each piece. A piece lists blocks, ascending.
pub(crate) type Pieces = Vec<Vec<usize>>;

/// The call site through which the model's blocks run: that with the most bytes kept for backward,
/// in two like pieces or more.
///
/// # Errors
/// No pass has a backward pass, nothing is kept for it, or nothing repeats.
pub(crate) fn repeated_site(lives: &Lives, facts: &Facts) -> Result<Place, Declined> {
    let passes: Vec<&Pass> = facts.passes.iter().filter(|pass| pass.backward.is_some()).collect();
    let pass = passes.get(passes.len() / 2).ok_or(Declined::NoPass)?;
    let backward = pass.backward.ok_or(Declined::NoPass)?;
    let blocks = with_stack(lives, lives.born(pass.begin, pass.end));
    let is_kept = |life: &Life| (backward.begin..backward.end).contains(&life.end);
    model_blocks(lives, &blocks, is_kept).map(|found| found.0)
}

/// The site, and the pieces of `blocks` that it makes. `is_kept` says which blocks count.
///
/// # Errors
/// Nothing is kept, or nothing repeats.
pub(crate) fn model_blocks(
    lives: &Lives,
    blocks: &[usize],
    is_kept: impl Fn(&Life) -> bool,
) -> Result<(Place, Pieces), Declined> {
    let mut bytes: FxHashMap<Place, u64> = FxHashMap::default();
    let mut total = 0;
    let mut seen = FxHashSet::default();
    for &index in blocks {
        let life = &lives.all[index];
        if !is_kept(life) {
            continue;
        }
        total += life.bytes;
        seen.clear();
        for &frame in lives.frames(life).iter().skip(1) {
            let place = lives.stacks.place(frame);
            if !lives.stacks.kind(frame).has(Kind::MODULE_CALL) && seen.insert(place) {
                *bytes.entry(place).or_default() += life.bytes;
            }
        }
    }
    if total == 0 {
        return Err(Declined::NothingKept);
    }
    let mut places: Vec<(Place, u64)> = bytes.into_iter().collect();
    places.sort_by_key(|&(place, bytes)| (std::cmp::Reverse(bytes), place));
    let mut best: Option<(Place, Pieces, f64, usize)> = None;
    for (place, bytes) in places.into_iter().take(MAX_PLACES) {
        if bytes * 4 < total {
            break;
        }
        let found = pieces(lives, blocks, place);
        if found.len() < 2 {
            continue;
        }
        let size = |piece: &Vec<usize>| -> u64 {
            let kept = piece.iter().map(|&index| &lives.all[index]).filter(|life| is_kept(life));
            kept.map(|life| life.bytes).sum()
        };
        let sizes: Vec<u64> = found.iter().map(size).collect();
        let (sum, largest) = (sizes.iter().sum::<u64>(), *sizes.iter().max().unwrap_or(&0));
        if sum == 0 || largest * 4 > sum * 3 {
            continue;
        }
        let covered = sum as f64 * (1.0 - largest as f64 / sum as f64);
        let outer = found.iter().map(|piece| depth(lives, piece[0], place)).max().unwrap_or(0);
        let is_better = best.as_ref().is_none_or(|(_, _, most, least)| {
            covered > most * 1.03 || (covered > most * 0.97 && outer < *least)
        });
        if is_better {
            best = Some((place, found, covered, outer));
        }
    }
    best.map(|(place, found, _, _)| (place, found)).ok_or(Declined::NothingRepeats)
}

/// How many frames lie outside of a place, with itself.
fn depth(lives: &Lives, block: usize, place: Place) -> usize {
    let frames = lives.frames(&lives.all[block]);
    let at = frames.iter().position(|&frame| lives.stacks.place(frame) == place);
    at.map_or(0, |at| frames.len() - at)
}

/// Cuts blocks into the pieces that a place makes. A piece begins where the first call that the
/// place makes comes again.
pub(crate) fn pieces(lives: &Lives, blocks: &[usize], place: Place) -> Pieces {
    let mut all: Pieces = Vec::new();
    let (mut first, mut last): (Option<Vec<Place>>, Option<Vec<Place>>) = (None, None);
    for &index in blocks {
        let frames = lives.frames(&lives.all[index]);
        let at = frames.iter().position(|&frame| lives.stacks.place(frame) == place);
        let Some(at) = at.filter(|&at| at > 0) else { continue };
        // The call that the place makes. Packages call a module through several frames.
        let is_package = lives.stacks.kind(frames[at - 1]).has(Kind::LIBRARY);
        let from = at.saturating_sub(if is_package { 3 } else { 1 });
        let call: Vec<Place> =
            frames[from..at].iter().map(|&frame| lives.stacks.place(frame)).collect();
        let begins = match &first {
            None => true,
            Some(first) => call == *first && last.as_ref() != Some(first),
        };
        if first.is_none() {
            first = Some(call.clone());
        }
        match all.last_mut() {
            Some(piece) if !begins => piece.push(index),
            _ => all.push(vec![index]),
        }
        last = Some(call);
    }
    all
}

/// The blocks of a range that have a call stack.
pub(crate) fn with_stack(lives: &Lives, range: std::ops::Range<usize>) -> Vec<usize> {
    range.filter(|&index| !lives.frames(&lives.all[index]).is_empty()).collect()
}
