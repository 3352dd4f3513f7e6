//! The results of a line are dropped at their last use.
//!
//! One step was traced. A block of another step dies where its like in the traced step does: the
//! first block that is born after the last use is an anchor, and in the other step the death is
//! before the birth of the anchor's like.

use super::del::places;
use super::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use vramscope_snapshot::StackId;

/// Blocks of equal call sites and sizes.
type Alike = (StackId, u64);

/// A birth after the last use: the blocks of which it is one, and how many of them are born from
/// the birth of the used block to there.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    of: Alike,
    count: usize,
}

pub(super) static LAST_USE: Change = Change {
    form: "last_use:FILE:LINE",
    does: "what the line makes dies at its last use, which a traced step shows. In other steps it \
           dies before the allocation that follows the last use in the traced one",
    error_percent: Some(3.0),
    group: Group::Line,
    apply: |lives, _, value, cx| last_use(lives, value.site(), cx),
    what: "what this line makes outlives its last use",
    snippet: include_str!("snippets/last_use.py"),
    called: |value, _| format!("Drop what {value} makes after its last use"),
    ..Change::PLAIN
};

/// Blocks that are made through that line die when their last use has ended.
///
/// # Errors
/// No step was traced, or nothing is made through the line.
fn last_use(lives: &mut Lives, site: &str, cx: Evidence<'_>) -> Result<Applied, Declined> {
    let uses = cx.uses.ok_or(Declined::NotTraced)?;
    let places: FxHashSet<_> = places(lives, site, cx);
    let [from, to] = [uses.slots.start, uses.slots.end].map(|slot| f64::from(slot) - 1.0);
    let mut births: FxHashMap<Alike, Vec<f64>> = FxHashMap::default();
    let mut made: BTreeMap<Alike, Vec<usize>> = BTreeMap::new();
    for (index, life) in lives.all.iter().enumerate() {
        let Some(of) = alike(life) else { continue };
        births.entry(of).or_default().push(life.begin);
        let is_there = |&frame: &_| places.contains(&lives.stacks.place(frame));
        if lives.frames(life).iter().any(is_there) {
            made.entry(of).or_default().push(index);
        }
    }
    if made.is_empty() {
        return Err(Declined::NoSite);
    }
    let mut ends: Vec<(usize, f64)> = Vec::new();
    for indices in made.values() {
        let is_traced = |&&index: &&usize| (from..to).contains(&lives.all[index].begin);
        let first = indices.iter().position(|index| is_traced(&index)).unwrap_or(0);
        let anchors: Vec<Option<Anchor>> = indices
            .iter()
            .filter(is_traced)
            .map(|&index| anchor(lives, &births, &lives.all[index]))
            .collect();
        for (at, &index) in indices.iter().enumerate() {
            let life = &lives.all[index];
            // Copies complete a failed step, and have the time of the original.
            let mut end = if life.dead > life.begin { life.dead } else { f64::INFINITY };
            if !is_traced(&&index) && !anchors.is_empty() {
                let count = anchors.len();
                let like = (at + count - first % count) % count;
                let anchored = anchors[like].and_then(|anchor| birth(&births, life, anchor));
                end = end.min(anchored.map_or(f64::INFINITY, |at| at - 0.5));
            }
            if end < life.end {
                ends.push((index, end.max(life.begin + 0.1)));
            }
        }
    }
    for &(index, end) in &ends {
        lives.all[index].end = end;
    }
    Applied::of(ends.len() as u32, Declined::HadIt)
}

fn alike(life: &Life) -> Option<Alike> {
    Some((life.stack.filter(|_| !life.is_new)?, life.bytes))
}

/// The anchor of the death of a block of the traced step; `None` if it is not known to be dead.
fn anchor(lives: &Lives, births: &FxHashMap<Alike, Vec<f64>>, life: &Life) -> Option<Anchor> {
    if life.dead >= life.end {
        return None;
    }
    let next = lives.all.partition_point(|other| other.begin < life.dead);
    let next = lives.all[next..].iter().find(|other| alike(other).is_some())?;
    let of = alike(next)?;
    let births = births.get(&of)?;
    let count = |time: f64| births.partition_point(|&birth| birth <= time);
    Some(Anchor { of, count: count(next.begin).saturating_sub(count(life.begin)) })
}

/// The birth of the like of an anchor, for a block of another step.
fn birth(births: &FxHashMap<Alike, Vec<f64>>, life: &Life, anchor: Anchor) -> Option<f64> {
    let births = births.get(&anchor.of)?;
    let before = births.partition_point(|&birth| birth <= life.begin);
    births.get((before + anchor.count).checked_sub(1)?).copied()
}
