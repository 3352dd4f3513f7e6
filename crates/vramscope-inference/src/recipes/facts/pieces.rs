//! The blocks that a model repeats, found by their call site.

use crate::evidence::marks::Mark;
use crate::evidence::stacks::Place;
use crate::recipes::Declined;
use crate::recipes::facts::{Facts, Pass};
use crate::recipes::lives::{Life, Lives};
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
            if !lives.stacks.mark(frame).has(Mark::MODULE_CALL) && seen.insert(place) {
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
///
/// One place may run blocks of several kinds, as an encoder's and then a decoder's. So a call that
/// is in no piece before, and comes again, begins pieces as well.
pub(crate) fn pieces(lives: &Lives, blocks: &[usize], place: Place) -> Pieces {
    let calls: Vec<(usize, Vec<Place>)> = blocks
        .iter()
        .filter_map(|&index| call(lives, index, place).map(|call| (index, call)))
        .collect();
    let mut all: Pieces = Vec::new();
    let mut rest = &calls[..];
    let mut before: FxHashSet<&[Place]> = FxHashSet::default();
    while let Some((_, first)) = rest.first() {
        let begins: Vec<usize> = (0..rest.len())
            .filter(|&at| rest[at].1 == *first && (at == 0 || rest[at - 1].1 != *first))
            .collect();
        let last = begins[begins.len() - 1];
        before.extend(rest[..last].iter().map(|(_, call)| &call[..]));
        let other = (last..rest.len()).find(|&at| {
            let call = &rest[at].1;
            let later = &rest[at + 1..];
            let leaves = later.iter().position(|(_, next)| next != call);
            begins.len() > 1
                && !before.contains(&call[..])
                && leaves.is_some_and(|from| later[from..].iter().any(|(_, next)| next == call))
        });
        let end = other.unwrap_or(rest.len());
        let ends = begins.iter().skip(1).copied().chain([end]);
        for (&begin, end) in begins.iter().zip(ends) {
            all.push(rest[begin..end].iter().map(|&(index, _)| index).collect());
        }
        rest = &rest[end..];
    }
    all
}

/// The call that a place makes for a block. Packages call a module through several frames.
fn call(lives: &Lives, block: usize, place: Place) -> Option<Vec<Place>> {
    let frames = lives.frames(&lives.all[block]);
    let at = frames.iter().position(|&frame| lives.stacks.place(frame) == place)?;
    let inner = at.checked_sub(1)?;
    let is_package = lives.stacks.mark(frames[inner]).has(Mark::LIBRARY);
    let from = at.saturating_sub(if is_package { 3 } else { 1 });
    Some(frames[from..at].iter().map(|&frame| lives.stacks.place(frame)).collect())
}

/// The blocks of a range that have a call stack.
pub(crate) fn with_stack(lives: &Lives, range: std::ops::Range<usize>) -> Vec<usize> {
    range.filter(|&index| !lives.frames(&lives.all[index]).is_empty()).collect()
}
