//! The blocks that a model repeats, found by their call site.

use crate::evidence::marks::Mark;
use crate::evidence::stacks::Place;
use crate::recipes::Declined;
use crate::recipes::facts::Facts;
use crate::recipes::lives::{Life, Lives};
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::FrameId;

/// Sites to try, those with most bytes first.
const MAX_SITES: usize = 80;

/// A further stack of blocks keeps at least this share of the bytes for backward, in percent.
const MIN_STACK_PERCENT: u64 = 10;

/// One site, and what it makes in each piece. A piece lists blocks, ascending.
pub(crate) type Pieces = Vec<Vec<usize>>;

/// A line that runs blocks of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Site {
    pub(crate) place: Place,
    /// The line that calls it. Only a loop of PyTorch has one: each `Sequential` of a model shares
    /// it, the nested ones too.
    caller: Option<Place>,
}

impl Site {
    /// A line, whatever calls it.
    pub(crate) fn anywhere(place: Place) -> Self {
        Self { place, caller: None }
    }

    /// The site of a frame; `None` for PyTorch's call of a module.
    fn of(lives: &Lives, frames: &[FrameId], at: usize) -> Option<Self> {
        let kind = lives.stacks.mark(frames[at]);
        if kind.has(Mark::MODULE_CALL) {
            return None;
        }
        let place = lives.stacks.place(frames[at]);
        let is_of_torch = kind.has(Mark::LIBRARY) && kind.has(Mark::TORCH);
        let mut outer = frames[at + 1..].iter().filter(|_| is_of_torch);
        let caller = outer.find(|&&frame| !lives.stacks.mark(frame).has(Mark::MODULE_CALL));
        Some(Self { place, caller: caller.map(|&frame| lives.stacks.place(frame)) })
    }

    /// The innermost of these frames that is the site.
    pub(crate) fn position(self, lives: &Lives, frames: &[FrameId]) -> Option<usize> {
        (0..frames.len()).find(|&at| {
            lives.stacks.place(frames[at]) == self.place
                && (self.caller.is_none() || Self::of(lives, frames, at) == Some(self))
        })
    }
}

/// The sites through which the model's blocks run, one for each stack of blocks: an encoder and a
/// decoder have two. First that with the most bytes kept for backward, in two like pieces or more.
///
/// # Errors
/// No pass has a backward pass, nothing is kept for it, or nothing repeats.
pub(crate) fn repeated_sites(lives: &Lives, facts: &Facts) -> Result<Vec<Site>, Declined> {
    let pass = facts.typical().ok_or(Declined::NoPass)?;
    let backward = pass.backward.ok_or(Declined::NoPass)?;
    let mut blocks = with_stack(lives, lives.born(pass.begin, pass.end));
    let is_kept = |life: &Life| (backward.begin..backward.end).contains(&life.end);
    let bytes = |blocks: &[usize]| -> u64 {
        let kept = blocks.iter().map(|&index| &lives.all[index]).filter(|life| is_kept(life));
        kept.map(|life| life.bytes).sum()
    };
    let total = bytes(&blocks);
    let (site, mut found) = model_blocks(lives, &blocks, is_kept)?;
    let mut sites = vec![site];
    loop {
        let of_stack: FxHashSet<usize> = found.concat().into_iter().collect();
        blocks.retain(|index| !of_stack.contains(index));
        let Ok((site, pieces)) = model_blocks(lives, &blocks, is_kept) else { break };
        if bytes(&pieces.concat()) * 100 < total * MIN_STACK_PERCENT || sites.contains(&site) {
            break;
        }
        sites.push(site);
        found = pieces;
    }
    Ok(sites)
}

/// The site, and the pieces of `blocks` that it makes. `is_kept` says which blocks count.
///
/// # Errors
/// Nothing is kept, or nothing repeats.
pub(crate) fn model_blocks(
    lives: &Lives,
    blocks: &[usize],
    is_kept: impl Fn(&Life) -> bool,
) -> Result<(Site, Pieces), Declined> {
    let mut bytes: FxHashMap<Site, u64> = FxHashMap::default();
    let mut total = 0;
    let mut seen = FxHashSet::default();
    for &index in blocks {
        let life = &lives.all[index];
        if !is_kept(life) {
            continue;
        }
        total += life.bytes;
        seen.clear();
        let frames = lives.frames(life);
        for site in (1..frames.len()).filter_map(|at| Site::of(lives, frames, at)) {
            if seen.insert(site) {
                *bytes.entry(site).or_default() += life.bytes;
            }
        }
    }
    if total == 0 {
        return Err(Declined::NothingKept);
    }
    let mut sites: Vec<(Site, u64)> = bytes.into_iter().collect();
    sites.sort_by_key(|&(site, bytes)| (std::cmp::Reverse(bytes), site));
    let mut best: Option<(Site, Pieces, f64, usize)> = None;
    for (site, bytes) in sites.into_iter().take(MAX_SITES) {
        if bytes * 4 < total {
            break;
        }
        let found = pieces(lives, blocks, site);
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
        let outer = found.iter().map(|piece| depth(lives, piece[0], site)).max().unwrap_or(0);
        let is_better = best.as_ref().is_none_or(|(_, _, most, least)| {
            covered > most * 1.03 || (covered > most * 0.97 && outer < *least)
        });
        if is_better {
            best = Some((site, found, covered, outer));
        }
    }
    best.map(|(site, found, _, _)| (site, found)).ok_or(Declined::NothingRepeats)
}

/// How many frames lie outside of a site, with itself.
fn depth(lives: &Lives, block: usize, site: Site) -> usize {
    let frames = lives.frames(&lives.all[block]);
    site.position(lives, frames).map_or(0, |at| frames.len() - at)
}

/// Cuts blocks into the pieces that a site makes. A piece begins where the first call that the
/// site makes comes again.
///
/// One site may run blocks of several kinds, as an encoder's and then a decoder's. So a call that
/// is in no piece before, and comes again, begins pieces as well.
pub(crate) fn pieces(lives: &Lives, blocks: &[usize], site: Site) -> Pieces {
    let calls: Vec<(usize, Vec<Place>)> = blocks
        .iter()
        .filter_map(|&index| call(lives, index, site).map(|call| (index, call)))
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

/// The call that a site makes for a block. Packages call a module through several frames.
fn call(lives: &Lives, block: usize, site: Site) -> Option<Vec<Place>> {
    let frames = lives.frames(&lives.all[block]);
    let at = site.position(lives, frames)?;
    let inner = at.checked_sub(1)?;
    let is_package = lives.stacks.mark(frames[inner]).has(Mark::LIBRARY);
    let from = at.saturating_sub(if is_package { 3 } else { 1 });
    Some(frames[from..at].iter().map(|&frame| lives.stacks.place(frame)).collect())
}

/// The blocks of a range that have a call stack.
pub(crate) fn with_stack(lives: &Lives, range: std::ops::Range<usize>) -> Vec<usize> {
    range.filter(|&index| !lives.frames(&lives.all[index]).is_empty()).collect()
}
